/* lockstep completion: scripts by which shells complete command lines, made from the tables of
 * options; and the words that these scripts ask for. */
#include "command.h"
#include "help/pages.h"

#include <string.h>

enum { MOST_WORDS = 4096 };

/* What may stand in a place of the command line. */
struct offer {
    char words[MOST_WORDS];                               /* "mlp vgg16 " */
    bool has_files, has_folders, has_devices, keeps_open; /* no space behind a word */
};

static const char specs[] =
    "folder: tfrecord: csv: idx: npy: text: fashion-mnist synthetic:digits synthetic:pairs ";

/* --- what is offered ------------------------------------------------------------------------
 */

static void add(struct offer *offer, const char *word, const char *end)
{
    const size_t used = strlen(offer->words);
    snprintf(offer->words + used, sizeof offer->words - used, "%s%s ", word, end);
}

static void add_words(struct offer *offer, enum lk_reference kind)
{
    for (int i = 0; lk_reference_word(kind, i); i++)
        add(offer, lk_reference_word(kind, i), "");
}

static void add_settings(struct offer *offer)
{
    struct lk_reference_option option;
    for (int i = 0; lk_reference_read_option(LK_REFERENCE_SETTING, 0, i, &option); i++)
        add(offer, option.name, "=");
    offer->keeps_open = true;
}

static void add_topics(struct offer *offer)
{
    for (const struct help_page *page = help_pages; page->name; page++) {
        const char *dash = strchr(page->name, '-');
        char name[64];
        snprintf(name, sizeof name, "%s", dash ? dash + 1 : page->name);
        name[strcspn(name, ".")] = '\0';
        if (!strstr(offer->words, name))
            add(offer, name, "");
    }
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Takes one word of a usage line or of the name of an option's value. */
static void offer_for(struct offer *offer, const char *word)
{
    if (begins(word, "FILE") || begins(word, "RUN") || begins(word, "CHECKPOINT") ||
        begins(word, "SRC") || begins(word, "DST"))
        offer->has_files = true;
    else if (begins(word, "DIR"))
        offer->has_folders = true;
    else if (begins(word, "KEY"))
        add_settings(offer);
    else if (begins(word, "STAGES"))
        add_words(offer, LK_REFERENCE_STAGE);
    else if (begins(word, "TOPIC"))
        add_topics(offer);
    else if (begins(word, "kernels:"))
        for (int i = 0; lk_bench_set(i); i++)
            add(offer, "kernels:", lk_bench_set(i));
    else if (word[0] >= 'a' && word[0] <= 'z')
        add(offer, word, "");
    if (begins(word, "MODEL"))
        for (int i = 0; lk_model_zoo(i); i++)
            add(offer, lk_model_zoo(i), "");
    if (begins(word, "SPEC")) {
        offer->keeps_open = true; /* a place follows the colon */
        strncat(offer->words, specs, sizeof offer->words - strlen(offer->words) - 1);
    }
    offer->has_files = offer->has_files || begins(word, "MODEL") || begins(word, "SPEC");
}

/* "MODEL|RUN.yaml [options]": the words of it. */
static struct offer offer_of(const char *text)
{
    struct offer offer = {0};
    char word[64];
    while (*(text += strspn(text, " |[].\n")) != '\0') {
        const size_t bytes = strcspn(text, " |[]\n");
        snprintf(word, sizeof word, "%.*s", (int)bytes, text);
        word[strcspn(word, ".")] = '\0';
        text += bytes;
        if (word[0] != '-' && strcmp(word, "options") != 0 && strcmp(word, "lockstep") != 0)
            offer_for(&offer, word);
    }
    return offer;
}

static struct offer offer_of_option(const struct option *row)
{
    if (strcmp(row->name, "device") == 0)
        return (struct offer){.words = "all gpu cpu ", .has_devices = true};
    struct offer offer = offer_of(row->value);
    if (strcmp(row->name, "optimizer") == 0)
        add_words(&offer, LK_REFERENCE_OPTIMIZER);
    if (strcmp(row->name, "callback") == 0)
        add_words(&offer, LK_REFERENCE_CALLBACK);
    return offer;
}

/* The usage of "bench" has a second line, and names itself there. */
static struct offer offer_of_words(const struct command *command)
{
    char text[256];
    snprintf(text, sizeof text, "%s", command->usage);
    text[strcspn(text, "\n")] = '\0';
    return offer_of(text);
}

/* --- bash -----------------------------------------------------------------------------------
 */

static void print_bash_offer(const struct offer *offer)
{
    if (*offer->words || offer->has_devices)
        printf("COMPREPLY=($(compgen -W \"%s%s\" -- \"$cur\")); ", offer->words,
               offer->has_devices ? "$(lockstep completion devices 2>/dev/null)" : "");
    if (offer->keeps_open)
        printf("compopt -o nospace; ");
    if (offer->has_files)
        printf("((${#COMPREPLY[@]})) || compopt -o filenames; "
               "COMPREPLY+=($(compgen -f -- \"$cur\")); ");
    if (offer->has_folders)
        printf("compopt -o filenames; COMPREPLY+=($(compgen -d -- \"$cur\")); ");
    printf(":");
}

static void print_bash_command(const struct command *command)
{
    printf("    %s)\n        case \"$prev\" in\n", command->name);
    for (const struct option *row = command->options; row->name; row++)
        if (row->value) {
            const char letter = option_letter(command, row);
            const struct offer offer = offer_of_option(row);
            printf("        --%s", row->name);
            if (letter)
                printf("|-%c", letter);
            printf(") ");
            print_bash_offer(&offer);
            printf(";;\n");
        }
    printf("        *) if [[ $cur == -* ]]; then\n"
           "               COMPREPLY=($(compgen -W \"");
    for (const struct option *row = command->options; row->name; row++)
        printf("--%s ", row->name);
    printf("--help\" -- \"$cur\"))\n           else\n               ");
    const struct offer offer = offer_of_words(command);
    print_bash_offer(&offer);
    printf("\n           fi;;\n        esac;;\n");
}

static const char bash_begin[] =
    "# Completion of lockstep for bash, made by 'lockstep completion bash'.\n"
    "_lockstep()\n{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} IFS=$' "
    "\\t\\n'\n"
    "    COMPREPLY=()\n"
    "    # bash cuts words at '=' and ':', which become words of their own\n"
    "    if [[ $cur == '=' ]]; then\n"
    "        cur=\n"
    "    elif [[ $prev == '=' && COMP_CWORD -ge 2 ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    elif [[ $cur == ':' || $prev == ':' ]]; then\n"
    "        local kind=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "        [[ $cur == ':' ]] && cur= kind=$prev\n"
    "        if [[ $kind == kernels ]]; then\n"
    "            COMPREPLY=($(compgen -W \"";

static int print_bash(void)
{
    printf("%s", bash_begin);
    for (int i = 0; lk_bench_set(i); i++)
        printf("%s ", lk_bench_set(i));
    printf("\" -- \"$cur\"))\n"
           "        else\n"
           "            compopt -o filenames\n"
           "            COMPREPLY=($(compgen -f -- \"$cur\"))\n"
           "        fi\n"
           "        return\n"
           "    fi\n"
           "    if [[ COMP_CWORD -eq 1 ]]; then\n"
           "        COMPREPLY=($(compgen -W \"");
    for (int i = 0; commands[i]; i++)
        printf("%s ", commands[i]->name);
    printf("--help --version\" -- \"$cur\"))\n        return\n    fi\n"
           "    case \"${COMP_WORDS[1]}\" in\n");
    for (int i = 0; commands[i]; i++)
        print_bash_command(commands[i]);
    printf("    esac\n}\ncomplete -F _lockstep lockstep\n");
    return DONE;
}

/* --- zsh ------------------------------------------------------------------------------------
 */

/* Text within '...' of a specification of _arguments. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            printf("'\\''");
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text == '\n' ? ' ' : *text);
}

static void print_zsh_offer(const char *command, const char *place, const struct offer *offer)
{
    printf("_lockstep_%s_%s() {\n", command, place);
    if (*offer->words)
        printf("    compadd %s-- %s\n", offer->keeps_open ? "-S '' " : "", offer->words);
    if (offer->has_devices)
        printf("    compadd -- ${(f)\"$(lockstep completion devices 2>/dev/null)\"}\n");
    if (offer->has_files)
        printf("    _files\n");
    if (offer->has_folders)
        printf("    _files -/\n");
    printf("    true\n}\n");
}

static void print_zsh_option(const struct command *command, const struct option *row)
{
    const char letter = option_letter(command, row);
    printf("        ");
    if (letter)
        printf("'(-%c --%s)'{-%c,--%s%s}'[", letter, row->name, letter, row->name,
               row->value ? "=" : "");
    else
        printf("'%s--%s%s[", strcmp(row->name, "set") == 0 ? "*" : "", row->name,
               row->value ? "=" : "");
    print_zsh_text(row->help);
    printf("]");
    if (row->value) {
        printf(":");
        print_zsh_text(row->value);
        printf(":_lockstep_%s_%s", command->name, row->name);
    }
    printf("' \\\n");
}

static void print_zsh_command(const struct command *command)
{
    struct offer offer = offer_of_words(command);
    print_zsh_offer(command->name, "words", &offer);
    for (const struct option *row = command->options; row->name; row++)
        if (row->value) {
            offer = offer_of_option(row);
            print_zsh_offer(command->name, row->name, &offer);
        }
    printf("_lockstep_%s() {\n    _arguments -s \\\n", command->name);
    for (const struct option *row = command->options; row->name; row++)
        print_zsh_option(command, row);
    printf("        '(-h --help)'{-h,--help}'[show the options]' \\\n"
           "        '*:word:_lockstep_%s_words'\n}\n",
           command->name);
}

static int print_zsh(void)
{
    printf("#compdef lockstep\n"
           "# Completion of lockstep for zsh, made by 'lockstep completion zsh'.\n");
    for (int i = 0; commands[i]; i++)
        print_zsh_command(commands[i]);
    printf("_lockstep() {\n    local -a commands\n    commands=(\n");
    for (int i = 0; commands[i]; i++) {
        printf("        '%s:", commands[i]->name);
        print_zsh_text(commands[i]->help);
        printf("'\n");
    }
    printf("    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    local name=$words[2]\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    (( $+functions[_lockstep_$name] )) && _lockstep_$name\n"
           "}\n"
           "_lockstep \"$@\"\n");
    return DONE;
}

/* --- fish -----------------------------------------------------------------------------------
 */

static void print_fish_text(const char *text)
{
    printf(" -d '");
    for (; *text; text++)
        if (strchr("'\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text == '\n' ? ' ' : *text);
    printf("'\n");
}

static void print_fish_offer(const struct offer *offer)
{
    if (*offer->words || offer->has_devices)
        printf(" -a '%s%s'", offer->words,
               offer->has_devices ? "(lockstep completion devices 2>/dev/null)" : "");
    else if (offer->has_folders)
        printf(" -a '(__fish_complete_directories)'");
    if (offer->has_files)
        printf(" -F");
}

static void print_fish_command(const struct command *command)
{
    const struct offer offer = offer_of_words(command);
    printf("complete -c lockstep -n '__fish_seen_subcommand_from %s'", command->name);
    print_fish_offer(&offer);
    printf("\n");
    for (const struct option *row = command->options; row->name; row++) {
        const char letter = option_letter(command, row);
        printf("complete -c lockstep -n '__fish_seen_subcommand_from %s' -l %s", command->name,
               row->name);
        if (letter)
            printf(" -s %c", letter);
        if (row->value) {
            const struct offer values = offer_of_option(row);
            printf(values.has_files || values.has_folders ? " -r" : " -x");
            print_fish_offer(&values);
        }
        print_fish_text(row->help);
    }
}

static int print_fish(void)
{
    printf("# Completion of lockstep for fish, made by 'lockstep completion fish'.\n"
           "complete -c lockstep -f\n");
    for (int i = 0; commands[i]; i++) {
        printf("complete -c lockstep -n __fish_use_subcommand -a %s", commands[i]->name);
        print_fish_text(commands[i]->help);
    }
    for (int i = 0; commands[i]; i++)
        print_fish_command(commands[i]);
    return DONE;
}

/* --- the subcommand -------------------------------------------------------------------------
 */

static int print_devices(void)
{
    int count = 0;
    const enum lk_status status = lk_device_count(&count);
    for (int i = 0; status == LK_OK && i < count; i++)
        printf("%d\n", i);
    return status == LK_OK ? DONE : failed(status);
}

static int run(const struct arguments *arguments)
{
    static const struct {
        const char *name;
        int (*print)(void);
    } kinds[] = {{"bash", print_bash},
                 {"zsh", print_zsh},
                 {"fish", print_fish},
                 {"devices", print_devices}};
    for (size_t i = 0; arguments->word_count == 1 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(arguments->words[0], kinds[i].name) == 0)
            return kinds[i].print();
    return wrong_usage(arguments->command, "needs bash, zsh or fish, found '%s'",
                       arguments->word_count ? arguments->words[0] : "");
}

static const struct option options[] = {{0}};

static const struct example examples[] = {
    {"source <(lockstep completion bash)", "completes command lines in this bash"},
    {"lockstep completion fish > ~/.config/fish/completions/lockstep.fish",
     "keeps it for every fish that is started"},
    {0},
};

const struct command completion_command = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .help = "print a script by which a shell completes command lines of lockstep",
    .options = options,
    .examples = examples,
    .run = run,
};
