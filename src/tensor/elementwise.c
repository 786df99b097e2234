/* Deals arrays out to work-groups: 4096 reals each on CPUs, two vectors a work-item on GPUs. */
#include "tensor/elementwise.h"

#include "tensor/tensor.h"
#include <stdio.h>

enum {
    CPU_GROUP = 4096, /* reals */
    GPU_ITEMS = 256,
    GPU_STEPS = 2, /* vectors (on GPUs: of one real) that a work-item processes */
};

struct lk_elementwise lk_elementwise_make(const struct lk_device_info *info)
{
    struct lk_elementwise made = {
        .vector = info->vector, .items = 1, .group = CPU_GROUP / info->vector};
    if (info->device_class == LK_CLASS_GPU) {
        made.items = GPU_ITEMS;
        while ((size_t)made.items > info->group_items)
            made.items /= 2;
        made.group = (int64_t)made.items * GPU_STEPS;
    }
    return made;
}

void lk_elementwise_define(const struct lk_elementwise *elementwise, char *options,
                           size_t bytes)
{
    snprintf(options, bytes, "-DITEMS=%d -DGROUP=%lld", elementwise->items,
             (long long)elementwise->group);
}

int64_t lk_elementwise_vectors(const struct lk_elementwise *elementwise, int64_t count)
{
    return lk_divide_up(count, elementwise->vector);
}

struct lk_grid lk_elementwise_grid(const struct lk_elementwise *elementwise, int64_t count)
{
    const int64_t vectors = lk_elementwise_vectors(elementwise, count);
    return (struct lk_grid){{lk_divide_up(vectors, elementwise->group), 1, 1},
                            elementwise->items};
}

int64_t lk_elementwise_padded(int64_t count)
{
    return lk_divide_up(count, LK_PAD) * LK_PAD;
}
