#include "ops/gpu_matrix.h"

#include "base/fail.h"
#include "ops/probe.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS = 3, UNKNOWN = -1 }; /* y, dx, dw */

/* What rounding factors to 11 bits does to sums of hundreds of products, of their root mean
 * square: 3e-4, and 1.3e-3 at worst. */
static const double MOST_ERROR = 1e-3, MOST_WORST = 5e-3;

struct trial {
    struct lk_probe probe;
    size_t count[RESULTS];
    float *result[RESULTS];
};

static enum lk_status read_results(struct trial *t)
{
    const struct lk_op_run *run = &t->probe.runs[0];
    const struct lk_buffer *const from[RESULTS] = {run->y, run->dx[0], run->dw[0]};
    for (int i = 0; i < RESULTS; i++) {
        const size_t bytes = lk_buffer_bytes(from[i]);
        t->count[i] = bytes / sizeof(float);
        t->result[i] = malloc(bytes);
        if (!t->result[i])
            return lk_fail_memory("results of a trial", bytes);
        LK_TRY(lk_buffer_read(from[i], 0, bytes, t->result[i]));
    }
    return LK_OK;
}

/* More than one warp of rows, of columns, and blocks that are not full. */
static enum lk_status run(struct lk_device *device, const char *algorithm, struct trial *t)
{
    struct lk_probe_config config = {.device = device,
                                     .op = "conv2d",
                                     .options = "filters=72 padding=same",
                                     .inputs = 1,
                                     .x = {{3, {12, 4, 4}}},
                                     .batch = lk_device_info(device)->lanes,
                                     .shards = 1,
                                     .training = true,
                                     .dx = true,
                                     .dw = true};
    enum lk_status status;
    LK_TRY_OUT(lk_choices_create(LK_MATH_FAST, &config.choices));
    LK_TRY_OUT(lk_choices_prefer(config.choices, algorithm));
    LK_TRY_OUT(lk_probe_open(&t->probe, &config));
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_probe_allocate(&t->probe, 1, true));
    LK_TRY_OUT(lk_probe_fill(&t->probe));
    LK_TRY_OUT(lk_probe_backward(&t->probe, 0));
    LK_TRY_OUT(read_results(t));
out:
    lk_probe_close(&t->probe);
    lk_choices_destroy(config.choices);
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
    bool right = run(device, "gemm", &plain) == LK_OK &&
                 run(device, LK_GPU_MATRIX_NAME, &matrix) == LK_OK;
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

int lk_gpu_matrix(const struct lk_op_setup *setup)
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
