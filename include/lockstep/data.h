/* Data sets: samples by index, each a record of named fields. Floor 4. Knows no device: samples
 * are numbers in host memory. */
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
    LK_DATA_TRAIN,       /* a set without parts is a training part */
    LK_DATA_TEST,        /* where there is none, the validation part */
    LK_DATA_TEST_OR_ALL, /* the test part, or all of a set without parts */
    LK_DATA_VALIDATION,  /* where there is none, the test part */
    LK_DATA_VALIDATION_OR_ALL,
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
    enum lk_data_part part;        /* that was found: TRAIN, VALIDATION or TEST; a set without
                                    * parts, and one that part= names, is TRAIN */
};

struct lk_data;

/* How samples from image files are wanted, where the SPEC's own options do not say it. */
struct lk_data_options {
    int height, width, channels; /* scaled and converted to; 0: as the first image */
    const char *max_bad;         /* how many may be broken: "1%" (NULL), "3" */
    const char *cache;           /* decoded samples: "none" (NULL), "memory", or a file */
    const char *decode;          /* JPEGs: "scaled" (NULL), or "full", in their own size */
    int part_height, part_width; /* a crop: the middle of an image, so many of its pixels, is
                                  * scaled; 0: all of it. Of smaller images what there is */
    bool parts_by_chance;        /* the caller chooses each crop's place, so no sample is
                                  * kept */
    int length;                  /* tokens of a text; 0: 128 */
    bool words;                  /* a text's tokens are words, where its SPEC does not say it,
                                  * else bytes */
    const char *vocabulary;      /* of texts, as lk_data_vocabulary() has it; NULL: the data's
                                  * own */
};

/* Opens one part of the data set SPEC: "idx:DIR" (MNIST file names, plain or .gz),
 * "synthetic:digits[,count=N][,seed=N]" or "synthetic:pairs" (drawn, need no file), or a known
 * name ("fashion-mnist": from $LOCKSTEP_DATA, else the cache, else downloaded into the cache).
 * Both parts of a set have the same classes: those of the training labels.
 * fails: LK_E_ARGUMENT unknown SPEC; LK_E_IO missing or unreadable; LK_E_DATA malformed */
LK_API LK_MUST_CHECK enum lk_status lk_data_open(const char *spec, enum lk_data_part part,
                                                 struct lk_data **data);

/* As lk_data_open(); JPEG and PNG files too: "folder:DIR" (a folder a class, in train/ and
 * test/ where these are there), "csv:FILE" (lines "path,label"), "tfrecord:GLOB"
 * (tf.train.Example); arrays, "npy:X.npy,Y.npy"; lines of label, TAB, text, "text:FILE".
 * Behind a comma: size=96x96 channels=3 max_bad=1% classes=FILE cache=memory; folder: part=val;
 * tfrecord: image=KEY label=KEY offset=-1; text: length=128 unit=word vocabulary=N; numbers of
 * csv, tfrecord and npy: fields=a,b fields=size:a+b,colour:c label=c. All kinds, named sets
 * too: val=0.2 holds out that share of each class of the training part to validate, always the
 * same samples; pairs=N, but of images: so many pairs of samples. options: NULL: standards */
LK_API LK_MUST_CHECK enum lk_status lk_data_open_as(const char *spec, enum lk_data_part part,
                                                    const struct lk_data_options *options,
                                                    struct lk_data **data);

/* The vocabulary of a data set of texts, which was learned from its training part, or given; it
 * is JSON and lives as long as the data set. NULL: it has none. */
LK_API const char *lk_data_vocabulary(const struct lk_data *data);

/* The tokens of a text before it is cut or filled, and those that the vocabulary lacks. */
struct lk_text_size {
    int64_t tokens, unknown;
};

/* Measures the text of a sample. fails: LK_E_DATA the sample is broken; LK_E_ARGUMENT the data
 * has no vocabulary, or an index outside the set */
LK_API LK_MUST_CHECK enum lk_status
lk_data_measure_text(const struct lk_data *data, int64_t index, struct lk_text_size *size);

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

/* Writes the order of an epoch: a permutation of 0..count-1, a function of (seed, epoch, count)
 * alone. count: below 2^32. source: Fisher-Yates, Knuth TAOCP 2, 3.4.2 P */
LK_API void lk_data_order(uint64_t seed, int64_t epoch, int64_t count, int64_t *order);

/* Reads a PNG or JPEG file that has exactly the height and width of shape[3] = {h, w, c};
 * c: 1 grey, 3 RGB, 4 RGBA, converted to. pixels: [h][w][c]. fails: LK_E_IO; LK_E_DATA no
 * image, broken or too large; LK_E_SHAPE another size; LK_E_ARGUMENT other channels */
LK_API LK_MUST_CHECK enum lk_status lk_image_read(const char *path, const int64_t shape[3],
                                                  uint8_t *pixels);

/* Writes a PNG file in place of the one there is; shape and pixels as of lk_image_read().
 * fails: LK_E_IO; LK_E_ARGUMENT more than 16384 pixels a side, other channels; LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_image_write(const char *path, const int64_t shape[3],
                                                   const uint8_t *pixels);

/* Fills in what a pipeline measures of a data set, which is a training part: "standardize"
 * becomes "standardize numbers=[MEAN/DEVIATION, ...]", to be kept with what is trained on it.
 * Reads all samples once, in their order; a text with nothing to measure stays as it is. The
 * caller frees `resolved`. fails: LK_E_ARGUMENT no field of numbers, or too many numbers; as
 * lk_data_read_fields(); LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_pipeline_resolve(const struct lk_data *data,
                                                        const char *text, char **resolved);

/* What the stage normalize of a pipeline makes of a value x in 0..255 of an image:
 * y[c] = x[c'] scale[c] + shift[c], c' = channels - 1 - c where the order is reversed, else c.
 */
struct lk_normalization {
    bool normalizes, is_reversed; /* normalizes: there is such a stage; else all is 0 */
    double scale[4], shift[4];
};

/* For images of so many channels. fails: LK_E_ARGUMENT the text is no pipeline of a training,
 * or not for that many channels */
LK_API LK_MUST_CHECK enum lk_status
lk_pipeline_normalization(const char *text, int channels,
                          struct lk_normalization *normalization);

#ifdef __cplusplus
}
#endif

#include <lockstep/batches.h>
#endif
