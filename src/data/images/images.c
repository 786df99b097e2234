/* Samples from image files: finds their shape, decodes them, keeps them, replaces broken
 * ones. */
#include "data/images/images.h"

#include "base/fail.h"
#include "base/log.h"
#include "data/images/cache.h"
#include "data/sources/field.h"
#include "io/image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const lk_image_decodings[] = {"scaled", "full", NULL};

enum { MOST_SIDE = 4096, FIRST_TRIES = 100 };

struct lk_images {
    const struct lk_source *source;
    const void *state;
    struct lk_data_info info;
    /* Of a sample: the image, then the fields beside it, where the source has any. */
    size_t bytes, field_at[LK_MOST_FIELDS], field_bytes[LK_MOST_FIELDS];
    int image; /* the field that it is; -1: the source has no fields */
    struct lk_broken *broken;
    int decode; /* enum lk_image_decoding */
    struct lk_image_crop crop;
    struct lk_cache *cache; /* NULL: nothing is kept */
};

enum lk_status lk_images_parse_size(const char *text, int size[2])
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
    size[0] = height;
    size[1] = width;
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

/* Finds the shape of samples, into images->info. A file has grey or colours, and perhaps a
 * transparency, which is dropped. */
static enum lk_status find_shape(struct lk_images *images, const struct lk_image_options *o,
                                 const struct lk_data_options *wanted)
{
    struct lk_data_info *info = &images->info;
    int shape[3] = {0}, size[2] = {wanted->height, wanted->width};
    LK_TRY(lk_images_parse_size(o->size, size));
    info->height = size[0];
    info->width = size[1];
    info->channels = o->channels ? (int)o->channels : wanted->channels;
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

/* Places the fields behind the image, each at a multiple of 4 bytes. */
static void place_fields(struct lk_images *images)
{
    const struct lk_data_info *info = &images->info;
    size_t at = (images->bytes + 3) / 4 * 4;
    images->image = -1;
    for (int f = 0; info->fields && f < info->field_count; f++) {
        if (lk_field_is_image(&info->fields[f])) {
            images->image = f;
            images->field_bytes[f] = images->bytes;
            continue;
        }
        images->field_at[f] = at;
        images->field_bytes[f] = lk_field_bytes(&info->fields[f]);
        at += images->field_bytes[f];
    }
    if (images->image >= 0)
        images->bytes = at;
}

struct lk_broken *lk_images_broken(const struct lk_images *images)
{
    return images->broken;
}

enum lk_status lk_images_check_label(const struct lk_images *images,
                                     const struct lk_encoded *encoded)
{
    if (images->image >= 0 || (encoded->label >= 0 && encoded->label < images->info.classes))
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

/* What is wanted of a sample, and where it goes; NULL: it is not wanted. */
struct wanted {
    const struct lk_images *images;
    const struct lk_image_crop *crop;
    uint8_t *sample;
    int32_t *label;
};

/* The fields beside the image. */
static enum lk_status read_beside(const struct lk_images *images, int64_t index,
                                  uint8_t *sample)
{
    void *to[LK_MOST_FIELDS] = {NULL};
    if (images->image < 0)
        return LK_OK;
    for (int f = 0; f < images->info.field_count; f++)
        to[f] = f == images->image ? NULL : sample + images->field_at[f];
    return images->source->read(images->state, index, to);
}

static enum lk_status read_file(void *context, int64_t index)
{
    const struct wanted *wanted = context;
    const struct lk_images *images = wanted->images;
    const struct lk_decoding decoding = lk_images_decoding(images);
    struct lk_encoded encoded;
    encoded.label = 0;
    LK_TRY(images->source->fetch(images->state, index, &encoded));
    enum lk_status status = lk_images_check_label(images, &encoded);
    if (status == LK_OK)
        status = lk_decode_sample(&decoding, &encoded, wanted->crop, wanted->sample);
    free(encoded.data);
    if (status == LK_OK)
        status = read_beside(images, index, wanted->sample);
    if (status == LK_OK && wanted->label)
        *wanted->label = (int32_t)encoded.label;
    return status;
}

static enum lk_status read_good(const struct lk_images *images, int64_t index,
                                const struct lk_image_crop *crop, uint8_t *sample,
                                int32_t *label)
{
    struct wanted wanted = {images, crop, sample, label};
    return lk_broken_read(images->broken, index, read_file, &wanted);
}

/* --- opening --------------------------------------------------------------------------- */

static enum lk_status read_for_cache(void *context, int64_t index, uint8_t *sample,
                                     int32_t *label)
{
    const struct lk_images *images = context;
    return read_good(images, index, &images->crop, sample, label);
}

static bool is_bad(void *context, int64_t index)
{
    const struct lk_images *images = context;
    return lk_broken_has(images->broken, index);
}

/* A hash of where the samples come from and how they are made: a cache of other samples has
 * another one. */
static enum lk_status identify(const struct lk_images *images, char text[LK_SHA256_TEXT])
{
    const struct lk_data_info *info = &images->info;
    const int64_t shape[] = {info->count,          info->height,        info->width,
                             info->channels,       info->classes,       images->decode,
                             images->crop.size[0], images->crop.size[1]};
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

enum lk_status lk_images_identify(const struct lk_images *images, struct lk_sha256 *sum)
{
    char text[LK_SHA256_TEXT];
    LK_TRY(identify(images, text));
    lk_sha256_add(sum, text, sizeof text);
    return LK_OK;
}

/* Samples that were broken when the cache was made count as broken again. */
static enum lk_status take_bad(const struct lk_images *images)
{
    for (int64_t i = 0; i < images->info.count; i++)
        if (lk_cache_is_bad(images->cache, i))
            lk_broken_mark(images->broken, i);
    return lk_broken_check(images->broken);
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
    const enum lk_data_part part = images->info.part;
    const bool is_first = request->part == LK_DATA_TRAIN && part == LK_DATA_TRAIN;
    snprintf(path, sizeof path, "%s%s", cache,
             is_first                     ? ""
             : part == LK_DATA_VALIDATION ? ".val"
                                          : ".test");
    LK_TRY(identify(images, samples.sum));
    LK_TRY(lk_cache_open_file(path, &samples, &images->cache));
    return images->cache ? take_bad(images) : LK_OK;
}

static enum lk_status create(struct lk_images *images, const struct lk_data_request *request,
                             const struct lk_data_options *wanted)
{
    const struct lk_image_options *o = request->options;
    const char *max_bad = *o->max_bad ? o->max_bad : wanted->max_bad ? wanted->max_bad : "1%";
    const struct lk_broken_config broken = {.name = images->info.name,
                                            .count = images->info.count,
                                            .max_bad = max_bad,
                                            .lost = request->lost,
                                            .takes_files = true};
    LK_TRY(lk_broken_create(&broken, &images->broken));
    LK_TRY(find_shape(images, o, wanted));
    place_fields(images);
    images->decode = o->decode;
    if (wanted->decode && strcmp(wanted->decode, lk_image_decodings[LK_DECODE_FULL]) == 0)
        images->decode = LK_DECODE_FULL;
    images->crop = (struct lk_image_crop){.size = {wanted->part_height, wanted->part_width},
                                          .is_middle = true};
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
    lk_broken_destroy(images->broken);
    lk_cache_close(images->cache);
    free(images);
}

struct lk_image_crop lk_images_crop(const struct lk_images *images)
{
    return images->crop;
}

bool lk_images_are_kept(const struct lk_images *images)
{
    return images->cache != NULL;
}

static enum lk_status read_kept(const struct lk_images *images, int64_t index, uint8_t *sample,
                                int32_t *label)
{
    if (images->cache && lk_cache_find(images->cache, index, sample, label))
        return LK_OK;
    LK_TRY(read_good(images, index, &images->crop, sample, label));
    if (images->cache)
        lk_cache_put(images->cache, index, sample, *label);
    return LK_OK;
}

enum lk_status lk_images_read(const struct lk_images *images, int64_t index,
                              const struct lk_image_crop *crop, uint8_t *sample, int32_t *label)
{
    int32_t unused;
    uint8_t *pixels = sample;
    if (!sample && !label)
        return LK_OK;
    if (!sample && !(pixels = malloc(images->bytes)))
        return lk_fail_memory("a sample", images->bytes);
    label = label ? label : &unused;
    const enum lk_status status = crop ? read_good(images, index, crop, pixels, label)
                                       : read_kept(images, index, pixels, label);
    if (!sample)
        free(pixels);
    return status;
}

enum lk_status lk_images_read_fields(const struct lk_images *images, int64_t index,
                                     const struct lk_image_crop *crop,
                                     void *const to[LK_MOST_FIELDS])
{
    bool is_wanted = false;
    if (images->image < 0)
        return lk_images_read(images, index, crop, to[LK_FIELD_IMAGE], to[LK_FIELD_CLASS]);
    for (int f = 0; f < images->info.field_count; f++)
        is_wanted = is_wanted || to[f];
    if (!is_wanted)
        return LK_OK;
    uint8_t *sample = malloc(images->bytes);
    if (!sample)
        return lk_fail_memory("a sample", images->bytes);
    const enum lk_status status = lk_images_read(images, index, crop, sample, NULL);
    for (int f = 0; f < images->info.field_count && status == LK_OK; f++)
        if (to[f])
            memcpy(to[f], sample + images->field_at[f], images->field_bytes[f]);
    free(sample);
    return status;
}
