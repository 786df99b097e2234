/* Takes a part of a tensor: slice by ranges of its axes, crop by what is left out of an image.
 */
#include "base/fail.h"
#include "ops/arrange/box.h"
#include "ops/window.h"

/* Ranges of slice: from number `range[.][0]` on to the one before `range[.][1]`; crop: pixels
 * left out at the top, bottom, left and right, as text. */
struct options {
    int64_t range[LK_AXES][2];
    char cropping[LK_PADDING_BYTES];
};

#define RANGE_OPTION(word, axis, help_)                                                        \
    {                                                                                          \
        .name = (word), .kind = LK_OPTION_INT, .count = 2,                                     \
        .offset = offsetof(struct options, range) + (axis) * sizeof(int64_t[2]),               \
        .standard = "0", .help = (help_)                                                       \
    }

static const struct lk_option slice_options[] = {
    RANGE_OPTION("c", LK_AXIS_C,
                 "channels [first, end], without the end; negative numbers count from the end, "
                 "and 0 as end is it"),
    RANGE_OPTION("h", LK_AXIS_H, "rows of an image, likewise"),
    RANGE_OPTION("w", LK_AXIS_W, "columns of an image, likewise"),
    RANGE_OPTION("t", LK_AXIS_T, "time steps of a sequence, likewise"),
    {0},
};

static const struct lk_option crop_options[] = {
    {.name = "cropping",
     .kind = LK_OPTION_TEXT,
     .offset = offsetof(struct options, cropping),
     .count = LK_PADDING_BYTES,
     .help = "pixels cut off: n, rows,columns or top,bottom,left,right"},
    {0},
};

/* Narrows axis `axis` of y to its range, which begins at *at. */
static enum lk_status take_range(const struct lk_op_shapes *shapes, enum lk_axis axis,
                                 struct lk_shape *y, int64_t at[])
{
    const struct options *o = shapes->options;
    const int64_t *range = o->range[axis];
    const int place = lk_axis_find(y, axis);
    char text[64];
    lk_shape_print_hwc(&shapes->x[0], text, sizeof text);
    if (place < 0 && (range[0] != 0 || range[1] != 0))
        return lk_fail(LK_E_SHAPE, "slice: %s has no axis %s", text, lk_axis_words[axis]);
    if (place < 0)
        return LK_OK;
    const int64_t length = y->dim[place];
    const int64_t first = range[0] < 0 ? range[0] + length : range[0];
    const int64_t end = range[1] <= 0 ? range[1] + length : range[1];
    if (first < 0 || first >= end || end > length)
        return lk_fail(
            LK_E_SHAPE, "slice: %s has %lld along %s, of which [%lld, %lld] is no range", text,
            (long long)length, lk_axis_words[axis], (long long)range[0], (long long)range[1]);
    at[place] = first;
    y->dim[place] = end - first;
    return LK_OK;
}

static enum lk_status place_slice(const struct lk_op_shapes *shapes, struct lk_shape *y,
                                  int64_t at[LK_MOST_AXES])
{
    *y = shapes->x[0];
    for (int axis = 0; axis < LK_AXES; axis++)
        LK_TRY(take_range(shapes, axis, y, at));
    return LK_OK;
}

static enum lk_status place_crop(const struct lk_op_shapes *shapes, struct lk_shape *y,
                                 int64_t at[LK_MOST_AXES])
{
    const struct options *o = shapes->options;
    int64_t cut[4];
    char text[64];
    *y = shapes->x[0];
    LK_TRY(lk_padding_read(o->cropping, cut, "crop"));
    for (int i = 0; i < 2; i++) {
        at[1 + i] = cut[2 * i];
        y->dim[1 + i] -= cut[2 * i] + cut[2 * i + 1];
    }
    lk_shape_print_hwc(&shapes->x[0], text, sizeof text);
    if (y->dim[1] < 1 || y->dim[2] < 1)
        return lk_fail(LK_E_SHAPE, "crop: cropping '%s' leaves nothing of %s", o->cropping,
                       text);
    return LK_OK;
}

static enum lk_status infer_slice(struct lk_op_shapes *shapes)
{
    struct lk_shape y;
    int64_t at[LK_MOST_AXES] = {0};
    LK_TRY(lk_arrange_check(shapes, 0, "slice"));
    LK_TRY(place_slice(shapes, &y, at));
    return lk_arrange_set(shapes, &y, "slice");
}

static enum lk_status infer_crop(struct lk_op_shapes *shapes)
{
    struct lk_shape y;
    int64_t at[LK_MOST_AXES] = {0};
    LK_TRY(lk_op_check_image(shapes, "crop"));
    LK_TRY(place_crop(shapes, &y, at));
    return lk_arrange_set(shapes, &y, "crop");
}

/* --- kernels --------------------------------------------------------------------------- */

/* Where y lies within x. */
typedef enum lk_status place(const struct lk_op_shapes *shapes, struct lk_shape *y,
                             int64_t at[LK_MOST_AXES]);

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run,
                              place *find)
{
    struct lk_shape y;
    int64_t at[LK_MOST_AXES] = {0};
    LK_TRY(find(&setup->shapes, &y, at));
    const struct lk_box box = lk_box_out_of(&setup->shapes.x[0], &y, at);
    return lk_box_enqueue(setup, &box, run->x[0], run->y, 0);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run,
                               place *find)
{
    struct lk_shape y;
    int64_t at[LK_MOST_AXES] = {0};
    if (!run->dx[0])
        return LK_OK;
    LK_TRY(find(&setup->shapes, &y, at));
    const struct lk_box box = lk_box_around(&y, &setup->shapes.x[0], at);
    return lk_box_enqueue(setup, &box, run->dy, run->dx[0], 0);
}

#define OPERATION(name_)                                                                       \
    static enum lk_status forward_##name_(const struct lk_op_setup *setup,                     \
                                          const struct lk_op_run *run)                         \
    {                                                                                          \
        return forward(setup, run, place_##name_);                                             \
    }                                                                                          \
    static enum lk_status backward_##name_(const struct lk_op_setup *setup,                    \
                                           const struct lk_op_run *run)                        \
    {                                                                                          \
        return backward(setup, run, place_##name_);                                            \
    }                                                                                          \
    const struct lk_op lk_op_##name_ = {                                                       \
        .name = #name_,                                                                        \
        .options = name_##_options,                                                            \
        .options_bytes = sizeof(struct options),                                               \
        .min_inputs = 1,                                                                       \
        .max_inputs = 1,                                                                       \
        .infer = infer_##name_,                                                                \
        .prepare = lk_box_prepare,                                                             \
        .forward = forward_##name_,                                                            \
        .backward = backward_##name_,                                                          \
    }

OPERATION(slice);
OPERATION(crop);
