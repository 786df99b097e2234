/* --model-config-file */
#include "base/fail.h"
#include "serve/config/config.h"
#include "serve/config/textproto.h"
#include <stdlib.h>
#include <string.h>

/* Reads a field's value; fails where there is no such field. */
typedef enum lk_status field_reader(struct lk_textproto *file, const char *name,
                                    struct lk_config_model *model);

static enum lk_status read_message(struct lk_textproto *file, struct lk_config_model *model,
                                   field_reader *read)
{
    char name[LK_TEXTPROTO_NAME];
    bool more = true;
    LK_TRY(lk_textproto_enter(file));
    while (true) {
        LK_TRY(lk_textproto_field(file, false, name, &more));
        if (!more)
            return LK_OK;
        LK_TRY(read(file, name, model));
    }
}

static enum lk_status unknown(const struct lk_textproto *file, const char *name,
                              const char *where)
{
    return lk_textproto_fail(file, "field '%s' of '%s' is not supported", name, where);
}

/* --- versions ----------------------------------------------------------------------------- */

static enum lk_status read_latest(struct lk_textproto *file, const char *name,
                                  struct lk_config_model *m)
{
    int64_t number = 0;
    if (strcmp(name, "num_versions") != 0)
        return unknown(file, name, "latest");
    LK_TRY(lk_textproto_integer(file, &number));
    if (number < 1 || number > LK_CONFIG_VERSIONS)
        return lk_textproto_fail(file, "'num_versions' is 1 to %d", LK_CONFIG_VERSIONS);
    m->model.newest = (int)number;
    return LK_OK;
}

static enum lk_status read_specific(struct lk_textproto *file, const char *name,
                                    struct lk_config_model *m)
{
    if (strcmp(name, "versions") != 0)
        return unknown(file, name, "specific");
    LK_TRY(
        lk_textproto_integers(file, m->versions, LK_CONFIG_VERSIONS, &m->model.version_count));
    for (int i = 0; i < m->model.version_count; i++)
        if (m->versions[i] < 1)
            return lk_textproto_fail(file, "versions are numbers from 1 on");
    return LK_OK;
}

static enum lk_status read_all(struct lk_textproto *file, const char *name,
                               struct lk_config_model *m)
{
    (void)m;
    return unknown(file, name, "all");
}

static enum lk_status read_policy(struct lk_textproto *file, const char *name,
                                  struct lk_config_model *m)
{
    m->model.newest = m->model.version_count = 0;
    if (strcmp(name, "latest") == 0)
        return read_message(file, m, read_latest);
    if (strcmp(name, "all") == 0) {
        m->model.newest = LK_CONFIG_VERSIONS;
        return read_message(file, m, read_all);
    }
    if (strcmp(name, "specific") != 0)
        return unknown(file, name, "model_version_policy");
    LK_TRY(read_message(file, m, read_specific));
    return m->model.version_count > 0 ? LK_OK
                                      : lk_textproto_fail(file, "'specific' names no version");
}

/* --- labels ------------------------------------------------------------------------------- */

static enum lk_status read_label(struct lk_textproto *file, const char *name,
                                 struct lk_config_model *m)
{
    const int i = m->model.label_count;
    if (strcmp(name, "key") == 0)
        return lk_textproto_text(file, m->label_names[i], sizeof m->label_names[i]);
    if (strcmp(name, "value") == 0)
        return lk_textproto_integer(file, &m->labels[i].version);
    return unknown(file, name, "version_labels");
}

static enum lk_status add_label(struct lk_textproto *file, struct lk_config_model *m)
{
    const int i = m->model.label_count;
    if (i == LK_CONFIG_LABELS)
        return lk_textproto_fail(file, "more than %d labels", LK_CONFIG_LABELS);
    LK_TRY(read_message(file, m, read_label));
    if (!*m->label_names[i] || strpbrk(m->label_names[i], "/:") || m->labels[i].version < 1)
        return lk_textproto_fail(file, "a label needs a key, without '/' and ':', and a value "
                                       "from 1 on");
    m->labels[i].name = m->label_names[i];
    m->model.label_count++;
    return LK_OK;
}

/* --- models ------------------------------------------------------------------------------- */

static enum lk_status read_config(struct lk_textproto *file, const char *name,
                                  struct lk_config_model *m)
{
    char platform[64];
    if (strcmp(name, "name") == 0)
        return lk_textproto_text(file, m->name, sizeof m->name);
    if (strcmp(name, "base_path") == 0)
        return lk_textproto_text(file, m->path, sizeof m->path);
    if (strcmp(name, "model_platform") == 0) /* there is but one */
        return lk_textproto_text(file, platform, sizeof platform);
    if (strcmp(name, "model_version_policy") == 0)
        return read_message(file, m, read_policy);
    if (strcmp(name, "version_labels") == 0)
        return add_label(file, m);
    return unknown(file, name, "config");
}

struct list {
    struct lk_config_model *models; /* [LK_CONFIG_MODELS] */
    int count;
};

static enum lk_status read_list(struct lk_textproto *file, struct list *list)
{
    char name[LK_TEXTPROTO_NAME];
    bool more = true;
    LK_TRY(lk_textproto_enter(file));
    while (true) {
        LK_TRY(lk_textproto_field(file, false, name, &more));
        if (!more)
            return LK_OK;
        if (strcmp(name, "config") != 0)
            return unknown(file, name, "model_config_list");
        if (list->count == LK_CONFIG_MODELS)
            return lk_textproto_fail(file, "more than %d models", LK_CONFIG_MODELS);
        struct lk_config_model *m = &list->models[list->count++];
        LK_TRY(read_message(file, m, read_config));
        if (!*m->name || !*m->path)
            return lk_textproto_fail(file, "a model needs 'name' and 'base_path'");
        m->model.name = m->name;
        m->model.path = m->path;
        m->model.versions = m->versions;
        m->model.labels = m->labels;
    }
}

static enum lk_status read_file(struct lk_textproto *file, struct list *list)
{
    char name[LK_TEXTPROTO_NAME];
    bool more = true;
    while (true) {
        LK_TRY(lk_textproto_field(file, true, name, &more));
        if (!more)
            break;
        if (strcmp(name, "model_config_list") != 0)
            return lk_textproto_fail(file, "unknown field '%s'; known is model_config_list",
                                     name);
        LK_TRY(read_list(file, list));
    }
    return list->count > 0 ? LK_OK : lk_textproto_fail(file, "no model");
}

enum lk_status lk_config_read_models(const char *path, struct lk_config_model **models,
                                     int *count)
{
    struct lk_textproto file;
    LK_TRY(lk_textproto_open(path, &file));
    struct list list = {calloc(LK_CONFIG_MODELS, sizeof *list.models), 0};
    const enum lk_status status =
        list.models ? read_file(&file, &list) : lk_fail_memory("models", sizeof *list.models);
    lk_textproto_clear(&file);
    if (status != LK_OK) {
        free(list.models);
        return status;
    }
    *models = list.models;
    *count = list.count;
    return LK_OK;
}
