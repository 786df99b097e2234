/* The loops of resize.c for processors with AVX2: the same results, several times as fast.
 * Floor 1. Private to resize.c. On other processors lk_avx2_is_available() is false and nothing
 * else may be called. */
#ifndef LK_IO_RESIZE_AVX2_H
#define LK_IO_RESIZE_AVX2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LK_WEIGHT_BITS = 22 };

/* Pixel i of a new row (or column) is the sum of the old pixels first[i] to first[i] + count[i]
 * - 1, times weights[i * most ..], which are whole numbers of 1/2^LK_WEIGHT_BITS. */
struct lk_taps {
    int most, *first, *count;
    int32_t *weights;
};

/* Whether this machine has AVX2; LOCKSTEP_WIDE=0, for tests, makes it false. */
bool lk_avx2_is_available(void);

/* Scales `count` rows from `old` to `width` pixels of `channels` bytes. room: scratch memory of
 * lk_avx2_scratch_bytes() bytes. */
void lk_avx2_resize_rows(const struct lk_taps *taps, const int size[3], int count,
                         const uint8_t *from, uint8_t *to, uint8_t *room);

/* Bytes of scratch memory. size, here and above: old, width, channels. */
size_t lk_avx2_scratch_bytes(const int size[3]);

/* Adds `count` rows of `bytes` bytes, times their weights, into one row. */
void lk_avx2_blend_rows(const int32_t *weights, int count, const uint8_t *from, size_t bytes,
                        uint8_t *to);

#endif
