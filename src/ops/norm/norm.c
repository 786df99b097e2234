/* Parameters and activation of the normalizations of single samples. */
#include "ops/norm/norm.h"

void lk_norm_infer(struct lk_op_shapes *shapes, const struct lk_shape *learned)
{
    const struct lk_norm_options *o = shapes->options;
    int count = 0;
    if (o->scale)
        shapes->param[count++] = (struct lk_param_spec){
            .name = "gamma", .shape = *learned, .init = LK_INIT_ONES, .is_affine = true};
    if (o->center)
        shapes->param[count++] = (struct lk_param_spec){
            .name = "beta", .shape = *learned, .init = LK_INIT_ZEROS, .is_affine = true};
    shapes->params = count;
    shapes->y = shapes->x[0];
    shapes->backward_reads_x = true;
    shapes->backward_reads_y = shapes->is_gate = o->activation == LK_RELU;
    shapes->flops = 8.0 * (double)lk_shape_count(&shapes->x[0]);
}

struct lk_norm_params lk_norm_params(const struct lk_op_setup *setup,
                                     const struct lk_op_run *run)
{
    const struct lk_norm_options *o = setup->options;
    const int beta = o->scale ? 1 : 0;
    return (struct lk_norm_params){.gamma = o->scale ? run->w[0] : NULL,
                                   .beta = o->center ? run->w[beta] : NULL,
                                   .dgamma = o->scale ? run->dw[0] : NULL,
                                   .dbeta = o->center ? run->dw[beta] : NULL};
}

bool lk_norm_masks(const struct lk_op_setup *setup)
{
    const struct lk_norm_options *o = setup->options;
    return o->activation == LK_RELU && !setup->dy_is_gated;
}

bool lk_norm_absorb(void *options, const char *next, const char *next_options)
{
    (void)next_options;
    return lk_activation_absorb(&((struct lk_norm_options *)options)->activation, next);
}
