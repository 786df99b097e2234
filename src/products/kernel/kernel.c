/* What the kernels of all products ask of a setup and a shape. */
#include "products/kernel/kernel.h"

#include "base/fail.h"

static void destroy_kernel(void *kernel)
{
    lk_kernel_destroy(kernel);
}

enum lk_status lk_product_kernel(const struct lk_product_setup *setup, const char *source,
                                 const char *name, const char *options,
                                 struct lk_kernel **kernel)
{
    const struct lk_kernel_spec spec = {.source = source,
                                        .name = name,
                                        .options = options,
                                        .real_bytes = (int)lk_dtype_bytes(setup->real),
                                        .lanes = setup->tiling.lanes,
                                        .stores_half = setup->stores_half};
    LK_TRY(lk_kernel_create(setup->device, &spec, kernel));
    const enum lk_status status = lk_arena_keep(setup->arena, destroy_kernel, *kernel);
    if (status != LK_OK)
        *kernel = NULL;
    return status;
}

enum lk_dtype lk_product_stored(const struct lk_product_setup *setup)
{
    return setup->stores_half ? LK_F16 : setup->real;
}

int lk_product_items(const struct lk_product_setup *setup)
{
    return setup->tiling.lanes / setup->tiling.vector;
}

double lk_product_adds(const struct lk_product_shape *s)
{
    return (double)(s->groups * s->channels * s->filters) *
           (double)(s->axis[0].taps * s->axis[1].taps) *
           (double)(s->axis[0].all_out * s->axis[1].all_out);
}

/* So many work-items hide what a compute unit waits for, of which a large GPU has so many. It
 * is not the device's own number: what is chosen decides the bits of a run, which parts of a
 * device and devices of another size share. */
double lk_product_idleness(const struct lk_product_setup *setup, double items)
{
    const double wanted = 256.0 * 128;
    return setup->tiling.vector == 1 && items < wanted ? wanted / items : 1;
}
