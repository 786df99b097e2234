/* Reads the data of a training on a thread of its own, while kernels are built. */
#include "train/settings/fit.h"
#include "train/trainer_internal.h"

#include "base/fail.h"
#include "base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The standard validation data is the validation part of the training data, or its test part,
 * where it has one of them. */
static enum lk_status open_validation(struct lk_data_load *load)
{
    const char *spec = load->settings->validation;
    if (strcmp(spec, "off") == 0)
        return LK_OK;
    if (*spec)
        return lk_data_open_as(spec, LK_DATA_VALIDATION_OR_ALL, &load->wanted_validation,
                               &load->validation);
    const enum lk_status status = lk_data_open_as(load->settings->data, LK_DATA_VALIDATION,
                                                  &load->wanted_validation, &load->validation);
    if (status != LK_E_IO)
        return status;
    lk_log(LK_LOG_WARNING, "no validation: %s", lk_error_text());
    lk_error_clear();
    return LK_OK;
}

static void *load_data(void *argument)
{
    struct lk_data_load *load = argument;
    if (!load->train)
        load->status =
            lk_data_open_as(load->settings->data, LK_DATA_TRAIN, &load->wanted, &load->train);
    if (load->status == LK_OK) {
        load->wanted_validation.vocabulary = lk_data_vocabulary(load->train);
        load->status = open_validation(load);
    }
    if (load->status != LK_OK) {
        snprintf(load->text, sizeof load->text, "%s", lk_error_text());
        atomic_store(&load->has_failed, true);
    }
    return NULL;
}

/* With all ranks: the vocabulary that texts have to have. What was opened with another one is
 * opened again. */
static enum lk_status find_vocabulary(struct lk_trainer *trainer)
{
    struct lk_data_load *load = &trainer->load;
    char *kept = NULL;
    if (lk_world_rank(trainer->world) == 0)
        LK_TRY(lk_settings_kept_vocabulary(trainer->settings, &kept));
    if (!kept && !(kept = strdup("")))
        return lk_fail_memory("a vocabulary", 0);
    const enum lk_status status = lk_trainer_share_text(trainer->world, &kept);
    trainer->kept_vocabulary = kept;
    LK_TRY(status);
    const char *there = load->train ? lk_data_vocabulary(load->train) : NULL;
    if (*kept && load->train && (!there || strcmp(there, kept) != 0)) {
        lk_data_close(load->train);
        load->train = NULL;
    }
    return LK_OK;
}

enum lk_status lk_data_load_start(struct lk_trainer *trainer)
{
    struct lk_data_load *load = &trainer->load;
    const struct lk_settings *settings = trainer->settings;
    if (!settings->data[0])
        return lk_fail(
            LK_E_ARGUMENT,
            "no data: give --data folder:DIR, idx:DIR, fashion-mnist or synthetic:digits");
    load->settings = settings;
    load->wanted = lk_data_wanted(trainer->model, &trainer->pipeline);
    load->wanted_validation = lk_data_wanted(trainer->model, &trainer->eval_pipeline);
    load->wanted.max_bad = load->wanted_validation.max_bad = settings->max_bad;
    load->wanted.cache = load->wanted_validation.cache = settings->data_cache;
    LK_TRY(find_vocabulary(trainer));
    load->wanted.vocabulary = trainer->kept_vocabulary;
    if (pthread_create(&load->thread, NULL, load_data, load) != 0)
        return lk_fail(LK_E_MEMORY, "cannot start a thread");
    load->is_running = true;
    return LK_OK;
}

enum lk_status lk_data_load_join(struct lk_data_load *load)
{
    if (load->is_running) {
        pthread_join(load->thread, NULL);
        load->is_running = false;
    }
    return load->status == LK_OK ? LK_OK : lk_fail(load->status, "%s", load->text);
}

/* The fields that a model reads, of some samples. */
static enum lk_status add_samples(const struct lk_data *data, void *const fields[],
                                  struct lk_sha256 *sum)
{
    enum { SAMPLES = 256 };
    const struct lk_data_info *info = lk_data_info(data);
    const int64_t count = info->count < SAMPLES ? info->count : SAMPLES;
    for (int64_t i = 0; i < count; i++) {
        const int64_t index = i * info->count / count;
        LK_TRY(lk_data_read_fields(data, &index, 1, fields));
        for (int f = 0; f < info->field_count; f++)
            if (fields[f])
                lk_sha256_add(sum, fields[f], lk_field_bytes(&info->fields[f]));
    }
    return LK_OK;
}

enum lk_status lk_data_fingerprint(const struct lk_data *data, const struct lk_feed *feed,
                                   char text[LK_SHA256_TEXT])
{
    const struct lk_data_info *info = lk_data_info(data);
    const int64_t shape[] = {info->count, info->height, info->width, info->channels,
                             info->classes};
    struct lk_sha256 sum = {0};
    void *fields[LK_MOST_FIELDS] = {NULL};
    enum lk_status status = LK_OK;
    for (int i = 0; i < feed->count; i++) {
        void **field = &fields[feed->rows[i].field];
        if (!*field)
            *field = malloc(lk_field_bytes(&info->fields[feed->rows[i].field]));
        if (!*field)
            status = lk_fail_memory("a sample", 0);
    }
    if (status == LK_OK)
        status = lk_sha256_init(&sum);
    if (status == LK_OK) {
        lk_sha256_add(&sum, shape, sizeof shape);
        status = add_samples(data, fields, &sum);
        lk_sha256_finish(&sum, text);
    }
    lk_sha256_clear(&sum);
    for (int i = 0; i < LK_MOST_FIELDS; i++)
        free(fields[i]);
    return status;
}
