/* Pooling against sums and maxima over every window, pixel by pixel. */
#include "driver.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* As the options struct of src/ops/pool.c begins. */
struct options {
    int64_t size[2], stride[2];
    char padding[32];
    bool count_padding;
};

struct geometry {
    int64_t planes, h, w, out_h, out_w;
    int64_t size[2], stride[2], before[2];
    bool count_padding;
};

/* The padding above and to the left; 0 for a word. */
static void read_padding(const char *text, int64_t before[2])
{
    long long n[4];
    const int count = sscanf(text, "[%lld , %lld , %lld , %lld]", &n[0], &n[1], &n[2], &n[3]);
    before[0] = before[1] = 0;
    if (count == 4) {
        before[0] = n[0];
        before[1] = n[2];
    } else if (sscanf(text, "%lld,%lld", &n[0], &n[1]) > 0) {
        before[0] = n[0];
        before[1] = strchr(text, ',') ? n[1] : n[0];
    }
}

/* The published formulas, apart from src/ops/window.c. */
static struct geometry geometry_of(const struct op_problem *p)
{
    const struct options *o = p->options;
    const int64_t *x = p->shapes->x[0].dim, *y = p->shapes->y.dim;
    struct geometry g = {.planes = p->samples * x[0], .h = x[1], .w = x[2]};
    if (p->shapes->y.rank == 1) { /* global */
        g.out_h = g.out_w = 1;
        for (int i = 0; i < 2; i++) {
            g.size[i] = x[1 + i];
            g.stride[i] = 1;
        }
        return g;
    }
    g.out_h = y[1];
    g.out_w = y[2];
    g.count_padding = o->count_padding;
    read_padding(o->padding, g.before);
    for (int i = 0; i < 2; i++) {
        g.size[i] = o->size[i];
        g.stride[i] = o->stride[i] ? o->stride[i] : o->size[i];
        const int64_t left = x[1 + i] % g.stride[i];
        const int64_t same = g.size[i] - (left ? left : g.stride[i]);
        if (strcmp(o->padding, "same") == 0)
            g.before[i] = same > 0 ? same / 2 : 0;
    }
    return g;
}

/* The pixel of window (oh, ow) at (r, s); -1: padding. */
static int64_t pixel_of(const struct geometry *g, int64_t oh, int64_t ow, int64_t r, int64_t s)
{
    const int64_t h = oh * g->stride[0] - g->before[0] + r;
    const int64_t w = ow * g->stride[1] - g->before[1] + s;
    return h < 0 || h >= g->h || w < 0 || w >= g->w ? -1 : h * g->w + w;
}

/* Calls window(context, plane, output, pixels, count) for every window with its real pixels. */
static void each_window(const struct geometry *g,
                        void (*window)(void *context, int64_t plane, int64_t output,
                                       const int64_t *pixels, int count),
                        void *context)
{
    static int64_t pixels[260 * 256];
    for (int64_t plane = 0; plane < g->planes; plane++)
        for (int64_t o = 0; o < g->out_h * g->out_w; o++) {
            int count = 0;
            for (int64_t k = 0; k < g->size[0] * g->size[1]; k++) {
                const int64_t pixel =
                    pixel_of(g, o / g->out_w, o % g->out_w, k / g->size[1], k % g->size[1]);
                if (pixel >= 0)
                    pixels[count++] = plane * g->h * g->w + pixel;
            }
            window(context, plane, plane * g->out_h * g->out_w + o, pixels, count);
        }
}

struct pass {
    struct geometry g;
    const double *x, *dy;
    double *y, *dx;
};

static int64_t largest(const double *x, const int64_t *pixels, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (x[pixels[i]] > x[pixels[best]] || (isnan(x[pixels[i]]) && !isnan(x[pixels[best]])))
            best = i;
    return pixels[best];
}

static void max_window(void *context, int64_t plane, int64_t output, const int64_t *pixels,
                       int count)
{
    (void)plane;
    struct pass *pass = context;
    const int64_t at = largest(pass->x, pixels, count);
    if (pass->y)
        pass->y[output] = pass->x[at];
    else
        pass->dx[at] += pass->dy[output];
}

static void average_window(void *context, int64_t plane, int64_t output, const int64_t *pixels,
                           int count)
{
    (void)plane;
    struct pass *pass = context;
    const int64_t divisor = pass->g.count_padding ? pass->g.size[0] * pass->g.size[1] : count;
    for (int i = 0; i < count; i++)
        if (pass->y)
            pass->y[output] += pass->x[pixels[i]] / (double)divisor;
        else
            pass->dx[pixels[i]] += pass->dy[output] / (double)divisor;
}

#define PASSES(name)                                                                           \
    static void name##_forward(const struct op_problem *p, const double *const x[],            \
                               const double *const w[], double *y)                             \
    {                                                                                          \
        (void)w;                                                                               \
        struct pass pass = {.g = geometry_of(p), .x = x[0], .y = y};                           \
        each_window(&pass.g, name##_window, &pass);                                            \
    }                                                                                          \
    static void name##_backward(const struct op_problem *p, const double *const x[],           \
                                const double *const w[], const double *dy, double *const dx[], \
                                double *const dw[])                                            \
    {                                                                                          \
        (void)w, (void)dw;                                                                     \
        struct pass pass = {.g = geometry_of(p), .x = x[0], .dy = dy, .dx = dx[0]};            \
        each_window(&pass.g, name##_window, &pass);                                            \
    }

PASSES(max)
PASSES(average)

/* Every seventh pixel of all samples but the first is NaN, every fifth minus infinity. */
static void arrange_odd_values(const struct lk_op_shapes *shapes, int64_t samples,
                               double *const x[], double *const w[])
{
    (void)w;
    const int64_t count = lk_shape_count(&shapes->x[0]);
    for (int64_t i = count; i < samples * count; i++)
        x[0][i] = i % 7 == 0 ? NAN : i % 5 == 0 ? -INFINITY : x[0][i];
}

/* Planes of minus infinity: a maximum must never be taken from the padding. */
static void arrange_infinite(const struct lk_op_shapes *shapes, int64_t samples,
                             double *const x[], double *const w[])
{
    (void)w;
    const int64_t count = lk_shape_count(&shapes->x[0]);
    for (int64_t i = count; i < samples * count; i++)
        x[0][i] = -INFINITY;
}

static const struct op_oracle max_oracle = {max_forward, max_backward, NULL};
static const struct op_oracle average_oracle = {average_forward, average_backward, NULL};
static const struct op_oracle max_odd_values = {max_forward, max_backward, arrange_odd_values};
static const struct op_oracle max_infinite = {max_forward, max_backward, arrange_infinite};

static const struct op_case cases[] = {
    {.op = "max_pool",
     .x = {OP_SHAPE(3, 6, 4)},
     .samples = 18,
     .thorough = true,
     .sizes = true,
     .oracle = &max_oracle},
    {.op = "max_pool", /* windows overlap, equal pixels abound */
     .options = "size=3 stride=2 padding=same",
     .x = {OP_SHAPE(2, 7, 8)},
     .samples = 19,
     .integers = true,
     .thorough = true,
     .oracle = &max_oracle},
    {.op = "max_pool",
     .options = "size=3 stride=1 padding=same",
     .x = {OP_SHAPE(2, 5, 6)},
     .samples = 9,
     .shards = 2,
     .oracle = &max_oracle},
    {.op = "max_pool",
     .options = "size=3,2 stride=2,3 padding=[1, 2, 0, 1]",
     .x = {OP_SHAPE(2, 6, 7)},
     .samples = 5,
     .oracle = &max_oracle},
    {.op = "max_pool",
     .options = "size=2 stride=3",
     .x = {OP_SHAPE(1, 9, 8)},
     .samples = 5,
     .oracle = &max_oracle},
    {.op = "max_pool", /* positions above 255 */
     .options = "size=20,17 stride=3",
     .x = {OP_SHAPE(1, 24, 23)},
     .samples = 3,
     .oracle = &max_oracle},
    {.op = "max_pool",
     .options = "size=3 stride=2 padding=same",
     .x = {OP_SHAPE(2, 7, 8)},
     .samples = 9,
     .inference = true,
     .oracle = &max_odd_values},
    {.op = "max_pool",
     .options = "size=3 padding=1",
     .x = {OP_SHAPE(1, 4, 4)},
     .samples = 3,
     .integers = true,
     .oracle = &max_infinite},
    {.op = "max_pool",
     .options = "size=3,2 stride=2,3 padding=[1, 2, 0, 1]",
     .x = {OP_SHAPE(20, 16, 37)},
     .samples = 2,
     .planes = true,
     .thorough = true,
     .oracle = &max_oracle},
    {.op = "max_pool",
     .options = "size=5,3 stride=1,4 padding=same",
     .x = {OP_SHAPE(3, 4, 70)},
     .samples = 2,
     .planes = true,
     .oracle = &max_oracle},
    {.op = "max_pool",
     .options = "size=2 stride=2",
     .x = {OP_SHAPE(3, 5, 3)},
     .samples = 2,
     .planes = true,
     .oracle = &max_oracle},
    {.op = "max_pool",
     .options = "size=3 stride=2 padding=same",
     .x = {OP_SHAPE(2, 7, 8)},
     .samples = 3,
     .planes = true,
     .inference = true, /* no slopes where numbers are not finite */
     .oracle = &max_odd_values},
    {.op = "average_pool",
     .options = "size=3 stride=2 padding=same",
     .x = {OP_SHAPE(3, 16, 21)},
     .samples = 2,
     .planes = true,
     .thorough = true,
     .oracle = &average_oracle},
    {.op = "average_pool",
     .options = "size=3 stride=1 padding=[1, 2, 0, 1] count_padding=true",
     .x = {OP_SHAPE(2, 5, 7)},
     .samples = 1,
     .planes = true,
     .oracle = &average_oracle},
    {.op = "average_pool",
     .options = "size=4,6 stride=3,2 padding=same",
     .x = {OP_SHAPE(2, 9, 44)},
     .samples = 2,
     .planes = true,
     .oracle = &average_oracle},
    {.op = "global_average_pool",
     .x = {OP_SHAPE(19, 5, 7)},
     .samples = 2,
     .planes = true,
     .oracle = &average_oracle},
    {.op = "global_max_pool",
     .x = {OP_SHAPE(19, 5, 7)},
     .samples = 2,
     .planes = true,
     .oracle = &max_oracle},
    {.op = "average_pool",
     .x = {OP_SHAPE(3, 6, 4)},
     .samples = 18,
     .thorough = true,
     .oracle = &average_oracle},
    {.op = "average_pool",
     .options = "size=3 stride=2 padding=same",
     .x = {OP_SHAPE(2, 6, 7)},
     .samples = 19,
     .sizes = true,
     .oracle = &average_oracle},
    {.op = "average_pool",
     .options = "size=3 stride=1 padding=[1, 2, 0, 1] count_padding=true",
     .x = {OP_SHAPE(2, 5, 7)},
     .samples = 9,
     .shards = 2,
     .oracle = &average_oracle},
    {.op = "global_average_pool",
     .x = {OP_SHAPE(5, 7, 6)},
     .samples = 18,
     .thorough = true,
     .oracle = &average_oracle},
    {.op = "global_max_pool",
     .x = {OP_SHAPE(5, 7, 6)},
     .y = OP_SHAPE(5),
     .samples = 18,
     .thorough = true,
     .oracle = &max_oracle},
    {.op = "global_max_pool", /* many are the largest: the first one counts */
     .x = {OP_SHAPE(2, 18, 19)},
     .samples = 9,
     .shards = 2,
     .integers = true,
     .oracle = &max_oracle},
    {.op = "global_max_pool", /* positions above 65535 */
     .x = {OP_SHAPE(1, 260, 256)},
     .samples = 2,
     .oracle = &max_oracle},
};

static const struct op_refusal refusals[] = {
    {.op = "max_pool",
     .x = {OP_SHAPE(3, 1, 4)},
     .status = LK_E_SHAPE,
     .said = "max_pool: a kernel of height 2 does not fit an image of height 1"},
    {.op = "max_pool",
     .options = "size=2,5",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_SHAPE,
     .said = "max_pool: a kernel of width 5"},
    {.op = "average_pool",
     .x = {OP_SHAPE(3, 4)},
     .status = LK_E_SHAPE,
     .said = "average_pool: an image [h, w, c] expected, found [3, 4]"},
    {.op = "global_average_pool",
     .x = {OP_SHAPE(3)},
     .status = LK_E_SHAPE,
     .said = "an image [h, w, c] expected, found [3]"},
    {.op = "global_max_pool",
     .x = {OP_SHAPE(3, 4)},
     .status = LK_E_SHAPE,
     .said = "global_max_pool: an image [h, w, c] expected, found [3, 4]"},
    {.op = "max_pool",
     .options = "padding=2",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_SHAPE,
     .said = "max_pool: a window of height 2 with 2 and 2 pixels of padding"},
    {.op = "average_pool",
     .options = "size=3 padding=1,1,0,3",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_SHAPE,
     .said = "a window of width 3 with 0 and 3 pixels of padding"},
    {.op = "max_pool",
     .options = "size=0",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_ARGUMENT,
     .said = "not in 1..256"},
    {.op = "max_pool",
     .options = "padding=full",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_ARGUMENT,
     .said = "max_pool: padding 'full' is not valid, same or"},
    {.op = "average_pool",
     .options = "padding=1,1,1",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_ARGUMENT,
     .said = "padding '1,1,1'"},
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(NULL, cases, refusals);
    return op_test(&suite);
}
