/* Times single operations. The runs of a measurement take turns with several copies of the
 * activations, so that caches hold no more of them than they would while training. */
#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "bench/cases.h"
#include "bench/timing.h"
#include "device/library/blas.h"
#include "ops/probe/probe.h"
#include "train/tuning/tuning.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COPIES_BYTES = 256 << 20, /* of activations that runs take turns with */
};

/* What is timed of an operation. LIBRARY: a dense layer's forward product by CLBlast, for
 * comparison. */
enum pass { FORWARD, LIBRARY, DGRAD, WGRAD, PASSES };
static const char *const pass_names[] = {"forward", "forward", "dgrad", "wgrad"};

struct bench {
    struct lk_device *device;
    struct lk_bench_options options;
    struct lk_meter *meter;
    bool (*handler)(void *context, const struct lk_bench_kernel *kernel);
    void *context;
    enum lk_math math;
    struct lk_choices *known, *blockings; /* what tuning has found */
    struct lk_choices *choices;           /* of the pass at hand */
    char algorithm[LK_CHOICE_TEXT_BYTES]; /* the algorithm that the pass being timed has
                                           * taken */
    bool stopped;
    int done, count;
};

/* --- sets and passes ------------------------------------------------------------------- */

const char *lk_bench_set(int index)
{
    const char *last = "";
    for (const struct lk_bench_case *c = lk_bench_cases; c->set; c++) {
        if (strcmp(last, c->set) != 0 && index-- == 0)
            return c->set;
        last = c->set;
    }
    return NULL;
}

static const char *set_name(const void *context, int index)
{
    (void)context;
    return lk_bench_set(index);
}

static bool is_in(const struct lk_bench_case *c, const char *set)
{
    return !set || strcmp(c->set, set) == 0;
}

/* Whether the operation is bound by multiply-adds and has a separate pass for the weight
 * gradient. Other operations are bound by memory, depthwise convolutions too. Of a recurrent
 * layer that pass walks back through time as well. */
static bool is_product(const struct lk_bench_case *c)
{
    return strncmp(c->op, "conv2d", strlen("conv2d")) == 0 || strcmp(c->op, "dense") == 0 ||
           strcmp(c->set, "text") == 0;
}

static bool is_memory_bound(const struct lk_bench_case *c)
{
    return !is_product(c) || strstr(c->options, "groups=");
}

static int64_t batch_of(const struct bench *bench, const struct lk_bench_case *c)
{
    return bench->options.batch ? bench->options.batch : c->batch;
}

static bool has_pass(const struct lk_bench_case *c, enum pass pass)
{
    switch (pass) {
    case LIBRARY:
        return strcmp(c->op, "dense") == 0;
    case DGRAD:
        return !c->is_first;
    case WGRAD: /* attention has no weights */
        return is_product(c) && strcmp(c->op, "attention") != 0;
    default:
        return true;
    }
}

/* --- one case -------------------------------------------------------------------------- */

static void describe(const struct bench *bench, const struct lk_bench_case *c, char *text,
                     size_t bytes)
{
    char shape[64];
    lk_shape_print(&c->x, shape, sizeof shape);
    snprintf(text, bytes, "%s%s%s%s%s%s%s, n %" PRId64, shape, *c->options ? " " : "",
             c->options, c->absorbed ? " + " : "", c->absorbed ? c->absorbed : "",
             c->absorbed ? " " : "", c->absorbed ? c->absorbed_options : "",
             batch_of(bench, c));
}

static struct lk_probe_config config_of(const struct bench *bench,
                                        const struct lk_bench_case *c, enum pass pass)
{
    struct lk_probe_config config = {
        .device = bench->device,
        .op = c->op,
        .options = c->options,
        .absorbed = c->absorbed,
        .absorbed_options = c->absorbed_options,
        .batch = batch_of(bench, c),
        .shards = 1,
        .training = true,
        .dx = pass != WGRAD,
        .dw = pass != DGRAD || !is_product(c),
        .asks_gate = c->behind_relu,
        .dy_is_gated = c->before_conv,
        .choices = bench->choices,
    };
    config.inputs = lk_bench_case_inputs(c, config.x);
    return config;
}

static enum lk_status enqueue_forward(void *probe, int64_t turn)
{
    const struct lk_probe *p = probe;
    return lk_probe_forward(probe, (int)(turn % p->copies));
}

static enum lk_status enqueue_backward(void *probe, int64_t turn)
{
    const struct lk_probe *p = probe;
    return lk_probe_backward(probe, (int)(turn % p->copies));
}

static enum lk_status measure(struct bench *bench, struct lk_probe *probe, enum pass pass,
                              struct lk_bench_kernel *result)
{
    const struct lk_work work = {.enqueue =
                                     pass == FORWARD ? enqueue_forward : enqueue_backward,
                                 .context = probe,
                                 .seconds = bench->options.seconds};
    result->flops = probe->setup.shapes.flops * (double)probe->batch;
    result->bytes = lk_probe_bytes(probe, pass != FORWARD);
    return lk_work_measure(&work, bench->device, bench->meter, result);
}

/* A choice's key has the pass as its second word. */
struct search {
    const char *pass;
    char *algorithm;
};

static void look(void *context, const char *key, const char *text)
{
    const struct search *search = context;
    const char *word = strchr(key, ' ');
    if (word && strncmp(word + 1, search->pass, strlen(search->pass)) == 0)
        strcpy(search->algorithm, text);
}

static enum lk_status open_probe(struct bench *bench, const struct lk_bench_case *c,
                                 enum pass pass, struct lk_probe *probe)
{
    const struct lk_probe_config config = config_of(bench, c, pass);
    struct search search = {pass_names[pass], bench->algorithm};
    strcpy(bench->algorithm, strcmp(c->op, "dense") == 0 ? "matrix" : "direct");
    LK_TRY(lk_probe_open(probe, &config));
    lk_choices_each(bench->choices, look, &search);
    return LK_OK;
}

static enum lk_status time_ours(struct bench *bench, const struct lk_bench_case *c,
                                enum pass pass, struct lk_bench_kernel *result)
{
    struct lk_probe probe = {0};
    const double start = lk_seconds();
    enum lk_status status;
    LK_TRY_OUT(lk_choices_create(bench->math, &bench->choices));
    lk_choices_set_fallbacks(bench->choices, bench->known, bench->blockings);
    LK_TRY_OUT(open_probe(bench, c, pass, &probe));
    result->algorithm = bench->algorithm;
    LK_TRY_OUT(lk_device_build(bench->device));
    result->build_ms = 1e3 * (lk_seconds() - start);
    LK_TRY_OUT(lk_probe_allocate(&probe, COPIES_BYTES, pass != FORWARD));
    LK_TRY_OUT(lk_probe_fill(&probe));
    LK_TRY_OUT(measure(bench, &probe, pass, result));
out:
    lk_probe_close(&probe);
    lk_choices_destroy(bench->choices);
    bench->choices = NULL;
    return status;
}

/* --- CLBlast --------------------------------------------------------------------------- */

struct library {
    struct lk_device *device;
    struct lk_gemm gemm;
    struct lk_buffer *a, *b, *c, *scratch;
};

static enum lk_status enqueue_library(void *context, int64_t turn)
{
    struct library *library = context;
    (void)turn;
    return lk_blas_gemm(library->device, &library->gemm);
}

static enum lk_status make_library(struct bench *bench, struct library *library)
{
    struct lk_gemm *g = &library->gemm;
    size_t scratch = 0;
    LK_TRY(lk_blas_check(bench->device, g->real_bytes, NULL));
    LK_TRY(lk_blas_scratch(bench->device, g, &scratch));
    if (scratch)
        LK_TRY(lk_buffer_create(bench->device, scratch, &library->scratch));
    LK_TRY(lk_buffer_create(bench->device, (size_t)(g->m * g->k) * sizeof(float), &library->a));
    LK_TRY(lk_buffer_create(bench->device, (size_t)(g->k * g->n) * sizeof(float), &library->b));
    LK_TRY(lk_buffer_create(bench->device, (size_t)(g->m * g->n) * sizeof(float), &library->c));
    LK_TRY(lk_buffer_fill_random(library->a));
    LK_TRY(lk_buffer_fill_random(library->b));
    g->a = library->a;
    g->b = library->b;
    g->c = library->c;
    g->scratch = library->scratch;
    return LK_OK;
}

/* y = x w: [batch, units] = [batch, in] [in, units], row by row as CLBlast has it. */
static enum lk_status time_library(struct bench *bench, const struct lk_bench_case *c,
                                   struct lk_bench_kernel *result)
{
    struct library library = {.device = bench->device};
    library.gemm = (struct lk_gemm){.real_bytes = sizeof(float),
                                    .m = batch_of(bench, c),
                                    .n = atoll(strstr(c->options, "units=") + strlen("units=")),
                                    .k = c->x.dim[0],
                                    .alpha = 1};
    const struct lk_gemm *g = &library.gemm;
    const struct lk_work work = {
        .enqueue = enqueue_library, .context = &library, .seconds = bench->options.seconds};
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    result->algorithm = "clblast";
    result->is_reference = true;
    result->flops = 2 * m * n * k;
    result->bytes = sizeof(float) * (m * k + k * n + m * n);
    enum lk_status status;
    LK_TRY_OUT(make_library(bench, &library));
    LK_TRY_OUT(lk_work_measure(&work, bench->device, bench->meter, result));
out:
    lk_buffer_destroy(library.a);
    lk_buffer_destroy(library.b);
    lk_buffer_destroy(library.c);
    lk_buffer_destroy(library.scratch);
    return status;
}

/* --- all ------------------------------------------------------------------------------- */

/* Whether a failure means only that this device cannot run the case, which is then left out. */
static bool is_harmless(enum lk_status status, enum pass pass)
{
    return status == LK_E_DEVICE_MEMORY || status == LK_E_UNSUPPORTED ||
           (status == LK_E_DEVICE && pass == LIBRARY);
}

static enum lk_status time_pass(struct bench *bench, const struct lk_bench_case *c,
                                enum pass pass)
{
    char shape[256];
    describe(bench, c, shape, sizeof shape);
    struct lk_bench_kernel result = {.set = c->set,
                                     .op = c->op,
                                     .pass = pass_names[pass],
                                     .shape = shape,
                                     .memory_bound = is_memory_bound(c),
                                     .done = ++bench->done,
                                     .count = bench->count};
    const enum lk_status status =
        pass == LIBRARY ? time_library(bench, c, &result) : time_ours(bench, c, pass, &result);
    if (status == LK_OK)
        bench->stopped = !bench->handler(bench->context, &result);
    else if (!is_harmless(status, pass))
        return status;
    else
        lk_log(LK_LOG_WARNING, "%s %s %s left out: %s", c->op, result.pass, shape,
               lk_error_text());
    lk_error_clear();
    return LK_OK;
}

static enum lk_status time_all(struct bench *bench, const char *set)
{
    LK_TRY(lk_math_find(bench->options.math, &bench->math));
    LK_TRY(lk_choices_create(bench->math, &bench->known));
    LK_TRY(lk_choices_create(bench->math, &bench->blockings));
    lk_tuning_load(bench->known, bench->blockings);
    LK_TRY(lk_meter_create(bench->device, &bench->meter));
    for (const struct lk_bench_case *c = lk_bench_cases; c->set; c++)
        for (int pass = 0; pass < PASSES && !bench->stopped; pass++)
            if (is_in(c, set) && has_pass(c, (enum pass)pass))
                LK_TRY(time_pass(bench, c, (enum pass)pass));
    return LK_OK;
}

enum lk_status lk_bench_kernels(
    struct lk_device *device, const char *set, const struct lk_bench_options *options,
    bool (*handler)(void *context, const struct lk_bench_kernel *kernel), void *context)
{
    struct bench bench = {.device = device, .handler = handler, .context = context};
    if (options)
        bench.options = *options;
    for (const struct lk_bench_case *c = lk_bench_cases; c->set; c++)
        for (int pass = 0; pass < PASSES; pass++)
            bench.count += is_in(c, set) && has_pass(c, (enum pass)pass);
    if (bench.count == 0) {
        const char *near = lk_nearest_name(set, set_name, NULL);
        return lk_fail(LK_E_ARGUMENT, "unknown set of operations '%s'%s%s%s", set,
                       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    const enum lk_status status = time_all(&bench, set);
    lk_meter_destroy(bench.meter);
    lk_choices_destroy(bench.known);
    lk_choices_destroy(bench.blockings);
    return status;
}
