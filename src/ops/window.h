/* Windows that slide over an image: where they start and how many there are. Floor 4.
 * Knows no kernel. */
#ifndef LK_OPS_WINDOW_H
#define LK_OPS_WINDOW_H

#include "base/option.h"
#include <lockstep/tensor.h>

enum { LK_PADDING_BYTES = 32 };

/* The row of the option `padding`; `type`: the struct of options, with char
 * padding[LK_PADDING_BYTES]. */
#define LK_PADDING_OPTION(type)                                                                \
    {                                                                                          \
        .name = "padding", .kind = LK_OPTION_TEXT, .offset = offsetof(type, padding),          \
        .count = LK_PADDING_BYTES, .standard = "valid",                                        \
        .help = "valid: none; same: a window for every stride; or pixels: n, rows,columns or " \
                "top,bottom,left,right"                                                        \
    }

/* Reads pixels at the top, bottom, left and right: "n", "rows,columns" or all four, `name`: the
 * operation, for messages. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_padding_read(const char *text, int64_t number[4],
                                             const char *name);

/* As lk_padding_read() for the padding of windows, which may also be "valid" or "same": then
 * `number` stays as it was. */
LK_MUST_CHECK enum lk_status lk_windows_padding(const char *padding, int64_t number[4],
                                                const char *name);

/* Along one axis: window o covers the pixels o * stride - before + i * gap, i < size. */
struct lk_window {
    int64_t size, stride, gap;
    int64_t before, after; /* pixels of padding: set */
    int64_t count;         /* of windows: set */
};

/* Places the windows down, window[0], and across, window[1], on an image x = [c, h, w].
 * same: ceil(pixels / stride) windows, the odd pixel of padding behind. A remainder of pixels
 * behind the last window is dropped. `name`: the operation, for messages. fails: LK_E_ARGUMENT
 * for `padding` of no known form; LK_E_SHAPE where no window fits */
LK_MUST_CHECK enum lk_status lk_windows_place(struct lk_window window[2], const char *padding,
                                              const struct lk_shape *x, const char *name);

/* For operations to which padding has no value, such as max-pool. fails: LK_E_SHAPE where a
 * window would cover nothing but padding */
LK_MUST_CHECK enum lk_status lk_windows_check_seen(const struct lk_window window[2],
                                                   const char *name);

#endif
