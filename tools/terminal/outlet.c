/* Writes to stdout and stderr, and leaves out what nobody reads. */
#include "terminal/outlet.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct outlet {
    int stream;
    pthread_mutex_t mutex; /* of all below */
    char *rest;            /* of a text that was begun; NULL: none */
    size_t rest_bytes;
    bool is_stuck; /* the text before was not taken in time */
    bool has_failed;
};

static struct outlet outlets[] = {
    {.stream = STDOUT_FILENO, .mutex = PTHREAD_MUTEX_INITIALIZER},
    {.stream = STDERR_FILENO, .mutex = PTHREAD_MUTEX_INITIALIZER},
};

struct outlet *const outlet_result = &outlets[0];
struct outlet *const outlet_message = &outlets[1];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Whether the stream takes PIPE_BUF bytes without a wait, or will not ever (write() then says
 * why). */
static bool is_ready(const struct outlet *outlet, double until)
{
    for (;;) {
        struct pollfd stream = {.fd = outlet->stream, .events = POLLOUT};
        const double left = until - now();
        const int found = poll(&stream, 1, left > 0 ? (int)(1000 * left) + 1 : 0);
        if (found > 0 || (found < 0 && errno != EINTR && errno != EAGAIN))
            return true;
        if (left <= 0)
            return false;
    }
}

/* Writes up to the moment `until`, in pieces that a pipe takes as they are. Returns how many
 * bytes are written; after a failure all, since none of them can be any more. */
static size_t put(struct outlet *outlet, const char *text, size_t bytes, double until)
{
    size_t written = 0;
    while (written < bytes && is_ready(outlet, until)) {
        const size_t left = bytes - written;
        const ssize_t done =
            write(outlet->stream, text + written, left < PIPE_BUF ? left : PIPE_BUF);
        if (done >= 0) {
            written += (size_t)done;
        } else if (errno != EINTR && errno != EAGAIN) {
            outlet->has_failed = true;
            return bytes;
        }
    }
    return written;
}

static void keep_rest(struct outlet *outlet, const char *text, size_t bytes)
{
    outlet->rest = malloc(bytes);
    outlet->rest_bytes = bytes;
    if (outlet->rest)
        memcpy(outlet->rest, text, bytes);
}

/* Returns whether the next text may be begun. */
static bool end_rest(struct outlet *outlet, double until)
{
    if (!outlet->rest)
        return true;
    const size_t written = put(outlet, outlet->rest, outlet->rest_bytes, until);
    outlet->rest_bytes -= written;
    memmove(outlet->rest, outlet->rest + written, outlet->rest_bytes);
    if (outlet->rest_bytes > 0)
        return false;
    free(outlet->rest);
    outlet->rest = NULL;
    return true;
}

bool outlet_write(struct outlet *outlet, const char *text, size_t bytes, int patience)
{
    pthread_mutex_lock(&outlet->mutex);
    const double until = now() + (outlet->is_stuck ? 0 : patience);
    const size_t written = end_rest(outlet, until) ? put(outlet, text, bytes, until) : 0;
    if (patience > 0 || written == bytes)
        outlet->is_stuck = written < bytes;
    if (written > 0 && written < bytes)
        keep_rest(outlet, text + written, bytes - written);
    pthread_mutex_unlock(&outlet->mutex);
    return written > 0 || bytes == 0;
}

bool outlet_has_failed(struct outlet *outlet)
{
    pthread_mutex_lock(&outlet->mutex);
    const bool has_failed = outlet->has_failed;
    pthread_mutex_unlock(&outlet->mutex);
    return has_failed;
}
