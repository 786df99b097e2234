/* Matrix products by CLBlast, a library of tuned OpenCL kernels. Floor 1. Knows no tensor. */
#ifndef LK_DEVICE_LIBRARY_BLAS_H
#define LK_DEVICE_LIBRARY_BLAS_H

#include "device/device.h"

/* c = alpha A B + beta c. A: [m, k], stored transposed [k, m] if a_transposed; B: [k, n],
 * stored [n, k] if b_transposed; c: [m, n]; row-major without gaps; c does not overlap a and b.
 * real_bytes: 4 float, 8 double. A matrix begins at element `first` of its buffer; in a batch
 * the next one begins `stride` elements later (0: all products use the same a or b). CLBlast
 * copies some matrices before it multiplies: into `scratch`, or where that is NULL into memory
 * of its own. */
struct lk_gemm {
    int real_bytes;
    bool a_transposed, b_transposed;
    int64_t m, n, k;
    double alpha, beta;
    const struct lk_buffer *a, *b;
    struct lk_buffer *c;
    int64_t a_first, b_first, c_first;
    int64_t batch, a_stride, b_stride, c_stride; /* batch 0: one product */
    struct lk_buffer *scratch;
};

/* Bytes of scratch that the product needs; 0: none. The products of a batch use the same
 * scratch one after the other. Depends on the sizes and on whether each `first` is 0. Call it
 * after lk_blas_check() has passed. fails: LK_E_UNSUPPORTED CLBlast fails */
LK_MUST_CHECK enum lk_status lk_blas_scratch(struct lk_device *device,
                                             const struct lk_gemm *gemm, size_t *bytes);

/* Enqueues. The first call for a device and number type calls lk_blas_check() with tiles NULL
 * before, which waits. fails: as that; LK_E_ARGUMENT sizes below 1, a buffer that is too small
 */
LK_MUST_CHECK enum lk_status lk_blas_gemm(struct lk_device *device, const struct lk_gemm *gemm);

/* Names of tiles (block sizes) for CLBlast's float kernels: the first, "own", are CLBlast's own
 * for the device; the last, "plain", need the least local memory and the smallest work-groups.
 * NULL past the last. All tiles add in the same order, so they change no bit. */
const char *lk_blas_tiles(int index);

/* Sets the tiles (NULL: keeps those that are set; doubles always have CLBlast's own) for every
 * use of the device in this process, builds CLBlast's kernels and compares small and large
 * products with known answers; once for the same tiles. Waits; threads take turns, because
 * CLBlast's first use is not thread-safe. CLBlast's own tiles cannot be set again after others,
 * since its C interface does not give their numbers.
 * fails: LK_E_UNSUPPORTED wrong products, CLBlast fails, no doubles, another user of the device
 * has set other tiles, or an unknown name; LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_blas_check(struct lk_device *device, int real_bytes,
                                           const char *tiles);

/* lk_blas_gemm() without any check: for lk_blas_check(). */
LK_MUST_CHECK enum lk_status lk_blas_enqueue(struct lk_device *device,
                                             const struct lk_gemm *gemm);

/* Sets tiles number `index`, which is not 0; for lk_blas_check() alone. */
LK_MUST_CHECK enum lk_status lk_blas_set_tiles(struct lk_device *device, int index);

/* Whether CLBlast failed the check with its own or the plain tiles, so that other kernels have
 * to multiply. */
bool lk_blas_has_failed(const struct lk_device *device, int real_bytes);

/* Ends the device's use of its tiles, so that another user may set others. Called by
 * lk_device_close(). */
void lk_blas_release_tiles(struct lk_device *device);

#endif
