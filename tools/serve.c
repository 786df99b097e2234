/* lockstep serve: predictions of trained models over HTTP. */
#include "command.h"
#include "terminal/interrupt.h"
#include "terminal/task.h"
#include "terminal/terminal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(void *server)
{
    lk_server_stop(server);
}

static const struct interrupt_words words = {
    .stop = stop,
    .first = "\nlockstep: answering what was accepted, then it ends\n",
    .second = "\nlockstep: stopped at once\n"};

/* "NAME=PATH", or "PATH", whose last part is the name, of an ONNX model without .onnx; a copy
 * of the name, which is "" where there is none. */
static char *take_name(const char *word, const char **path)
{
    const char *equals = strchr(word, '=');
    *path = equals ? equals + 1 : word;
    if (equals)
        return strndup(word, (size_t)(equals - word));
    size_t end = strlen(word);
    while (end > 0 && word[end - 1] == '/')
        end--;
    if (end > 5 && strncmp(word + end - 5, ".onnx", 5) == 0)
        end -= 5;
    size_t begin = end;
    while (begin > 0 && word[begin - 1] != '/')
        begin--;
    const bool is_name = end > begin && word[begin] != '.';
    return strndup(word + begin, is_name ? end - begin : 0);
}

/* names[i] is a copy. */
static int parse_models(const struct arguments *arguments, struct lk_serve_model *models,
                        char **names)
{
    for (int i = 0; i < arguments->word_count; i++) {
        const char *word = arguments->words[i], *path;
        names[i] = take_name(word, &path);
        if (!names[i]) {
            say("out of memory");
            return FAILED;
        }
        if (!*names[i] || !*path)
            return wrong_usage(arguments->command, "needs NAME=PATH, found '%s'", word);
        models[i] = (struct lk_serve_model){.name = names[i], .path = path};
    }
    return DONE;
}

static int parse_options(const struct arguments *arguments, struct lk_serve_options *o)
{
    int64_t port = 8501, connections = 0, body = 0, pixels = 0;
    int result = option_number(arguments, "port", 0, 65535, &port);
    if (result == DONE)
        result = option_number(arguments, "max-batch", 1, 4096, &o->max_batch);
    if (result == DONE)
        result = option_real(arguments, "max-delay-ms", 0, 10000, &o->max_delay_ms);
    if (result == DONE)
        result = option_number(arguments, "max-queue", 1, 1 << 20, &o->max_queue);
    if (result == DONE)
        result = option_number(arguments, "max-connections", 4, 60000, &connections);
    if (result == DONE)
        result = option_number(arguments, "max-body", 1, 1 << 20, &body);
    if (result == DONE)
        result = option_number(arguments, "max-pixels", 1, 64 << 20, &pixels);
    if (result == DONE)
        result = option_real(arguments, "timeout", 0.1, 3600, &o->timeout_s);
    o->port = (int)port;
    o->max_connections = (int)connections;
    o->max_body = (size_t)body << 20;
    o->max_pixels = pixels;
    o->bind = option_text(arguments, "bind");
    o->device = option_text(arguments, "device");
    o->token_file = option_text(arguments, "token-file");
    o->access_log = option_text(arguments, "access-log");
    return result;
}

static int serve(const struct lk_serve_options *options)
{
    struct lk_server *server = NULL;
    const enum lk_status status = lk_server_open(options, &server);
    if (status != LK_OK)
        return failed(status);
    interrupt_catch(&words);
    interrupt_set_running(server);
    const char *bind = options->bind ? options->bind : "127.0.0.1";
    task_quiet();
    say(strchr(bind, ':') ? "listening at http://[%s]:%d" : "listening at http://%s:%d", bind,
        lk_server_port(server));
    lk_server_run(server);
    interrupt_set_running(NULL);
    lk_server_close(server);
    return DONE;
}

static int run(const struct arguments *arguments)
{
    struct lk_serve_options options = {0};
    options.model_file = option_text(arguments, "model-config-file");
    options.batching = option_text(arguments, "batching-parameters-file");
    if (arguments->word_count == 0 && !options.model_file)
        return wrong_usage(arguments->command, "needs at least one model: NAME=PATH or PATH");
    const size_t count = (size_t)arguments->word_count;
    struct lk_serve_model *models = calloc(count + 1, sizeof *models);
    char **names = calloc(count + 1, sizeof *names);
    int result = FAILED;
    if (models && names)
        result = parse_models(arguments, models, names);
    else
        say("out of memory");
    if (result == DONE)
        result = parse_options(arguments, &options);
    options.models = models;
    options.model_count = arguments->word_count;
    if (result == DONE)
        result = serve(&options);
    for (size_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
    free(models);
    return result;
}

static const struct option options[] = {
    {"port", "N", "port to listen on; 0: any that is free (default 8501)"},
    {"bind", "ADDRESS", "address to listen at (default 127.0.0.1: this machine alone)"},
    {"device", "LIST", "devices, which models take in turn; 'lockstep devices' lists them"},
    {"max-batch", "N", "samples computed together (default 16)"},
    {"max-delay-ms", "T", "how long the first of them waits for others (default 0)"},
    {"max-queue", "N",
     "samples that may wait for a model; more are refused with 429 (default "
     "1024)"},
    {"model-config-file", "FILE",
     "more models, with versions and labels, as TensorFlow Serving reads them"},
    {"batching-parameters-file", "FILE",
     "TensorFlow Serving's, for what the three options above leave open"},
    {"max-body", "MIB", "of a request (default 32)"},
    {"max-pixels", "N", "of an image that is sent (default 16777216)"},
    {"max-connections", "N", "open at a time (default 1024)"},
    {"timeout", "S", "after which clients that send or take too slowly are left (default 30)"},
    {"token-file", "FILE", "its first line is the bearer token that clients must bring"},
    {"access-log", "FILE", "add a line of JSON for each request"},
    {0},
};

static const struct example examples[] = {
    {"lockstep serve fashion=model/", "a bundle, at http://127.0.0.1:8501"},
    {"lockstep serve shoes=shoes bags=bags/run --bind 0.0.0.0 --token-file token",
     "two models, for other machines, which must know the token"},
    {"curl --data-binary @shoe.png http://127.0.0.1:8501/v1/models/fashion:classify",
     "the classes of an image"},
    {0},
};

const struct command serve_command = {
    .name = "serve",
    .usage = "[NAME=]PATH... [options]",
    .help = "predict over HTTP, as TensorFlow Serving and KServe do. PATH: a bundle, a run\n"
            "directory, a checkpoint, an ONNX model, or a folder of such with versions as\n"
            "names (1, 2, ...)",
    .options = options,
    .examples = examples,
    .run = run,
};
