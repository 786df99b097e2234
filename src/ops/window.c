/* Places the windows of convolutions and pools on an image. */
#include "ops/window.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

enum { MOST_PADDING = 1 << 20 };

static const char *const extents[] = {"height", "width"};

/* How many pixels a window covers, those between its taps included. */
static int64_t reach_of(const struct lk_window *window)
{
    return (window->size - 1) * window->gap + 1;
}

static bool read_numbers(const char *text, int64_t number[4])
{
    int count = 0;
    while (*text) {
        int used = 0;
        long long found;
        text += strspn(text, "[] ");
        if (count == 4 || sscanf(text, "%7lld%n", &found, &used) != 1 || found < 0 ||
            found > MOST_PADDING)
            return false;
        number[count++] = found;
        text += used;
        text += strspn(text, "[] ");
        if (*text == ',' && text[1])
            text++;
        else if (*text)
            return false;
    }
    if (count == 1)
        number[1] = number[2] = number[3] = number[0];
    if (count == 2) {
        number[2] = number[3] = number[1];
        number[1] = number[0];
    }
    return count == 1 || count == 2 || count == 4;
}

enum lk_status lk_padding_read(const char *text, int64_t number[4], const char *name)
{
    int64_t found[4];
    if (!read_numbers(text, found))
        return lk_fail(LK_E_ARGUMENT, "%s: '%s' is not 1, 2 or 4 numbers of pixels up to %d",
                       name, text, MOST_PADDING);
    memcpy(number, found, sizeof found);
    return LK_OK;
}

enum lk_status lk_windows_padding(const char *padding, int64_t number[4], const char *name)
{
    if (strcmp(padding, "same") == 0 || strcmp(padding, "valid") == 0 ||
        read_numbers(padding, number))
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT,
                   "%s: padding '%s' is not valid, same or 1, 2 or 4 numbers up to %d", name,
                   padding, MOST_PADDING);
}

/* As much padding as the last of ceil(pixels / stride) windows needs. */
static void pad_same(struct lk_window *window, int64_t pixels)
{
    const int64_t last = (pixels - 1) / window->stride * window->stride;
    const int64_t missing = last + reach_of(window) - pixels;
    window->before = missing > 0 ? missing / 2 : 0;
    window->after = missing > 0 ? missing - window->before : 0;
}

enum lk_status lk_windows_place(struct lk_window window[2], const char *padding,
                                const struct lk_shape *x, const char *name)
{
    int64_t number[4] = {0};
    const bool same = strcmp(padding, "same") == 0;
    LK_TRY(lk_windows_padding(padding, number, name));
    for (int i = 0; i < 2; i++) {
        struct lk_window *w = &window[i];
        w->before = number[2 * i];
        w->after = number[2 * i + 1];
        if (same)
            pad_same(w, x->dim[1 + i]);
        const int64_t padded = x->dim[1 + i] + w->before + w->after, reach = reach_of(w);
        if (reach > padded)
            return lk_fail(LK_E_SHAPE,
                           "%s: a kernel of %s %lld%s does not fit an image of %s %lld (with "
                           "padding %lld)",
                           name, extents[i], (long long)reach, w->gap > 1 ? " (dilated)" : "",
                           extents[i], (long long)x->dim[1 + i], (long long)padded);
        w->count = (padded - reach) / w->stride + 1;
    }
    return LK_OK;
}

enum lk_status lk_windows_check_seen(const struct lk_window window[2], const char *name)
{
    for (int i = 0; i < 2; i++)
        if (window[i].before >= window[i].size || window[i].after >= window[i].size)
            return lk_fail(LK_E_SHAPE,
                           "%s: a window of %s %lld with %lld and %lld pixels of padding would "
                           "see padding alone",
                           name, extents[i], (long long)window[i].size,
                           (long long)window[i].before, (long long)window[i].after);
    return LK_OK;
}
