/* What the files of the `lockstep` program share: the table of subcommands, their options, exit
 * status. A subcommand is one file with one const table row. Sees include/ only. */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include <lockstep/lockstep.h>
#include <stdbool.h>
#include <stdint.h>

/* Exit status; scripts rely on it. */
enum { DONE = 0, FAILED = 1, USAGE = 2, BAD_INPUT = 3, NO_DEVICE = 4, INTERRUPTED = 130 };

/* An option of a subcommand; a table ends with an empty row. `value` is the name of its value
 * in the help ("N"); NULL: a flag without value. Shells complete by it: FILE, DIR, SPEC, LIST,
 * "a|b". Options that are often typed have a letter too: option_letter(). */
struct option {
    const char *name, *value, *help;
};

/* A command line and what it does, of a list that ends with an empty row. */
struct example {
    const char *line, *what;
};

struct arguments;

struct command {
    const char *name, *usage; /* what stands behind the name: "MODEL [options]" */
    const char *help;         /* one line */
    const struct option *options;
    const struct example *examples;
    void (*more)(void); /* prints what stands below the options; NULL: nothing */
    int (*run)(const struct arguments *arguments); /* returns the exit status */
};

extern const struct command bench_command, completion_command, convert_command, data_command,
    devices_command, eval_command, export_command, generate_command, help_command,
    import_command, predict_command, report_command, run_command, runs_command, scale_command,
    selftest_command, serve_command, summary_command, sweep_command, tokenize_command,
    train_command, tune_command, watch_command, weights_command;

/* All of them in the order in which they are listed; ends with NULL. */
extern const struct command *const commands[];

/* The subcommand of that name; NULL: absent. */
const struct command *command_find(const char *name);

/* Says that there is no such subcommand, and which is near. Returns USAGE. */
int unknown_command(const char *name);

/* What `lockstep help` prints. */
void commands_help(void);

/* An option as given: the last of the same name counts, unless the subcommand collects them. */
struct given {
    const struct option *option;
    const char *value; /* NULL: a flag */
};

/* A parsed command line; points into argv. */
struct arguments {
    const struct command *command;
    struct given *given;
    const char **words; /* all that is no option */
    int given_count, word_count;
};

/* Parses "--name value", "--name=value", "--flag", "-n value", "-nvalue", flags together as
 * "-qf"; all behind "--" are words. Returns DONE, or USAGE with the message said.
 * arguments_clear() releases, after failures too. */
int arguments_parse(const struct command *command, int count, char **text,
                    struct arguments *arguments);
void arguments_clear(struct arguments *arguments);

/* The value given last; NULL: not given. */
const char *option_text(const struct arguments *arguments, const char *name);
bool option_given(const struct arguments *arguments, const char *name);

/* The whole number given last, within [low, high]; leaves *number where none is given. Returns
 * DONE, or USAGE with the message said. */
int option_number(const struct arguments *arguments, const char *name, int64_t low,
                  int64_t high, int64_t *number);

/* As option_number(), for any number. */
int option_real(const struct arguments *arguments, const char *name, double low, double high,
                double *number);

/* The letter that stands for the option in this subcommand; 0: it has none. */
char option_letter(const struct command *command, const struct option *option);

/* Prints a subcommand's help to stdout. */
void command_help(const struct command *command);

/* The name nearest to `wrong`, names[i] until NULL; NULL: none is near. */
const char *nearest_name(const char *wrong, const char *const *names);

/* Says the library's message; returns the exit status that belongs to the code. */
int failed(enum lk_status status);

/* Says a message about the command line and where help is; returns USAGE. */
int wrong_usage(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
