/* The last stage of a sample on the host: rotated and cropped, at random or to its middle.
 * Floor 4. Knows no data set and no batch. Mirroring and colours follow on the device, where
 * they cost nothing: see pipeline.h. */
#ifndef LK_DATA_STAGES_AUGMENT_H
#define LK_DATA_STAGES_AUGMENT_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

/* From [from_height][from_width][channels] to [height][width][channels]. */
struct lk_augment {
    double rotate;        /* by up to so many degrees */
    bool crops_by_chance; /* else the middle is cut out */
    int padding;          /* then a crop may reach so many pixels beyond the edge */
    uint64_t seed;
    int from_height, from_width, height, width, channels;
};

/* fails: LK_E_ARGUMENT, a size above the sample's */
LK_MUST_CHECK enum lk_status lk_augment_check(const struct lk_augment *augment);

/* Whether lk_augment_apply() may change anything. */
bool lk_augment_is_any(const struct lk_augment *augment);

/* Makes a sample; what is random is a function of (seed, epoch, sample) alone. Outside the old
 * sample its nearest edge pixel is repeated. */
void lk_augment_apply(const struct lk_augment *augment, int64_t epoch, int64_t sample,
                      const uint8_t *from, uint8_t *to);

#endif
