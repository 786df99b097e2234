/* What a run that begins with the weights of another one takes over from it besides: data and
 * model, where the settings name none. */
#include "base/fail.h"
#include "base/log.h"
#include "base/text.h"
#include "io/file.h"
#include "train/settings/settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* RUN/config.yaml, of a run directory or of RUN/checkpoints/FILE; "" where there is none. */
static void find_config(const char *run, char *path, size_t bytes)
{
    const int length = snprintf(path, bytes, "%s/config.yaml", run);
    if (length >= 0 && (size_t)length < bytes && lk_file_exists(path))
        return;
    char *end = NULL;
    if ((size_t)snprintf(path, bytes, "%s", run) < bytes)
        end = strrchr(path, '/');
    if (end)
        *end = '\0';
    end = end ? strrchr(path, '/') : NULL;
    const size_t used = end ? (size_t)(end - path) : 0;
    if (!end || strcmp(end, "/checkpoints") != 0 ||
        (size_t)snprintf(end, bytes - used, "/config.yaml") >= bytes - used ||
        !lk_file_exists(path))
        *path = '\0';
}

static enum lk_status take_model(struct lk_settings *settings, const struct lk_settings *there)
{
    if (there->model_text && !(settings->model_text = strdup(there->model_text)))
        return lk_fail_memory("a model text", strlen(there->model_text));
    memcpy(settings->model, there->model, sizeof settings->model);
    memcpy(settings->model_where, there->model_where, sizeof settings->model_where);
    return LK_OK;
}

/* What the same model was made for there, as far as nothing else is asked for. */
static void take_shape(struct lk_settings *settings, const struct lk_settings *there)
{
    for (int i = 0; i < 3; i++)
        if (settings->input[i] == 0)
            settings->input[i] = there->input[i];
    if (settings->classes == 0)
        settings->classes = there->classes;
    if (settings->vocabulary == 0)
        settings->vocabulary = there->vocabulary;
    if (settings->length == 0)
        settings->length = there->length;
    if (!*settings->parameters)
        memcpy(settings->parameters, there->parameters, sizeof settings->parameters);
}

static void take_data(struct lk_settings *settings, const struct lk_settings *there)
{
    memcpy(settings->data, there->data, sizeof settings->data);
    memcpy(settings->max_bad, there->max_bad, sizeof settings->max_bad);
    if (!*settings->validation)
        memcpy(settings->validation, there->validation, sizeof settings->validation);
}

/* Says once what is taken. */
static enum lk_status tell(const struct lk_settings *settings, bool is_data, bool is_model)
{
    struct lk_text text = {0};
    if (is_model)
        lk_text_append(&text, "model %s%s", settings->model, is_data ? ", " : "");
    if (is_data)
        lk_text_append(&text, "data %s", settings->data);
    if (is_data && *settings->validation)
        lk_text_append(&text, ", validation %s", settings->validation);
    if (text.failed)
        return lk_fail_memory("a message", 0);
    if (lk_rank() == 0)
        lk_log(LK_LOG_INFO, "taken over from '%s': %s", settings->init_from, text.bytes);
    free(text.bytes);
    return LK_OK;
}

static enum lk_status take(struct lk_settings *settings, const struct lk_settings *there)
{
    const bool is_model = !settings->model_text && !*settings->model;
    const bool is_data = !*settings->data && *there->data;
    if (is_model)
        LK_TRY(take_model(settings, there));
    if (is_model || (is_data && !settings->model_text && !there->model_text &&
                     strcmp(settings->model, there->model) == 0))
        take_shape(settings, there);
    if (is_data)
        take_data(settings, there);
    return is_model || is_data ? tell(settings, is_data, is_model) : LK_OK;
}

enum lk_status lk_settings_inherit(struct lk_settings *settings)
{
    char path[sizeof settings->init_from + 32];
    struct lk_settings *there = NULL;
    const bool has_model = settings->model_text || *settings->model;
    if (!*settings->init_from || (has_model && *settings->data))
        return LK_OK;
    find_config(settings->init_from, path, sizeof path);
    if (!*path)
        return lk_fail(LK_E_ARGUMENT,
                       "no %s is named, and '%s' has no config.yaml that says which it had",
                       has_model ? "data" : "model", settings->init_from);
    LK_TRY(lk_settings_create(&there));
    enum lk_status status = lk_settings_read(there, path);
    if (status == LK_OK)
        status = take(settings, there);
    lk_settings_destroy(there);
    return status;
}
