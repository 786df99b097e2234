/* The table of operations that `lockstep bench` times, by network. */
#include "bench/cases.h"

#include <stddef.h>

/* clang-format off */
#define IMAGE(c, h, w) {3, {c, h, w}}
#define VECTOR(k) {1, {k}}
#define LAYER(set_, batch_, op_, options_, ...)                                                \
    {.set = set_, .batch = batch_, .op = op_, .options = options_, .x = __VA_ARGS__}
#define POOLED .absorbed = "max_pool", .absorbed_options = "size=2"
#define FIRST .is_first = true
#define BEHIND .behind_relu = true
#define BEFORE .before_conv = true

/* The Fashion-MNIST ConvNet of the zoo, for 28x28 images. */
#define CONVNET(op, options, ...) LAYER("convnet", 512, op, options, __VA_ARGS__)

/* source: Simonyan and Zisserman 2014, table 1, D */
#define VGG(op, options, ...) LAYER("vgg16", 16, op, options, __VA_ARGS__)
#define VGG_CONV(filters, ...)                                                                 \
    VGG("conv2d", "filters=" #filters " kernel=3 padding=same activation=relu", __VA_ARGS__)

/* source: He et al. 2015, table 1; the 3x3 convolution has a block's stride ("v1.5") */
#define RESNET(op, options, ...) LAYER("resnet50", 16, op, options, __VA_ARGS__)
#define RESNET_CONV(filters, kernel, stride, padding, ...)                                     \
    RESNET("conv2d", "filters=" #filters " kernel=" #kernel " stride=" #stride                 \
           " padding=" #padding " bias=false", __VA_ARGS__)

/* source: Sandler et al. 2018, table 2: each channel alone, then all of a pixel */
#define MOBILE(op, options, ...) LAYER("mobilenet-v2", 16, op, options, __VA_ARGS__)
#define MOBILE_DEPTH(filters, stride, ...)                                                     \
    MOBILE("conv2d", "filters=" #filters " groups=" #filters " kernel=3 stride=" #stride       \
           " padding=same bias=false", __VA_ARGS__)
#define MOBILE_POINT(filters, ...)                                                             \
    MOBILE("conv2d", "filters=" #filters " kernel=1 bias=false", __VA_ARGS__)

/* Such as densely connected, squeeze-and-excitation and segmenting networks have. */
#define ARRANGE(op, options, ...) LAYER("arrange", 16, op, options, __VA_ARGS__)

/* Operations that none of these has: of U-Nets and GANs, transformers, ConvNeXt, AlexNet. */
#define OTHER(op, options, ...) LAYER("other-layers", 32, op, options, __VA_ARGS__)

#define MLP(op, options, ...) LAYER("mlp", 512, op, options, __VA_ARGS__)

/* Of sequences: recurrent layers of 64 time steps, and what is between the products of a
 * transformer's layers. */
#define TEXT(batch, op, options, ...) LAYER("text", batch, op, options, __VA_ARGS__)
#define RECURRENT(batch, op, units, channels)                                                  \
    TEXT(batch, op, "units=" #units " return_sequences=true", {2, {64, channels}})

const struct lk_bench_case lk_bench_cases[] = {
    CONVNET("conv2d", "filters=32 kernel=3 activation=relu", IMAGE(1, 28, 28), FIRST, POOLED),
    CONVNET("conv2d", "filters=64 kernel=3 activation=relu", IMAGE(32, 13, 13), POOLED),
    CONVNET("conv2d", "filters=64 kernel=3 activation=relu", IMAGE(64, 5, 5)),
    CONVNET("conv2d", "filters=32 kernel=3", IMAGE(1, 28, 28), FIRST),
    CONVNET("conv2d", "filters=64 kernel=3", IMAGE(32, 13, 13)),
    CONVNET("relu", "", IMAGE(32, 26, 26)),
    CONVNET("max_pool", "size=2", IMAGE(32, 26, 26)),
    CONVNET("dense", "units=64 activation=relu", VECTOR(576)),
    CONVNET("dense", "units=10", VECTOR(64)),
    CONVNET("softmax", "", VECTOR(10)),

    VGG_CONV(64, IMAGE(3, 224, 224), FIRST, BEFORE),
    VGG_CONV(64, IMAGE(64, 224, 224), BEHIND),
    VGG_CONV(128, IMAGE(64, 112, 112), BEFORE),
    VGG_CONV(128, IMAGE(128, 112, 112), BEHIND),
    VGG_CONV(256, IMAGE(128, 56, 56), BEFORE),
    VGG_CONV(256, IMAGE(256, 56, 56), BEHIND, BEFORE),
    VGG_CONV(512, IMAGE(256, 28, 28), BEFORE),
    VGG_CONV(512, IMAGE(512, 28, 28), BEHIND, BEFORE),
    VGG_CONV(512, IMAGE(512, 14, 14), BEHIND, BEFORE),
    VGG("max_pool", "size=2", IMAGE(64, 224, 224)),
    VGG("max_pool", "size=2", IMAGE(128, 112, 112)),
    VGG("max_pool", "size=2", IMAGE(256, 56, 56)),
    VGG("max_pool", "size=2", IMAGE(512, 28, 28)),
    VGG("max_pool", "size=2", IMAGE(512, 14, 14)),

    RESNET_CONV(64, 7, 2, 3, IMAGE(3, 224, 224), FIRST),
    RESNET_CONV(64, 1, 1, 0, IMAGE(64, 56, 56)),
    RESNET_CONV(64, 3, 1, 1, IMAGE(64, 56, 56)),
    RESNET_CONV(256, 1, 1, 0, IMAGE(64, 56, 56)),
    RESNET_CONV(64, 1, 1, 0, IMAGE(256, 56, 56)),
    RESNET_CONV(128, 1, 1, 0, IMAGE(256, 56, 56)),
    RESNET_CONV(128, 3, 2, 1, IMAGE(128, 56, 56)),
    RESNET_CONV(512, 1, 1, 0, IMAGE(128, 28, 28)),
    RESNET_CONV(512, 1, 2, 0, IMAGE(256, 56, 56)),
    RESNET_CONV(128, 1, 1, 0, IMAGE(512, 28, 28)),
    RESNET_CONV(128, 3, 1, 1, IMAGE(128, 28, 28)),
    RESNET_CONV(256, 1, 1, 0, IMAGE(512, 28, 28)),
    RESNET_CONV(256, 3, 2, 1, IMAGE(256, 28, 28)),
    RESNET_CONV(1024, 1, 1, 0, IMAGE(256, 14, 14)),
    RESNET_CONV(1024, 1, 2, 0, IMAGE(512, 28, 28)),
    RESNET_CONV(256, 1, 1, 0, IMAGE(1024, 14, 14)),
    RESNET_CONV(256, 3, 1, 1, IMAGE(256, 14, 14)),
    RESNET_CONV(512, 1, 1, 0, IMAGE(1024, 14, 14)),
    RESNET_CONV(512, 3, 2, 1, IMAGE(512, 14, 14)),
    RESNET_CONV(2048, 1, 1, 0, IMAGE(512, 7, 7)),
    RESNET_CONV(2048, 1, 2, 0, IMAGE(1024, 14, 14)),
    RESNET_CONV(512, 1, 1, 0, IMAGE(2048, 7, 7)),
    RESNET_CONV(512, 3, 1, 1, IMAGE(512, 7, 7)),
    RESNET("batch_norm", "activation=relu", IMAGE(64, 112, 112)),
    RESNET("batch_norm", "", IMAGE(256, 56, 56)),
    RESNET("batch_norm", "activation=relu", IMAGE(512, 7, 7)),
    RESNET("relu", "", IMAGE(256, 56, 56)),
    RESNET("add", "", IMAGE(256, 56, 56), .inputs = 2),
    RESNET("max_pool", "size=3 stride=2 padding=same", IMAGE(64, 112, 112)),
    RESNET("global_average_pool", "", IMAGE(2048, 7, 7)),
    RESNET("dense", "units=1000", VECTOR(2048)),
    RESNET("softmax", "", VECTOR(1000)),

    MOBILE_DEPTH(32, 1, IMAGE(32, 112, 112)),
    MOBILE_DEPTH(96, 2, IMAGE(96, 112, 112)),
    MOBILE_DEPTH(144, 1, IMAGE(144, 56, 56)),
    MOBILE_DEPTH(192, 1, IMAGE(192, 28, 28)),
    MOBILE_DEPTH(384, 1, IMAGE(384, 14, 14)),
    MOBILE_DEPTH(960, 1, IMAGE(960, 7, 7)),
    MOBILE_POINT(96, IMAGE(16, 112, 112)),
    MOBILE_POINT(24, IMAGE(144, 56, 56)),
    MOBILE_POINT(192, IMAGE(32, 28, 28)),
    MOBILE_POINT(96, IMAGE(384, 14, 14)),
    MOBILE_POINT(320, IMAGE(960, 7, 7)),
    MOBILE("relu6", "", IMAGE(144, 56, 56)),

    ARRANGE("concat", "", IMAGE(128, 56, 56), .inputs = 2, .second = IMAGE(32, 56, 56)),
    ARRANGE("concat", "", IMAGE(512, 14, 14), .inputs = 4),
    ARRANGE("slice", "c=[64,192]", IMAGE(256, 56, 56)),
    ARRANGE("pad", "padding=1", IMAGE(64, 112, 112)),
    ARRANGE("pad", "padding=3 mode=reflect", IMAGE(64, 112, 112)),
    ARRANGE("crop", "cropping=2", IMAGE(64, 112, 112)),
    ARRANGE("upsample", "", IMAGE(128, 28, 28)),
    ARRANGE("upsample", "interpolation=bilinear", IMAGE(128, 28, 28)),
    ARRANGE("upsample", "size=8 interpolation=bilinear", IMAGE(21, 28, 28)),
    ARRANGE("global_max_pool", "", IMAGE(512, 14, 14)),
    ARRANGE("add", "", IMAGE(96, 56, 56), .inputs = 2, .second = VECTOR(96)),
    ARRANGE("multiply", "", IMAGE(96, 56, 56), .inputs = 2, .second = VECTOR(96)),
    ARRANGE("multiply", "", IMAGE(480, 14, 14), .inputs = 2, .second = VECTOR(480)),

    OTHER("conv2d", "filters=128 kernel=4 stride=2 padding=1 bias=false", IMAGE(64, 56, 56)),
    OTHER("conv2d_transpose", "filters=64 kernel=4 stride=2 padding=1 bias=false",
          IMAGE(128, 28, 28)), /* of the convolution above */
    OTHER("conv2d_transpose", "filters=64 kernel=2 stride=2", IMAGE(128, 28, 28)),
    OTHER("batch_norm", "", IMAGE(64, 56, 56)),
    OTHER("group_norm", "", IMAGE(64, 56, 56)),
    OTHER("group_norm", "groups=1", IMAGE(256, 28, 28)),
    OTHER("layer_norm", "", IMAGE(96, 56, 56)),
    OTHER("layer_norm", "", {2, {128, 512}}),
    OTHER("local_response_norm", "", IMAGE(96, 55, 55)),
    OTHER("prelu", "", IMAGE(64, 56, 56)),
    OTHER("selu", "", IMAGE(64, 56, 56)),

    RECURRENT(64, "lstm", 128, 128),
    RECURRENT(512, "lstm", 128, 128),
    RECURRENT(64, "lstm", 256, 256),
    RECURRENT(512, "lstm", 256, 256),
    RECURRENT(64, "gru", 128, 128),
    RECURRENT(64, "rnn", 128, 128),
    TEXT(64, "attention", "heads=4", {2, {128, 768}}),
    TEXT(32, "attention", "heads=4", {2, {512, 768}}),
    TEXT(32, "attention", "heads=6 causal=true", {2, {256, 1152}}),

    MLP("dense", "units=1024 activation=relu", VECTOR(784), FIRST),
    MLP("dense", "units=1024 activation=relu", VECTOR(1024)),
    MLP("dense", "units=10", VECTOR(1024)),
    {0},
};

int lk_bench_case_inputs(const struct lk_bench_case *c, struct lk_shape *x)
{
    const int count = c->inputs > 0 ? c->inputs : 1;
    for (int i = 0; i < count; i++)
        x[i] = i == 1 && c->second.rank > 0 ? c->second : c->x;
    return count;
}
