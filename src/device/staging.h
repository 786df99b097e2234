/* Pinned host memory, and the last transfer from or to it, which can be waited for. Floor 1. */
#ifndef LK_DEVICE_STAGING_H
#define LK_DEVICE_STAGING_H

#include "device/device.h"

struct lk_staging;

/* `bytes` of pinned host memory, mapped until destroyed. */
LK_MUST_CHECK enum lk_status lk_staging_create(struct lk_device *device, size_t bytes,
                                               struct lk_staging **staging);
void lk_staging_destroy(struct lk_staging *staging);
void *lk_staging_memory(struct lk_staging *staging);

/* Copy the first `bytes` bytes from the staging memory to the start of a buffer, or back;
 * neither waits. */
LK_MUST_CHECK enum lk_status lk_staging_enqueue_write(struct lk_staging *staging,
                                                      struct lk_buffer *to, size_t bytes);
LK_MUST_CHECK enum lk_status
lk_staging_enqueue_read(struct lk_staging *staging, const struct lk_buffer *from, size_t bytes);

/* Waits for the staging's last transfer; at once where there was none. */
LK_MUST_CHECK enum lk_status lk_staging_wait(struct lk_staging *staging);

/* Copies a whole buffer to the staging memory while kernels that are enqueued later run
 * already. Before one that changes the buffer is enqueued, lk_staging_enqueue_barrier() has to
 * be. */
LK_MUST_CHECK enum lk_status lk_staging_enqueue_copy(struct lk_staging *staging,
                                                     const struct lk_buffer *from);

/* Lets kernels that are enqueued later wait for the staging's last transfer. */
LK_MUST_CHECK enum lk_status lk_staging_enqueue_barrier(struct lk_staging *staging);

#endif
