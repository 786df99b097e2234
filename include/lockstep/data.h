/* Data sets: labelled images by index, and epochs of shuffled batches. Floor 3. Knows no tensor
 * and no device: samples are bytes in host memory. */
#ifndef LOCKSTEP_DATA_H
#define LOCKSTEP_DATA_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum lk_data_part { LK_DATA_TRAIN, LK_DATA_TEST };

/* Labels lie in [0, classes). The pointers live as long as the data set. */
struct lk_data_info {
    const char *name; /* short: "fashion-mnist" */
    int64_t count;    /* samples, at least 1 */
    int classes, height, width, channels;
    const char *const *class_names; /* [classes]; NULL: not known */
};

struct lk_data;

/* Opens one part of the data set SPEC: "idx:DIR" (MNIST file names, plain or .gz),
 * "synthetic:digits[,count=N][,seed=N]" (drawn, needs no file), or a known name
 * ("fashion-mnist": from $LOCKSTEP_DATA, else the cache, else downloaded into the cache).
 * Both parts of a set have the same classes: those of the training labels.
 * fails: LK_E_ARGUMENT unknown SPEC; LK_E_IO missing or unreadable; LK_E_DATA malformed */
LK_API LK_MUST_CHECK enum lk_status lk_data_open(const char *spec, enum lk_data_part part,
                                                 struct lk_data **data);

/* Releases a data set, after the batches that read it. NULL is fine. */
LK_API void lk_data_close(struct lk_data *data);

/* What the data set holds; never NULL. */
LK_API const struct lk_data_info *lk_data_info(const struct lk_data *data);

/* Reads the samples of those indices. samples: [count, h, w, c]; labels: [count]. Any thread,
 * several at once; allocates nothing. fails: LK_E_ARGUMENT for an index outside the set */
LK_API LK_MUST_CHECK enum lk_status lk_data_read(const struct lk_data *data,
                                                 const int64_t *indices, int count,
                                                 uint8_t *samples, int32_t *labels);

/* Writes the order of an epoch: a permutation of 0..count-1 that depends on nothing but (seed,
 * epoch, count). count: below 2^32. source: Fisher-Yates, Knuth TAOCP 2, 3.4.2 P */
LK_API void lk_data_order(uint64_t seed, int64_t epoch, int64_t count, int64_t *order);

struct lk_batches_options {
    int size; /* samples in a batch, at least 1 */
    uint64_t seed;
    bool shuffle;        /* false: every epoch in index order */
    bool drop_remainder; /* leave out the last batch of an epoch where it is not full */
};

/* A place in the run of epochs: the next sample is number `index` of the order of `epoch`. */
struct lk_batches_position {
    int64_t epoch, index;
};

struct lk_batches;

/* Batches of a data set, which must outlive them; starts at epoch 0, index 0. One thread at a
 * time. fails: LK_E_ARGUMENT size below 1 or, with drop_remainder, above the count */
LK_API LK_MUST_CHECK enum lk_status lk_batches_create(const struct lk_data *data,
                                                      const struct lk_batches_options *options,
                                                      struct lk_batches **batches);

/* Releases them, not the data set. NULL is fine. */
LK_API void lk_batches_destroy(struct lk_batches *batches);

/* Reads the next batch. samples: [size, h, w, c] and labels: [size], of which `count` are
 * filled; 0 at the end of an epoch, after which the next one begins. Allocates nothing.
 * fails: as lk_data_read(); the position is then unchanged */
LK_API LK_MUST_CHECK enum lk_status
lk_batches_next(struct lk_batches *batches, uint8_t *samples, int32_t *labels, int *count);

/* Where the next batch begins; what a checkpoint keeps. */
LK_API struct lk_batches_position lk_batches_position(const struct lk_batches *batches);

/* Goes on from a position: the batches that follow are bitwise those that followed it then.
 * fails: LK_E_ARGUMENT for a position outside the data */
LK_API LK_MUST_CHECK enum lk_status lk_batches_seek(struct lk_batches *batches,
                                                    struct lk_batches_position position);

/* Reads a PNG or JPEG file that has exactly the height and width of shape[3] = {h, w, c};
 * c: 1 grey, 3 RGB, 4 RGBA, converted to. pixels: [h][w][c]. fails: LK_E_IO; LK_E_DATA no
 * image, broken or too large; LK_E_SHAPE another size; LK_E_ARGUMENT other channels */
LK_API LK_MUST_CHECK enum lk_status lk_image_read(const char *path, const int64_t shape[3],
                                                  uint8_t *pixels);

#ifdef __cplusplus
}
#endif
#endif
