/* Computes a graph of ONNX on arrays: one sample, which has all of every array, or as many as
 * the arrays have. */
#include "train/compute/arrays.h"

#include "base/fail.h"
#include "graph/replica.h"
#include <stdlib.h>
#include <string.h>

enum { STANDARD_BATCH = 16 };

struct lk_computed {
    struct lk_onnx_arrays *arrays;
    struct lk_device *device;
    struct lk_choices *choices;
    struct lk_replica *replica;
    const struct lk_node *nodes[LK_MOST_VALUES + 1]; /* of the outputs, each once */
    float *numbers[LK_MOST_VALUES];                  /* of each node */
    int node_count;
    int64_t batch; /* samples at a time */
};

static int find_node(const struct lk_computed *c, const struct lk_node *node)
{
    int i = 0;
    while (i < c->node_count && c->nodes[i] != node)
        i++;
    return i;
}

static enum lk_status list_nodes(struct lk_computed *c)
{
    const struct lk_onnx_array *output;
    for (int o = 0; (output = lk_onnx_array_output(c->arrays, o)); o++) {
        if (!output->node || find_node(c, output->node) < c->node_count)
            continue;
        if (c->node_count == LK_MOST_VALUES)
            return lk_fail(LK_E_MODEL, "more than %d outputs", LK_MOST_VALUES);
        c->nodes[c->node_count++] = output->node;
    }
    return LK_OK;
}

static enum lk_status write_params(struct lk_computed *c)
{
    const struct lk_param *param;
    for (int p = 0; (param = lk_replica_param(c->replica, p)); p++) {
        const struct lk_safetensor *numbers = lk_onnx_array_param(c->arrays, param->name);
        if (!numbers)
            return lk_fail(LK_E_MODEL, "'%s' has no numbers", param->name);
        LK_TRY(lk_replica_write_param(c->replica, p, numbers->data));
    }
    return LK_OK;
}

static enum lk_status make_replica(struct lk_computed *c,
                                   const struct lk_computation_options *options)
{
    enum lk_math math = LK_MATH_STRICT; /* who compares wants that more than speed */
    if (options->math)
        LK_TRY(lk_math_find(options->math, &math));
    LK_TRY(lk_choices_create(math, &c->choices));
    LK_TRY(lk_device_open(options->device, 0, &c->device));
    c->batch = lk_least(options->batch > 0 ? options->batch : STANDARD_BATCH,
                        lk_onnx_array_samples(c->arrays));
    struct lk_replica_config config = {.device = c->device,
                                       .batch = c->batch,
                                       .shards = 1,
                                       .real = LK_F32,
                                       .few_samples = c->batch <= LK_FEW_SAMPLES,
                                       .choices = c->choices};
    memcpy(config.outputs, c->nodes, sizeof c->nodes);
    LK_TRY(lk_replica_create(&config, &c->replica));
    c->batch = lk_replica_batch(c->replica);
    LK_TRY(lk_replica_build(c->replica));
    return write_params(c);
}

/* Which number of a sample of the array is number e of the slot. */
static int64_t place_of(const struct lk_onnx_array *input, int64_t e)
{
    const int64_t *dim = input->tensor->dim; /* [n, h, w, c] */
    const int64_t pixels = input->is_last ? dim[1] * dim[2] : 1;
    return input->is_last ? e % pixels * dim[3] + e / pixels : e;
}

/* With `count` samples from `first` on. */
static void fill_slots(struct lk_computed *c, int64_t first, int64_t count)
{
    const struct lk_onnx_array *input;
    for (int i = 0; (input = lk_onnx_array_input(c->arrays, i)); i++) {
        float *slot = input->node ? lk_replica_slot(c->replica, input->node, 0) : NULL;
        const int64_t all = input->tensor ? input->tensor->count : 0;
        const int64_t each = all / lk_onnx_array_samples(c->arrays);
        for (int64_t n = 0; slot && n < count; n++, slot += each)
            for (int64_t e = 0; e < each; e++)
                slot[e] =
                    (float)lk_onnx_real(input->tensor, (first + n) * each + place_of(input, e));
    }
}

static enum lk_status allocate(struct lk_computed *c)
{
    for (int v = 0; v < c->node_count; v++) {
        const size_t bytes = (size_t)lk_shape_count(&c->nodes[v]->shapes.y) *
                             (size_t)lk_onnx_array_samples(c->arrays) * sizeof(float);
        c->numbers[v] = malloc(bytes);
        if (!c->numbers[v])
            return lk_fail_memory("an output", bytes);
    }
    return LK_OK;
}

static enum lk_status compute(struct lk_computed *c)
{
    const int64_t samples = lk_onnx_array_samples(c->arrays);
    LK_TRY(allocate(c));
    for (int64_t i = 0; i < samples; i += c->batch) {
        const int64_t count = lk_least(c->batch, samples - i);
        fill_slots(c, i, count);
        LK_TRY(lk_replica_load(c->replica, 0, count));
        LK_TRY(lk_replica_forward(c->replica, 0));
        for (int v = 0; v < c->node_count; v++) {
            struct lk_shape shape;
            const struct lk_shape *y = &c->nodes[v]->shapes.y;
            LK_TRY(lk_tiled_read(lk_replica_output(c->replica, v, &shape),
                                 lk_replica_tiling(c->replica), y, LK_F32, count,
                                 c->numbers[v] + i * lk_shape_count(y)));
        }
        LK_TRY(lk_replica_wait_slot(c->replica, 0));
    }
    return LK_OK;
}

enum lk_status lk_compute_arrays(const char *file, const struct lk_onnx_array *given, int count,
                                 const struct lk_computation_options *options,
                                 struct lk_computed **computed)
{
    struct lk_computed *c = calloc(1, sizeof *c);
    enum lk_status status;
    if (!c)
        return lk_fail_memory(file, sizeof *c);
    LK_TRY_OUT(lk_onnx_open_arrays(file, given, count, &c->arrays));
    LK_TRY_OUT(list_nodes(c));
    if (c->node_count > 0) {
        LK_TRY_OUT(make_replica(c, options));
        LK_TRY_OUT(compute(c));
    }
    *computed = c;
    return LK_OK;
out:
    lk_computed_destroy(c);
    return status;
}

void lk_computed_destroy(struct lk_computed *computed)
{
    if (!computed)
        return;
    lk_replica_destroy(computed->replica);
    lk_choices_destroy(computed->choices);
    lk_device_close(computed->device);
    lk_onnx_close_arrays(computed->arrays);
    for (int v = 0; v < computed->node_count; v++)
        free(computed->numbers[v]);
    free(computed);
}

bool lk_computed_output(const struct lk_computed *computed, int index,
                        struct lk_computed_array *output)
{
    const struct lk_onnx_array *about = lk_onnx_array_output(computed->arrays, index);
    if (!about)
        return false;
    const int node = about->node ? find_node(computed, about->node) : -1;
    *output = (struct lk_computed_array){
        .about = about,
        .numbers = node >= 0 ? computed->numbers[node] : NULL,
        .count = node >= 0 ? lk_onnx_array_samples(computed->arrays) *
                                 lk_shape_count(&about->node->shapes.y)
                           : about->tensor->count};
    return true;
}

double lk_computed_number(const struct lk_computed_array *output, int64_t index)
{
    const int64_t *dim = output->about->dim; /* [n, h, w, c], of numbers [n, c, h, w] */
    if (!output->numbers)
        return lk_onnx_real(output->about->tensor, index);
    if (output->about->is_last) {
        const int64_t pixels = dim[1] * dim[2], e = index % (pixels * dim[3]);
        index += e % dim[3] * pixels + e / dim[3] - e;
    }
    return (double)output->numbers[index];
}
