/* Keras's layers of images: convolutions, pooling, and what changes height and width. */
#include "model/keras/layers.h"

#include "base/fail.h"
#include <string.h>

static enum lk_status check_image(const struct lk_keras_draft *draft,
                                  const struct lk_keras_tensor *x)
{
    char text[96];
    if (x->node->shapes.y.rank == 3)
        return LK_OK;
    lk_shape_print_hwc(&x->node->shapes.y, text, sizeof text);
    return lk_keras_fail(draft, "it reads an image [h, w, c], found %s", text);
}

/* --- convolutions ------------------------------------------------------------------------ */

/* What all kinds of convolution say. */
struct convolution {
    int64_t kernel[2], stride[2], dilation[2];
    const char *padding;
    bool bias;
};

static enum lk_status read_convolution(const struct lk_keras_draft *draft,
                                       struct convolution *c)
{
    LK_TRY(lk_keras_pair(draft, "kernel_size", 0, c->kernel));
    LK_TRY(lk_keras_pair(draft, "strides", 1, c->stride));
    LK_TRY(lk_keras_pair(draft, "dilation_rate", 1, c->dilation));
    LK_TRY(lk_keras_word(draft, "padding", "valid", &c->padding));
    LK_TRY(lk_keras_bool(draft, "use_bias", true, &c->bias));
    if (strcmp(c->padding, "valid") != 0 && strcmp(c->padding, "same") != 0)
        return lk_keras_fail(draft, "'padding' is %.40s, expected valid or same", c->padding);
    return LK_OK;
}

static enum lk_status print_convolution(struct lk_keras_draft *draft,
                                        const struct convolution *c, int64_t filters,
                                        int64_t groups, const char **options)
{
    const char *dilated = "", *grouped = "";
    if (c->dilation[0] != 1 || c->dilation[1] != 1)
        LK_TRY(lk_keras_text(draft, &dilated, "dilation=[%lld, %lld] ",
                             (long long)c->dilation[0], (long long)c->dilation[1]));
    if (groups != 1)
        LK_TRY(lk_keras_text(draft, &grouped, "groups=%lld ", (long long)groups));
    return lk_keras_text(draft, options,
                         "filters=%lld kernel=[%lld, %lld] stride=[%lld, %lld] %s%s"
                         "padding=%s%s",
                         (long long)filters, (long long)c->kernel[0], (long long)c->kernel[1],
                         (long long)c->stride[0], (long long)c->stride[1], dilated, grouped,
                         c->padding, c->bias ? "" : " bias=false");
}

/* Kinds of convolution that have an option `groups`, which can only be 1. */
static enum lk_status check_groups(const struct lk_keras_draft *draft)
{
    int64_t groups;
    LK_TRY(lk_keras_int(draft, "groups", 1, &groups));
    return groups == 1
               ? LK_OK
               : lk_keras_fail(draft, "'groups' is %lld, expected 1", (long long)groups);
}

static enum lk_status conv2d(struct lk_keras_draft *draft, int count,
                             const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    struct convolution c;
    struct lk_keras_tensor weighted;
    int64_t filters, groups;
    const char *options;
    (void)count;
    LK_TRY(check_image(draft, x));
    LK_TRY(read_convolution(draft, &c));
    LK_TRY(lk_keras_int(draft, "filters", 0, &filters));
    LK_TRY(lk_keras_int(draft, "groups", 1, &groups));
    LK_TRY(print_convolution(draft, &c, filters, groups, &options));
    const struct lk_keras_entry entry = {.op = "conv2d", .options = options};
    LK_TRY(lk_keras_add_activated(draft, &entry, x, &weighted, made));
    return lk_keras_pair_kernel(draft, &weighted, "kernel", 0, c.bias);
}

static enum lk_status read_multiplied(const struct lk_keras_draft *draft,
                                      const struct lk_keras_tensor *x, int64_t *filters)
{
    int64_t multiplier;
    LK_TRY(lk_keras_int(draft, "depth_multiplier", 1, &multiplier));
    if (multiplier < 1 || multiplier > 1 << 20)
        return lk_keras_fail(draft, "'depth_multiplier' is %lld, expected 1..2^20",
                             (long long)multiplier);
    *filters = x->node->shapes.y.dim[0] * multiplier;
    return LK_OK;
}

static enum lk_status depthwise_conv2d(struct lk_keras_draft *draft, int count,
                                       const struct lk_keras_tensor *x,
                                       struct lk_keras_tensor *made)
{
    struct convolution c;
    struct lk_keras_tensor weighted;
    int64_t filters = 0;
    const char *options;
    (void)count;
    LK_TRY(check_image(draft, x));
    LK_TRY(check_groups(draft));
    LK_TRY(read_convolution(draft, &c));
    LK_TRY(read_multiplied(draft, x, &filters));
    LK_TRY(print_convolution(draft, &c, filters, x->node->shapes.y.dim[0], &options));
    const struct lk_keras_entry entry = {.op = "conv2d", .options = options};
    LK_TRY(lk_keras_add_activated(draft, &entry, x, &weighted, made));
    return lk_keras_pair_kernel(draft, &weighted, "depthwise_kernel", 0, c.bias);
}

/* Two convolutions, the first of every channel by itself, the second of 1x1. */
static enum lk_status separable_conv2d(struct lk_keras_draft *draft, int count,
                                       const struct lk_keras_tensor *x,
                                       struct lk_keras_tensor *made)
{
    struct convolution c;
    struct lk_keras_tensor deep, wide;
    int64_t filters = 0, wide_filters = 0;
    const char *options;
    (void)count;
    LK_TRY(check_image(draft, x));
    LK_TRY(check_groups(draft));
    LK_TRY(read_convolution(draft, &c));
    LK_TRY(read_multiplied(draft, x, &filters));
    LK_TRY(lk_keras_int(draft, "filters", 0, &wide_filters));
    const bool bias = c.bias;
    c.bias = false;
    LK_TRY(print_convolution(draft, &c, filters, x->node->shapes.y.dim[0], &options));
    const struct lk_keras_entry first = {
        .op = "conv2d", .options = options, .suffix = "_depthwise"};
    LK_TRY(lk_keras_add(draft, &first, 1, x, &deep));
    LK_TRY(lk_keras_pair_kernel(draft, &deep, "depthwise_kernel", 0, false));
    LK_TRY(lk_keras_text(draft, &options, "filters=%lld kernel=1%s", (long long)wide_filters,
                         bias ? "" : " bias=false"));
    const struct lk_keras_entry second = {.op = "conv2d", .options = options};
    LK_TRY(lk_keras_add_activated(draft, &second, &deep, &wide, made));
    return lk_keras_pair_kernel(draft, &wide, "pointwise_kernel", 1, bias);
}

/* Keras's output padding p: of the pixels that "same" would cut off, p are kept. */
static enum lk_status place_transposed(struct lk_keras_draft *draft,
                                       const struct convolution *c, const char **options)
{
    int64_t keep[2], before[2], after[2];
    const bool is_same = strcmp(c->padding, "same") == 0;
    LK_TRY(lk_keras_pair(draft, "output_padding", -1, keep));
    if (keep[0] < 0)
        return lk_keras_text(draft, options, "padding=%s", c->padding);
    for (int i = 0; i < 2; i++) {
        const int64_t half = ((c->kernel[i] - 1) * c->dilation[i] + 1) / 2;
        const int64_t cut = is_same && 2 * half > keep[i] ? 2 * half - keep[i] : 0;
        before[i] = cut / 2;
        after[i] = cut - before[i];
        if (is_same)
            keep[i] = keep[i] > 2 * half ? keep[i] - 2 * half : 0;
    }
    return lk_keras_text(draft, options,
                         "padding=[%lld, %lld, %lld, %lld] output_padding=[%lld, %lld]",
                         (long long)before[0], (long long)after[0], (long long)before[1],
                         (long long)after[1], (long long)keep[0], (long long)keep[1]);
}

static enum lk_status conv2d_transpose(struct lk_keras_draft *draft, int count,
                                       const struct lk_keras_tensor *x,
                                       struct lk_keras_tensor *made)
{
    struct convolution c;
    struct lk_keras_tensor weighted;
    int64_t filters = 0;
    const char *options, *placed;
    (void)count;
    LK_TRY(check_image(draft, x));
    LK_TRY(check_groups(draft));
    LK_TRY(read_convolution(draft, &c));
    LK_TRY(lk_keras_int(draft, "filters", 0, &filters));
    LK_TRY(place_transposed(draft, &c, &placed));
    LK_TRY(lk_keras_text(
        draft, &options,
        "filters=%lld kernel=[%lld, %lld] stride=[%lld, %lld] dilation=[%lld, %lld] %s%s",
        (long long)filters, (long long)c.kernel[0], (long long)c.kernel[1],
        (long long)c.stride[0], (long long)c.stride[1], (long long)c.dilation[0],
        (long long)c.dilation[1], placed, c.bias ? "" : " bias=false"));
    const struct lk_keras_entry entry = {.op = "conv2d_transpose", .options = options};
    LK_TRY(lk_keras_add_activated(draft, &entry, x, &weighted, made));
    return lk_keras_pair_kernel(draft, &weighted, "kernel", 0, c.bias);
}

/* --- pooling ----------------------------------------------------------------------------- */

static enum lk_status pool(struct lk_keras_draft *draft, const char *op,
                           const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    int64_t size[2], stride[2];
    const char *padding, *options;
    LK_TRY(check_image(draft, x));
    LK_TRY(lk_keras_pair(draft, "pool_size", 2, size));
    LK_TRY(lk_keras_pair(draft, "strides", 0, stride));
    LK_TRY(lk_keras_word(draft, "padding", "valid", &padding));
    if (strcmp(padding, "valid") != 0 && strcmp(padding, "same") != 0)
        return lk_keras_fail(draft, "'padding' is %.40s, expected valid or same", padding);
    for (int i = 0; i < 2; i++)
        stride[i] = stride[i] ? stride[i] : size[i];
    LK_TRY(lk_keras_text(draft, &options, "size=[%lld, %lld] stride=[%lld, %lld] padding=%s",
                         (long long)size[0], (long long)size[1], (long long)stride[0],
                         (long long)stride[1], padding));
    return lk_keras_add(draft, &(struct lk_keras_entry){.op = op, .options = options}, 1, x,
                        made);
}

static enum lk_status max_pooling(struct lk_keras_draft *draft, int count,
                                  const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    (void)count;
    return pool(draft, "max_pool", x, made);
}

static enum lk_status average_pooling(struct lk_keras_draft *draft, int count,
                                      const struct lk_keras_tensor *x,
                                      struct lk_keras_tensor *made)
{
    (void)count;
    return pool(draft, "average_pool", x, made);
}

/* With keepdims the vector becomes an image of one pixel, under the layer's name. */
static enum lk_status pool_all(struct lk_keras_draft *draft, const char *op,
                               const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    bool keeps;
    const char *options;
    struct lk_keras_tensor vector;
    LK_TRY(check_image(draft, x));
    LK_TRY(lk_keras_bool(draft, "keepdims", false, &keeps));
    const struct lk_keras_entry first = {
        .op = op, .options = "", .suffix = keeps ? "_vector" : NULL};
    LK_TRY(lk_keras_add(draft, &first, 1, x, &vector));
    *made = vector;
    if (!keeps)
        return LK_OK;
    LK_TRY(lk_keras_text(draft, &options, "shape=[%lld, 1, 1]",
                         (long long)vector.node->shapes.y.dim[0]));
    return lk_keras_add(draft, &(struct lk_keras_entry){.op = "reshape", .options = options}, 1,
                        &vector, made);
}

static enum lk_status global_average(struct lk_keras_draft *draft, int count,
                                     const struct lk_keras_tensor *x,
                                     struct lk_keras_tensor *made)
{
    (void)count;
    return pool_all(draft, "global_average_pool", x, made);
}

static enum lk_status global_max(struct lk_keras_draft *draft, int count,
                                 const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    (void)count;
    return pool_all(draft, "global_max_pool", x, made);
}

/* --- height and width -------------------------------------------------------------------- */

static enum lk_status edges(struct lk_keras_draft *draft, const char *op, const char *key,
                            const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    int64_t e[4];
    const char *options;
    LK_TRY(check_image(draft, x));
    LK_TRY(lk_keras_edges(draft, key, e));
    LK_TRY(lk_keras_text(draft, &options, "%s=[%lld, %lld, %lld, %lld]", key, (long long)e[0],
                         (long long)e[1], (long long)e[2], (long long)e[3]));
    return lk_keras_add(draft, &(struct lk_keras_entry){.op = op, .options = options}, 1, x,
                        made);
}

static enum lk_status zero_padding(struct lk_keras_draft *draft, int count,
                                   const struct lk_keras_tensor *x,
                                   struct lk_keras_tensor *made)
{
    (void)count;
    return edges(draft, "pad", "padding", x, made);
}

static enum lk_status cropping(struct lk_keras_draft *draft, int count,
                               const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    (void)count;
    return edges(draft, "crop", "cropping", x, made);
}

static enum lk_status up_sampling(struct lk_keras_draft *draft, int count,
                                  const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    int64_t size[2];
    const char *how, *options;
    (void)count;
    LK_TRY(check_image(draft, x));
    LK_TRY(lk_keras_pair(draft, "size", 2, size));
    LK_TRY(lk_keras_word(draft, "interpolation", "nearest", &how));
    if (strcmp(how, "nearest") != 0 && strcmp(how, "bilinear") != 0)
        return lk_keras_fail(draft, "'interpolation' is %.40s, expected nearest or bilinear",
                             how);
    LK_TRY(lk_keras_text(draft, &options, "size=[%lld, %lld] interpolation=%s",
                         (long long)size[0], (long long)size[1], how));
    return lk_keras_add(draft, &(struct lk_keras_entry){.op = "upsample", .options = options},
                        1, x, made);
}

#define CONVOLUTION                                                                            \
    "kernel_size", "strides", "padding", "dilation_rate", "use_bias", "activation"

const struct lk_keras_class lk_keras_image_classes[] = {
    {"Conv2D", conv2d, 1, LK_KERAS_OPTIONS(CONVOLUTION, "filters", "groups", "rank")},
    {"DepthwiseConv2D", depthwise_conv2d, 1,
     LK_KERAS_OPTIONS(CONVOLUTION, "depth_multiplier", "rank", "groups")},
    {"SeparableConv2D", separable_conv2d, 1,
     LK_KERAS_OPTIONS(CONVOLUTION, "filters", "depth_multiplier", "rank", "groups")},
    {"Conv2DTranspose", conv2d_transpose, 1,
     LK_KERAS_OPTIONS(CONVOLUTION, "filters", "output_padding", "rank", "groups")},
    {"MaxPooling2D", max_pooling, 1, LK_KERAS_OPTIONS("pool_size", "strides", "padding")},
    {"AveragePooling2D", average_pooling, 1,
     LK_KERAS_OPTIONS("pool_size", "strides", "padding")},
    {"GlobalAveragePooling2D", global_average, 1, LK_KERAS_OPTIONS("keepdims")},
    {"GlobalMaxPooling2D", global_max, 1, LK_KERAS_OPTIONS("keepdims")},
    {"ZeroPadding2D", zero_padding, 1, LK_KERAS_OPTIONS("padding")},
    {"Cropping2D", cropping, 1, LK_KERAS_OPTIONS("cropping")},
    {"UpSampling2D", up_sampling, 1, LK_KERAS_OPTIONS("size", "interpolation")},
    {0},
};
