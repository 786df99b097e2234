/* Runs every known answer, and every check of something that is no operation, on a device. */
#include "bench/selftest/selftest.h"

#include "base/fail.h"
#include "bench/selftest/known_answers.h"
#include "ops/probe/probe.h"
#include <inttypes.h>
#include <stdio.h>

/* One operation under test: its arrays live in the probe's arena. */
struct trial {
    const struct lk_known_answer *known;
    const struct lk_tamper *tamper;
    const char *name;
    struct lk_probe probe;
    struct lk_known_arrays data;
    char *detail;
    size_t bytes;
};

static enum lk_status take(struct trial *trial, int64_t count, size_t size, void *array)
{
    void *memory;
    LK_TRY(lk_arena_allocate(&trial->probe.arena, (size_t)count * size, &memory));
    *(void **)array = memory;
    return LK_OK;
}

static enum lk_status fill_tiles(struct trial *trial, int which, const struct lk_shape *shape,
                                 const struct lk_buffer *buffer, float **values)
{
    const int64_t count = LK_KNOWN_BATCH * lk_shape_count(shape);
    LK_TRY(take(trial, count, sizeof(float), values));
    lk_known_fill(trial->known, which, count, *values);
    return lk_tiled_write((struct lk_buffer *)buffer, &trial->probe.setup.tiling, shape, LK_F32,
                          LK_KNOWN_BATCH, *values);
}

static enum lk_status fill_inputs(struct trial *trial)
{
    const struct lk_op_shapes *s = &trial->probe.setup.shapes;
    const struct lk_op_run *run = &trial->probe.runs[0];
    struct lk_known_arrays *data = &trial->data;
    for (int i = 0; i < s->inputs; i++) {
        if (s->x_dtype[i] == LK_F32) {
            LK_TRY(fill_tiles(trial, LK_DRAW_X + i, &s->x[i], run->x[i], &data->x[i]));
            continue;
        }
        LK_TRY(take(trial, LK_KNOWN_BATCH * lk_shape_count(&s->x[i]), sizeof(int32_t),
                    &data->labels));
        if (i == 0)
            lk_known_tokens(trial->known, data->labels);
        else if (trial->known->length)
            lk_known_lengths(trial->known, data->labels);
        else
            lk_known_labels(trial->known, data->labels);
        LK_TRY(lk_tiled_write((struct lk_buffer *)run->x[i], &trial->probe.setup.tiling,
                              &s->x[i], LK_I32, LK_KNOWN_BATCH, data->labels));
    }
    for (int j = 0; j < s->params; j++) {
        const int64_t count = lk_shape_count(&s->param[j].shape);
        LK_TRY(take(trial, count, sizeof(float), &data->w[j]));
        lk_known_fill(trial->known, LK_DRAW_W + j, count, data->w[j]);
        LK_TRY(lk_buffer_write((struct lk_buffer *)run->w[j], 0, (size_t)count * sizeof(float),
                               data->w[j]));
    }
    return run->dy ? fill_tiles(trial, LK_DRAW_DY, &s->y, run->dy, &data->dy) : LK_OK;
}

/* --- results --------------------------------------------------------------------------- */

static void spoil(const struct trial *trial, struct lk_buffer *buffer)
{
    if (trial->tamper)
        trial->tamper->change(trial->tamper->context, trial->name, buffer);
}

static enum lk_status read_tiles(struct trial *trial, const struct lk_shape *shape,
                                 struct lk_buffer *buffer, float **values)
{
    spoil(trial, buffer);
    LK_TRY(take(trial, LK_KNOWN_BATCH * lk_shape_count(shape), sizeof(float), values));
    return lk_tiled_read(buffer, &trial->probe.setup.tiling, shape, LK_F32, LK_KNOWN_BATCH,
                         *values);
}

/* Reads the gradients of one parameter and adds them over shards. */
static enum lk_status read_gradient(struct trial *trial, int j, float **values)
{
    const struct lk_op_run *run = &trial->probe.runs[0];
    const int64_t count = lk_shape_count(&trial->probe.setup.shapes.param[j].shape);
    float *shard;
    spoil(trial, run->dw[j]);
    LK_TRY(take(trial, count, sizeof(float), values));
    LK_TRY(take(trial, count, sizeof(float), &shard));
    for (int s = 0; s < LK_KNOWN_SHARDS; s++) {
        LK_TRY(lk_buffer_read(run->dw[j], (size_t)(s * run->dw_stride) * sizeof(float),
                              (size_t)count * sizeof(float), shard));
        for (int64_t i = 0; i < count; i++)
            (*values)[i] += shard[i];
    }
    return LK_OK;
}

static void check_sum(struct trial *trial, const char *pass, uint64_t expected, uint64_t found)
{
    if (expected != found && !trial->detail[0])
        snprintf(trial->detail, trial->bytes,
                 "%s: the results' sum is 0x%016" PRIx64 ", expected 0x%016" PRIx64, pass,
                 found, expected);
}

static enum lk_status check_exact(struct trial *trial, float *y, float *dx0)
{
    const struct lk_known_answer *known = trial->known;
    const struct lk_op_shapes *s = &trial->probe.setup.shapes;
    check_sum(trial, "forward", known->y,
              lk_known_hash(0, y, LK_KNOWN_BATCH * lk_shape_count(&s->y)));
    uint64_t sum = 0;
    for (int i = 0; i < s->inputs; i++) {
        float *dx = dx0;
        if (s->x_dtype[i] == LK_I32)
            continue;
        if (i > 0)
            LK_TRY(read_tiles(trial, &s->x[i], trial->probe.runs[0].dx[i], &dx));
        sum = lk_known_hash(sum, dx, LK_KNOWN_BATCH * lk_shape_count(&s->x[i]));
    }
    check_sum(trial, "data gradient", known->dx, sum);
    sum = 0;
    for (int j = 0; j < s->params; j++) {
        float *dw;
        LK_TRY(read_gradient(trial, j, &dw));
        sum = lk_known_hash(sum, dw, lk_shape_count(&s->param[j].shape));
    }
    check_sum(trial, "weight gradient", known->dw, sum);
    return LK_OK;
}

static void check_close(struct trial *trial, const char *pass, const float *values,
                        const double *expected, int64_t count)
{
    char text[160];
    const struct lk_known_answer *known = trial->known;
    const int places = known->places ? known->places : LK_KNOWN_PLACES;
    lk_known_compare(values, expected, count, known->is_exact ? 0 : places, text, sizeof text);
    if (text[0] && !trial->detail[0])
        snprintf(trial->detail, trial->bytes, "%s: %s", pass, text);
}

static enum lk_status check_expected(struct trial *trial, const float *y, const float *dx)
{
    const struct lk_op_shapes *s = &trial->probe.setup.shapes;
    const int64_t y_count = LK_KNOWN_BATCH * lk_shape_count(&s->y);
    const int64_t x_count = LK_KNOWN_BATCH * lk_shape_count(&s->x[0]);
    double *y_expected, *dx_expected;
    LK_TRY(take(trial, y_count, sizeof(double), &y_expected));
    LK_TRY(take(trial, x_count, sizeof(double), &dx_expected));
    trial->known->expect(trial->known, &trial->data, y_expected, dx_expected);
    check_close(trial, "forward", y, y_expected, y_count);
    check_close(trial, "data gradient", dx, dx_expected, x_count);
    return LK_OK;
}

/* --- one operation --------------------------------------------------------------------- */

static enum lk_status open_probe(struct trial *trial, struct lk_device *device)
{
    const struct lk_known_answer *known = trial->known;
    struct lk_probe_config config = {.device = device,
                                     .op = known->op,
                                     .options = known->options,
                                     .inputs = known->inputs ? known->inputs : 1,
                                     .batch = LK_KNOWN_BATCH,
                                     .shards = LK_KNOWN_SHARDS,
                                     .training = true,
                                     .dx = true,
                                     .dw = true};
    for (int i = 0; i < config.inputs; i++)
        config.x[i] = lk_known_shape(known, i);
    if (known->tokens)
        config.x_dtype[0] = LK_I32;
    if (known->labels)
        config.x[config.inputs] = lk_known_label_shape(known);
    if (known->labels || known->length)
        config.x_dtype[config.inputs++] = LK_I32;
    return lk_probe_open(&trial->probe, &config);
}

static enum lk_status run_trial(struct trial *trial, struct lk_device *device)
{
    const struct lk_op_shapes *s = &trial->probe.setup.shapes;
    float *y, *dx = NULL;
    LK_TRY(open_probe(trial, device));
    LK_TRY(lk_device_build(device));
    LK_TRY(lk_probe_allocate(&trial->probe, 0, true));
    LK_TRY(fill_inputs(trial));
    LK_TRY(lk_probe_forward(&trial->probe, 0));
    LK_TRY(lk_probe_backward(&trial->probe, 0));
    LK_TRY(read_tiles(trial, &s->y, trial->probe.runs[0].y, &y));
    if (s->x_dtype[0] == LK_F32)
        LK_TRY(read_tiles(trial, &s->x[0], trial->probe.runs[0].dx[0], &dx));
    return trial->known->expect ? check_expected(trial, y, dx) : check_exact(trial, y, dx);
}

static enum lk_status test_known(const struct lk_selftest_config *config,
                                 const struct lk_known_answer *known, const char *name,
                                 char *detail, size_t bytes)
{
    struct trial trial = {.known = known,
                          .tamper = config->tamper,
                          .name = name,
                          .detail = detail,
                          .bytes = bytes};
    const enum lk_status status = run_trial(&trial, config->device);
    lk_probe_close(&trial.probe);
    return status;
}

/* --- all ------------------------------------------------------------------------------- */

/* Reports a failed operation as a failed test; a lost device ends the whole self-test. */
static enum lk_status report(const struct lk_selftest_config *config, enum lk_status status,
                             struct lk_selftest *test, int *failures)
{
    if (status == LK_E_MEMORY)
        return status;
    char text[1024];
    if (status != LK_OK) {
        snprintf(text, sizeof text, "%s", lk_error_text());
        test->detail = text;
        lk_error_clear();
        LK_TRY(lk_device_finish(config->device));
    }
    test->ok = !test->detail[0];
    test->done++;
    *failures += !test->ok;
    if (config->handler)
        config->handler(config->context, test);
    return LK_OK;
}

enum lk_status lk_selftest_with(const struct lk_selftest_config *config, int *failures)
{
    char name[192], shape[64], detail[512];
    struct lk_selftest test = {.name = name};
    int failed = 0;
    for (const struct lk_known_answer *k = lk_known_answers; k->op; k++)
        test.count++;
    for (const struct lk_selftest_check *p = lk_selftest_checks; p->name; p++)
        test.count++;
    for (const struct lk_known_answer *k = lk_known_answers; k->op; k++) {
        lk_shape_print(&k->x, shape, sizeof shape);
        snprintf(name, sizeof name, "%s %s%s%s", k->op, shape, *k->options ? " " : "",
                 k->options);
        detail[0] = '\0';
        test.detail = detail;
        LK_TRY(
            report(config, test_known(config, k, name, detail, sizeof detail), &test, &failed));
    }
    for (const struct lk_selftest_check *p = lk_selftest_checks; p->name; p++) {
        snprintf(name, sizeof name, "%s", p->name);
        detail[0] = '\0';
        test.detail = detail;
        LK_TRY(report(config, p->run(p, config->device, config->tamper, detail, sizeof detail),
                      &test, &failed));
    }
    *failures = failed;
    return LK_OK;
}

enum lk_status lk_selftest_run(struct lk_device *device,
                               void (*handler)(void *context, const struct lk_selftest *test),
                               void *context, int *failures)
{
    const struct lk_selftest_config config = {
        .device = device, .handler = handler, .context = context};
    return lk_selftest_with(&config, failures);
}
