/* The cost of products in blocks: what work-groups do in vain, and how many there are. */
#include "products/gpu/cost.h"
#include "products/gpu/weights.h"

/* Of the peak, in whole blocks of the largest tile; and how many times as fast matrix units
 * are: more in products alone, but then memory is waited for. */
static const double SHARE = 0.8, WEIGHTS_SHARE = 0.75, MATRIX_SPEED = 4;

struct lk_gpu_product lk_gpu_product(const struct lk_product_setup *setup,
                                     const struct lk_product_job *job, int matrix)
{
    const struct lk_product_shape *s = job->shape;
    const struct lk_product_axis *y = &s->axis[0], *x = &s->axis[1];
    const bool is_data = job->pass == LK_PASS_DATA;
    const int64_t pixels = is_data ? y->in * x->in : y->out * x->out;
    if (job->pass == LK_PASS_WEIGHTS)
        return lk_gpu_weights_product(setup, s, matrix);
    return (struct lk_gpu_product){.use = LK_GPU_GATHER,
                                   .matrix = matrix,
                                   .rows = is_data ? s->channels : s->filters,
                                   .columns =
                                       pixels * setup->tiling.tiles * setup->tiling.lanes,
                                   .count = s->groups};
}

double lk_gpu_cost(const struct lk_product_setup *setup, const struct lk_product_job *job,
                   int matrix)
{
    struct lk_product_setup usual = *setup; /* whatever the batch: a shard */
    usual.tiling.shards = 1;
    usual.tiling.tiles = usual.tiling.shard_tiles;
    const struct lk_gpu_product product = lk_gpu_product(&usual, job, matrix);
    return lk_product_adds(job->shape) * lk_gpu_tile_excess(&usual, &product) /
           (job->pass == LK_PASS_WEIGHTS ? WEIGHTS_SHARE : SHARE) / (matrix ? MATRIX_SPEED : 1);
}
