/* Opens a model by its name: from the zoo, or from a file. */
#include "base/embedded.h"
#include "base/fail.h"
#include "base/option.h"
#include "io/file.h"
#include "model/text/reading.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct lk_embedded lk_zoo_files[];
extern const char *const lk_zoo_names[]; /* the same without ".yaml"; ends with NULL */

/* What values of parameters consist of: nothing that has a meaning in YAML. */
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

const char *lk_model_zoo(int index)
{
    for (int i = 0; i < index; i++)
        if (!lk_zoo_names[i])
            return NULL;
    return index < 0 ? NULL : lk_zoo_names[index];
}

static const char *zoo_name(const void *names, int i)
{
    return ((const char *const *)names)[i];
}

static enum lk_status fail_unknown(const char *name)
{
    char known[512] = "";
    size_t used = 0;
    for (int i = 0; lk_zoo_names[i] && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 lk_zoo_names[i]);
    const char *near = lk_nearest_name(name, zoo_name, lk_zoo_names);
    return lk_fail(LK_E_MODEL, "no model '%s': no file, and none of the zoo (%s)%s%s%s", name,
                   known, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* --- another shape --------------------------------------------------------------------- */

/* Replaces the text by one in which `with` stands in place of `value`. */
static enum lk_status replace(char **text, const struct lk_yaml *value, const char *with)
{
    size_t start, bytes;
    lk_yaml_span(*text, value, &start, &bytes);
    const size_t room = strlen(*text) + strlen(with) + 1;
    char *made = malloc(room);
    if (!made)
        return lk_fail_memory("a model text", room);
    snprintf(made, room, "%.*s%s%s", (int)start, *text, with, *text + start + bytes);
    free(*text);
    *text = made;
    return LK_OK;
}

/* The number that stands in place `index` of the text's input, or the one asked for instead. */
static enum lk_status dimension(const struct lk_yaml *input, int index, int64_t asked,
                                char text[32])
{
    const struct lk_yaml *own = lk_yaml_item(input, index);
    if (input->kind != LK_YAML_LIST || input->count != 3 || own->kind != LK_YAML_SCALAR)
        return lk_yaml_fail(input, "only 'input: [height, width, channels]' can be given "
                                   "another shape");
    if (asked > 0)
        snprintf(text, 32, "%lld", (long long)asked);
    else
        snprintf(text, 32, "%.31s", own->text);
    return LK_OK;
}

static enum lk_status reshape_input(char **text, const struct lk_yaml *root,
                                    const struct lk_model_shape *shape)
{
    const struct lk_yaml *input = lk_yaml_find(root, "input");
    char h[32], w[32], c[32], all[112];
    if (shape->height <= 0 && shape->width <= 0 && shape->channels <= 0)
        return LK_OK;
    if (!input)
        return lk_yaml_fail(root, "'input: [height, width, channels]' is missing");
    LK_TRY(dimension(input, 0, shape->height, h));
    LK_TRY(dimension(input, 1, shape->width, w));
    LK_TRY(dimension(input, 2, shape->channels, c));
    snprintf(all, sizeof all, "[%s, %s, %s]", h, w, c);
    return replace(text, input, all);
}

/* Puts a number behind a key of the text. what: "10 classes are", for messages. */
static enum lk_status reshape_number(char **text, const struct lk_yaml *root, const char *key,
                                     int64_t asked, const char *what)
{
    const struct lk_yaml *value = lk_yaml_find(root, key);
    char number[32];
    if (asked <= 0)
        return LK_OK;
    if (!value || value->is_null)
        return lk_yaml_fail(
            root, "%s asked for, but the text has no '%s:' that could be changed", what, key);
    snprintf(number, sizeof number, "%lld", (long long)asked);
    return replace(text, value, number);
}

static enum lk_status reshape_classes(char **text, const struct lk_yaml *root,
                                      const struct lk_model_shape *shape)
{
    char what[64];
    snprintf(what, sizeof what, "%lld classes are", (long long)shape->classes);
    return reshape_number(text, root, "classes", shape->classes, what);
}

static enum lk_status reshape_vocabulary(char **text, const struct lk_yaml *root,
                                         const struct lk_model_shape *shape)
{
    char what[64];
    snprintf(what, sizeof what, "a vocabulary of %lld is", (long long)shape->vocabulary);
    return reshape_number(text, root, "vocabulary", shape->vocabulary, what);
}

/* The number t in {shape: [t], type: int32}, which is an input of tokens; NULL: it is none. */
static const struct lk_yaml *token_length(const struct lk_yaml *input)
{
    const struct lk_yaml *shape = lk_yaml_find(input, "shape");
    const struct lk_yaml *type = lk_yaml_find(input, "type");
    const bool is_one = shape && shape->kind == LK_YAML_LIST && shape->count == 1 && type &&
                        type->kind == LK_YAML_SCALAR && strcmp(type->text, "int32") == 0;
    return is_one ? lk_yaml_item(shape, 0) : NULL;
}

/* The lengths of all inputs of tokens that are as long as the first of them. */
static int token_lengths(const struct lk_yaml *inputs,
                         const struct lk_yaml *lengths[LK_MOST_INPUTS])
{
    int count = 0;
    if (!inputs || inputs->kind != LK_YAML_MAP)
        return 0;
    if ((lengths[0] = token_length(inputs)) != NULL)
        return 1;
    for (const struct lk_yaml *entry = inputs->first; entry; entry = entry->next) {
        const struct lk_yaml *found = entry->kind == LK_YAML_MAP ? token_length(entry) : NULL;
        if (found && count < LK_MOST_INPUTS &&
            (count == 0 || strcmp(found->text, lengths[0]->text) == 0))
            lengths[count++] = found;
    }
    return count;
}

static enum lk_status reshape_length(char **text, const struct lk_yaml *root,
                                     const struct lk_model_shape *shape)
{
    const struct lk_yaml *lengths[LK_MOST_INPUTS];
    char number[32];
    if (shape->length <= 0)
        return LK_OK;
    int count = token_lengths(lk_yaml_find(root, "input"), lengths);
    if (count == 0)
        return lk_yaml_fail(root,
                            "texts of %lld tokens are asked for, but the model has no input "
                            "{shape: [LENGTH], type: int32}",
                            (long long)shape->length);
    snprintf(number, sizeof number, "%lld", (long long)shape->length);
    while (count-- > 0) /* the last first: those before it stay where they are in the text */
        LK_TRY(replace(text, lengths[count], number));
    return LK_OK;
}

static const char *parameter_name(const void *parameters, int i)
{
    const struct lk_yaml *entry =
        parameters ? lk_yaml_item((const struct lk_yaml *)parameters, i) : NULL;
    return entry ? entry->key : NULL;
}

/* Puts `value` in place of that of one parameter. */
static enum lk_status set_parameter(char **text, const struct lk_yaml *root, const char *name,
                                    const char *value)
{
    const struct lk_yaml *all = lk_yaml_find(root, "parameters");
    const struct lk_yaml *own = all ? lk_yaml_find(all, name) : NULL;
    const char *near = all ? lk_nearest_name(name, parameter_name, all) : NULL;
    if (!own)
        return lk_yaml_fail(all ? all : root, "the model has no parameter '%.60s'%s%s%s", name,
                            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    if (own->kind != LK_YAML_SCALAR || own->is_null || !*value || value[strspn(value, LETTERS)])
        return lk_yaml_fail(
            own, "parameter '%.60s': a word or a number expected, found '%.60s'", name, value);
    return replace(text, own, value);
}

typedef enum lk_status edit(char **text, const struct lk_yaml *root,
                            const struct lk_model_shape *shape);

static enum lk_status apply(edit *change, char **text, const char *where,
                            const struct lk_model_shape *shape)
{
    struct lk_yaml_document *document = NULL;
    LK_TRY(lk_yaml_read(*text, strlen(*text), where, &document));
    const enum lk_status status = change(text, lk_yaml_root(document), shape);
    lk_yaml_destroy(document);
    return status;
}

/* Changes the text for each "name=value" of the shape's parameters. */
static enum lk_status apply_parameters(char **text, const char *where, const char *parameters)
{
    char pair[128], *value;
    for (const char *at = parameters ? parameters : ""; *(at += strspn(at, " "));) {
        const size_t length = strcspn(at, " ");
        snprintf(pair, sizeof pair, "%.*s", length < sizeof pair ? (int)length : 0, at);
        if (!(value = strchr(pair, '=')))
            return lk_fail(LK_E_ARGUMENT, "parameters '%.100s': NAME=VALUE expected", at);
        *value++ = '\0';
        struct lk_yaml_document *document = NULL;
        LK_TRY(lk_yaml_read(*text, strlen(*text), where, &document));
        const enum lk_status status = set_parameter(text, lk_yaml_root(document), pair, value);
        lk_yaml_destroy(document);
        LK_TRY(status);
        at += length;
    }
    return LK_OK;
}

/* --- opening --------------------------------------------------------------------------- */

static enum lk_status find_text(const char *name, char **text, char *where, size_t where_bytes)
{
    size_t bytes = 0;
    void *data = NULL;
    snprintf(where, where_bytes, "%s.yaml", name);
    const struct lk_embedded *file = lk_embedded_find(lk_zoo_files, where);
    if (file) {
        *text = strdup(file->text);
        return *text ? LK_OK : lk_fail_memory("a model text", file->bytes);
    }
    if (access(name, F_OK) != 0) /* what is there and is no file is said when it is read */
        return fail_unknown(name);
    snprintf(where, where_bytes, "%s", name);
    LK_TRY(lk_file_read(name, LK_YAML_MOST_BYTES, &data, &bytes));
    *text = data;
    if (strlen(*text) == bytes)
        return LK_OK;
    free(data);
    return lk_fail(LK_E_MODEL, "%s: no text: it has a zero byte", name);
}

enum lk_status lk_model_open(const char *name, const struct lk_model_shape *shape,
                             struct lk_model **model)
{
    char *text = NULL, where[1024];
    LK_TRY(find_text(name, &text, where, sizeof where));
    enum lk_status status = LK_OK;
    if (shape) {
        LK_TRY_OUT(apply(reshape_input, &text, where, shape));
        LK_TRY_OUT(apply(reshape_classes, &text, where, shape));
        LK_TRY_OUT(apply(reshape_vocabulary, &text, where, shape));
        LK_TRY_OUT(apply(reshape_length, &text, where, shape));
        LK_TRY_OUT(apply_parameters(&text, where, shape->parameters));
    }
    status = lk_model_read(text, strlen(text), where, model);
out:
    free(text);
    return status;
}

bool lk_model_has_parameter(const char *name, const char *parameter)
{
    char *text = NULL, where[1024];
    struct lk_yaml_document *document = NULL;
    bool has = false;
    enum lk_status status = find_text(name, &text, where, sizeof where);
    if (status == LK_OK)
        status = lk_yaml_read(text, strlen(text), where, &document);
    if (status == LK_OK) {
        const struct lk_yaml *all = lk_yaml_find(lk_yaml_root(document), "parameters");
        has = all && lk_yaml_find(all, parameter);
    } else {
        lk_error_clear();
    }
    lk_yaml_destroy(document);
    free(text);
    return has;
}
