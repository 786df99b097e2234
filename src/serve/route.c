/* Which request means what: the paths of TensorFlow Serving and KServe, and our own. */
#include "serve/route.h"

#include "base/fail.h"
#include "serve/rest/call.h"
#include "serve/rest/page.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request on its way. */
struct visit {
    const struct lk_routes *routes;
    struct lk_http_exchange *exchange;
    const struct lk_http_request *request;
    const char *rest; /* of the path */
    bool is_get;      /* or HEAD */
    bool names_version;
};

/* --- answers ------------------------------------------------------------------------------
 */

static void refuse(const struct visit *v, int status, const char *what)
{
    const struct lk_http_reply reply = {.status = status};
    lk_answer_error(v->exchange, reply, "%s: '%.200s'", what, v->request->path);
}

static void refuse_method(const struct visit *v, const char *allowed)
{
    const struct lk_http_reply reply = {.status = 405, .allow = allowed};
    lk_answer_error(v->exchange, reply, "'%.32s' is no method of this path: %s",
                    v->request->method, allowed);
}

static void send_text(const struct visit *v, const char *type, struct lk_text *text)
{
    lk_answer_send(v->exchange, (struct lk_http_reply){.status = 200, .type = type}, text);
}

static void send_constant(const struct visit *v, const char *constant)
{
    struct lk_text text = {0};
    lk_text_append(&text, "%s\n", constant);
    send_text(v, NULL, &text);
}

/* --- models -------------------------------------------------------------------------------
 */

static struct lk_served *find_model(const struct visit *v, const char *name, size_t length)
{
    for (int i = 0; i < v->routes->count; i++)
        if (strlen(v->routes->models[i].name) == length &&
            memcmp(v->routes->models[i].name, name, length) == 0)
            return &v->routes->models[i];
    return NULL;
}

/* Passes over a word of the path; false: it goes on otherwise. */
static bool takes(struct visit *v, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(v->rest, word, length) != 0)
        return false;
    v->rest += length;
    return true;
}

/* "/versions/2" or "/labels/stable", if it is there. -1: no such version. */
static int64_t read_version(struct visit *v, const struct lk_served *served)
{
    char *end;
    v->names_version =
        strncmp(v->rest, "/labels/", 8) == 0 || strncmp(v->rest, "/versions/", 10) == 0;
    if (takes(v, "/labels/")) {
        const char *label = v->rest;
        v->rest += strcspn(label, "/:");
        return lk_served_find_label(served, label, (size_t)(v->rest - label));
    }
    if (!takes(v, "/versions/"))
        return 0;
    errno = 0;
    const long long number = strtoll(v->rest, &end, 10);
    if (end == v->rest || errno || number < 1 || *v->rest < '0' || *v->rest > '9')
        return -1;
    v->rest = end;
    return number;
}

static void tell(const struct visit *v, struct lk_version *version,
                 void (*write)(const struct lk_version *, struct lk_text *))
{
    struct lk_text text = {0};
    if (v->is_get) {
        write(version, &text);
        send_text(v, NULL, &text);
    } else {
        refuse_method(v, "GET");
    }
    lk_served_release(version);
}

static void tell_status(const struct visit *v, struct lk_version *version)
{
    struct lk_text text = {0};
    if (v->is_get) {
        lk_tensorflow_tell_status(version->served, v->names_version ? version->number : 0,
                                  &text);
        send_text(v, NULL, &text);
    } else {
        refuse_method(v, "GET");
    }
    lk_served_release(version);
}

static void call(const struct visit *v, struct lk_version *version, lk_call_reader *read)
{
    if (strcmp(v->request->method, "POST") == 0) {
        lk_call_run(v->exchange, v->request, version, read);
        return;
    }
    refuse_method(v, "POST");
    lk_served_release(version);
}

/* The version that the path names, acquired; NULL: refused. */
static struct lk_version *find_version(struct visit *v)
{
    const size_t length = strcspn(v->rest, "/:");
    struct lk_served *served = find_model(v, v->rest, length);
    v->rest += length;
    const int64_t number = served ? read_version(v, served) : -1;
    struct lk_version *version = number >= 0 ? lk_served_acquire(served, number) : NULL;
    if (!version)
        refuse(v, 404, served ? "no such version of the model" : "no such model");
    return version;
}

static void visit_tensorflow(struct visit *v)
{
    struct lk_version *version = find_version(v);
    if (!version)
        return;
    if (!*v->rest || strcmp(v->rest, "/") == 0) {
        tell_status(v, version);
    } else if (strcmp(v->rest, "/metadata") == 0) {
        tell(v, version, lk_tensorflow_tell_metadata);
    } else if (strcmp(v->rest, "/card") == 0) {
        tell(v, version, lk_page_tell_model);
    } else if (strcmp(v->rest, ":predict") == 0) {
        call(v, version, lk_tensorflow_predict);
    } else if (strcmp(v->rest, ":classify") == 0) {
        call(v, version, lk_tensorflow_classify);
    } else {
        lk_served_release(version);
        refuse(v, 404, "no such path");
    }
}

static void tell_ready(const struct lk_version *version, struct lk_text *text)
{
    lk_text_append(text, "{\"name\": ");
    lk_answer_text(text, version->served->name);
    lk_text_append(text, ", \"ready\": true}\n");
}

static void visit_kserve(struct visit *v)
{
    struct lk_version *version = find_version(v);
    if (!version)
        return;
    if (!*v->rest || strcmp(v->rest, "/") == 0) {
        tell(v, version, lk_kserve_tell_model);
    } else if (strcmp(v->rest, "/ready") == 0) {
        tell(v, version, tell_ready);
    } else if (strcmp(v->rest, "/infer") == 0) {
        call(v, version, lk_kserve_infer);
    } else {
        lk_served_release(version);
        refuse(v, 404, "no such path");
    }
}

/* --- all models ---------------------------------------------------------------------------
 */

/* As KServe's protocol of version 1 says; TensorFlow Serving has no list. */
static void list_models(const struct visit *v)
{
    struct lk_text text = {0};
    lk_text_append(&text, "{\"models\": [");
    for (int i = 0; i < v->routes->count; i++) {
        lk_text_append(&text, i ? ", " : "");
        lk_answer_text(&text, v->routes->models[i].name);
    }
    lk_text_append(&text, "]}\n");
    send_text(v, NULL, &text);
}

static void tell_metrics(const struct visit *v)
{
    enum { MOST = 64 };
    struct lk_counts *counts[MOST];
    const char *names[MOST];
    struct lk_text text = {0};
    int connections = 0, requests = 0, count = 0;
    for (; count < v->routes->count && count < MOST; count++) {
        counts[count] = &v->routes->models[count].counts;
        names[count] = v->routes->models[count].name;
    }
    lk_counts_print(counts, names, count, &text);
    lk_http_count(v->routes->http, &connections, &requests);
    lk_text_append(&text,
                   "# HELP lockstep_connections Connections that are open.\n"
                   "# TYPE lockstep_connections gauge\nlockstep_connections %d\n"
                   "# HELP lockstep_requests_open Requests that are not answered yet.\n"
                   "# TYPE lockstep_requests_open gauge\nlockstep_requests_open %d\n",
                   connections, requests);
    send_text(v, "text/plain; version=0.0.4", &text);
}

static void show_page(const struct visit *v)
{
    size_t bytes = 0;
    const char *page = lk_page(&bytes);
    lk_http_answer(v->exchange, &(struct lk_http_reply){.status = 200,
                                                        .type = "text/html; charset=utf-8",
                                                        .page = page,
                                                        .bytes = bytes});
}

static void tell_server(const struct visit *v)
{
    send_constant(v,
                  "{\"name\": \"lockstep\", \"version\": \"" LK_VERSION "\", \"extensions\": "
                  "[\"binary_tensor_data\", \"classification\"]}");
}

static void tell_live(const struct visit *v)
{
    send_constant(v, "{\"live\": true}");
}

/* The server listens when all models are open. */
static void tell_all_ready(const struct visit *v)
{
    send_constant(v, "{\"ready\": true}");
}

static void tell_health(const struct visit *v)
{
    send_constant(v, "{\"status\": \"ok\"}");
}

static const struct {
    const char *path;
    void (*show)(const struct visit *);
} pages[] = {
    {"/", show_page},
    {"/healthz", tell_health},
    {"/metrics", tell_metrics},
    {"/v1/models", list_models},
    {"/v2", tell_server},
    {"/v2/", tell_server},
    {"/v2/health/live", tell_live},
    {"/v2/health/ready", tell_all_ready},
};

void lk_route(const struct lk_routes *routes, struct lk_http_exchange *exchange,
              const struct lk_http_request *request)
{
    struct visit v = {.routes = routes,
                      .exchange = exchange,
                      .request = request,
                      .rest = request->path,
                      .is_get = strcmp(request->method, "GET") == 0 ||
                                strcmp(request->method, "HEAD") == 0};
    lk_error_clear();
    for (int i = 0; i < LK_COUNT(pages); i++)
        if (strcmp(request->path, pages[i].path) == 0) {
            if (v.is_get)
                pages[i].show(&v);
            else
                refuse_method(&v, "GET");
            return;
        }
    if (takes(&v, "/v1/models/"))
        visit_tensorflow(&v);
    else if (takes(&v, "/v2/models/"))
        visit_kserve(&v);
    else
        refuse(&v, 404, "no such path");
}
