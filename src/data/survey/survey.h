/* The inside of a survey, for the files that make it up. Floor 4. */
#ifndef LK_DATA_SURVEY_SURVEY_H
#define LK_DATA_SURVEY_SURVEY_H

#include "data/data.h"

#include <lockstep/survey.h>
#include <pthread.h>
#include <stdatomic.h>

enum { LK_SURVEY_VALUES = 256 };

/* Reading samples once, shared by threads that take the next number each. */
struct lk_survey_scan {
    const struct lk_data *data;
    const struct lk_survey_options *options;
    struct lk_survey *survey;
    int64_t total;                /* numbers to visit */
    bool counts_labels;           /* the scan that looks at samples also counts their labels */
    int label;                    /* the first field of classes; -1: there is none */
    struct lk_survey_size *sizes; /* [total] */
    atomic_llong next, done;
    atomic_bool has_failed;
    pthread_mutex_t mutex; /* of the survey's notes and sums, and of: */
    enum lk_status status;
    char text[1024];
};

/* What one thread has found. */
struct lk_survey_finder {
    struct lk_survey_scan *scan;
    enum lk_status (*visit)(struct lk_survey_finder *finder, int64_t number);
    bool is_caller;
    void *fields[LK_MOST_FIELDS]; /* of one sample */
    int64_t *class_counts;        /* [classes] */
    int64_t unlabelled, good, jpegs, pngs, channels[LK_SURVEY_CHANNELS + 1];
    int64_t values[LK_SURVEY_CHANNELS][LK_SURVEY_VALUES]; /* how often each is there */
    double seconds[LK_SURVEY_STAGES];
    int64_t passed[LK_SURVEY_STAGES]; /* samples */
};

/* Looks at the sample that is number `number` of those chosen: its file, size and pixels, and
 * how long each stage takes. What is broken is noted. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_survey_inspect(struct lk_survey_finder *finder, int64_t number);

/* The sample that is number `number` of those chosen. */
int64_t lk_survey_index(const struct lk_survey_scan *scan, int64_t number);

/* Measures the floats of good samples, on the caller's thread: what comes out then does not
 * depend on threads. fails: LK_E_MEMORY; LK_E_IO */
LK_MUST_CHECK enum lk_status lk_survey_measure(struct lk_survey_scan *scan,
                                               struct lk_survey_finder *finder);

/* Finds the label of sample `index`, without reading the image where the source can do that.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_survey_find_label(struct lk_survey_finder *finder,
                                                  int64_t index);

#endif
