/* The frozen part of an evaluated model, run once a sample. */
#include "train/evaluation/features.h"

#include "base/fail.h"
#include "base/log.h"
#include "data/kept.h"
#include "train/evaluation/internal.h"
#include <stdlib.h>
#include <string.h>

void lk_evaluated_features_clear(struct lk_evaluated_features *features)
{
    for (int i = 0; i < features->features; i++)
        free(features->values[i]);
    for (int f = 0; f < LK_MOST_FIELDS; f++)
        free(features->targets[f]);
    *features = (struct lk_evaluated_features){0};
}

/* Half of the memory that is there may be taken. */
static bool has_room(const struct lk_evaluated_features *features)
{
    size_t all = 0, bytes;
    for (int i = 0; i < features->features; i++)
        if (__builtin_mul_overflow((size_t)features->elements[i], sizeof(float), &bytes) ||
            __builtin_mul_overflow(bytes, (size_t)features->count, &bytes) ||
            __builtin_add_overflow(all, bytes, &all))
            return false;
    return all <= lk_kept_room(NULL) / 2;
}

static enum lk_status allocate(struct lk_evaluated_features *features,
                               const struct lk_replica *head)
{
    struct lk_evaluated_features made = {.count = features->count};
    struct lk_shape shape;
    for (; lk_replica_cut_value(head, made.features, &shape); made.features++)
        made.elements[made.features] = lk_shape_count(&shape);
    if (!has_room(&made))
        return lk_fail(LK_E_MEMORY, "too little memory for features of %lld samples",
                       (long long)made.count);
    for (int i = 0; i < made.features; i++) {
        const size_t bytes =
            (size_t)made.count * (size_t)made.elements[i] * sizeof *made.values[i];
        made.values[i] = malloc(bytes);
        if (!made.values[i]) {
            lk_evaluated_features_clear(&made);
            return lk_fail_memory("features", bytes);
        }
    }
    *features = made;
    return LK_OK;
}

static enum lk_status create_parts(struct lk_evaluator *evaluator,
                                   const struct lk_replica_config *config)
{
    struct lk_replica_config part = *config;
    struct lk_evaluated_features *features = evaluator->features;
    part.part = LK_PART_HEAD;
    LK_TRY(lk_replica_create(&part, &evaluator->replica));
    if (features->features == 0)
        LK_TRY(allocate(features, evaluator->replica));
    if (features->filled == features->count)
        return LK_OK;
    part.part = LK_PART_FROZEN;
    return lk_replica_create(&part, &evaluator->frozen);
}

enum lk_status lk_evaluator_divide(struct lk_evaluator *evaluator,
                                   const struct lk_replica_config *config)
{
    const enum lk_status status = create_parts(evaluator, config);
    if (status == LK_OK)
        return evaluator->frozen ? lk_replica_build(evaluator->frozen) : LK_OK;
    lk_replica_destroy(evaluator->replica);
    evaluator->replica = NULL;
    if (status != LK_E_ARGUMENT && status != LK_E_UNSUPPORTED && status != LK_E_MEMORY)
        return status;
    lk_log(LK_LOG_DEBUG, "validation runs the whole model: %s", lk_error_text());
    lk_error_clear();
    evaluator->features = NULL;
    return LK_OK;
}

/* Computes the features of a batch. When the last are there the frozen part's memory on the
 * device is given back. */
static enum lk_status fill(struct lk_evaluator *evaluator, int64_t batch, int64_t count)
{
    struct lk_evaluated_features *features = evaluator->features;
    struct lk_replica *frozen = evaluator->frozen;
    const int64_t first = batch * evaluator->batch;
    void *fields[LK_MOST_FIELDS] = {NULL};
    LK_TRY(lk_feed_read(&evaluator->feed, frozen, 0, evaluator->batches,
                        (struct lk_batch_range){batch, 0, count}, fields));
    LK_TRY(lk_replica_load(frozen, 0, count));
    LK_TRY(lk_replica_forward(frozen, 0));
    for (int i = 0; i < features->features; i++) {
        struct lk_shape shape;
        const struct lk_buffer *y = lk_replica_output(frozen, i, &shape);
        LK_TRY(lk_tiled_read(y, lk_replica_tiling(frozen), &shape, LK_F32, count,
                             features->values[i] + first * features->elements[i]));
    }
    LK_TRY(lk_replica_wait_slot(frozen, 0));
    features->filled = first + count;
    if (features->filled < features->count)
        return LK_OK;
    lk_replica_destroy(frozen);
    evaluator->frozen = NULL;
    return LK_OK;
}

enum lk_status lk_evaluator_load_features(struct lk_evaluator *evaluator, int64_t batch,
                                          int64_t count)
{
    const struct lk_evaluated_features *features = evaluator->features;
    const int64_t first = batch * evaluator->batch;
    if (first + count > features->filled)
        LK_TRY(fill(evaluator, batch, count));
    for (int i = 0; i < features->features; i++) {
        struct lk_shape shape;
        const struct lk_node *node = lk_replica_cut_value(evaluator->replica, i, &shape);
        memcpy(lk_replica_slot(evaluator->replica, node, 0),
               features->values[i] + first * features->elements[i],
               (size_t)(count * features->elements[i]) * sizeof *features->values[i]);
    }
    return LK_OK;
}

enum lk_status lk_evaluator_keep_targets(struct lk_evaluator *evaluator, int64_t first,
                                         int64_t count, void *const fields[LK_MOST_FIELDS])
{
    struct lk_evaluated_features *features = evaluator->features;
    int field_count = 0;
    const struct lk_field *about = lk_batches_fields(evaluator->batches, &field_count);
    for (int f = 0; f < field_count; f++) {
        const size_t bytes = lk_field_bytes(&about[f]);
        if (!fields[f])
            continue;
        if (!features->targets[f])
            features->targets[f] = calloc((size_t)features->count, bytes);
        if (!features->targets[f])
            return lk_fail_memory("targets", (size_t)features->count * bytes);
        memcpy(features->targets[f] + (size_t)first * bytes, fields[f], (size_t)count * bytes);
    }
    features->kept = first + count;
    return LK_OK;
}

bool lk_evaluator_recall_targets(const struct lk_evaluator *evaluator, int64_t first,
                                 int64_t count, void *const fields[LK_MOST_FIELDS])
{
    const struct lk_evaluated_features *features = evaluator->features;
    int field_count = 0;
    const struct lk_field *about = lk_batches_fields(evaluator->batches, &field_count);
    if (first + count > features->kept)
        return false;
    for (int i = 0; i < evaluator->feed.count; i++)
        if (lk_replica_reads(evaluator->replica, evaluator->feed.rows[i].input))
            return false;
    for (int f = 0; f < field_count; f++)
        if (fields[f] && !features->targets[f])
            return false;
    for (int f = 0; f < field_count; f++) {
        const size_t bytes = lk_field_bytes(&about[f]);
        if (fields[f])
            memcpy(fields[f], features->targets[f] + (size_t)first * bytes,
                   (size_t)count * bytes);
    }
    return true;
}
