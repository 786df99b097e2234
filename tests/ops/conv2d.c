/* Convolutions: paddings, strides, dilations, groups, with relu and pool taken over. */
#include "ops/conv2d.h"
#include "ops/activation.h"

#include "driver.h"
#include <stdlib.h>
#include <string.h>

/* The convolution of one problem, with the outputs that a pool drops left out. */
struct problem {
    const struct lk_conv2d_options *o;
    int64_t samples, c, h, w, k, p, q, r, s, top, left;
};

static int64_t same_pad(int64_t in, int64_t taps, int64_t step, int64_t gap)
{
    const int64_t total = ((in + step - 1) / step - 1) * step + (taps - 1) * gap + 1 - in;
    return total > 0 ? total / 2 : 0;
}

static struct problem measure(const struct op_problem *p)
{
    const struct lk_conv2d_options *o = p->options;
    const struct lk_shape *x = &p->shapes->x[0], *y = &p->shapes->y;
    const int scale = o->pool ? 2 : 1;
    struct problem m = {.o = o,
                        .samples = p->samples,
                        .c = x->dim[0],
                        .h = x->dim[1],
                        .w = x->dim[2],
                        .k = y->dim[0],
                        .p = y->dim[1] * scale,
                        .q = y->dim[2] * scale,
                        .r = o->kernel[0],
                        .s = o->kernel[1]};
    if (strcmp(o->padding, "same") == 0) {
        m.top = same_pad(m.h, m.r, o->stride[0], o->dilation[0]);
        m.left = same_pad(m.w, m.s, o->stride[1], o->dilation[1]);
    } else if (strcmp(o->padding, "valid") != 0) {
        const char *first = o->padding + strspn(o->padding, "[ ");
        m.top = m.left = strtol(first, NULL, 10);
        const char *comma = strchr(first, ',');
        if (comma) {
            m.left = strtol(comma + 1, NULL, 10);
            if ((comma = strchr(comma + 1, ',')) != NULL)
                m.left = strtol(comma + 1, NULL, 10);
        }
    }
    return m;
}

/* Goes over the products of output (k, i, j): visit gets places in x and w. */
static double products(const struct problem *m, const double *x, const double *w, double *dx,
                       double *dw, double dz, int64_t k, int64_t i, int64_t j)
{
    const struct lk_conv2d_options *o = m->o;
    const int64_t channels = m->c / o->groups, first = k / (m->k / o->groups) * channels;
    double sum = 0;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t r = 0; r < m->r; r++)
            for (int64_t s = 0; s < m->s; s++) {
                const int64_t row = i * o->stride[0] + r * o->dilation[0] - m->top;
                const int64_t column = j * o->stride[1] + s * o->dilation[1] - m->left;
                if (row < 0 || row >= m->h || column < 0 || column >= m->w)
                    continue;
                const int64_t at_x = ((first + c) * m->h + row) * m->w + column;
                const int64_t at_w = ((c * m->r + r) * m->s + s) * m->k + k;
                sum += x[at_x] * w[at_w];
                if (dx)
                    dx[at_x] += dz * w[at_w];
                if (dw)
                    dw[at_w] += dz * x[at_x];
            }
    return sum;
}

/* z: [samples][k][p][q], before activation and pool. */
static double *outputs(const struct problem *m, const double *const x[],
                       const double *const w[])
{
    double *z = calloc((size_t)(m->samples * m->k * m->p * m->q), sizeof *z), *at = z;
    for (int64_t n = 0; n < m->samples; n++)
        for (int64_t k = 0; k < m->k; k++)
            for (int64_t i = 0; i < m->p; i++)
                for (int64_t j = 0; j < m->q; j++)
                    *at++ =
                        (m->o->bias ? w[1][k] : 0) + products(m, x[0] + n * m->c * m->h * m->w,
                                                              w[0], NULL, NULL, 0, k, i, j);
    return z;
}

/* The place in z that output number e shows: itself, or the first greatest of its pool. */
static int64_t shown(const struct problem *m, const double *z, int64_t e)
{
    if (!m->o->pool)
        return e;
    const int64_t width = m->q / 2, height = m->p / 2;
    const int64_t j = e % width * 2, i = e / width % height * 2, plane = e / width / height;
    const int64_t first = (plane * m->p + i) * m->q + j;
    const int64_t places[] = {first, first + 1, first + m->q, first + m->q + 1};
    int64_t best = first;
    for (int p = 1; p < 4; p++)
        if (z[places[p]] > z[best])
            best = places[p];
    return best;
}

static int64_t count_y(const struct problem *m)
{
    return m->samples * m->k * m->p * m->q / (m->o->pool ? 4 : 1);
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct problem m = measure(p);
    double *z = outputs(&m, x, w);
    for (int64_t e = 0; e < count_y(&m); e++) {
        const double v = z[shown(&m, z, e)];
        y[e] = m.o->activation == LK_RELU && v < 0 ? 0 : v;
    }
    free(z);
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct problem m = measure(p);
    double *z = outputs(&m, x, w);
    const int64_t image = m.c * m.h * m.w;
    for (int64_t e = 0; e < count_y(&m); e++) {
        const int64_t at = shown(&m, z, e), row = at / m.q, plane = row / m.p;
        const int64_t n = plane / m.k, k = plane % m.k;
        if (m.o->activation == LK_RELU && z[at] <= 0)
            continue;
        products(&m, x[0] + n * image, w[0], dx[0] ? dx[0] + n * image : NULL, dw[0], dy[e], k,
                 row % m.p, at % m.q);
        if (m.o->bias && dw[1])
            dw[1][k] += dy[e];
    }
    free(z);
}

static const struct op_oracle oracle = {.forward = forward, .backward = backward};

/* Epsilons of the largest result by which F(4x4, 3x3) may be off. */
enum { WINOGRAD4 = 400 };

/* The class of GPUs by products of matrices. */
#define GEMM(tile, options_, c, h, w, ...)                                                     \
    {                                                                                          \
        .op = "conv2d", .options = options_, .x = {OP_SHAPE(c, h, w)},                         \
        .algorithm = "gemm" tile, .only = OP_GPU | OP_GPU_DOUBLE, __VA_ARGS__                  \
    }

/* By matrix units: whole numbers are exact. Others' factors keep 11 bits. */
#define MATRIX(tile, options_, c, h, w, ...)                                                   \
    {                                                                                          \
        .op = "conv2d", .options = options_, .x = {OP_SHAPE(c, h, w)},                         \
        .algorithm = "gemm-tf32" tile, .only = OP_GPU, __VA_ARGS__                             \
    }
enum { ELEVEN_BITS = 1 << 13 };

static const struct op_case cases[] = {
    {"conv2d", "filters=5", .x = {OP_SHAPE(3, 6, 7)}, .samples = 33, .shards = 2,
     .thorough = true, .sizes = true},
    {"conv2d", "filters=3 kernel=1", .x = {OP_SHAPE(2, 1, 1)}, .samples = 9, .sizes = true,
     .half = true},
    {"conv2d", "filters=4 kernel=3 padding=same", .x = {OP_SHAPE(3, 1, 1)}, .samples = 20,
     .only = OP_CPU},
    {"conv2d", "filters=4 kernel=2 padding=same", .x = {OP_SHAPE(3, 2, 2)}, .samples = 20,
     .only = OP_CPU_DOUBLE},
    {"conv2d", "filters=9 kernel=3 padding=same", .x = {OP_SHAPE(5, 7, 7)}, .samples = 20,
     .shards = 2, .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=16 kernel=3 padding=same activation=relu", .x = {OP_SHAPE(16, 10, 14)},
     .samples = 33, .gated = true, .integers = true, .only = OP_CPU},
    {"conv2d", "filters=6 kernel=5 padding=2", .x = {OP_SHAPE(3, 9, 11)}, .samples = 17,
     .only = OP_CPU_DOUBLE},
    {"conv2d", "filters=6 kernel=7 stride=2 padding=3 bias=false", .x = {OP_SHAPE(3, 15, 16)},
     .half = true, .samples = 17, .only = OP_CPU_DOUBLE},
    {"conv2d", "filters=7 kernel=7 padding=same", .x = {OP_SHAPE(2, 3, 4)}, .samples = 5,
     .only = OP_CPU_DOUBLE},
    {"conv2d", "filters=8 kernel=3,1 stride=1,2 padding=1,0", .x = {OP_SHAPE(4, 8, 9)},
     .samples = 5, .only = OP_CPU},
    {"conv2d", "filters=8 kernel=3 stride=2 padding=same", .x = {OP_SHAPE(8, 13, 14)},
     .samples = 35, .gated = true, .shards = 2, .only = OP_GPU},
    {"conv2d", "filters=8 kernel=3 stride=3 padding=0,2,1,0", .x = {OP_SHAPE(4, 10, 11)},
     .samples = 17, .gated = true, .only = OP_CPU_DOUBLE},
    {"conv2d", "filters=8 kernel=1 stride=2", .x = {OP_SHAPE(6, 9, 8)}, .samples = 17,
     .half = true, .gated = true, .only = OP_CPU},
    {"conv2d", "filters=8 kernel=1 stride=3 padding=1", .x = {OP_SHAPE(6, 9, 8)}, .samples = 17,
     .only = OP_CPU},
    {"conv2d", "filters=20 kernel=1 activation=relu", .x = {OP_SHAPE(30, 7, 7)}, .samples = 40,
     .half = true, .gated = true, .integers = true, .only = OP_CPU},
    {"conv2d", "filters=4 kernel=3 dilation=2 padding=same", .x = {OP_SHAPE(3, 9, 10)},
     .samples = 17, .only = OP_CPU},
    {"conv2d", "filters=4 kernel=3 dilation=2,3 stride=2,3 padding=4",
     .x = {OP_SHAPE(3, 9, 10)}, .samples = 5, .only = OP_CPU_DOUBLE},
    {"conv2d", "filters=4 kernel=2 dilation=2 stride=4,1 padding=1", .x = {OP_SHAPE(3, 9, 10)},
     .samples = 5, .only = OP_CPU},
    {"conv2d", "filters=3 kernel=2 dilation=2 stride=4,1 groups=3 padding=1",
     .x = {OP_SHAPE(3, 9, 10)}, .samples = 5, .only = OP_GPU},
    {"conv2d", "filters=6 kernel=3 groups=2 padding=same", .x = {OP_SHAPE(4, 6, 6)},
     .samples = 33, .shards = 2, .only = OP_CPU_DOUBLE},
    {"conv2d", "filters=12 kernel=3 groups=12 padding=same stride=2", .x = {OP_SHAPE(12, 9, 9)},
     .samples = 17, .only = OP_GPU},
    {"conv2d", "filters=10 kernel=5 groups=5 padding=same activation=relu",
     .x = {OP_SHAPE(5, 8, 8)}, .samples = 17, .integers = true, .only = OP_GPU},
    {"conv2d", "filters=32 kernel=3 activation=relu pool=true", .x = {OP_SHAPE(1, 28, 28)},
     .half = true, .samples = 40, .shards = 2, .integers = true, .only = OP_CPU},
    {"conv2d", "filters=5 kernel=3 pool=true", .x = {OP_SHAPE(3, 9, 8)}, .samples = 33,
     .shards = 2, .gated = true, .integers = true, .thorough = true, .sizes = true,
     .only = OP_CPU | OP_CPU_DOUBLE | OP_GPU},
    {"conv2d", "filters=64 kernel=3 activation=relu pool=true", .x = {OP_SHAPE(32, 13, 13)},
     .half = true, .samples = 32, .integers = true, .only = OP_CPU},
    {"conv2d", "filters=12 kernel=3 activation=relu pool=true padding=same",
     .x = {OP_SHAPE(6, 7, 11)}, .samples = 20, .integers = true, .only = OP_CPU},
    {"conv2d", "filters=6 kernel=3 stride=2 dilation=2 activation=relu pool=true padding=2",
     .x = {OP_SHAPE(3, 14, 15)}, .samples = 20, .integers = true, .only = OP_CPU_DOUBLE},
    {"conv2d", "filters=64 kernel=3 activation=relu", .x = {OP_SHAPE(64, 5, 5)}, .samples = 64,
     .gated = true, .integers = true, .only = OP_CPU},
    {"conv2d", "filters=66 kernel=3 padding=same", .x = {OP_SHAPE(67, 8, 9)}, .samples = 32,
     .only = OP_CPU},
    {"conv2d", "filters=9 kernel=3 padding=same", .x = {OP_SHAPE(4, 5, 40)}, .samples = 17,
     .only = OP_CPU},
    {"conv2d", "filters=20 kernel=1 stride=2,3 groups=2 activation=relu",
     .x = {OP_SHAPE(8, 9, 10)}, .samples = 17, .gated = true, .integers = true, .only = OP_CPU},
    /* more channels than fit in a panel of doubles */
    {"conv2d", "filters=9 kernel=1", .x = {OP_SHAPE(2500, 2, 2)}, .samples = 5,
     .integers = true, .only = OP_CPU | OP_CPU_DOUBLE},
    /* several register blocks, in both directions */
    {"conv2d", "filters=270 kernel=1", .x = {OP_SHAPE(300, 3, 3)}, .samples = 17, .gated = true,
     .integers = true, .only = OP_CPU},
    /* the same of weight gradients: blocks of three and two vectors of filters, the last not
     * full, several areas, masked gradients */
    {"conv2d", "filters=170 kernel=1 groups=2 activation=relu", .x = {OP_SHAPE(22, 5, 5)},
     .samples = 40, .shards = 2, .integers = true, .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=66 kernel=1 stride=2", .x = {OP_SHAPE(300, 7, 9)}, .samples = 17,
     .only = OP_CPU},
    /* panels of the last pixels are narrower */
    {"conv2d", "filters=9 kernel=1", .x = {OP_SHAPE(300, 5, 5)}, .samples = 17,
     .integers = true, .only = OP_CPU},
    {"conv2d", "filters=9 kernel=1 stride=2", .x = {OP_SHAPE(140, 3, 33)}, .samples = 17,
     .only = OP_CPU | OP_CPU_DOUBLE},
    /* weights that are packed in two parts */
    {"conv2d", "filters=270 kernel=1 activation=relu", .x = {OP_SHAPE(2000, 1, 2)},
     .samples = 5, .integers = true, .only = OP_CPU},
    /* weight gradients as products: blocks of three and two vectors of filters, the last not
     * full, groups of channels, areas of several rows, masked and pooled gradients */
    {"conv2d", "filters=85 kernel=3 padding=same activation=relu", .x = {OP_SHAPE(21, 4, 3)},
     .samples = 33, .shards = 2, .integers = true, .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=60 kernel=2 stride=2,1 dilation=1,3 groups=2 padding=2,1 pool=true",
     .x = {OP_SHAPE(18, 13, 19)}, .samples = 17, .integers = true, .only = OP_CPU},
    {"conv2d", "filters=33 kernel=1 pool=true", .x = {OP_SHAPE(18, 5, 7)}, .samples = 17,
     .integers = true, .only = OP_CPU},
    {"conv2d", "filters=24 kernel=1", .x = {OP_SHAPE(6, 9, 7)}, .samples = 40, .thorough = true,
     .half = true, .sizes = true, .only = OP_CPU},
    {"conv2d", "filters=58 kernel=1 groups=2 activation=relu", .x = {OP_SHAPE(18, 7, 6)},
     .samples = 40, .shards = 2, .integers = true, .only = OP_CPU | OP_CPU_DOUBLE},
    /* the same of single taps: blocks of four vectors of filters and of four channels, the last
     * not full, x read in place or copied, runs of channels */
    {"conv2d", "filters=122 kernel=1 groups=2 activation=relu", .x = {OP_SHAPE(30, 7, 6)},
     .samples = 40, .shards = 2, .integers = true, .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=120 kernel=1 stride=2", .x = {OP_SHAPE(261, 7, 9)}, .samples = 17,
     .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=60 kernel=1", .x = {OP_SHAPE(513, 3, 3)}, .samples = 17,
     .integers = true, .only = OP_CPU},
    {"conv2d", "filters=24 kernel=7", .x = {OP_SHAPE(200, 8, 8)}, .samples = 4,
     .integers = true, .only = OP_CPU},
    /* so many taps that one block's sums would fill local memory */
    {"conv2d", "filters=48 kernel=32", .x = {OP_SHAPE(8, 33, 33)}, .samples = 2,
     .integers = true, .only = OP_CPU},
    /* the most taps there are, without products */
    {"conv2d", "filters=3 kernel=64 padding=1", .x = {OP_SHAPE(4, 64, 63)}, .samples = 3,
     .integers = true},
    /* products with one block of four vectors, of few channels */
    {"conv2d", "filters=61 kernel=5 stride=2 padding=2 activation=relu",
     .x = {OP_SHAPE(3, 9, 12)}, .samples = 35, .shards = 2, .integers = true, .only = OP_CPU},
    {"conv2d", "filters=50 kernel=1", .x = {OP_SHAPE(4, 5, 5)}, .samples = 17, .integers = true,
     .only = OP_CPU},
    /* weight gradients of few channels: strips, areas, channels and filters that do not fill a
     * block, several rows of blocks; of pools: several groups of channels and of filters */
    {"conv2d", "filters=5 kernel=3 padding=same activation=relu", .x = {OP_SHAPE(2, 21, 67)},
     .samples = 33, .shards = 2, .half = true, .integers = true,
     .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=7 kernel=3 groups=7 stride=2,1 dilation=1,2 padding=3,0",
     .x = {OP_SHAPE(21, 9, 45)}, .samples = 17, .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=6 kernel=5 padding=2 bias=false", .x = {OP_SHAPE(1, 34, 6)},
     .samples = 40, .thorough = true, .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=2 kernel=2 dilation=60 padding=30 pool=true", .x = {OP_SHAPE(1, 9, 9)},
     .samples = 3, .integers = true, .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=70 kernel=3 padding=same pool=true", .x = {OP_SHAPE(8, 26, 30)},
     .samples = 17, .integers = true, .only = OP_CPU},
    {"conv2d", "filters=7 kernel=5,6 padding=2 activation=relu pool=true",
     .x = {OP_SHAPE(2, 12, 71)}, .samples = 40, .shards = 2, .half = true, .integers = true,
     .only = OP_CPU | OP_CPU_DOUBLE},
    /* several tiles at once */
    {"conv2d", "filters=8", .x = {OP_SHAPE(3, 5, 5)}, .samples = 1203, .integers = true,
     .only = OP_CPU},
    /* outputs that are written past the caches */
    {"conv2d", "filters=64 kernel=1", .x = {OP_SHAPE(1, 56, 57)}, .samples = 16,
     .integers = true, .only = OP_CPU},
    {"conv2d", "filters=9 kernel=3 activation=relu", .x = {OP_SHAPE(4, 8, 8)}, .samples = 17,
     .inference = true, .only = OP_GPU},
    {"conv2d", "filters=9 kernel=3 pool=true", .x = {OP_SHAPE(4, 8, 8)}, .samples = 17,
     .integers = true, .inference = true, .only = OP_CPU},

    /* plane tiles: one tap, which reads the image in place, and more; edges, strides, gaps,
     * groups, pools; blocks of filters and of vectors that are not full */
    {"conv2d", "filters=11 kernel=1", .x = {OP_SHAPE(5, 7, 9)}, .samples = 3, .planes = true,
     .thorough = true},
    {"conv2d", "filters=5 kernel=3 groups=5 padding=3", .x = {OP_SHAPE(5, 7, 9)}, .samples = 2,
     .planes = true},
    {"conv2d", "filters=20 kernel=3 padding=same activation=relu", .x = {OP_SHAPE(5, 13, 9)},
     .samples = 2, .planes = true, .thorough = true},
    {"conv2d", "filters=9 kernel=3 stride=2 padding=same bias=false",
     .x = {OP_SHAPE(4, 14, 37)}, .samples = 1, .batch = 2, .planes = true},
    {"conv2d", "filters=8 kernel=7 stride=2 padding=3", .x = {OP_SHAPE(3, 21, 40)},
     .samples = 1, .planes = true},
    {"conv2d", "filters=6 kernel=3,2 stride=3,2 dilation=2,3 padding=[1, 2, 0, 3] groups=2",
     .x = {OP_SHAPE(6, 17, 19)}, .samples = 2, .planes = true, .thorough = true},
    {"conv2d", "filters=6 kernel=3,2 padding=1,2,0,3", .x = {OP_SHAPE(6, 17, 19)}, .samples = 2,
     .planes = true},
    {"conv2d", "filters=6 kernel=3,2 stride=3,2", .x = {OP_SHAPE(6, 17, 19)}, .samples = 2,
     .planes = true},
    {"conv2d", "filters=6 kernel=3,2 dilation=2,3", .x = {OP_SHAPE(6, 17, 19)}, .samples = 2,
     .planes = true},
    {"conv2d", "filters=6 kernel=3,2 groups=2", .x = {OP_SHAPE(6, 17, 19)}, .samples = 2,
     .planes = true},
    {"conv2d", "filters=5 kernel=1 stride=2", .x = {OP_SHAPE(3, 33, 34)}, .samples = 1,
     .planes = true},
    {"conv2d", "filters=9 kernel=3 padding=same pool=true activation=relu",
     .x = {OP_SHAPE(3, 11, 35)}, .samples = 2, .planes = true},
    {"conv2d", "filters=7 groups=7 kernel=3 padding=same activation=relu",
     .x = {OP_SHAPE(7, 9, 20)}, .samples = 2, .planes = true, .thorough = true},
    {"conv2d", "filters=35 groups=35 kernel=3,5 stride=2 padding=same",
     .x = {OP_SHAPE(35, 7, 40)}, .samples = 1, .planes = true},
    /* depthwise: two vectors of a row at a time, one image of a pixel, windows larger than the
     * image, so many taps that loops over them stay loops */
    {"conv2d", "filters=9 groups=9 kernel=3 padding=same", .x = {OP_SHAPE(9, 6, 28)},
     .samples = 2, .planes = true},
    {"conv2d", "filters=5 groups=5 kernel=3,4 stride=3,2 padding=1,2,0,3 activation=relu",
     .x = {OP_SHAPE(5, 13, 61)}, .samples = 2, .planes = true},
    {"conv2d", "filters=3 groups=3 kernel=3 dilation=3,2 padding=same",
     .x = {OP_SHAPE(3, 8, 25)}, .samples = 2, .planes = true},
    {"conv2d", "filters=3 groups=3 kernel=5 padding=same", .x = {OP_SHAPE(3, 1, 1)},
     .samples = 2, .planes = true},
    {"conv2d", "filters=2 groups=2 kernel=9,5 stride=4,3 padding=same",
     .x = {OP_SHAPE(2, 5, 50)}, .samples = 1, .planes = true},
    {"conv2d", "filters=2 groups=2 kernel=21 padding=same", .x = {OP_SHAPE(2, 5, 18)},
     .samples = 1, .planes = true},
    /* one to four pixels behind whole vectors, or alone */
    {"conv2d", "filters=20 kernel=1 activation=relu", .x = {OP_SHAPE(9, 14, 14)}, .samples = 2,
     .planes = true, .thorough = true},
    {"conv2d", "filters=9 kernel=3 padding=same", .x = {OP_SHAPE(3, 6, 11)}, .samples = 2,
     .planes = true},
    {"conv2d", "filters=10 kernel=1 groups=2", .x = {OP_SHAPE(4, 5, 7)}, .samples = 1,
     .planes = true},
    {"conv2d", "filters=9 kernel=1", .x = {OP_SHAPE(5, 2, 2)}, .samples = 3, .planes = true},
    {"conv2d", "filters=9 kernel=3 padding=same", .x = {OP_SHAPE(5, 12, 12)}, .samples = 2,
     .planes = true, .algorithm = "winograd2", .integers = true},
    {"conv2d", "filters=9 kernel=3 padding=same", .x = {OP_SHAPE(5, 16, 20)}, .samples = 2,
     .planes = true, .algorithm = "winograd4", .tolerance = WINOGRAD4},
    /* gradients in shards, of which one is short, and in several parts */
    {"conv2d", "filters=7 kernel=3 stride=2 padding=same activation=relu",
     .x = {OP_SHAPE(5, 9, 7)}, .samples = 5, .batch = 8, .shards = 4, .planes = true,
     .thorough = true},
    {"conv2d", "filters=5 kernel=3 padding=same pool=true", .x = {OP_SHAPE(2, 72, 61)},
     .samples = 3, .batch = 4, .shards = 2, .planes = true, .thorough = true},
    /* Winograd's algorithm in them; many channels: several strips */
    {"conv2d", "filters=20 kernel=3 padding=same activation=relu", .x = {OP_SHAPE(5, 13, 9)},
     .samples = 2, .planes = true, .algorithm = "winograd2", .integers = true,
     .thorough = true},
    {"conv2d", "filters=3 kernel=3 bias=false", .x = {OP_SHAPE(300, 70, 40)}, .samples = 1,
     .planes = true, .algorithm = "winograd2", .integers = true},
    {"conv2d", "filters=20 kernel=3 padding=same activation=relu", .x = {OP_SHAPE(5, 13, 9)},
     .samples = 2, .planes = true, .algorithm = "winograd4", .tolerance = WINOGRAD4,
     .thorough = true},
    {"conv2d", "filters=9 kernel=3 padding=1,2,0,3 pool=true activation=relu",
     .x = {OP_SHAPE(3, 21, 75)}, .samples = 2, .planes = true, .algorithm = "winograd4",
     .tolerance = WINOGRAD4},
    {"conv2d", "filters=3 kernel=3", .x = {OP_SHAPE(300, 70, 40)}, .samples = 1, .planes = true,
     .algorithm = "winograd4", .tolerance = WINOGRAD4},
    /* and with strides of 2: rows of Winograd tiles by pairs, one left, and by vectors; strips
     */
    {"conv2d", "filters=20 kernel=3 stride=2 padding=1 activation=relu",
     .x = {OP_SHAPE(5, 18, 14)}, .samples = 2, .planes = true, .algorithm = "winograd2",
     .integers = true, .thorough = true},
    {"conv2d", "filters=9 kernel=3 stride=2 padding=same pool=true", .x = {OP_SHAPE(3, 24, 90)},
     .samples = 2, .planes = true, .algorithm = "winograd2", .integers = true},
    {"conv2d", "filters=3 kernel=3 stride=2 bias=false", .x = {OP_SHAPE(150, 141, 60)},
     .samples = 1, .planes = true, .algorithm = "winograd2", .integers = true},
    {"conv2d", "filters=20 kernel=3 stride=2 padding=1 activation=relu",
     .x = {OP_SHAPE(5, 38, 26)}, .samples = 2, .planes = true, .algorithm = "winograd4",
     .tolerance = WINOGRAD4, .thorough = true},
    {"conv2d", "filters=9 kernel=3 stride=2 padding=1,2,0,3 pool=true activation=relu",
     .x = {OP_SHAPE(3, 41, 150)}, .samples = 2, .planes = true, .algorithm = "winograd4",
     .tolerance = WINOGRAD4},
    {"conv2d", "filters=3 kernel=3 stride=2 padding=1", .x = {OP_SHAPE(310, 141, 61)},
     .samples = 1, .planes = true, .algorithm = "winograd4", .tolerance = WINOGRAD4},

    /* Winograd. F(2x2) is exact with whole numbers; F(4x4) divides by 6. */
    {"conv2d", "filters=9 kernel=3 padding=same activation=relu", .x = {OP_SHAPE(5, 7, 10)},
     .samples = 33, .shards = 2, .integers = true, .gated = true, .thorough = true,
     .algorithm = "winograd2", .only = OP_CPU | OP_CPU_DOUBLE | OP_GPU},
    {"conv2d", "filters=6 kernel=3 activation=relu pool=true padding=0,2,1,0",
     .x = {OP_SHAPE(8, 10, 11)}, .samples = 20, .integers = true, .algorithm = "winograd2",
     .only = OP_CPU | OP_CPU_DOUBLE | OP_GPU},
    {"conv2d", "filters=4 kernel=3 padding=same", .x = {OP_SHAPE(3, 1, 1)}, .samples = 17,
     .integers = true, .algorithm = "winograd2", .only = OP_CPU | OP_GPU},
    {"conv2d", "filters=66 kernel=3 padding=same", .x = {OP_SHAPE(67, 8, 9)}, .samples = 32,
     .algorithm = "winograd2", .only = OP_CPU | OP_GPU},
    {"conv2d", "filters=9 kernel=3 padding=same activation=relu", .x = {OP_SHAPE(5, 7, 10)},
     .samples = 33, .shards = 2, .tolerance = WINOGRAD4, .gated = true, .thorough = true,
     .sizes = true, .algorithm = "winograd4", .only = OP_CPU | OP_CPU_DOUBLE | OP_GPU},
    {"conv2d", "filters=8 kernel=3 padding=same bias=false", .x = {OP_SHAPE(4, 1, 2)},
     .samples = 20, .tolerance = WINOGRAD4, .algorithm = "winograd4", .only = OP_CPU},
    {"conv2d", "filters=7 kernel=3 padding=4", .x = {OP_SHAPE(4, 5, 6)}, .samples = 17,
     .tolerance = WINOGRAD4, .algorithm = "winograd4", .only = OP_CPU | OP_CPU_DOUBLE | OP_GPU},
    {"conv2d", "filters=12 kernel=3 padding=0,2,1,0 activation=relu pool=true",
     .x = {OP_SHAPE(6, 10, 15)}, .samples = 20, .shards = 2, .tolerance = WINOGRAD4,
     .algorithm = "winograd4", .only = OP_CPU | OP_CPU_DOUBLE | OP_GPU},
    {"conv2d", "filters=64 kernel=3 activation=relu pool=true", .x = {OP_SHAPE(32, 13, 13)},
     .samples = 32, .tolerance = WINOGRAD4, .algorithm = "winograd4", .only = OP_CPU},
    {"conv2d", "filters=66 kernel=3 padding=same", .x = {OP_SHAPE(67, 18, 17)}, .samples = 32,
     .gated = true, .half = true, .tolerance = WINOGRAD4, .algorithm = "winograd4",
     .only = OP_CPU},
    /* data gradients of fewer outputs than inputs, whose tiles overlap or are one */
    {"conv2d", "filters=9 kernel=3 padding=0,1,1,0 activation=relu", .x = {OP_SHAPE(5, 9, 7)},
     .samples = 33, .shards = 2, .gated = true, .integers = true, .thorough = true,
     .algorithm = "winograd2", .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=9 kernel=3 padding=1,0,0,0", .x = {OP_SHAPE(6, 10, 6)}, .samples = 50,
     .half = true, .integers = true, .algorithm = "winograd2", .only = OP_CPU},
    {"conv2d", "filters=10 kernel=3 activation=relu", .x = {OP_SHAPE(5, 5, 6)}, .samples = 70,
     .shards = 2, .gated = true, .tolerance = WINOGRAD4, .thorough = true, .sizes = true,
     .algorithm = "winograd4", .only = OP_CPU | OP_CPU_DOUBLE},
    /* the same where a pool drops outputs, so that the last inputs have no gradient */
    {"conv2d", "filters=5 kernel=3 activation=relu pool=true", .x = {OP_SHAPE(4, 5, 7)},
     .samples = 17, .integers = true, .algorithm = "winograd2", .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=5 kernel=3 pool=true", .x = {OP_SHAPE(4, 11, 7)}, .samples = 17,
     .tolerance = WINOGRAD4, .algorithm = "winograd4", .only = OP_CPU | OP_CPU_DOUBLE},
    /* outputs that are written past the caches */
    {"conv2d", "filters=64 kernel=3 padding=same activation=relu", .x = {OP_SHAPE(2, 56, 57)},
     .samples = 16, .tolerance = WINOGRAD4, .algorithm = "winograd4", .only = OP_CPU},
    /* weight gradient of few sums: several blocks, parts, shards, panels */
    {"conv2d", "filters=70 kernel=3", .x = {OP_SHAPE(64, 30, 26)}, .samples = 33,
     .tolerance = WINOGRAD4, .algorithm = "winograd4", .only = OP_CPU},
    {"conv2d", "filters=20 kernel=3", .x = {OP_SHAPE(9, 5, 6)}, .samples = 333, .shards = 8,
     .half = true, .integers = true, .algorithm = "winograd2", .only = OP_CPU | OP_GPU},
    {"conv2d", "filters=37 kernel=3 padding=same pool=true", .x = {OP_SHAPE(35, 6, 7)},
     .samples = 66, .shards = 2, .integers = true, .algorithm = "winograd2",
     .only = OP_CPU | OP_CPU_DOUBLE},
    /* of many: several rounds of a shard; several shards, several panels */
    {"conv2d", "filters=130 kernel=3 padding=same", .x = {OP_SHAPE(100, 12, 11)}, .samples = 65,
     .tolerance = WINOGRAD4, .algorithm = "winograd4", .only = OP_CPU},
    {"conv2d", "filters=140 kernel=3 activation=relu", .x = {OP_SHAPE(170, 4, 5)},
     .samples = 133, .shards = 4, .half = true, .integers = true, .algorithm = "winograd2",
     .only = OP_CPU | OP_CPU_DOUBLE},
    {"conv2d", "filters=9 kernel=3 pool=true", .x = {OP_SHAPE(4, 8, 8)}, .samples = 17,
     .inference = true, .tolerance = WINOGRAD4, .algorithm = "winograd4", .only = OP_CPU},
    {"conv2d", "filters=12 groups=12 kernel=3 padding=same", .x = {OP_SHAPE(12, 9, 21)},
     .samples = 35, .shards = 2, .thorough = true, .sizes = true, .gated = true,
     .algorithm = "depthwise"},
    {"conv2d", "filters=6 groups=6 kernel=3 stride=2 padding=same", .x = {OP_SHAPE(6, 13, 14)},
     .samples = 33, .integers = true, .gated = true, .algorithm = "depthwise"},
    {"conv2d",
     "filters=5 groups=5 kernel=5,4 stride=3,2 dilation=2,1 padding=4 "
     "activation=relu",
     .x = {OP_SHAPE(5, 11, 10)}, .samples = 130, .shards = 2, .integers = true, .gated = true,
     .algorithm = "depthwise"},
    {"conv2d", "filters=3 groups=3 kernel=3 stride=1,3 padding=1 pool=true",
     .x = {OP_SHAPE(3, 7, 29)}, .samples = 17, .integers = true, .algorithm = "depthwise"},
    {"conv2d", "filters=2 groups=2 kernel=7 padding=same", .x = {OP_SHAPE(2, 2, 3)},
     .half = true, .samples = 9, .integers = true, .gated = true, .algorithm = "depthwise"},
    /* outputs that are written past the caches */
    {"conv2d", "filters=12 groups=12 kernel=3 padding=same", .x = {OP_SHAPE(12, 56, 57)},
     .samples = 16, .integers = true, .gated = true, .algorithm = "depthwise", .only = OP_CPU},
    /* channels that do not fill the last work-group */
    {"conv2d", "filters=259 groups=259 kernel=3", .x = {OP_SHAPE(259, 4, 5)}, .samples = 33,
     .integers = true, .algorithm = "depthwise"},
    /* so many channels that a part of dw has several strips of rows on a GPU */
    {"conv2d", "filters=4100 groups=4100 kernel=2", .x = {OP_SHAPE(4100, 10, 3)}, .samples = 9,
     .integers = true, .algorithm = "depthwise", .only = OP_CPU | OP_GPU},
    /* a GPU's blocks: channels that do not fill them, pixels of several tiles in one, one tap,
     * many taps, taps that no pixel has, pools, parts of a shard */
    GEMM("", "filters=20 kernel=3 padding=same", 33, 9, 13, .samples = 70, .shards = 2,
         .thorough = true),
    GEMM("", "filters=132 kernel=3 stride=2 padding=1", 16, 6, 9, .samples = 33, .gated = true,
         .integers = true),
    GEMM("", "filters=64 kernel=1", 72, 1, 1, .samples = 150, .sizes = true),
    GEMM("", "filters=24 kernel=1 stride=2 activation=relu", 16, 5, 7, .samples = 40,
         .gated = true, .half = true, .integers = true),
    GEMM("", "filters=33 kernel=7 stride=2 padding=3 bias=false", 3, 15, 16, .samples = 33),
    GEMM("", "filters=40 kernel=8 padding=same", 9, 8, 8, .samples = 17),
    GEMM("", "filters=32 kernel=3 groups=2 dilation=2 padding=same", 40, 7, 8, .samples = 17,
         .integers = true),
    GEMM("", "filters=36 kernel=2,3 dilation=2,1 stride=4,3 padding=1", 24, 11, 10,
         .samples = 17),
    GEMM("", "filters=32 kernel=3 activation=relu pool=true", 1, 28, 28, .samples = 40,
         .half = true, .shards = 2, .integers = true),
    GEMM("", "filters=66 kernel=3 pool=true padding=same", 20, 7, 5, .samples = 33,
         .integers = true),
    GEMM("", "filters=32 kernel=3 activation=relu pool=true", 16, 6, 6, .samples = 33,
         .inference = true),
    GEMM(" 128x128x8", "filters=48 kernel=3 padding=same activation=relu pool=true", 24, 6, 6,
         .samples = 65, .half = true, .integers = true),
    GEMM(" 128x128x8", "filters=140 kernel=3 padding=same", 40, 5, 5, .samples = 65),
    GEMM(" 64x128x8", "filters=72 kernel=3 activation=relu pool=true", 24, 6, 6, .samples = 65,
         .integers = true),
    GEMM(" 128x64x8", "filters=70 kernel=3 padding=same activation=relu pool=true", 24, 6, 6,
         .samples = 65, .shards = 2, .integers = true),
    GEMM(" 128x64x8", "filters=134 kernel=3 stride=2", 15, 7, 6, .samples = 40, .half = true),
    GEMM(" 64x64x16", "filters=72 kernel=3 stride=2 padding=same", 5, 6, 6, .samples = 65,
         .half = true),
    GEMM(" 64x64x16", "filters=40 kernel=3 activation=relu pool=true", 24, 6, 6, .samples = 40,
         .integers = true),
    MATRIX(" 128x128x8", "filters=132 padding=same", 20, 3, 4, .samples = 65, .shards = 2,
           .integers = true),
    MATRIX(" 64x128x8", "filters=72 kernel=1 stride=2 activation=relu", 70, 5, 3, .samples = 33,
           .gated = true, .half = true, .integers = true),
    MATRIX(" 128x64x8", "filters=72 kernel=3 activation=relu pool=true", 17, 6, 5,
           .samples = 40, .integers = true),
    MATRIX("", "filters=34 kernel=3,2 groups=2 dilation=2,1 stride=2,1 padding=1", 6, 6, 5,
           .samples = 33, .integers = true),
    MATRIX(" 128x128x8", "filters=66 pool=true activation=relu padding=same", 9, 4, 5,
           .samples = 40, .integers = true),
    MATRIX(" 64x128x8", "filters=66 pool=true padding=same", 9, 4, 5, .samples = 40,
           .integers = true),
    MATRIX("", "filters=70 kernel=1", 33, 2, 3, .samples = 33, .tolerance = ELEVEN_BITS),
    /* by CLBlast */
    {"conv2d", "filters=6 kernel=1 activation=relu", .x = {OP_SHAPE(5, 3, 7)}, .samples = 40,
     .shards = 2, .integers = true, .algorithm = "clblast"},
    {"conv2d", "filters=33 kernel=1 bias=false", .x = {OP_SHAPE(70, 2, 3)}, .samples = 17,
     .algorithm = "clblast"},
    /* by Fourier transforms */
    {"conv2d", "filters=6 kernel=5 padding=same activation=relu", .x = {OP_SHAPE(3, 9, 10)},
     .samples = 40, .shards = 2, .algorithm = "fft", .tolerance = 400},
    {"conv2d", "filters=5 kernel=7,6 padding=2,0 bias=false", .x = {OP_SHAPE(4, 11, 8)},
     .samples = 17, .algorithm = "fft", .tolerance = 400},
};

static const struct op_refusal refusals[] = {
    {"conv2d", "", .x = {OP_SHAPE(3, 8, 8)}, .status = LK_E_ARGUMENT, .said = "'filters'"},
    {"conv2d", "filters=0", .x = {OP_SHAPE(3, 8, 8)}, .status = LK_E_ARGUMENT,
     .said = "filters"},
    {"conv2d", "filters=4", .x = {OP_SHAPE(64)}, .status = LK_E_SHAPE, .said = "not [64]"},
    {"conv2d", "filters=4", .x = {OP_SHAPE(3, 8, 8)}, .labels = {true}, .status = LK_E_SHAPE,
     .said = "not labels"},
    {"conv2d", "filters=4 kernel=9", .x = {OP_SHAPE(3, 8, 20)}, .status = LK_E_SHAPE,
     .said = "kernel of height 9 does not fit an image of height 8"},
    {"conv2d", "filters=4 kernel=3 dilation=1,4 padding=0,0", .x = {OP_SHAPE(3, 8, 8)},
     .status = LK_E_SHAPE, .said = "width 9 (dilated) does not fit"},
    {"conv2d", "filters=4 groups=2", .x = {OP_SHAPE(3, 8, 8)}, .status = LK_E_SHAPE,
     .said = "3 channels of [8, 8, 3] do not divide into 2"},
    {"conv2d", "filters=5 groups=2", .x = {OP_SHAPE(4, 8, 8)}, .status = LK_E_ARGUMENT,
     .said = "5 filters do not divide into 2"},
    {"conv2d", "filters=4 padding=some", .x = {OP_SHAPE(3, 8, 8)}, .status = LK_E_ARGUMENT,
     .said = "padding 'some'"},
    {"conv2d", "filters=4 padding=1,2,3", .x = {OP_SHAPE(3, 8, 8)}, .status = LK_E_ARGUMENT,
     .said = "padding '1,2,3'"},
    {"conv2d", "filters=4 padding=-1", .x = {OP_SHAPE(3, 8, 8)}, .status = LK_E_ARGUMENT,
     .said = "padding '-1'"},
    {"conv2d", "filters=4 pool=true", .x = {OP_SHAPE(3, 3, 8)}, .status = LK_E_SHAPE,
     .said = "too small for a 2x2 pool"},
};

static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);

int main(void)
{
    return op_test(&suite);
}
