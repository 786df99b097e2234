/* A chain: launches that run as one. What a driver takes to begin a kernel, and to wake its
 * threads for it, is as long as a small layer of one image takes to compute. Floor 1. Only
 * PoCL's CPUs have chains: a kernel of theirs (cl/device/chain.cl) calls those of the launches,
 * work-group by work-group, so results have the bits that they have without. */
#ifndef LK_DEVICE_CHAIN_H
#define LK_DEVICE_CHAIN_H

#include "device/device.h"

struct lk_chain;

/* *chain: NULL where the device has none. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_chain_create(struct lk_device *device, struct lk_chain **chain);
void lk_chain_destroy(struct lk_chain *chain);

/* Between these two, launches on the chain's device belong to it; writes, reads, fills and
 * copies of buffers keep their place among them, and nothing else is enqueued. The chain's
 * kernel is compiled at the end of the second time, which waits, and runs from the third on: a
 * program that computes once is not held up. What cannot be chained is launched by itself.
 * Kernels and buffers must live as long as the chain. NULL: nothing. fails: as
 * lk_kernel_enqueue() */
LK_MUST_CHECK enum lk_status lk_chain_begin(struct lk_chain *chain);
LK_MUST_CHECK enum lk_status lk_chain_end(struct lk_chain *chain);

#endif
