/* Windows that slide over an image: where they start and how many there are. Floor 3.
 * Knows no kernel. */
#ifndef LK_OPS_WINDOW_H
#define LK_OPS_WINDOW_H

#include <lockstep/status.h>
#include <stdint.h>

enum lk_padding { LK_PADDING_VALID, LK_PADDING_SAME, LK_PADDING_EXPLICIT };

/* Names of the above for an option of kind CHOICE. */
extern const char *const lk_padding_names[];

/* Along one axis: window o covers the `size` pixels from o * stride - before. */
struct lk_window {
    int64_t size, stride;
    int64_t before, after; /* pixels of padding: read for EXPLICIT, else set */
    int64_t count;         /* of windows: set */
};

/* Places windows on `pixels` pixels. valid: no padding. same: ceil(pixels / stride) windows,
 * the odd pixel of padding behind. explicit: as given, a remainder is dropped. fails:
 * LK_E_SHAPE where none fits or one would see padding alone; `what` names axis and operation,
 * as in "max_pool: height" */
LK_MUST_CHECK enum lk_status lk_window_place(struct lk_window *window, enum lk_padding padding,
                                             int64_t pixels, const char *what);

#endif
