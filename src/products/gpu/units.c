/* Tries the matrix units of a GPU before their products are used: all three passes of a small
 * convolution, with them and without. */
#include "products/gpu/units.h"

#include "base/fail.h"
#include "base/random.h"
#include "products/gpu/gpu.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS = 3, UNKNOWN = -1 }; /* y, dx, dw */

/* Allowed errors, relative to the results' root mean square. Rounding factors to 11 bits gives
 * sums of hundreds of products an error of 3e-4, and 1.3e-3 at worst. */
static const double MOST_ERROR = 1e-3, MOST_WORST = 5e-3;

/* More than one warp of rows, of columns, and blocks that are not full: 3x3 taps over images of
 * CHANNELS x SIDE x SIDE. */
enum { CHANNELS = 12, FILTERS = 72, SIDE = 4, PIXELS = SIDE * SIDE, TAPS = 9 };

enum { X, W, BIAS, DY, RESULT, BUFFERS = RESULT + RESULTS };

struct trial {
    struct lk_product_setup setup;
    struct lk_arena arena;
    const struct lk_product_verbs *verbs;
    void *states[LK_PASSES];
    int64_t workspace_reals;
    struct lk_buffer *buffers[BUFFERS], *workspace;
    size_t count[RESULTS];
    float *result[RESULTS];
};

static const struct lk_product_shape shape = {
    .axis = {{SIDE, SIDE, SIDE, 3, 1, 1, 1}, {SIDE, SIDE, SIDE, 3, 1, 1, 1}},
    .groups = 1,
    .channels = CHANNELS,
    .filters = FILTERS,
    .bias = true};

static enum lk_status prepare(struct lk_device *device, struct trial *t)
{
    const struct lk_device_info *info = lk_device_info(device);
    t->setup = (struct lk_product_setup){.device = device,
                                         .node = "a trial of matrix units",
                                         .problem = "trial",
                                         .tiling = lk_tiling_make(info, info->lanes, 1),
                                         .real = LK_F32,
                                         .arena = &t->arena};
    LK_TRY(lk_choices_create(LK_MATH_FAST, &t->setup.choices));
    for (int pass = 0; pass < LK_PASSES; pass++) {
        struct lk_product_job job = {
            .shape = &shape, .pass = (enum lk_pass)pass, .first = t->workspace_reals};
        if (t->verbs->fits(&t->setup, &job))
            LK_TRY(t->verbs->prepare(&t->setup, &job, &t->states[pass]));
        else
            return lk_fail(LK_E_UNSUPPORTED, "no matrix units fit the trial");
        t->workspace_reals += (job.count + 15) / 16 * 16;
    }
    return lk_device_build(device);
}

static enum lk_status fill(struct lk_buffer *buffer, uint32_t stream)
{
    const size_t bytes = lk_buffer_bytes(buffer), count = bytes / sizeof(float);
    float *numbers = malloc(bytes);
    if (!numbers)
        return lk_fail_memory("numbers of a trial", bytes);
    for (size_t i = 0; i < count; i++) {
        const struct lk_random4 r = lk_random(1, LK_RANDOM_DATA, stream, (uint64_t)i / 4);
        numbers[i] = (float)(2 * lk_random_unit(r.v[i % 4]) - 1);
    }
    const enum lk_status status = lk_buffer_write(buffer, 0, bytes, numbers);
    free(numbers);
    return status;
}

static enum lk_status allocate(struct trial *t)
{
    const struct lk_tiling *tiling = &t->setup.tiling;
    const int64_t samples = tiling->tiles * tiling->lanes, w = CHANNELS * TAPS * FILTERS;
    const int64_t x = samples * CHANNELS * PIXELS, y = samples * FILTERS * PIXELS;
    const int64_t counts[BUFFERS] = {x, w, FILTERS, y, y, x, w};
    for (int i = 0; i < BUFFERS; i++)
        LK_TRY(lk_buffer_create(t->setup.device, (size_t)counts[i] * sizeof(float),
                                &t->buffers[i]));
    for (int i = 0; i < RESULT; i++)
        LK_TRY(fill(t->buffers[i], (uint32_t)i));
    const size_t workspace = (size_t)(t->workspace_reals + 1) * sizeof(float);
    return lk_buffer_create(t->setup.device, workspace, &t->workspace);
}

static enum lk_status compute(struct trial *t)
{
    const struct lk_product_run run = {.x = t->buffers[X],
                                       .w = t->buffers[W],
                                       .bias = t->buffers[BIAS],
                                       .dz = t->buffers[DY],
                                       .y = t->buffers[RESULT],
                                       .dx = t->buffers[RESULT + 1],
                                       .dw = t->buffers[RESULT + 2],
                                       .dw_stride = CHANNELS * TAPS * FILTERS,
                                       .workspace = t->workspace};
    for (int pass = 0; pass < LK_PASSES; pass++)
        LK_TRY(t->verbs->enqueue(&t->setup, t->states[pass], &run));
    for (int i = 0; i < RESULTS; i++) {
        const size_t bytes = lk_buffer_bytes(t->buffers[RESULT + i]);
        t->count[i] = bytes / sizeof(float);
        t->result[i] = malloc(bytes);
        if (!t->result[i])
            return lk_fail_memory("results of a trial", bytes);
        LK_TRY(lk_buffer_read(t->buffers[RESULT + i], 0, bytes, t->result[i]));
    }
    return LK_OK;
}

static enum lk_status run(struct lk_device *device, const struct lk_product_verbs *verbs,
                          struct trial *t)
{
    enum lk_status status;
    t->verbs = verbs;
    LK_TRY_OUT(prepare(device, t));
    LK_TRY_OUT(allocate(t));
    LK_TRY_OUT(compute(t));
out:
    for (int i = 0; i < BUFFERS; i++)
        lk_buffer_destroy(t->buffers[i]);
    lk_buffer_destroy(t->workspace);
    lk_choices_destroy(t->setup.choices);
    lk_arena_clear(&t->arena);
    return status;
}

static bool is_near(const float *found, const float *expected, size_t count)
{
    double error = 0, norm = 0, worst = 0;
    for (size_t i = 0; i < count; i++) {
        const double off = fabs((double)found[i] - expected[i]);
        error += off * off;
        norm += (double)expected[i] * expected[i];
        worst = off > worst ? off : worst;
    }
    const double root = sqrt(norm / (double)count);
    return sqrt(error / (double)count) <= MOST_ERROR * root && worst <= MOST_WORST * root;
}

static bool is_right(struct lk_device *device)
{
    struct trial plain = {0}, matrix = {0};
    bool right = run(device, &lk_gpu_gemm, &plain) == LK_OK &&
                 run(device, &lk_gpu_matrix_gemm, &matrix) == LK_OK;
    for (int i = 0; i < RESULTS; i++) {
        right = right && plain.count[i] == matrix.count[i] &&
                is_near(matrix.result[i], plain.result[i], plain.count[i]);
        free(plain.result[i]);
        free(matrix.result[i]);
    }
    lk_error_clear();
    return right;
}

static int promised(const struct lk_device_info *info)
{
    const char *asked = getenv("LOCKSTEP_MATRIX");
    if (info->device_class != LK_CLASS_GPU || (asked && strcmp(asked, "0") == 0))
        return LK_GPU_MATRIX_NONE;
    if (asked && strcmp(asked, "emulated") == 0)
        return LK_GPU_MATRIX_EMULATED;
    return strstr(info->vendor, "NVIDIA") ? LK_GPU_MATRIX_PTX : LK_GPU_MATRIX_NONE;
}

int lk_gpu_matrix(const struct lk_product_setup *setup)
{
    if (lk_choices_math(setup->choices) < LK_MATH_FAST || setup->real != LK_F32)
        return LK_GPU_MATRIX_NONE;
    int *found = lk_device_matrix(setup->device);
    if (*found == UNKNOWN) {
        *found = promised(lk_device_info(setup->device)); /* so that the trial takes it */
        if (*found && !is_right(setup->device))
            *found = LK_GPU_MATRIX_NONE;
    }
    return *found;
}
