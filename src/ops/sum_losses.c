/* The loss of a model with several outputs: the weighted sum of their losses. Its second
 * number, of right answers, is that of the first output. */
#include "base/fail.h"
#include "ops/op.h"

struct options {
    double weights[LK_MOST_INPUTS];
};

static const struct lk_option table[] = {
    {.name = "weights",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, weights),
     .count = LK_MOST_INPUTS,
     .min = -1e30,
     .max = 1e30,
     .standard = "1",
     .help = "what each loss counts: one number, or eight, of which those behind the last "
             "input are ignored"},
    {0},
};

struct state {
    struct lk_kernel *forward, *backward;
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    static const struct lk_shape pair = {1, {2}};
    char text[96];
    for (int i = 0; i < shapes->inputs; i++)
        if (shapes->x_dtype[i] != LK_F32 || !lk_shape_equal(&shapes->x[i], &pair)) {
            lk_shape_print_hwc(&shapes->x[i], text, sizeof text);
            return lk_fail(LK_E_SHAPE, "sum_losses takes losses, of shape [2], not %s%s",
                           shapes->x_dtype[i] == LK_F32 ? "" : "labels ", text);
        }
    shapes->y = pair;
    shapes->is_loss = true;
    shapes->flops = 2.0 * shapes->inputs;
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    LK_TRY(lk_op_kernel(setup, "ops/sum_losses", "sum_losses_forward", NULL, &s->forward));
    for (int i = 0; i < setup->shapes.inputs; i++)
        if (setup->training && setup->wants_dx[i] && !s->backward)
            LK_TRY(lk_op_kernel(setup, "ops/sum_losses", "sum_losses_backward", NULL,
                                &s->backward));
    return LK_OK;
}

/* Arguments that tell which lanes have a sample. */
#define SAMPLES(setup, run)                                                                    \
    LK_INT((run)->samples), LK_INT((setup)->tiling.shard_samples),                             \
        LK_INT((setup)->tiling.shard_tiles)

static struct lk_grid grid_of(const struct lk_op_setup *setup)
{
    return (struct lk_grid){{setup->tiling.tiles, 1, 1}, lk_op_items(setup)};
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const double *w = ((const struct options *)setup->options)->weights;
    return LK_ENQUEUE(s->forward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->x[1]),
                      LK_BUF(run->x[2]), LK_BUF(run->x[3]), LK_BUF(run->x[4]),
                      LK_BUF(run->x[5]), LK_BUF(run->x[6]), LK_BUF(run->x[7]), LK_BUF(run->y),
                      SAMPLES(setup, run), LK_REAL(w[0]), LK_REAL(w[1]), LK_REAL(w[2]),
                      LK_REAL(w[3]), LK_REAL(w[4]), LK_REAL(w[5]), LK_REAL(w[6]),
                      LK_REAL(w[7]));
}

/* Never called: a graph's gradients begin at the losses before the sum. */
static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct options *o = setup->options;
    for (int i = 0; i < setup->shapes.inputs; i++)
        if (run->dx[i])
            LK_TRY(LK_ENQUEUE(s->backward, grid_of(setup), LK_BUF(run->dx[i]),
                              LK_REAL(o->weights[i]), SAMPLES(setup, run),
                              LK_BUF(run->loss_scale)));
    return LK_OK;
}

const struct lk_op lk_op_sum_losses = {
    .name = "sum_losses",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = LK_MOST_INPUTS,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
