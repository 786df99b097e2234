/* Prepares, allocates and runs a single operation without a graph. */
#include "ops/probe/probe.h"

#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST_COPIES = 1024, PER_COPY = 2 * LK_MOST_INPUTS + 3, SHARED = 2 * LK_MOST_PARAMS + 2 };

static enum lk_status absorb(struct lk_probe *probe, const struct lk_probe_config *c,
                             void *options)
{
    const struct lk_op *next;
    void *next_options;
    char text[512];
    LK_TRY(lk_op_find(c->absorbed, &next));
    LK_TRY(lk_arena_allocate(&probe->arena, next->options_bytes + 1, &next_options));
    LK_TRY(lk_options_parse(next->options, next_options, c->absorbed_options));
    if (probe->op->absorb &&
        lk_options_print(next->options, next_options, true, text, sizeof text) &&
        probe->op->absorb(options, c->absorbed, text))
        return LK_OK;
    return lk_fail(LK_E_UNSUPPORTED, "%s %s does not take over %s %s", c->op, c->options,
                   c->absorbed, c->absorbed_options);
}

static enum lk_status infer(struct lk_probe *probe, const struct lk_probe_config *c)
{
    struct lk_op_shapes *shapes = &probe->setup.shapes;
    void *options;
    LK_TRY(lk_op_find(c->op, &probe->op));
    LK_TRY(lk_arena_allocate(&probe->arena, probe->op->options_bytes + 1, &options));
    LK_TRY(lk_options_parse(probe->op->options, options, c->options));
    if (c->absorbed)
        LK_TRY(absorb(probe, c, options));
    probe->setup.options = shapes->options = options;
    shapes->inputs = c->inputs;
    for (int i = 0; i < c->inputs; i++) {
        shapes->x[i] = c->x[i];
        shapes->x_dtype[i] = c->x_dtype[i];
    }
    return probe->op->infer(shapes);
}

static enum lk_status prepare(struct lk_probe *probe)
{
    if (probe->op->is_view)
        return lk_fail(LK_E_UNSUPPORTED, "%s computes nothing", probe->op->name);
    return probe->op->prepare(&probe->setup);
}

enum lk_status lk_probe_open(struct lk_probe *probe, const struct lk_probe_config *config)
{
    *probe = (struct lk_probe){.batch = config->batch};
    struct lk_op_setup *setup = &probe->setup;
    *setup = (struct lk_op_setup){
        .device = config->device,
        .node = config->op,
        .tiling = lk_tiling_make(lk_device_info(config->device), config->batch, config->shards),
        .real = LK_F32,
        .training = config->training,
        .seed = config->seed,
        .arena = &probe->arena,
        .choices = config->choices};
    LK_TRY(infer(probe, config));
    setup->wants_dw = config->dw && setup->shapes.params > 0;
    for (int i = 0; i < config->inputs; i++)
        setup->wants_dx[i] = config->dx && config->x_dtype[i] != LK_I32;
    for (int i = 0; i < config->inputs; i++)
        setup->asks_gate[i] = config->asks_gate && setup->wants_dx[i];
    setup->dy_is_gated = config->dy_is_gated && setup->shapes.is_gate;
    return prepare(probe);
}

enum lk_status lk_probe_open_like(struct lk_probe *probe, const struct lk_op *op,
                                  const struct lk_op_setup *like, int64_t batch)
{
    *probe = (struct lk_probe){.batch = batch, .op = op, .setup = *like};
    struct lk_op_setup *setup = &probe->setup;
    setup->arena = &probe->arena;
    setup->state = NULL;
    return prepare(probe);
}

/* --- memory ---------------------------------------------------------------------------- */

static enum lk_status make(struct lk_probe *probe, size_t bytes, struct lk_buffer **buffer)
{
    if (bytes == 0)
        return LK_OK;
    LK_TRY(lk_buffer_create(probe->setup.device, bytes, buffer));
    probe->buffers[probe->buffer_count++] = *buffer;
    return LK_OK;
}

/* For an operation that knows no planes, an image in plane tiles is [c, vectors, 1], of which
 * each sample has all lanes: as a tile of a batch. */
static size_t tiled(const struct lk_probe *probe, const struct lk_shape *shape,
                    enum lk_dtype dtype)
{
    struct lk_tiling tiling = probe->setup.tiling;
    tiling.planes &= probe->op->planes != LK_PLANES_OWN;
    return lk_tiled_bytes(&tiling, shape, dtype);
}

static enum lk_status make_shared(struct lk_probe *probe, bool backward, struct lk_op_run *run)
{
    const struct lk_op_setup *s = &probe->setup;
    size_t longest = 0;
    for (int j = 0; j < s->shapes.params; j++) {
        struct lk_buffer *w = NULL;
        const size_t bytes = (size_t)lk_shape_count(&s->shapes.param[j].shape) * sizeof(float);
        LK_TRY(make(probe, bytes, &w));
        run->w[j] = w;
        longest = bytes > longest ? bytes : longest;
    }
    const size_t align = lk_device_info(s->device)->align_bytes;
    const size_t stride = (longest + align - 1) / align * align;
    run->dw_stride = (int64_t)(stride / sizeof(float));
    for (int j = 0; j < s->shapes.params && s->wants_dw && backward; j++)
        LK_TRY(make(probe, stride * (size_t)s->tiling.shards, &run->dw[j]));
    LK_TRY(make(probe, s->packed_bytes, &run->packed));
    return make(probe, s->workspace_bytes, &run->workspace);
}

static enum lk_status make_copy(struct lk_probe *probe, bool backward, struct lk_op_run *run)
{
    const struct lk_op_setup *s = &probe->setup;
    for (int i = 0; i < s->shapes.inputs; i++) {
        struct lk_buffer *x = NULL;
        const bool is_real = s->shapes.x_dtype[i] == LK_F32;
        const size_t bytes =
            tiled(probe, &s->shapes.x[i], is_real ? lk_op_stored(s) : s->shapes.x_dtype[i]);
        LK_TRY(make(probe, bytes, &x));
        run->x[i] = x;
        if (s->wants_dx[i] && backward)
            LK_TRY(make(probe, bytes, &run->dx[i]));
    }
    struct lk_buffer *dy = NULL;
    const size_t bytes =
        tiled(probe, &s->shapes.y, s->shapes.is_loss ? s->real : lk_op_stored(s));
    LK_TRY(make(probe, bytes, &run->y));
    if (backward && !s->shapes.is_loss)
        LK_TRY(make(probe, bytes, &dy));
    run->dy = dy;
    return make(probe, s->saved_bytes, &run->saved);
}

enum lk_status lk_probe_allocate(struct lk_probe *probe, size_t bytes, bool backward)
{
    const struct lk_op_setup *s = &probe->setup;
    size_t one = tiled(probe, &s->shapes.y, LK_F32);
    for (int i = 0; i < s->shapes.inputs; i++)
        one += tiled(probe, &s->shapes.x[i], s->shapes.x_dtype[i]);
    const size_t copies = bytes / one;
    probe->copies = copies < 1 ? 1 : copies > MOST_COPIES ? MOST_COPIES : (int)copies;

    void *memory;
    LK_TRY(
        lk_arena_allocate(&probe->arena, (size_t)probe->copies * sizeof *probe->runs, &memory));
    probe->runs = memory;
    LK_TRY(lk_arena_allocate(
        &probe->arena, (SHARED + (size_t)probe->copies * PER_COPY) * sizeof *probe->buffers,
        &memory));
    probe->buffers = memory;

    struct lk_op_run shared = {.samples = probe->batch, .weights_are_new = true};
    LK_TRY(make_shared(probe, backward, &shared));
    for (int i = 0; i < probe->copies; i++) {
        probe->runs[i] = shared;
        LK_TRY(make_copy(probe, backward, &probe->runs[i]));
    }
    return LK_OK;
}

void lk_probe_close(struct lk_probe *probe)
{
    for (int i = 0; i < probe->buffer_count; i++)
        lk_buffer_destroy(probe->buffers[i]);
    lk_arena_clear(&probe->arena);
    *probe = (struct lk_probe){0};
}

/* --- runs ------------------------------------------------------------------------------ */

double lk_probe_bytes(const struct lk_probe *probe, bool backward)
{
    const struct lk_op_setup *setup = &probe->setup;
    const struct lk_op_shapes *s = &setup->shapes;
    double x = 0, w = 0, read_x = 0, written_x = 0, gates = 0;
    for (int i = 0; i < s->inputs; i++) {
        const double count = (double)lk_shape_count(&s->x[i]);
        x += count;
        written_x += setup->wants_dx[i] ? count : 0;
        gates += setup->gates_dx[i] ? count : 0;
    }
    for (int j = 0; j < s->params; j++)
        w += (double)lk_shape_count(&s->param[j].shape);
    const double y = (double)lk_shape_count(&s->y), samples = (double)probe->batch;
    if (!backward)
        return sizeof(float) * (samples * (x + y) + w);
    if (s->backward_reads_x && (setup->wants_dw || s->params == 0))
        read_x = x;
    else
        read_x = gates;
    const bool reads_y = s->backward_reads_y && !(s->is_gate && setup->dy_is_gated);
    const double weights = (written_x > 0 ? w : 0) + (setup->wants_dw ? w : 0);
    return sizeof(float) * (samples * (y + written_x + read_x + (reads_y ? y : 0)) + weights);
}

enum lk_status lk_probe_forward(struct lk_probe *probe, int copy)
{
    struct lk_op_run run = probe->runs[copy];
    for (int i = 0; i < LK_MOST_INPUTS; i++)
        run.dx[i] = NULL;
    for (int j = 0; j < LK_MOST_PARAMS; j++)
        run.dw[j] = NULL;
    run.dy = NULL;
    return probe->op->forward(&probe->setup, &run);
}

enum lk_status lk_probe_backward(struct lk_probe *probe, int copy)
{
    struct lk_op_run run = probe->runs[copy];
    if (!probe->setup.shapes.backward_reads_y || probe->setup.dy_is_gated)
        run.y = NULL;
    const struct lk_op_shapes *shapes = &probe->setup.shapes;
    for (int i = 0; i < LK_MOST_INPUTS && !shapes->backward_reads_x; i++)
        if (!probe->op->takes_length || shapes->x_dtype[i] != LK_I32)
            run.x[i] = NULL;
    return probe->op->backward(&probe->setup, &run);
}
