/* What a device does to uint8 images on their way into batch tiles. Floor 2. Knows no data set:
 * what is by chance was drawn elsewhere, a record for each sample. */
#ifndef LK_TENSOR_LOOK_H
#define LK_TENSOR_LOOK_H

#include <stdbool.h>

/* Colours are changed in a sample of 1 or 3 channels, all of whose values x lie in 0..255; f is
 * the sample's factor, and each stage ends by clamping to 0..255:
 *   brightness  f x
 *   contrast    f x + (1 - f) mean of grey over the sample
 *   saturation  f x + (1 - f) grey
 * grey = 0.2989 r + 0.587 g + 0.114 b, or the value itself of 1 channel.
 * source: torchvision/transforms/functional (adjust_brightness, ...), on tensors of floats */
enum lk_look_stage { LK_LOOK_NONE, LK_LOOK_BRIGHTNESS, LK_LOOK_CONTRAST, LK_LOOK_SATURATION };

enum { LK_LOOK_STAGES = 3, LK_LOOK_CHANNELS = 4 };

/* Of all samples; {0} leaves them as they are. */
struct lk_look {
    bool normalizes; /* y = x * scale + shift by these, not by those of the model's input */
    double scale[LK_LOOK_CHANNELS], shift[LK_LOOK_CHANNELS];
    bool mirrors;
    enum lk_look_stage stages[LK_LOOK_STAGES]; /* in their order; LK_LOOK_NONE is the end */
    int channels;                              /* 1 or 3 where there are stages */
};

/* Of one sample, as the device reads it: a factor for each stage. */
enum { LK_MIRROR_ROWS = 1, LK_MIRROR_COLUMNS = 2 }; /* left and right change places; up, down */
struct lk_look_draw {
    float factors[LK_LOOK_STAGES], mirror;
};

/* Whether samples have records. */
static inline bool lk_look_draws(const struct lk_look *look)
{
    return look->mirrors || look->stages[0] != LK_LOOK_NONE;
}

#endif
