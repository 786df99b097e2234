/* Names of classes: as a model's outputs have them, as a checkpoint keeps them, as other data
 * has them. */
#include "model/classes.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/text.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t lk_output_classes(const struct lk_model_output *output)
{
    const enum lk_metric_form form = output->shape.form;
    if (form == LK_FORM_CHOICE)
        return 2;
    return form == LK_FORM_CLASS || form == LK_FORM_DISTRIBUTION ? output->shape.width : 0;
}

/* --- taking and finding ------------------------------------------------------------------ */

static bool is_utf8(const char *name)
{
    json_t *valid = json_string(name);
    json_decref(valid);
    return valid != NULL;
}

/* A name as JSON can hold it. The caller frees it. */
static char *as_utf8(const char *name)
{
    char *escaped = is_utf8(name) ? strdup(name) : malloc(LK_ESCAPED_BYTES(strlen(name)));
    if (escaped && !is_utf8(name))
        lk_escape(name, escaped);
    return escaped;
}

/* The same as older checkpoints have it, with all bytes beyond ASCII in capitals. The caller
 * frees it. */
static char *as_older_utf8(const char *name)
{
    struct lk_text text = {0};
    const bool is_valid = is_utf8(name);
    lk_text_append(&text, "%s", "");
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        lk_text_append(&text, is_valid || *at < 0x80 ? "%c" : "\\x%02X", *at);
    if (text.failed) {
        free(text.bytes);
        return NULL;
    }
    return text.bytes;
}

enum lk_status lk_output_name_classes(struct lk_model *model, struct lk_model_output *output,
                                      const char *const *names, int64_t count)
{
    const size_t bytes = (size_t)count * sizeof *output->class_names;
    void *memory = NULL;
    enum lk_status status = lk_arena_allocate(&model->arena, bytes, &memory);
    const char **taken = memory;
    for (int64_t i = 0; i < count && status == LK_OK; i++) {
        char *name = as_utf8(names[i]);
        status = name ? lk_arena_text(&model->arena, name, &taken[i])
                      : lk_fail_memory("a name", strlen(names[i]));
        free(name);
    }
    LK_TRY(status);
    output->class_names = taken;
    output->class_count = count;
    return LK_OK;
}

/* Whether the names are no more than the numbers of classes. */
static bool are_numbers(const char *const *names, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i);
        if (strcmp(names[i], number) != 0)
            return false;
    }
    return true;
}

bool lk_output_has_words(const struct lk_model_output *output)
{
    return !are_numbers(output->class_names, output->class_count);
}

struct named {
    const char *name;
    int32_t number;
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* NULL: the model has no class of this name. */
static const struct named *look_up(const struct lk_model_output *output,
                                   const struct named *sorted, const char *name)
{
    const struct named wanted = {.name = name};
    return bsearch(&wanted, sorted, (size_t)output->class_count, sizeof *sorted, compare);
}

/* fails: LK_E_DATA, with the first of the model's classes */
static enum lk_status find(const struct lk_model_output *output, const struct named *sorted,
                           const char *name, int32_t *number)
{
    char *key = as_utf8(name), *older = as_older_utf8(name);
    enum lk_status status = key && older ? LK_OK : lk_fail_memory("a name", strlen(name));
    const struct named *found = status == LK_OK ? look_up(output, sorted, key) : NULL;
    if (status == LK_OK && !found)
        found = look_up(output, sorted, older);
    if (found)
        *number = found->number;
    else if (status == LK_OK)
        status = lk_fail(LK_E_DATA,
                         "class '%.200s' is none of the %lld that the model was trained on "
                         "('%.100s' is the first)",
                         key, (long long)output->class_count, output->class_names[0]);
    free(key);
    free(older);
    return status;
}

enum lk_status lk_output_find_classes(const struct lk_model_output *output,
                                      const char *const *names, int64_t count, int32_t *numbers,
                                      bool *is_matched)
{
    *is_matched = output->class_count > 0 && !are_numbers(names, count);
    if (!*is_matched)
        return LK_OK;
    const size_t bytes = (size_t)output->class_count * sizeof(struct named);
    struct named *sorted = malloc(bytes);
    if (!sorted)
        return lk_fail_memory("names of classes", bytes);
    for (int64_t i = 0; i < output->class_count; i++)
        sorted[i] = (struct named){output->class_names[i], (int32_t)i};
    qsort(sorted, (size_t)output->class_count, sizeof *sorted, compare);
    enum lk_status status = LK_OK;
    for (int64_t i = 0; i < count && status == LK_OK; i++)
        status = find(output, sorted, names[i], &numbers[i]);
    free(sorted);
    if (status == LK_E_DATA && !lk_output_has_words(output)) {
        lk_error_clear();
        *is_matched = false;
        return LK_OK;
    }
    return status;
}

/* --- as text ----------------------------------------------------------------------------- */

static json_t *names_of(const struct lk_model_output *output)
{
    json_t *names = json_array();
    for (int64_t i = 0; i < output->class_count; i++)
        json_array_append_new(names, json_string(output->class_names[i]));
    return names;
}

enum lk_status lk_model_print_classes(const struct lk_model *model, char **text)
{
    json_t *all = json_object();
    for (int i = 0; i < model->output_count; i++)
        if (model->outputs[i].class_count > 0)
            json_object_set_new(all, model->outputs[i].name, names_of(&model->outputs[i]));
    char *printed = json_object_size(all) > 0 ? json_dumps(all, JSON_COMPACT) : strdup("");
    json_decref(all);
    if (!printed)
        return lk_fail_memory("names of classes", 0);
    *text = printed;
    return LK_OK;
}

static enum lk_status refuse(const struct lk_model *model, const char *name, const char *why)
{
    return lk_fail(LK_E_DATA, "model '%s': names of the classes of '%.100s': %s", model->name,
                   name, why);
}

static enum lk_status read_output(struct lk_model *model, const char *name, const json_t *list)
{
    struct lk_model_output *output = NULL;
    for (int i = 0; i < model->output_count; i++)
        if (strcmp(model->outputs[i].name, name) == 0)
            output = &model->outputs[i];
    const size_t count = json_array_size(list);
    if (!output)
        return refuse(model, name, "there is no such output");
    if (count == 0 || count > (size_t)lk_output_classes(output))
        return refuse(model, name, "not as many as there are classes");
    const char **names = calloc(count, sizeof *names);
    if (!names)
        return lk_fail_memory("names of classes", count * sizeof *names);
    enum lk_status status = LK_OK;
    for (size_t i = 0; i < count && status == LK_OK; i++) {
        names[i] = json_string_value(json_array_get(list, i));
        if (!names[i])
            status = refuse(model, name, "expected texts");
    }
    if (status == LK_OK)
        status = lk_output_name_classes(model, output, names, (int64_t)count);
    free(names);
    return status;
}

enum lk_status lk_model_read_classes(struct lk_model *model, const char *text)
{
    const char *name;
    json_t *list;
    json_error_t error;
    enum lk_status status = LK_OK;
    if (!*text)
        return LK_OK;
    json_t *all = json_loads(text, 0, &error);
    if (!json_is_object(all))
        status = refuse(model, "outputs", "expected {\"OUTPUT\": [\"NAME\", ...]}");
    json_object_foreach(all, name, list) if (status == LK_OK) status =
        read_output(model, name, list);
    json_decref(all);
    return status;
}
