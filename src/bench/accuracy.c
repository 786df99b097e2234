/* Measures the errors of convolution algorithms against sums in double on the host. */
#include "base/fail.h"
#include "base/random.h"
#include "ops/probe/probe.h"
#include <lockstep/accuracy.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 32, PASSES = 3, MOST_NAMES = 24 };

/* A convolution of stride 1, padded to keep the size; kernels have odd sizes. One has filters
 * so few that they do not fill a vector of any width: kernels for that case are measured too.
 */
struct subject {
    int64_t channels, filters, side, kernel;
};

static const struct subject subjects[] = {{32, 32, 14, 3}, {16, 5, 14, 7}, {64, 48, 7, 1}};
static const char *const pass_names[PASSES] = {"forward", "dgrad", "wgrad"};

/* The errors allowed. Larger Winograd tiles are faster but less accurate. The bounds leave room
 * for devices that fuse multiply-adds and round differently. */
static const struct {
    const char *name;
    double allowed;
} bounds[] = {
    {"winograd4", 5e-5}, {"winograd2", 1e-5}, {"fft", 1e-5}, {"gemm-tf32", 1e-3}, {"", 5e-6}};

struct bench {
    const struct subject *subject;
    struct lk_probe_config config;
    char options[96], shape[160];
    struct lk_arena arena;
    float *x, *w, *dy, *found;
    double *expected[PASSES]; /* y, dx, dw */
    int64_t count[PASSES];
    void (*handler)(void *context, const struct lk_accuracy *result);
    void *context;
    int failures;
};

static double allowed(const char *algorithm)
{
    int i = 0;
    while (bounds[i].name[0] && !lk_candidate_answers(algorithm, bounds[i].name))
        i++;
    return bounds[i].allowed;
}

/* --- the sums in double --------------------------------------------------------------------
 */

static void draw(uint32_t stream, int64_t count, float *values)
{
    for (int64_t i = 0; i < count; i++) {
        const struct lk_random4 r = lk_random(5, LK_RANDOM_DATA, stream, (uint64_t)i);
        values[i] = (float)(2 * lk_random_unit(r.v[0]) - 1);
    }
}

/* Computes all three passes of an image by plain sums. Arrays: [BATCH][channels][side][side],
 * weights [channels][kernel][kernel][filters]. */
static void expect_image(const struct bench *b, int64_t n, int64_t c, int64_t i, int64_t j)
{
    const struct subject *s = b->subject;
    const int64_t reach = s->kernel / 2, plane = s->side * s->side;
    const int64_t from = (n * s->channels + c) * plane + i * s->side + j;
    for (int64_t r = 0; r < s->kernel; r++)
        for (int64_t t = 0; t < s->kernel; t++) {
            const int64_t y = i - r + reach, x = j - t + reach; /* of the output */
            if (y < 0 || x < 0 || y >= s->side || x >= s->side)
                continue;
            const int64_t w = ((c * s->kernel + r) * s->kernel + t) * s->filters;
            for (int64_t k = 0; k < s->filters; k++) {
                const int64_t to = (n * s->filters + k) * plane + y * s->side + x;
                b->expected[0][to] += (double)b->x[from] * b->w[w + k];
                b->expected[1][from] += (double)b->dy[to] * b->w[w + k];
                b->expected[2][w + k] += (double)b->x[from] * b->dy[to];
            }
        }
}

static enum lk_status take(struct bench *b, int64_t count, size_t size, void *array)
{
    void *memory;
    LK_TRY(lk_arena_allocate(&b->arena, (size_t)count * size, &memory));
    *(void **)array = memory;
    return LK_OK;
}

static enum lk_status expect(struct bench *b)
{
    const struct subject *s = b->subject;
    const int64_t plane = s->side * s->side;
    b->count[0] = BATCH * s->filters * plane;
    b->count[1] = BATCH * s->channels * plane;
    b->count[2] = s->channels * s->filters * s->kernel * s->kernel;
    for (int pass = 0; pass < PASSES; pass++)
        LK_TRY(take(b, b->count[pass], sizeof(double), &b->expected[pass]));
    LK_TRY(take(b, b->count[1], sizeof(float), &b->x));
    LK_TRY(take(b, b->count[0], sizeof(float), &b->dy));
    LK_TRY(take(b, b->count[2], sizeof(float), &b->w));
    LK_TRY(take(b, b->count[0] + b->count[1] + b->count[2], sizeof(float), &b->found));
    draw(0, b->count[1], b->x);
    draw(1, b->count[0], b->dy);
    draw(2, b->count[2], b->w);
    for (int64_t n = 0; n < BATCH; n++)
        for (int64_t c = 0; c < s->channels; c++)
            for (int64_t i = 0; i < plane; i++)
                expect_image(b, n, c, i / s->side, i % s->side);
    return LK_OK;
}

/* --- one algorithm -------------------------------------------------------------------------
 */

static enum lk_status compute(struct bench *b, struct lk_probe *probe)
{
    const struct lk_op_setup *setup = &probe->setup;
    LK_TRY(lk_device_build(setup->device));
    LK_TRY(lk_probe_allocate(probe, 1, true));
    const struct lk_op_run *run = &probe->runs[0];
    LK_TRY(lk_tiled_write((struct lk_buffer *)run->x[0], &setup->tiling, &setup->shapes.x[0],
                          LK_F32, BATCH, b->x));
    LK_TRY(lk_tiled_write((struct lk_buffer *)run->dy, &setup->tiling, &setup->shapes.y, LK_F32,
                          BATCH, b->dy));
    LK_TRY(lk_buffer_write((struct lk_buffer *)run->w[0], 0,
                           (size_t)b->count[2] * sizeof(float), b->w));
    LK_TRY(lk_probe_forward(probe, 0));
    return lk_probe_backward(probe, 0);
}

static enum lk_status read_pass(struct bench *b, const struct lk_probe *probe, int pass)
{
    const struct lk_op_setup *setup = &probe->setup;
    const struct lk_op_run *run = &probe->runs[0];
    if (pass == 2)
        return lk_buffer_read(run->dw[0], 0, (size_t)b->count[2] * sizeof(float), b->found);
    return lk_tiled_read(pass ? run->dx[0] : run->y, &setup->tiling,
                         pass ? &setup->shapes.x[0] : &setup->shapes.y, LK_F32, BATCH,
                         b->found);
}

static void report(struct bench *b, const char *algorithm, int pass)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < b->count[pass]; i++) {
        const double want = b->expected[pass][i];
        error += (b->found[i] - want) * (b->found[i] - want);
        norm += want * want;
    }
    const struct lk_accuracy result = {.shape = b->shape,
                                       .algorithm = algorithm,
                                       .pass = pass_names[pass],
                                       .error = sqrt(error / norm),
                                       .allowed = allowed(algorithm)};
    b->failures += !(result.error <= result.allowed);
    b->handler(b->context, &result);
}

/* Finds which passes took the algorithm that was preferred. */
struct search {
    const char *algorithm;
    bool taken[PASSES];
};

static void look(void *context, const char *key, const char *text)
{
    struct search *search = context;
    for (int pass = 0; pass < PASSES; pass++)
        if (lk_candidate_is_same(text, search->algorithm) &&
            strncmp(strchr(key, ' ') + 1, pass_names[pass], strlen(pass_names[pass])) == 0)
            search->taken[pass] = true;
}

static enum lk_status measure(struct bench *b, const char *algorithm)
{
    struct lk_probe probe = {0};
    struct lk_probe_config config = b->config;
    struct search search = {.algorithm = algorithm};
    enum lk_status status;
    LK_TRY_OUT(lk_choices_create(LK_MATH_FAST, &config.choices));
    LK_TRY_OUT(lk_choices_prefer(config.choices, algorithm));
    LK_TRY_OUT(lk_probe_open(&probe, &config));
    LK_TRY_OUT(compute(b, &probe));
    lk_choices_each(config.choices, look, &search);
    for (int pass = 0; pass < PASSES; pass++)
        if (search.taken[pass]) {
            LK_TRY_OUT(read_pass(b, &probe, pass));
            report(b, algorithm, pass);
        }
out:
    lk_probe_close(&probe);
    lk_choices_destroy(config.choices);
    return status;
}

/* --- all -------------------------------------------------------------------------------------
 */

/* Names of all algorithms that a pass could take; returns how many. */
static enum lk_status list_names(const struct bench *b, char names[][LK_CHOICE_TEXT_BYTES],
                                 int *count)
{
    struct lk_probe probe = {0};
    struct lk_probe_config config = b->config;
    struct lk_choice choice;
    LK_TRY(lk_choices_create(LK_MATH_FAST, &config.choices));
    const enum lk_status status = lk_probe_open(&probe, &config);
    for (int i = 0; status == LK_OK && probe.op->choice(&probe.setup, i, &choice); i++)
        for (int j = 0; j < choice.count; j++) {
            int k = 0;
            while (k < *count && !lk_candidate_is_same(names[k], choice.candidates[j].name))
                k++;
            if (k == *count && k < MOST_NAMES && choice.candidates[j].cost >= 0)
                strcpy(names[(*count)++], choice.candidates[j].name);
        }
    lk_probe_close(&probe);
    lk_choices_destroy(config.choices);
    return status;
}

static enum lk_status measure_subject(struct bench *b)
{
    const struct subject *s = b->subject;
    char names[MOST_NAMES][LK_CHOICE_TEXT_BYTES];
    int count = 0;
    snprintf(b->options, sizeof b->options, "filters=%d kernel=%d padding=%d bias=false",
             (int)s->filters, (int)s->kernel, (int)(s->kernel / 2));
    snprintf(b->shape, sizeof b->shape, "conv2d [%d, %d, %d] filters=%d kernel=%d",
             (int)s->channels, (int)s->side, (int)s->side, (int)s->filters, (int)s->kernel);
    b->config.options = b->options;
    b->config.x[0] = (struct lk_shape){3, {s->channels, s->side, s->side}};
    LK_TRY(expect(b));
    LK_TRY(list_names(b, names, &count));
    for (int i = 0; i < count; i++)
        LK_TRY(measure(b, names[i]));
    return LK_OK;
}

enum lk_status lk_accuracy_measure(struct lk_device *device,
                                   void (*handler)(void *, const struct lk_accuracy *),
                                   void *context, int *failures)
{
    struct bench b = {.handler = handler, .context = context};
    b.config = (struct lk_probe_config){.device = device,
                                        .op = "conv2d",
                                        .inputs = 1,
                                        .batch = BATCH,
                                        .shards = 1,
                                        .training = true,
                                        .dx = true,
                                        .dw = true};
    enum lk_status status = LK_OK;
    for (int i = 0; i < LK_COUNT(subjects) && status == LK_OK; i++) {
        b.subject = &subjects[i];
        status = measure_subject(&b);
        lk_arena_clear(&b.arena);
    }
    *failures = b.failures;
    return status;
}
