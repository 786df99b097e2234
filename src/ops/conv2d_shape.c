/* The geometry of a convolution, and why there is none. */
#include "ops/conv2d.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

enum { MOST_PAD = 1 << 20 };

/* Reads "n", "rows,columns" or "top,bottom,left,right"; spaces and brackets are skipped. */
static bool read_padding(const char *text, int64_t pad[4])
{
    int count = 0;
    while (*text) {
        int used = 0;
        long long number;
        text += strspn(text, "[] ");
        if (count == 4 || sscanf(text, "%7lld%n", &number, &used) != 1 || number < 0 ||
            number > MOST_PAD)
            return false;
        pad[count++] = number;
        text += used;
        text += strspn(text, "[] ");
        if (*text == ',' && text[1])
            text++;
        else if (*text)
            return false;
    }
    if (count == 1)
        pad[1] = pad[2] = pad[3] = pad[0];
    if (count == 2) {
        pad[2] = pad[3] = pad[1];
        pad[1] = pad[0];
    }
    return count == 1 || count == 2 || count == 4;
}

/* Fills pad and out of an axis whose other numbers are set. after: padding behind the image. */
static enum lk_status place(struct lk_conv2d_axis *axis, bool same, int64_t after, bool pool,
                            const char *extent)
{
    const int64_t reach = (axis->taps - 1) * axis->gap + 1;
    if (same) {
        axis->all_out = (axis->in + axis->step - 1) / axis->step;
        const int64_t total = (axis->all_out - 1) * axis->step + reach - axis->in;
        axis->pad = total > 0 ? total / 2 : 0;
    } else {
        const int64_t padded = axis->in + axis->pad + after;
        if (padded < reach)
            return lk_fail(LK_E_SHAPE,
                           "conv2d: a kernel of %s %lld%s does not fit an image of %s %lld "
                           "(with padding %lld)",
                           extent, (long long)reach, axis->gap > 1 ? " (dilated)" : "", extent,
                           (long long)axis->in, (long long)padded);
        axis->all_out = (padded - reach) / axis->step + 1;
    }
    axis->out = pool ? axis->all_out / 2 * 2 : axis->all_out;
    if (axis->out == 0)
        return lk_fail(LK_E_SHAPE, "conv2d: an output of %s 1 is too small for a 2x2 pool",
                       extent);
    return LK_OK;
}

enum lk_status lk_conv2d_shape(const struct lk_conv2d_options *o, const struct lk_shape *x,
                               struct lk_conv2d_shape *shape)
{
    char text[96];
    int64_t pad[4] = {0};
    lk_shape_print(x, text, sizeof text);
    const bool same = strcmp(o->padding, "same") == 0;
    if (x->rank != 3)
        return lk_fail(LK_E_SHAPE, "conv2d takes an image [c, h, w], not %s", text);
    if (!same && strcmp(o->padding, "valid") != 0 && !read_padding(o->padding, pad))
        return lk_fail(LK_E_ARGUMENT,
                       "conv2d: padding '%s' is not valid, same or 1, 2 or 4 numbers up to %d",
                       o->padding, MOST_PAD);
    if (x->dim[0] % o->groups != 0)
        return lk_fail(LK_E_SHAPE, "conv2d: %lld channels of %s do not divide into %lld groups",
                       (long long)x->dim[0], text, (long long)o->groups);
    if (o->filters % o->groups != 0)
        return lk_fail(LK_E_ARGUMENT, "conv2d: %lld filters do not divide into %lld groups",
                       (long long)o->filters, (long long)o->groups);
    struct lk_conv2d_shape made = {.groups = o->groups,
                                   .channels = x->dim[0] / o->groups,
                                   .filters = o->filters / o->groups,
                                   .relu = o->activation == LK_CONV2D_RELU,
                                   .pool = o->pool};
    for (int i = 0; i < 2; i++) {
        made.axis[i] = (struct lk_conv2d_axis){.in = x->dim[1 + i],
                                               .taps = o->kernel[i],
                                               .step = o->stride[i],
                                               .gap = o->dilation[i],
                                               .pad = pad[2 * i]};
        LK_TRY(place(&made.axis[i], same, pad[2 * i + 1], o->pool, i ? "width" : "height"));
    }
    *shape = made;
    return LK_OK;
}
