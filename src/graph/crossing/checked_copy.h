/* What crosses from a device to another one over the host, checked on its way: the sender makes
 * a checksum while it copies to a transfer buffer, the host one while it copies on, and the
 * receiver one while it takes over. Floor 5. Knows no graph.
 *
 * A transfer buffer for `bytes` bytes has lk_checked_bytes(bytes): behind the data is the
 * checksum of cl/graph/checked_copy.cl over its 32-bit words, as the sender made it. */
#ifndef LK_GRAPH_CROSSING_CHECKED_COPY_H
#define LK_GRAPH_CROSSING_CHECKED_COPY_H

#include "device/device.h"

size_t lk_checked_bytes(size_t bytes);

struct lk_checked_copy;

/* The kernels of a device, and memory in which it counts what arrives wrong, in `slots` slots.
 * Kernels can run after lk_device_build(). fails: LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_checked_copy_create(struct lk_device *device, int slots,
                                                    struct lk_checked_copy **copy);
void lk_checked_copy_destroy(struct lk_checked_copy *copy);

/* Copies `bytes` bytes, a multiple of 4, to the memory of a transfer buffer, with a checksum;
 * from there, where a checksum that is not the sender's is counted in the slot. Enqueue.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_checked_copy_send(struct lk_checked_copy *copy,
                                                  const struct lk_buffer *from,
                                                  struct lk_buffer *to, size_t bytes);
LK_MUST_CHECK enum lk_status lk_checked_copy_receive(struct lk_checked_copy *copy,
                                                     const struct lk_buffer *from,
                                                     struct lk_buffer *to, size_t bytes,
                                                     int slot);

/* Copies the data of a transfer buffer and its checksum to those of another one, on the host.
 * Whether the checksum is that of the data. */
bool lk_checked_copy_move(const void *from, void *to, size_t bytes);

/* Begin to count, from 0 on; end, so that counts can be read; wait for the first slot with
 * something wrong: -1, none has. */
LK_MUST_CHECK enum lk_status lk_checked_copy_begin(struct lk_checked_copy *copy);
LK_MUST_CHECK enum lk_status lk_checked_copy_end(struct lk_checked_copy *copy);
LK_MUST_CHECK enum lk_status lk_checked_copy_wait(struct lk_checked_copy *copy, int *slot);

#endif
