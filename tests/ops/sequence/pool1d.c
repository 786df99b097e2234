/* Pooling over time against walks over every window in double. */
#include "lengths.h"

#include <string.h>

/* As the options struct of src/ops/sequence/pool1d.c. */
struct options {
    int64_t size, stride;
    int padding; /* 0: valid */
};

struct pool {
    int64_t steps, channels, count, size, stride, before;
    bool is_valid, is_max;
};

static struct pool describe(const struct op_problem *p)
{
    const struct options *o = p->options;
    const bool is_global = p->shapes->y.rank == 1;
    struct pool pool = {.steps = p->shapes->x[0].dim[0],
                        .channels = p->shapes->x[0].dim[1],
                        .count = is_global ? 1 : p->shapes->y.dim[0]};
    pool.size = is_global ? pool.steps : o->size;
    pool.stride = is_global ? pool.steps : o->stride ? o->stride : o->size;
    pool.is_valid = !is_global && o->padding == 0;
    const int64_t missing = (pool.count - 1) * pool.stride + pool.size - pool.steps;
    pool.before = !is_global && o->padding && missing > 0 ? missing / 2 : 0;
    return pool;
}

/* Of channel c of sample n in window o: the first largest x and the mean, and which they are.
 */
struct found {
    int64_t best, first, end;
    double mean;
};

static bool find(const struct op_problem *p, const struct pool *pool, const double *const x[],
                 int64_t n, int64_t o, int64_t c, struct found *found)
{
    const int64_t valid = length_of(p, x, n), start = o * pool->stride - pool->before;
    *found = (struct found){.best = -1,
                            .first = start < 0 ? 0 : start,
                            .end = start + pool->size < valid ? start + pool->size : valid};
    if (o >= count_windows(valid, pool->size, pool->stride, pool->is_valid))
        return false;
    for (int64_t t = found->first; t < found->end; t++) {
        const double *at = x[0] + n * pool->steps * pool->channels + c;
        found->mean += at[t * pool->channels] / (double)(found->end - found->first);
        if (found->best < 0 || at[t * pool->channels] > at[found->best * pool->channels])
            found->best = t;
    }
    return found->best >= 0;
}

static void walk(const struct op_problem *p, const double *const x[], bool is_max, double *y,
                 const double *dy, double *dx)
{
    const struct pool pool = describe(p);
    for (int64_t i = 0; i < p->samples * pool.count * pool.channels; i++) {
        const int64_t n = i / (pool.count * pool.channels), c = i % pool.channels;
        struct found found;
        if (!find(p, &pool, x, n, i / pool.channels % pool.count, c, &found))
            continue;
        const int64_t at = n * pool.steps * pool.channels + c;
        if (y)
            y[i] = is_max ? x[0][at + found.best * pool.channels] : found.mean;
        for (int64_t t = found.first; dx && t < found.end; t++)
            if (!is_max || t == found.best)
                dx[at + t * pool.channels] +=
                    is_max ? dy[i] : dy[i] / (double)(found.end - found.first);
    }
}

#define ORACLE(which, is_max)                                                                  \
    static void forward_##which(const struct op_problem *p, const double *const x[],           \
                                const double *const w[], double *y)                            \
    {                                                                                          \
        (void)w;                                                                               \
        walk(p, x, is_max, y, NULL, NULL);                                                     \
    }                                                                                          \
    static void backward_##which(const struct op_problem *p, const double *const x[],          \
                                 const double *const w[], const double *dy,                    \
                                 double *const dx[], double *const dw[])                       \
    {                                                                                          \
        (void)w, (void)dw;                                                                     \
        walk(p, x, is_max, NULL, dy, dx[0]);                                                   \
    }                                                                                          \
    static const struct op_oracle which##_oracle = {forward_##which, backward_##which,         \
                                                    arrange_lengths}

ORACLE(max, true);
ORACLE(mean, false);

/* clang-format off */
#define MAX(op_, options_, t, c, ...)                                                          \
    {.op = op_, .options = options_, .x = {OP_SHAPE(t, c)}, .classes = {0, 1},                 \
     .oracle = &max_oracle, __VA_ARGS__}
#define MEAN(op_, options_, t, c, ...)                                                         \
    {.op = op_, .options = options_, .x = {OP_SHAPE(t, c)}, .classes = {0, 1},                 \
     .oracle = &mean_oracle, __VA_ARGS__}

static const struct op_case cases[] = {
    MAX("max_pool1d", "size=3 stride=2", 9, 5, .inputs = 2, .samples = 37, .thorough = true,
        .sizes = true, .y = OP_SHAPE(4, 5)),
    MAX("max_pool1d", "size=3 stride=1 padding=same", 6, 4, .inputs = 2, .samples = 33,
        .shards = 2, .y = OP_SHAPE(6, 4)),
    MAX("max_pool1d", "", 7, 3, .samples = 20, .y = OP_SHAPE(3, 3), .integers = true),
    MAX("max_pool1d", "size=5 padding=same", 7, 3, .samples = 20, .y = OP_SHAPE(2, 3)),
    MAX("max_pool1d", "size=2 stride=5", 12, 3, .inputs = 2, .samples = 20, .inference = true),
    MAX("global_max_pool1d", "", 9, 21, .inputs = 2, .samples = 37, .thorough = true,
        .sizes = true, .y = OP_SHAPE(21)),
    MAX("global_max_pool1d", "", 5, 3, .samples = 9, .low = -2, .high = -1),
    MEAN("average_pool1d", "size=3 stride=2", 9, 5, .inputs = 2, .samples = 37,
         .thorough = true, .sizes = true),
    MEAN("average_pool1d", "size=4 stride=3 padding=same", 8, 4, .inputs = 2, .samples = 33,
         .shards = 2, .y = OP_SHAPE(3, 4)),
    MEAN("average_pool1d", "size=5 stride=1 padding=same", 8, 4, .samples = 20),
    MEAN("global_average_pool1d", "", 9, 21, .inputs = 2, .samples = 37, .thorough = true,
         .sizes = true),
    MEAN("global_average_pool1d", "", 5, 3, .samples = 9, .y = OP_SHAPE(3)),
};

static const struct op_refusal refusals[] = {
    {.op = "max_pool1d", .options = "size=6", .x = {OP_SHAPE(5, 2)}, .status = LK_E_SHAPE,
     .said = "max_pool1d: a window of 6 time steps does not fit a sequence of 5"},
    {.op = "average_pool1d", .x = {OP_SHAPE(5)}, .status = LK_E_SHAPE,
     .said = "average_pool1d: a sequence [t, c] expected"},
    {.op = "average_pool1d", .options = "padding=causal", .x = {OP_SHAPE(5, 2)},
     .status = LK_E_ARGUMENT, .said = "padding"},
    {.op = "global_max_pool1d", .x = {OP_SHAPE(3, 4, 4)}, .status = LK_E_SHAPE,
     .said = "found [4, 4, 3]"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&max_oracle, cases, refusals);
    return op_test(&suite);
}
