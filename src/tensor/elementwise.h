/* How elementwise kernels deal one long array out to work-groups (cl/lib/update.cl). Floor 2.
 * Knows no kernel. */
#ifndef LK_TENSOR_ELEMENTWISE_H
#define LK_TENSOR_ELEMENTWISE_H

#include "device/device.h"

/* Arrays are padded to a multiple of this many reals; the vector of every device divides it. */
enum { LK_PAD = 32 };

struct lk_elementwise {
    int vector, items; /* reals of a vector; work-items of a group */
    int64_t group;     /* vectors of a group */
};

/* Elements are independent: how they are dealt out changes no bit. */
struct lk_elementwise lk_elementwise_make(const struct lk_device_info *info);

/* Writes "-DITEMS=... -DGROUP=...". */
void lk_elementwise_define(const struct lk_elementwise *elementwise, char *options,
                           size_t bytes);

/* The vectors that hold `count` reals, and work-groups for them. */
int64_t lk_elementwise_vectors(const struct lk_elementwise *elementwise, int64_t count);
struct lk_grid lk_elementwise_grid(const struct lk_elementwise *elementwise, int64_t count);

/* `count` reals with their padding. */
int64_t lk_elementwise_padded(int64_t count);

#endif
