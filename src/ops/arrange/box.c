/* Copies between a tensor and a part of another. */
#include "ops/arrange/box.h"

#include "base/fail.h"
#include "ops/args.h"

const char *const lk_axis_words[] = {"c", "h", "w", "t", NULL};

int lk_axis_find(const struct lk_shape *shape, enum lk_axis axis)
{
    static const int places[4][LK_AXES] = {
        {-1, -1, -1, -1}, [1] = {0, -1, -1, -1}, [2] = {1, -1, -1, 0}, [3] = {0, 1, 2, -1}};
    return shape->rank > 3 ? -1 : places[shape->rank][axis];
}

enum lk_status lk_arrange_check(const struct lk_op_shapes *shapes, int i, const char *name)
{
    char text[64];
    const struct lk_shape *x = &shapes->x[i];
    if (shapes->x_dtype[i] != LK_F32)
        return lk_fail(LK_E_SHAPE, "%s: real numbers expected, found labels", name);
    if (x->rank >= 1 && x->rank <= 3)
        return LK_OK;
    lk_shape_print_hwc(x, text, sizeof text);
    return lk_fail(LK_E_SHAPE, "%s: [h, w, c], [t, c] or [c] expected, found %s", name, text);
}

enum lk_status lk_arrange_set(struct lk_op_shapes *shapes, const struct lk_shape *y,
                              const char *name)
{
    char text[96];
    const int64_t count = lk_shape_count(y);
    if (count < 1) {
        lk_shape_print_hwc(y, text, sizeof text);
        return lk_fail(LK_E_SHAPE, "%s: %s has too many elements", name, text);
    }
    shapes->y = *y;
    shapes->scales = true;
    shapes->flops = (double)count;
    return LK_OK;
}

/* --- copies ---------------------------------------------------------------------------- */

struct lk_box lk_box_into(const struct lk_shape *x, const struct lk_shape *y,
                          const int64_t at[])
{
    struct lk_box box = {.axes = x->rank};
    for (int i = 0; i < x->rank; i++)
        box.axis[i] = (struct lk_box_axis){x->dim[i], y->dim[i], x->dim[i], 0, at[i]};
    return box;
}

struct lk_box lk_box_out_of(const struct lk_shape *y, const struct lk_shape *x,
                            const int64_t at[])
{
    struct lk_box box = {.axes = x->rank};
    for (int i = 0; i < x->rank; i++)
        box.axis[i] = (struct lk_box_axis){y->dim[i], x->dim[i], x->dim[i], at[i], 0};
    return box;
}

struct lk_box lk_box_around(const struct lk_shape *x, const struct lk_shape *y,
                            const int64_t at[])
{
    struct lk_box box = {.axes = x->rank};
    for (int i = 0; i < x->rank; i++)
        box.axis[i] = (struct lk_box_axis){x->dim[i], y->dim[i], y->dim[i], -at[i], 0};
    return box;
}

/* Makes one axis of two neighbours, `outer` and `inner`, where that can be. */
static bool merge(const struct lk_box_axis *outer, struct lk_box_axis *inner)
{
    const int64_t each = inner->count;
    const bool is_whole = inner->from == each && inner->to == each;
    if (!is_whole || outer->from > INT32_MAX / each || outer->to > INT32_MAX / each)
        return false;
    *inner = (struct lk_box_axis){outer->from * each, outer->to * each, outer->count * each,
                                  outer->shift * each, outer->at * each};
    return true;
}

/* The axes as the kernel has them: BOX_AXES, the first of which may be 1 long. */
enum { BOX_AXES = 4 };

static void merge_all(const struct lk_op_setup *setup, const struct lk_box *box,
                      struct lk_box_axis axis[BOX_AXES])
{
    const int64_t tiles = setup->tiling.tiles;
    const struct lk_box_axis all_tiles = {tiles, tiles, tiles, 0, 0};
    int at = BOX_AXES - 1;
    axis[at] = box->axis[box->axes - 1];
    for (int i = box->axes - 2; i >= -1; i--) {
        const struct lk_box_axis *outer = i < 0 ? &all_tiles : &box->axis[i];
        if (!merge(outer, &axis[at]))
            axis[--at] = *outer;
    }
    while (at > 0)
        axis[--at] = (struct lk_box_axis){1, 1, 1, 0, 0};
}

enum lk_status lk_box_prepare(struct lk_op_setup *setup)
{
    const struct lk_op_shapes *s = &setup->shapes;
    const bool stream = lk_op_streams(setup, &s->x[0]) || lk_op_streams(setup, &s->y);
    struct lk_kernel *kernel = NULL;
    LK_TRY(lk_op_kernel(setup, "ops/arrange/box", "box", stream ? "-DSTREAM=1" : "-DSTREAM=0",
                        &kernel));
    setup->state = kernel;
    return LK_OK;
}

enum lk_status lk_box_enqueue(const struct lk_op_setup *setup, const struct lk_box *box,
                              const struct lk_buffer *from, struct lk_buffer *to, double value)
{
    const int64_t rows = lk_op_rows(setup).each;
    struct lk_box_axis axis[BOX_AXES];
    merge_all(setup, box, axis);
    const int64_t lines = axis[0].count * axis[1].count * axis[2].count;
    const int64_t piece = lk_least(axis[3].count, rows), each = lk_divide_up(rows, piece);
    const int64_t pieces = lk_divide_up(axis[3].count, piece);
    const struct lk_grid grid = {{pieces * lk_divide_up(lines, each), 1, 1},
                                 lk_op_items(setup)};
    const struct lk_box_lines args = {.count_1 = axis[1].count,
                                      .count_2 = axis[2].count,
                                      .count_3 = axis[3].count,
                                      .from_0 = axis[0].from,
                                      .from_1 = axis[1].from,
                                      .from_2 = axis[2].from,
                                      .from_3 = axis[3].from,
                                      .to_1 = axis[1].to,
                                      .to_2 = axis[2].to,
                                      .to_3 = axis[3].to,
                                      .shift_0 = axis[0].shift,
                                      .shift_1 = axis[1].shift,
                                      .shift_2 = axis[2].shift,
                                      .shift_3 = axis[3].shift,
                                      .at_0 = axis[0].at,
                                      .at_1 = axis[1].at,
                                      .at_2 = axis[2].at,
                                      .at_3 = axis[3].at,
                                      .lines = lines,
                                      .each = each,
                                      .piece = piece,
                                      .pieces = pieces};
    return LK_ENQUEUE(setup->state, grid, LK_BUF(from), LK_BUF(to), LK_REAL(value),
                      LK_STRUCT(&args));
}
