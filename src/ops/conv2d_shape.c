/* Works out the geometry of a convolution, or says why there is none. */
#include "ops/activation.h"
#include "ops/conv2d.h"

#include "base/fail.h"

enum lk_status lk_conv2d_shape(const struct lk_conv2d_options *o, const struct lk_shape *x,
                               struct lk_product_shape *shape)
{
    char text[96];
    struct lk_window window[2];
    lk_shape_print_hwc(x, text, sizeof text);
    if (x->rank != 3)
        return lk_fail(LK_E_SHAPE, "conv2d takes an image [h, w, c], not %s", text);
    if (x->dim[0] % o->groups != 0)
        return lk_fail(LK_E_SHAPE, "conv2d: %lld channels of %s do not divide into %lld groups",
                       (long long)x->dim[0], text, (long long)o->groups);
    if (o->filters % o->groups != 0)
        return lk_fail(LK_E_ARGUMENT, "conv2d: %lld filters do not divide into %lld groups",
                       (long long)o->filters, (long long)o->groups);
    struct lk_product_shape made = {.groups = o->groups,
                                    .channels = x->dim[0] / o->groups,
                                    .filters = o->filters / o->groups,
                                    .bias = o->bias,
                                    .relu = o->activation == LK_RELU,
                                    .pool = o->pool,
                                    .norm = o->norm,
                                    .adds = o->adds,
                                    .epsilon = o->epsilon,
                                    .most = o->most,
                                    .silu = o->silu};
    for (int i = 0; i < 2; i++)
        window[i] = (struct lk_window){
            .size = o->kernel[i], .stride = o->stride[i], .gap = o->dilation[i]};
    LK_TRY(lk_windows_place(window, o->padding, x, "conv2d"));
    for (int i = 0; i < 2; i++) {
        const struct lk_window *w = &window[i];
        if (o->pool && w->count < 2)
            return lk_fail(LK_E_SHAPE, "conv2d: an output of %s 1 is too small for a 2x2 pool",
                           i ? "width" : "height");
        made.axis[i] = (struct lk_product_axis){.in = x->dim[1 + i],
                                                .out = o->pool ? w->count / 2 * 2 : w->count,
                                                .all_out = w->count,
                                                .taps = w->size,
                                                .stride = w->stride,
                                                .gap = w->gap,
                                                .pad = w->before};
    }
    *shape = made;
    return LK_OK;
}
