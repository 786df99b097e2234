/* Threads that read many samples together. Floor 4. For sets whose samples are at hand or
 * drawn, so that nothing is gained by reading ahead: what reading takes of the processor is
 * divided among its cores, and the samples are written once, to their place. */
#ifndef LK_DATA_BATCHES_READERS_H
#define LK_DATA_BATCHES_READERS_H

#include <lockstep/data.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of which the caller reads fewer by himself: to wake a thread takes as long as to copy
 * some hundred thousand. */
enum { LK_LEAST_SHARED = 4000000 };

struct lk_readers_config {
    int threads; /* at least 1; where it is the number of cores, each has its own */
    int field_count;
    size_t field_bytes[LK_MOST_FIELDS]; /* of a sample */

    /* Reads samples first..first + count - 1 of a batch, field f to to[f] unless that is NULL;
     * any thread. */
    enum lk_status (*read)(void *context, int64_t batch, int64_t first, int64_t count,
                           void *const to[]);
    void *context;
};

struct lk_readers;

/* fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_readers_create(const struct lk_readers_config *config,
                                               struct lk_readers **readers);
void lk_readers_destroy(struct lk_readers *readers);

/* As `read`, by all threads, while the caller waits. One that calls while they read for another
 * reads by itself. fails: as `read` */
LK_MUST_CHECK enum lk_status lk_readers_read(struct lk_readers *readers, int64_t batch,
                                             int64_t first, int64_t count, void *const to[]);

#endif
