/* What an open data set is made of, for those in this hall that look behind its samples.
 * Floor 4. Knows no batch. */
#ifndef LK_DATA_DATA_H
#define LK_DATA_DATA_H

#include "data/images/images.h"
#include "data/labels.h"

struct lk_data {
    const struct lk_source *source;
    void *state;
    double share;             /* of its training part that is held out; 0: none */
    bool is_held_out;         /* it has just these */
    int64_t pairs;            /* it has so many pairs of samples; 0: samples as they are */
    double training_share;    /* held out of the training part, whatever part this is */
    char *vocabulary;         /* of texts; NULL: there is none */
    struct lk_images *images; /* NULL: the source has fields, not image files */
    struct lk_broken *broken; /* NULL: no sample is */
    struct lk_data_info info;
    struct lk_field fields[LK_MOST_FIELDS]; /* info.fields */
    struct lk_label_rule rules[LK_MOST_FIELDS];
    bool has_rules; /* some field has one */
    size_t field_bytes[LK_MOST_FIELDS];
    int image, label;    /* the fields of lk_data_read(); -1: there is none */
    size_t sample_bytes; /* of the image; 0: there is none */
};

/* A data set of an open source that reads fields, which `info` lists; closing it closes the
 * source's state. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_data_of_source(const struct lk_source *source, void *state,
                                               const struct lk_data_info *info,
                                               struct lk_data **data);

/* Adds to a hash what identifies all samples: of image files their names, lengths and times, of
 * others the fields that are not NULL in `of`. fails: as lk_data_read_fields() */
LK_MUST_CHECK enum lk_status lk_data_identify(const struct lk_data *data,
                                              const bool of[LK_MOST_FIELDS],
                                              struct lk_sha256 *sum);

/* Whether a sample was found to be broken; another one is read in its place. */
bool lk_data_is_bad(const struct lk_data *data, int64_t index);

/* The first label of classes, which the info tells about; -1: there is none. */
int lk_data_first_classes(const struct lk_data *data);

/* As lk_data_read_fields() of one sample of image files, but with another rectangle of its
 * image. */
LK_MUST_CHECK enum lk_status lk_data_read_crop(const struct lk_data *data, int64_t index,
                                               const struct lk_image_crop *crop,
                                               void *const to[LK_MOST_FIELDS]);

/* Height, width, channels and classes of a named set, which are known before it is opened;
 * false: the SPEC names none. */
bool lk_data_known_shape(const char *spec, int64_t shape[3], int64_t *classes);

/* fails: LK_E_ARGUMENT the data has no image or no label that is one class, saying what it has
 */
LK_MUST_CHECK enum lk_status lk_data_check_image(const struct lk_data *data);

#endif
