/* The weight gradient with dz read in place: register blocks, areas, parts, launches. See
 * cl/products/direct/lanewise_weights.cl. */
#include "ops/conv2d_direct.h"

#include "base/fail.h"
#include <stdio.h>

/* SUMS_BYTES, INPUTS_BYTES: of a work-group, in its second-level cache. In the first:
 * AREA_BYTES, an area's inputs and dz of a block and of the one that is fetched; POOLED_BYTES,
 * inputs of a channel, which leave room for dz of some filters. These two and the strips'
 * outputs belong to the numerics. */
enum {
    SUMS_BYTES = 256 << 10,
    INPUTS_BYTES = 192 << 10,
    AREA_BYTES = 32 << 10,
    STRIP = 16,
    POOLED_BYTES = 28 << 10,
    POOLED_STRIP = 32
};

enum { MOST_CHANNELS = 3, MOST_TAPS = 25 };

static int64_t extent(const struct lk_conv2d_axis *axis, int64_t outputs)
{
    return (outputs - 1) * axis->step + (axis->taps - 1) * axis->gap + 1;
}

bool lk_conv2d_is_lanewise(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                           enum lk_conv2d_gradient gradient)
{
    const int64_t taps = s->axis[0].taps * s->axis[1].taps;
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t least = vector * extent(&s->axis[0], 2) * extent(&s->axis[1], POOLED_STRIP);
    return setup->tiling.vector > 1 && taps > 1 && least <= INPUTS_BYTES &&
           s->axis[1].taps <= lk_conv2d_gather_sums(setup) &&
           (gradient == LK_CONV2D_POOLED ||
            (s->channels <= MOST_CHANNELS && taps <= MOST_TAPS)) &&
           lk_device_info(setup->device)->local_bytes >= 2 * (SUMS_BYTES + INPUTS_BYTES);
}

/* As many rows of taps as registers hold, then filters. */
static void choose_unit(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                        struct lk_conv2d_weights *w)
{
    const int64_t y = s->axis[0].taps, x = s->axis[1].taps;
    const int64_t sums = lk_conv2d_gather_sums(setup);
    const int64_t most = w->gradient == LK_CONV2D_POOLED ? 2 : 4;
    w->unit_rows = lk_least(y, sums / x);
    while (y % w->unit_rows)
        w->unit_rows--;
    w->unit_filters = lk_least(most, lk_least(s->filters, sums / (w->unit_rows * x)));
}

static void choose_area(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                        struct lk_conv2d_weights *w)
{
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const bool pooled = w->gradient == LK_CONV2D_POOLED;
    const int64_t unit = s->pool ? 2 : 1; /* no area cuts through a pool */
    const struct lk_conv2d_axis *y = &s->axis[0], *x = &s->axis[1];
    w->strip = lk_conv2d_even_share(x->out, pooled ? POOLED_STRIP : STRIP, unit);
    const int64_t room = (pooled ? POOLED_BYTES : AREA_BYTES) / vector;
    const int64_t inputs = extent(x, w->strip) * (pooled ? 1 : s->channels); /* of a row */
    const int64_t gradients = pooled ? 0 : 2 * w->unit_filters * w->strip;
    const int64_t rows =
        (room - inputs * (extent(y, 1) - y->step)) / (inputs * y->step + gradients);
    w->rows_each = lk_conv2d_even_share(y->out, rows, unit);
}

static void choose_group(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                         struct lk_conv2d_weights *w)
{
    const int64_t vector = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t taps = s->axis[0].taps * s->axis[1].taps;
    const int64_t inputs = vector * extent(&s->axis[0], w->rows_each) *
                           extent(&s->axis[1], w->strip); /* of a channel */
    w->group_channels = lk_conv2d_even_share(s->channels, INPUTS_BYTES / inputs, 1);
    const int64_t units = w->group_channels * (s->axis[0].taps / w->unit_rows);
    const int64_t sums = vector * (w->group_channels * taps + units); /* of a filter */
    w->group_filters = lk_conv2d_even_share(s->filters, SUMS_BYTES / sums, w->unit_filters);
    w->sums_bytes = (size_t)(sums * w->group_filters);
    w->staged_bytes = (size_t)(inputs * w->group_channels);
}

static int64_t areas_of_image(const struct lk_conv2d_shape *s,
                              const struct lk_conv2d_weights *w)
{
    return lk_divide_up(s->axis[0].out, w->rows_each) * lk_divide_up(s->axis[1].out, w->strip);
}

/* Parts belong to the numerics: they follow from the shape and the class alone. */
static void choose_parts(const struct lk_op_setup *setup, const struct lk_conv2d_shape *s,
                         struct lk_conv2d_weights *w)
{
    const int64_t areas = setup->tiling.shard_tiles * areas_of_image(s, w);
    w->areas_each = lk_divide_up(areas, lk_least(areas, 16));
    w->parts.parts = w->bias.parts = lk_divide_up(areas, w->areas_each);
    w->parts.count = s->groups * s->filters * s->channels * s->axis[0].taps * s->axis[1].taps;
    w->bias.count = s->groups * s->filters;
}

enum lk_status lk_conv2d_lanewise_prepare(struct lk_op_setup *setup,
                                          const struct lk_conv2d_shape *s,
                                          struct lk_conv2d_weights *w)
{
    char text[256];
    const struct lk_conv2d_axis *y = &s->axis[0], *x = &s->axis[1];
    choose_unit(setup, s, w);
    choose_area(setup, s, w);
    choose_group(setup, s, w);
    choose_parts(setup, s, w);
    snprintf(text, sizeof text,
             "-DTAPS_Y=%d -DTAPS_X=%d -DSTEP_Y=%d -DSTEP_X=%d -DGAP_Y=%d -DGAP_X=%d "
             "-DGRADIENT=%d -DRB=%d -DMB=%d -DROWS_EACH=%d -DSTRIP=%d",
             (int)y->taps, (int)x->taps, (int)y->step, (int)x->step, (int)y->gap, (int)x->gap,
             (int)w->gradient, (int)w->unit_rows, (int)w->unit_filters, (int)w->rows_each,
             (int)w->strip);
    return lk_op_kernel(setup, "products/direct/lanewise_weights", "conv2d_lanewise", text,
                        &w->weights);
}

enum lk_status lk_conv2d_lanewise_enqueue(const struct lk_op_setup *setup,
                                          const struct lk_conv2d_shape *s,
                                          const struct lk_conv2d_weights *w,
                                          const struct lk_conv2d_operands *run)
{
    const struct lk_conv2d_axis *y = &s->axis[0], *x = &s->axis[1];
    const int64_t pool = w->gradient == LK_CONV2D_POOLED ? 2 : 1;
    return LK_ENQUEUE(
        w->weights, lk_conv2d_weights_grid(setup, s, w), LK_BUF(run->x), LK_BUF(run->dz),
        LK_INT(run->dz_first), LK_BUF(w->gradient == LK_CONV2D_MASKED ? run->y : NULL),
        LK_BUF(w->gradient == LK_CONV2D_POOLED ? run->at : NULL),
        LK_CONV2D_PARTS_TO(&w->parts, run->workspace, run->dw, run->dw_stride),
        LK_CONV2D_PARTS_TO(&w->bias, run->db ? run->workspace : NULL, run->db, run->dw_stride),
        LK_INT(s->channels), LK_INT(s->filters), LK_INT(s->groups), LK_INT(y->pad),
        LK_INT(x->pad), LK_INT(y->in), LK_INT(x->in), LK_INT(y->out / pool),
        LK_INT(x->out / pool), LK_INT(w->group_channels), LK_INT(w->group_filters),
        LK_INT(setup->tiling.shard_tiles * areas_of_image(s, w)), LK_INT(w->areas_each),
        LK_LOCAL(w->sums_bytes), LK_LOCAL(w->staged_bytes));
}
