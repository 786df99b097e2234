/* The stage "standardize": numbers of f32 inputs become (x - mean) / deviation, in double
 * arithmetic that is rounded to float once, so that all devices get the same. Floor 4. Knows no
 * batch. Its text is empty, or "by=field", where it is to be measured (lk_pipeline_resolve()
 * does), and then "numbers=[MEAN/DEVIATION, ...] size=MEAN/DEVIATION": a pair for each number
 * of a field, or one for all of them. */
#ifndef LK_DATA_STAGES_STANDARDIZE_H
#define LK_DATA_STAGES_STANDARDIZE_H

#include <lockstep/data.h>
#include <stdbool.h>

enum { LK_STANDARDIZE_MOST = 256, LK_STANDARDIZE_TEXT = 16384 };

struct lk_standardize {
    bool is_measured; /* else the numbers below are not there yet */
    bool by_field;    /* one mean and deviation for a field is to be measured */
    int field_count;
    struct lk_standardize_field {
        char name[128];
        int first, count; /* of its pairs, which are `mean` and `deviation` */
        int field;        /* the field that it is for, once it is bound */
        int64_t elements; /* of a sample */
    } fields[LK_MOST_FIELDS];
    double mean[LK_STANDARDIZE_MOST], deviation[LK_STANDARDIZE_MOST];
};

/* Reads what stands behind the stage's name. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_standardize_parse(const char *text,
                                                  struct lk_standardize *standardize);

/* Writes it so that it is read back to the same numbers; false: there is no room. */
bool lk_standardize_print(const struct lk_standardize *standardize, char *text, size_t bytes);

/* Finds the fields that it names. fails: LK_E_ARGUMENT one that is not there, has no numbers or
 * another count of them; numbers that have not been measured */
LK_MUST_CHECK enum lk_status lk_standardize_bind(struct lk_standardize *standardize,
                                                 const struct lk_field *fields, int count);

/* Reads `text` and binds it to the inputs of a model that gets numbers without a data set. One
 * input takes the numbers of one field, whatever their names. Names of `inputs` may be changed.
 * fails: as the two above */
LK_MUST_CHECK enum lk_status lk_standardize_open(const char *text, struct lk_field *inputs,
                                                 int count, struct lk_standardize *standardize);

/* Standardizes `count` samples of the fields that are not NULL. */
void lk_standardize_apply(const struct lk_standardize *standardize, int64_t count,
                          void *const to[]);

#endif
