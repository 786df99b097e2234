/* HTTP by libmicrohttpd: threads that wait for sockets, and one that ends connections which
 * take too long. A request that waits for its answer is suspended, and holds no thread. */
#include "serve/http/http.h"

#include "base/clock.h"
#include "base/fail.h"
#include "serve/http/json.h"
#include "serve/http/listen.h"
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES = 32 << 10, FIRST_BYTES = 16 << 10, PEER = 64, LAST_BODIES_S = 5 };
static const double last_heads_s = 0.5; /* that clients with an open connection have at the end
                                         * for one more request */

/* What a connection is waiting for, and since when. */
enum phase { OF_HEAD, OF_BODY, OF_ANSWER, OF_CLIENT };

struct connection {
    struct connection *before, *behind;
    int socket;
    enum phase phase;
    double since;
};

struct lk_http {
    struct lk_http_config config;
    struct MHD_Daemon *daemon;
    int port, socket;
    pthread_mutex_t mutex; /* of the list */
    struct connection *first;
    pthread_t janitor;
    bool has_janitor;
    atomic_bool ends, is_draining, is_over; /* is_over: requests are no longer begun */
    double drained;                         /* since when; set before is_draining */
    atomic_int connections, requests;
    atomic_size_t bodies; /* bytes that are held */
};

struct lk_http_exchange {
    struct lk_http *http;
    struct MHD_Connection *connection;
    struct connection *place;
    struct lk_http_request request;
    struct lk_http_reply reply;
    char peer[PEER], *path;
    uint8_t *body;
    size_t bytes, room;
    double begun;
    int refused; /* a status that is given when the body is over; 0: none */
    bool is_whole, is_answered, closes;
};

/* --- answers ------------------------------------------------------------------------------
 */

static void set(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

static struct MHD_Response *make_response(struct lk_http_exchange *e)
{
    char number[32];
    struct lk_http_reply *reply = &e->reply;
    void *bytes = reply->body ? reply->body : (void *)(uintptr_t)reply->page;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        bytes ? reply->bytes : 0, bytes ? bytes : (void *)(uintptr_t) "",
        reply->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!response)
        return NULL;
    reply->body = NULL; /* the response's now */
    set(response, "Content-Type", reply->type ? reply->type : "application/json");
    set(response, "X-Content-Type-Options", "nosniff");
    if (reply->retry_after > 0) {
        snprintf(number, sizeof number, "%d", reply->retry_after);
        set(response, "Retry-After", number);
    }
    if (reply->header_length > 0) {
        snprintf(number, sizeof number, "%zu", reply->header_length);
        set(response, "Inference-Header-Content-Length", number);
    }
    if (reply->allow)
        set(response, "Allow", reply->allow);
    if (reply->status == 401)
        set(response, "WWW-Authenticate", "Bearer");
    if (e->closes || atomic_load(&e->http->is_draining))
        set(response, "Connection", "close");
    return response;
}

static void change_phase(struct lk_http *http, struct connection *place, enum phase phase)
{
    if (!place)
        return;
    pthread_mutex_lock(&http->mutex);
    place->phase = phase;
    place->since = lk_seconds();
    pthread_mutex_unlock(&http->mutex);
}

static enum MHD_Result send_reply(struct lk_http_exchange *e)
{
    struct MHD_Response *response = make_response(e);
    if (!response)
        return MHD_NO;
    change_phase(e->http, e->place, OF_CLIENT);
    const enum MHD_Result result =
        MHD_queue_response(e->connection, (unsigned)e->reply.status, response);
    MHD_destroy_response(response);
    return result;
}

/* The reply's texts are constant. */
static void refuse(struct lk_http_exchange *e, int status)
{
    const char *text = status == 400   ? "{\"error\": \"the length of the body is said in more "
                                         "than one way, or in one that is not known\"}\n"
                       : status == 401 ? "{\"error\": \"this server wants a bearer token\"}\n"
                       : status == 413 ? "{\"error\": \"the body is larger than this server "
                                         "takes\"}\n"
                                       : "{\"error\": \"busy: try again later\"}\n";
    e->reply = (struct lk_http_reply){.status = status,
                                      .page = text,
                                      .bytes = strlen(text),
                                      .retry_after = status == 503 || status == 429 ? 1 : 0};
    e->is_answered = true;
}

void lk_http_answer(struct lk_http_exchange *exchange, const struct lk_http_reply *reply)
{
    exchange->reply = *reply;
    exchange->is_answered = true;
    MHD_resume_connection(exchange->connection);
}

/* --- requests -----------------------------------------------------------------------------
 */

/* Takes as long whichever byte differs. */
static bool is_same_token(const char *given, const char *token)
{
    const size_t length = strlen(token);
    unsigned different = strlen(given) != length;
    for (size_t i = 0; i < length && given[i]; i++)
        different |= (unsigned)(unsigned char)given[i] ^ (unsigned char)token[i];
    return different == 0;
}

/* The page itself, and whether the server lives, are no secret. */
static bool is_allowed(const struct lk_http_exchange *e)
{
    const char *given = MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND,
                                                    MHD_HTTP_HEADER_AUTHORIZATION);
    if (!e->http->config.token || strcmp(e->path, "/") == 0 ||
        strcmp(e->path, "/healthz") == 0 || strncmp(e->path, "/v2/health/", 11) == 0)
        return true;
    return given && strncasecmp(given, "Bearer ", 7) == 0 &&
           is_same_token(given + 7, e->http->config.token);
}

static const char *header(const struct lk_http_exchange *e, const char *name)
{
    const char *found = MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND, name);
    return found ? found : "";
}

/* Room for more bytes of the body. */
static int grow(struct lk_http_exchange *e, size_t bytes)
{
    struct lk_http *http = e->http;
    if (bytes > http->config.max_body - e->bytes)
        return 413;
    if (atomic_fetch_add(&http->bodies, bytes) + bytes > http->config.max_bodies) {
        atomic_fetch_sub(&http->bodies, bytes);
        return 503;
    }
    if (e->bytes + bytes > e->room) {
        const size_t room = 2 * (e->bytes + bytes) + FIRST_BYTES;
        uint8_t *grown = realloc(e->body, room);
        if (!grown) {
            atomic_fetch_sub(&http->bodies, bytes);
            return 503;
        }
        e->body = grown;
        e->room = room;
    }
    return 0;
}

static void drop_body(struct lk_http_exchange *e)
{
    atomic_fetch_sub(&e->http->bodies, e->bytes);
    free(e->body);
    e->body = NULL;
    e->bytes = e->room = 0;
}

/* What is too much is read and dropped, so that the client can read why. */
static void take_body(struct lk_http_exchange *e, const char *data, size_t bytes)
{
    if (e->refused)
        return;
    e->refused = grow(e, bytes);
    if (e->refused) {
        drop_body(e);
        return;
    }
    memcpy(e->body + e->bytes, data, bytes);
    e->bytes += bytes;
}

static void begin_exchange(struct lk_http_exchange *e, const char *path, const char *method)
{
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(e->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const union MHD_ConnectionInfo *place =
        MHD_get_connection_info(e->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    lk_address_print(address ? address->client_addr : NULL, e->peer, sizeof e->peer);
    e->place = place ? place->socket_context : NULL;
    e->path = strdup(path);
    e->begun = lk_seconds();
    e->request = (struct lk_http_request){.method = method, .path = e->path, .peer = e->peer};
    atomic_fetch_add(&e->http->requests, 1);
    change_phase(e->http, e->place, OF_BODY);
}

struct framing {
    int lengths, encodings;
    bool is_odd; /* a blank before a colon: others may know the name without it */
};

static enum MHD_Result count_framing(void *cls, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct framing *f = cls;
    (void)kind;
    (void)value;
    f->is_odd |= strpbrk(name, " \t") != NULL;
    f->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    f->encodings += strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
    return MHD_YES;
}

/* Two lengths, or ways to tell it, mean two ends of the body, of which whoever stands before
 * this server may have taken the other. source: RFC 9112, section 6.3 */
static bool has_one_end(const struct lk_http_exchange *e)
{
    const char *encoding = header(e, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    struct framing f = {0};
    MHD_get_connection_values(e->connection, MHD_HEADER_KIND, count_framing, &f);
    return !f.is_odd && f.lengths + f.encodings <= 1 &&
           (f.encodings == 0 || strcasecmp(encoding, "chunked") == 0);
}

/* Whether it is refused by its head alone. */
static bool check_head(struct lk_http_exchange *e)
{
    const char *length = header(e, MHD_HTTP_HEADER_CONTENT_LENGTH);
    e->closes = !has_one_end(e);
    if (e->closes)
        refuse(e, 400);
    else if (!is_allowed(e))
        refuse(e, 401);
    else if (strtoull(length, NULL, 10) > e->http->config.max_body)
        refuse(e, 413);
    return e->is_answered;
}

static enum MHD_Result start(struct lk_http *http, struct MHD_Connection *connection,
                             const char *path, const char *method, void **context)
{
    struct lk_http_exchange *e = calloc(1, sizeof *e);
    if (!e)
        return MHD_NO;
    e->http = http;
    e->connection = connection;
    begin_exchange(e, path, method);
    *context = e;
    if (!e->path)
        return MHD_NO;
    if (atomic_load(&http->is_over)) {
        e->closes = true;
        refuse(e, 503);
        return send_reply(e);
    }
    return check_head(e) ? send_reply(e) : MHD_YES;
}

/* Called when the head is there, for each piece of the body, when it is over until there is an
 * answer, and again when an exchange that was suspended has been answered. */
static enum MHD_Result take(void *cls, struct MHD_Connection *connection, const char *path,
                            const char *method, const char *version, const char *data,
                            size_t *bytes, void **context)
{
    struct lk_http *http = cls;
    struct lk_http_exchange *e = *context;
    (void)version;
    if (!e)
        return start(http, connection, path, method, context);
    if (*bytes > 0) {
        take_body(e, data, *bytes);
        *bytes = 0;
        return MHD_YES;
    }
    if (!e->is_answered && e->refused)
        refuse(e, e->refused);
    if (e->is_answered)
        return send_reply(e);
    /* The library resumes a connection with what it was waiting for before. Only after a call
     * that has no answer is that no longer the client, whose end would then close it. */
    if (!e->is_whole) {
        e->is_whole = true;
        return MHD_YES;
    }
    e->request.content_type = header(e, MHD_HTTP_HEADER_CONTENT_TYPE);
    e->request.content_encoding = header(e, MHD_HTTP_HEADER_CONTENT_ENCODING);
    e->request.header_length = header(e, "Inference-Header-Content-Length");
    e->request.body = e->body;
    e->request.bytes = e->bytes;
    change_phase(http, e->place, OF_ANSWER);
    MHD_suspend_connection(connection); /* first: the answer may come before this returns */
    http->config.handle(http->config.context, e, &e->request);
    return MHD_YES;
}

static void finish(void *cls, struct MHD_Connection *connection, void **context,
                   enum MHD_RequestTerminationCode how)
{
    struct lk_http *http = cls;
    struct lk_http_exchange *e = *context;
    (void)connection;
    if (!e)
        return;
    *context = NULL;
    const bool is_sent = how == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    const struct lk_http_record record = {.method = e->request.method,
                                          .path = e->path ? e->path : "",
                                          .peer = e->peer,
                                          .model = e->reply.model,
                                          .status = is_sent ? e->reply.status : 0,
                                          .seconds = lk_seconds() - e->begun,
                                          .bytes_in = e->bytes,
                                          .bytes_out = e->reply.bytes,
                                          .samples = e->reply.samples};
    http->config.tell(http->config.context, &record);
    change_phase(http, e->place, OF_HEAD);
    drop_body(e);
    free(e->reply.body);
    free(e->path);
    free(e);
    atomic_fetch_sub(&http->requests, 1);
}

/* --- connections --------------------------------------------------------------------------
 */

static void notify(void *cls, struct MHD_Connection *connection, void **context,
                   enum MHD_ConnectionNotificationCode what)
{
    struct lk_http *http = cls;
    struct connection *c = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = c = calloc(1, sizeof *c);
        if (!c || !info)
            return;
        *c = (struct connection){.socket = info->connect_fd, .since = lk_seconds()};
        pthread_mutex_lock(&http->mutex);
        c->behind = http->first;
        if (c->behind)
            c->behind->before = c;
        http->first = c;
        pthread_mutex_unlock(&http->mutex);
        atomic_fetch_add(&http->connections, 1);
    } else if (c) {
        pthread_mutex_lock(&http->mutex);
        *(c->before ? &c->before->behind : &http->first) = c->behind;
        if (c->behind)
            c->behind->before = c->before;
        pthread_mutex_unlock(&http->mutex);
        atomic_fetch_sub(&http->connections, 1);
        free(c);
        *context = NULL;
    }
}

static bool is_slow(struct lk_http *http, const struct connection *c, double now)
{
    const double most = c->phase == OF_HEAD ? http->config.idle_s : http->config.slow_s;
    const bool is_last = c->phase == OF_BODY && atomic_load(&http->is_draining);
    return c->phase != OF_ANSWER &&
           (now - c->since > most || (is_last && now - http->drained > LAST_BODIES_S));
}

/* The library's own limit counts from the last byte, so that a byte now and then keeps a
 * connection open; this one counts from the beginning of a phase. Sockets are closed after they
 * have left the list. */
static void *end_slow_ones(void *argument)
{
    struct lk_http *http = argument;
    while (!atomic_load(&http->ends)) {
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        const double now = lk_seconds();
        pthread_mutex_lock(&http->mutex);
        for (struct connection *c = http->first; c; c = c->behind)
            if (is_slow(http, c, now))
                (void)shutdown(c->socket, SHUT_RDWR);
        pthread_mutex_unlock(&http->mutex);
    }
    return NULL;
}

/* A zero byte would end the path before its end. */
static size_t unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    char *to = text;
    (void)cls;
    (void)connection;
    for (const char *at = text; *at; at++) {
        const int high = *at == '%' ? lk_hex_digit(at[1]) : -1;
        const int low = high >= 0 ? lk_hex_digit(at[2]) : -1;
        const int byte = low >= 0 ? high * 16 + low : 0;
        *to++ = byte > 0 ? (char)byte : *at;
        at += byte > 0 ? 2 : 0;
    }
    *to = '\0';
    return (size_t)(to - text);
}

/* --- the server ---------------------------------------------------------------------------
 */

static enum lk_status start_daemon(struct lk_http *http)
{
    const struct lk_http_config *c = &http->config;
    /* not epoll, of which the library asks for edges: it loses an end that comes with the last
     * bytes, and a client that has gone is then not noticed */
    const unsigned flags =
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
    const struct MHD_OptionItem options[] = {
        {MHD_OPTION_LISTEN_SOCKET, http->socket, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, c->max_connections, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEAD_BYTES, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)(c->idle_s + 1), NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)unescape, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)finish, http},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)notify, http},
        {c->threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, c->threads, NULL},
        {MHD_OPTION_END, 0, NULL}};
    http->daemon = MHD_start_daemon(flags, 0, NULL, NULL, take, http, MHD_OPTION_ARRAY, options,
                                    MHD_OPTION_END);
    if (!http->daemon)
        return lk_fail(LK_E_IO, "the HTTP server cannot be started with %d connections",
                       c->max_connections);
    http->socket = -1; /* the daemon's now */
    http->has_janitor = pthread_create(&http->janitor, NULL, end_slow_ones, http) == 0;
    return http->has_janitor ? LK_OK : lk_fail_memory("a thread", 0);
}

enum lk_status lk_http_open(const struct lk_http_config *config, struct lk_http **http)
{
    struct lk_http *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a server", sizeof *made);
    made->config = *config;
    made->socket = -1;
    pthread_mutex_init(&made->mutex, NULL);
    enum lk_status status = lk_listen(config->bind, config->port, &made->socket, &made->port);
    if (status == LK_OK)
        status = start_daemon(made);
    if (status != LK_OK) {
        lk_http_close(made);
        return status;
    }
    *http = made;
    return LK_OK;
}

int lk_http_port(const struct lk_http *http)
{
    return http->port;
}

void lk_http_count(struct lk_http *http, int *connections, int *requests)
{
    *connections = http ? atomic_load(&http->connections) : 0;
    *requests = http ? atomic_load(&http->requests) : 0;
}

bool lk_http_take(struct lk_http *http, int connected, const struct sockaddr *address,
                  unsigned bytes)
{
    return MHD_add_connection(http->daemon, connected, address, bytes) == MHD_YES;
}

/* Connections that the kernel has taken but the daemon has not: their clients may have sent
 * requests already. */
static void accept_last(struct lk_http *http, int listening)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int made;
    (void)fcntl(listening, F_SETFL, O_NONBLOCK);
    while ((made = accept(listening, (struct sockaddr *)&address, &length)) >= 0) {
        (void)lk_http_take(http, made, (struct sockaddr *)&address, length);
        length = sizeof address;
    }
    close(listening);
}

/* A client that was answered before the end began may have sent its next request, or does so
 * now: it has last_heads_s for it. Whoever has sent nothing by then is not waiting. */
static bool is_quiet(struct lk_http *http)
{
    const double now = lk_seconds();
    bool is = atomic_load(&http->requests) == 0;
    pthread_mutex_lock(&http->mutex);
    for (const struct connection *c = http->first; c && is; c = c->behind) {
        const double since = c->since > http->drained ? c->since : http->drained;
        int unread = 0;
        (void)ioctl(c->socket, FIONREAD, &unread);
        is = c->phase == OF_HEAD && unread == 0 && now - since > last_heads_s;
    }
    pthread_mutex_unlock(&http->mutex);
    return is;
}

bool lk_http_drain(struct lk_http *http, double seconds)
{
    const double end = lk_seconds() + seconds;
    http->drained = lk_seconds();
    atomic_store(&http->is_draining, true);
    const int listening = MHD_quiesce_daemon(http->daemon);
    if (listening >= 0) {
        lk_listen_to_nobody(listening);
        accept_last(http, listening);
    }
    while (lk_seconds() < end && !is_quiet(http))
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    atomic_store(&http->is_over, true);
    while (lk_seconds() < end && atomic_load(&http->requests) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return atomic_load(&http->requests) == 0;
}

void lk_http_close(struct lk_http *http)
{
    if (!http)
        return;
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    if (http->has_janitor) {
        atomic_store(&http->ends, true);
        pthread_join(http->janitor, NULL);
    }
    if (http->socket >= 0)
        close(http->socket);
    pthread_mutex_destroy(&http->mutex);
    free(http);
}
