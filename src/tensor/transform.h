/* What a device does to uint8 images on their way into batch tiles. Floor 2. Knows no data set:
 * what is by chance was drawn elsewhere, a record for each sample. */
#ifndef LK_TENSOR_TRANSFORM_H
#define LK_TENSOR_TRANSFORM_H

#include <stdbool.h>

/* Colours are changed in a sample of 1 or 3 channels, all of whose values x lie in 0..255; f is
 * the sample's factor, and each stage ends by clamping to 0..255:
 *   brightness  f x
 *   contrast    f x + (1 - f) mean of grey over the sample
 *   saturation  f x + (1 - f) grey
 * grey = 0.2989 r + 0.587 g + 0.114 b, or the value itself of 1 channel.
 * source: torchvision/transforms/functional (adjust_brightness, ...), on tensors of floats */
enum lk_colour_stage {
    LK_COLOUR_NONE,
    LK_COLOUR_BRIGHTNESS,
    LK_COLOUR_CONTRAST,
    LK_COLOUR_SATURATION
};

enum { LK_COLOUR_STAGES = 3, LK_TRANSFORM_CHANNELS = 4 };

/* Of all samples; {0} leaves them as they are. */
struct lk_transform {
    bool normalizes; /* y = x * scale + shift by these, not by those of the model's input */
    double scale[LK_TRANSFORM_CHANNELS], shift[LK_TRANSFORM_CHANNELS];
    bool reverses; /* the last channel becomes the first; scale and shift are of what comes out
                    */
    bool flips;
    /* in their order; LK_COLOUR_NONE is the end */
    enum lk_colour_stage stages[LK_COLOUR_STAGES];
    int channels; /* 1 or 3 where there are stages */
};

/* Of one sample, as the device reads it: a factor for each stage. */
enum {
    LK_FLIP_LEFT_RIGHT = 1,
    LK_FLIP_UP_DOWN = 2
}; /* left and right change places; up, down */
struct lk_transform_params {
    float factors[LK_COLOUR_STAGES], mirror;
};

/* Whether samples have records. */
static inline bool lk_transform_has_params(const struct lk_transform *transform)
{
    return transform->flips || transform->stages[0] != LK_COLOUR_NONE;
}

#endif
