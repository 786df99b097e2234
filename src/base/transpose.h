/* Matrices in other orders. Floor 0. */
#ifndef LK_BASE_TRANSPOSE_H
#define LK_BASE_TRANSPOSE_H

#include <stdint.h>

/* to[c][r] = from[r][c]: an image [channels, pixels] becomes [pixels, channels], and back. */
void lk_transpose(const float *from, int64_t rows, int64_t columns, float *to);

#endif
