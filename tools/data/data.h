/* The parts of lockstep data: what was found, and how it is shown. */
#ifndef TOOLS_DATA_H
#define TOOLS_DATA_H

#include <lockstep/lockstep.h>
#include <stdbool.h>

enum { DATA_PARTS = 3 };

/* One part of a data set. */
struct data_part {
    const char *name; /* "train", "val", "test"; "all" of a set without parts */
    struct lk_data *data;
    struct lk_batches *batches;
    struct lk_survey *survey;
    double list_per_s, batches_per_s; /* samples; 0: not measured */
    int batch_threads;                /* that read batches */
    int64_t *lengths;                 /* [texts] in tokens, in order; NULL: no texts */
    int64_t texts, tokens, unknown; /* good ones; tokens of all, those not in the vocabulary */
};

struct data_report {
    const char *spec;
    struct data_part parts[DATA_PARTS];
    int count;                             /* of parts, at least 1 */
    struct lk_normalization normalization; /* of what training does to images */
};

/* Broken samples of a part, and those that are cut off. */
int64_t data_bad(const struct lk_survey *survey);

extern const char *const data_channel_names[], *const data_stage_names[];

const char *data_class_name(const struct lk_data_info *info, int class, char text[32]);

/* The class with most samples, of equal ones the first; the part of all labels it has. */
int data_majority(const struct data_part *part);
double data_share(const struct data_part *part, int class);

/* Channels of images whose mean and deviation are measured. */
int data_value_channels(const struct lk_data_info *info);
const char *data_dtype_name(enum lk_dtype dtype);

/* "bill_mm", "numbers[3]"; "numbers": all of the field. */
void data_numbers_name(const struct lk_data_info *info, const struct lk_survey_numbers *numbers,
                       char name[192]);

/* Prints tables of at most 80 columns, but for names of files. */
void data_print(const struct data_report *report);

/* Prints JSON; returns the exit status. */
int data_print_json(const struct data_report *report);

#endif
