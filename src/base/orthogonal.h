/* Random orthogonal matrices, the same to the bit on every host. Floor 0. */
#ifndef LK_BASE_ORTHOGONAL_H
#define LK_BASE_ORTHOGONAL_H

#include <lockstep/status.h>
#include <stdint.h>

/* A matrix [rows][columns] whose rows, or columns where they are fewer, are orthogonal and of
 * length 1: a pure function of its size, seed and stream. The caller frees it. fails:
 * LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_make_orthogonal(int64_t rows, int64_t columns, uint64_t seed,
                                                uint32_t stream, double **values);

#endif
