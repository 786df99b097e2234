/* Run files: settings as YAML, read and written. */
#include "io/file.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/text.h"
#include "model/yaml/yaml.h"
#include "train/settings/settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "[1, 2]" */
static enum lk_status append_list(struct lk_text *text, const struct lk_yaml *list)
{
    lk_text_append(text, "[");
    for (const struct lk_yaml *entry = list->first; entry; entry = entry->next) {
        if (entry->kind != LK_YAML_SCALAR)
            return lk_yaml_fail(entry, "'%s' is a list of single values", list->key);
        lk_text_append(text, "%s%s", entry == list->first ? "" : ", ", entry->text);
    }
    lk_text_append(text, "]");
    return LK_OK;
}

/* Options of a map as "name=value ...". */
static enum lk_status append_options(struct lk_text *text, const struct lk_yaml *map)
{
    for (const struct lk_yaml *entry = map->first; entry; entry = entry->next) {
        if (entry->kind == LK_YAML_MAP)
            return lk_yaml_fail(entry, "option '%s' is no single value", entry->key);
        const char *quote =
            entry->kind == LK_YAML_SCALAR && strpbrk(entry->text, " |") ? "\"" : "";
        lk_text_append(text, "%s%s=%s", text->used ? " " : "", entry->key, quote);
        if (entry->kind == LK_YAML_LIST)
            LK_TRY(append_list(text, entry));
        else
            lk_text_append(text, "%s%s", entry->text, quote);
    }
    return LK_OK;
}

/* A stage of a pipeline, or a callback: "flip" or {crop: {padding: 4}}. */
static enum lk_status append_stage(struct lk_text *text, const struct lk_yaml *stage)
{
    const struct lk_yaml *value = stage->first;
    lk_text_append(text, "%s", text->used ? " | " : "");
    if (stage->kind == LK_YAML_SCALAR) {
        lk_text_append(text, "%s", stage->text);
        return LK_OK;
    }
    if (stage->kind != LK_YAML_MAP || stage->count != 1)
        return lk_yaml_fail(stage, "a stage is a name or {name: {option: value}}");
    lk_text_append(text, "%s%s", value->key, value->kind == LK_YAML_MAP ? "" : " ");
    if (value->kind == LK_YAML_MAP)
        return append_options(text, value);
    if (value->kind == LK_YAML_LIST)
        return append_list(text, value);
    lk_text_append(text, "%s", value->is_null ? "" : value->text);
    return LK_OK;
}

/* After each stage the pipeline so far is tried, so that a refusal has the stage's line. */
static enum lk_status set_stages(struct lk_settings *settings, const struct lk_yaml *list)
{
    struct lk_text text = {0};
    enum lk_status status = lk_settings_set(settings, list->key, "");
    for (const struct lk_yaml *stage = list->first; stage && status == LK_OK;
         stage = stage->next) {
        status = append_stage(&text, stage);
        if (status == LK_OK && text.failed)
            status = lk_fail_memory("a pipeline", text.room);
        if (status == LK_OK)
            status = lk_yaml_at(stage, lk_settings_set(settings, list->key, text.bytes));
    }
    free(text.bytes);
    return status;
}

/* A value as lk_option_set() takes it: a list in brackets; `{adam: {beta_1: 0.8}}`,
 * `{cosine: {steps: 9}}` and `{kind: cosine, steps: 9}` as options. */
static enum lk_status value_text(const struct lk_yaml *value, struct lk_text *text)
{
    if (value->kind == LK_YAML_SCALAR) {
        lk_text_append(text, "%s", value->is_null ? "" : value->text);
        return LK_OK;
    }
    if (value->kind == LK_YAML_LIST)
        return append_list(text, value);
    if (value->count == 1 && value->first->kind == LK_YAML_MAP) {
        lk_text_append(text, "%s%s", strcmp(value->key, "schedule") == 0 ? "kind=" : "",
                       value->first->key);
        return append_options(text, value->first);
    }
    return append_options(text, value);
}

/* The entry of a map that the kept message names first, else the map itself. */
static const struct lk_yaml *find_named(const struct lk_yaml *map)
{
    const struct lk_yaml *named = map;
    const char *first = NULL;
    for (const struct lk_yaml *entry = map->first; entry && entry->key; entry = entry->next) {
        char quoted[80];
        snprintf(quoted, sizeof quoted, "'%.76s'", entry->key);
        const char *found = strstr(lk_error_text(), quoted);
        if (found && (!first || found < first)) {
            first = found;
            named = entry;
        }
    }
    return named;
}

/* Of options below a name, {adam: {beta_1: 0.9}}, too. */
static const struct lk_yaml *find_wrong(const struct lk_yaml *entry)
{
    const struct lk_yaml *named = find_named(entry);
    const struct lk_yaml *inner = named == entry && entry->count == 1 ? entry->first : named;
    const struct lk_yaml *deeper = inner->kind == LK_YAML_MAP ? find_named(inner) : inner;
    return deeper == inner ? named : deeper;
}

static enum lk_status set_one(struct lk_settings *settings, const struct lk_yaml *entry)
{
    struct lk_text text = {0};
    if (entry->kind == LK_YAML_LIST &&
        (strcmp(entry->key, "pipeline") == 0 || strcmp(entry->key, "eval_pipeline") == 0 ||
         strcmp(entry->key, "callbacks") == 0))
        return set_stages(settings, entry);
    enum lk_status status = value_text(entry, &text);
    if (status == LK_OK && text.failed)
        status = lk_fail_memory("a setting", text.room);
    if (status == LK_OK && text.bytes)
        lk_unescape(text.bytes);
    if (status == LK_OK) {
        status = lk_settings_set(settings, entry->key, text.bytes ? text.bytes : "");
        status = lk_yaml_at(status == LK_OK ? entry : find_wrong(entry), status);
    }
    free(text.bytes);
    return status;
}

static enum lk_status set_model(struct lk_settings *settings, const struct lk_yaml *entry,
                                const char *whole)
{
    if (entry->kind != LK_YAML_MAP)
        return set_one(settings, entry);
    char *text = NULL;
    LK_TRY(lk_yaml_cut(whole, entry, &text));
    free(settings->model_text);
    settings->model_text = text;
    snprintf(settings->model_where, sizeof settings->model_where, "%s", entry->where);
    snprintf(settings->model, sizeof settings->model, "inline");
    return LK_OK;
}

static bool is_run_file(const struct lk_yaml *root)
{
    return root->kind == LK_YAML_MAP && lk_yaml_find(root, "model");
}

static enum lk_status set_all(struct lk_settings *settings, const struct lk_yaml *root,
                              const char *whole)
{
    if (!is_run_file(root))
        return lk_yaml_fail(root, "a run file is a map with 'model', 'data' and 'train'");
    for (const struct lk_yaml *entry = root->first; entry; entry = entry->next) {
        if (strcmp(entry->key, "model") == 0) {
            LK_TRY(set_model(settings, entry, whole));
        } else if (strcmp(entry->key, "train") == 0) {
            if (entry->kind != LK_YAML_MAP)
                return lk_yaml_fail(entry, "'train' is a map of settings");
            for (const struct lk_yaml *e = entry->first; e; e = e->next)
                LK_TRY(set_one(settings, e));
        } else {
            LK_TRY(set_one(settings, entry));
        }
    }
    return LK_OK;
}

static bool is_yaml_name(const char *path)
{
    const char *end = strrchr(path, '.');
    return end && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0);
}

bool lk_settings_is_run_file(const char *path)
{
    void *data = NULL;
    size_t bytes = 0;
    struct lk_yaml_document *document = NULL;
    bool is_one = false;
    if (lk_file_read(path, LK_YAML_MOST_BYTES, &data, &bytes) == LK_OK)
        is_one = lk_yaml_read(data, bytes, path, &document) == LK_OK
                     ? is_run_file(lk_yaml_root(document))
                     : is_yaml_name(path);
    lk_error_clear();
    lk_yaml_destroy(document);
    free(data);
    return is_one;
}

enum lk_status lk_settings_read_text(struct lk_settings *settings, const char *text,
                                     size_t bytes, const char *where)
{
    struct lk_yaml_document *document = NULL;
    LK_TRY(lk_yaml_read(text, bytes, where, &document));
    const enum lk_status status = set_all(settings, lk_yaml_root(document), text);
    lk_yaml_destroy(document);
    return status;
}

enum lk_status lk_settings_read(struct lk_settings *settings, const char *path)
{
    void *data = NULL;
    size_t bytes = 0;
    LK_TRY(lk_file_read(path, LK_YAML_MOST_BYTES, &data, &bytes));
    const enum lk_status status = lk_settings_read_text(settings, data, bytes, path);
    free(data);
    return status;
}

/* A value in double quotes, as YAML reads it back. */
static void append_quoted(struct lk_text *text, const char *value)
{
    lk_text_append(text, "\"");
    for (const char *p = value; *p; p++) {
        if (*p == '"' || *p == '\\')
            lk_text_append(text, "\\%c", *p);
        else if ((unsigned char)*p < ' ')
            lk_text_append(text, "\\x%02x", (unsigned char)*p);
        else
            lk_text_append(text, "%c", *p);
    }
    lk_text_append(text, "\"");
}

static void append_setting(struct lk_text *text, const struct lk_option *row,
                           const struct lk_settings *settings, const char *indent)
{
    char value[1024], escaped[LK_ESCAPED_BYTES(sizeof value)];
    lk_option_print(row, settings, value, sizeof value);
    lk_escape(value, escaped);
    lk_text_append(text, "%s%s: ", indent, row->name);
    if (row->kind == LK_OPTION_TEXT)
        append_quoted(text, escaped);
    else if (row->count > 1)
        lk_text_append(text, "[%s]", value);
    else
        lk_text_append(text, "%s", value);
    lk_text_append(text, "\n");
}

/* The lines of an inline model, moved below "model:". */
static void append_model(struct lk_text *text, const char *model)
{
    lk_text_append(text, "model:\n");
    while (*model) {
        const size_t length = strcspn(model, "\n");
        if (strspn(model, " ") < length)
            lk_text_append(text, "  %.*s\n", (int)length, model);
        model += length + (model[length] == '\n');
    }
}

/* A vocabulary and a length are for models of texts; 0 may mean a parameter of that name. */
static bool is_said(const struct lk_settings *settings, const char *name)
{
    return strcmp(name, "vocabulary") == 0 ? settings->vocabulary > 0
           : strcmp(name, "length") == 0   ? settings->length > 0
                                           : true;
}

enum lk_status lk_settings_print(const struct lk_settings *settings, char **result)
{
    static const char *const outside[] = {"model",    "input",        "classes", "vocabulary",
                                          "length",   "parameters",   "data",    "validation",
                                          "pipeline", "eval_pipeline"};
    struct lk_text text = {0};
    for (int i = 0; i < LK_COUNT(outside); i++)
        if (i == 0 && settings->model_text)
            append_model(&text, settings->model_text);
        else if (is_said(settings, outside[i]))
            append_setting(&text, lk_option_find(lk_settings_table, outside[i]), settings, "");
    lk_text_append(&text, "train:\n");
    for (const struct lk_option *row = lk_settings_table; row->kind != LK_OPTION_END; row++) {
        bool is_outside = strcmp(row->name, "fresh") == 0 ||   /* said once, not for */
                          strcmp(row->name, "profile") == 0 || /* the next time */
                          strcmp(row->name, "callback") == 0 ||
                          strcmp(row->name, "augment") == 0; /* a name of pipeline */
        for (int i = 0; i < LK_COUNT(outside); i++)
            is_outside |= strcmp(row->name, outside[i]) == 0;
        if (!is_outside)
            append_setting(&text, row, settings, "  ");
    }
    if (text.failed) {
        free(text.bytes);
        return lk_fail_memory("settings", text.room);
    }
    *result = text.bytes;
    return LK_OK;
}

enum lk_status lk_settings_open_model(const struct lk_settings *settings,
                                      struct lk_model **model)
{
    const struct lk_model_shape shape = {
        settings->input[0],   settings->input[1],   settings->input[2], settings->classes,
        settings->parameters, settings->vocabulary, settings->length};
    struct lk_model *opened = NULL;
    if (!settings->model_text && !settings->model[0])
        return lk_fail(LK_E_ARGUMENT, "no model: name one of the zoo or a model file");
    if (settings->model_text)
        LK_TRY(lk_model_read(settings->model_text, strlen(settings->model_text),
                             settings->model_where, &opened));
    else
        LK_TRY(lk_model_open(settings->model, &shape, &opened));
    const enum lk_status status =
        lk_model_freeze(&opened, settings->freeze_until, settings->train_last);
    if (status != LK_OK) {
        lk_model_destroy(opened);
        return status;
    }
    *model = opened;
    return LK_OK;
}
