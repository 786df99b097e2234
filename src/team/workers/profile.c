/* The trace file: events of devices and of the host, in the format that browsers show. */
#include "team/workers/profile.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/number.h"
#include "device/trace.h"
#include "io/file.h"
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_COMMANDS = 1 << 14, /* of a device, not taken yet */
    MOST_THREADS = 64,       /* of the host */
    HOST = 1,                /* process numbers: the host's, and the first device's */
    FIRST_DEVICE = 2,
    THREADS_EACH = 100, /* thread numbers begin at the process number times this */
};

struct lk_profile {
    pthread_mutex_t mutex;
    struct lk_file_draft *draft; /* NULL: the file is in place, or has_failed */
    bool has_failed;
    char path[512];
    double started;
    int64_t steps, first, last; /* how many steps to trace, and which; first = 0: not known
                                 * yet */
    int64_t written, dropped;
    uint64_t devices, finished; /* a bit for each device: it is traced; all its commands were
                                 * taken */
    int threads;
    char thread_names[MOST_THREADS][32];
};

/* An event of the file. */
struct event {
    int process, thread;
    const char *name, *kind;
    int64_t step;
    double begin, end;
};

/* A string in quotes. Bytes beyond ASCII become '?': drivers' names need not be UTF-8. */
static void put_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(file, "\\%c", *p);
        else
            fputc(*p < ' ' || *p > '~' ? '?' : *p, file);
    }
    fputc('"', file);
}

/* Microseconds, in whole nanoseconds so that rounding never makes events overlap. */
static void put_time(FILE *file, const char *key, int64_t nanoseconds)
{
    fprintf(file, ",\"%s\":%" PRId64 ".%03d", key, nanoseconds / 1000,
            (int)(nanoseconds % 1000));
}

static void put_name(struct lk_profile *profile, const char *what, int process, int thread,
                     const char *name)
{
    FILE *file = lk_file_draft_stream(profile->draft);
    fprintf(file,
            ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", what,
            process, thread);
    put_text(file, name);
    fprintf(file, "}}");
}

static int64_t nanoseconds(const struct lk_profile *profile, double seconds)
{
    const double since = seconds - profile->started;
    return since > 0 ? llround(1e9 * since) : 0;
}

/* Leaves the event's arguments open for more. */
static void begin_event(struct lk_profile *profile, const struct event *e)
{
    FILE *file = lk_file_draft_stream(profile->draft);
    const int64_t begin = nanoseconds(profile, e->begin), end = nanoseconds(profile, e->end);
    fprintf(file, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"cat\":\"%s\",\"name\":", e->process,
            THREADS_EACH * e->process + e->thread, e->kind);
    put_text(file, e->name);
    put_time(file, "ts", begin);
    put_time(file, "dur", end > begin ? end - begin : 0);
    fprintf(file, ",\"args\":{\"step\":%" PRId64, e->step);
    profile->written++;
}

static void end_event(struct lk_profile *profile)
{
    fputs("}}", lk_file_draft_stream(profile->draft));
}

/* "read 1.2 MB": one name for transfers of one size. */
static void name_transfer(const struct lk_traced *t, char *name, size_t room)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    uint64_t tenths = 10 * (uint64_t)t->bytes;
    int unit = 0;
    while (tenths >= 10000 && unit < LK_COUNT(units) - 1) {
        tenths = (tenths + 500) / 1000;
        unit++;
    }
    if (unit == 0)
        snprintf(name, room, "%.63s %zu B", t->name, t->bytes);
    else
        snprintf(name, room, "%.63s %" PRIu64 ".%d %s", t->name, tenths / 10,
                 (int)(tenths % 10), units[unit]);
}

static void write_command(struct lk_profile *profile, int position, const struct lk_traced *t)
{
    FILE *file = lk_file_draft_stream(profile->draft);
    const bool is_kernel = t->queue == LK_TRACE_COMPUTE && !t->bytes;
    char name[96], rate[32];
    const int64_t taken = nanoseconds(profile, t->end) - nanoseconds(profile, t->start);
    if (t->bytes)
        name_transfer(t, name, sizeof name);
    else
        snprintf(name, sizeof name, "%.63s", t->name);
    begin_event(profile, &(struct event){
                             .process = FIRST_DEVICE + position,
                             .thread = t->queue,
                             .name = name,
                             .kind = is_kernel ? "kernel" : "transfer",
                             .step = t->step,
                             .begin = t->start,
                             .end = t->end,
                         });
    put_time(file, "waited_us",
             t->start > t->queued ? llround(1e9 * (t->start - t->queued)) : 0);
    if (t->bytes)
        fprintf(file, ",\"bytes\":%zu", t->bytes);
    if (t->bytes && taken > 0) {
        lk_number_print(round(1e3 * (double)t->bytes / (double)taken) / 1e3, rate, sizeof rate);
        fprintf(file, ",\"GB/s\":%s", rate);
    }
    end_event(profile);
}

enum lk_status lk_profile_open(const char *path, int64_t steps, struct lk_profile **profile)
{
    *profile = NULL;
    if (!*path)
        return LK_OK;
    struct lk_profile *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a profile", sizeof *made);
    snprintf(made->path, sizeof made->path, "%s", path);
    const enum lk_status status = lk_file_draft_open(path, &made->draft);
    if (status != LK_OK) {
        free(made);
        return lk_fail_within(status, "profile");
    }
    made->steps = steps;
    made->started = lk_seconds();
    pthread_mutex_init(&made->mutex, NULL);
    fprintf(lk_file_draft_stream(made->draft),
            "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":0,"
            "\"args\":{\"name\":\"host\"}}",
            HOST);
    *profile = made;
    return LK_OK;
}

enum lk_status lk_profile_add(struct lk_profile *profile, struct lk_device *device,
                              int position)
{
    const int process = FIRST_DEVICE + position, thread = THREADS_EACH * process;
    char name[160];
    if (!profile)
        return LK_OK;
    LK_TRY(lk_trace_begin(device, MOST_COMMANDS));
    snprintf(name, sizeof name, "device %d: %s", position, lk_device_info(device)->name);
    pthread_mutex_lock(&profile->mutex);
    if (profile->draft) {
        put_name(profile, "process_name", process, 0, name);
        put_name(profile, "thread_name", process, thread + LK_TRACE_COMPUTE, "compute queue");
        put_name(profile, "thread_name", process, thread + LK_TRACE_TRANSFER, "transfer queue");
        put_name(profile, "thread_name", process, thread + LK_TRACE_UPLOAD, "upload queue");
    }
    profile->devices |= UINT64_C(1) << position;
    pthread_mutex_unlock(&profile->mutex);
    return LK_OK;
}

static bool is_traced(const struct lk_profile *profile, int64_t step)
{
    return profile->draft && profile->first && step >= profile->first && step <= profile->last;
}

void lk_profile_step(struct lk_profile *profile, struct lk_device *device, int64_t step)
{
    if (!profile)
        return;
    pthread_mutex_lock(&profile->mutex);
    if (!profile->first) {
        profile->first = step + 1;
        profile->last = profile->steps ? step + profile->steps : INT64_MAX;
    }
    lk_trace_step(device, is_traced(profile, step) ? step : 0);
    pthread_mutex_unlock(&profile->mutex);
}

static enum lk_status finish(struct lk_profile *profile)
{
    FILE *file = lk_file_draft_stream(profile->draft);
    fprintf(file, "\n],\"otherData\":{\"dropped_commands\":%" PRId64 "}}\n", profile->dropped);
    const enum lk_status status = lk_file_draft_commit(profile->draft);
    profile->draft = NULL;
    profile->has_failed = status != LK_OK;
    if (profile->has_failed)
        return status;
    if (profile->dropped)
        lk_log(LK_LOG_WARNING,
               "profile: %" PRId64 " commands are not in it: they failed, or "
               "over %d of a device were waiting",
               profile->dropped, MOST_COMMANDS);
    lk_log(LK_LOG_INFO, "profile: %" PRId64 " events in '%s', for chrome://tracing or Perfetto",
           profile->written, profile->path);
    return LK_OK;
}

/* If the trace cannot be written, training goes on without it. */
static void finish_early(struct lk_profile *profile)
{
    if (finish(profile) == LK_OK)
        return;
    lk_log(LK_LOG_WARNING, "profile: %s", lk_error_text());
    lk_error_clear();
}

void lk_profile_collect(struct lk_profile *profile, struct lk_device *device, int position,
                        int64_t step)
{
    struct lk_traced some[32];
    int count = LK_COUNT(some);
    if (!profile)
        return;
    /* The device may hang, so it is asked before the lock is taken. */
    for (bool is_open = true; is_open && count == LK_COUNT(some);) {
        int64_t dropped = 0;
        count = lk_trace_collect(device, some, LK_COUNT(some), &dropped);
        pthread_mutex_lock(&profile->mutex);
        is_open = profile->draft;
        profile->dropped += dropped;
        for (int i = 0; i < count && is_open; i++)
            write_command(profile, position, &some[i]);
        pthread_mutex_unlock(&profile->mutex);
    }
    pthread_mutex_lock(&profile->mutex);
    /* Only a step behind the last one to trace shows that all commands of that one were
     * taken. */
    if (profile->draft && profile->first && step > profile->last) {
        profile->finished |= UINT64_C(1) << position;
        if (profile->finished == profile->devices)
            finish_early(profile);
    }
    pthread_mutex_unlock(&profile->mutex);
}

/* The number of a host thread in the file; MOST_THREADS: one more than there is room for. */
static int find_thread(struct lk_profile *profile, const char *name)
{
    for (int i = 0; i < profile->threads; i++)
        if (strncmp(profile->thread_names[i], name, sizeof profile->thread_names[0] - 1) == 0)
            return i;
    if (profile->threads == MOST_THREADS)
        return MOST_THREADS;
    char *kept = profile->thread_names[profile->threads];
    snprintf(kept, sizeof profile->thread_names[0], "%s", name);
    put_name(profile, "thread_name", HOST, THREADS_EACH * HOST + profile->threads, kept);
    return profile->threads++;
}

void lk_profile_span(struct lk_profile *profile, const char *thread, const char *name,
                     int64_t step, double begin, double end)
{
    if (!profile)
        return;
    pthread_mutex_lock(&profile->mutex);
    const int number = is_traced(profile, step) ? find_thread(profile, thread) : MOST_THREADS;
    if (number < MOST_THREADS) {
        begin_event(profile, &(struct event){
                                 .process = HOST,
                                 .thread = number,
                                 .name = name,
                                 .kind = "host",
                                 .step = step,
                                 .begin = begin,
                                 .end = end,
                             });
        end_event(profile);
    }
    pthread_mutex_unlock(&profile->mutex);
}

enum lk_status lk_profile_close(struct lk_profile *profile)
{
    enum lk_status status = LK_OK;
    if (!profile)
        return LK_OK;
    if (profile->has_failed) {
        status = lk_fail(LK_E_IO, "profile: '%s' could not be written", profile->path);
    } else if (profile->draft && profile->written) {
        status = finish(profile);
    } else if (profile->draft) {
        if (profile->first)
            lk_log(LK_LOG_WARNING,
                   "profile: '%s' was not written, since training ended before "
                   "its second step",
                   profile->path);
        lk_file_draft_discard(profile->draft);
    }
    pthread_mutex_destroy(&profile->mutex);
    free(profile);
    return status;
}
