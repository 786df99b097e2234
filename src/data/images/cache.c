/* Opening caches, and finding samples in them. */
#include "data/images/cache.h"

#include "base/fail.h"
#include "base/log.h"
#include "data/images/cache_file.h"
#include "io/crc32c.h"
#include "io/file.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* States of a sample that is kept in memory. */
enum { EMPTY, BEING_FILLED, KEPT };

struct lk_cache {
    char *path;                  /* NULL: in memory */
    struct lk_file_draft *draft; /* of a file that is being filled */
    atomic_int write_error;      /* errno of the first write to it that failed */
    const char *name;
    int file;
    bool is_decoded; /* of samples that can be decoded again */
    int64_t count;
    size_t bytes;
    struct lk_cache_entry *entries; /* [count] */
    atomic_bool has_warned;
    uint8_t *kept;       /* [count][bytes] */
    atomic_uchar *keeps; /* [count] */
};

static enum lk_status create(const struct lk_cache_samples *samples, struct lk_cache **cache)
{
    struct lk_cache *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a cache", sizeof *made);
    *made = (struct lk_cache){.name = samples->name,
                              .file = -1,
                              .is_decoded = !samples->what,
                              .count = samples->count,
                              .bytes = samples->bytes};
    made->entries = calloc((size_t)samples->count, sizeof *made->entries);
    if (!made->entries) {
        lk_cache_close(made);
        return lk_fail_memory("a cache", (size_t)samples->count * sizeof *made->entries);
    }
    *cache = made;
    return LK_OK;
}

enum lk_status lk_cache_open_memory(const struct lk_cache_samples *samples,
                                    struct lk_cache **cache)
{
    struct lk_cache *made = NULL;
    LK_TRY(create(samples, &made));
    made->kept = calloc((size_t)made->count, made->bytes);
    made->keeps = calloc((size_t)made->count, sizeof *made->keeps);
    if (!made->kept || !made->keeps) {
        lk_cache_close(made);
        return lk_fail_memory(samples->what ? samples->what : "decoded samples (option cache)",
                              (size_t)samples->count * samples->bytes);
    }
    lk_log(LK_LOG_INFO, "%s: %s are kept, %.0f MB when all are", samples->name,
           samples->what ? samples->what : "decoded samples",
           1e-6 * (double)samples->count * (double)samples->bytes);
    *cache = made;
    return LK_OK;
}

void lk_cache_close(struct lk_cache *cache)
{
    if (!cache)
        return;
    if (cache->file >= 0)
        close(cache->file);
    lk_file_draft_discard(cache->draft);
    free(cache->path);
    free(cache->entries);
    free(cache->kept);
    free(cache->keeps);
    free(cache);
}

/* --- reading --------------------------------------------------------------------------- */

/* Reads exactly `bytes` bytes; false at the end of the file, or where reading fails. */
static bool read_at(int file, int64_t offset, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got =
            pread(file, (char *)to + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static int64_t table_at(const struct lk_cache *cache)
{
    return (int64_t)sizeof(struct lk_cache_header) + cache->count * (int64_t)cache->bytes;
}

/* Why the open file is not a cache of these samples; NULL: it is one, and its table has been
 * read. */
static const char *find_fault(struct lk_cache *cache, const struct lk_cache_samples *samples)
{
    struct lk_cache_header found;
    struct stat about;
    const struct lk_cache_header wanted = lk_cache_header_make(samples);
    const size_t table = (size_t)cache->count * sizeof *cache->entries;
    if (!read_at(cache->file, 0, &found, sizeof found))
        return "cut short";
    if (memcmp(&found, &wanted, sizeof found) != 0)
        return found.crc == lk_crc32c(&found, offsetof(struct lk_cache_header, crc)) &&
                       !found.unused
                   ? (samples->what ? "of other samples, weights or kernels"
                                    : "of other samples")
                   : "damaged";
    if (fstat(cache->file, &about) != 0)
        return "damaged";
    if (about.st_size != table_at(cache) + (int64_t)table ||
        !read_at(cache->file, table_at(cache), cache->entries, table))
        return "not of its length";
    for (int64_t i = 0; i < cache->count; i++)
        if (cache->entries[i].crc_of_entry != lk_cache_entry_checksum(&cache->entries[i]))
            return "damaged";
    return NULL;
}

/* Opens a file that is there. *fault: why it cannot be used; NULL: it can. fails: LK_E_DATA
 * where it is no cache, LK_E_IO */
static enum lk_status open_there(struct lk_cache *cache, const struct lk_cache_samples *samples,
                                 const char **fault)
{
    char begin[sizeof((struct lk_cache_header *)0)->magic] = "";
    *fault = "not there";
    if (cache->file >= 0)
        close(cache->file);
    cache->file = -1;
    if (access(cache->path, F_OK) != 0)
        return LK_OK;
    LK_TRY(lk_file_open(cache->path, &cache->file));
    const bool has_begin = read_at(cache->file, 0, begin, sizeof begin);
    if (!has_begin || memcmp(begin, lk_cache_magic(samples), sizeof begin) != 0)
        return lk_fail(LK_E_DATA,
                       "'%s' is no cache of %s and is left alone: name another file, or "
                       "remove it",
                       cache->path, samples->what ? samples->what : "samples");
    *fault = find_fault(cache, samples);
    return LK_OK;
}

/* Makes the file. If it cannot be written there is no cache; if a sample cannot be read, that
 * is a failure. */
static enum lk_status make(struct lk_cache *cache, const struct lk_cache_samples *samples)
{
    const enum lk_status status = lk_cache_file_make(cache->path, samples, cache->entries);
    if (status != LK_E_IO)
        return status;
    lk_log(LK_LOG_WARNING, "%s: samples are not kept in '%s': %s", samples->name, cache->path,
           lk_error_text());
    lk_error_clear();
    return LK_E_IO;
}

static enum lk_status open_or_make(struct lk_cache *cache,
                                   const struct lk_cache_samples *samples, bool *is_there)
{
    const char *fault = NULL;
    LK_TRY(open_there(cache, samples, &fault));
    *is_there = fault == NULL;
    if (*is_there)
        return LK_OK;
    lk_log(LK_LOG_INFO, "%s: decoding all samples into '%s', %.0f MB (the file is %s)",
           samples->name, cache->path, 1e-6 * (double)samples->count * (double)samples->bytes,
           fault);
    const enum lk_status made = make(cache, samples);
    if (made == LK_E_IO) /* a warning has said so */
        return LK_OK;
    LK_TRY(made);
    LK_TRY(open_there(cache, samples, &fault));
    *is_there = fault == NULL;
    if (fault)
        lk_log(LK_LOG_WARNING, "%s: samples are not kept: '%s' was made and is %s",
               samples->name, cache->path, fault);
    return LK_OK;
}

enum lk_status lk_cache_open_file(const char *path, const struct lk_cache_samples *samples,
                                  struct lk_cache **cache)
{
    struct lk_cache *made = NULL;
    bool is_there = false;
    LK_TRY(create(samples, &made));
    made->path = strdup(path);
    const enum lk_status status = made->path ? open_or_make(made, samples, &is_there)
                                             : lk_fail_memory("a path", strlen(path));
    if (status != LK_OK || !is_there) {
        lk_cache_close(made);
        made = NULL;
    }
    if (status == LK_OK)
        *cache = made;
    return status;
}

/* --- a file that is filled from elsewhere ------------------------------------------------ */

static enum lk_status create_for_file(const char *path, const struct lk_cache_samples *samples,
                                      struct lk_cache **cache)
{
    struct lk_cache *made = NULL;
    LK_TRY(create(samples, &made));
    made->path = strdup(path);
    if (!made->path) {
        lk_cache_close(made);
        return lk_fail_memory("a path", strlen(path));
    }
    *cache = made;
    return LK_OK;
}

enum lk_status lk_cache_open_there(const char *path, const struct lk_cache_samples *samples,
                                   struct lk_cache **cache, const char **fault)
{
    struct lk_cache *made = NULL;
    *cache = NULL;
    LK_TRY(create_for_file(path, samples, &made));
    const enum lk_status status = open_there(made, samples, fault);
    if (status == LK_OK && !*fault)
        *cache = made;
    else
        lk_cache_close(made);
    return status;
}

enum lk_status lk_cache_begin_file(const char *path, const struct lk_cache_samples *samples,
                                   struct lk_cache **cache)
{
    struct lk_cache *made = NULL;
    LK_TRY(create_for_file(path, samples, &made));
    lk_file_remove_left_overs(path);
    const enum lk_status status = lk_file_draft_open(path, &made->draft);
    if (status == LK_OK)
        *cache = made;
    else
        lk_cache_close(made);
    return status;
}

/* Writes all bytes at their place; a failure is kept for lk_cache_check(). */
static void write_at(struct lk_cache *cache, int64_t offset, const void *from, size_t bytes)
{
    const int file = fileno(lk_file_draft_stream(cache->draft));
    for (size_t done = 0; done < bytes;) {
        const ssize_t put = pwrite(file, (const char *)from + done, bytes - done,
                                   (off_t)(offset + (int64_t)done));
        if (put <= 0) {
            int none = 0;
            atomic_compare_exchange_strong(&cache->write_error, &none, errno ? errno : EIO);
            return;
        }
        done += (size_t)put;
    }
}

static void put_in_file(struct lk_cache *cache, int64_t index, const uint8_t *sample,
                        int32_t label)
{
    struct lk_cache_entry *entry = &cache->entries[index];
    *entry = (struct lk_cache_entry){.label = label, .crc = lk_crc32c(sample, cache->bytes)};
    entry->crc_of_entry = lk_cache_entry_checksum(entry);
    write_at(cache, (int64_t)sizeof(struct lk_cache_header) + index * (int64_t)cache->bytes,
             sample, cache->bytes);
}

enum lk_status lk_cache_check(const struct lk_cache *cache)
{
    errno = atomic_load(&cache->write_error);
    return errno ? lk_file_fail("write", cache->path) : LK_OK;
}

enum lk_status lk_cache_finish(struct lk_cache *cache, const struct lk_cache_samples *samples)
{
    const struct lk_cache_header header = lk_cache_header_make(samples);
    const char *fault = NULL;
    write_at(cache, 0, &header, sizeof header);
    write_at(cache, table_at(cache), cache->entries,
             (size_t)cache->count * sizeof *cache->entries);
    LK_TRY(lk_cache_check(cache));
    struct lk_file_draft *draft = cache->draft;
    cache->draft = NULL;
    LK_TRY(lk_file_draft_commit(draft));
    LK_TRY(open_there(cache, samples, &fault));
    return fault ? lk_fail(LK_E_IO, "'%s' was written and is %s", cache->path, fault) : LK_OK;
}

/* --- use ------------------------------------------------------------------------------- */

static bool find_in_file(struct lk_cache *cache, int64_t index, uint8_t *sample, int32_t *label)
{
    const struct lk_cache_entry *entry = &cache->entries[index];
    const int64_t at = (int64_t)sizeof(struct lk_cache_header) + index * (int64_t)cache->bytes;
    if (read_at(cache->file, at, sample, cache->bytes) &&
        lk_crc32c(sample, cache->bytes) == entry->crc) {
        *label = entry->label;
        return true;
    }
    if (!cache->is_decoded)
        return false;
    if (!atomic_exchange(&cache->has_warned, true))
        lk_log(LK_LOG_WARNING,
               "%s: sample %lld in '%s' is not what was written there; such samples are "
               "decoded again: remove the file to have it made anew",
               cache->name, (long long)index, cache->path);
    return false;
}

bool lk_cache_find(struct lk_cache *cache, int64_t index, uint8_t *sample, int32_t *label)
{
    if (cache->path)
        return find_in_file(cache, index, sample, label);
    if (atomic_load(&cache->keeps[index]) != KEPT)
        return false;
    memcpy(sample, cache->kept + (size_t)index * cache->bytes, cache->bytes);
    *label = cache->entries[index].label;
    return true;
}

const uint8_t *lk_cache_kept(const struct lk_cache *cache, int64_t index)
{
    const bool is_kept = !cache->path && atomic_load(&cache->keeps[index]) == KEPT;
    return is_kept ? cache->kept + (size_t)index * cache->bytes : NULL;
}

void lk_cache_put(struct lk_cache *cache, int64_t index, const uint8_t *sample, int32_t label)
{
    unsigned char empty = EMPTY;
    if (cache->draft)
        put_in_file(cache, index, sample, label);
    if (cache->path ||
        !atomic_compare_exchange_strong(&cache->keeps[index], &empty, BEING_FILLED))
        return;
    memcpy(cache->kept + (size_t)index * cache->bytes, sample, cache->bytes);
    cache->entries[index].label = label;
    atomic_store(&cache->keeps[index], KEPT);
}

bool lk_cache_is_bad(const struct lk_cache *cache, int64_t index)
{
    return cache->entries[index].is_bad != 0;
}
