/* What features depend on, as one checksum. */
#include "train/features_stamp.h"

#include "base/build.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/data.h"
#include "graph/place/group.h"
#include "train/trainer_internal.h"
#include <stdlib.h>
#include <string.h>

static void add_text(struct lk_sha256 *sum, const char *text)
{
    lk_sha256_add(sum, text ? text : "", text ? strlen(text) + 1 : 1);
}

static enum lk_status add_data(const struct lk_features_stamp *stamp, struct lk_sha256 *sum)
{
    const struct lk_trainer *trainer = stamp->trainer;
    const int64_t numbers[] = {stamp->config->count, trainer->features.versions,
                               trainer->features.draws ? trainer->settings->seed : 0};
    bool of[LK_MOST_FIELDS] = {false};
    for (int i = 0; i < stamp->feed->count; i++)
        of[stamp->feed->rows[i].field] = true;
    add_text(sum, trainer->data_sum);
    add_text(sum, trainer->text);
    add_text(sum, trainer->classes_text);
    lk_sha256_add(sum, numbers, sizeof numbers);
    for (int i = 0; i < stamp->config->field_count; i++) {
        const struct lk_field *field = &stamp->config->fields[i];
        char shape[96];
        lk_shape_print(&field->shape, shape, sizeof shape);
        add_text(sum, field->name);
        add_text(sum, shape);
        add_text(sum, stamp->config->is_half[i] ? "half" : lk_dtype_name(field->dtype));
    }
    return lk_data_identify(trainer->load.train, of, sum);
}

/* A parameter is at one place of a group. */
static enum lk_status add_params(const struct lk_replica *head, struct lk_sha256 *sum)
{
    const size_t real = lk_dtype_bytes(lk_replica_real(head));
    for (int i = 0; lk_replica_param(head, i) != NULL; i++) {
        const struct lk_replica *replica =
            lk_group_member(head, lk_group_place_of_param(head, i));
        const struct lk_param *param = lk_replica_param(replica, i);
        if (param->has_gradient)
            continue;
        const size_t bytes = (size_t)param->count * real;
        void *values = malloc(bytes);
        if (!values)
            return lk_fail_memory("a parameter", bytes);
        const enum lk_status status = lk_replica_read_param(replica, i, values);
        add_text(sum, param->name);
        if (status == LK_OK)
            lk_sha256_add(sum, values, bytes);
        free(values);
        LK_TRY(status);
    }
    return LK_OK;
}

/* Inputs, and the frozen operations as a replica of them alone has prepared them. */
static enum lk_status add_operations(const struct lk_features_stamp *stamp,
                                     const struct lk_replica *head, struct lk_sha256 *sum)
{
    const struct lk_tiling *tiling = lk_replica_tiling(head);
    struct lk_replica_config config = {.device = stamp->worker->device,
                                       .outputs = {stamp->trainer->loss},
                                       .batch = tiling->shard_samples,
                                       .shards = 1,
                                       .real = LK_F32,
                                       .stores_half = lk_replica_feature_dtype(head) == LK_F16,
                                       .training = true,
                                       .part = LK_PART_FROZEN,
                                       .transform = &stamp->trainer->transform,
                                       .choices = stamp->trainer->choices};
    struct lk_text text = {0};
    lk_feed_describe(stamp->feed, &text);
    enum lk_status status = lk_replica_describe(&config, &text);
    if (status == LK_OK && text.failed)
        status = lk_fail_memory("a description", text.room);
    if (status == LK_OK)
        add_text(sum, text.bytes);
    free(text.bytes);
    return status;
}

enum lk_status lk_features_stamp(const struct lk_features_stamp *stamp,
                                 char text[LK_SHA256_TEXT])
{
    const struct lk_replica *head = lk_stepper_replica(stamp->worker->stepper);
    struct lk_sha256 sum = {0};
    LK_TRY(lk_sha256_init(&sum));
    add_text(&sum, "features 2");
    add_text(&sum, lk_build);
    add_text(&sum, lk_device_info(stamp->worker->device)->name);
    enum lk_status status = add_data(stamp, &sum);
    if (status == LK_OK)
        status = add_params(head, &sum);
    if (status == LK_OK)
        status = add_operations(stamp, head, &sum);
    lk_sha256_finish(&sum, text);
    lk_sha256_clear(&sum);
    return status;
}
