/* The last stage of a sample on the host: turned and cropped, by chance or to its middle.
 * Floor 4. Knows no data set and no batch. Mirroring and colours come after the upload, where
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

/* Makes a sample; chance depends on nothing but (seed, epoch, sample). What lies outside the
 * old one is as the nearest pixel of its edge. */
void lk_augment_apply(const struct lk_augment *augment, int64_t epoch, int64_t sample,
                      const uint8_t *from, uint8_t *to);

#endif
