/* Threads that read batches before they are asked for. Floor 4. Knows no data set: batches come
 * from a function that gives the same samples on whichever thread it is called, so that neither
 * the number of threads nor their timing changes a result. */
#ifndef LK_DATA_BATCHES_PREFETCH_H
#define LK_DATA_BATCHES_PREFETCH_H

#include <lockstep/data.h>
#include <stddef.h>
#include <stdint.h>

struct lk_prefetch_config {
    int threads;      /* at least 1 */
    int batches;      /* kept in memory: the last one read, the current one, and those ahead */
    int most_batches; /* kept at most; more than `batches` are where readers had to wait
                       * although the threads had been idle */
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

/* Starts the threads. They read from the first batch on that is asked for; of each batch the
 * range of samples that is asked for of one batch, and the fields that anybody has asked for.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_prefetch_create(const struct lk_prefetch_config *config,
                                                struct lk_prefetch **prefetch);

/* Ends the threads. No thread may be inside lk_prefetch_read(). */
void lk_prefetch_destroy(struct lk_prefetch *prefetch);

/* Batches that are held now. */
int lk_prefetch_held(struct lk_prefetch *prefetch);

/* Waits until some samples of a batch have been read, and copies them. What was given up
 * meanwhile, or failed on a thread, is read on the caller's thread. Any thread. fails: as
 * config.read */
LK_MUST_CHECK enum lk_status lk_prefetch_read(struct lk_prefetch *prefetch, int64_t batch,
                                              int64_t first, int64_t count, void *const to[]);

#endif
