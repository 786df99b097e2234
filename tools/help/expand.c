/* Fills the pages of the manual with what the program's tables say: options, examples,
 * settings, operations. So a page and the program cannot differ. */
#include "command.h"
#include "help/pages.h"

#include <ctype.h>
#include <string.h>

/* What a line @WORD@ becomes. */
struct directive {
    const char *name;
    void (*write)(const struct command *command, FILE *to);
};

/* Escapes what scdoc would take for marks, or for the beginning of a list or table. */
static void put(FILE *to, const char *text)
{
    if (*text && strchr("#-.`[|]; ", *text))
        fputc('\\', to);
    for (; *text; text++) {
        if (strchr("*_\\+", *text))
            fputc('\\', to);
        fputc(*text == '\n' ? ' ' : *text, to);
    }
}

/* --- subcommands ------------------------------------------------------------------------ */

static void put_option(const struct command *command, const struct option *row, FILE *to)
{
    const char letter = option_letter(command, row);
    if (letter)
        fprintf(to, "*-%c*, ", letter);
    fprintf(to, "*--%s*", row->name);
    if (row->value) {
        fprintf(to, " _");
        put(to, row->value);
        fprintf(to, "_");
    }
    fprintf(to, "\n\t");
    put(to, row->help);
    fprintf(to, "\n\n");
}

static void put_options(const struct command *command, FILE *to)
{
    for (const struct option *row = command->options; row->name; row++)
        put_option(command, row, to);
    fprintf(to, "*-h*, *--help*\n\tshow the options and some examples\n");
}

static void put_usage(const struct command *command, FILE *to)
{
    const char *line = command->usage;
    fprintf(to, "*lockstep %s* ", command->name);
    for (; *line; line++)
        if (*line == '\n') {
            fprintf(to, "++\n");
            line += strspn(line + 1, " ");
        } else {
            fprintf(to, strchr("*_\\+", *line) ? "\\%c" : "%c", *line);
        }
    fprintf(to, "\n");
}

static void put_examples(const struct command *command, FILE *to)
{
    for (const struct example *row = command->examples; row && row->line; row++) {
        fputc(toupper((unsigned char)row->what[0]), to);
        put(to, row->what + 1);
        fprintf(to, ":\n\n```\n%s\n```\n\n", row->line);
    }
}

static void put_commands(const struct command *command, FILE *to)
{
    (void)command;
    for (int i = 0; commands[i]; i++) {
        fprintf(to, "*%s*\n\t", commands[i]->name);
        put(to, commands[i]->help);
        fprintf(to, "\n\n");
    }
}

/* --- tables of the library -------------------------------------------------------------- */

/* "- *alpha* (number, 0..1; default 0.01): slope" */
static void put_row(const struct lk_reference_option *option, FILE *to)
{
    fprintf(to, "- *%s* (", option->name);
    put(to, option->values);
    if (!option->standard)
        fprintf(to, "; must be given");
    else if (*option->standard)
        fprintf(to, "; default %s", option->standard);
    fprintf(to, *option->help ? "): " : ")");
    put(to, option->help);
    fprintf(to, "\n");
}

/* Losses are operations too, but a text asks for them in another place. */
static bool is_told_elsewhere(enum lk_reference kind, const char *word)
{
    const char *loss;
    for (int i = 0; (loss = lk_reference_word(LK_REFERENCE_LOSS, i)) != NULL; i++)
        if (kind == LK_REFERENCE_OPERATION && strcmp(loss, word) == 0)
            return true;
    return false;
}

/* Words with options, each with its list of them; then those that have none in one line. */
static void put_words(enum lk_reference kind, FILE *to)
{
    struct lk_reference_option option;
    const char *word;
    int plain = 0;
    for (int i = 0; (word = lk_reference_word(kind, i)) != NULL; i++) {
        if (is_told_elsewhere(kind, word) || !lk_reference_read_option(kind, i, 0, &option))
            continue;
        fprintf(to, "*%s*\n", word);
        for (int j = 0; lk_reference_read_option(kind, i, j, &option); j++) {
            fprintf(to, "\t");
            put_row(&option, to);
        }
        fprintf(to, "\n");
    }
    for (int i = 0; (word = lk_reference_word(kind, i)) != NULL; i++)
        if (!lk_reference_read_option(kind, i, 0, &option))
            fprintf(to, "%s*%s*", plain++ ? ", " : "Without options: ", word);
    fprintf(to, "%s", plain ? "\n" : "");
}

static void put_operations(const struct command *command, FILE *to)
{
    (void)command;
    put_words(LK_REFERENCE_OPERATION, to);
}

static void put_losses(const struct command *command, FILE *to)
{
    (void)command;
    put_words(LK_REFERENCE_LOSS, to);
}

static void put_metrics(const struct command *command, FILE *to)
{
    (void)command;
    put_words(LK_REFERENCE_METRIC, to);
}

static void put_optimizers(const struct command *command, FILE *to)
{
    (void)command;
    put_words(LK_REFERENCE_OPTIMIZER, to);
}

static void put_callbacks(const struct command *command, FILE *to)
{
    (void)command;
    put_words(LK_REFERENCE_CALLBACK, to);
}

static void put_stages(const struct command *command, FILE *to)
{
    (void)command;
    put_words(LK_REFERENCE_STAGE, to);
}

static void put_schedule(const struct command *command, FILE *to)
{
    struct lk_reference_option option;
    (void)command;
    for (int i = 0; lk_reference_read_option(LK_REFERENCE_SCHEDULE, 0, i, &option); i++)
        put_row(&option, to);
}

static void put_settings(const struct command *command, FILE *to)
{
    struct lk_reference_option option;
    (void)command;
    for (int i = 0; lk_reference_read_option(LK_REFERENCE_SETTING, 0, i, &option); i++) {
        fprintf(to, "*%s* (", option.name);
        put(to, option.values);
        if (option.standard && *option.standard)
            fprintf(to, "; default %s", option.standard);
        fprintf(to, ")\n\t");
        put(to, option.help);
        fprintf(to, "\n\n");
    }
}

static void put_names(const char *(*name)(int index), FILE *to)
{
    for (int i = 0; name(i); i++)
        fprintf(to, "%s*%s*", i ? ", " : "", name(i));
    fprintf(to, "\n");
}

static void put_zoo(const struct command *command, FILE *to)
{
    (void)command;
    put_names(lk_model_zoo, to);
}

static void put_sets(const struct command *command, FILE *to)
{
    (void)command;
    put_names(lk_bench_set, to);
}

static const struct directive directives[] = {{"options", put_options},
                                              {"usage", put_usage},
                                              {"examples", put_examples},
                                              {"commands", put_commands},
                                              {"operations", put_operations},
                                              {"losses", put_losses},
                                              {"metrics", put_metrics},
                                              {"optimizers", put_optimizers},
                                              {"schedule", put_schedule},
                                              {"settings", put_settings},
                                              {"callbacks", put_callbacks},
                                              {"zoo", put_zoo},
                                              {"sets", put_sets},
                                              {"stages", put_stages},
                                              {0}};

/* The directive that the line is; NULL: it is text. */
static const struct directive *find(const char *line, size_t bytes)
{
    for (const struct directive *row = directives; row->name; row++)
        if (bytes == strlen(row->name) + 2 && *line == '@' && line[bytes - 1] == '@' &&
            memcmp(line + 1, row->name, bytes - 2) == 0)
            return row;
    return NULL;
}

/* The subcommand of "lockstep-train.1"; NULL: the page is of none. */
static const struct command *command_of(const char *page)
{
    char name[64];
    const char *dash = strchr(page, '-');
    snprintf(name, sizeof name, "%s", dash ? dash + 1 : "");
    name[strcspn(name, ".")] = '\0';
    return command_find(name);
}

void page_expand(const struct help_page *page, FILE *to)
{
    const struct command *command = command_of(page->name);
    for (const char *line = page->text; *line;) {
        const size_t bytes = strcspn(line, "\n");
        const struct directive *directive = find(line, bytes);
        if (directive)
            directive->write(command, to);
        else
            fprintf(to, "%.*s\n", (int)bytes, line);
        line += bytes;
        line += *line == '\n';
    }
}
