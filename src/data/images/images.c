/* Samples from image files: finding their shape, decoding, keeping, replacing broken ones. */
#include "data/images/images.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/number.h"
#include "data/images/cache.h"
#include "io/image/image.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const lk_image_decodings[] = {"scaled", "full", NULL};

enum { MOST_SIDE = 4096, MOST_NAMED = 20, FIRST_TRIES = 100 };

struct lk_images {
    const struct lk_source *source;
    const void *state;
    struct lk_data_info info;
    size_t bytes; /* of a sample */
    int64_t most_bad, lost;
    char max_bad[16];
    atomic_llong bad;
    atomic_uchar *is_bad; /* [count] */
    int decode;           /* enum lk_image_decoding */
    struct lk_image_part part;
    struct lk_cache *cache; /* NULL: nothing is kept */
};

/* "1%" of all, or a number. */
static enum lk_status parse_max_bad(const char *text, int64_t count, int64_t *most)
{
    char *end;
    const double number = lk_number_read(text, &end);
    const bool is_share = *end == '%';
    if (end == text || *(end + is_share) || !(number >= 0 && number <= (is_share ? 100 : 1e15)))
        return lk_fail(LK_E_ARGUMENT,
                       "max_bad '%s': expected a share such as 1%%, or a number of samples",
                       text);
    *most = (int64_t)(is_share ? number / 100 * (double)count : number);
    return LK_OK;
}

static enum lk_status parse_size(const char *text, struct lk_data_info *info)
{
    char more;
    int height, width;
    if (!*text)
        return LK_OK;
    if (sscanf(text, "%dx%d%c", &height, &width, &more) != 2 || height < 1 || width < 1 ||
        height > MOST_SIDE || width > MOST_SIDE)
        return lk_fail(LK_E_ARGUMENT,
                       "size '%s': expected height x width of at most %d, such as 96x96", text,
                       MOST_SIDE);
    info->height = height;
    info->width = width;
    return LK_OK;
}

/* The shape of the first image that can be read. */
static enum lk_status measure_first(const struct lk_images *images, int shape[3])
{
    const int64_t count = images->info.count;
    enum lk_status status = LK_OK;
    for (int64_t i = 0; i < count && i < FIRST_TRIES; i++) {
        struct lk_encoded encoded;
        lk_error_clear();
        status = images->source->fetch(images->state, i, &encoded);
        if (status == LK_OK) {
            status = lk_image_measure(encoded.data, encoded.bytes, encoded.where, shape);
            free(encoded.data);
        }
        if (status == LK_OK)
            return LK_OK;
    }
    return status;
}

/* Into images->info. A file has grey or colours, with or without a transparency that is
 * dropped.
 */
static enum lk_status find_shape(struct lk_images *images, const struct lk_image_options *o,
                                 const struct lk_data_options *wanted)
{
    struct lk_data_info *info = &images->info;
    int shape[3] = {0};
    info->height = wanted->height;
    info->width = wanted->width;
    info->channels = o->channels ? (int)o->channels : wanted->channels;
    LK_TRY(parse_size(o->size, info));
    if (info->height == 0 || info->channels == 0)
        LK_TRY(measure_first(images, shape));
    if (info->height == 0) {
        info->height = shape[0];
        info->width = shape[1];
    }
    if (info->channels == 0)
        info->channels = shape[2] < 3 ? 1 : 3;
    if (info->channels == 2 || info->height > MOST_SIDE || info->width > MOST_SIDE)
        return lk_fail(LK_E_ARGUMENT,
                       "samples of %dx%dx%d: expected sides of at most %d and 1, 3 or 4 "
                       "channels",
                       info->height, info->width, info->channels, MOST_SIDE);
    images->bytes = (size_t)info->height * (size_t)info->width * (size_t)info->channels;
    return LK_OK;
}

int64_t lk_images_bad(const struct lk_images *images)
{
    return atomic_load(&images->bad);
}

int64_t lk_images_lost(const struct lk_images *images)
{
    return images->lost;
}

int64_t lk_images_most_bad(const struct lk_images *images, int64_t count)
{
    int64_t most = 0;
    (void)parse_max_bad(images->max_bad, count, &most); /* it was parsed before */
    return most;
}

void lk_images_mark_bad(struct lk_images *images, int64_t index)
{
    if (!atomic_exchange(&images->is_bad[index], 1))
        atomic_fetch_add(&images->bad, 1);
}

enum lk_status lk_images_check_label(const struct lk_images *images,
                                     const struct lk_encoded *encoded)
{
    if (encoded->label >= 0 && encoded->label < images->info.classes)
        return LK_OK;
    return lk_fail(LK_E_DATA, "'%s': label %lld is not in 0..%d", encoded->where,
                   (long long)encoded->label, images->info.classes - 1);
}

struct lk_decoding lk_images_decoding(const struct lk_images *images)
{
    const struct lk_data_info *info = &images->info;
    return (struct lk_decoding){info->height, info->width, info->channels,
                                images->decode == LK_DECODE_FULL};
}

static enum lk_status read_file(const struct lk_images *images, int64_t index,
                                const struct lk_image_part *part, uint8_t *sample,
                                int32_t *label)
{
    const struct lk_decoding decoding = lk_images_decoding(images);
    struct lk_encoded encoded;
    LK_TRY(images->source->fetch(images->state, index, &encoded));
    enum lk_status status = lk_images_check_label(images, &encoded);
    if (status == LK_OK)
        status = lk_decode_sample(&decoding, &encoded, part, sample);
    free(encoded.data);
    if (status == LK_OK)
        *label = (int32_t)encoded.label;
    return status;
}

/* Says once that a sample is broken and why. fails: LK_E_DATA where that is one too many */
static enum lk_status note_bad(struct lk_images *images, int64_t index)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", lk_error_text());
    lk_error_clear();
    if (atomic_exchange(&images->is_bad[index], 1))
        return LK_OK;
    const long long bad = atomic_fetch_add(&images->bad, 1) + 1;
    if (bad > images->most_bad) { /* to whoever reads it next, it is one too many again */
        atomic_fetch_sub(&images->bad, 1);
        atomic_store(&images->is_bad[index], 0);
        return lk_fail(LK_E_DATA,
                       "%s: %lld of %lld samples are broken, max_bad=%s allows %lld; the last "
                       "is %s",
                       images->info.name, bad, (long long)images->info.count, images->max_bad,
                       (long long)images->most_bad, why);
    }
    if (bad <= MOST_NAMED)
        lk_log(LK_LOG_WARNING, "%s: broken sample %lld is left out: %s%s", images->info.name,
               (long long)index, why, bad == MOST_NAMED ? " (others are not named)" : "");
    return LK_OK;
}

static enum lk_status read_good(struct lk_images *images, int64_t index,
                                const struct lk_image_part *part, uint8_t *sample,
                                int32_t *label)
{
    const int64_t count = images->info.count;
    for (int64_t tried = 0; tried < count; tried++) {
        const int64_t i = (index + tried) % count;
        if (atomic_load(&images->is_bad[i]))
            continue;
        const enum lk_status status = read_file(images, i, part, sample, label);
        if (status != LK_E_DATA && status != LK_E_IO)
            return status;
        LK_TRY(note_bad(images, i));
    }
    return lk_fail(LK_E_DATA, "%s: all %lld samples are broken", images->info.name,
                   (long long)count);
}

/* --- opening --------------------------------------------------------------------------- */

static enum lk_status read_for_cache(void *context, int64_t index, uint8_t *sample,
                                     int32_t *label)
{
    struct lk_images *images = context;
    return read_good(images, index, &images->part, sample, label);
}

static bool is_bad(void *context, int64_t index)
{
    const struct lk_images *images = context;
    return atomic_load(&images->is_bad[index]);
}

/* What tells the samples from all others: where they come from, and what is made of them. */
static enum lk_status identify(const struct lk_images *images, char text[LK_SHA256_TEXT])
{
    const struct lk_data_info *info = &images->info;
    const int64_t shape[] = {info->count,          info->height,        info->width,
                             info->channels,       info->classes,       images->decode,
                             images->part.size[0], images->part.size[1]};
    struct lk_sha256 sum = {0};
    LK_TRY(lk_sha256_init(&sum));
    lk_sha256_add(&sum, LK_VERSION, strlen(LK_VERSION) + 1);
    lk_sha256_add(&sum, lk_image_decoder(), strlen(lk_image_decoder()) + 1);
    lk_sha256_add(&sum, images->source->kind, strlen(images->source->kind) + 1);
    lk_sha256_add(&sum, shape, sizeof shape);
    images->source->identify(images->state, &sum);
    lk_sha256_finish(&sum, text);
    lk_sha256_clear(&sum);
    return LK_OK;
}

/* What was broken when the file was made is so again, and counts. */
static enum lk_status take_bad(struct lk_images *images)
{
    for (int64_t i = 0; i < images->info.count; i++)
        if (lk_cache_is_bad(images->cache, i))
            lk_images_mark_bad(images, i);
    const long long bad = atomic_load(&images->bad);
    if (bad > images->most_bad)
        return lk_fail(LK_E_DATA, "%s: %lld of %lld samples are broken, max_bad=%s allows %lld",
                       images->info.name, bad, (long long)images->info.count, images->max_bad,
                       (long long)images->most_bad);
    return LK_OK;
}

/* cache: "memory", a file, or "none", as NULL and "". Each part of a set has its own file. */
static enum lk_status open_cache(struct lk_images *images,
                                 const struct lk_data_request *request, const char *cache)
{
    struct lk_cache_samples samples = {.name = images->info.name,
                                       .count = images->info.count,
                                       .bytes = images->bytes,
                                       .context = images,
                                       .read = read_for_cache,
                                       .is_bad = is_bad};
    char path[1024];
    if (!cache || !*cache || strcmp(cache, "none") == 0)
        return LK_OK;
    if (strcmp(cache, "memory") == 0)
        return lk_cache_open_memory(&samples, &images->cache);
    snprintf(path, sizeof path, "%s%s", cache, request->part == LK_DATA_TRAIN ? "" : ".test");
    LK_TRY(identify(images, samples.sum));
    LK_TRY(lk_cache_open_file(path, &samples, &images->cache));
    return images->cache ? take_bad(images) : LK_OK;
}

static enum lk_status create(struct lk_images *images, const struct lk_data_request *request,
                             const struct lk_data_options *wanted)
{
    const struct lk_image_options *o = request->options;
    const size_t count = (size_t)images->info.count;
    const char *max_bad = *o->max_bad ? o->max_bad : wanted->max_bad ? wanted->max_bad : "1%";
    snprintf(images->max_bad, sizeof images->max_bad, "%s", max_bad);
    LK_TRY(parse_max_bad(max_bad, images->info.count, &images->most_bad));
    LK_TRY(find_shape(images, o, wanted));
    images->is_bad = calloc(count, sizeof *images->is_bad);
    if (!images->is_bad)
        return lk_fail_memory("marks of broken samples", count);
    images->lost = request->lost;
    images->decode = o->decode;
    if (wanted->decode && strcmp(wanted->decode, lk_image_decodings[LK_DECODE_FULL]) == 0)
        images->decode = LK_DECODE_FULL;
    images->part = (struct lk_image_part){.size = {wanted->part_height, wanted->part_width},
                                          .is_middle = true};
    atomic_init(&images->bad, images->lost);
    const char *cache = *o->cache ? o->cache : wanted->cache;
    if (cache && *cache && strcmp(cache, "none") != 0 && wanted->parts_by_chance)
        return lk_fail(
            LK_E_ARGUMENT,
            "cache '%s': samples that are cropped by chance before resize are others "
            "each time",
            cache);
    return open_cache(images, request, cache);
}

enum lk_status lk_images_create(const struct lk_source *source, const void *state,
                                const struct lk_data_request *request,
                                const struct lk_data_options *wanted, struct lk_data_info *info,
                                struct lk_images **images)
{
    struct lk_images *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a data set", sizeof *made);
    made->source = source;
    made->state = state;
    made->info = *info;
    const enum lk_status status = create(made, request, wanted);
    if (status != LK_OK) {
        lk_images_destroy(made);
        return lk_fail_within(status, "%s:%s", source->kind, request->text);
    }
    made->info.decodes = true;
    *info = made->info;
    *images = made;
    return LK_OK;
}

void lk_images_destroy(struct lk_images *images)
{
    if (!images)
        return;
    free(images->is_bad);
    lk_cache_close(images->cache);
    free(images);
}

struct lk_image_part lk_images_part(const struct lk_images *images)
{
    return images->part;
}

bool lk_images_are_kept(const struct lk_images *images)
{
    return images->cache != NULL;
}

enum lk_status lk_images_read(struct lk_images *images, int64_t index,
                              const struct lk_image_part *part, uint8_t *sample, int32_t *label)
{
    if (part)
        return read_good(images, index, part, sample, label);
    if (images->cache && lk_cache_find(images->cache, index, sample, label))
        return LK_OK;
    LK_TRY(read_good(images, index, &images->part, sample, label));
    if (images->cache)
        lk_cache_put(images->cache, index, sample, *label);
    return LK_OK;
}
