/* Threads that read batches before they are asked for. Floor 4. Knows no data set: what a batch
 * holds comes from a function that gives the same samples whoever calls it, so neither the
 * number of threads nor who is first changes anything. */
#ifndef LK_DATA_BATCHES_PREFETCH_H
#define LK_DATA_BATCHES_PREFETCH_H

#include <lockstep/data.h>
#include <stddef.h>
#include <stdint.h>

struct lk_prefetch_config {
    int threads;      /* at least 1 */
    int batches;      /* kept in memory: the last one read, the current one, and those ahead */
    int most_batches; /* kept at most: more than `batches` where readers had to wait
                       * though the threads had been idle before */
    int64_t size;     /* samples of a full batch */
    int field_count;
    size_t field_bytes[LK_MOST_FIELDS]; /* of a sample */
    int64_t end;                        /* batches from this number on are not read ahead */
    /* Samples in a batch; reads fields of some of them, as lk_batches_read_fields(). Any
     * thread. */
    int64_t (*count)(void *context, int64_t batch);
    enum lk_status (*read)(void *context, int64_t batch, int64_t first, int64_t count,
                           void *const to[]);
    void *context;
};

struct lk_prefetch;

/* Starts the threads; they read from the first batch that is asked for on, and of each batch
 * the samples between those that are asked for of one, and of a sample the fields that anybody
 * has asked for. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_prefetch_create(const struct lk_prefetch_config *config,
                                                struct lk_prefetch **prefetch);

/* Ends the threads. No thread may be inside lk_prefetch_read(). */
void lk_prefetch_destroy(struct lk_prefetch *prefetch);

/* Batches that are held now. */
int lk_prefetch_held(struct lk_prefetch *prefetch);

/* Waits until some samples of a batch have been read, and copies them. The caller reads by
 * itself what was dropped meanwhile and what a thread failed to read. Any thread. fails: as
 * config.read */
LK_MUST_CHECK enum lk_status lk_prefetch_read(struct lk_prefetch *prefetch, int64_t batch,
                                              int64_t first, int64_t count, void *const to[]);

#endif
