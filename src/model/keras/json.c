/* Parses the JSON of a Keras model, which may come from anyone, and reads the options of a
 * layer with a message for each that is not as expected. */
#include "model/keras/keras.h"

#include "base/fail.h"
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 4 << 20, MOST_VALUES = 150000, MOST_DEPTH = 64 };

/* Counts what the parser would allocate, so that a small text cannot take much memory: commas
 * and opening brackets outside of strings begin a value each. */
static enum lk_status check_size(const char *text, size_t bytes, const char *where)
{
    size_t values = 1;
    int depth = 0, deepest = 0;
    bool in_string = false;
    if (bytes > MOST_BYTES)
        return lk_fail(LK_E_DATA, "%s: a model of %zu bytes of JSON, at most %d are read",
                       where, bytes, MOST_BYTES);
    for (size_t i = 0; i < bytes; i++) {
        const char c = text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
            continue;
        }
        in_string = c == '"';
        values += c == ',' || c == '[' || c == '{';
        depth += (c == '[' || c == '{') - (c == ']' || c == '}');
        deepest = depth > deepest ? depth : deepest;
    }
    if (values > MOST_VALUES || deepest > MOST_DEPTH)
        return lk_fail(
            LK_E_DATA,
            "%s: JSON with %zu values, %d deep; at most %d values, %d deep, are read", where,
            values, deepest, MOST_VALUES, MOST_DEPTH);
    return LK_OK;
}

enum lk_status lk_keras_parse(const char *text, size_t bytes, const char *where, json_t **root)
{
    json_error_t error;
    LK_TRY(check_size(text, bytes, where));
    *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!*root)
        return lk_fail(LK_E_DATA, "%s: no JSON of a model: line %d, column %d: %.100s", where,
                       error.line, error.column, error.text);
    return LK_OK;
}

enum lk_status lk_keras_fail(const struct lk_keras_draft *draft, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!draft->layer)
        return lk_fail(LK_E_MODEL, "%s: %s", draft->where, text);
    return lk_fail(LK_E_MODEL, "%s: layer '%.80s' (%.60s): %s", draft->where,
                   draft->layer->name, draft->layer->class, text);
}

/* --- one option -------------------------------------------------------------------------- */

/* The option's value; NULL: absent or null. */
static json_t *find(const struct lk_keras_draft *draft, const char *key)
{
    json_t *value = json_object_get(draft->layer->config, key);
    return json_is_null(value) ? NULL : value;
}

static enum lk_status refuse(const struct lk_keras_draft *draft, const char *key,
                             const char *expected, json_t *found)
{
    char *text = json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY);
    const enum lk_status status = lk_keras_fail(draft, "'%s' is %.80s, expected %s", key,
                                                text ? text : "not there", expected);
    free(text);
    return status;
}

/* Whole numbers may be written as 3.0. */
static bool read_int(json_t *value, int64_t *to)
{
    const double real = json_number_value(value);
    if (!json_is_number(value) || !(fabs(real) < 1e9) || real != floor(real))
        return false;
    *to = (int64_t)real;
    return true;
}

enum lk_status lk_keras_int(const struct lk_keras_draft *draft, const char *key,
                            int64_t standard, int64_t *value)
{
    json_t *found = find(draft, key);
    *value = standard;
    if (found && !read_int(found, value))
        return refuse(draft, key, "a whole number", found);
    return LK_OK;
}

enum lk_status lk_keras_real(const struct lk_keras_draft *draft, const char *key,
                             double standard, double *value)
{
    json_t *found = find(draft, key);
    *value = standard;
    if (found && !json_is_number(found))
        return refuse(draft, key, "a number", found);
    if (found)
        *value = json_number_value(found);
    return LK_OK;
}

enum lk_status lk_keras_bool(const struct lk_keras_draft *draft, const char *key, bool standard,
                             bool *value)
{
    json_t *found = find(draft, key);
    *value = standard;
    if (found && !json_is_boolean(found))
        return refuse(draft, key, "true or false", found);
    if (found)
        *value = json_is_true(found);
    return LK_OK;
}

enum lk_status lk_keras_word(const struct lk_keras_draft *draft, const char *key,
                             const char *standard, const char **value)
{
    json_t *found = find(draft, key);
    *value = standard;
    if (found && !json_is_string(found))
        return refuse(draft, key, "a word", found);
    if (found)
        *value = json_string_value(found);
    return LK_OK;
}

static bool read_pair(json_t *value, int64_t to[2])
{
    if (read_int(value, &to[0])) {
        to[1] = to[0];
        return true;
    }
    return json_is_array(value) && json_array_size(value) == 2 &&
           read_int(json_array_get(value, 0), &to[0]) &&
           read_int(json_array_get(value, 1), &to[1]);
}

enum lk_status lk_keras_pair(const struct lk_keras_draft *draft, const char *key,
                             int64_t standard, int64_t value[2])
{
    json_t *found = find(draft, key);
    value[0] = value[1] = standard;
    if (found && !read_pair(found, value))
        return refuse(draft, key, "a whole number or two of them", found);
    return LK_OK;
}

enum lk_status lk_keras_edges(const struct lk_keras_draft *draft, const char *key,
                              int64_t value[4])
{
    json_t *found = find(draft, key), *down = json_array_get(found, 0);
    int64_t pair[2] = {0, 0};
    if (json_is_array(down) && json_array_size(found) == 2 && read_pair(down, &value[0]) &&
        read_pair(json_array_get(found, 1), &value[2]))
        return LK_OK;
    if (!found || !read_pair(found, pair))
        return refuse(draft, key, "pixels: n, (down, across) or ((top, bottom), (left, right))",
                      found);
    value[0] = value[1] = pair[0];
    value[2] = value[3] = pair[1];
    return LK_OK;
}

enum lk_status lk_keras_axis(const struct lk_keras_draft *draft, int rank, int64_t *axis)
{
    json_t *found = find(draft, "axis");
    if (json_is_array(found) && json_array_size(found) == 1)
        found = json_array_get(found, 0);
    *axis = -1;
    if (found && !read_int(found, axis))
        return refuse(draft, "axis", "one axis", found);
    if (*axis < 0)
        *axis += rank + 1;
    if (*axis < 1 || *axis > rank)
        return refuse(draft, "axis", "an axis behind that of the batch", found);
    return LK_OK;
}

/* --- all options ------------------------------------------------------------------------- */

/* What changes no prediction, or stands elsewhere too. */
static const char *const harmless[] = {"name",
                                       "trainable",
                                       "dtype",
                                       "batch_input_shape",
                                       "batch_shape",
                                       "input_shape",
                                       "input_dtype",
                                       "kernel_initializer",
                                       "bias_initializer",
                                       "depthwise_initializer",
                                       "pointwise_initializer",
                                       "beta_initializer",
                                       "gamma_initializer",
                                       "moving_mean_initializer",
                                       "moving_variance_initializer",
                                       "alpha_initializer",
                                       "kernel_regularizer",
                                       "bias_regularizer",
                                       "depthwise_regularizer",
                                       "pointwise_regularizer",
                                       "beta_regularizer",
                                       "gamma_regularizer",
                                       "alpha_regularizer",
                                       "activity_regularizer",
                                       "kernel_constraint",
                                       "bias_constraint",
                                       "depthwise_constraint",
                                       "pointwise_constraint",
                                       "beta_constraint",
                                       "gamma_constraint",
                                       "alpha_constraint",
                                       "autocast",
                                       "build_config",
                                       "synchronized",
                                       "fused",
                                       NULL};

static bool is_in(const char *const *words, const char *word)
{
    for (; *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

/* A value that says as much as its absence. */
static bool says_nothing(json_t *value)
{
    return json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* "float32", or a policy with that name: Keras computes with at least so many digits. */
static enum lk_status check_dtype(const struct lk_keras_draft *draft)
{
    json_t *dtype = find(draft, "dtype");
    if (json_is_object(dtype))
        dtype = json_object_get(json_object_get(dtype, "config"), "name");
    const char *name = json_string_value(dtype);
    if (!name || strcmp(name, "float32") == 0 || strcmp(name, "mixed_float16") == 0 ||
        strcmp(name, "mixed_bfloat16") == 0)
        return LK_OK;
    return lk_keras_fail(draft, "'dtype' is %.40s, expected float32", name);
}

enum lk_status lk_keras_check_known(const struct lk_keras_draft *draft,
                                    const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(draft->layer->config, key, value)
    {
        if (is_in(known, key) || is_in(harmless, key) || says_nothing(value))
            continue;
        if (strcmp(key, "data_format") == 0 && json_is_string(value) &&
            strcmp(json_string_value(value), "channels_last") == 0)
            continue;
        return refuse(draft, key, "nothing that would change results", value);
    }
    return check_dtype(draft);
}

/* --- classes ------------------------------------------------------------------------------ */

/* As Keras names layers in files: "Conv2D" conv2d, "ReLU" re_lu, "BatchNormalization"
 * batch_normalization. source: keras.src.utils.naming.to_snake_case */
void lk_keras_snake(const char *class, char *text, size_t bytes)
{
    size_t used = 0;
    for (size_t i = 0; class[i] && used + 2 < bytes; i++) {
        const unsigned char c = (unsigned char)class[i], next = (unsigned char)class[i + 1];
        const bool begins = isupper(c) && islower(next);
        const bool ends = i > 0 && isupper(c) && islower((unsigned char)class[i - 1]);
        if (i > 0 && (begins || ends))
            text[used++] = '_';
        if (isalnum(c) || c == '_')
            text[used++] = (char)tolower(c);
    }
    text[used] = '\0';
}

/* A class of someone else's, whatever its name, is not Keras's. */
bool lk_keras_is_foreign(json_t *layer)
{
    const char *registered = json_string_value(json_object_get(layer, "registered_name"));
    const char *module = json_string_value(json_object_get(layer, "module"));
    return (registered && strchr(registered, '>')) ||
           (module && strncmp(module, "keras", 5) != 0 &&
            strncmp(module, "tensorflow", 10) != 0 && strncmp(module, "tf_keras", 8) != 0);
}
