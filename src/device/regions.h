/* Sub-buffers of buffers: one for each region, however many views there are of it. Floor 1.
 * Private to src/device. */
#ifndef LK_DEVICE_REGIONS_H
#define LK_DEVICE_REGIONS_H

#include "device/opencl.h"

struct lk_region;

/* The sub-buffer of `bytes` bytes of `whole` from `offset` on: one that another view has, or a
 * new one. NULL and *error where there is none. */
struct lk_region *lk_region_take(struct lk_buffer *whole, size_t offset, size_t bytes,
                                 cl_int *error);
cl_mem lk_region_memory(const struct lk_region *region);
void lk_region_release(struct lk_region *region);

/* When a buffer is destroyed, before its views or after them. */
void lk_regions_leave(struct lk_buffer *whole);

#endif
