/* The `lockstep` program: finds the subcommand, maps failures to the exit status. */
#include "command.h"
#include "help/pages.h"
#include "terminal/terminal.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct command *const commands[] = {
    &train_command, &eval_command,     &predict_command,  &generate_command,   &run_command,
    &serve_command, &summary_command,  &import_command,   &weights_command,    &export_command,
    &data_command,  &convert_command,  &tokenize_command, &runs_command,       &report_command,
    &watch_command, &sweep_command,    &devices_command,  &bench_command,      &tune_command,
    &scale_command, &selftest_command, &help_command,     &completion_command, NULL};

int failed(enum lk_status status)
{
    const char *text = lk_error_text();
    say("%s", *text ? text : lk_status_text(status));
    switch (status) {
    case LK_OK:
        return DONE;
    case LK_E_ARGUMENT:
        return USAGE;
    case LK_E_SHAPE:
    case LK_E_IO:
    case LK_E_DATA:
    case LK_E_MODEL:
    case LK_E_UNSUPPORTED: /* what a file has */
        return BAD_INPUT;
    case LK_E_NO_DEVICE:
    case LK_E_DEVICE:
    case LK_E_DEVICE_MEMORY:
    case LK_E_BUILD:
        return NO_DEVICE;
    case LK_E_INTERRUPTED:
        return INTERRUPTED;
    case LK_E_MEMORY:
        break;
    }
    return FAILED;
}

void commands_help(void)
{
    printf("usage: lockstep COMMAND [options]\n\nTrains neural networks on OpenCL devices.\n\n"
           "commands:\n");
    for (int i = 0; commands[i]; i++) {
        printf("  %-10s  ", commands[i]->name);
        print_wrapped(commands[i]->help, 14, stdout_columns());
    }
    printf(
        "\n'lockstep COMMAND --help' lists a command's options, 'lockstep help COMMAND' tells\n"
        "all of it. 'lockstep help model' is about model files, 'help run' about run\n"
        "directories and run files, 'help data' about data sets. To begin:\n\n"
        "  lockstep devices\n"
        "  lockstep train fashion-convnet --data synthetic:digits --epochs 1\n");
}

int unknown_command(const char *name)
{
    const char *names[32] = {NULL};
    for (int i = 0; commands[i]; i++)
        names[i] = commands[i]->name;
    const char *near = nearest_name(name, names);
    say("unknown command '%s'%s%s%s", name, near ? "; did you mean '" : "", near ? near : "",
        near ? "'?" : "");
    say("'lockstep --help' lists the commands");
    return USAGE;
}

const struct command *command_find(const char *name)
{
    for (int i = 0; commands[i]; i++)
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    return NULL;
}

/* Help is given whatever else stands on the line, unless "--" came first. */
static bool asks_for_help(int count, char **text)
{
    for (int i = 0; i < count && strcmp(text[i], "--") != 0; i++)
        if (strcmp(text[i], "--help") == 0 || strcmp(text[i], "-h") == 0)
            return true;
    return false;
}

static int run_one(const char *name, int count, char **text)
{
    const struct command *command = command_find(name);
    if (!command)
        return unknown_command(name);
    if (asks_for_help(count, text)) {
        command_help(command);
        return DONE;
    }
    struct arguments arguments;
    int status = arguments_parse(command, count, text, &arguments);
    if (status == DONE)
        status = command->run(&arguments);
    arguments_clear(&arguments);
    return status;
}

static int run(int count, char **text)
{
    const char *name = count > 1 ? text[1] : "";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("lockstep " LK_VERSION "\n");
        return DONE;
    }
    if (!*name || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        commands_help();
        return count > 1 ? DONE : USAGE;
    }
    return run_one(name, count - 2, text + 2);
}

int main(int count, char **text)
{
    if (count == 2 && strcmp(text[1], LK_COMPILE_AHEAD) == 0) {
        lk_device_compile_ahead(STDIN_FILENO);
        _Exit(DONE);
    }
    lk_device_set_compiler("/proc/self/exe");
    terminal_start();
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error like a full disk, no crash */
    const int status = run(count, text);
    if (terminal_flush())
        return status;
    say("cannot write to stdout: what was printed is not complete");
    return status == DONE ? BAD_INPUT : status;
}
