/* Callbacks as text: the list of kinds, reading and writing. */
#include "train/callbacks/internal.h"

#include "base/fail.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct lk_callback_kind *const kinds[] = {
    &lk_save_checkpoint,   &lk_early_stopping,
    &lk_reduce_on_plateau, &lk_stop_on_nan,
    &lk_stop_at,           &lk_stop_file,
    &lk_csv_log,           &lk_tensorboard,
    &lk_time_history,      NULL};

const char *lk_callback_kind_name(int index)
{
    return index >= 0 && index < LK_COUNT(kinds) && kinds[index] ? kinds[index]->name : NULL;
}

const struct lk_option *lk_callback_kind_options(int index)
{
    return lk_callback_kind_name(index) ? kinds[index]->options : NULL;
}

static const char *name_at(const void *context, int index)
{
    (void)context;
    return lk_callback_kind_name(index);
}

static enum lk_status find_kind(const char *name, const struct lk_callback_kind **kind)
{
    for (int i = 0; kinds[i]; i++)
        if (strcmp(kinds[i]->name, name) == 0) {
            *kind = kinds[i];
            return LK_OK;
        }
    const char *near = lk_nearest_name(name, name_at, NULL);
    if (near)
        return lk_fail(LK_E_ARGUMENT, "unknown callback '%s'; did you mean '%s'?", name, near);
    struct lk_text known = {0};
    for (int i = 0; kinds[i]; i++)
        lk_text_append(&known, "%s%s", i ? ", " : "; known are ", kinds[i]->name);
    const enum lk_status status =
        lk_fail(LK_E_ARGUMENT, "unknown callback '%s'%s", name, known.bytes ? known.bytes : "");
    free(known.bytes);
    return status;
}

bool lk_called_next(const char **text, char one[LK_CALLBACKS_TEXT])
{
    const char *from = *text + strspn(*text, " \t\n|");
    const char *end = from;
    bool is_quoted = false;
    for (; *end && (is_quoted || *end != '|'); end++)
        is_quoted ^= *end == '"';
    *text = end;
    while (end > from && strchr(" \t\n", end[-1]))
        end--;
    const size_t length = (size_t)(end - from);
    memcpy(one, from, length < LK_CALLBACKS_TEXT ? length : LK_CALLBACKS_TEXT - 1);
    one[length < LK_CALLBACKS_TEXT ? length : LK_CALLBACKS_TEXT - 1] = '\0';
    return length > 0;
}

/* What Keras calls some options. */
static const struct {
    const char *keras, *name;
} keras_names[] = {
    {"initial_value_threshold=", "threshold="},
    {"save_best_only=", "best_only="},
    {"restore_best_weights=", "restore_best="},
};

/* Puts our names of options in the place of Keras's, which are all longer. */
static void rename_options(const char *text, char renamed[LK_CALLBACKS_TEXT])
{
    char last = ' ';
    bool is_quoted = false;
    size_t used = 0;
    while (*text && used + 1 < LK_CALLBACKS_TEXT) {
        for (int i = 0; i < LK_COUNT(keras_names) && !is_quoted && strchr(" \t\n", last); i++)
            if (strncmp(text, keras_names[i].keras, strlen(keras_names[i].keras)) == 0) {
                text += strlen(keras_names[i].keras);
                used += (size_t)snprintf(renamed + used, LK_CALLBACKS_TEXT - used, "%s",
                                         keras_names[i].name);
                break;
            }
        last = *text;
        is_quoted ^= last == '"';
        if (*text)
            renamed[used++] = *text++;
    }
    renamed[used] = '\0';
}

enum lk_status lk_called_read(const char *text, struct lk_called *called)
{
    char name[64], options[LK_CALLBACKS_TEXT];
    const size_t length = strcspn(text, " \t\n");
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), text);
    LK_TRY(find_kind(name, &called->kind));
    const struct lk_callback_kind *kind = called->kind;
    called->options = calloc(1, kind->options_bytes + 1);
    called->state = calloc(1, kind->state_bytes + 1);
    if (!called->options || !called->state)
        return lk_fail_memory("a callback", kind->options_bytes + kind->state_bytes);
    rename_options(text + length, options);
    const enum lk_status status = lk_options_parse(kind->options, called->options, options);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "callback '%s'", kind->name);
}

void lk_called_clear(struct lk_called *called)
{
    if (called->kind && called->kind->close)
        called->kind->close(called);
    free(called->options);
    free(called->state);
    free(called->memory);
    *called = (struct lk_called){0};
}

enum lk_status lk_called_print(const struct lk_called *called, char text[LK_CALLBACKS_TEXT])
{
    char options[LK_CALLBACKS_TEXT];
    if (!lk_options_print(called->kind->options, called->options, false, options,
                          sizeof options) ||
        strlen(options) + strlen(called->kind->name) + 2 > LK_CALLBACKS_TEXT)
        return lk_fail(LK_E_ARGUMENT, "the options of callback '%s' are too long",
                       called->kind->name);
    const int used = snprintf(text, LK_CALLBACKS_TEXT, "%s", called->kind->name);
    if (*options)
        snprintf(text + used, LK_CALLBACKS_TEXT - (size_t)used, " %.*s",
                 LK_CALLBACKS_TEXT - used - 2, options);
    return LK_OK;
}

enum lk_status lk_callbacks_normalize(const char *text, char normal[LK_CALLBACKS_TEXT])
{
    char one[LK_CALLBACKS_TEXT], printed[LK_CALLBACKS_TEXT], made[LK_CALLBACKS_TEXT] = "";
    int used = 0;
    if (strlen(text) >= LK_CALLBACKS_TEXT)
        return lk_fail(LK_E_ARGUMENT, "callbacks: more than %d characters",
                       LK_CALLBACKS_TEXT - 1);
    for (int count = 0; lk_called_next(&text, one); count++) {
        struct lk_called called = {0};
        enum lk_status status = lk_called_read(one, &called);
        if (status == LK_OK)
            status = lk_called_print(&called, printed);
        lk_called_clear(&called);
        LK_TRY(status);
        if (count == LK_MOST_CALLBACKS)
            return lk_fail(LK_E_ARGUMENT, "callbacks: more than %d", LK_MOST_CALLBACKS);
        used += snprintf(made + used, sizeof made - (size_t)used, "%s%s", used ? " | " : "",
                         printed);
        if (used >= (int)sizeof made)
            return lk_fail(LK_E_ARGUMENT, "callbacks: more than %d characters",
                           LK_CALLBACKS_TEXT - 1);
    }
    memcpy(normal, made, sizeof made);
    return LK_OK;
}
