/* What the host takes to read the samples of a step. */
#include "base/clock.h"
#include "base/fail.h"
#include "base/parallel.h"
#include "bench/scale/scale.h"
#include "data/data.h"
#include "data/stages/pipeline.h"
#include "model/model.h"
#include "train/evaluation/binding.h"
#include "train/evaluation/images.h"
#include "train/settings/fit.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_CORES = 1024, ROUNDS = 3 };
static const double SECONDS = 0.7; /* of a round */

struct reader {
    const struct lk_settings *settings;
    struct lk_model *model;
    struct lk_data *data;
    struct lk_batches *batches;
    char *pipeline;
    void *to[LK_MOST_FIELDS]; /* the fields that the model reads, of a batch */
};

static enum lk_status open_data(struct reader *r, struct lk_feed *feed)
{
    int targets[LK_MOST_OUTPUTS];
    struct lk_pipeline pipeline;
    struct lk_node *labels, *loss;
    LK_TRY(lk_settings_open_fitted(r->settings, &r->model));
    LK_TRY(lk_model_add_loss(r->model, &labels, &loss));
    LK_TRY(lk_pipeline_parse(r->settings->pipeline, true, &pipeline));
    struct lk_data_options wanted = lk_data_wanted(r->model, &pipeline);
    wanted.max_bad = r->settings->max_bad;
    wanted.cache = r->settings->data_cache;
    LK_TRY(lk_data_open_as(r->settings->data, LK_DATA_TRAIN, &wanted, &r->data));
    LK_TRY(lk_binding_make(r->model, r->data, feed, targets));
    return lk_pipeline_resolve(r->data, r->settings->pipeline, &r->pipeline);
}

/* As training reads them. */
static enum lk_status open_batches(struct reader *r, int64_t size)
{
    static const struct lk_pipeline none = {0};
    const struct lk_data_options images = lk_data_wanted(r->model, &none);
    struct lk_batches_options options = lk_settings_batches(r->settings);
    options.size = (int)size;
    options.drop_remainder = false; /* there may be less than a batch */
    options.height = images.height;
    options.width = images.width;
    options.pipeline = r->pipeline;
    return lk_batches_create(r->data, &options, &r->batches);
}

static enum lk_status make_room(struct reader *r, const struct lk_feed *feed, int64_t size)
{
    int count;
    const struct lk_field *fields = lk_batches_fields(r->batches, &count);
    for (int i = 0; i < feed->count; i++) {
        const int field = feed->rows[i].field;
        const size_t bytes = (size_t)size * lk_field_bytes(&fields[field]);
        if (!r->to[field] && !(r->to[field] = malloc(bytes)))
            return lk_fail_memory("a batch of samples", bytes);
    }
    return LK_OK;
}

/* From batch *batch on, for a while; *batch moves on. Nothing else of the process is at work.
 */
static enum lk_status time_round(struct reader *r, int64_t *batch,
                                 struct lk_scale_reading *found)
{
    const double start = lk_seconds(), core_start = lk_core_seconds();
    double samples = 0;
    do {
        const int64_t count = lk_batches_size(r->batches, *batch);
        LK_TRY(lk_batches_read_fields(r->batches, (*batch)++, 0, count, r->to));
        samples += (double)count;
    } while (lk_seconds() < start + SECONDS);
    found->alone = (lk_seconds() - start) / samples;
    found->cores_time = (lk_core_seconds() - core_start) / samples;
    return LK_OK;
}

/* The least of some rounds, since other work on the machine can only make them longer. The
 * first batch may open files, and touches memory. */
static enum lk_status time_batches(struct reader *r, struct lk_scale_reading *reading)
{
    int64_t batch = 1;
    LK_TRY(lk_batches_read_fields(r->batches, 0, 0, lk_batches_size(r->batches, 0), r->to));
    for (int i = 0; i < ROUNDS; i++) {
        struct lk_scale_reading found = {0};
        LK_TRY(time_round(r, &batch, &found));
        const bool is_first = i == 0;
        reading->alone = is_first ? found.alone : fmin(reading->alone, found.alone);
        reading->cores_time =
            is_first ? found.cores_time : fmin(reading->cores_time, found.cores_time);
    }
    return LK_OK;
}

enum lk_status lk_scale_measure_reading(const struct lk_settings *settings, int64_t batch,
                                        struct lk_scale_reading *reading)
{
    struct reader r = {.settings = settings};
    struct lk_feed feed = {.count = 0};
    enum lk_status status;
    *reading = (struct lk_scale_reading){.cores = lk_parallel_cores(MOST_CORES)};
    if (!settings || !settings->data[0])
        return LK_OK;
    LK_TRY_OUT(open_data(&r, &feed));
    const int64_t size = lk_least(batch, lk_data_info(r.data)->count);
    LK_TRY_OUT(open_batches(&r, size));
    LK_TRY_OUT(make_room(&r, &feed, size));
    status = time_batches(&r, reading);
out:
    lk_batches_destroy(r.batches); /* whose threads may be writing */
    for (int i = 0; i < LK_MOST_FIELDS; i++)
        free(r.to[i]);
    free(r.pipeline);
    lk_data_close(r.data);
    lk_model_destroy(r.model);
    return status;
}

double lk_scale_read_alone(const struct lk_scale_reading *reading, double samples)
{
    return samples * fmax(reading->alone, reading->cores_time / reading->cores);
}

double lk_scale_read_beside(const struct lk_scale_reading *reading, double samples, double step,
                            double busy, double device_cores)
{
    const double cores = fmax(reading->cores, device_cores);
    const double shared = (busy + samples * reading->cores_time) / cores;
    return fmax(fmax(step, shared), lk_scale_read_alone(reading, samples));
}
