/* Which settings of a run are others than they were before. */
#include "base/fail.h"
#include "base/text.h"
#include "train/settings/settings.h"
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES = 1100 };

/* What is not of the run but of one call of the program, what a run takes from its checkpoint
 * or has begun with, and what is another row's second name. */
static bool is_compared(const char *name)
{
    static const char *const passed_over[] = {
        "run",      "fresh",   "profile",   "profile_steps", "shards", "augment",
        "callback", "weights", "init_from", "skip_mismatch", NULL};
    for (int i = 0; passed_over[i]; i++)
        if (strcmp(name, passed_over[i]) == 0)
            return false;
    return true;
}

/* The next line that is not empty, without the space before it; NULL: there is none. */
static const char *next_line(const char **text, size_t *length)
{
    while (**text) {
        const char *line = *text + strspn(*text, " ");
        *length = strcspn(line, "\n");
        *text = line + *length + (line[*length] == '\n');
        if (*length > 0)
            return line;
    }
    return NULL;
}

/* An inline model that was printed and read again has other empty lines and indentation. */
static bool is_same_text(const char *a, const char *b)
{
    size_t of_a = 0, of_b = 0;
    if (!a || !b)
        return a == b;
    for (;;) {
        const char *x = next_line(&a, &of_a), *y = next_line(&b, &of_b);
        if (!x || !y)
            return x == y;
        if (of_a != of_b || memcmp(x, y, of_a) != 0)
            return false;
    }
}

static enum lk_status add(struct lk_setting_changes *changes, const char *name, const char *was,
                          const char *is)
{
    struct lk_setting_change *change = &changes->items[changes->count];
    change->name = name;
    LK_TRY(lk_arena_text(&changes->arena, was, &change->was));
    LK_TRY(lk_arena_text(&changes->arena, is, &change->is));
    changes->count++;
    return LK_OK;
}

/* Zero leaves the input and the classes of a model open; they were found since. */
static bool was_open(const struct lk_option *row, const char *was)
{
    const bool may_be = strcmp(row->name, "input") == 0 || strcmp(row->name, "classes") == 0 ||
                        strcmp(row->name, "vocabulary") == 0 ||
                        strcmp(row->name, "length") == 0;
    return may_be && strspn(was, "0,") == strlen(was);
}

enum lk_status lk_settings_compare(const struct lk_settings *was, const struct lk_settings *is,
                                   struct lk_setting_changes *changes)
{
    char before[VALUE_BYTES], now[VALUE_BYTES];
    if (!is_same_text(was->model_text, is->model_text))
        LK_TRY(add(changes, "model", was->model_text ? "inline" : was->model,
                   is->model_text ? "inline, another text" : is->model));
    for (const struct lk_option *row = lk_settings_table; row->kind != LK_OPTION_END; row++) {
        lk_option_print(row, was, before, sizeof before);
        lk_option_print(row, is, now, sizeof now);
        const bool is_model = strcmp(row->name, "model") == 0 && changes->count > 0;
        if (strcmp(before, now) != 0 && is_compared(row->name) && !is_model &&
            !was_open(row, before))
            LK_TRY(add(changes, row->name, before, now));
    }
    return LK_OK;
}

static void append_value(struct lk_text *text, const char *name, const char *value)
{
    if (strcmp(name, "lr") == 0 && strcmp(value, "0") == 0)
        lk_text_append(text, "the optimizer's own");
    else if (*value && strlen(value) <= 60)
        lk_text_append(text, "%s", value);
    else
        lk_text_append(text, *value ? "'%.60s...'" : "none%.0s", value);
}

void lk_setting_changes_print(const struct lk_setting_changes *changes, struct lk_text *text)
{
    for (int i = 0; i < changes->count; i++) {
        const struct lk_setting_change *change = &changes->items[i];
        lk_text_append(text, "%s%s ", i ? ", " : "", change->name);
        append_value(text, change->name, change->is);
        lk_text_append(text, " (was ");
        append_value(text, change->name, change->was);
        lk_text_append(text, ")");
    }
}

void lk_setting_changes_clear(struct lk_setting_changes *changes)
{
    lk_arena_clear(&changes->arena);
    *changes = (struct lk_setting_changes){0};
}
