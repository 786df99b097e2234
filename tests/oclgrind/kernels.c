/* Runs every kernel on small shapes: first each operation alone, in buffers that end where its
 * tensors end, so that a checker sees every step outside them; then networks through training
 * steps, whose losses it prints: "adam 1 2.302585093". Results of operations are not looked at
 * here: tests/ops does that. */
#include "base/fail.h"
#include "base/random.h"
#include "bench/selftest/known_answers.h"
#include "graph/crossing/checked_copy.h"
#include "mirror/shards.h"
#include "oclgrind/generation.h"
#include "oclgrind/lists.h"
#include "oclgrind/operations.h"
#include "oclgrind/planes.h"
#include "oclgrind/updates.h"
#include "ops/probe/probe.h"
#include "team/stepper/stepper.h"
#include "tensor/elementwise.h"
#include <lockstep/graph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS = 2, CLASSES = 3, CHANNELS = 3 };

/* --- operations ------------------------------------------------------------------------ */

/* Numbers of either sign, or labels, some of them -1 as in dead lanes. `far`, if not 0, is the
 * first. */
static enum lk_status fill_from(const struct lk_buffer *buffer, enum lk_dtype dtype, int far)
{
    if (!buffer)
        return LK_OK;
    const size_t count = lk_buffer_bytes(buffer) / 4;
    int32_t *values = calloc(count + 1, sizeof *values);
    if (!values)
        return lk_fail_memory("values", count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = lk_random(1, LK_RANDOM_DATA, 0, i).v[0];
        const float value = (float)lk_random_unit(bits) - 0.25f;
        if (dtype == LK_I32)
            values[i] = (int32_t)(bits % (CLASSES + 1)) - 1;
        else
            memcpy(&values[i], &value, sizeof value);
    }
    if (far)
        values[0] = far;
    const enum lk_status status =
        lk_buffer_write((struct lk_buffer *)(uintptr_t)buffer, 0, count * 4, values);
    free(values);
    return status;
}

static enum lk_status fill(const struct lk_buffer *buffer, enum lk_dtype dtype)
{
    return fill_from(buffer, dtype, 0);
}

static enum lk_status run_probe(struct lk_probe *probe, const struct lk_probe_config *config)
{
    LK_TRY(lk_probe_open(probe, config));
    LK_TRY(lk_device_build(config->device));
    LK_TRY(lk_probe_allocate(probe, 1, config->training));
    const struct lk_op_run *run = &probe->runs[0];
    for (int i = 0; i < config->inputs; i++) /* a token far beyond any table */
        LK_TRY(fill_from(run->x[i], config->x_dtype[i],
                         i == 0 && config->x_dtype[i] == LK_I32 ? INT32_MAX : 0));
    for (int j = 0; j < probe->setup.shapes.params; j++)
        LK_TRY(fill(run->w[j], LK_F32));
    LK_TRY(fill(run->dy, LK_F32));
    LK_TRY(lk_probe_forward(probe, 0));
    if (config->training)
        LK_TRY(lk_probe_backward(probe, 0));
    return lk_device_finish(config->device);
}

/* The batch fills more than one tile, and the last one not wholly. */
static enum lk_status run_operation(struct lk_device *device, const struct operation *o,
                                    bool training)
{
    struct lk_probe probe = {0};
    struct lk_probe_config config = {
        .device = device,
        .op = o->op,
        .options = o->options,
        .inputs = o->inputs ? o->inputs : 1,
        .batch = lk_device_info(device)->lanes * (o->is_wide ? 1 : 3) + 1,
        .shards = SHARDS,
        .training = training,
        .dx = training && !o->is_first,
        .dw = training,
        .seed = 3};
    for (int i = 0; i < config.inputs; i++)
        config.x[i] = i == 1 && o->second.rank > 0 ? o->second : o->x;
    if (o->has_tokens)
        config.x_dtype[0] = LK_I32;
    if (o->has_labels) {
        config.x[config.inputs] = o->labels;
        config.x_dtype[config.inputs++] = LK_I32;
    }
    enum lk_status status = LK_OK;
    if (o->algorithm) {
        status = lk_choices_create(LK_MATH_NORMAL, &config.choices);
        if (status == LK_OK)
            status = lk_choices_prefer(config.choices, o->algorithm);
    }
    if (status == LK_OK)
        status = run_probe(&probe, &config);
    lk_probe_close(&probe);
    lk_choices_destroy(config.choices);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "%s %s", o->op, o->options);
}

/* Each in a context of its own: Oclgrind 21.10 takes values for uninitialized when a kernel
 * runs again in the same one. */
static enum lk_status run_operations(const struct operation *list, int count)
{
    for (int i = 0; i < 2 * count; i++) {
        const struct operation *o = &list[i / 2];
        const bool training = i % 2 == 0;
        struct lk_device *device = NULL;
        if (!training && (o->is_first || o->is_wide || strcmp(o->op, "dropout") == 0))
            continue;
        LK_TRY(lk_device_open(NULL, 0, &device));
        enum lk_status status = LK_OK;
        if (!o->is_for_cpus || lk_device_info(device)->device_class == LK_CLASS_CPU)
            status = run_operation(device, o, training);
        lk_device_close(device);
        LK_TRY(status);
    }
    return LK_OK;
}

static bool is_listed(const char *op)
{
    for (int i = 0; i < LK_COUNT(operations); i++)
        if (strcmp(operations[i].op, op) == 0)
            return true;
    return false;
}

static enum lk_status run_known(void)
{
    for (const struct lk_known_answer *k = lk_known_answers; k->op; k++) {
        struct operation o = {.op = k->op,
                              .options = k->options,
                              .x = k->x,
                              .second = k->second,
                              .inputs = k->inputs,
                              .has_tokens = k->tokens,
                              .has_labels = k->labels || k->length};
        if (k->labels)
            o.labels = lk_known_label_shape(k);
        if (!is_listed(k->op))
            LK_TRY(run_operations(&o, 1));
    }
    return LK_OK;
}

/* Every operation that computes something runs. */
static enum lk_status check_cases(void)
{
    for (int i = 0; lk_ops[i]; i++) {
        bool runs = lk_ops[i]->is_view || is_listed(lk_ops[i]->name);
        for (const struct lk_known_answer *k = lk_known_answers; k->op && !runs; k++)
            runs = strcmp(k->op, lk_ops[i]->name) == 0;
        if (!runs)
            return lk_fail(LK_E_DATA, "no case of %s", lk_ops[i]->name);
    }
    return LK_OK;
}

/* --- kernels that measure -------------------------------------------------------------- */

static enum lk_status enqueue_bench(struct lk_kernel *kernel[3], struct lk_buffer *buffer[3],
                                    int items, int64_t vectors)
{
    const struct lk_grid one = {{1, 1, 1}, items}, all = {{(vectors + 7) / 8, 1, 1}, items};
    LK_TRY(
        LK_ENQUEUE(kernel[0], one, LK_BUF(buffer[2]), LK_INT(2), LK_REAL(0.75), LK_REAL(0.5)));
    LK_TRY(LK_ENQUEUE(kernel[1], all, LK_BUF(buffer[0]), LK_BUF(buffer[1]), LK_INT(vectors)));
    return LK_ENQUEUE(kernel[2], all, LK_BUF(buffer[0]), LK_BUF(buffer[1]), LK_BUF(buffer[2]),
                      LK_INT(vectors), LK_REAL(0.5));
}

static enum lk_status run_bench(struct lk_device *device)
{
    static const char *const names[] = {"bench_fma", "bench_copy", "bench_triad"};
    const struct lk_device_info *info = lk_device_info(device);
    const int items = info->device_class == LK_CLASS_GPU ? 4 : 1;
    const int64_t vectors = 19; /* 3 groups of 8, the last one not full */
    struct lk_kernel *kernel[3] = {0};
    struct lk_buffer *buffer[3] = {0};
    enum lk_status status;
    char options[64];
    snprintf(options, sizeof options, "-DCHAINS=2 -DITEMS=%d -DGROUP=8", items);
    for (int i = 0; i < 3; i++) {
        const struct lk_kernel_spec spec = {
            .source = "bench/bench", .name = names[i], .options = options, .real_bytes = 4};
        LK_TRY_OUT(lk_kernel_create(device, &spec, &kernel[i]));
        LK_TRY_OUT(lk_buffer_create(device, (size_t)(vectors * info->vector) * 4, &buffer[i]));
        LK_TRY_OUT(fill(buffer[i], LK_F32));
    }
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(enqueue_bench(kernel, buffer, items, vectors));
    LK_TRY_OUT(lk_device_finish(device));
out:
    for (int i = 0; i < 3; i++) {
        lk_kernel_destroy(kernel[i]);
        lk_buffer_destroy(buffer[i]);
    }
    return status;
}

/* What tries sums over lanes where there are sub-groups, and here without. */
static enum lk_status run_lanes(struct lk_device *device)
{
    const struct lk_device_info *info = lk_device_info(device);
    const struct lk_kernel_spec spec = {
        .source = "device/subgroups", .name = "subgroups_sum", .real_bytes = 4};
    const int items = info->lanes / info->vector;
    const struct lk_grid grid = {{3, 1, 1}, items};
    const size_t bytes = (size_t)(3 * items) * sizeof(float);
    struct lk_kernel *kernel = NULL;
    struct lk_buffer *x = NULL, *y = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_kernel_create(device, &spec, &kernel));
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_buffer_create(device, bytes * (size_t)info->vector, &x));
    LK_TRY_OUT(lk_buffer_create(device, bytes, &y));
    LK_TRY_OUT(fill(x, LK_F32));
    LK_TRY_OUT(LK_ENQUEUE(kernel, grid, LK_BUF(x), LK_BUF(y)));
    LK_TRY_OUT(lk_device_finish(device));
out:
    lk_kernel_destroy(kernel);
    lk_buffer_destroy(x);
    lk_buffer_destroy(y);
    return status;
}

/* The loop of a chain over two steps that call nothing; its counters end at 0. One group, as
 * Oclgrind 21.10 dies counting the instructions of several of this kernel. */
static enum lk_status run_chain(struct lk_device *device)
{
    enum { STATE = 256 };
    const struct lk_kernel_spec spec = {
        .source = "device/chain", .name = "chain", .real_bytes = 4};
    const struct lk_grid grid = {{1, 1, 1}, 1};
    const int32_t table[] = {0, 6, 3, 2, 1, 0, 1, 0, 5, 5, 1, 1, 0, 2};
    int32_t counts[STATE] = {0};
    struct lk_kernel *kernel = NULL;
    struct lk_buffer *state = NULL, *steps = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_kernel_create(device, &spec, &kernel));
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_buffer_create(device, sizeof counts, &state));
    LK_TRY_OUT(lk_buffer_create(device, sizeof table, &steps));
    LK_TRY_OUT(lk_buffer_write(state, 0, sizeof counts, counts));
    LK_TRY_OUT(lk_buffer_write(steps, 0, sizeof table, table));
    LK_TRY_OUT(LK_ENQUEUE(kernel, grid, LK_BUF(state), LK_BUF(steps), LK_INT(2), LK_BUF(NULL),
                          LK_BUF(NULL), LK_BUF(NULL), LK_BUF(NULL), LK_BUF(NULL), LK_BUF(NULL),
                          LK_BUF(NULL), LK_BUF(NULL), LK_BUF(NULL), LK_BUF(NULL), LK_BUF(NULL),
                          LK_BUF(NULL), LK_LOCAL(sizeof(int32_t))));
    LK_TRY_OUT(lk_buffer_read(state, 0, sizeof counts, counts));
    for (int i = 0; i < STATE && status == LK_OK; i++)
        if (counts[i] != 0)
            status = lk_fail(LK_E_DEVICE, "a chain's state ends with %d", (int)counts[i]);
out:
    lk_kernel_destroy(kernel);
    lk_buffer_destroy(state);
    lk_buffer_destroy(steps);
    return status;
}

/* --- sums of two siblings, and their checksum ------------------------------------------ */

static enum lk_status run_join(struct lk_device *device)
{
    const struct lk_tiling tiling = lk_tiling_make(lk_device_info(device), SHARDS, SHARDS);
    struct lk_shard_sum *sum = NULL;
    struct lk_buffer *y = NULL, *checksum = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_shard_sum_create(device, &tiling, LK_F32, true, &sum));
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_buffer_create(device, 4 * LK_PAD * sizeof(float), &y));
    LK_TRY_OUT(fill(y, LK_F32));
    LK_TRY_OUT(lk_shard_sum_enqueue_join(sum, y, 0, 2 * LK_PAD, 2 * LK_PAD));
    LK_TRY_OUT(lk_buffer_create(device, LK_PAD * sizeof(uint32_t), &checksum));
    LK_TRY_OUT(lk_shard_sum_enqueue_checksum(sum, y, 0, 2 * LK_PAD, checksum, 1));
    LK_TRY_OUT(lk_device_finish(device));
out:
    lk_shard_sum_destroy(sum);
    lk_buffer_destroy(checksum);
    lk_buffer_destroy(y);
    return status;
}

/* --- what crosses between devices -------------------------------------------------------- */

static enum lk_status run_checked_copy(struct lk_device *device)
{
    enum { BYTES = 9 * 1024 * sizeof(float) }; /* two groups */
    struct lk_checked_copy *copy = NULL;
    struct lk_buffer *x = NULL, *y = NULL;
    int slot = 0;
    enum lk_status status;
    LK_TRY_OUT(lk_checked_copy_create(device, 3, &copy));
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_buffer_create(device, BYTES, &x));
    LK_TRY_OUT(lk_buffer_create(device, lk_checked_bytes(BYTES), &y));
    LK_TRY_OUT(fill(x, LK_F32));
    LK_TRY_OUT(lk_checked_copy_begin(copy));
    LK_TRY_OUT(lk_checked_copy_send(copy, x, y, BYTES));
    LK_TRY_OUT(lk_checked_copy_receive(copy, y, x, BYTES, 2));
    LK_TRY_OUT(lk_checked_copy_end(copy));
    LK_TRY_OUT(lk_checked_copy_wait(copy, &slot));
    if (slot >= 0)
        status = lk_fail(LK_E_DEVICE, "a checksum changed on its way");
out:
    lk_checked_copy_destroy(copy);
    lk_buffer_destroy(x);
    lk_buffer_destroy(y);
    return status;
}

/* --- an input of numbers --------------------------------------------------------------- */

static enum lk_status run_numbers(struct lk_device *device)
{
    const int samples = SHARDS * (lk_device_info(device)->lanes + 1); /* two tiles a shard */
    const struct lk_tiling tiling = lk_tiling_make(lk_device_info(device), samples, SHARDS);
    const struct lk_shape shape = {1, {5}};
    struct lk_number_batch batch = {.samples = samples, .scale = 0.5, .shift = 0.25};
    struct lk_loader *loader = NULL;
    struct lk_buffer *x = NULL, *y = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_loader_create(device, &tiling, LK_F32, NULL, &loader));
    LK_TRY_OUT(lk_loader_add_numbers(loader));
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_buffer_create(device, (size_t)samples * 5 * sizeof(float), &x));
    LK_TRY_OUT(lk_buffer_create(device, lk_tiled_bytes(&tiling, &shape, LK_F32), &y));
    LK_TRY_OUT(fill(x, LK_F32));
    batch.buffer = x;
    LK_TRY_OUT(lk_loader_enqueue_numbers(loader, &batch, &shape, y));
    LK_TRY_OUT(lk_device_finish(device));
out:
    lk_loader_destroy(loader);
    lk_buffer_destroy(x);
    lk_buffer_destroy(y);
    return status;
}

/* --- networks -------------------------------------------------------------------------- */

struct network {
    struct lk_graph *graph;
    struct lk_node *images, *labels, *loss;
    int side; /* of the images */
};

struct training {
    const char *optimizer, *options;
    bool has_logits, one_hot, halves; /* halves: activations are */
    int steps;
};

/* A fork, a fused pool, dropout, both losses' kernels by turns. */
static enum lk_status make_network(const struct training *t, struct network *net)
{
    enum { SIDE = 7 };
    const struct lk_input images = {"image",   LK_U8, {3, {CHANNELS, SIDE, SIDE}},
                                    1 / 255.0, 0,     false};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    const struct lk_input one_hot = {"labels", LK_F32, {1, {CLASSES}}, 0.75, 0.125, false};
    struct lk_node *x, *y, *pair[2];
    net->side = SIDE;
    LK_TRY(lk_graph_create(&net->graph));
    LK_TRY(lk_graph_add_input(net->graph, &images, &net->images));
    LK_TRY(lk_graph_add_input(net->graph, t->one_hot ? &one_hot : &labels, &net->labels));
    LK_TRY(lk_graph_add(net->graph, "conv2d", net->images, "filters=5 padding=same", &x));
    LK_TRY(lk_graph_add(net->graph, "tanh", x, "", &x));
    LK_TRY(lk_graph_add(net->graph, "conv2d", x, "filters=5 padding=same", &y));
    LK_TRY(lk_graph_add_many(net->graph, "add", 2, (struct lk_node *[]){x, y}, "", &x));
    LK_TRY(lk_graph_add(net->graph, "conv2d", x, "filters=4 kernel=2 activation=relu", &x));
    LK_TRY(lk_graph_add(net->graph, "max_pool", x, "size=2", &x));
    LK_TRY(lk_graph_add(net->graph, "dropout", x, "rate=0.25", &x));
    LK_TRY(lk_graph_add(net->graph, "average_pool", x, "size=2 stride=1", &x));
    LK_TRY(lk_graph_add(net->graph, "flatten", x, "", &x));
    LK_TRY(lk_graph_add(net->graph, "dense", x, "units=6 activation=relu", &x));
    LK_TRY(lk_graph_add(net->graph, "dense", x, "units=3", &pair[0]));
    if (!t->has_logits)
        LK_TRY(lk_graph_add(net->graph, "softmax", pair[0], "", &pair[0]));
    pair[1] = net->labels;
    return lk_graph_add_many(net->graph,
                             t->has_logits ? "softmax_cross_entropy" : "cross_entropy", 2, pair,
                             "", &net->loss);
}

/* Wide enough for the blocks of a GPU, forward and backward. */
static enum lk_status make_wide_network(struct network *net)
{
    enum { SIDE = 9 };
    const struct lk_input images = {"image",   LK_U8, {3, {CHANNELS, SIDE, SIDE}},
                                    1 / 255.0, 0,     false};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    struct lk_node *x, *pair[2];
    net->side = SIDE;
    LK_TRY(lk_graph_create(&net->graph));
    LK_TRY(lk_graph_add_input(net->graph, &images, &net->images));
    LK_TRY(lk_graph_add_input(net->graph, &labels, &net->labels));
    LK_TRY(lk_graph_add(net->graph, "conv2d", net->images,
                        "filters=48 padding=same activation=relu", &x));
    LK_TRY(lk_graph_add(net->graph, "conv2d", x, "filters=36 stride=2", &x));
    LK_TRY(lk_graph_add(net->graph, "conv2d", x, "filters=64 activation=relu pool=true", &x));
    LK_TRY(lk_graph_add(net->graph, "flatten", x, "", &x));
    LK_TRY(lk_graph_add(net->graph, "dense", x, "units=40 activation=relu", &x));
    LK_TRY(lk_graph_add(net->graph, "dense", x, "units=3", &pair[0]));
    pair[1] = net->labels;
    return lk_graph_add_many(net->graph, "softmax_cross_entropy", 2, pair, "", &net->loss);
}

/* Mirrored and in other colours, where the network has a transform. */
static void fill_draws(struct lk_transform_params *draws, int batch)
{
    for (int i = 0; draws && i < batch; i++)
        draws[i] = (struct lk_transform_params){{0.5f + 0.1f * (float)i, 1.25f, 0.75f},
                                                (float)(i % 4)};
}

static void fill_batch(struct lk_replica *replica, const struct network *net, int slot,
                       int batch, int64_t step)
{
    fill_draws(lk_replica_transform_params(replica, net->images, slot), batch);
    uint8_t *images = lk_replica_slot(replica, net->images, slot);
    int32_t *labels = lk_replica_slot(replica, net->labels, slot);
    for (int i = 0; i < batch * net->side * net->side * CHANNELS; i++)
        images[i] = (uint8_t)lk_random(3, LK_RANDOM_DATA, (uint32_t)step, (uint64_t)i).v[0];
    for (int i = 0; i < batch; i++)
        labels[i] = (i + (int)step) % CLASSES;
}

/* The second step is on a batch that is not full. */
static enum lk_status run_steps(struct lk_stepper *stepper, const struct network *net,
                                const char *name, int batch, int steps)
{
    LK_TRY(lk_stepper_build(stepper));
    for (int64_t step = 1; step <= steps; step++) {
        const int slot = step % 2;
        struct lk_step_result result;
        fill_batch(lk_stepper_replica(stepper), net, slot, batch, step);
        LK_TRY(lk_stepper_enqueue(stepper, slot, step == 2 ? batch - 2 : batch, 0.02, step));
        LK_TRY(lk_stepper_wait(stepper, slot, &result));
        printf("%s %d %.9f\n", name, (int)step, result.loss);
    }
    return LK_OK;
}

static void count_blocks(void *passes, const char *key, const char *text)
{
    (void)key;
    *(int *)passes += strncmp(text, "gemm", 4) == 0;
}

/* On a GPU, both passes of wide layers are products of matrices in blocks. */
static enum lk_status check_blocks(const struct lk_device *device, struct lk_choices *choices)
{
    enum { LEAST = 6, LEAST_ITEMS = 64 };
    const struct lk_device_info *info = lk_device_info(device);
    int passes = 0;
    lk_choices_each(choices, count_blocks, &passes);
    if (info->device_class == LK_CLASS_CPU || info->group_items < LEAST_ITEMS ||
        passes >= LEAST)
        return LK_OK;
    return lk_fail(LK_E_DATA, "%d passes run in blocks, at least %d must", passes, LEAST);
}

static enum lk_status train_wide(struct lk_device *device)
{
    enum { BATCH = 21 };
    struct network net = {0};
    struct lk_stepper *stepper = NULL;
    struct lk_choices *choices = NULL;
    enum lk_status status;
    LK_TRY_OUT(make_wide_network(&net));
    LK_TRY_OUT(lk_choices_create(LK_MATH_STRICT, &choices));
    const struct lk_stepper_config config = {.device = device,
                                             .loss = net.loss,
                                             .batch = BATCH,
                                             .shards = SHARDS,
                                             .real = LK_F32,
                                             .seed = 7,
                                             .optimizer = "adam",
                                             .optimizer_options = "",
                                             .choices = choices};
    LK_TRY_OUT(lk_stepper_create(&config, &stepper));
    LK_TRY_OUT(check_blocks(device, choices));
    LK_TRY_OUT(run_steps(stepper, &net, "wide", BATCH, 3));
out:
    lk_stepper_destroy(stepper);
    lk_choices_destroy(choices);
    lk_graph_destroy(net.graph);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "training a wide network");
}

static enum lk_status train(struct lk_device *device, const struct training *t)
{
    enum { BATCH = 9 };
    static const struct lk_transform transform = {
        .flips = true,
        .stages = {LK_COLOUR_BRIGHTNESS, LK_COLOUR_CONTRAST, LK_COLOUR_SATURATION},
        .channels = CHANNELS};
    struct network net = {0};
    struct lk_stepper *stepper = NULL;
    enum lk_status status;
    LK_TRY_OUT(make_network(t, &net));
    const struct lk_stepper_config config = {.device = device,
                                             .loss = net.loss,
                                             .batch = BATCH,
                                             .shards = SHARDS,
                                             .transform = t->has_logits ? &transform : NULL,
                                             .real = LK_F32,
                                             .loss_scale = {.first = t->halves ? 64 : 0},
                                             .seed = 5,
                                             .optimizer = t->optimizer,
                                             .optimizer_options = t->options};
    LK_TRY_OUT(lk_stepper_create(&config, &stepper));
    LK_TRY_OUT(run_steps(stepper, &net, t->optimizer, BATCH, t->steps));
out:
    lk_stepper_destroy(stepper);
    lk_graph_destroy(net.graph);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "training with %s", t->optimizer);
}

static enum lk_status run_networks(struct lk_device *device, bool with_halves)
{
    static const struct training trainings[] = {
        {"adam", "", false, false, false, 3},
        {"rmsprop", "centered=true momentum=0.9", true, true, false, 3},
        {"adamw", "", true, false, true, 2},
        {"sgd", "momentum=0.9 nesterov=true", false, true, true, 2},
    };
    LK_TRY(run_bench(device));
    LK_TRY(run_lanes(device));
    if (with_halves) /* Clover's compiler dies of its array of pointers; only PoCL needs it */
        LK_TRY(run_chain(device));
    LK_TRY(run_join(device));
    LK_TRY(run_checked_copy(device));
    LK_TRY(run_numbers(device));
    LK_TRY(run_updates(device, fill));
    LK_TRY(run_generation(device));
    LK_TRY(run_planes(device));
    LK_TRY(run_lists(device));
    for (int i = 0; i < LK_COUNT(trainings); i++)
        if (with_halves || !trainings[i].halves)
            LK_TRY(train(device, &trainings[i]));
    return LK_OK;
}

static enum lk_status run(const char *part, struct lk_device *device)
{
    const struct lk_device_info *info = lk_device_info(device);
    printf("# %s, %s, %d lanes, vectors of %d, %s\n", info->platform, info->name, info->lanes,
           info->vector, info->subgroups[0] ? info->subgroups : "no sub-groups");
    const bool all = strcmp(part, "all") == 0;
    if (all || strcmp(part, "operations") == 0) {
        LK_TRY(run_operations(operations, LK_COUNT(operations)));
        LK_TRY(run_operations(further_operations, LK_COUNT(further_operations)));
        LK_TRY(run_known());
    }
    if (all || strcmp(part, "wide") == 0)
        LK_TRY(run_operations(wide_operations, LK_COUNT(wide_operations)));
    if (all || strcmp(part, "endings") == 0)
        LK_TRY(run_endings(device));
    if (all || strcmp(part, "networks") == 0)
        LK_TRY(run_networks(device, true));
    if (strcmp(part, "float_networks") == 0)
        LK_TRY(run_networks(device, false));
    if (all || strcmp(part, "wide_network") == 0)
        LK_TRY(train_wide(device));
    return LK_OK;
}

/* kernels all | operations | wide | endings | networks | float_networks (those without halves)
 * | wide_network | device (only names it) | cases (whether each operation has one; no device).
 * 0: done, 77: the device cannot be had, 1: failed. */
int main(int count, char **words)
{
    const char *part = count > 1 ? words[1] : "all";
    const bool needs_device = strcmp(part, "cases") != 0;
    struct lk_device *device = NULL;
    enum lk_status status = needs_device ? lk_device_open(NULL, 0, &device) : check_cases();
    const bool is_there = status == LK_OK || !needs_device;
    if (status == LK_OK && needs_device)
        status = run(part, device);
    lk_device_close(device);
    if (status != LK_OK)
        fprintf(stderr, "%s: %s\n", lk_status_text(status), lk_error_text());
    return status == LK_OK ? 0 : is_there ? 1 : 77;
}
