/* Matrices in other orders. */
#include "base/transpose.h"

void lk_transpose(const float *from, int64_t rows, int64_t columns, float *to)
{
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++)
            *to++ = from[r * columns + c];
}
