/* Copies between a tensor and a part of another: what concat, slice, crop and pad are made of.
 * Floor 4. Knows no operation. */
#ifndef LK_OPS_ARRANGE_BOX_H
#define LK_OPS_ARRANGE_BOX_H

#include "ops/op.h"

/* The axes of a sample by name: an image [c, h, w], a sequence [t, c], a vector [c]. */
enum lk_axis { LK_AXIS_C, LK_AXIS_H, LK_AXIS_W, LK_AXIS_T, LK_AXES };
extern const char *const lk_axis_words[];

/* The place of an axis in the shape; -1: it has none of that name. */
int lk_axis_find(const struct lk_shape *shape, enum lk_axis axis);

/* Input i is real and of rank 1 to 3. fails: LK_E_SHAPE, naming the operation */
LK_MUST_CHECK enum lk_status lk_arrange_check(const struct lk_op_shapes *shapes, int i,
                                              const char *name);

/* Takes y as the result and counts its elements. fails: LK_E_SHAPE too many elements */
LK_MUST_CHECK enum lk_status lk_arrange_set(struct lk_op_shapes *shapes,
                                            const struct lk_shape *y, const char *name);

/* One axis of a copy. Of `to` numbers, `count` are written, those from number `at` on. The i-th
 * of them comes from number i + shift of `from`, where there is one. */
struct lk_box_axis {
    int64_t from, to, count, shift, at;
};

/* A copy, an axis of the sample each. */
struct lk_box {
    struct lk_box_axis axis[LK_MOST_AXES];
    int axes;
};

/* From x into a part of y that begins at `at`, or from that part into x. The shapes differ in
 * length alone. */
struct lk_box lk_box_into(const struct lk_shape *x, const struct lk_shape *y,
                          const int64_t at[]);
struct lk_box lk_box_out_of(const struct lk_shape *y, const struct lk_shape *x,
                            const int64_t at[]);

/* All of y: x from place `at` on (which may lie before it, at < 0), and elsewhere the value. */
struct lk_box lk_box_around(const struct lk_shape *x, const struct lk_shape *y,
                            const int64_t at[]);

/* Makes the kernel the operation's state, and destroys it. */
LK_MUST_CHECK enum lk_status lk_box_prepare(struct lk_op_setup *setup);

/* Enqueues the copy for all samples; `value` where `from` has nothing. */
LK_MUST_CHECK enum lk_status lk_box_enqueue(const struct lk_op_setup *setup,
                                            const struct lk_box *box,
                                            const struct lk_buffer *from, struct lk_buffer *to,
                                            double value);

#endif
