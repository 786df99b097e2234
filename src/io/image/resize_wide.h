/* The loops of resize.c for processors with AVX2: the same results, several times as fast.
 * Floor 1. Elsewhere there is nothing behind this. */
#ifndef LK_IO_RESIZE_WIDE_H
#define LK_IO_RESIZE_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LK_WEIGHT_BITS = 22 };

/* How each pixel of a row (or column) is made: count[i] of the old ones from first[i] on,
 * weighted with weights[i * most ..], whole numbers of 1/2^LK_WEIGHT_BITS. */
struct lk_taps {
    int most, *first, *count;
    int32_t *weights;
};

/* Whether this machine can run what follows; LOCKSTEP_WIDE=0, for tests, says no. */
bool lk_wide_is_there(void);

/* Makes `count` rows of `width` pixels of as many of `old` pixels, all of `channels` bytes.
 * room: lk_wide_room() bytes for them. */
void lk_wide_squeeze(const struct lk_taps *taps, const int size[3], int count,
                     const uint8_t *from, uint8_t *to, uint8_t *room);

/* size: old, width, channels. */
size_t lk_wide_room(const int size[3]);

/* Mixes `count` rows of `bytes` bytes each into one. */
void lk_wide_mix(const int32_t *weights, int count, const uint8_t *from, size_t bytes,
                 uint8_t *to);

#endif
