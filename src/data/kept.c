/* A data set of computed records, over a cache of samples. */
#include "data/kept.h"

#include "base/fail.h"
#include "base/half.h"
#include "base/log.h"
#include "data/data.h"
#include "data/images/cache.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

struct lk_kept {
    struct lk_kept_config config;
    char *path;
    struct lk_cache *cache;
    size_t bytes;                /* of a record */
    size_t each[LK_MOST_FIELDS]; /* of its fields */
    bool is_whole;
};

/* --- opening ------------------------------------------------------------------------------ */

static struct lk_cache_samples samples_of(const struct lk_kept *kept)
{
    struct lk_cache_samples samples = {.name = kept->config.name,
                                       .what = "features",
                                       .count = kept->config.count,
                                       .bytes = kept->bytes};
    memcpy(samples.sum, kept->config.sum, sizeof samples.sum);
    return samples;
}

size_t lk_kept_field_bytes(const struct lk_kept_config *config, int field)
{
    const size_t bytes = lk_field_bytes(&config->fields[field]);
    return config->is_half[field] ? bytes / 2 : bytes;
}

static enum lk_status measure(struct lk_kept *kept, size_t *all)
{
    const struct lk_kept_config *c = &kept->config;
    for (int f = 0; f < c->field_count; f++) {
        kept->each[f] = lk_kept_field_bytes(c, f);
        if (__builtin_add_overflow(kept->bytes, kept->each[f], &kept->bytes))
            return lk_fail(LK_E_MEMORY, "features of more bytes than can be counted");
    }
    if (c->count < 1 || kept->bytes == 0 ||
        __builtin_mul_overflow((size_t)c->count, kept->bytes, all))
        return lk_fail(LK_E_MEMORY, "%lld features of %zu bytes: more than can be counted",
                       (long long)c->count, kept->bytes);
    return LK_OK;
}

static size_t memory_there(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    unsigned long long kilobytes = 0;
    bool is_told = false;
    while (file && !is_told && fgets(line, sizeof line, file))
        is_told = sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1;
    if (file)
        fclose(file);
    return is_told ? (size_t)kilobytes << 10 : SIZE_MAX;
}

static size_t disk_there(const char *path)
{
    struct statvfs about;
    const char *slash = strrchr(path, '/');
    char *folder = strdup(slash ? path : ".");
    if (folder && slash)
        folder[slash - path + (slash == path)] = '\0';
    const bool is_told = folder && statvfs(folder, &about) == 0;
    free(folder);
    return is_told ? (size_t)about.f_bavail * about.f_frsize : SIZE_MAX;
}

size_t lk_kept_room(const char *path)
{
    return path ? disk_there(path) : memory_there();
}

static enum lk_status check_room(const struct lk_kept *kept, size_t all)
{
    const size_t there = lk_kept_room(kept->path);
    if (all <= there)
        return LK_OK;
    return lk_fail(
        LK_E_MEMORY,
        "the features of %s, %lld of %zu bytes, take %.3g GB, there are %.3g GB %s%s",
        kept->config.name, (long long)kept->config.count, kept->bytes, 1e-9 * (double)all,
        1e-9 * (double)there,
        kept->path ? "free for "
                   : "of free memory: --cache-features FILE keeps "
                     "them in a file",
        kept->path ? kept->path : "");
}

static enum lk_status open_kept(struct lk_kept *kept)
{
    const char *fault = NULL;
    size_t all = 0;
    LK_TRY(measure(kept, &all));
    const struct lk_cache_samples samples = samples_of(kept);
    if (kept->path) {
        LK_TRY(lk_cache_open_there(kept->path, &samples, &kept->cache, &fault));
        kept->is_whole = kept->cache != NULL;
        if (kept->is_whole) {
            lk_log(LK_LOG_INFO, "%s: features are there, in '%s'", kept->config.name,
                   kept->path);
            return LK_OK;
        }
    }
    LK_TRY(check_room(kept, all));
    if (!kept->path)
        return lk_cache_open_memory(&samples, &kept->cache);
    lk_log(LK_LOG_INFO, "%s: computing features into '%s', %.0f MB (the file is %s)",
           kept->config.name, kept->path, 1e-6 * (double)all, fault);
    return lk_cache_begin_file(kept->path, &samples, &kept->cache);
}

enum lk_status lk_kept_open(const struct lk_kept_config *config, struct lk_kept **kept,
                            bool *is_there)
{
    struct lk_kept *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("features", sizeof *made);
    made->config = *config;
    made->path = config->path ? strdup(config->path) : NULL;
    const enum lk_status status = config->path && !made->path
                                      ? lk_fail_memory("a path", strlen(config->path))
                                      : open_kept(made);
    if (status != LK_OK) {
        lk_kept_close(made);
        return status;
    }
    *is_there = made->is_whole;
    *kept = made;
    return LK_OK;
}

void lk_kept_close(struct lk_kept *kept)
{
    if (!kept)
        return;
    lk_cache_close(kept->cache);
    free(kept->path);
    free(kept);
}

size_t lk_kept_record_bytes(const struct lk_kept *kept)
{
    return kept->bytes;
}

enum lk_status lk_kept_put(struct lk_kept *kept, int64_t index, const uint8_t *record)
{
    lk_cache_put(kept->cache, index, record, 0);
    return lk_cache_check(kept->cache);
}

enum lk_status lk_kept_finish(struct lk_kept *kept)
{
    const struct lk_cache_samples samples = samples_of(kept);
    if (kept->path && !kept->is_whole)
        LK_TRY(lk_cache_finish(kept->cache, &samples));
    kept->is_whole = true;
    return LK_OK;
}

/* --- as a data set ------------------------------------------------------------------------ */

static void widen(const uint8_t *halves, size_t bytes, float *to)
{
    for (size_t i = 0; i < bytes / sizeof(uint16_t); i++) {
        uint16_t half;
        memcpy(&half, halves + i * sizeof half, sizeof half);
        to[i] = lk_half_value(half);
    }
}

static void take_apart(const struct lk_kept *kept, const uint8_t *record, void *const to[])
{
    for (int f = 0; f < kept->config.field_count; record += kept->each[f++]) {
        if (!to[f])
            continue;
        if (kept->config.is_half[f])
            widen(record, kept->each[f], to[f]);
        else
            memcpy(to[f], record, kept->each[f]);
    }
}

static enum lk_status read_record(const void *state, int64_t index, void *const to[])
{
    const struct lk_kept *kept = state;
    const uint8_t *record = lk_cache_kept(kept->cache, index);
    int32_t label;
    if (record) {
        take_apart(kept, record, to);
        return LK_OK;
    }
    uint8_t *memory = malloc(kept->bytes);
    if (!memory)
        return lk_fail_memory("features of a sample", kept->bytes);
    const bool is_found = lk_cache_find(kept->cache, index, memory, &label);
    if (is_found)
        take_apart(kept, memory, to);
    free(memory);
    return is_found ? LK_OK
                    : lk_fail(LK_E_DATA,
                              "'%s': features of sample %lld are not what was written there; "
                              "remove the file to have it made anew",
                              kept->path ? kept->path : kept->config.name, (long long)index);
}

static void leave_open(void *state)
{
    (void)state; /* lk_kept_close() does it */
}

static const struct lk_source source = {
    .kind = "features", .usage = "features", .close = leave_open, .read = read_record};

enum lk_status lk_kept_data(struct lk_kept *kept, struct lk_data **data)
{
    const struct lk_kept_config *c = &kept->config;
    const struct lk_data_info info = {
        .name = c->name, .count = c->count, .field_count = c->field_count, .fields = c->fields};
    return lk_data_of_source(&source, kept, &info, data);
}
