/* Batches by number: which samples each one holds, and reading them through the pipeline. */
#include "data/batches/batches.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/parallel.h"
#include "data/batches/lengths.h"
#include "data/batches/order.h"
#include "data/batches/prefetch.h"
#include "data/batches/readers.h"
#include "data/data.h"
#include "data/stages/augment.h"
#include "data/stages/pipeline.h"
#include "data/stages/transform.h"

#include <lockstep/data.h>
#include <stdlib.h>
#include <string.h>

struct lk_batches {
    const struct lk_data *data;
    struct lk_batches_options options;
    int64_t all;   /* samples, each in all its versions counted once */
    int64_t count; /* samples of an epoch, without a remainder that is dropped */
    int64_t per_epoch;
    struct lk_epoch_orders *orders;
    struct lk_pipeline pipeline;
    struct lk_transform transform;
    struct lk_augment augment;
    struct lk_standardize standardize; /* covers no field where the pipeline does not
                                        * standardize */
    struct lk_prefetch *prefetch;      /* NULL: whoever wants a batch reads it himself */
    struct lk_readers *readers;        /* these read for him, where they are not NULL */
    int field_count;
    struct lk_field fields[LK_MOST_FIELDS]; /* with the types and shapes that they have in
                                             * batches */
    size_t field_bytes[LK_MOST_FIELDS];
};

static size_t image_bytes(const struct lk_batches *b)
{
    const struct lk_augment *a = &b->augment;
    return (size_t)a->height * (size_t)a->width * (size_t)a->channels;
}

/* Whether the pipeline cuts other rectangles out of images than the data set does. The data set
 * may keep its samples in memory, but not such ones. */
static bool crops_files(const struct lk_batches *b)
{
    const int *size = b->pipeline.first_crop;
    if (!size[0] || b->pipeline.first_crop_by_chance)
        return size[0];
    const struct lk_image_crop own = lk_images_crop(b->data->images);
    return own.size[0] != size[0] || own.size[1] != size[1];
}

/* Reads a whole sample. Where a rectangle of the image is chosen at random, the choice is a
 * function of (seed, epoch, index) alone. */
static enum lk_status read_sample(const struct lk_batches *b, int64_t epoch, int64_t index,
                                  void *const to[])
{
    const int *size = b->pipeline.first_crop;
    struct lk_image_crop crop = {.size = {size[0], size[1]},
                                 .is_middle = !b->pipeline.first_crop_by_chance};
    if (b->options.versions > 1)
        index += epoch % b->options.versions * b->all;
    if (!crops_files(b))
        return lk_data_read_fields(b->data, &index, 1, to);
    lk_pipeline_draw_crop(b->options.seed, epoch, index, crop.at);
    return lk_data_read_crop(b->data, index, &crop, to);
}

/* whole: memory for an image that is to be rotated and cropped; NULL: it is neither. */
static enum lk_status read_samples(const struct lk_batches *b, struct lk_batches_position at,
                                   const int64_t *indices, int64_t count, void *const to[],
                                   uint8_t *whole)
{
    for (int64_t i = 0; i < count; i++) {
        void *sample[LK_MOST_FIELDS] = {NULL};
        for (int f = 0; f < b->field_count; f++)
            sample[f] = to[f] ? (uint8_t *)to[f] + (size_t)i * b->field_bytes[f] : NULL;
        uint8_t *image = whole ? sample[b->data->image] : NULL;
        if (whole)
            sample[b->data->image] = whole;
        LK_TRY(read_sample(b, at.epoch, indices[i], sample));
        if (whole)
            lk_augment_apply(&b->augment, at.epoch, indices[i], whole, image);
    }
    return LK_OK;
}

/* As lk_batches_read_fields(), on the caller's thread. */
static enum lk_status read_now(void *context, int64_t batch, int64_t first, int64_t count,
                               void *const to[])
{
    struct lk_batches *b = context;
    const struct lk_batches_position at = lk_batches_position(b, batch);
    const bool augments =
        b->data->image >= 0 && to[b->data->image] && lk_augment_is_any(&b->augment);
    uint8_t *whole = augments ? malloc(b->data->sample_bytes) : NULL;
    if (augments && !whole)
        return lk_fail_memory("a sample", b->data->sample_bytes);
    struct lk_epoch_order *order = lk_epoch_orders_acquire(b->orders, at.epoch);
    const enum lk_status status =
        read_samples(b, at, order->items + at.index + first, count, to, whole);
    lk_epoch_orders_release(b->orders, order);
    free(whole);
    if (status == LK_OK)
        lk_standardize_apply(&b->standardize, count, to);
    return status;
}

static int64_t count_samples(void *context, int64_t batch)
{
    return lk_batches_size(context, batch);
}

/* No more threads than cores where samples are decoded: decoding waits for nothing but the
 * processor. */
static int choose_threads(const struct lk_batches *b)
{
    enum { MOST_THREADS = 64 };
    if (b->options.threads != LK_BATCHES_AUTO)
        return b->options.threads;
    return lk_data_info(b->data)->decodes ? lk_parallel_cores(MOST_THREADS) : 0;
}

static enum lk_status start_readers(struct lk_batches *b, double bytes)
{
    enum { MOST_THREADS = 8 }; /* that memory keeps up with */
    struct lk_readers_config config = {.threads = lk_parallel_cores(MOST_THREADS),
                                       .field_count = b->field_count,
                                       .read = read_now,
                                       .context = b};
    if (b->options.threads != LK_BATCHES_AUTO || config.threads == 1 || bytes < LK_LEAST_SHARED)
        return LK_OK;
    memcpy(config.field_bytes, b->field_bytes, sizeof config.field_bytes);
    return lk_readers_create(&config, &b->readers);
}

/* Holds four batches. Where the user gave no number, up to 16 are held if readers had to wait,
 * unless batches are very large. */
static enum lk_status start_prefetch(struct lk_batches *b)
{
    enum { HELD = 4, MOST_HELD = 16 };
    static const double most_bytes = 512e6;
    const struct lk_data_info *info = lk_data_info(b->data);
    struct lk_prefetch_config config = {
        .threads = choose_threads(b),
        .batches = b->options.prefetch ? b->options.prefetch : HELD,
        .size = b->options.size < b->count ? b->options.size : b->count,
        .field_count = b->field_count,
        .end = b->options.end > 0 ? b->options.end : INT64_MAX,
        .count = count_samples,
        .read = read_now,
        .context = b,
    };
    double bytes = 0;
    for (int f = 0; f < b->field_count; f++) {
        config.field_bytes[f] = b->field_bytes[f];
        bytes += (double)config.size * (double)b->field_bytes[f];
    }
    if (config.threads == 0)
        return start_readers(b, bytes);
    if (b->options.prefetch == 0)
        config.most_batches =
            most_bytes / bytes < MOST_HELD ? (int)(most_bytes / bytes) : MOST_HELD;
    lk_log(LK_LOG_DEBUG, "%s: %d threads read ahead, in %.3g MB", info->name, config.threads,
           1e-6 * config.batches * bytes);
    return lk_prefetch_create(&config, &b->prefetch);
}

/* The height and width with which samples end: as asked for, else those that the pipeline crops
 * to. */
static enum lk_status find_size(const struct lk_batches *b, int size[2])
{
    const struct lk_data_info *info = lk_data_info(b->data);
    const struct lk_batches_options *o = &b->options;
    const int *crop = b->pipeline.crop, *resize = b->pipeline.resize;
    if (resize[0] && (info->height != resize[0] || info->width != resize[1]))
        return lk_fail(
            LK_E_ARGUMENT, "the pipeline resizes to %dx%d, samples of '%s' have %dx%d: %s",
            resize[0], resize[1], info->name, info->height, info->width,
            info->decodes ? "its SPEC says so (size=)" : "only image files are resized");
    if (o->height && crop[0] && (o->height != crop[0] || o->width != crop[1]))
        return lk_fail(LK_E_ARGUMENT, "the pipeline crops to %dx%d, expected are %dx%d",
                       crop[0], crop[1], o->height, o->width);
    size[0] = o->height ? o->height : crop[0] ? crop[0] : info->height;
    size[1] = o->width ? o->width : crop[0] ? crop[1] : info->width;
    return LK_OK;
}

static enum lk_status check_first_crop(const struct lk_batches *b)
{
    if (b->pipeline.first_crop[0] && !b->data->images)
        return lk_fail(LK_E_ARGUMENT, "'%s': only image files are cropped before resize",
                       lk_data_info(b->data)->name);
    if (b->pipeline.first_crop[0] && b->pipeline.first_crop_by_chance &&
        lk_images_are_kept(b->data->images))
        return lk_fail(
            LK_E_ARGUMENT,
            "'%s' keeps samples, which are others each time where they are cropped by "
            "chance before resize",
            lk_data_info(b->data)->name);
    return LK_OK;
}

static void describe_fields(struct lk_batches *b)
{
    const struct lk_data_info *info = lk_data_info(b->data);
    b->field_count = info->field_count;
    for (int f = 0; f < b->field_count; f++) {
        b->fields[f] = info->fields[f];
        if (f == b->data->image) {
            b->fields[f].shape.dim[0] = b->augment.height;
            b->fields[f].shape.dim[1] = b->augment.width;
        }
        b->field_bytes[f] = lk_field_bytes(&b->fields[f]);
    }
}

static enum lk_status set_standardize(struct lk_batches *b)
{
    if (!b->pipeline.standardizes)
        return LK_OK;
    LK_TRY(lk_standardize_parse(b->pipeline.standardize, &b->standardize));
    return lk_standardize_bind(&b->standardize, b->fields, b->field_count);
}

/* Sets what is done to images, and the size with which they end. */
static enum lk_status set_images(struct lk_batches *b)
{
    const struct lk_data_info *info = lk_data_info(b->data);
    int size[2] = {0};
    LK_TRY(lk_pipeline_transform(&b->pipeline, info->channels, &b->transform));
    LK_TRY(check_first_crop(b));
    LK_TRY(find_size(b, size));
    b->augment = (struct lk_augment){
        .rotate = b->pipeline.rotate,
        .crops_by_chance = b->pipeline.crops_by_chance,
        .padding = (int)b->pipeline.padding,
        .seed = b->options.seed,
        .from_height = info->height,
        .from_width = info->width,
        .height = size[0],
        .width = size[1],
        .channels = info->channels,
    };
    return lk_augment_check(&b->augment);
}

static enum lk_status refuse_images(const struct lk_batches *b)
{
    const char *stage = lk_pipeline_image_stage(&b->pipeline);
    const char *name = lk_data_info(b->data)->name;
    if (stage)
        return lk_fail(LK_E_ARGUMENT, "stage '%s' is for images, '%s' has none", stage, name);
    if (b->options.height)
        return lk_fail(LK_E_ARGUMENT, "images of %dx%d are expected, '%s' has none",
                       b->options.height, b->options.width, name);
    return LK_OK;
}

static enum lk_status set_pipeline(struct lk_batches *b)
{
    const struct lk_batches_options *o = &b->options;
    if (o->pipeline)
        LK_TRY(lk_pipeline_parse(o->pipeline, true, &b->pipeline));
    else if (o->eval_pipeline)
        LK_TRY(lk_pipeline_parse(o->eval_pipeline, false, &b->pipeline));
    LK_TRY(b->data->image >= 0 ? set_images(b) : refuse_images(b));
    describe_fields(b);
    return set_standardize(b);
}

/* Prepares the orders of epochs, by length where buckets are wanted. */
static enum lk_status make_orders(struct lk_batches *b)
{
    const struct lk_batches_options *o = &b->options;
    const struct lk_data *data = o->lengths ? o->lengths : b->data;
    struct lk_order_config config = {.shuffle = o->shuffle,
                                     .seed = o->seed,
                                     .count = b->all,
                                     .batch = o->size,
                                     .bucket = o->bucket};
    if (o->bucket < 0)
        return lk_fail(LK_E_ARGUMENT, "a bucket of %d batches: expected 0 or more", o->bucket);
    if (o->bucket > 0 && lk_data_info(data)->count != b->all)
        return lk_fail(LK_E_ARGUMENT, "lengths of %lld samples are given for %lld",
                       (long long)lk_data_info(data)->count, (long long)b->all);
    if (o->bucket > 0)
        LK_TRY(lk_lengths_read(data, &config.lengths));
    return lk_epoch_orders_create(&config, &b->orders);
}

enum lk_status lk_batches_create(const struct lk_data *data,
                                 const struct lk_batches_options *options,
                                 struct lk_batches **batches)
{
    const int versions = options->versions > 1 ? options->versions : 1;
    const int64_t count = lk_data_info(data)->count / versions;
    const bool drops = options->drop_remainder;
    if (options->threads < LK_BATCHES_AUTO || options->threads > 1024)
        return lk_fail(LK_E_ARGUMENT, "%d threads to read ahead: expected 0..1024",
                       options->threads);
    if (options->prefetch < 0 || options->prefetch == 1 || options->prefetch > 1024)
        return lk_fail(LK_E_ARGUMENT, "%d batches to hold: expected 2..1024",
                       options->prefetch);
    if (options->size < 1 || (drops && options->size > count))
        return lk_fail(LK_E_ARGUMENT, "a batch of %d: expected 1..%lld", options->size,
                       drops ? (long long)count : (long long)INT32_MAX);
    if (count > UINT32_MAX)
        return lk_fail(LK_E_UNSUPPORTED, "%lld samples; at most 2^32 - 1 can be put in order",
                       (long long)count);
    struct lk_batches *b = calloc(1, sizeof *b);
    if (!b)
        return lk_fail_memory("batches", sizeof *b);
    *b = (struct lk_batches){.data = data,
                             .options = *options,
                             .all = count,
                             .count = drops ? count - count % options->size : count};
    b->per_epoch = (b->count + options->size - 1) / options->size;
    enum lk_status status = set_pipeline(b);
    if (status == LK_OK)
        status = make_orders(b);
    if (status == LK_OK)
        status = start_prefetch(b);
    if (status != LK_OK) {
        lk_batches_destroy(b);
        return status;
    }
    *batches = b;
    return LK_OK;
}

void lk_batches_destroy(struct lk_batches *batches)
{
    if (!batches)
        return;
    lk_prefetch_destroy(batches->prefetch);
    lk_readers_destroy(batches->readers);
    lk_epoch_orders_destroy(batches->orders);
    free(batches);
}

void lk_batches_shape(const struct lk_batches *batches, int shape[3])
{
    shape[0] = batches->augment.height;
    shape[1] = batches->augment.width;
    shape[2] = batches->augment.channels;
}

int64_t lk_batches_per_epoch(const struct lk_batches *batches)
{
    return batches->per_epoch;
}

struct lk_batches_position lk_batches_position(const struct lk_batches *b, int64_t batch)
{
    return (struct lk_batches_position){batch / b->per_epoch,
                                        batch % b->per_epoch * b->options.size};
}

int64_t lk_batches_size(const struct lk_batches *b, int64_t batch)
{
    const int64_t left = b->count - lk_batches_position(b, batch).index;
    return left < b->options.size ? left : b->options.size;
}

enum lk_status lk_batches_find(const struct lk_batches *b, struct lk_batches_position position,
                               int64_t *batch)
{
    const int64_t size = b->options.size;
    const bool is_end = position.index == b->count;
    if (position.epoch < 0 || position.epoch > UINT32_MAX || position.index < 0 ||
        position.index > b->count || (position.index % size != 0 && !is_end))
        return lk_fail(LK_E_ARGUMENT,
                       "position (epoch %lld, sample %lld): expected an epoch from 0 and a "
                       "sample in 0..%lld where a batch of %lld begins",
                       (long long)position.epoch, (long long)position.index,
                       (long long)b->count, (long long)size);
    *batch = position.epoch * b->per_epoch + (is_end ? b->per_epoch : position.index / size);
    return LK_OK;
}

static enum lk_status check_range(const struct lk_batches *b, int64_t batch, int64_t first,
                                  int64_t count)
{
    if (batch >= 0 && batch / b->per_epoch <= UINT32_MAX && first >= 0 && count >= 0 &&
        first <= lk_batches_size(b, batch) && count <= lk_batches_size(b, batch) - first)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "batch %lld has no %lld samples from %lld on",
                   (long long)batch, (long long)count, (long long)first);
}

const struct lk_field *lk_batches_fields(const struct lk_batches *batches, int *count)
{
    *count = batches->field_count;
    return batches->fields;
}

enum lk_status lk_batches_read_fields(struct lk_batches *b, int64_t batch, int64_t first,
                                      int64_t count, void *const to[LK_MOST_FIELDS])
{
    LK_TRY(check_range(b, batch, first, count));
    if (b->prefetch)
        return lk_prefetch_read(b->prefetch, batch, first, count, to);
    return b->readers ? lk_readers_read(b->readers, batch, first, count, to)
                      : read_now(b, batch, first, count, to);
}

enum lk_status lk_batches_read(struct lk_batches *b, int64_t batch, int64_t first,
                               int64_t count, uint8_t *samples, int32_t *labels)
{
    void *to[LK_MOST_FIELDS] = {NULL};
    LK_TRY(lk_data_check_image(b->data));
    to[b->data->image] = samples;
    to[b->data->label] = labels;
    return lk_batches_read_fields(b, batch, first, count, to);
}

bool lk_batches_draw(const struct lk_batches *b)
{
    const struct lk_augment *a = &b->augment;
    const bool crops = a->crops_by_chance && (a->padding > 0 || a->height != a->from_height ||
                                              a->width != a->from_width);
    return crops || a->rotate > 0 || lk_transform_has_params(&b->transform) ||
           (b->pipeline.first_crop[0] && b->pipeline.first_crop_by_chance);
}

enum lk_status lk_batches_transform_params(struct lk_batches *b, int64_t batch, int64_t first,
                                           int64_t count, struct lk_transform_params *draws)
{
    LK_TRY(check_range(b, batch, first, count));
    const struct lk_batches_position at = lk_batches_position(b, batch);
    struct lk_epoch_order *order = lk_epoch_orders_acquire(b->orders, at.epoch);
    for (int64_t i = 0; i < count; i++)
        draws[i] = lk_pipeline_transform_params(&b->pipeline, b->options.seed, at.epoch,
                                                order->items[at.index + first + i]);
    lk_epoch_orders_release(b->orders, order);
    return LK_OK;
}

enum lk_status lk_batches_show(struct lk_batches *b, int64_t batch, int64_t first,
                               int64_t count, uint8_t *samples)
{
    for (int64_t i = 0; i < count; i++) {
        struct lk_transform_params draw;
        LK_TRY(lk_batches_transform_params(b, batch, first + i, 1, &draw));
        lk_transform_apply(&b->transform, &draw, b->augment.height, b->augment.width,
                           samples + (size_t)i * image_bytes(b));
    }
    return LK_OK;
}
