/* Number types and shapes. Floor 2. Knows no operation, no graph. */
#ifndef LOCKSTEP_TENSOR_H
#define LOCKSTEP_TENSOR_H

#include <lockstep/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum lk_dtype { LK_F32, LK_F64, LK_U8, LK_I32, LK_F16 };

enum { LK_MOST_AXES = 4 };

/* The shape of one sample, or of a parameter: an image [c, h, w], a vector [k], a sequence
 * [t, k], a single number []. */
struct lk_shape {
    int rank;
    int64_t dim[LK_MOST_AXES];
};

#ifdef __cplusplus
}
#endif
#endif
