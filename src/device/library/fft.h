/* Fourier transforms of images by the library clFFT. Floor 1. Knows no tensor. */
#ifndef LK_DEVICE_LIBRARY_FFT_H
#define LK_DEVICE_LIBRARY_FFT_H

#include "device/device.h"

struct lk_fft;

/* Whether the device has work-groups large enough for clFFT, which otherwise ends the process.
 */
bool lk_fft_is_possible(const struct lk_device *device);

/* A plan for `batch` real images [h][w], one after the other, and their spectra [h][w/2 + 1] of
 * interleaved complex numbers. h and w have no prime factor above 13. Builds kernels and waits;
 * threads take turns, because clFFT's planning is not thread-safe.
 * fails: LK_E_ARGUMENT sizes; LK_E_UNSUPPORTED no doubles, small work-groups; LK_E_BUILD,
 * LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_fft_create(struct lk_device *device, int real_bytes, int64_t h,
                                           int64_t w, int64_t batch, struct lk_fft **fft);
void lk_fft_destroy(struct lk_fft *fft);

/* Reals of all images, and of all spectra, of the batch. */
int64_t lk_fft_image_count(const struct lk_fft *fft);
int64_t lk_fft_spectrum_count(const struct lk_fft *fft);

/* spectrum[u, v] = sum over i, j of image[i, j] exp(-2 pi sqrt(-1) (u i / h + v j / w)).
 * Enqueues. fails: LK_E_ARGUMENT a buffer that is too small; LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_fft_enqueue_forward(struct lk_fft *fft,
                                                    const struct lk_buffer *image,
                                                    struct lk_buffer *spectrum);

/* The image of that spectrum, divided by h w. The spectrum may be overwritten. Enqueues. */
LK_MUST_CHECK enum lk_status
lk_fft_enqueue_inverse(struct lk_fft *fft, struct lk_buffer *spectrum, struct lk_buffer *image);

#endif
