/* Attention against the matrix of all weights in double, which the kernels never have. */
#include "../driver.h"
#include "base/random.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct options {
    int64_t heads;
    bool causal;
    double dropout;
};

/* Rows of queries, keys and values of one sample and head. */
struct head {
    int64_t queries, keys, dim, values;
    int64_t q_row, k_row, v_row, y_row, q_at, k_at, v_at, y_at; /* from the sample on */
    int k, v;                                                   /* which inputs */
    int64_t key_count, query_count;
};

static struct head head_of(const struct op_problem *p, const double *const x[], int64_t n,
                           int64_t head)
{
    const struct options *o = p->options;
    const struct lk_shape *s = p->shapes->x;
    const bool has_length = s[p->shapes->inputs - 1].rank == 0;
    const int tensors = p->shapes->inputs - has_length;
    struct head h = {.queries = s[0].dim[0], .k = tensors > 1, .v = tensors - 1};
    const int64_t width = s[0].dim[1] / (tensors == 1 ? 3 : 1);
    h.keys = s[h.k].dim[0];
    h.dim = width / o->heads;
    h.values = tensors == 3 ? s[2].dim[1] / o->heads : h.dim;
    h.q_row = s[0].dim[1];
    h.k_row = s[h.k].dim[1];
    h.v_row = s[h.v].dim[1];
    h.y_row = h.values * o->heads;
    h.q_at = n * h.queries * h.q_row + head * h.dim;
    h.k_at = n * h.keys * h.k_row + head * h.dim + (tensors == 1 ? width : 0);
    h.v_at = n * h.keys * h.v_row + head * h.values +
             (tensors == 1   ? 2 * width
              : tensors == 2 ? width
                             : 0);
    h.y_at = n * h.queries * h.y_row + head * h.values;
    h.key_count = h.keys;
    h.query_count = h.queries;
    if (has_length) {
        const int64_t length = (int64_t)x[p->shapes->inputs - 1][n];
        h.key_count = length < 0 ? 0 : length > h.keys ? h.keys : length;
        if (tensors == 1)
            h.query_count = h.key_count;
    }
    return h;
}

/* The weight of every key for query t. */
static void weigh(const struct head *h, bool causal, const double *const x[], int64_t t,
                  double *p)
{
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < h->keys; j++) {
        const bool sees = j < h->key_count && t < h->query_count && (!causal || j <= t);
        p[j] = sees ? 0 : -INFINITY;
        for (int64_t d = 0; sees && d < h->dim; d++)
            p[j] += x[0][h->q_at + t * h->q_row + d] * x[h->k][h->k_at + j * h->k_row + d] /
                    sqrt((double)h->dim);
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < h->keys; j++)
        sum += p[j] = p[j] > -INFINITY ? exp(p[j] - most) : 0;
    for (int64_t j = 0; j < h->keys; j++)
        p[j] /= sum > 0 ? sum : 1;
}

/* What dropout multiplies the weight of key j for query t with. */
static double factor(const struct op_problem *p, int64_t sample, int64_t head, int64_t t,
                     int64_t j)
{
    const double rate = ((const struct options *)p->options)->dropout;
    const struct lk_random4 key =
        lk_random(p->seed, LK_RANDOM_DROPOUT, p->stream, (uint64_t)p->step);
    const uint64_t place = ((uint64_t)head << 20 | (uint64_t)t) << 32 | (uint64_t)j / 4;
    const struct lk_random4 r =
        lk_random(key.v[0] | (uint64_t)key.v[1] << 32, LK_RANDOM_DROPOUT,
                  (uint32_t)(p->first + sample), place);
    if (!p->training)
        return 1;
    return lk_random_unit(r.v[j % 4]) < rate ? 0 : 1 / (1 - rate);
}

static double *weights(int64_t keys)
{
    double *p = calloc((size_t)keys, sizeof *p);
    assert(p);
    return p;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct options *o = p->options;
    (void)w;
    for (int64_t n = 0; n < p->samples * o->heads; n++) {
        const struct head h = head_of(p, x, n / o->heads, n % o->heads);
        double *weight = weights(h.keys);
        for (int64_t t = 0; t < h.queries; t++) {
            weigh(&h, o->causal, x, t, weight);
            for (int64_t j = 0; j < h.keys; j++) {
                const double p_j = weight[j] * factor(p, n / o->heads, n % o->heads, t, j);
                for (int64_t d = 0; d < h.values; d++)
                    y[h.y_at + t * h.y_row + d] += p_j * x[h.v][h.v_at + j * h.v_row + d];
            }
        }
        free(weight);
    }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct options *o = p->options;
    (void)w, (void)dw;
    for (int64_t n = 0; n < p->samples * o->heads; n++) {
        const struct head h = head_of(p, x, n / o->heads, n % o->heads);
        double *weight = weights(2 * h.keys), *dp = weight + h.keys;
        for (int64_t t = 0; t < h.queries; t++) {
            const double *g = dy + h.y_at + t * h.y_row;
            double mean = 0;
            weigh(&h, o->causal, x, t, weight);
            for (int64_t j = 0; j < h.keys; j++) {
                const double m = factor(p, n / o->heads, n % o->heads, t, j);
                dp[j] = 0;
                for (int64_t d = 0; d < h.values; d++) {
                    dp[j] += m * g[d] * x[h.v][h.v_at + j * h.v_row + d];
                    dx[h.v][h.v_at + j * h.v_row + d] += m * weight[j] * g[d];
                }
                mean += weight[j] * dp[j];
            }
            for (int64_t j = 0; j < h.keys; j++)
                for (int64_t d = 0; d < h.dim; d++) {
                    const double ds = weight[j] * (dp[j] - mean) / sqrt((double)h.dim);
                    const int64_t q = h.q_at + t * h.q_row + d, k = h.k_at + j * h.k_row + d;
                    dx[0][q] += ds * x[h.k][k];
                    dx[h.k][k] += ds * x[0][q];
                }
        }
        free(weight);
    }
}

static const struct op_oracle oracle = {forward, backward, NULL};

/* clang-format off */
#define CASE(options_, inputs_, ...)                                                           \
    {.op = "attention", .options = options_, .inputs = inputs_, __VA_ARGS__}
#define S(t, c) OP_SHAPE(t, c)
#define LENGTH {0}
#define GPUS (OP_GPU | OP_GPU_DOUBLE)

static const struct op_case cases[] = {
    CASE("heads=2", 1, .x = {S(5, 18)}, .samples = 37, .shards = 2, .y = S(5, 6),
         .thorough = true, .sizes = true),
    /* lengths from 0 to all time steps */
    CASE("heads=2", 2, .x = {S(5, 24), LENGTH}, .classes = {0, 6}, .samples = 37, .shards = 2,
         .thorough = true),
    CASE("heads=2 causal=true", 2, .x = {S(9, 30), LENGTH}, .classes = {0, 10}, .samples = 37,
         .shards = 2, .thorough = true),
    /* two blocks of keys, and masks within both */
    CASE("causal=true", 2, .x = {S(43, 12), LENGTH}, .classes = {0, 44}, .samples = 17,
         .low = -3, .high = 3),
    CASE("", 1, .x = {S(70, 6)}, .samples = 17, .low = -3, .high = 3),
    /* keys and values of another sequence, whose length counts */
    CASE("heads=3", 2, .x = {S(6, 15), S(4, 30)}, .samples = 17, .half = true),
    CASE("heads=3", 3, .x = {S(6, 15), S(4, 30), LENGTH}, .classes = {0, 0, 5}, .samples = 20,
         .shards = 2, .half = true),
    CASE("heads=2", 3, .x = {S(3, 8), S(7, 8), S(7, 6)}, .samples = 17, .y = S(3, 6)),
    CASE("heads=2", 4, .x = {S(3, 8), S(7, 8), S(7, 6), LENGTH}, .classes = {0, 0, 0, 8},
         .samples = 33, .thorough = true),
    CASE("heads=1 causal=true", 3, .x = {S(7, 5), S(7, 5), S(7, 4)}, .samples = 17),
    CASE("", 1, .x = {S(1, 3)}, .samples = 17, .shards = 2),
    /* one tile: 64 cores divide the gradients of its head, one core does not; rows in several
     * sets, of which the last is not full */
    CASE("causal=true dropout=0.1", 2, .x = {S(75, 15), LENGTH}, .classes = {0, 76},
         .samples = 5, .thorough = true),
    /* wide heads besides, whose numbers are packed in several parts, the last of any width */
    CASE("heads=2 causal=true", 2, .x = {S(75, 222), LENGTH}, .classes = {0, 76}, .samples = 5,
         .only = OP_CPU),
    CASE("heads=2", 3, .x = {S(70, 74), S(45, 74), S(45, 86)}, .samples = 5, .only = OP_CPU),
    CASE("heads=2 causal=true", 3, .x = {S(45, 74), S(70, 74), S(70, 86)}, .samples = 5,
         .only = OP_CPU),
    CASE("heads=2 causal=true", 3, .x = {S(70, 22), S(45, 22), S(45, 26)}, .samples = 5,
         .only = OP_CPU),
    CASE("", 1, .x = {S(130, 192)}, .samples = 5, .only = OP_CPU),
    CASE("", 1, .x = {S(40, 1536)}, .samples = 3, .only = OP_CPU),
    /* more rows in a work-group's sets than a block of keys has, in one group and in several */
    CASE("heads=3 causal=true dropout=0.1", 2, .x = {S(150, 18), LENGTH}, .classes = {0, 151},
         .samples = 37, .only = OP_CPU),
    CASE("heads=2", 3, .x = {S(150, 384), S(40, 384), S(40, 64)}, .samples = 20,
         .only = OP_CPU),
    /* fewer rows at once */
    CASE("", 1, .x = {S(6, 600)}, .samples = 5, .only = OP_CPU | OP_GPU),
    CASE("heads=2", 2, .x = {S(5, 24), LENGTH}, .classes = {0, 6}, .samples = 20,
         .inference = true),
    /* weights are dropped: all of a tile, shards, blocks, masks, and as few rows at once */
    CASE("heads=2 dropout=0.4", 1, .x = {S(7, 24)}, .samples = 37, .shards = 2,
         .thorough = true, .sizes = true),
    CASE("heads=2 dropout=0.1 causal=true", 2, .x = {S(43, 24), LENGTH}, .classes = {0, 44},
         .samples = 17),
    CASE("heads=3 dropout=0.5", 3, .x = {S(6, 15), S(9, 30), LENGTH}, .classes = {0, 0, 10},
         .samples = 20, .shards = 2, .half = true),
    CASE("dropout=0.3", 1, .x = {S(6, 600)}, .samples = 5, .only = OP_CPU | OP_GPU),
    CASE("heads=2 dropout=0.4", 2, .x = {S(5, 24), LENGTH}, .classes = {0, 6}, .samples = 20,
         .inference = true),
    /* blocks of a GPU's work-groups: queries and keys that fill the last ones or not, of 16, 8
     * or 4 queries; several blocks of keys; numbers that the warps divide evenly or not; and
     * what is hidden or dropped there */
    CASE("heads=2", 1, .x = {S(16, 48)}, .samples = 37, .shards = 2, .only = GPUS),
    CASE("heads=3 causal=true dropout=0.2", 2, .x = {S(37, 90), LENGTH}, .classes = {0, 38},
         .samples = 37, .shards = 2, .thorough = true, .only = GPUS),
    CASE("", 3, .x = {S(19, 20), S(66, 20), S(66, 13), LENGTH}, .classes = {0, 0, 0, 67},
         .samples = 35, .only = GPUS),
    CASE("heads=2 dropout=0.3", 3, .x = {S(50, 10), S(23, 10), S(23, 128)}, .samples = 33,
         .half = true, .only = GPUS),
    CASE("causal=true", 3, .x = {S(35, 7), S(50, 7), S(50, 9)}, .samples = 17, .only = GPUS),
    CASE("dropout=0.3", 1, .x = {S(13, 768)}, .samples = 5, .only = GPUS),
    CASE("causal=true", 2, .x = {S(21, 24), LENGTH}, .classes = {0, 22}, .samples = 40,
         .inference = true, .only = GPUS),
    /* scores so far apart that all weights but one vanish */
    CASE("heads=2", 1, .x = {S(40, 24)}, .samples = 20, .low = -40, .high = 40,
         .only = OP_CPU | OP_GPU, .tolerance = 4096),
};

static const struct op_refusal refusals[] = {
    {.op = "attention", .x = {S(5, 7)}, .status = LK_E_SHAPE, .said = "[t, 3 c]"},
    {.op = "attention", .options = "heads=4", .x = {S(5, 18)}, .status = LK_E_SHAPE,
     .said = "4 heads"},
    {.op = "attention", .options = "heads=0", .x = {S(5, 18)}, .status = LK_E_ARGUMENT,
     .said = "heads"},
    {.op = "attention", .options = "dropout=1", .x = {S(5, 18)}, .status = LK_E_ARGUMENT,
     .said = "not in 0..0.999"},
    {.op = "attention", .options = "dropout=0.1", .x = {S(1048577, 3)}, .status = LK_E_SHAPE,
     .said = "up to 1048576 time steps"},
    {.op = "attention", .inputs = 2, .x = {S(5, 8), S(4, 8)}, .status = LK_E_SHAPE,
     .said = "[s, 2 c]"},
    {.op = "attention", .inputs = 3, .x = {S(5, 8), S(4, 8), S(3, 8)}, .status = LK_E_SHAPE,
     .said = "[s, d]"},
    {.op = "attention", .x = {OP_SHAPE(12)}, .status = LK_E_SHAPE, .said = "sequences"},
    {.op = "attention", .x = {S(5, 12)}, .labels = {true}, .status = LK_E_SHAPE,
     .said = "labels"},
    {.op = "attention", .inputs = 2, .x = {S(5, 12), LENGTH}, .status = LK_E_SHAPE,
     .said = "whole number"},
    {.op = "attention", .x = {S(2, 1539)}, .status = LK_E_SHAPE, .said = "wider than 512"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}
