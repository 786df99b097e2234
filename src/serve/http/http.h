/* HTTP as a server has it: connections with limits, whole requests in, answers out, at once or
 * later from any thread. Floor 9. Knows no model. The only room of libmicrohttpd. */
#ifndef LK_SERVE_HTTP_H
#define LK_SERVE_HTTP_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lk_http;
struct lk_http_exchange;

/* A request whose body has come; all of it lives until the exchange is answered. */
struct lk_http_request {
    const char *method, *path, *peer; /* peer: "127.0.0.1" */
    const char *content_type;         /* "": none */
    const char *content_encoding;     /* "": none */
    const char *header_length;        /* Inference-Header-Content-Length; "": none */
    const uint8_t *body;
    size_t bytes;
};

/* {0} but for status and body is fine. */
struct lk_http_reply {
    int status;
    const char *type;     /* NULL: application/json */
    char *body;           /* from malloc(); the reply owns it. NULL: none */
    const char *page;     /* in its place: of static storage */
    size_t bytes;         /* of either */
    int retry_after;      /* seconds; 0: says nothing */
    const char *allow;    /* methods, with 405 */
    size_t header_length; /* of JSON before binary tensors; 0: says nothing */
    const char *model;    /* for the record; static or living as long as the server */
    int64_t samples;      /* likewise */
};

/* What became of a request, for logs and counts. */
struct lk_http_record {
    const char *method, *path, *peer, *model;
    int status; /* 0: the client went before it was answered */
    double seconds;
    size_t bytes_in, bytes_out;
    int64_t samples;
};

struct lk_http_config {
    const char *bind, *token; /* token: what clients must bring; NULL: nothing */
    int port;                 /* 0: any that is free */
    int threads, max_connections;
    size_t max_body, max_bodies; /* of one request; of all that are held */
    double idle_s, slow_s;       /* a client that sends nothing, or too slowly */
    void *context;
    /* On a thread of the server; answers now or later. */
    void (*handle)(void *context, struct lk_http_exchange *exchange,
                   const struct lk_http_request *request);
    void (*tell)(void *context, const struct lk_http_record *record);
};

/* Listens and serves. fails: LK_E_IO where the address cannot be had; LK_E_UNSUPPORTED built
 * without libmicrohttpd */
LK_MUST_CHECK enum lk_status lk_http_open(const struct lk_http_config *config,
                                          struct lk_http **http);
int lk_http_port(const struct lk_http *http);

/* Serves a connection that someone else has accepted, which then is the server's. False: it
 * takes no more, and the socket is closed. */
struct sockaddr;
bool lk_http_take(struct lk_http *http, int connected, const struct sockaddr *address,
                  unsigned bytes);

/* Accepts nothing more, and waits until all requests that had begun are answered, at most so
 * long; false: some are not. */
bool lk_http_drain(struct lk_http *http, double seconds);

/* All exchanges must have been answered. NULL is fine. */
void lk_http_close(struct lk_http *http);

/* Answers, once; the exchange is then gone. Any thread. */
void lk_http_answer(struct lk_http_exchange *exchange, const struct lk_http_reply *reply);

/* Connections that are open, requests that are not answered yet. */
void lk_http_count(struct lk_http *http, int *connections, int *requests);

#endif
