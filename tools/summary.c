/* lockstep summary: a model's layers, shapes, parameters, work and memory. */
#include "command.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STANDARD_BATCH = 512 };

/* What is asked for. */
struct plan {
    const char *device; /* LIST; NULL: any */
    int64_t batch;
    bool is_mixed; /* activations are halves */
};

/* Channels are first inside, last in model files: (h, w, c), as users write them. */
static const char *shape_text(const struct lk_shape *shape, char text[80])
{
    if (shape->rank == 3) {
        snprintf(text, 80, "(%" PRId64 ", %" PRId64 ", %" PRId64 ")", shape->dim[1],
                 shape->dim[2], shape->dim[0]);
        return text;
    }
    int used = snprintf(text, 80, "(");
    for (int i = 0; i < shape->rank; i++)
        used += snprintf(text + used, 80 - (size_t)used, "%s%" PRId64, i ? ", " : "",
                         shape->dim[i]);
    snprintf(text + used, 80 - (size_t)used, ")");
    return text;
}

/* "1,234,567". */
static const char *count_text(int64_t count, char text[32])
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRId64, count);
    int used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

static const char *bytes_text(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};
    int unit = 0;
    for (; bytes >= 1024 && units[unit + 1]; unit++)
        bytes /= 1024;
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

static double activation_bytes(const struct lk_node_info *info, const struct plan *plan)
{
    double elements = plan->is_mixed ? 2 : sizeof(float);
    for (int i = 0; i < info->shape.rank; i++)
        elements *= (double)info->shape.dim[i];
    return elements;
}

static int name_width(const struct lk_graph *graph)
{
    size_t width = 5;
    const struct lk_node *node;
    for (int i = 0; (node = lk_graph_node(graph, i)) != NULL; i++) {
        const size_t length = strlen(lk_node_info(node).name);
        width = length > width ? length : width;
    }
    return (int)width;
}

struct totals {
    int64_t parameters, trainable;
    double flops, bytes;
};

static void print_layers(const struct lk_graph *graph, const struct plan *plan,
                         struct totals *t)
{
    char shape[80], parameters[32], flops[32], bytes[32];
    const int width = name_width(graph);
    const struct lk_node *node;
    printf("%-*s  %-20s  %12s  %9s  %12s\n", width, "layer", "output shape", "parameters",
           "FLOPs", "activations");
    for (int i = 0; (node = lk_graph_node(graph, i)) != NULL; i++) {
        const struct lk_node_info info = lk_node_info(node);
        const double size = activation_bytes(&info, plan) * (double)plan->batch;
        printf("%-*s  %-20s  %12s  %9s  %12s%s%s%s\n", width, info.name,
               shape_text(&info.shape, shape), count_text(info.parameters, parameters),
               rate_text(info.flops, flops), bytes_text(size, bytes),
               info.parameters && !info.is_trainable ? "  frozen" : "",
               info.weights_of ? "  weights of " : "", info.weights_of ? info.weights_of : "");
        t->parameters += info.parameters;
        t->trainable += info.trained;
        t->flops += info.flops;
        t->bytes += size;
    }
}

static void print_totals(const struct totals *t, const struct plan *plan)
{
    char text[32];
    printf("\nparameters   %s", count_text(t->parameters, text));
    printf(" (%s trainable), ", count_text(t->trainable, text));
    printf("%s\n", bytes_text((double)t->parameters * sizeof(float), text));
    printf("FLOPs        %s forward, a sample\n", rate_text(t->flops, text));
    printf("activations  %s at batch size %" PRId64 "%s\n", bytes_text(t->bytes, text),
           plan->batch, plan->is_mixed ? ", kept as halves" : "");
}

static void print_memory(const struct lk_memory *m, const char *device)
{
    char text[32];
    printf("\ntraining on %s takes %s of device memory:\n", device,
           bytes_text((double)m->total, text));
    printf("  weights      %s\n", bytes_text((double)m->weights, text));
    printf("  gradients    %s\n", bytes_text((double)m->gradients, text));
    printf("  activations  %s\n", bytes_text((double)m->activations, text));
    printf("  inputs       %s\n", bytes_text((double)m->inputs, text));
    printf("  optimizer    %s\n", bytes_text((double)m->optimizer, text));
}

/* The table stands without it: a machine without a device, or a small one, gets that too, and a
 * model that no loss fits. */
static int plan_memory(struct lk_model *model, const struct plan *plan)
{
    const enum lk_memory_use use =
        plan->is_mixed ? LK_MEMORY_TRAINING_MIXED : LK_MEMORY_TRAINING;
    struct lk_device *device = NULL;
    struct lk_memory memory;
    enum lk_status status = lk_device_open(plan->device, 0, &device);
    if (status == LK_OK)
        status = lk_model_memory(model, device, plan->batch, 0, use, &memory);
    if (status == LK_OK)
        print_memory(&memory, lk_device_info(device)->name);
    lk_device_close(device);
    if (status == LK_E_DEVICE_MEMORY || status == LK_E_MODEL ||
        (status == LK_E_NO_DEVICE && !plan->device)) {
        say("no memory plan: %s", lk_error_text());
        lk_error_clear();
        return DONE;
    }
    return status == LK_OK ? DONE : failed(status);
}

static int summarize(const char *name, const struct plan *plan)
{
    struct lk_model *model = NULL;
    struct totals totals = {0};
    const enum lk_status status = lk_model_open(name, NULL, &model);
    if (status != LK_OK)
        return failed(status);
    print_layers(lk_model_graph(model), plan, &totals);
    print_totals(&totals, plan);
    fflush(stdout); /* stands above what may be said on stderr next */
    const int result = plan_memory(model, plan);
    lk_model_destroy(model);
    return result;
}

static int run(const struct arguments *arguments)
{
    const char *precision = option_text(arguments, "precision");
    struct plan plan = {.device = option_text(arguments, "device"),
                        .batch = STANDARD_BATCH,
                        .is_mixed = precision && strcmp(precision, "mixed") == 0};
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command, "needs one MODEL, found %d words",
                           arguments->word_count);
    if (precision && !plan.is_mixed && strcmp(precision, "float") != 0)
        return wrong_usage(arguments->command,
                           "option '--precision': '%s' is none of float, "
                           "mixed",
                           precision);
    const int result = option_number(arguments, "batch-size", 1, 1 << 24, &plan.batch);
    return result == DONE ? summarize(arguments->words[0], &plan) : result;
}

static void more(void)
{
    printf("MODEL is a model file or a name of the zoo:");
    for (int i = 0; lk_model_zoo(i); i++)
        printf(" %s", lk_model_zoo(i));
    printf("\n");
}

static const struct option options[] = {
    {"batch-size", "N", "samples in a batch (default 512)"},
    {"device", "LIST",
     "device whose memory is planned; default: the first GPU, else the first"},
    {"precision", "float|mixed",
     "mixed keeps activations and their gradients as halves (float)"},
    {0},
};

const struct command summary_command = {
    .name = "summary",
    .usage = "MODEL [options]",
    .help = "show a model's layers, shapes, parameters, work and memory",
    .options = options,
    .more = more,
    .run = run,
};
