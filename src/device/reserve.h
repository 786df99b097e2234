/* Memory of a device that is the host's own: a thread brings in its pages while the host does
 * something else, kernels are compiled above all, and buffers are cut from it. Floor 1. Private
 * to src/device. */
#ifndef LK_DEVICE_RESERVE_H
#define LK_DEVICE_RESERVE_H

#include "device/opencl.h"

struct lk_reserve;

/* Sets memory aside and starts the thread; NULL where the system has none. */
struct lk_reserve *lk_reserve_create(size_t bytes);

/* Ends the thread, and frees the memory as soon as no buffer lies in it. NULL is fine. */
void lk_reserve_release(struct lk_reserve *reserve);

/* Cuts a buffer from the memory; it goes back there when OpenCL has released the buffer and all
 * that use it. `*used`: bytes at its beginning that other buffers may have had before; those
 * behind them are 0. Returns NULL where there is no room. NULL is fine. */
cl_mem lk_reserve_cut(struct lk_reserve *reserve, cl_context context, size_t bytes,
                      size_t *used);

#endif
