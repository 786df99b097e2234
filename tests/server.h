/* A web server on 127.0.0.1 in a child process, with the ways servers go wrong. The first word
 * of an address is how it behaves, the rest is a file below its folder. Knows cmocka. */
#ifndef TESTS_SERVER_H
#define TESTS_SERVER_H

#include "scratch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct server {
    pid_t child;
    int port, log;         /* the child logs where each request wants to begin */
    int requests;          /* since server_begin() */
    long long first, last; /* where the first and the last of them began */
};

static inline void server_send(int to, const char *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t sent = send(to, data, bytes, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        data += sent;
        bytes -= (size_t)sent;
    }
}

static inline char *server_load(const char *folder, const char *name, size_t *bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*bytes + 1);
    *bytes = fread(data, 1, *bytes, file);
    fclose(file);
    return data;
}

/* Sends a file from `begin` on; which headers and how much of it is told by the word. */
static inline void server_answer(int to, const char *word, char *data, size_t bytes,
                                 size_t begin)
{
    const bool ranges = strcmp(word, "norange") != 0 && strcmp(word, "half") != 0;
    char head[256];
    if (!ranges)
        begin = 0;
    if (begin >= bytes && begin > 0) {
        snprintf(head, sizeof head, "HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n");
        server_send(to, head, strlen(head));
        return;
    }
    if (strcmp(word, "wrong") == 0)
        data[bytes - 1] ^= 1;
    if (begin > 0)
        snprintf(head, sizeof head,
                 "HTTP/1.1 206 Part\r\nContent-Length: %zu\r\n"
                 "Content-Range: bytes %zu-%zu/%zu\r\n\r\n",
                 bytes - begin, begin, bytes - 1, bytes);
    else if (strcmp(word, "endless") == 0)
        snprintf(head, sizeof head, "HTTP/1.1 200 Yes\r\nConnection: close\r\n\r\n");
    else
        snprintf(head, sizeof head, "HTTP/1.1 200 Yes\r\nContent-Length: %zu\r\n\r\n", bytes);
    server_send(to, head, strlen(head));
    size_t part = bytes - begin;
    if (strcmp(word, "half") == 0 || (strcmp(word, "cut") == 0 && part > 1000))
        part /= 2;
    server_send(to, data + begin, part);
    if (strcmp(word, "endless") == 0)
        server_send(to, data, bytes);
}

/* One request; `before` is how many came before it. */
static inline void server_serve(int to, const char *folder, int log, int before)
{
    char request[4096], word[32] = "", name[512] = "";
    size_t used = 0, bytes = 0;
    request[0] = '\0';
    while (!strstr(request, "\r\n\r\n") && used + 1 < sizeof request) {
        const ssize_t got = recv(to, request + used, sizeof request - used - 1, 0);
        if (got <= 0)
            return;
        request[used += (size_t)got] = '\0';
    }
    long long begin = 0;
    const char *range = strstr(request, "Range: bytes=");
    if (range)
        sscanf(range, "Range: bytes=%lld-", &begin);
    sscanf(request, "GET /%31[^/]/%511s", word, name);
    if (write(log, &begin, sizeof begin) != sizeof begin)
        return;
    const char *refusal = NULL;
    char *data = server_load(folder, name, &bytes);
    if (strcmp(word, "away") == 0)
        refusal = "HTTP/1.1 302 Moved\r\nLocation: http://127.0.0.1:1/\r\n"
                  "Content-Length: 0\r\n\r\n";
    else if (strcmp(word, "busy") == 0 && before < 2)
        refusal = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
    else if (!data)
        refusal = "HTTP/1.1 404 Absent\r\nContent-Length: 6\r\n\r\nabsent";
    if (refusal)
        server_send(to, refusal, strlen(refusal));
    else
        server_answer(to, word, data, bytes, (size_t)begin);
    free(data);
}

static inline void server_start(struct server *server, const char *folder)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    int ends[2];
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 16), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    assert_int_equal(pipe(ends), 0);
    *server = (struct server){.port = ntohs(address.sin_port), .log = ends[0]};
    const pid_t parent = getpid();
    server->child = fork();
    assert_true(server->child >= 0);
    if (server->child == 0) {
        close(ends[0]);
        alarm(100); /* where the test dies before it stops its server */
        for (int before = 0; getppid() == parent; before++) {
            const int to = accept(listener, NULL, NULL);
            server_serve(to, folder, ends[1], before);
            shutdown(to, SHUT_RDWR);
            close(to);
        }
        _exit(0);
    }
    close(ends[1]);
    close(listener);
    fcntl(server->log, F_SETFL, O_NONBLOCK);
}

/* Reads the log; true where there were requests since the last call. */
static inline bool server_look(struct server *server)
{
    long long begin;
    server->requests = 0;
    while (read(server->log, &begin, sizeof begin) == sizeof begin) {
        if (server->requests++ == 0)
            server->first = begin;
        server->last = begin;
    }
    return server->requests > 0;
}

static inline void server_stop(struct server *server)
{
    kill(server->child, SIGKILL);
    waitpid(server->child, NULL, 0);
    close(server->log);
}

#endif
