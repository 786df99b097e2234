/* Computes the features of all samples, and makes batches of them in the place of the data's.
 */
#include "train/features.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/progress.h"
#include "data/batches/batches.h"
#include "data/kept.h"
#include "graph/place/group.h"
#include "train/features_stamp.h"
#include "train/settings/fit.h"
#include "train/trainer_internal.h"
#include <stdlib.h>
#include <string.h>

/* Samples at a time: enough to keep a device busy, and soon over when training is stopped. */
enum { MOST_AT_ONCE = 64 };

/* Micro-batches that follow one another through the devices of a group, where there is room. */
enum { FOLLOWING = 4 };

/* --- settings ----------------------------------------------------------------------------- */

enum lk_status lk_features_begin(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    trainer->features.is_on = s->cache_features[0] && strcmp(s->cache_features, "none") != 0;
    trainer->features.versions = 1;
    if (s->cache_augmentations > 0 && !trainer->features.is_on)
        return lk_fail(LK_E_ARGUMENT, "cache_augmentations %lld is for --cache-features",
                       (long long)s->cache_augmentations);
    return LK_OK;
}

enum lk_status lk_features_check(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    struct lk_features *features = &trainer->features;
    features->draws = features->is_on && lk_batches_draw(trainer->batches);
    if (!features->draws)
        return LK_OK;
    if (s->cache_augmentations == 0)
        return lk_fail(LK_E_ARGUMENT,
                       "--cache-features: samples are changed by chance ('%s'), so that they "
                       "have other features in each epoch; --cache-augmentations K keeps K "
                       "variants of each, or train without",
                       *s->pipeline ? s->pipeline : "crop");
    features->versions = (int)s->cache_augmentations;
    return LK_OK;
}

/* --- what a record has -------------------------------------------------------------------- */

struct filling {
    struct lk_trainer *trainer;
    struct lk_feed from;        /* of the whole model */
    struct lk_batches *batches; /* all samples in their order; an epoch for each version */
    struct lk_feed feed;        /* of the head: features, then its other inputs */
    struct lk_kept_config config;
    int features;               /* of the fields; the rest are copied */
    int copied[LK_MOST_FIELDS]; /* fields of the data that those are */
    int64_t count, chunk;       /* samples, and at a time */
    int64_t chunks;
    atomic_llong next;    /* chunk to look at */
    atomic_uchar *states; /* of each chunk */
};

enum { FREE, TAKEN, DONE };

static enum lk_status add_field(struct filling *f, const struct lk_feed_row *row,
                                const struct lk_field *field, bool is_half)
{
    struct lk_kept_config *c = &f->config;
    if (f->feed.count == LK_MOST_INPUTS)
        return lk_fail(LK_E_UNSUPPORTED, "more than %d features and inputs", LK_MOST_INPUTS);
    f->feed.rows[f->feed.count++] = *row;
    c->fields[c->field_count] = *field;
    c->fields[c->field_count].length = -1;
    c->is_half[c->field_count++] = is_half;
    return LK_OK;
}

/* On some device of the group, where it is one. */
static bool reads(const struct lk_replica *any, const struct lk_node *input)
{
    for (int p = 0; p < lk_group_places(any); p++)
        if (lk_replica_reads(lk_group_member(any, p), input))
            return true;
    return false;
}

/* Lists the features, and the inputs that the head has beside them. */
static enum lk_status list_fields(struct filling *f, const struct lk_replica *head)
{
    const bool is_half = lk_replica_feature_dtype(head) == LK_F16;
    int count = 0;
    const struct lk_field *fields = lk_batches_fields(f->trainer->batches, &count);
    const struct lk_node *node;
    f->features = f->feed.count = 0; /* a device may have failed at it */
    f->config.field_count = 0;
    struct lk_field feature = {.dtype = LK_F32, .role = LK_FIELD_INPUT};
    for (; (node = lk_replica_cut_value(head, f->features, &feature.shape)); f->features++) {
        feature.name = lk_node_info(node).name;
        LK_TRY(
            add_field(f, &(struct lk_feed_row){node, f->features, false}, &feature, is_half));
    }
    for (int i = 0; i < f->from.count; i++) {
        struct lk_feed_row row = f->from.rows[i];
        const int place = f->config.field_count;
        if (!reads(head, row.input))
            continue;
        if (fields[row.field].dtype == LK_U8 && f->trainer->features.draws)
            return lk_fail(LK_E_ARGUMENT,
                           "--cache-features: what is trained reads the input '%s' itself, "
                           "which is changed by chance",
                           lk_node_info(row.input).name);
        f->copied[place] = row.field;
        row.field = place;
        LK_TRY(add_field(f, &row, &fields[f->copied[place]], false));
    }
    return LK_OK;
}

static enum lk_status describe_on(void *context, struct lk_worker *worker)
{
    struct filling *f = context;
    struct lk_replica *head = lk_stepper_replica(worker->stepper);
    const struct lk_tiling *tiling = lk_replica_tiling(head);
    LK_TRY(list_fields(f, head));
    f->chunk = tiling->shard_samples; /* so that tiles have the lanes of a step */
    while (f->chunk * 2 <= MOST_AT_ONCE)
        f->chunk *= 2;
    if (!f->config.path)
        return LK_OK;
    const struct lk_features_stamp stamp = {
        .trainer = f->trainer, .worker = worker, .feed = &f->from, .config = &f->config};
    return lk_features_stamp(&stamp, f->config.sum);
}

/* --- computing ---------------------------------------------------------------------------- */

/* The frozen part on one device or a group of them, and memory for the samples of one of its
 * batches, which goes through a group in micro-batches. */
struct frozen {
    struct filling *filling;
    struct lk_group *group;          /* owns the replicas; NULL: there is one device */
    struct lk_replica *replica;      /* of the first place */
    int64_t batch, each;             /* samples, and of a micro-batch */
    uint8_t *fields[LK_MOST_FIELDS]; /* [batch] of each field of the records */
    void *again[LK_MOST_FIELDS];     /* of those that the frozen part reads too */
    bool reads_again;
    uint8_t *record;
};

static enum lk_status make_replica(struct frozen *frozen, struct lk_worker *worker,
                                   const struct lk_replica_config *config, int at_once)
{
    if (worker->places < 2) {
        LK_TRY(lk_replica_create(config, &frozen->replica));
        return lk_replica_build(frozen->replica);
    }
    LK_TRY(lk_group_create(config, worker->group, worker->places, at_once, &frozen->group));
    frozen->replica = lk_group_replica(frozen->group, 0);
    return lk_group_build(frozen->group);
}

static void destroy_replica(struct frozen *frozen)
{
    if (frozen->group)
        lk_group_destroy(frozen->group);
    else
        lk_replica_destroy(frozen->replica);
    frozen->group = NULL;
    frozen->replica = NULL;
}

/* With half as many samples at a time until it fits into the device's memory. */
static enum lk_status create_replica(struct frozen *frozen, struct lk_worker *worker)
{
    const struct filling *f = frozen->filling;
    struct lk_replica *head = lk_stepper_replica(worker->stepper);
    const int64_t each = lk_replica_tiling(head)->shard_samples;
    struct lk_replica_config config = {.device = worker->device,
                                       .outputs = {f->trainer->loss},
                                       .batch = f->chunk,
                                       .real = LK_F32,
                                       .stores_half = lk_replica_feature_dtype(head) == LK_F16,
                                       .training = true,
                                       .part = LK_PART_FROZEN,
                                       .seed = (uint64_t)f->trainer->settings->seed,
                                       .transform = &f->trainer->transform,
                                       .weights_of = head};
    int at_once = worker->places > 1 ? FOLLOWING : 1;
    for (;; config.batch /= 2) {
        while (at_once > 1 && config.batch < at_once * each)
            at_once /= 2;
        frozen->batch = config.batch;
        frozen->each = config.batch / at_once;
        struct lk_replica_config own = config;
        own.batch = frozen->each;
        own.shards = own.batch > each ? (int)(own.batch / each) : 1;
        const enum lk_status status = make_replica(frozen, worker, &own, at_once);
        if (status != LK_E_DEVICE_MEMORY || config.batch < 2)
            return status;
        destroy_replica(frozen);
        lk_error_clear();
    }
}

/* Fields that both parts of the model read lie in the replica's memory, perhaps converted:
 * they are read once more. */
static enum lk_status allocate(struct frozen *frozen)
{
    const struct filling *f = frozen->filling;
    size_t record = 0;
    for (int i = 0; i < f->config.field_count; i++) {
        const size_t bytes = (size_t)frozen->batch * lk_kept_field_bytes(&f->config, i);
        record += lk_kept_field_bytes(&f->config, i);
        frozen->fields[i] = malloc(bytes);
        if (!frozen->fields[i])
            return lk_fail_memory("features", bytes);
        if (i < f->features)
            continue;
        for (int r = 0; r < f->from.count; r++)
            if (f->from.rows[r].field == f->copied[i] &&
                reads(frozen->replica, f->from.rows[r].input)) {
                frozen->again[f->copied[i]] = frozen->fields[i];
                frozen->reads_again = true;
            }
    }
    frozen->record = malloc(record);
    return frozen->record ? LK_OK : lk_fail_memory("features", record);
}

/* The replica of a place that computes micro-batch number `index`, and its samples in a range.
 */
static struct lk_replica *runner(const struct frozen *frozen, int place, int index)
{
    return frozen->group ? lk_group_runner(frozen->group, place, index) : frozen->replica;
}

static int64_t samples_of(const struct frozen *frozen, struct lk_batch_range range, int index)
{
    return lk_least(frozen->each, range.count - index * frozen->each);
}

static enum lk_status read_samples(struct frozen *frozen, struct lk_batch_range range,
                                   int index)
{
    const struct filling *f = frozen->filling;
    const struct lk_batch_range part = {range.batch, range.first + index * frozen->each,
                                        samples_of(frozen, range, index)};
    const int places = lk_group_places(frozen->replica);
    struct lk_feed_target targets[LK_MOST_PLACES];
    void *to[LK_MOST_FIELDS] = {NULL};
    for (int p = 0; p < places; p++)
        targets[p] = (struct lk_feed_target){runner(frozen, p, index), 0};
    for (int i = f->features; i < f->config.field_count; i++)
        to[f->copied[i]] = frozen->fields[i] +
                           (size_t)(index * frozen->each) * lk_kept_field_bytes(&f->config, i);
    return lk_feed_read_all(&f->from, targets, places, f->batches, part, to);
}

/* A feature is at the place that makes it. */
static enum lk_status read_features(struct frozen *frozen, struct lk_batch_range range,
                                    int index)
{
    const struct filling *f = frozen->filling;
    for (int i = 0; i < f->features; i++) {
        struct lk_shape shape;
        const struct lk_node *node = lk_replica_cut_value(frozen->replica, i, &shape);
        const struct lk_replica *replica =
            runner(frozen, frozen->group ? lk_node_place(node) : 0, index);
        const struct lk_buffer *y = lk_replica_output(replica, i, &shape);
        LK_TRY(lk_tiled_read(y, lk_replica_tiling(replica), &shape,
                             lk_replica_feature_dtype(replica),
                             samples_of(frozen, range, index),
                             frozen->fields[i] + (size_t)(index * frozen->each) *
                                                     lk_kept_field_bytes(&f->config, i)));
    }
    for (int p = 0; p < lk_group_places(frozen->replica); p++)
        LK_TRY(lk_replica_wait_slot(runner(frozen, p, index), 0));
    return LK_OK;
}

/* What a run of a group is told of. */
struct forward {
    const struct frozen *frozen;
    struct lk_batch_range range;
};

static enum lk_status load(void *context, struct lk_replica *replica, int place, int index)
{
    const struct forward *forward = context;
    (void)place;
    return lk_replica_load(replica, 0, samples_of(forward->frozen, forward->range, index));
}

static enum lk_status run_forward(struct frozen *frozen, struct lk_batch_range range, int count)
{
    struct forward forward = {frozen, range};
    const struct lk_group_work work = {
        .context = &forward, .micro_batches = count, .load = load};
    if (frozen->group)
        return lk_group_run(frozen->group, &work);
    LK_TRY(lk_replica_load(frozen->replica, 0, range.count));
    return lk_replica_forward(frozen->replica, 0);
}

/* Once more where something crossed wrong between devices of a group. */
static enum lk_status compute_features(struct frozen *frozen, struct lk_batch_range range,
                                       int count)
{
    for (int tries = 0; tries < 2; tries++) {
        int wrong_at = -1;
        LK_TRY(run_forward(frozen, range, count));
        for (int i = 0; i < count; i++)
            LK_TRY(read_features(frozen, range, i));
        if (frozen->group)
            LK_TRY(lk_group_check(frozen->group, &wrong_at));
        if (wrong_at < 0)
            return LK_OK;
    }
    return lk_fail(LK_E_DEVICE,
                   "what crosses between the devices of a group does not arrive unchanged");
}

static enum lk_status run(struct frozen *frozen, struct lk_batch_range range)
{
    const int count = (int)lk_divide_up(range.count, frozen->each);
    for (int i = 0; i < count; i++)
        LK_TRY(read_samples(frozen, range, i));
    if (frozen->reads_again)
        LK_TRY(lk_batches_read_fields(frozen->filling->batches, range.batch, range.first,
                                      range.count, frozen->again));
    return compute_features(frozen, range, count);
}

static enum lk_status keep(const struct frozen *frozen, struct lk_batch_range range)
{
    const struct filling *f = frozen->filling;
    const struct lk_batches_position at = lk_batches_position(f->batches, range.batch);
    const int64_t first = at.epoch * f->count + at.index + range.first;
    for (int64_t n = 0; n < range.count; n++) {
        uint8_t *to = frozen->record;
        for (int i = 0; i < f->config.field_count; i++) {
            const size_t bytes = lk_kept_field_bytes(&f->config, i);
            memcpy(to, frozen->fields[i] + (size_t)n * bytes, bytes);
            to += bytes;
        }
        LK_TRY(lk_kept_put(f->trainer->features.kept, first + n, frozen->record));
    }
    return LK_OK;
}

static enum lk_status fill_chunk(struct frozen *frozen, int64_t chunk)
{
    const struct filling *f = frozen->filling;
    const int64_t samples = lk_batches_size(f->batches, chunk);
    for (int64_t first = 0; first < samples; first += frozen->batch) {
        const struct lk_batch_range range = {chunk, first,
                                             lk_least(frozen->batch, samples - first)};
        LK_TRY(run(frozen, range));
        LK_TRY(keep(frozen, range));
    }
    lk_progress_add(LK_TASK_FEATURES, samples);
    return LK_OK;
}

/* The next chunk that no device has taken; -1: there is none. */
static int64_t take_chunk(struct filling *f)
{
    for (int64_t i = 0; i < f->chunks; i++) {
        const int64_t chunk = atomic_fetch_add(&f->next, 1) % f->chunks;
        unsigned char is_free = FREE;
        if (atomic_compare_exchange_strong(&f->states[chunk], &is_free, TAKEN))
            return chunk;
    }
    return -1;
}

static enum lk_status fill_chunks(struct frozen *frozen, struct lk_worker *worker)
{
    struct filling *f = frozen->filling;
    LK_TRY(create_replica(frozen, worker));
    LK_TRY(allocate(frozen));
    while (!atomic_load(&f->trainer->stop)) {
        const int64_t chunk = take_chunk(f);
        if (chunk < 0)
            break;
        LK_TRY(fill_chunk(frozen, chunk));
        atomic_store(&f->states[chunk], DONE);
        lk_worker_heartbeat(worker);
    }
    return LK_OK;
}

static enum lk_status fill_on(void *context, struct lk_worker *worker)
{
    struct frozen frozen = {.filling = context};
    const enum lk_status status = fill_chunks(&frozen, worker);
    destroy_replica(&frozen);
    for (int i = 0; i < LK_MOST_FIELDS; i++)
        free(frozen.fields[i]);
    free(frozen.record);
    return status;
}

/* Whether all chunks are done. No device may be at work: what is taken and not done was a lost
 * one's, and is free again. */
static bool are_done(struct filling *f)
{
    bool all = true;
    for (int64_t i = 0; i < f->chunks; i++) {
        unsigned char taken = TAKEN;
        atomic_compare_exchange_strong(&f->states[i], &taken, FREE);
        all &= atomic_load(&f->states[i]) == DONE;
    }
    return all;
}

/* What a device that is lost has not finished, the others do. */
static enum lk_status compute(struct filling *f)
{
    struct lk_trainer *trainer = f->trainer;
    const double start = lk_seconds();
    enum lk_status status = LK_OK;
    f->states = calloc((size_t)f->chunks, sizeof *f->states);
    if (!f->states)
        return lk_fail_memory("features", (size_t)f->chunks * sizeof *f->states);
    lk_progress_begin(LK_TASK_FEATURES, f->config.count);
    while (status == LK_OK && !are_done(f) && !atomic_load(&trainer->stop))
        status = lk_team_call_each(trainer->team, fill_on, f, true);
    lk_progress_end(LK_TASK_FEATURES);
    LK_TRY(status);
    if (!are_done(f))
        return lk_fail(LK_E_INTERRUPTED, "interrupted while features were computed");
    const double seconds = lk_seconds() - start;
    if (lk_world_rank(trainer->world) == 0)
        lk_log(LK_LOG_INFO,
               "features of %lld samples, %zu bytes each, computed in %.1f s (%.4g "
               "samples/s)",
               (long long)f->config.count, lk_kept_record_bytes(trainer->features.kept),
               seconds, (double)f->config.count / seconds);
    return lk_kept_finish(trainer->features.kept);
}

/* --- from data to features ---------------------------------------------------------------- */

static enum lk_status open_source(struct filling *f)
{
    const struct lk_trainer *trainer = f->trainer;
    struct lk_batches_options options = lk_settings_batches(trainer->settings);
    int shape[3];
    lk_batches_shape(trainer->batches, shape);
    options.size = (int)f->chunk;
    options.shuffle = options.drop_remainder = false;
    options.bucket = 0;
    options.height = shape[0];
    options.width = shape[1];
    options.pipeline = trainer->text;
    options.end = lk_divide_up(f->count, f->chunk) * trainer->features.versions;
    f->chunks = options.end;
    return lk_batches_create(trainer->load.train, &options, &f->batches);
}

static enum lk_status fill(struct filling *f)
{
    struct lk_trainer *trainer = f->trainer;
    bool is_there = false;
    LK_TRY(lk_team_call(trainer->team, describe_on, f));
    LK_TRY(lk_kept_open(&f->config, &trainer->features.kept, &is_there));
    if (!is_there) {
        LK_TRY(open_source(f));
        LK_TRY(compute(f));
    }
    return LK_OK;
}

static enum lk_status use(struct filling *f)
{
    struct lk_trainer *trainer = f->trainer;
    struct lk_batches_options options = lk_settings_batches(trainer->settings);
    struct lk_batches *batches = NULL;
    options.threads = options.prefetch = 0; /* they are only copied */
    options.lengths = trainer->load.train;
    options.versions = trainer->features.versions;
    options.end = trainer->total_steps;
    LK_TRY(lk_kept_data(trainer->features.kept, &trainer->features.data));
    LK_TRY(lk_batches_create(trainer->features.data, &options, &batches));
    lk_batches_destroy(trainer->batches);
    trainer->batches = batches;
    trainer->feed = f->feed;
    lk_team_set_batches(trainer->team, batches);
    return LK_OK;
}

/* Ranks with one file: the first one makes it, the others find it there. */
static enum lk_status fill_in_turns(struct filling *f)
{
    struct lk_world *world = f->trainer->world;
    const bool is_first = lk_world_rank(world) == 0;
    const bool takes_turns = f->config.path != NULL && lk_world_size(world) > 1;
    enum lk_status status = is_first || !takes_turns ? fill(f) : LK_OK;
    if (takes_turns) {
        LK_TRY(lk_world_barrier(world, status));
        status = is_first ? LK_OK : fill(f);
    }
    return lk_world_barrier(world, status);
}

static enum lk_status create(struct lk_trainer *trainer, struct filling **filling)
{
    const char *where = trainer->settings->cache_features;
    const struct lk_data_info *info = lk_data_info(trainer->load.train);
    struct filling *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("features", sizeof *made);
    made->trainer = trainer;
    made->from = trainer->feed;
    made->count = info->count;
    made->config = (struct lk_kept_config){
        .name = info->name,
        .path = strcmp(where, "memory") == 0 ? NULL : where,
        .count = info->count * trainer->features.versions,
    };
    *filling = made;
    return LK_OK;
}

/* Threads of lost devices may still look at it: then it stays. */
static void destroy(struct filling *filling)
{
    if (lk_team_left(filling->trainer->team) < lk_team_devices(filling->trainer->team))
        return;
    lk_batches_destroy(filling->batches);
    free(filling->states);
    free(filling);
}

enum lk_status lk_features_fill(struct lk_trainer *trainer)
{
    struct filling *f = NULL;
    if (!trainer->features.is_on || trainer->done >= trainer->total_steps)
        return LK_OK;
    enum lk_status status = create(trainer, &f);
    if (status != LK_OK)
        return lk_world_barrier(trainer->world, status);
    status = fill_in_turns(f);
    if (status == LK_OK)
        status = use(f);
    destroy(f);
    return status;
}

void lk_features_clear(struct lk_features *features)
{
    lk_data_close(features->data);
    lk_kept_close(features->kept);
    *features = (struct lk_features){0};
}
