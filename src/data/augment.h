/* The last stage of a sample on the host: cropped to the size that is wanted and, in training,
 * moved, mirrored and turned by chance. Floor 3. Knows no data set and no batch. Colours are
 * not changed here: after the upload a device can do that for nothing. */
#ifndef LK_DATA_AUGMENT_H
#define LK_DATA_AUGMENT_H

#include "base/option.h"
#include <stdbool.h>
#include <stdint.h>

/* What lk_batches_options.augment says. A sample is turned, then cropped, then mirrored. */
struct lk_augment_options {
    double rotate;   /* by up to so many degrees */
    int64_t padding; /* a crop may reach so many pixels beyond the edge */
    int flip;        /* enum lk_flip */
};

enum lk_flip { LK_FLIP_NONE, LK_FLIP_HORIZONTAL, LK_FLIP_VERTICAL, LK_FLIP_BOTH };

/* From [from_height][from_width][channels] to [height][width][channels]. */
struct lk_augment {
    struct lk_augment_options options;
    bool is_random; /* false: the middle is cut out, nothing else */
    uint64_t seed;
    int from_height, from_width, height, width, channels;
};

/* text: "flip=horizontal padding=4 rotate=10"; "": nothing by chance but the place of a crop;
 * NULL: nothing by chance. fails: LK_E_ARGUMENT options, or a size above the sample's */
LK_MUST_CHECK enum lk_status lk_augment_parse(struct lk_augment *augment, const char *text);

/* Whether lk_augment_apply() may change anything. */
bool lk_augment_is_any(const struct lk_augment *augment);

/* Makes a sample; chance depends on nothing but (seed, epoch, sample). What lies outside the
 * old one is as the nearest pixel of its edge. */
void lk_augment_apply(const struct lk_augment *augment, int64_t epoch, int64_t sample,
                      const uint8_t *from, uint8_t *to);

#endif
