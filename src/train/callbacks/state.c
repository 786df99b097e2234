/* The state of callbacks as a text for checkpoints: a line of sums; then of each callback a
 * line that says which it is and a line of its state. */
#include "train/callbacks/internal.h"

#include "base/fail.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_BYTES = 4096, RATES = 8 };
#define SUM(field) LK_CALLED_OPTION(struct lk_epoch_sums, field)

static const struct lk_option sums_table[] = {
    {SUM(loss), .kind = LK_OPTION_REAL, .standard = "0"},
    {SUM(accuracy), .kind = LK_OPTION_REAL, .standard = "0"},
    {SUM(lr), .kind = LK_OPTION_REAL, .standard = "0"},
    {SUM(samples), .kind = LK_OPTION_INT, .standard = "0"},
    {SUM(is_broken), .kind = LK_OPTION_BOOL, .standard = "false"},
    {SUM(ended), .kind = LK_OPTION_TEXT, .count = 64, .standard = ""},
    {SUM(rate_count), .kind = LK_OPTION_INT, .max = RATES, .standard = "0"},
    {.name = "from",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct lk_epoch_sums, rates.from),
     .count = RATES,
     .standard = "0"},
    {.name = "rates",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_epoch_sums, rates.rates),
     .count = RATES,
     .standard = "0"},
    {0},
};

static const char has_ended[] = "ended: ";

static enum lk_status print_one(const struct lk_callbacks *callbacks, int i,
                                struct lk_text *text)
{
    char one[LK_CALLBACKS_TEXT], state[STATE_BYTES] = "";
    const struct lk_called *called = &callbacks->list[i];
    LK_TRY(lk_called_print(called, one));
    if (called->kind->state &&
        !lk_options_print(called->kind->state, called->state, true, state, sizeof state))
        return lk_fail(LK_E_ARGUMENT, "the state of callback '%s' is too long",
                       called->kind->name);
    lk_text_append(text, "%s%s\n%s\n", callbacks->has_ended[i] ? has_ended : "", one, state);
    return LK_OK;
}

enum lk_status lk_callbacks_print(struct lk_callbacks *callbacks, char **text)
{
    struct lk_text made = {0};
    char sums[STATE_BYTES];
    callbacks->sums.rate_count = callbacks->sums.rates.count;
    enum lk_status status = lk_callbacks_flush(callbacks, false);
    if (lk_options_print(sums_table, &callbacks->sums, true, sums, sizeof sums))
        lk_text_append(&made, "%s\n", sums);
    for (int i = 0; i < callbacks->count && status == LK_OK; i++)
        status = print_one(callbacks, i, &made);
    if (status == LK_OK && (made.failed || !made.bytes))
        status = lk_fail_memory("the state of callbacks", made.room);
    if (status != LK_OK) {
        free(made.bytes);
        return status;
    }
    *text = made.bytes;
    return LK_OK;
}

/* Cuts the next line off the text; what is too long for a line that was written is cut. */
static bool next_line(const char **text, char line[STATE_BYTES])
{
    const size_t length = strcspn(*text, "\n");
    snprintf(line, STATE_BYTES, "%.*s", (int)(length < STATE_BYTES ? length : STATE_BYTES - 1),
             *text);
    const bool is_there = (*text)[length] == '\n';
    *text += length + is_there;
    return is_there;
}

/* Gives the state to all callbacks that are the same. */
static enum lk_status take(struct lk_callbacks *callbacks, const char *line, const char *state)
{
    const bool ended = strncmp(line, has_ended, strlen(has_ended)) == 0;
    const char *name = line + (ended ? strlen(has_ended) : 0);
    for (int i = 0; i < callbacks->count; i++) {
        char one[LK_CALLBACKS_TEXT];
        struct lk_called *called = &callbacks->list[i];
        LK_TRY(lk_called_print(called, one));
        if (strcmp(one, name) != 0)
            continue;
        callbacks->has_ended[i] = ended;
        if (called->kind->state)
            LK_TRY(lk_options_parse(called->kind->state, called->state, state));
    }
    return LK_OK;
}

static enum lk_status parse(struct lk_callbacks *callbacks, const char *text)
{
    char line[STATE_BYTES], state[STATE_BYTES];
    if (next_line(&text, line))
        LK_TRY(lk_options_parse(sums_table, &callbacks->sums, line));
    callbacks->sums.rates.count = (int)callbacks->sums.rate_count;
    while (next_line(&text, line) && next_line(&text, state))
        LK_TRY(take(callbacks, line, state));
    return LK_OK;
}

enum lk_status lk_callbacks_parse(struct lk_callbacks *callbacks, const char *text)
{
    const enum lk_status status = parse(callbacks, text);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "the state of callbacks");
}

const char *lk_callbacks_ended(const struct lk_callbacks *callbacks)
{
    for (int i = 0; i < callbacks->count; i++)
        if (callbacks->has_ended[i])
            return callbacks->list[i].kind->name;
    for (int i = 0; i < callbacks->site.own_count; i++)
        if (strcmp(callbacks->site.own[i].name, callbacks->sums.ended) == 0)
            return callbacks->site.own[i].name;
    return NULL;
}
