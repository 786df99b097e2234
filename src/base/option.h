/* Option tables: one description parses, range-checks, prints and saves a struct of options.
 * Used by operations, optimizers, data specifications and training settings. Floor 0. */
#ifndef LK_BASE_OPTION_H
#define LK_BASE_OPTION_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lk_option_kind {
    LK_OPTION_END,
    LK_OPTION_INT,    /* int64_t[count] */
    LK_OPTION_REAL,   /* double[count]; count 0: one */
    LK_OPTION_BOOL,   /* bool; true, false, yes, no, 1, 0 */
    LK_OPTION_CHOICE, /* int: the index of one of `choices` */
    LK_OPTION_TEXT,   /* char[count]; a text that is too long is refused, never cut */
};

/* One row; a table ends with an empty row. `standard` is the default as text; NULL: required.
 * Numbers must lie in [min, max]; min = max = 0 means no limit. Numbers with count 2 take "3"
 * for both or "3,5" (spaces and brackets are skipped: "[3, 5]"). */
struct lk_option {
    const char *name;
    enum lk_option_kind kind;
    size_t offset;
    int count;
    double min, max;
    const char *standard;
    const char *const *choices; /* NULL-terminated */
    const char *help;
};

/* Sets every option to its default; required ones to zero. */
void lk_options_default(const struct lk_option *table, void *options);

/* Sets one option from text. fails: LK_E_ARGUMENT for an unknown name (the nearest known one is
 * named), a value that does not parse, one out of range; `options` is then untouched. */
LK_MUST_CHECK enum lk_status lk_option_set(const struct lk_option *table, void *options,
                                           const char *name, const char *value);

/* Defaults, then every "name=value" of `text`, separated by spaces (a value with spaces stands
 * in [] or ""). fails: LK_E_ARGUMENT as above, or for a required option that is missing. */
LK_MUST_CHECK enum lk_status lk_options_parse(const struct lk_option *table, void *options,
                                              const char *text);

/* Writes one option's value as text that lk_option_set() reads back to the same value. */
void lk_option_print(const struct lk_option *row, const void *options, char *text,
                     size_t bytes);

/* Whether the option `name` has that value, written as above; false: there is none. */
bool lk_option_is(const struct lk_option *table, const void *options, const char *name,
                  const char *value);

/* Writes "name=value ..." of all options that differ from their default (all: every option);
 * read back by lk_options_parse(). Returns false where it did not fit. */
bool lk_options_print(const struct lk_option *table, const void *options, bool all, char *text,
                      size_t bytes);

/* The row of that name; NULL: absent. */
const struct lk_option *lk_option_find(const struct lk_option *table, const char *name);

#endif
