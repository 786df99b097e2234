/* 1x1 convolutions as CLBlast's products: in batch tiles a pixel and a sample are one long row,
 *
 *   y[k, pixels] = w^T[k, c] x[c, pixels],  dx = w dz,  dw[c, k] = sum over tiles of x dz^T
 *
 * for each tile, the tiles of a shard's dw one after the other. Then bias and relu. */
#include "ops/conv2d.h"

#include "base/fail.h"
#include "device/blas.h"
#include <math.h>

/* Of the peak: CLBlast's parameters are for GPUs, and its kernels meant for them. */
static const double CPU_SHARE = 0.06, GPU_SHARE = 0.5;

struct blas {
    enum lk_conv2d_pass pass;
    struct lk_conv2d_shape shape;
    int64_t pixels; /* of an image */
    bool finishes;  /* forward, with relu or bias */
    struct lk_kernel *finish;
};

static double cost(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                   enum lk_conv2d_pass pass)
{
    const bool is_cpu = lk_device_info(setup->device)->device_class == LK_CLASS_CPU;
    (void)pass;
    if (setup->stores_half || s->groups != 1 || s->pool ||
        lk_blas_is_wrong(setup->device, (int)lk_dtype_bytes(setup->real)))
        return -1;
    for (int i = 0; i < 2; i++)
        if (s->axis[i].taps != 1 || s->axis[i].step != 1 || s->axis[i].pad ||
            s->axis[i].in != s->axis[i].out)
            return -1;
    return lk_conv2d_products(s) / (is_cpu ? CPU_SHARE : GPU_SHARE);
}

static enum lk_status prepare(struct lk_op_setup *setup, struct lk_conv2d_job *job,
                              void **state)
{
    const struct lk_conv2d_options *o = setup->options;
    LK_TRY(lk_blas_check(setup->device, (int)lk_dtype_bytes(setup->real)));
    LK_TRY(lk_arena_take(setup->arena, sizeof(struct blas), state));
    struct blas *blas = *state;
    blas->pass = job->pass;
    blas->shape = *job->shape;
    blas->pixels = job->shape->axis[0].in * job->shape->axis[1].in;
    blas->finishes = job->pass == LK_CONV2D_FORWARD && (o->bias || job->shape->relu);
    if (!blas->finishes)
        return LK_OK;
    return lk_op_kernel(setup, "conv2d_blas", "conv2d_finish", NULL, &blas->finish);
}

static enum lk_status enqueue_weights(const struct lk_op_setup *setup, const struct blas *blas,
                                      const struct lk_conv2d_operands *run)
{
    const int64_t c = blas->shape.channels, k = blas->shape.filters;
    const int64_t row = blas->pixels * setup->tiling.lanes;
    struct lk_gemm g = {.real_bytes = (int)lk_dtype_bytes(setup->real),
                        .b_turned = true,
                        .m = c,
                        .n = k,
                        .k = row,
                        .alpha = 1,
                        .a = run->x,
                        .b = run->dz,
                        .c = run->dw,
                        .b_first = run->dz_first};
    for (int64_t tile = 0; tile < setup->tiling.tiles; tile++) {
        g.beta = tile % setup->tiling.shard_tiles ? 1 : 0;
        g.c_first = tile / setup->tiling.shard_tiles * run->dw_stride;
        LK_TRY(lk_blas_gemm(setup->device, &g));
        g.a_first += c * row;
        g.b_first += k * row;
    }
    return LK_OK;
}

static enum lk_status enqueue(const struct lk_op_setup *setup, void *state,
                              const struct lk_conv2d_operands *run)
{
    const struct blas *blas = state;
    if (blas->pass == LK_CONV2D_WEIGHTS)
        return enqueue_weights(setup, blas, run);
    const bool forward = blas->pass == LK_CONV2D_FORWARD;
    const int64_t c = blas->shape.channels, k = blas->shape.filters;
    const int64_t row = blas->pixels * setup->tiling.lanes;
    const struct lk_gemm g = {.real_bytes = (int)lk_dtype_bytes(setup->real),
                              .a_turned = forward,
                              .m = forward ? k : c,
                              .n = row,
                              .k = forward ? c : k,
                              .alpha = 1,
                              .a = run->w,
                              .b = forward ? run->x : run->dz,
                              .c = forward ? run->y : run->dx,
                              .b_first = forward ? 0 : run->dz_first,
                              .batch = setup->tiling.tiles,
                              .b_step = (forward ? c : k) * row,
                              .c_step = (forward ? k : c) * row};
    LK_TRY(lk_blas_gemm(setup->device, &g));
    if (!blas->finishes)
        return LK_OK;
    const struct lk_grid grid = {{k, setup->tiling.tiles, 1}, lk_op_items(setup)};
    return LK_ENQUEUE(blas->finish, grid, LK_BUF(run->y), LK_BUF(run->bias),
                      LK_REAL(blas->shape.relu ? 0 : -INFINITY), LK_INT(blas->pixels));
}

static void release(void *state)
{
    struct blas *blas = state;
    lk_kernel_destroy(blas->finish);
}

const struct lk_conv2d_algorithm lk_conv2d_blas = {.name = "clblast",
                                                   .cost = cost,
                                                   .prepare = prepare,
                                                   .enqueue = enqueue,
                                                   .release = release};
