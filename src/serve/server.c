/* The server: opens models, listens, looks for new versions, writes the access log. */
#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/parallel.h"
#include "io/file.h"
#include "serve/config/config.h"
#include "serve/http/answer.h"
#include "serve/route.h"
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_MODELS = 64, MOST_TOKEN = 4096, LOOKS_PER_SECOND = 4, DRAIN_SECONDS = 60 };

struct lk_server {
    struct lk_serve_options options;
    struct lk_serve_model *models;   /* [options.model_count] of the caller and of the file */
    struct lk_config_model *in_file; /* what the latter point to */
    struct lk_routes routes;
    char *token;
    FILE *log;
    pthread_mutex_t log_mutex;
    sem_t stop;
    atomic_bool ends;
    pthread_t watcher;
    bool has_watcher, is_stuck, log_fails, log_is_cut;
};

/* --- the access log -----------------------------------------------------------------------
 */

static void print_time(char text[40])
{
    struct timespec now;
    struct tm day;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &day);
    const size_t used = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &day);
    snprintf(text + used, 40 - used, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

/* Where the disk is full requests go on, and what is lost is told of once. A line that was cut
 * short ends before the next one begins. */
static void write_line(struct lk_server *server, const struct lk_text *line)
{
    pthread_mutex_lock(&server->log_mutex);
    if (server->log_is_cut)
        server->log_is_cut = fputc('\n', server->log) != '\n';
    const size_t written =
        server->log_is_cut ? 0 : fwrite(line->bytes, 1, line->used, server->log);
    const bool fails = written < line->used;
    if (fails && !server->log_fails)
        lk_log(LK_LOG_WARNING, "lines of the access log '%s' are lost: %s",
               server->options.access_log, strerror(errno));
    clearerr(server->log);
    server->log_is_cut |= fails && written > 0;
    server->log_fails = fails;
    pthread_mutex_unlock(&server->log_mutex);
}

static void log_request(struct lk_server *server, const struct lk_http_record *r)
{
    struct lk_text line = {0};
    char time[40];
    print_time(time);
    lk_text_append(&line, "{\"time\": \"%s\", \"peer\": ", time);
    lk_answer_text(&line, r->peer);
    lk_text_append(&line, ", \"method\": ");
    lk_answer_text(&line, r->method);
    lk_text_append(&line, ", \"path\": ");
    lk_answer_text(&line, r->path);
    lk_text_append(&line, ", \"status\": %d, \"ms\": ", r->status);
    lk_answer_float(&line, (float)(1e3 * r->seconds));
    lk_text_append(&line, ", \"bytes_in\": %zu, \"bytes_out\": %zu", r->bytes_in, r->bytes_out);
    if (r->model)
        lk_text_append(&line, ", \"model\": \"%s\", \"samples\": %lld", r->model,
                       (long long)r->samples);
    lk_text_append(&line, "}\n");
    if (!line.failed)
        write_line(server, &line);
    free(line.bytes);
}

static void tell(void *context, const struct lk_http_record *record)
{
    struct lk_server *server = context;
    for (int i = 0; record->model && i < server->routes.count; i++)
        if (strcmp(server->routes.models[i].name, record->model) == 0)
            lk_counts_add_request(&server->routes.models[i].counts, record->status,
                                  record->seconds);
    if (server->log)
        log_request(server, record);
}

static void handle(void *context, struct lk_http_exchange *exchange,
                   const struct lk_http_request *request)
{
    const struct lk_server *server = context;
    lk_route(&server->routes, exchange, request);
}

/* --- opening ------------------------------------------------------------------------------
 */

static void fill_options(struct lk_serve_options *o)
{
    o->bind = o->bind ? o->bind : "127.0.0.1";
    o->max_batch = o->max_batch ? o->max_batch : LK_SERVE_BATCH;
    o->max_queue = o->max_queue ? o->max_queue : 1024;
    o->max_body = o->max_body ? o->max_body : (size_t)32 << 20;
    o->max_connections = o->max_connections ? o->max_connections : 1024;
    o->timeout_s = o->timeout_s > 0 ? o->timeout_s : 30;
    o->max_pixels = o->max_pixels ? o->max_pixels : 16 << 20;
}

/* Names are parts of paths. */
static enum lk_status check_name(const struct lk_serve_options *o, int index)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._-";
    const char *name = o->models[index].name;
    if (!*name || name[strspn(name, known)] || strlen(name) > 100)
        return lk_fail(LK_E_ARGUMENT,
                       "'%.100s' is no name of a model: letters, digits, '.', '_' and '-'",
                       name);
    for (int i = 0; i < index; i++)
        if (strcmp(o->models[i].name, name) == 0)
            return lk_fail(LK_E_ARGUMENT, "two models are called '%s'", name);
    return LK_OK;
}

/* The caller's models, and those of the file behind them. */
static enum lk_status list_models(struct lk_server *server)
{
    struct lk_serve_options *o = &server->options;
    int count = 0;
    if (o->model_file)
        LK_TRY(lk_config_read_models(o->model_file, &server->in_file, &count));
    const size_t all = (size_t)o->model_count + (size_t)count;
    server->models = calloc(all + 1, sizeof *server->models);
    if (!server->models)
        return lk_fail_memory("models", all * sizeof *server->models);
    for (int i = 0; i < o->model_count; i++)
        server->models[i] = o->models[i];
    for (int i = 0; i < count; i++)
        server->models[o->model_count + i] = server->in_file[i].model;
    o->models = server->models;
    o->model_count = (int)all;
    return LK_OK;
}

static enum lk_status open_models(struct lk_server *server)
{
    LK_TRY(list_models(server));
    const struct lk_serve_options *o = &server->options;
    if (o->model_count < 1 || o->model_count > MOST_MODELS)
        return lk_fail(LK_E_ARGUMENT, "%d models, 1 to %d can be served", o->model_count,
                       MOST_MODELS);
    for (int i = 0; i < o->model_count; i++)
        LK_TRY(check_name(o, i));
    server->routes.models = calloc((size_t)o->model_count, sizeof *server->routes.models);
    if (!server->routes.models)
        return lk_fail_memory("models", 0);
    for (int i = 0; i < o->model_count; i++) {
        struct lk_served *served = &server->routes.models[server->routes.count++];
        pthread_mutex_init(&served->mutex, NULL);
        pthread_mutex_init(&served->counts.mutex, NULL);
        LK_TRY(lk_served_open(served, &o->models[i], o, i));
    }
    return LK_OK;
}

static enum lk_status read_token(struct lk_server *server)
{
    void *text = NULL;
    size_t bytes = 0;
    if (!server->options.token_file)
        return LK_OK;
    LK_TRY(lk_file_read(server->options.token_file, MOST_TOKEN, &text, &bytes));
    server->token = text;
    server->token[strcspn(server->token, "\r\n")] = '\0';
    return *server->token ? LK_OK
                          : lk_fail(LK_E_DATA, "'%s' has no token in its first line",
                                    server->options.token_file);
}

/* New versions are opened here, while requests go on. */
static void *watch(void *argument)
{
    struct lk_server *server = argument;
    while (!atomic_load(&server->ends)) {
        for (int i = 0; i < server->routes.count; i++)
            lk_served_renew(&server->routes.models[i]);
        nanosleep(&(struct timespec){.tv_nsec = 1000000000 / LOOKS_PER_SECOND}, NULL);
    }
    return NULL;
}

static enum lk_status start(struct lk_server *server)
{
    const struct lk_serve_options *o = &server->options;
    const struct lk_http_config config = {.bind = o->bind,
                                          .token = server->token,
                                          .port = o->port,
                                          .threads = lk_parallel_cores(4),
                                          .max_connections = o->max_connections,
                                          .max_body = o->max_body,
                                          .max_bodies = 8 * o->max_body,
                                          .idle_s = 2 * o->timeout_s,
                                          .slow_s = o->timeout_s,
                                          .context = server,
                                          .handle = handle,
                                          .tell = tell};
    LK_TRY(lk_http_open(&config, &server->routes.http));
    server->has_watcher = pthread_create(&server->watcher, NULL, watch, server) == 0;
    return server->has_watcher ? LK_OK : lk_fail_memory("a thread", 0);
}

enum lk_status lk_server_open(const struct lk_serve_options *options, struct lk_server **server)
{
    struct lk_server *made = calloc(1, sizeof *made);
    enum lk_status status;
    if (!made)
        return lk_fail_memory("a server", sizeof *made);
    made->options = *options;
    sem_init(&made->stop, 0, 0);
    pthread_mutex_init(&made->log_mutex, NULL);
    if (options->batching)
        LK_TRY_OUT(lk_config_read_batching(options->batching, &made->options));
    fill_options(&made->options);
    LK_TRY_OUT(read_token(made));
    if (options->access_log) {
        LK_TRY_OUT(lk_file_append(options->access_log, &made->log));
        (void)setvbuf(made->log, NULL, _IONBF, 0); /* a line is written at once */
    }
    LK_TRY_OUT(open_models(made));
    LK_TRY_OUT(start(made));
    *server = made;
    return LK_OK;
out:
    lk_server_close(made);
    return status;
}

int lk_server_port(const struct lk_server *server)
{
    return lk_http_port(server->routes.http);
}

void lk_server_run(struct lk_server *server)
{
    while (sem_wait(&server->stop) != 0 && errno == EINTR)
        continue;
    server->is_stuck = !lk_http_drain(server->routes.http, DRAIN_SECONDS);
    if (server->is_stuck)
        lk_log(LK_LOG_WARNING, "some requests were not answered in %d s", DRAIN_SECONDS);
}

void lk_server_stop(struct lk_server *server)
{
    sem_post(&server->stop);
}

void lk_server_close(struct lk_server *server)
{
    if (!server || server->is_stuck) /* a device hangs, and would hang this too */
        return;
    atomic_store(&server->ends, true);
    if (server->has_watcher)
        pthread_join(server->watcher, NULL);
    for (int i = 0; i < server->routes.count; i++)
        lk_served_close(&server->routes.models[i]);
    lk_http_close(server->routes.http);
    free(server->routes.models);
    free(server->models);
    free(server->in_file);
    if (server->log)
        fclose(server->log);
    free(server->token);
    sem_destroy(&server->stop);
    free(server);
}
