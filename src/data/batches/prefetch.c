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

/* Samples first..end-1 of a batch; none where end is 0. */
struct range {
    int64_t first, end;
};

/* Room for a batch. */
struct slot {
    int64_t batch;                /* -1: none yet */
    int users;                    /* threads that read into it or copy from it */
    void *fields[LK_MOST_FIELDS]; /* [size] */
    uint8_t *chunks;              /* enum chunk_state [chunks of a full batch] */
    uint32_t *chunk_fields;       /* the fields that a chunk was read with, a bit each */
};

struct lk_prefetch {
    struct lk_prefetch_config config;
    int64_t chunks;     /* of a full batch */
    struct slot *slots; /* [most_batches], of which the first `held` have memory */
    int held;
    int waiting;   /* readers that wait */
    bool was_full; /* the threads had nothing to read at some time since a reader waited last */
    pthread_t *threads;
    int started;
    pthread_mutex_t mutex;     /* guards all below, and slots but for the samples in them */
    pthread_cond_t work, news; /* work: a batch may be begun; news: something was read */
    int64_t first; /* batches first..first+batches-1 are held or being read; -1: none yet */
    struct range asked, asked_before; /* the samples asked for of batch asked_of, and of the one
                                       * before it */
    int64_t asked_of;
    uint32_t fields; /* the fields that anybody has asked for, a bit each */
    bool ends;
};

static uint32_t bits_of(const struct lk_prefetch *prefetch, void *const to[])
{
    uint32_t bits = 0;
    for (int f = 0; f < prefetch->config.field_count; f++)
        bits |= to[f] ? UINT32_C(1) << f : 0;
    return bits;
}

/* Bytes of a batch. */
static double batch_bytes(const struct lk_prefetch_config *c)
{
    double sum = 0;
    for (int f = 0; f < c->field_count; f++)
        sum += (double)c->size * (double)c->field_bytes[f];
    return sum;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_over(const struct lk_prefetch *prefetch, int64_t batch)
{
    return batch < prefetch->first || batch >= prefetch->first + prefetch->held;
}

/* Finds the slot of a batch that is held or to be read; one that held another batch is emptied
 * for it. NULL: all others are in use. */
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

/* The samples to be read ahead of each batch: from the first to the last that were asked for,
 * of this batch and the one before. */
static struct range find_wanted(const struct lk_prefetch *prefetch)
{
    const struct range now = prefetch->asked, last = prefetch->asked_before;
    if (last.end == 0)
        return now;
    return (struct range){lesser(now.first, last.first),
                          now.end > last.end ? now.end : last.end};
}

/* Notes which samples of a batch are asked for: a process that trains on a run of each batch
 * does not read the rest ahead. One that asks for the end of a short batch is expected to ask
 * for the end of full ones too. */
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

/* Reads a chunk; the mutex is released meanwhile. */
static void read_chunk(struct lk_prefetch *prefetch, struct slot *slot, int64_t chunk)
{
    const struct lk_prefetch_config *c = &prefetch->config;
    const int64_t batch = slot->batch, at = chunk * CHUNK;
    void *to[LK_MOST_FIELDS] = {NULL};
    for (int f = 0; f < c->field_count; f++)
        if (prefetch->fields >> f & 1)
            to[f] = (uint8_t *)slot->fields[f] + (size_t)at * c->field_bytes[f];
    slot->chunk_fields[chunk] = prefetch->fields;
    slot->users++;
    pthread_mutex_unlock(&prefetch->mutex);
    const enum lk_status status =
        c->read(c->context, batch, at, lesser(CHUNK, c->count(c->context, batch) - at), to);
    lk_error_clear(); /* whoever asks for it reads it again, and gets the error */
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

static void clear_slot(struct slot *slot)
{
    for (int f = 0; f < LK_MOST_FIELDS; f++)
        free(slot->fields[f]);
    free(slot->chunks);
    free(slot->chunk_fields);
}

/* Makes room for one more batch; false: there is no memory. */
static bool grow(struct lk_prefetch *prefetch)
{
    const struct lk_prefetch_config *c = &prefetch->config;
    struct slot slot = {.batch = -1};
    slot.chunks = malloc((size_t)prefetch->chunks);
    slot.chunk_fields = calloc((size_t)prefetch->chunks, sizeof *slot.chunk_fields);
    bool is_there = slot.chunks && slot.chunk_fields;
    for (int f = 0; f < c->field_count && is_there; f++) {
        slot.fields[f] = malloc((size_t)c->size * c->field_bytes[f]);
        is_there = slot.fields[f];
    }
    if (is_there)
        prefetch->slots[prefetch->held++] = slot;
    else
        clear_slot(&slot);
    return is_there;
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
                                  (unsigned long long)(c->batches * batch_bytes(c)));
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
    for (int i = 0; i < prefetch->held; i++)
        clear_slot(&prefetch->slots[i]);
    pthread_cond_destroy(&prefetch->news);
    pthread_cond_destroy(&prefetch->work);
    pthread_mutex_destroy(&prefetch->mutex);
    free(prefetch->threads);
    free(prefetch->slots);
    free(prefetch);
}

/* Moves on to a batch. Those before the previous one are given up; where the reader jumps, all
 * that are held. False: the batch itself was given up already. */
static bool move_to(struct lk_prefetch *prefetch, int64_t batch)
{
    const int64_t held = prefetch->held;
    if (prefetch->first >= 0 && batch < prefetch->first)
        return false;
    const bool is_near = prefetch->first >= 0 && batch < prefetch->first + held;
    const int64_t first =
        is_near ? (batch - 1 > prefetch->first ? batch - 1 : prefetch->first) : batch;
    if (first != prefetch->first)
        pthread_cond_broadcast(&prefetch->news); /* wakes those that wait for a batch that was
                                                  * given up */
    prefetch->first = first;
    return true;
}

/* The state of chunks first..last of a batch: MISSING if one is; FAILED if one was read without
 * some of the fields. */
static enum chunk_state look(const struct slot *slot, struct range chunks, uint32_t fields)
{
    enum chunk_state found = READY;
    for (int64_t i = chunks.first; i < chunks.end; i++)
        if (slot->chunks[i] == MISSING || slot->chunks[i] == TAKEN)
            return MISSING;
        else if (slot->chunks[i] == FAILED || (fields & ~slot->chunk_fields[i]))
            found = FAILED;
    return found;
}

/* A reader has to wait. If the threads were idle before, they read fast enough on average but
 * unevenly: holding more batches evens that out. If they were never idle, it would not help. */
static void note_wait(struct lk_prefetch *prefetch)
{
    const struct lk_prefetch_config *c = &prefetch->config;
    if (prefetch->was_full && prefetch->held < c->most_batches && grow(prefetch))
        lk_log(LK_LOG_DEBUG, "batches came too late: %d are read ahead now, in %.3g MB",
               prefetch->held, 1e-6 * prefetch->held * batch_bytes(c));
    prefetch->was_full = false;
    pthread_cond_broadcast(&prefetch->work);
}

/* Waits for chunks of a batch and returns its slot; NULL: the caller has to read them
 * himself. */
static struct slot *wait_for(struct lk_prefetch *prefetch, int64_t batch, struct range chunks,
                             uint32_t fields)
{
    for (;;) {
        if (batch >= prefetch->config.end || !move_to(prefetch, batch))
            return NULL;
        struct slot *slot = find_slot(prefetch, batch);
        const enum chunk_state state = slot ? look(slot, chunks, fields) : MISSING;
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

static void copy(const struct lk_prefetch_config *c, const struct slot *slot,
                 struct range range, void *const to[])
{
    for (int f = 0; f < c->field_count; f++)
        if (to[f])
            memcpy(to[f],
                   (const uint8_t *)slot->fields[f] + (size_t)range.first * c->field_bytes[f],
                   (size_t)(range.end - range.first) * c->field_bytes[f]);
}

enum lk_status lk_prefetch_read(struct lk_prefetch *prefetch, int64_t batch, int64_t first,
                                int64_t count, void *const to[])
{
    const struct lk_prefetch_config *c = &prefetch->config;
    const struct range range = {first, first + count};
    const struct range chunks = {first / CHUNK, (first + count - 1) / CHUNK + 1};
    const uint32_t fields = bits_of(prefetch, to);
    if (count == 0 || fields == 0)
        return LK_OK;
    pthread_mutex_lock(&prefetch->mutex);
    prefetch->fields |= fields;
    note_asked(prefetch, batch, range);
    struct slot *slot = wait_for(prefetch, batch, chunks, fields);
    if (slot)
        slot->users++;
    else
        pthread_cond_broadcast(&prefetch->work);
    pthread_mutex_unlock(&prefetch->mutex); /* threads go on once the samples are copied:
                                             * earlier they would take the core that copies */
    if (!slot)
        return c->read(c->context, batch, first, count, to);
    copy(c, slot, range, to);
    pthread_mutex_lock(&prefetch->mutex);
    slot->users--;
    pthread_cond_broadcast(&prefetch->work);
    pthread_mutex_unlock(&prefetch->mutex);
    return LK_OK;
}
