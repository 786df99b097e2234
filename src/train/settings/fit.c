/* Fits a model of the zoo to its data: input and classes that the settings leave open are those
 * of the run that goes on, else those of the data. */
#include "train/settings/fit.h"

#include "base/fail.h"
#include "base/log.h"
#include "data/data.h"
#include "data/stages/pipeline.h"
#include "io/file.h"
#include "model/checkpoint/checkpoint.h"
#include "model/model.h"
#include "train/evaluation/images.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a model takes, and what data has; 0: it has none. */
struct extent {
    int64_t input[3], classes;  /* height, width, channels */
    int64_t vocabulary, length; /* of texts */
};

static bool is_of_zoo(const struct lk_settings *settings)
{
    const char *name;
    for (int i = 0; !settings->model_text && (name = lk_model_zoo(i)); i++)
        if (strcmp(name, settings->model) == 0)
            return true;
    return false;
}

static bool is_told(const struct lk_settings *s)
{
    if (s->vocabulary > 0 && s->length > 0 && s->classes > 0)
        return true;
    return s->input[0] > 0 && s->input[1] > 0 && s->input[2] > 0 && s->classes > 0;
}

/* Takes what the settings leave open. */
static void take(struct lk_settings *settings, const struct extent *from)
{
    for (int i = 0; i < 3; i++)
        if (settings->input[i] == 0)
            settings->input[i] = from->input[i];
    if (settings->classes == 0)
        settings->classes = from->classes;
    if (settings->vocabulary == 0)
        settings->vocabulary = from->vocabulary;
    if (settings->length == 0)
        settings->length = from->length;
}

/* The zoo's own, of a model with one image and one vector of classes, or of texts; nothing of a
 * model of numbers. */
static enum lk_status find_own(const char *name, struct extent *own)
{
    struct lk_model *model = NULL;
    LK_TRY(lk_model_open(name, NULL, &model));
    const struct lk_shape x = model->inputs[0]->shapes.y;
    const struct lk_node *tokens = lk_model_tokens(model);
    *own = (struct extent){.input = {x.dim[1], x.dim[2], x.dim[0]},
                           .classes = lk_shape_count(&lk_model_output(model)->shapes.y)};
    if (tokens)
        *own = (struct extent){.classes = model->classes,
                               .vocabulary = model->vocabulary,
                               .length = tokens->input.shape.dim[0]};
    else if (!lk_model_images(model))
        *own = (struct extent){0};
    lk_model_destroy(model);
    return LK_OK;
}

/* A run goes on with the model that it has, which its config.yaml tells: whatever that leaves
 * open was the zoo's own. */
static enum lk_status take_from_run(struct lk_settings *settings, const struct extent *own)
{
    char checkpoints[sizeof settings->run + 16], config[sizeof settings->run + 16];
    struct lk_settings *there = NULL;
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", settings->run);
    snprintf(config, sizeof config, "%s/config.yaml", settings->run);
    if (!settings->run[0] || settings->fresh || !lk_checkpoint_is_there(checkpoints) ||
        !lk_file_exists(config))
        return LK_OK;
    LK_TRY(lk_settings_create(&there));
    if (lk_settings_read(there, config) == LK_OK &&
        strcmp(there->model, settings->model) == 0) {
        take(there, own);
        take(settings, &(struct extent){{there->input[0], there->input[1], there->input[2]},
                                        there->classes,
                                        there->vocabulary,
                                        there->length});
    }
    lk_error_clear(); /* a file that cannot be read tells nothing */
    lk_settings_destroy(there);
    return LK_OK;
}

/* Says once what a model takes that is not its own. */
static void tell(const struct lk_settings *s, const struct extent *own, bool is_scaled)
{
    if (lk_rank() != 0 ||
        (memcmp(s->input, own->input, sizeof own->input) == 0 && s->classes == own->classes))
        return;
    lk_log(LK_LOG_INFO,
           "%s is made for the data: %lldx%lldx%lld and %lld classes, in place of its own "
           "%lldx%lldx%lld and %lld%s; --set input=[H,W,C] and --set classes=N say otherwise",
           s->model, (long long)s->input[0], (long long)s->input[1], (long long)s->input[2],
           (long long)s->classes, (long long)own->input[0], (long long)own->input[1],
           (long long)own->input[2], (long long)own->classes,
           is_scaled ? "; images are scaled to this size" : "");
}

/* What a model of texts takes of its data: the length and the vocabulary of the tokens, and the
 * classes, if its text says how many there are. */
static void find_text(const struct lk_data_info *info, const struct extent *own,
                      struct extent *found)
{
    *found = (struct extent){.classes = own->classes > 0 ? info->classes : 0};
    for (int i = info->field_count - 1; i >= 0; i--) {
        const struct lk_field *field = &info->fields[i];
        if (field->role == LK_FIELD_INPUT && field->dtype == LK_I32 && field->shape.rank == 1) {
            found->length = field->shape.dim[0];
            found->vocabulary = own->vocabulary > 0 ? field->classes : 0;
        }
    }
}

/* A model of language has no classes but the tokens: nothing is said of them then. */
static void tell_of_text(const struct lk_settings *s, const struct extent *own)
{
    const bool has_classes = s->classes > 0 || own->classes > 0;
    char now[64] = "", before[32] = "";
    if (lk_rank() != 0 || (s->vocabulary == own->vocabulary && s->length == own->length &&
                           s->classes == own->classes))
        return;
    if (has_classes) {
        snprintf(now, sizeof now, ", %lld classes", (long long)s->classes);
        snprintf(before, sizeof before, ", %lld", (long long)own->classes);
    }
    lk_log(LK_LOG_INFO,
           "%s is made for the data: %lld tokens a sample, a vocabulary of %lld%s, in place of "
           "its own %lld, %lld%s; --set length=N, vocabulary=N%s say otherwise",
           s->model, (long long)s->length, (long long)s->vocabulary, now,
           (long long)own->length, (long long)own->vocabulary, before,
           has_classes ? ", classes=N" : "");
}

static enum lk_status take_from_texts(struct lk_settings *settings, const struct extent *own,
                                      struct lk_data **data)
{
    char *kept = NULL;
    LK_TRY(lk_settings_kept_vocabulary(settings, &kept));
    const struct lk_data_options wanted = {
        .width = (int)(settings->length ? settings->length : own->length),
        .height = 1,
        .channels = 1,
        .max_bad = settings->max_bad,
        .length = (int)(settings->length ? settings->length : own->length),
        .words = own->vocabulary > 0,
        .vocabulary = kept};
    struct lk_data *opened = NULL;
    const enum lk_status status =
        lk_data_open_as(settings->data, LK_DATA_TRAIN, &wanted, &opened);
    free(kept);
    LK_TRY(status);
    struct extent found;
    find_text(lk_data_info(opened), own, &found);
    take(settings, &found);
    take(settings, own); /* what the data does not have either */
    tell_of_text(settings, own);
    if (data && strcmp(settings->data_cache, "none") == 0)
        *data = opened;
    else
        lk_data_close(opened);
    return LK_OK;
}

static enum lk_status take_from_data(struct lk_settings *settings, const struct extent *own,
                                     struct lk_data **data)
{
    struct lk_pipeline pipeline;
    LK_TRY(lk_pipeline_parse(settings->pipeline, true, &pipeline));
    const int *size = pipeline.resize[0] ? pipeline.resize : pipeline.crop;
    const int64_t *told = settings->input;
    const struct lk_data_options wanted = {
        .height = size[0] ? size[0] : (int)(told[0] ? told[0] : own->input[0]),
        .width = size[0] ? size[1] : (int)(told[1] ? told[1] : own->input[1]),
        .channels = (int)told[2],
        .max_bad = settings->max_bad,
        .decode = pipeline.decodes_full ? "full" : NULL,
        .part_height = pipeline.first_crop[0],
        .part_width = pipeline.first_crop[1],
        .parts_by_chance = pipeline.first_crop_by_chance};
    struct lk_data *opened = NULL;
    LK_TRY(lk_data_open_as(settings->data, LK_DATA_TRAIN, &wanted, &opened));
    const struct lk_data_info *info = lk_data_info(opened);
    struct extent found = {.input = {info->height, info->width, info->channels},
                           .classes = info->classes};
    for (int i = 0; i < 2; i++)
        if (pipeline.crop[0] && found.input[i])
            found.input[i] = pipeline.crop[i];
    take(settings, &found);
    take(settings, own); /* what the data does not have either */
    tell(settings, own, info->decodes && !size[0] && info->height == own->input[0]);
    const bool fits_cache = strcmp(settings->data_cache, "none") == 0 ||
                            (!info->decodes && strcmp(settings->data_cache, "memory") == 0);
    if (data && fits_cache) /* else it is opened again, with the cache or to refuse it */
        *data = opened;
    else
        lk_data_close(opened);
    return LK_OK;
}

/* Reads the vocabulary that a run, or a checkpoint, was trained with. */
static enum lk_status read_vocabulary(const char *path, char **text)
{
    char found[1024];
    struct lk_checkpoint_file *file = NULL;
    LK_TRY(lk_checkpoint_find(path, found, sizeof found));
    LK_TRY(lk_checkpoint_open(found, &file));
    const char *there = lk_checkpoint_metadata(file)->vocabulary;
    *text = there && *there ? strdup(there) : NULL;
    const bool is_lost = there && *there && !*text;
    lk_checkpoint_close(file);
    return is_lost ? lk_fail_memory("a vocabulary", 0) : LK_OK;
}

enum lk_status lk_settings_kept_vocabulary(const struct lk_settings *settings, char **text)
{
    char checkpoints[sizeof settings->run + 16];
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", settings->run);
    *text = NULL;
    if (strncmp(settings->data, "text:", 5) != 0 && !strstr(settings->data, ",text="))
        return LK_OK; /* a checkpoint is read as a whole, which takes its time */
    if (settings->run[0] && !settings->fresh && lk_checkpoint_is_there(checkpoints))
        return read_vocabulary(settings->run, text);
    return settings->init_from[0] ? read_vocabulary(settings->init_from, text) : LK_OK;
}

enum lk_status lk_settings_fit_to(struct lk_settings *settings, struct lk_data **data)
{
    struct extent own, known = {0}; /* images: no vocabulary, no length */
    if (!settings->data[0] || !is_of_zoo(settings) || is_told(settings))
        return LK_OK;
    LK_TRY(find_own(settings->model, &own));
    if (own.length == 0 && own.classes == 0)
        return LK_OK;
    LK_TRY(take_from_run(settings, &own));
    if (is_told(settings))
        return LK_OK;
    if (own.length > 0)
        return take_from_texts(settings, &own, data);
    if (!settings->pipeline[0] &&
        lk_data_known_shape(settings->data, known.input, &known.classes)) {
        take(settings, &known); /* without opening it, which can wait for a thread */
        tell(settings, &own, false);
        return LK_OK;
    }
    return take_from_data(settings, &own, data);
}

struct lk_batches_options lk_settings_batches(const struct lk_settings *settings)
{
    return (struct lk_batches_options){.size = (int)settings->batch_size,
                                       .seed = (uint64_t)settings->seed,
                                       .shuffle = settings->shuffle,
                                       .drop_remainder = settings->drop_remainder,
                                       .bucket = (int)settings->bucket,
                                       .threads = (int)settings->data_threads,
                                       .prefetch = (int)settings->prefetch};
}

enum lk_status lk_settings_open_fitted(const struct lk_settings *settings,
                                       struct lk_model **model)
{
    const struct lk_settings *s = settings;
    const enum lk_status status = lk_settings_open_model(s, model);
    if (status == LK_OK || !is_of_zoo(s) || !is_told(s))
        return status;
    return lk_fail_within(status, "model '%s' for %lldx%lldx%lld and %lld classes", s->model,
                          (long long)s->input[0], (long long)s->input[1],
                          (long long)s->input[2], (long long)s->classes);
}

enum lk_status lk_settings_fit(struct lk_settings *settings)
{
    return lk_settings_fit_to(settings, NULL);
}
