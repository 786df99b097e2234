/* CLBlast, the tuned matrix products for GPUs, behind one function. Floor 1. Knows no tensor.
 */
#ifndef LK_DEVICE_BLAS_H
#define LK_DEVICE_BLAS_H

#include "device/device.h"

/* c = alpha A B + beta c. A: [m, k], stored [k, m] if a_turned; B: [k, n], stored [n, k] if
 * b_turned; c: [m, n]; all row-major without gaps, c apart from a and b. real_bytes: 4 float, 8
 * double. Matrices begin at element `first` of their buffers; of a batch, the next one `step`
 * elements on (a and b may stay where they are: 0). What is to be copied first goes into
 * scratch, where a product takes one; NULL: CLBlast allocates it. */
struct lk_gemm {
    int real_bytes;
    bool a_turned, b_turned;
    int64_t m, n, k;
    double alpha, beta;
    const struct lk_buffer *a, *b;
    struct lk_buffer *c;
    int64_t a_first, b_first, c_first;
    int64_t batch, a_step, b_step, c_step; /* batch 0: one product */
    struct lk_buffer *scratch;
};

/* Bytes of scratch, of which a batch uses the same for one product after the other; 0: none.
 * Follows from sizes, and from whether matrices begin where their buffers do. Behind a
 * lk_blas_check() that has passed. fails: LK_E_UNSUPPORTED CLBlast fails */
LK_MUST_CHECK enum lk_status lk_blas_scratch(struct lk_device *device,
                                             const struct lk_gemm *gemm, size_t *bytes);

/* Enqueues; the first call for a device and number type does lk_blas_check() before, with tiles
 * NULL, and then waits. fails: as that; LK_E_ARGUMENT sizes below 1, a buffer that is too small
 */
LK_MUST_CHECK enum lk_status lk_blas_gemm(struct lk_device *device, const struct lk_gemm *gemm);

/* Tiles of CLBlast's kernels for floats, by name: first "own", those that CLBlast has for the
 * device, last "plain", which ask for the least of it. NULL past the last. They are blockings:
 * the order of sums is the same with all. */
const char *lk_blas_tiles(int index);

/* Sets such tiles for all of this process that use the device (NULL: keeps those that are set;
 * doubles have no others than CLBlast's own), builds CLBlast's kernels for it and compares
 * small and large products with what they must be; waits; several threads take turns, because
 * CLBlast's first use is not thread-safe. Done once for the same tiles. Own ones cannot be had
 * back behind others, as CLBlast's C interface does not tell them.
 * fails: LK_E_UNSUPPORTED wrong products, CLBlast fails, or no doubles; other tiles are in use,
 * or no tiles have that name; LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_blas_check(struct lk_device *device, int real_bytes,
                                           const char *tiles);

/* lk_blas_gemm() without any check: for lk_blas_check(). */
LK_MUST_CHECK enum lk_status lk_blas_enqueue(struct lk_device *device,
                                             const struct lk_gemm *gemm);

/* Sets tiles number `index`, not the first, for lk_blas_check(). */
LK_MUST_CHECK enum lk_status lk_blas_override(struct lk_device *device, int index);

/* Whether it failed that check, with tiles of its own or plain ones: something else has to
 * multiply. */
bool lk_blas_is_wrong(const struct lk_device *device, int real_bytes);

/* The device uses no tiles any more; of lk_device_close(). */
void lk_blas_leave(struct lk_device *device);

#endif
