/* What is in a data set: labels, sizes, values, broken files, and how fast it is read. Floor 4.
 * Knows no batch. */
#ifndef LOCKSTEP_SURVEY_H
#define LOCKSTEP_SURVEY_H

#include <lockstep/data.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lk_survey_options {
    int64_t samples; /* to look at, spread evenly; 0: all. Labels are read of all */
    int threads;     /* 0: a core each */
    /* On the caller's thread: samples done of those to be done; with `samples` first for the
     * labels, then anew. NULL: nobody */
    void (*progress)(void *context, int64_t done, int64_t total);
    void *context;
};

/* Of image files. Small and large are meant by pixels, then by height; 0x0: not known. */
struct lk_survey_size {
    int height, width;
};

struct lk_survey_note {
    int64_t index;    /* of the sample */
    const char *text; /* names the file */
};

/* In order of `index`. */
struct lk_survey_notes {
    struct lk_survey_note *items; /* [count] */
    int64_t count;
};

/* What one thread does with samples one after the other. */
enum lk_survey_stage {
    LK_SURVEY_READ,   /* the file or record; samples that are no files: the whole sample */
    LK_SURVEY_DECODE, /* in a size not far above the one wanted, as for training */
    LK_SURVEY_RESIZE,
    LK_SURVEY_STAGES,
};

enum { LK_SURVEY_CHANNELS = 4 };

/* Numbers of a field of floats, over good samples in their order. */
struct lk_survey_numbers {
    int field;       /* of the data set */
    int64_t element; /* of the field; -1: all of them together, as of fields with many */
    int64_t count;
    double mean, deviation, smallest, largest; /* deviation: of all, not of a sample of more */
};

struct lk_survey {
    int64_t samples; /* looked at, broken ones too */
    int64_t good;    /* of these: whole, with a label */
    int threads;
    int64_t *class_counts; /* [classes] labels of all samples, of broken ones where known */
    int64_t unlabelled;    /* samples whose label is no class or cannot be read */

    struct lk_survey_notes bad;      /* broken samples, with the reason */
    struct lk_survey_notes misnamed; /* good ones whose file is named as another format */
    int64_t lost;                    /* samples that are broken beside these: cut off */
    int64_t most_bad;                /* max_bad, of the samples looked at */

    struct lk_survey_size smallest, median, largest;
    int64_t jpegs, pngs;
    int64_t channels[LK_SURVEY_CHANNELS + 1]; /* files with so many */

    /* Values 0..255 of good samples, decoded and scaled as training reads them. */
    double mean[LK_SURVEY_CHANNELS], deviation[LK_SURVEY_CHANNELS];

    int number_count;
    struct lk_survey_numbers *numbers; /* [number_count] */

    double samples_per_s[LK_SURVEY_STAGES]; /* of one thread; 0: there is no such stage */
};

/* Looks at a data set. What it finds does not depend on threads, but for the rates. Samples
 * found to be broken are counted by lk_data_bad() and left out by lk_data_read(), from now on
 * without a warning, however many there are.
 * fails: LK_E_ARGUMENT samples or threads below 0; LK_E_MEMORY. Broken samples are no failure
 */
LK_API LK_MUST_CHECK enum lk_status lk_survey_create(const struct lk_data *data,
                                                     const struct lk_survey_options *options,
                                                     struct lk_survey **survey);

/* Releases it. NULL is fine. */
LK_API void lk_survey_destroy(struct lk_survey *survey);

#ifdef __cplusplus
}
#endif
#endif
