/* Decoded and scaled samples that are kept, in memory or in a file, or what else was computed
 * of samples. Floor 4. Knows no image: a sample is bytes and a label. A file belongs to one
 * data set, told by a hash, and every sample in it has a checksum: samples of another set, cut
 * short or changed, are never taken for pixels. */
#ifndef LK_DATA_IMAGES_CACHE_H
#define LK_DATA_IMAGES_CACHE_H

#include "io/sha256.h"
#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

struct lk_cache;

/* The samples to be cached, and the functions that read them. */
struct lk_cache_samples {
    const char *name; /* for messages */
    const char *what; /* "features": of a file that is not one of decoded samples; NULL */
    int64_t count;
    size_t bytes;             /* of each */
    char sum[LK_SHA256_TEXT]; /* a hash that differs if any sample differs; for cache
                               * files */
    void *context;
    /* Any thread. A broken sample is read as the one that stands in for it. */
    enum lk_status (*read)(void *context, int64_t index, uint8_t *sample, int32_t *label);
    bool (*is_bad)(void *context, int64_t index);
};

/* Memory for all samples, which lk_cache_put() fills. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_cache_open_memory(const struct lk_cache_samples *samples,
                                                  struct lk_cache **cache);

/* Opens the file. If it is not there, is of other samples or damaged, it is made first: all
 * samples are read, on all cores, into a new file that then replaces it. Processes may share
 * it. Where it cannot be written (a full disk) a warning says so, and `cache` is NULL. fails:
 * LK_E_DATA a file that is no cache, which is left alone; as `read` */
LK_MUST_CHECK enum lk_status lk_cache_open_file(const char *path,
                                                const struct lk_cache_samples *samples,
                                                struct lk_cache **cache);

/* Opens the file if it is there, of these samples and whole; else `cache` is NULL, and `fault`
 * says why. fails: LK_E_DATA a file that is no cache of its kind; LK_E_IO */
LK_MUST_CHECK enum lk_status lk_cache_open_there(const char *path,
                                                 const struct lk_cache_samples *samples,
                                                 struct lk_cache **cache, const char **fault);

/* Begins a file that lk_cache_put() fills, in any order, and lk_cache_finish() puts in the
 * place of one that is there; only then it can be read. fails: LK_E_IO, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_cache_begin_file(const char *path,
                                                 const struct lk_cache_samples *samples,
                                                 struct lk_cache **cache);

/* Once all samples of such a file are put. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_cache_finish(struct lk_cache *cache,
                                             const struct lk_cache_samples *samples);

/* Release it, and drop a file that is not finished. NULL is fine. */
void lk_cache_close(struct lk_cache *cache);

/* Reads a sample from the cache; false: it is not there, or its checksum is wrong. Any thread.
 */
bool lk_cache_find(struct lk_cache *cache, int64_t index, uint8_t *sample, int32_t *label);

/* A sample that is kept in memory; NULL: it is not there, or in a file. Any thread. */
const uint8_t *lk_cache_kept(const struct lk_cache *cache, int64_t index);

/* Keeps a sample in memory, or in a file that was begun; does nothing to one that was opened.
 * Any thread. */
void lk_cache_put(struct lk_cache *cache, int64_t index, const uint8_t *sample, int32_t label);

/* Whether the file that is being filled could be written so far. Any thread. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_cache_check(const struct lk_cache *cache);

/* Whether the sample was broken when the file was made. */
bool lk_cache_is_bad(const struct lk_cache *cache, int64_t index);

#endif
