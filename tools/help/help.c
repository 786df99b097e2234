/* lockstep help: the pages of the manual on the terminal, and the short help of a subcommand.
 */
#include "command.h"
#include "help/pages.h"
#include "terminal/terminal.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INDENT = 30, LEAST_HELP = 28, SHELL_FOUND_NONE = 127, MOST_TOPICS = 64 };

/* --- the short help ----------------------------------------------------------------------- */

static void print_option(const struct command *command, const struct option *row, int columns)
{
    const char letter[] = {'-', option_letter(command, row), ',', ' ', '\0'};
    char left[80];
    snprintf(left, sizeof left, "  %s--%s%s%s", letter[1] ? letter : "    ", row->name,
             row->value ? " " : "", row->value ? row->value : "");
    const bool is_narrow = columns < INDENT + LEAST_HELP;
    const int indent = is_narrow ? 8 : INDENT;
    if (is_narrow || strlen(left) >= INDENT)
        printf("%s\n%*s", left, indent, "");
    else
        printf("%-*s", INDENT, left);
    print_wrapped(row->help, indent, columns);
}

void command_help(const struct command *command)
{
    const int columns = stdout_columns();
    printf("usage: lockstep %s %s\n\n", command->name, command->usage);
    print_wrapped(command->help, 0, columns);
    if (command->options->name)
        printf("\noptions:\n");
    for (const struct option *row = command->options; row->name; row++)
        print_option(command, row, columns);
    if (command->examples)
        printf("\nexamples:\n");
    for (const struct example *row = command->examples; row && row->line; row++) {
        printf("  %s\n      ", row->line);
        print_wrapped(row->what, 6, columns);
    }
    if (command->more) {
        printf("\n");
        command->more();
    }
    printf("\n'lockstep help %s' tells all of it.\n", command->name);
}

/* --- pages -------------------------------------------------------------------------------- */

/* "train.1" of lockstep-train.1. */
static const char *short_name(const struct help_page *page)
{
    const char *dash = strchr(page->name, '-');
    return dash ? dash + 1 : page->name;
}

/* Whether the page is one of the topic: "train" is lockstep-train.1, "data" lockstep-data.1 and
 * lockstep-data.7, of which "data.7" is the second. */
static bool is_of(const struct help_page *page, const char *topic)
{
    const char *const names[] = {page->name, short_name(page)};
    const size_t bytes = strlen(topic);
    for (int i = 0; i < 2; i++)
        if (strncmp(names[i], topic, bytes) == 0 &&
            (names[i][bytes] == '\0' || names[i][bytes] == '.'))
            return true;
    return false;
}

static int rows_of(const char *text)
{
    int rows = 0;
    for (; *text; text++)
        rows += *text == '\n';
    return rows;
}

/* Gives the text to $PAGER, or less. Returns false where that cannot be started. */
static bool show_in_pager(const char *text)
{
    const char *pager = getenv("PAGER");
    struct winsize size = {0};
    if (!pager)
        pager = "less";
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO) || !*pager ||
        (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && rows_of(text) < size.ws_row))
        return false;
    setenv("LESS", "FRX", 0);                       /* lets bold through */
    void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* it may be left before its end */
    FILE *to = popen(pager, "w");
    if (to)
        fputs(text, to);
    const int status = to ? pclose(to) : -1;
    signal(SIGPIPE, before);
    return status != -1 && !(WIFEXITED(status) && WEXITSTATUS(status) == SHELL_FOUND_NONE);
}

static bool can_style(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

static void write_page(const struct help_page *page, bool is_source, FILE *to)
{
    char *scdoc = NULL;
    size_t bytes = 0;
    FILE *memory = is_source ? NULL : open_memstream(&scdoc, &bytes);
    page_expand(page, is_source || !memory ? to : memory);
    if (!memory)
        return;
    if (fclose(memory) == 0)
        page_render(scdoc, stdout_columns(), can_style(), to);
    free(scdoc);
}

static int unknown_topic(const char *topic)
{
    static char texts[MOST_TOPICS][48];
    const char *names[MOST_TOPICS + 1] = {NULL};
    for (int i = 0; i < MOST_TOPICS && help_pages[i].name; i++) {
        snprintf(texts[i], sizeof texts[i], "%s", short_name(&help_pages[i]));
        texts[i][strcspn(texts[i], ".")] = '\0';
        names[i] = texts[i];
    }
    const char *near = nearest_name(topic, names);
    say("no page '%s'%s%s%s", topic, near ? "; did you mean '" : "", near ? near : "",
        near ? "'?" : "");
    say("'lockstep help' lists what there is");
    return USAGE;
}

static int show(const char *topic, bool is_source)
{
    char *text = NULL;
    size_t bytes = 0;
    int found = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) {
        say("out of memory");
        return FAILED;
    }
    for (const struct help_page *page = help_pages; page->name; page++)
        if (is_of(page, topic)) {
            if (found++ > 0)
                fprintf(to, "\n");
            write_page(page, is_source, to);
        }
    if (fclose(to) == 0 && found && !show_in_pager(text))
        fputs(text, stdout);
    free(text);
    return found ? DONE : unknown_topic(topic);
}

static int run(const struct arguments *arguments)
{
    if (arguments->word_count > 1)
        return wrong_usage(arguments->command, "takes one TOPIC, found %d words",
                           arguments->word_count);
    if (arguments->word_count)
        return show(arguments->words[0], option_given(arguments, "source"));
    commands_help();
    return DONE;
}

static void more(void)
{
    printf("TOPIC:");
    int column = 6;
    for (const struct help_page *page = help_pages; page->name; page++) {
        const char *name = short_name(page);
        column += (int)strlen(name) + 1;
        if (column > 78)
            column = 6 + printf("\n     ");
        printf(" %s", name);
    }
    printf("\n");
}

static const struct option options[] = {
    {"source", NULL, "print the page as scdoc text, from which man pages are made"},
    {0},
};

static const struct example examples[] = {
    {"lockstep help train", "all about training"},
    {"lockstep help data", "the subcommand, then how data sets are named and read"},
    {"lockstep help model", "how model files are written, with every operation's options"},
    {"lockstep help run", "what is in a run directory; how run files are written"},
    {0},
};

const struct command help_command = {
    .name = "help",
    .usage = "[TOPIC]",
    .help = "show a page of the manual: a command, or data, model, run",
    .options = options,
    .examples = examples,
    .more = more,
    .run = run,
};
