/* A replica's parameters, from and to the host. */
#include "base/fail.h"
#include "base/orthogonal.h"
#include "base/random.h"
#include "graph/replica_internal.h"
#include <math.h>
#include <stdlib.h>

const struct lk_param *lk_replica_param(const struct lk_replica *replica, int index)
{
    return index >= 0 && index < replica->param_count ? &replica->params[index] : NULL;
}

struct lk_buffer *lk_replica_weights(struct lk_replica *replica)
{
    replica->weights_are_new = true;
    return replica->weights;
}

struct lk_buffer *lk_replica_gradients(struct lk_replica *replica)
{
    return replica->gradients;
}

int64_t lk_replica_trainable_count(const struct lk_replica *replica)
{
    return replica->trainable_count;
}

int64_t lk_replica_gradient_count(const struct lk_replica *replica)
{
    return replica->gradient_count;
}

int64_t lk_replica_batch(const struct lk_replica *replica)
{
    return replica->config.batch;
}

const struct lk_tiling *lk_replica_tiling(const struct lk_replica *replica)
{
    return &replica->tiling;
}

enum lk_dtype lk_replica_real(const struct lk_replica *replica)
{
    return replica->config.real;
}

enum lk_status lk_replica_write_param(struct lk_replica *replica, int index, const void *from)
{
    return lk_buffer_write_surely(replica->weight_views[index], 0,
                                  lk_buffer_bytes(replica->weight_views[index]), from);
}

struct lk_param_penalties lk_param_penalties(const struct lk_param *param)
{
    const bool has_any = param->is_trainable && lk_param_is_weight(&param->spec);
    return has_any ? (struct lk_param_penalties){param->l1, param->l2}
                   : (struct lk_param_penalties){0};
}

enum lk_status lk_replica_read_param(const struct lk_replica *replica, int index, void *to)
{
    return lk_buffer_read(replica->weight_views[index], 0,
                          lk_buffer_bytes(replica->weight_views[index]), to);
}

enum { DRAWN = 4 }; /* elements that share one draw of the random generator */

/* The first values of elements e to e + 3 of a parameter; e is a multiple of four. */
static void initial(const struct lk_param_spec *spec, double limit, uint64_t seed,
                    uint32_t stream, int64_t e, double *values)
{
    if (limit > 0) {
        const struct lk_random4 r =
            lk_random(seed, LK_RANDOM_INIT, stream, (uint64_t)e / DRAWN);
        for (int i = 0; i < DRAWN; i++)
            values[i] = (2 * lk_random_unit(r.v[i]) - 1) * limit;
        return;
    }
    for (int i = 0; i < DRAWN; i++)
        values[i] = spec->init == LK_INIT_FORGET_GATE ? (e + i) / (spec->shape.dim[0] / 4) == 1
                    : spec->init == LK_INIT_QUARTER   ? 0.25
                                                      : spec->init == LK_INIT_ONES;
}

/* Of uniform first values the largest; 0: they are not drawn. */
static double limit_of(const struct lk_param_spec *spec)
{
    if (spec->init == LK_INIT_UNIFORM)
        return 0.05;
    return spec->init == LK_INIT_GLOROT_UNIFORM
               ? sqrt(6.0 / (double)(spec->fan_in + spec->fan_out))
               : 0;
}

static enum lk_status init_param(struct lk_replica *replica, int index, uint64_t seed,
                                 void *values)
{
    const struct lk_param *param = &replica->params[index];
    const double limit = limit_of(&param->spec);
    double *matrix = NULL, drawn[DRAWN] = {0};
    if (param->spec.init == LK_INIT_ORTHOGONAL)
        LK_TRY(lk_make_orthogonal(param->spec.shape.dim[0], param->spec.shape.dim[1], seed,
                                  (uint32_t)index, &matrix));
    for (int64_t e = 0; e < param->count; e++) {
        if (!matrix && e % DRAWN == 0)
            initial(&param->spec, limit, seed, (uint32_t)index, e, drawn);
        const double value = matrix ? matrix[e] : drawn[e % DRAWN];
        if (replica->config.real == LK_F64)
            ((double *)values)[e] = value;
        else
            ((float *)values)[e] = (float)value;
    }
    free(matrix);
    replica->weights_are_new = true;
    return lk_replica_write_param(replica, index, values);
}

enum lk_status lk_replica_init_weights(struct lk_replica *replica, uint64_t seed)
{
    for (int i = 0; i < replica->param_count; i++) {
        if (replica->params[i].is_elsewhere)
            continue;
        const size_t bytes =
            (size_t)replica->params[i].count * lk_dtype_bytes(replica->config.real);
        void *values = malloc(bytes);
        if (!values)
            return lk_fail_memory("a parameter", bytes);
        const enum lk_status status = init_param(replica, i, seed, values);
        free(values);
        LK_TRY(status);
    }
    return LK_OK;
}
