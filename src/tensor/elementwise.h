/* How kernels that treat each element of a long array alone divide it among work-groups
 * (cl/lib/update.cl): optimizers and sums of gradients. Floor 2. Knows no kernel. */
#ifndef LK_TENSOR_ELEMENTWISE_H
#define LK_TENSOR_ELEMENTWISE_H

#include "device/device.h"

/* Arrays are padded to a multiple of this many reals; the vector of every device divides it. */
enum { LK_PAD = 32 };

struct lk_elementwise {
    int vector;    /* reals of a vector */
    int items;     /* work-items of a work-group */
    int64_t group; /* vectors that a work-group processes */
};

/* The division for a device. Elements are independent, so it changes no bit. */
struct lk_elementwise lk_elementwise_make(const struct lk_device_info *info);

/* Writes the kernels' build options, "-DITEMS=... -DGROUP=...". */
void lk_elementwise_define(const struct lk_elementwise *elementwise, char *options,
                           size_t bytes);

/* How many vectors hold `count` reals, and the work-groups that process them. */
int64_t lk_elementwise_vectors(const struct lk_elementwise *elementwise, int64_t count);
struct lk_grid lk_elementwise_grid(const struct lk_elementwise *elementwise, int64_t count);

/* `count` rounded up to a multiple of LK_PAD. */
int64_t lk_elementwise_padded(int64_t count);

#endif
