/* Reading batches ahead on threads, into memory for a few of them. */
#include "data/batches/prefetch.h"

#include "base/fail.h"
#include "base/log.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Samples that a thread reads at a time. */
enum { CHUNK = 8 };

enum chunk_state { MISSING, TAKEN, READY, FAILED };

/* Samples first..end-1 of batches; none where end is 0. */
struct range {
    int64_t first, end;
};

/* Room for a batch. */
struct slot {
    int64_t batch;             /* -1: none yet */
    int users;                 /* threads and readers that are in the middle of it */
    uint8_t *samples, *chunks; /* [size]; enum chunk_state [chunks of a full batch] */
    int32_t *labels;
};

struct lk_prefetch {
    struct lk_prefetch_config config;
    int64_t chunks;     /* of a full batch */
    struct slot *slots; /* [most_batches], of which the first `held` have memory */
    int held;
    int waiting;   /* readers */
    bool was_full; /* since one waited last, threads have found nothing to read */
    pthread_t *threads;
    int started;
    pthread_mutex_t mutex;     /* of all below, and of slots but for what chunks hold */
    pthread_cond_t work, news; /* a batch may be begun; something was read */
    int64_t first; /* batches first..first+batches-1 are held or being read; -1: none yet */
    struct range asked, asked_before; /* of batch asked_of, and of the one before it */
    int64_t asked_of;
    bool ends;
};

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_over(const struct lk_prefetch *prefetch, int64_t batch)
{
    return batch < prefetch->first || batch >= prefetch->first + prefetch->held;
}

/* The slot of a batch that is held or to be read, emptied for it where it was another's; NULL:
 * all others are still in use. */
static struct slot *find_slot(struct lk_prefetch *prefetch, int64_t batch)
{
    struct slot *free_one = NULL;
    for (int i = 0; i < prefetch->held; i++) {
        struct slot *slot = &prefetch->slots[i];
        if (slot->batch == batch)
            return slot;
        if (slot->users == 0 && is_over(prefetch, slot->batch))
            free_one = slot;
    }
    if (free_one) {
        free_one->batch = batch;
        memset(free_one->chunks, MISSING, (size_t)prefetch->chunks);
    }
    return free_one;
}

/* Of a batch the samples between those that are asked for, of this batch and the last. */
static struct range find_wanted(const struct lk_prefetch *prefetch)
{
    const struct range now = prefetch->asked, last = prefetch->asked_before;
    if (last.end == 0)
        return now;
    return (struct range){lesser(now.first, last.first),
                          now.end > last.end ? now.end : last.end};
}

/* A process that trains on a part of each batch does not read the rest ahead. Who asks for the
 * end of a batch is taken to ask for that of a full one. */
static void note_asked(struct lk_prefetch *prefetch, int64_t batch, struct range range)
{
    const struct lk_prefetch_config *c = &prefetch->config;
    struct range *asked = &prefetch->asked;
    if (range.end == c->count(c->context, batch))
        range.end = c->size;
    if (batch > prefetch->asked_of) {
        prefetch->asked_of = batch;
        prefetch->asked_before = *asked;
        *asked = range;
    } else {
        asked->first = lesser(asked->first, range.first);
        asked->end = range.end > asked->end ? range.end : asked->end;
    }
}

/* Takes the next chunk that nobody has begun, of the earliest batch; NULL: there is none. */
static struct slot *take_chunk(struct lk_prefetch *prefetch, int64_t *chunk)
{
    const struct lk_prefetch_config *c = &prefetch->config;
    const struct range wanted = find_wanted(prefetch);
    const int64_t end = lesser(prefetch->first + prefetch->held, c->end);
    for (int64_t batch = prefetch->first; prefetch->first >= 0 && batch < end; batch++) {
        struct slot *slot = find_slot(prefetch, batch);
        const int64_t count = slot ? lesser(wanted.end, c->count(c->context, batch)) : 0;
        for (int64_t i = wanted.first / CHUNK; i * CHUNK < count; i++)
            if (slot->chunks[i] == MISSING) {
                slot->chunks[i] = TAKEN;
                *chunk = i;
                return slot;
            }
    }
    return NULL;
}

/* Reads a chunk; the mutex is open meanwhile. */
static void read_chunk(struct lk_prefetch *prefetch, struct slot *slot, int64_t chunk)
{
    const struct lk_prefetch_config *c = &prefetch->config;
    const int64_t batch = slot->batch, at = chunk * CHUNK;
    slot->users++;
    pthread_mutex_unlock(&prefetch->mutex);
    const enum lk_status status =
        c->read(c->context, batch, at, lesser(CHUNK, c->count(c->context, batch) - at),
                slot->samples + (size_t)at * c->sample_bytes, slot->labels + at);
    lk_error_clear(); /* whoever asks for it reads it again and is told */
    pthread_mutex_lock(&prefetch->mutex);
    slot->users--;
    slot->chunks[chunk] = status == LK_OK ? READY : FAILED;
    pthread_cond_broadcast(&prefetch->news);
}

static void *load(void *argument)
{
    struct lk_prefetch *prefetch = argument;
    pthread_mutex_lock(&prefetch->mutex);
    while (!prefetch->ends) {
        int64_t chunk;
        struct slot *slot = take_chunk(prefetch, &chunk);
        if (slot) {
            read_chunk(prefetch, slot, chunk);
            continue;
        }
        prefetch->was_full |= prefetch->first >= 0 && prefetch->waiting == 0;
        pthread_cond_wait(&prefetch->work, &prefetch->mutex);
    }
    pthread_mutex_unlock(&prefetch->mutex);
    return NULL;
}

/* Memory for one batch more; false: there is none. */
static bool grow(struct lk_prefetch *prefetch)
{
    const struct lk_prefetch_config *c = &prefetch->config;
    struct slot slot = {.batch = -1};
    slot.samples = malloc((size_t)c->size * c->sample_bytes);
    slot.labels = malloc((size_t)c->size * sizeof *slot.labels);
    slot.chunks = malloc((size_t)prefetch->chunks);
    if (!slot.samples || !slot.labels || !slot.chunks) {
        free(slot.samples);
        free(slot.labels);
        free(slot.chunks);
        return false;
    }
    prefetch->slots[prefetch->held++] = slot;
    return true;
}

static enum lk_status create(struct lk_prefetch *prefetch)
{
    const struct lk_prefetch_config *c = &prefetch->config;
    prefetch->slots = calloc((size_t)c->most_batches, sizeof *prefetch->slots);
    prefetch->threads = calloc((size_t)c->threads, sizeof *prefetch->threads);
    if (!prefetch->slots || !prefetch->threads)
        return lk_fail_memory("threads that read ahead", 0);
    while (prefetch->held < c->batches)
        if (!grow(prefetch))
            return lk_fail_memory("batches that are read ahead",
                                  (size_t)c->batches * (size_t)c->size * c->sample_bytes);
    for (int i = 0; i < c->threads; i++, prefetch->started++)
        if (pthread_create(&prefetch->threads[i], NULL, load, prefetch) != 0)
            return lk_fail(LK_E_MEMORY, "cannot start a thread");
    return LK_OK;
}

enum lk_status lk_prefetch_create(const struct lk_prefetch_config *config,
                                  struct lk_prefetch **prefetch)
{
    struct lk_prefetch *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("threads that read ahead", sizeof *made);
    made->config = *config;
    if (config->most_batches < config->batches)
        made->config.most_batches = config->batches;
    made->chunks = (config->size + CHUNK - 1) / CHUNK;
    made->first = made->asked_of = -1;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->news, NULL);
    const enum lk_status status = create(made);
    if (status != LK_OK) {
        lk_prefetch_destroy(made);
        return status;
    }
    *prefetch = made;
    return LK_OK;
}

void lk_prefetch_destroy(struct lk_prefetch *prefetch)
{
    if (!prefetch)
        return;
    pthread_mutex_lock(&prefetch->mutex);
    prefetch->ends = true;
    pthread_cond_broadcast(&prefetch->work);
    pthread_mutex_unlock(&prefetch->mutex);
    for (int i = 0; i < prefetch->started; i++)
        pthread_join(prefetch->threads[i], NULL);
    for (int i = 0; i < prefetch->held; i++) {
        free(prefetch->slots[i].samples);
        free(prefetch->slots[i].labels);
        free(prefetch->slots[i].chunks);
    }
    pthread_cond_destroy(&prefetch->news);
    pthread_cond_destroy(&prefetch->work);
    pthread_mutex_destroy(&prefetch->mutex);
    free(prefetch->threads);
    free(prefetch->slots);
    free(prefetch);
}

/* Batches before the one in front of this one are over; where a run goes on from the middle,
 * all that is held is. False: the batch itself is over. */
static bool move_to(struct lk_prefetch *prefetch, int64_t batch)
{
    const int64_t held = prefetch->held;
    if (prefetch->first >= 0 && batch < prefetch->first)
        return false;
    const bool is_near = prefetch->first >= 0 && batch < prefetch->first + held;
    const int64_t first =
        is_near ? (batch - 1 > prefetch->first ? batch - 1 : prefetch->first) : batch;
    if (first != prefetch->first)
        pthread_cond_broadcast(&prefetch->news); /* for those who wait for what is now over */
    prefetch->first = first;
    return true;
}

/* The state of a batch's chunks first..last: MISSING where one is. */
static enum chunk_state look(const struct slot *slot, int64_t first, int64_t last)
{
    enum chunk_state found = READY;
    for (int64_t i = first; i <= last; i++)
        if (slot->chunks[i] == MISSING || slot->chunks[i] == TAKEN)
            return MISSING;
        else if (slot->chunks[i] == FAILED)
            found = FAILED;
    return found;
}

/* A reader has to wait. Where threads had time before, reading is fast enough but not even:
 * more batches ahead even it out. Where they had none, more would not help. */
static void note_wait(struct lk_prefetch *prefetch)
{
    const struct lk_prefetch_config *c = &prefetch->config;
    if (prefetch->was_full && prefetch->held < c->most_batches && grow(prefetch))
        lk_log(LK_LOG_INFO, "batches came too late: %d are read ahead now, in %.0f MB",
               prefetch->held,
               1e-6 * prefetch->held * (double)c->size * (double)c->sample_bytes);
    prefetch->was_full = false;
    pthread_cond_broadcast(&prefetch->work);
}

/* The batch's slot once the chunks are there; NULL: the caller is to read them. */
static struct slot *wait_for(struct lk_prefetch *prefetch, int64_t batch, int64_t first,
                             int64_t last)
{
    for (;;) {
        if (batch >= prefetch->config.end || !move_to(prefetch, batch))
            return NULL;
        struct slot *slot = find_slot(prefetch, batch);
        const enum chunk_state state = slot ? look(slot, first, last) : MISSING;
        if (state == FAILED)
            return NULL;
        if (state == READY)
            return slot;
        note_wait(prefetch);
        prefetch->waiting++;
        pthread_cond_wait(&prefetch->news, &prefetch->mutex);
        prefetch->waiting--;
    }
}

int lk_prefetch_held(struct lk_prefetch *prefetch)
{
    pthread_mutex_lock(&prefetch->mutex);
    const int held = prefetch->held;
    pthread_mutex_unlock(&prefetch->mutex);
    return held;
}

enum lk_status lk_prefetch_read(struct lk_prefetch *prefetch, int64_t batch, int64_t first,
                                int64_t count, uint8_t *samples, int32_t *labels)
{
    const struct lk_prefetch_config *c = &prefetch->config;
    if (count == 0)
        return LK_OK;
    pthread_mutex_lock(&prefetch->mutex);
    note_asked(prefetch, batch, (struct range){first, first + count});
    struct slot *slot = wait_for(prefetch, batch, first / CHUNK, (first + count - 1) / CHUNK);
    if (slot)
        slot->users++;
    else
        pthread_cond_broadcast(&prefetch->work);
    pthread_mutex_unlock(&prefetch->mutex); /* others read on when these are copied: they would
                                             * take the core that copies */
    if (!slot)
        return c->read(c->context, batch, first, count, samples, labels);
    memcpy(samples, slot->samples + (size_t)first * c->sample_bytes,
           (size_t)count * c->sample_bytes);
    memcpy(labels, slot->labels + first, (size_t)count * sizeof *labels);
    pthread_mutex_lock(&prefetch->mutex);
    slot->users--;
    pthread_cond_broadcast(&prefetch->work);
    pthread_mutex_unlock(&prefetch->mutex);
    return LK_OK;
}
