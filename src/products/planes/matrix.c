/* Dense layers of samples in plane tiles. See cl/products/planes/matrix.cl. */
#include "products/planes/planes.h"

#include "base/fail.h"
#include <math.h>
#include <stdio.h>

enum { VECTORS = 4 }; /* as there */

struct matrix {
    struct lk_product_shape shape;
    struct lk_kernel *kernel;
};

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return setup->tiling.planes && job->shape->is_matrix;
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    (void)setup;
    return lk_product_adds(job->shape);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    char text[32];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct matrix), state));
    struct matrix *m = *state;
    m->shape = *job->shape;
    snprintf(text, sizeof text, "-DBIAS=%d", m->shape.bias);
    return lk_product_kernel(setup, "products/planes/matrix", "planes_matrix", text,
                             &m->kernel);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct matrix *m = state;
    const int64_t units = m->shape.filters;
    const struct lk_grid grid = {{lk_divide_up(units, VECTORS * setup->tiling.vector), 1, 1},
                                 1};
    return LK_ENQUEUE(m->kernel, grid, LK_BUF(run->x), LK_BUF(run->w), LK_BUF(run->bias),
                      LK_BUF(run->y), LK_REAL(m->shape.relu ? 0 : -INFINITY),
                      LK_INT(m->shape.channels), LK_INT(units), LK_INT(setup->tiling.tiles));
}

const struct lk_product_verbs lk_planes_matrix = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};
