/* Serving trained models over HTTP: TensorFlow Serving's REST, KServe's v2, and a page.
 * Floor 9.
 */
#ifndef LOCKSTEP_SERVE_H
#define LOCKSTEP_SERVE_H

#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A name that stands for a version. */
struct lk_serve_label {
    const char *name;
    int64_t version;
};

enum { LK_SERVE_BATCH = 16, LK_SERVE_VERSIONS = 16 };

/* path: a bundle, a run directory, a checkpoint, or a folder of such with numbers as names, of
 * which the highest is served, and replaced without a lost request when a higher one is there.
 * {name, path} is fine. */
struct lk_serve_model {
    const char *name, *path;
    int newest;                          /* of the highest versions so many are served [1] */
    const int64_t *versions;             /* [version_count]: these are served and no others */
    int version_count;                   /* at most LK_SERVE_VERSIONS; 0: the highest */
    const struct lk_serve_label *labels; /* [label_count]: of versions that are served */
    int label_count;
};

/* Zeros and NULLs stand for what is in brackets. */
struct lk_serve_options {
    const struct lk_serve_model *models;
    int model_count;
    const char *model_file; /* more of them: a model_config_list as TensorFlow Serving has it */
    const char *batching;   /* a file with its parameters of batching, for what is 0 below */
    const char *device;     /* a list; models take its entries in turn [the default] */
    const char *bind;       /* an address ["127.0.0.1"] */
    int port;               /* 0: any that is free */
    int64_t max_batch;      /* samples computed together [16] */
    double max_delay_ms;    /* that the first of them waits for others */
    int64_t max_queue;      /* samples that wait, of a model; more are refused [1024] */
    size_t max_body;        /* bytes of a request [32 MiB] */
    int max_connections;    /* [1024] */
    double timeout_s;       /* of clients that send or take too slowly [30] */
    int64_t max_pixels;     /* of an image that is decoded [16 Mi] */
    const char *token_file; /* its first line is what clients must bring; NULL: nothing */
    const char *access_log; /* a file that gets a line of JSON for each request; NULL: none */
};

struct lk_server;

/* Opens all models, predicts once with each, and then listens and serves, on threads of its
 * own. fails: as lk_predictor_open(); LK_E_ARGUMENT; LK_E_IO where the address cannot be had;
 * LK_E_UNSUPPORTED built without libmicrohttpd */
LK_API LK_MUST_CHECK enum lk_status lk_server_open(const struct lk_serve_options *options,
                                                   struct lk_server **server);

/* The port that it listens on. */
LK_API int lk_server_port(const struct lk_server *server);

/* Waits for lk_server_stop(), then answers all that was accepted. */
LK_API void lk_server_run(struct lk_server *server);

/* Any thread, and within a signal handler. */
LK_API void lk_server_stop(struct lk_server *server);

/* NULL is fine. */
LK_API void lk_server_close(struct lk_server *server);

#ifdef __cplusplus
}
#endif
#endif
