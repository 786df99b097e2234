/* Data sets: samples by index, each a record of named fields, and epochs of shuffled batches.
 * Floor 4. Knows no device: samples are numbers in host memory. */
#ifndef LOCKSTEP_DATA_H
#define LOCKSTEP_DATA_H

#include <lockstep/field.h>
#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum lk_data_part {
    LK_DATA_TRAIN, /* a set without parts is a training part */
    LK_DATA_TEST,
    LK_DATA_TEST_OR_ALL, /* the test part, or all of a set without parts */
};

/* The pointers live as long as the data set. */
struct lk_data_info {
    const char *name; /* short: "fashion-mnist" */
    int64_t count;    /* samples, at least 1 */
    /* Of the first label of classes, which lie in [0, classes), and of the first image; 0:
     * there is none. */
    int classes, height, width, channels;
    const char *const *class_names; /* [classes]; NULL: not known */
    bool decodes; /* to read a sample is to decode an image file: better done ahead */
    int field_count;
    const struct lk_field *fields; /* [field_count] */
};

struct lk_data;

/* How samples from image files are wanted, where the SPEC's own options do not say it. */
struct lk_data_options {
    int height, width, channels; /* scaled and converted to; 0: as the first image */
    const char *max_bad;         /* how many may be broken: "1%" (NULL), "3" */
    const char *cache;           /* decoded samples: "none" (NULL), "memory", or a file */
    const char *decode;          /* JPEGs: "scaled" (NULL), or "full", in their own size */
    int part_height, part_width; /* the middle of an image is scaled, so many of its pixels; 0:
                                  * all of it. Of smaller images what there is */
    bool parts_by_chance;        /* whoever reads says where parts lie: no sample is kept */
};

/* Opens one part of the data set SPEC: "idx:DIR" (MNIST file names, plain or .gz),
 * "synthetic:digits[,count=N][,seed=N]" (drawn, needs no file), or a known name
 * ("fashion-mnist": from $LOCKSTEP_DATA, else the cache, else downloaded into the cache).
 * Both parts of a set have the same classes: those of the training labels.
 * fails: LK_E_ARGUMENT unknown SPEC; LK_E_IO missing or unreadable; LK_E_DATA malformed */
LK_API LK_MUST_CHECK enum lk_status lk_data_open(const char *spec, enum lk_data_part part,
                                                 struct lk_data **data);

/* As lk_data_open(); JPEG and PNG files too: "folder:DIR" (a folder a class, in train/ and
 * test/ where these are there), "csv:FILE" (lines "path,label"), "tfrecord:GLOB"
 * (tf.train.Example); arrays, "npy:X.npy,Y.npy"; lines of label, TAB, text, "text:FILE".
 * Behind a comma: size=96x96 channels=3 max_bad=1% classes=FILE cache=memory; folder: part=val;
 * tfrecord: image=KEY label=KEY offset=-1; text: length=128. options: NULL for all standards */
LK_API LK_MUST_CHECK enum lk_status lk_data_open_as(const char *spec, enum lk_data_part part,
                                                    const struct lk_data_options *options,
                                                    struct lk_data **data);

/* Releases a data set, after the batches that read it. NULL is fine. */
LK_API void lk_data_close(struct lk_data *data);

/* What the data set holds; never NULL. */
LK_API const struct lk_data_info *lk_data_info(const struct lk_data *data);

/* Reads fields of the samples of those indices. to[i]: [count] samples of field i; NULL: it is
 * not wanted. Any thread, several at once; allocates nothing but what decoding a file or record
 * takes. A broken sample is named in a warning, and the next one in the set that is not broken
 * stands in for it, with all of its fields.
 * fails: LK_E_ARGUMENT an index outside the set; LK_E_DATA more are broken than may be */
LK_API LK_MUST_CHECK enum lk_status lk_data_read_fields(const struct lk_data *data,
                                                        const int64_t *indices, int count,
                                                        void *const to[LK_MOST_FIELDS]);

/* As lk_data_read_fields() of the first image and the first label that is one class.
 * samples: [count, h, w, c]; labels: [count].
 * fails: LK_E_ARGUMENT too where the data has no such fields */
LK_API LK_MUST_CHECK enum lk_status lk_data_read(const struct lk_data *data,
                                                 const int64_t *indices, int count,
                                                 uint8_t *samples, int32_t *labels);

/* Samples found to be broken until now. */
LK_API int64_t lk_data_bad(const struct lk_data *data);

/* Writes the order of an epoch: a permutation of 0..count-1 that depends on nothing but (seed,
 * epoch, count). count: below 2^32. source: Fisher-Yates, Knuth TAOCP 2, 3.4.2 P */
LK_API void lk_data_order(uint64_t seed, int64_t epoch, int64_t count, int64_t *order);

/* Threads that read batches ahead: a core each where the data decodes, else none. */
enum { LK_BATCHES_AUTO = -1 };

struct lk_batches_options {
    int size; /* samples in a batch, at least 1 */
    uint64_t seed;
    bool shuffle;        /* false: every epoch in index order */
    bool drop_remainder; /* leave out the last batch of an epoch where it is not full */
    int threads;         /* that read batches ahead; 0: who wants a batch reads it */
    int prefetch;        /* batches that they hold in memory, at least 2; 0: four */
    int height, width;   /* samples are cropped to this size; 0: they stay as they are */
    /* What is done to samples, in its order: "rotate 10 | crop padding=4 | flip horizontal |
     * brightness 0.2", or "rotate=10 padding=4 flip=horizontal ..."; NULL: nothing by chance.
     */
    const char *pipeline;
    int64_t end; /* no batch from this number on is read ahead; 0: there is no end */
};

/* A place in the run of epochs: the next sample is number `index` of the order of `epoch`. */
struct lk_batches_position {
    int64_t epoch, index;
};

/* Epochs of batches, numbered through from 0: what batch b holds depends on nothing but the
 * data, the options (but threads and end) and b. All functions: any thread, several at once. */
struct lk_batches;

/* Batches of a data set, which must outlive them. What is
 * cropped is the middle, with a pipeline ("" too) a part by chance, which like the rest of it
 * depends on nothing but (seed, epoch, sample).
 * fails: LK_E_ARGUMENT size below 1 or, with drop_remainder, above the count; the pipeline, or
 * a height or width above the samples'; LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_batches_create(const struct lk_data *data,
                                                      const struct lk_batches_options *options,
                                                      struct lk_batches **batches);

/* Releases them, not the data set. NULL is fine. */
LK_API void lk_batches_destroy(struct lk_batches *batches);

/* Height, width and channels of their images; zeros where there are none. */
LK_API void lk_batches_shape(const struct lk_batches *batches, int shape[3]);

/* Batches in an epoch, at least 1. */
LK_API int64_t lk_batches_per_epoch(const struct lk_batches *batches);

/* Samples in batch number `batch`: the last one of an epoch may have fewer than the others. */
LK_API int64_t lk_batches_size(const struct lk_batches *batches, int64_t batch);

/* Their fields: those of the data set, but an image in the size that batches have. They live
 * as long as the batches. */
LK_API const struct lk_field *lk_batches_fields(const struct lk_batches *batches, int *count);

/* Reads samples first..first+count-1 of a batch as devices take them: numbers standardized,
 * images turned and cropped; what devices do themselves (flip, brightness, contrast,
 * saturation, normalize) is not done. to[i]: [count] samples of field i; NULL: it is not
 * wanted. The first to read of an epoch puts it in order. Readers of more than three epochs at
 * once wait for each other.
 * fails: LK_E_ARGUMENT samples that the batch does not have; as lk_data_read_fields() */
LK_API LK_MUST_CHECK enum lk_status lk_batches_read_fields(struct lk_batches *batches,
                                                           int64_t batch, int64_t first,
                                                           int64_t count,
                                                           void *const to[LK_MOST_FIELDS]);

/* As lk_batches_read_fields() of the first image and the first label that is one class.
 * samples: [count, h, w, c]; labels: [count].
 * fails: LK_E_ARGUMENT too where the data has no such fields */
LK_API LK_MUST_CHECK enum lk_status lk_batches_read(struct lk_batches *batches, int64_t batch,
                                                    int64_t first, int64_t count,
                                                    uint8_t *samples, int32_t *labels);

/* Does to samples that were read what a device will do to them, but normalize: to look at.
 * fails: LK_E_ARGUMENT as lk_batches_read() */
LK_API LK_MUST_CHECK enum lk_status lk_batches_show(struct lk_batches *batches, int64_t batch,
                                                    int64_t first, int64_t count,
                                                    uint8_t *samples);

/* Where a batch begins; what a checkpoint keeps. */
LK_API struct lk_batches_position lk_batches_position(const struct lk_batches *batches,
                                                      int64_t batch);

/* The batch that begins at a position; the end of an epoch is the beginning of the next.
 * fails: LK_E_ARGUMENT for a position where no batch begins */
LK_API LK_MUST_CHECK enum lk_status lk_batches_find(const struct lk_batches *batches,
                                                    struct lk_batches_position position,
                                                    int64_t *batch);

/* Reads a PNG or JPEG file that has exactly the height and width of shape[3] = {h, w, c};
 * c: 1 grey, 3 RGB, 4 RGBA, converted to. pixels: [h][w][c]. fails: LK_E_IO; LK_E_DATA no
 * image, broken or too large; LK_E_SHAPE another size; LK_E_ARGUMENT other channels */
LK_API LK_MUST_CHECK enum lk_status lk_image_read(const char *path, const int64_t shape[3],
                                                  uint8_t *pixels);

/* Writes a PNG file in place of the one there is; shape and pixels as of lk_image_read().
 * fails: LK_E_IO; LK_E_ARGUMENT more than 16384 pixels a side, other channels; LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_image_write(const char *path, const int64_t shape[3],
                                                   const uint8_t *pixels);

#ifdef __cplusplus
}
#endif
#endif
