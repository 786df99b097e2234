/* The inside of a predictor, for the files that make it up. Floor 8. Private to this room. */
#ifndef LK_TRAIN_PREDICT_PREDICTOR_H
#define LK_TRAIN_PREDICT_PREDICTOR_H

#include "data/text/texts.h"
#include "train/evaluation/evaluator.h"
#include "train/evaluation/images.h"

struct lk_predictor {
    char data[512]; /* the SPEC it was validated with */
    char trained_with[512];
    enum lk_data_part part;
    bool serves; /* few samples should not wait long: see lk_predictor_open_to_serve() */
    struct lk_device *device;
    struct lk_model *model;
    struct lk_choices *choices;
    struct lk_pipeline pipeline;
    char *text;                        /* of it */
    char *vocabulary;                  /* of texts, as the run keeps it; "": it has none */
    struct lk_texts texts;             /* with that vocabulary, once a text came */
    struct lk_text_room token;         /* the text of the token asked for last */
    char max_bad[16];                  /* samples that may be broken; "": says nothing */
    struct lk_standardize standardize; /* what it does to numbers, bound to the inputs */
    struct lk_evaluator *evaluator;
    struct lk_data *evaluated; /* the data evaluated last: results point to its class names */
};

/* How many tokens the model takes at a time; 0: it reads no texts. */
int64_t lk_predictor_text_length(const struct lk_predictor *predictor);

/* All tokens of a text; they live until the next one comes. fails: as lk_predictor_run_text()
 */
LK_MUST_CHECK enum lk_status lk_predictor_encode(struct lk_predictor *predictor,
                                                 const char *text, size_t bytes,
                                                 const int32_t **tokens, int64_t *count);

/* Predictions of as many tokens as the model takes, of which `count` are there. */
LK_MUST_CHECK enum lk_status lk_predictor_run_tokens(struct lk_predictor *predictor,
                                                     const int32_t *tokens, int32_t count,
                                                     float *const *to);

#endif
