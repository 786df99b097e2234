/* Epochs of shuffled batches of a data set. Floor 4. Knows no device. */
#ifndef LOCKSTEP_BATCHES_H
#define LOCKSTEP_BATCHES_H

#include <lockstep/field.h>
#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lk_data;

/* Threads that read batches ahead: a core each where the data decodes, else none; where batches
 * are large, they are read on all cores then, 8 at most. */
enum { LK_BATCHES_AUTO = -1 };

struct lk_batches_options {
    int size; /* samples in a batch, at least 1 */
    uint64_t seed;
    bool shuffle;        /* false: every epoch in index order */
    bool drop_remainder; /* leave out the last batch of an epoch where it is not full */
    int threads;         /* threads that read batches ahead; 0: they are read when they are
                          * asked for */
    int prefetch;        /* batches that they hold in memory, at least 2; 0: four */
    int height, width;   /* samples are cropped to this size; 0: they stay as they are */
    /* What is done to samples, in its order: "rotate 10 | crop padding=4 | flip horizontal |
     * brightness 0.2", or "rotate=10 padding=4 flip=horizontal ..."; NULL: nothing at
     * random. */
    const char *pipeline;
    int64_t end; /* no batch from this number on is read ahead; 0: there is no end */
    /* Where `pipeline` is NULL: that of an evaluation, without anything random; NULL: nothing
     * is done. */
    const char *eval_pipeline;
    int versions; /* the data set has each sample in so many versions: first all samples in
                   * version 0, then in version 1. Epoch e takes version e % versions; 0: 1 */
    int bucket;   /* batches of samples of similar length: the samples of so many batches at a
                   * time are sorted by length before they are cut into batches, and these are
                   * shuffled; 0: none. The samples of a last batch that is not full are drawn
                   * before, of any length */
    const struct lk_data *lengths; /* the same samples, in one version, whose lengths these are;
                                    * NULL: the data set itself */
};

/* A place in the sequence of epochs: the next sample is number `index` of the order of
 * `epoch`. */
struct lk_batches_position {
    int64_t epoch, index;
};

/* Epochs of batches, numbered through from 0: what batch b holds is a function of the data, the
 * options (but threads and end) and b alone. All functions: any thread, several at once. */
struct lk_batches;

/* Batches of a data set, which must outlive them. Samples are cropped to their middle or, with
 * a pipeline ("" too), at random: like all that is random in it, as a function of (seed, epoch,
 * sample) alone. fails: LK_E_ARGUMENT size below 1 or, with drop_remainder, above the count;
 * the pipeline, or a height or width above the samples'; a bucket where no field has a length;
 * as lk_data_read_fields(), of lengths; LK_E_MEMORY */
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

/* Their fields: those of the data set, with an image in the size that batches have. They live
 * as long as the batches. */
LK_API const struct lk_field *lk_batches_fields(const struct lk_batches *batches, int *count);

/* Reads samples first..first+count-1 of a batch as devices take them: numbers are standardized,
 * images rotated and cropped; what devices do themselves (flip, brightness, contrast,
 * saturation, normalize) is not done. to[i]: [count] samples of field i; NULL: it is not
 * wanted. The first reader of an epoch shuffles it. Readers of more than three epochs at once
 * wait for each other. fails: LK_E_ARGUMENT samples that the batch does not have; as
 * lk_data_read_fields() */
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

/* Does to samples that were read what a device will do to them, all but normalize, so that one
 * can look at them. fails: LK_E_ARGUMENT as lk_batches_read() */
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

#ifdef __cplusplus
}
#endif
#endif
