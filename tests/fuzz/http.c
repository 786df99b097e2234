/* Whole connections to a server that has no model: heads, bodies in chunks, requests behind one
 * another. What it answers must be HTTP, and it must end the connection. */
#include "serve/http/http.h"
#include "fuzz.h"
#include "serve/route.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURN_MS = 500, MOST_TURNS = 60 };

static struct lk_served none = {.name = "none", .mutex = PTHREAD_MUTEX_INITIALIZER};
static struct lk_routes routes = {.models = &none, .count = 0};

static void handle(void *context, struct lk_http_exchange *exchange,
                   const struct lk_http_request *request)
{
    (void)context;
    lk_route(&routes, exchange, request);
}

static void tell(void *context, const struct lk_http_record *record)
{
    (void)context;
    if (!record->path || !record->method || strlen(record->peer) > 64)
        abort();
}

static void start(void)
{
    const struct lk_http_config config = {.bind = "127.0.0.1",
                                          .token = "secret",
                                          .threads = 1,
                                          .max_connections = 64,
                                          .max_body = 4096,
                                          .max_bodies = 1 << 20,
                                          .idle_s = 60,
                                          .slow_s = 60,
                                          .handle = handle,
                                          .tell = tell};
    signal(SIGPIPE, SIG_IGN);
    if (lk_http_open(&config, &routes.http) != LK_OK)
        abort();
}

/* libmicrohttpd 0.9.75 now and then overlooks a connection that another thread adds, until
 * something else wakes it: here one more, which has ended already. */
static void wake(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET};
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return;
    close(pair[0]);
    (void)lk_http_take(routes.http, pair[1], (const struct sockaddr *)&address, sizeof address);
}

/* The server neither answers nor ends the connection. */
static void tell_hang(size_t bytes)
{
    int connections, requests;
    lk_http_count(routes.http, &connections, &requests);
    fprintf(stderr, "no end after %zu bytes or more: %d connections, %d requests\n", bytes,
            connections, requests);
    abort();
}

/* All that comes back; the first bytes of it. */
static size_t read_all(int client, char *first, size_t room)
{
    static char rest[1 << 16];
    size_t used = 0;
    while (true) {
        struct pollfd wait = {.fd = client, .events = POLLIN};
        for (int turn = 0; poll(&wait, 1, TURN_MS) <= 0; turn++) {
            if (turn == MOST_TURNS)
                tell_hang(used);
            wake();
        }
        const ssize_t found = used < room ? read(client, first + used, room - used)
                                          : read(client, rest, sizeof rest);
        if (found <= 0)
            return used;
        used += used < room ? (size_t)found : 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int pair[2];
    char first[8];
    if (!routes.http)
        start();
    if (bytes > 1 << 16 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 0;
    if (!lk_http_take(routes.http, pair[1], (struct sockaddr *)&address, sizeof address))
        abort();
    /* in two pieces, so that the server meets a part of it alone */
    const size_t half = bytes > 0 ? data[0] * bytes / 256 : 0;
    if (write(pair[0], data, half) >= 0 && write(pair[0], data + half, bytes - half) >= 0)
        (void)shutdown(pair[0], SHUT_WR);
    const size_t found = read_all(pair[0], first, sizeof first);
    close(pair[0]);
    if (found > 0 && (found < sizeof first || memcmp(first, "HTTP/1.", 7) != 0))
        abort();
    return 0;
}
