/* Weight gradients as products of matrices that are made over blocks of whole vectors of
 * filters: the blocks, the parts that sums are cut into, and what weight gradients of direct
 * sums have in common. See cl/products/direct/filter_blocks.cl. */
#include "products/direct/filter_blocks.h"

/* LEAST_CHANNELS: sums at once that keep the multipliers busy. SUMS_BYTES: of a block of any
 * number of taps, in local memory. */
enum { SUMS_BYTES = LK_FILTER_SUMS_BYTES, LEAST_CHANNELS = 3, PARTS = 16 };

int64_t lk_direct_even_share(int64_t count, int64_t most, int64_t multiple)
{
    most = most < multiple ? multiple : most / multiple * multiple;
    return lk_divide_up(lk_divide_up(count, lk_divide_up(count, most)), multiple) * multiple;
}

struct lk_product_shape lk_direct_in_one_row(const struct lk_product_shape *s)
{
    struct lk_product_shape made = *s;
    bool is_plain = !s->pool;
    for (int i = 0; i < 2; i++)
        is_plain &= s->axis[i].taps == 1 && s->axis[i].stride == 1 && s->axis[i].pad == 0 &&
                    s->axis[i].in == s->axis[i].out;
    if (is_plain) {
        made.axis[1].in = made.axis[1].out = s->axis[0].out * s->axis[1].out;
        made.axis[0].in = made.axis[0].out = 1;
    }
    return made;
}

double lk_direct_weights_cost(const struct lk_product_setup *setup,
                              const struct lk_product_job *job)
{
    (void)setup;
    return lk_product_adds(job->shape) / 0.75;
}

bool lk_filter_blocks_fit(const struct lk_product_setup *setup,
                          const struct lk_product_shape *s)
{
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t taps = s->axis[0].taps * s->axis[1].taps;
    return setup->tiling.vector > 1 && !setup->stores_half && s->channels >= LEAST_CHANNELS &&
           2 * s->filters >= 3 * setup->tiling.vector &&
           lk_direct_gather_sums(setup) * taps * vector <= SUMS_BYTES && /* a block's */
           lk_device_info(setup->device)->local_bytes >= 2 * SUMS_BYTES;
}

/* Filters are taken three vectors at a time, the rest two at a time. With few channels it is
 * four vectors, where there are four, since sums with two would not keep the multipliers busy.
 * With single taps it is four vectors and four channels wherever they divide the filters: most
 * layers then have few blocks that are not whole, and the copying beside the products is even.
 */
void lk_filter_blocks_choose(const struct lk_product_setup *setup,
                             const struct lk_product_shape *s, bool are_points,
                             struct lk_filter_blocks *w)
{
    const int64_t vectors = lk_divide_up(s->filters, setup->tiling.vector);
    const int sums = lk_direct_gather_sums(setup);
    const bool are_four =
        sums >= 24 && (are_points ? vectors % 4 == 0 : vectors == 4 && s->channels <= 4);
    const int64_t twos = vectors % 3 == 0 || are_four       ? 0
                         : vectors % 3 == 2 || vectors == 1 ? 1
                                                            : 2;
    w->block.columns = are_four ? 4 : 3;
    w->wide = vectors < 2 * twos ? 0 : (vectors - 2 * twos) / w->block.columns;
    w->blocks = w->wide + twos;
    w->block.rows =
        (int)lk_least(are_points && are_four ? 4 : sums / w->block.columns, s->channels);
}

/* So many parts that there are about PARTS work-groups. They decide the order of sums, and so
 * follow from the shape and the class alone. */
void lk_filter_blocks_cut(const struct lk_product_setup *setup,
                          const struct lk_product_shape *s, int64_t areas_of_image,
                          struct lk_filter_blocks *w)
{
    const int64_t areas = setup->tiling.shard_tiles * areas_of_image;
    const int64_t groups = s->groups * lk_divide_up(w->blocks, w->blocks_each) *
                           lk_divide_up(s->channels, w->group_channels);
    const int64_t wanted = lk_least(lk_divide_up(PARTS, groups), lk_divide_up(areas, 4));
    w->parts.count = s->groups * s->filters * s->channels * s->axis[0].taps * s->axis[1].taps;
    w->areas_each = lk_divide_up(areas, lk_least(areas, wanted));
    w->parts.parts = lk_divide_up(areas, w->areas_each);
}

struct lk_filter_cut lk_filter_blocks_args(const struct lk_filter_blocks *w)
{
    return (struct lk_filter_cut){.wide = w->wide,
                                  .blocks = w->blocks,
                                  .blocks_each = w->blocks_each,
                                  .group_channels = w->group_channels};
}

/* Of the launch: runs of blocks of filters, runs of channels, parts. */
struct lk_grid lk_filter_blocks_grid(const struct lk_product_setup *setup,
                                     const struct lk_product_shape *s,
                                     const struct lk_filter_blocks *w)
{
    return (struct lk_grid){{s->groups * lk_divide_up(w->blocks, w->blocks_each),
                             lk_divide_up(s->channels, w->group_channels),
                             w->parts.parts * setup->tiling.shards},
                            lk_product_items(setup)};
}
