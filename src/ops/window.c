#include "ops/window.h"

#include "base/fail.h"
#include <stddef.h>

const char *const lk_padding_names[] = {"valid", "same", "explicit", NULL};

enum lk_status lk_window_place(struct lk_window *window, enum lk_padding padding,
                               int64_t pixels, const char *what)
{
    struct lk_window w = *window;
    if (padding != LK_PADDING_EXPLICIT)
        w.before = w.after = 0;
    if (padding == LK_PADDING_SAME) {
        w.count = (pixels + w.stride - 1) / w.stride;
        const int64_t missing = (w.count - 1) * w.stride + w.size - pixels;
        w.before = missing > 0 ? missing / 2 : 0;
        w.after = missing > 0 ? missing - w.before : 0;
    }
    if (w.before >= w.size || w.after >= w.size)
        return lk_fail(LK_E_SHAPE,
                       "%s: a window of %lld with %lld and %lld pixels of padding would see "
                       "padding alone",
                       what, (long long)w.size, (long long)w.before, (long long)w.after);
    if (w.size > pixels + w.before + w.after)
        return lk_fail(LK_E_SHAPE, "%s: a window of %lld does not fit into %lld pixels", what,
                       (long long)w.size, (long long)(pixels + w.before + w.after));
    w.count = (pixels + w.before + w.after - w.size) / w.stride + 1;
    *window = w;
    return LK_OK;
}
