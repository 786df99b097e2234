/* Divides a model by measured times of its operations. */
#include "train/place/times.h"

#include "base/clock.h"
#include "base/fail.h"
#include "graph/crossing/checked_copy.h"
#include "model/place/place.h"
#include "train/tuning/tuning.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A larger micro-batch must be estimated to be faster by this, since it takes more memory. */
static const double CLEARLY_FASTER = 0.97;

struct trial {
    const struct lk_place_request *request;
    double until; /* lk_seconds() */
    struct lk_replica_config config;
    int in_flight;
    struct lk_choices *known, *cached; /* times of operations: measured now; of earlier runs */
    struct lk_op_times times;          /* of a micro-batch */
    double load_ms_per_mb, copy_ms_per_mb;
};

/* What stands in the way of a trial, but not of training. */
static enum lk_status forgive(enum lk_status status)
{
    if (status != LK_E_UNSUPPORTED && status != LK_E_DEVICE_MEMORY)
        return status;
    lk_error_clear();
    return LK_OK;
}

static int micro_batches_of_group(const struct trial *t)
{
    const int of_group = t->config.micro_batches / t->request->groups;
    return of_group > 1 ? of_group : 1;
}

static enum lk_status measure(struct trial *t)
{
    const struct lk_tuning_run run = {.device = t->request->devices[0],
                                      .beside = t->request->devices + 1,
                                      .beside_count = t->request->places - 1,
                                      .loss = t->request->loss,
                                      .batch = t->config.batch,
                                      .shards = t->config.shards,
                                      .stores_half = t->config.stores_half,
                                      .packed_for = micro_batches_of_group(t),
                                      .few_samples = t->config.few_samples,
                                      .known = t->known,
                                      .older = t->cached};
    free(t->times.ms);
    t->times = (struct lk_op_times){NULL, 0};
    return lk_tuning_times(&run, t->until - lk_seconds(), t->request->choices, &t->times);
}

/* Divides the model by what operations take on micro-batches of so many shards, and estimates
 * the step. */
static enum lk_status try_shards(struct trial *t, int shards, struct lk_place_found *found)
{
    const struct lk_place_request *r = t->request;
    *found = (struct lk_place_found){.shards = shards};
    LK_TRY(r->plan(r->context, shards, &t->in_flight, &t->config));
    LK_TRY(measure(t));
    found->micro_batches = micro_batches_of_group(t);
    const struct lk_measured_ops measured = {.ms = t->times.ms,
                                             .count = t->times.count,
                                             .micro_batches = found->micro_batches,
                                             .load_ms_per_mb = t->load_ms_per_mb,
                                             .copy_ms_per_mb = t->copy_ms_per_mb};
    const struct lk_placing placing = {.config = &t->config,
                                       .devices = r->devices,
                                       .in_flight = t->in_flight,
                                       .measured = &measured};
    LK_TRY(lk_model_place(r->model, r->words, r->places, &placing));
    return lk_group_estimate(&t->config, r->devices, r->places, t->in_flight, &measured,
                             &found->estimate);
}

/* Devices in a row are busier with small micro-batches, each of which is computed faster if it
 * is large. */
static enum lk_status find_shards(struct trial *t, int *best)
{
    const struct lk_place_request *r = t->request;
    struct lk_place_found found;
    double fastest = INFINITY;
    for (int shards = r->usual_shards; shards == r->usual_shards || shards <= r->most_shards;
         shards *= 2) {
        LK_TRY(try_shards(t, shards, &found));
        if (found.estimate.step_ms < CLEARLY_FASTER * fastest) {
            fastest = found.estimate.step_ms;
            *best = shards;
        }
    }
    return LK_OK;
}

/* --- what crosses ----------------------------------------------------------------------------
 */

enum { COPIED_BYTES = 1 << 23, COPIES = 5 };

struct copied {
    struct lk_checked_copy *copy;
    struct lk_buffer *from, *to;
};

static enum lk_status time_copy(struct lk_device *device, struct copied *m, double *ms_per_mb)
{
    double least = INFINITY;
    LK_TRY(lk_checked_copy_create(device, 1, &m->copy));
    LK_TRY(lk_buffer_create(device, COPIED_BYTES, &m->from));
    LK_TRY(lk_buffer_create(device, lk_checked_bytes(COPIED_BYTES), &m->to));
    LK_TRY(lk_device_build(device));
    LK_TRY(lk_buffer_enqueue_fill(m->from, 0));
    for (int i = 0; i <= COPIES; i++) { /* the first one may compile */
        const double start = lk_seconds();
        LK_TRY(lk_checked_copy_send(m->copy, m->from, m->to, COPIED_BYTES));
        LK_TRY(lk_device_finish(device));
        if (i > 0)
            least = fmin(least, lk_seconds() - start);
    }
    *ms_per_mb = 1e3 * least / (1e-6 * COPIED_BYTES);
    return LK_OK;
}

/* Milliseconds that a device takes to send, or to receive, a million bytes. */
static enum lk_status measure_copy(struct lk_device *device, double *ms_per_mb)
{
    struct copied m = {0};
    const enum lk_status status = time_copy(device, &m, ms_per_mb);
    lk_buffer_destroy(m.to);
    lk_buffer_destroy(m.from);
    lk_checked_copy_destroy(m.copy);
    return status;
}

/* Of a large input of floats: handing it to the device, which on some is a copy, and bringing
 * it into batch tiles. */
struct loaded {
    struct lk_loader *loader;
    struct lk_transfer_buffer *from;
    struct lk_buffer *y;
};

static enum lk_status load(struct loaded *l, const struct lk_shape *shape, int samples)
{
    const struct lk_number_batch numbers = {
        .buffer = lk_transfer_buffer_on_device(l->from), .samples = samples, .scale = 1};
    LK_TRY(lk_transfer_buffer_enqueue_to_device(l->from, COPIED_BYTES));
    return lk_loader_enqueue_numbers(l->loader, &numbers, shape, l->y);
}

static enum lk_status time_load(struct lk_device *device, struct loaded *l, double *ms_per_mb)
{
    enum { SAMPLES = 256, EACH = COPIED_BYTES / SAMPLES / (int)sizeof(float) };
    const struct lk_tiling tiling = lk_tiling_make(lk_device_info(device), SAMPLES, 1);
    const struct lk_shape shape = {1, {EACH}};
    double least = INFINITY;
    LK_TRY(lk_loader_create(device, &tiling, LK_F32, NULL, &l->loader));
    LK_TRY(lk_loader_add_numbers(l->loader));
    LK_TRY(lk_transfer_buffer_create(device, COPIED_BYTES, LK_HOST_SHARES, &l->from));
    LK_TRY(lk_buffer_create(device, lk_tiled_bytes(&tiling, &shape, LK_F32), &l->y));
    LK_TRY(lk_device_build(device));
    for (int i = 0; i <= COPIES; i++) { /* the first one may compile */
        void *memory;
        LK_TRY(lk_transfer_buffer_enqueue_to_host(l->from, COPIED_BYTES));
        LK_TRY(lk_transfer_buffer_wait(l->from, &memory));
        memset(memory, 0, COPIED_BYTES);
        const double start = lk_seconds();
        LK_TRY(load(l, &shape, SAMPLES));
        LK_TRY(lk_device_finish(device));
        if (i > 0)
            least = fmin(least, lk_seconds() - start);
    }
    *ms_per_mb = 1e3 * least / (1e-6 * COPIED_BYTES);
    return LK_OK;
}

static enum lk_status measure_load(struct lk_device *device, double *ms_per_mb)
{
    struct loaded l = {0};
    const enum lk_status status = time_load(device, &l, ms_per_mb);
    lk_buffer_destroy(l.y);
    lk_transfer_buffer_destroy(l.from);
    lk_loader_destroy(l.loader);
    return status;
}

/* --- dividing ---------------------------------------------------------------------------
 */

static enum lk_status place(struct trial *t, struct lk_place_found *found)
{
    struct lk_device *device = t->request->devices[0];
    int best = t->request->usual_shards;
    LK_TRY(forgive(measure_copy(device, &t->copy_ms_per_mb)));
    LK_TRY(forgive(measure_load(device, &t->load_ms_per_mb)));
    LK_TRY(forgive(find_shards(t, &best)));
    return forgive(try_shards(t, best, found)); /* what it takes is known by now */
}

enum lk_status lk_place_by_times(const struct lk_place_request *request,
                                 struct lk_place_found *found)
{
    struct trial t = {.request = request, .until = lk_seconds() + request->seconds};
    const enum lk_math math = lk_choices_math(request->choices);
    enum lk_status status = lk_choices_create(math, &t.known);
    if (status == LK_OK)
        status = lk_choices_create(math, &t.cached);
    if (status == LK_OK) {
        lk_tuning_load_times(t.cached);
        if (!request->measures_again)
            lk_choices_set_fallbacks(t.known, t.cached, NULL);
        status = place(&t, found);
    }
    free(t.times.ms);
    lk_choices_destroy(t.known);
    lk_choices_destroy(t.cached);
    return status;
}
