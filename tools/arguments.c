/* Parses command lines and prints the help of subcommands. */
#include "command.h"

#include "terminal/terminal.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_at(const void *names, int i)
{
    return ((const char *const *)names)[i];
}

const char *nearest_name(const char *wrong, const char *const *names)
{
    return lk_nearest_name(wrong, name_at, names);
}

static const struct option *find(const struct command *command, const char *name, size_t length)
{
    for (const struct option *row = command->options; row->name; row++)
        if (strlen(row->name) == length && memcmp(row->name, name, length) == 0)
            return row;
    return NULL;
}

/* A letter means the same in every subcommand: the first of its names that the subcommand has.
 */
static const struct {
    char letter;
    const char *names[6];
} letters[] = {
    {'b', {"batch-size"}}, {'d', {"data"}},
    {'e', {"epochs"}},     {'o', {"run", "html", "grid", "output"}},
    {'q', {"quiet"}},
};

static const struct option *find_letter(const struct command *command, char letter)
{
    const struct option *row = NULL;
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        for (int j = 0; letters[i].letter == letter && letters[i].names[j] && !row; j++)
            row = find(command, letters[i].names[j], strlen(letters[i].names[j]));
    return row;
}

char option_letter(const struct command *command, const struct option *option)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (find_letter(command, letters[i].letter) == option)
            return letters[i].letter;
    return '\0';
}

static int unknown(const struct command *command, const char *name, size_t length)
{
    const char *names[64] = {NULL};
    char wrong[64];
    for (int i = 0; i < 63 && command->options[i].name; i++)
        names[i] = command->options[i].name;
    snprintf(wrong, sizeof wrong, "%.*s", (int)length, name);
    const char *near = nearest_name(wrong, names);
    return wrong_usage(command, "unknown option '--%s'%s%s%s", wrong,
                       near ? "; did you mean '--" : "", near ? near : "", near ? "'?" : "");
}

/* Notes an option. An empty file name, as of a shell's variable that is not set, must not
 * quietly become a beginning without weights. */
static int give(struct arguments *arguments, const struct option *row, const char *value)
{
    const bool names_weights =
        strcmp(row->name, "weights") == 0 || strcmp(row->name, "init-from") == 0;
    if (names_weights && !*value)
        return wrong_usage(arguments->command, "option '--%s' needs a %s, found an empty name",
                           row->name, row->value);
    arguments->given[arguments->given_count++] = (struct given){row, value};
    return DONE;
}

/* Parses the option at text[0]; *used tells how many words it took. */
static int parse_option(struct arguments *arguments, int count, char **text, int *used)
{
    const struct command *command = arguments->command;
    const char *name = text[0] + 2, *equals = strchr(name, '=');
    const size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct option *row = find(command, name, length);
    const char *value = NULL;
    if (!row)
        return unknown(command, name, length);
    if (!row->value && equals)
        return wrong_usage(command, "option '--%s' takes no value, found '%s'", row->name,
                           equals + 1);
    *used = 1;
    if (row->value && equals) {
        value = equals + 1;
    } else if (row->value) {
        if (count < 2 || strncmp(text[1], "--", 2) == 0)
            return wrong_usage(command, "option '--%s' needs a value: --%s %s", row->name,
                               row->name, row->value);
        value = text[1];
        *used = 2;
    }
    return give(arguments, row, value);
}

/* Parses the letters at text[0], "-b64" or "-qb 64"; *used tells how many words they took. */
static int parse_letters(struct arguments *arguments, int count, char **text, int *used)
{
    const struct command *command = arguments->command;
    *used = 1;
    for (const char *at = text[0] + 1; *at; at++) {
        const struct option *row = find_letter(command, *at);
        const char *value = NULL;
        if (!row)
            return wrong_usage(command, "unknown option '-%c'%s", *at,
                               at == text[0] + 1 && at[1] ? "; longer names begin with '--'"
                                                          : "");
        if (row->value && at[1]) {
            value = at + 1;
        } else if (row->value) {
            if (count < 2 || strncmp(text[1], "--", 2) == 0)
                return wrong_usage(command, "option '-%c' needs a value: -%c %s", *at, *at,
                                   row->value);
            value = text[1];
            *used = 2;
        }
        const int status = give(arguments, row, value);
        if (status != DONE || value)
            return status;
    }
    return DONE;
}

int arguments_parse(const struct command *command, int count, char **text,
                    struct arguments *arguments)
{
    *arguments = (struct arguments){.command = command};
    size_t most = 1; /* options: a word of letters has several */
    for (int i = 0; i < count; i++)
        most += strlen(text[i]) + 1;
    arguments->given = calloc(most, sizeof *arguments->given);
    arguments->words = calloc((size_t)count + 1, sizeof *arguments->words);
    if (!arguments->given || !arguments->words) {
        say("out of memory");
        return FAILED;
    }
    bool only_words = false;
    for (int i = 0, used = 1; i < count; i += used) {
        used = 1;
        if (only_words || text[i][0] != '-' || text[i][1] == '\0') {
            arguments->words[arguments->word_count++] = text[i];
        } else if (strcmp(text[i], "--") == 0) {
            only_words = true;
        } else {
            const int status = text[i][1] == '-'
                                   ? parse_option(arguments, count - i, text + i, &used)
                                   : parse_letters(arguments, count - i, text + i, &used);
            if (status != DONE)
                return status;
        }
    }
    return DONE;
}

void arguments_clear(struct arguments *arguments)
{
    free(arguments->given);
    free(arguments->words);
    *arguments = (struct arguments){0};
}

static const struct given *last_given(const struct arguments *arguments, const char *name)
{
    for (int i = arguments->given_count; i-- > 0;)
        if (strcmp(arguments->given[i].option->name, name) == 0)
            return &arguments->given[i];
    return NULL;
}

const char *option_text(const struct arguments *arguments, const char *name)
{
    const struct given *given = last_given(arguments, name);
    return given ? given->value : NULL;
}

bool option_given(const struct arguments *arguments, const char *name)
{
    return last_given(arguments, name) != NULL;
}

int option_number(const struct arguments *arguments, const char *name, int64_t low,
                  int64_t high, int64_t *number)
{
    const char *text = option_text(arguments, name);
    if (!text)
        return DONE;
    char *end;
    errno = 0;
    const long long found = strtoll(text, &end, 10);
    if (end == text || *end || errno || found < low || found > high)
        return wrong_usage(arguments->command,
                           "option '--%s' needs a whole number in %" PRId64 "..%" PRId64
                           ", found '%s'",
                           name, low, high, text);
    *number = found;
    return DONE;
}

int option_real(const struct arguments *arguments, const char *name, double low, double high,
                double *number)
{
    const char *text = option_text(arguments, name);
    if (!text)
        return DONE;
    char *end;
    const double found = strtod(text, &end);
    if (end == text || *end || !(found >= low && found <= high))
        return wrong_usage(arguments->command,
                           "option '--%s' needs a number in %g..%g, found '%s'", name, low,
                           high, text);
    *number = found;
    return DONE;
}

int wrong_usage(const struct command *command, const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    say("%s: %s", command->name, text);
    say("'lockstep %s --help' lists what there is", command->name);
    return USAGE;
}
