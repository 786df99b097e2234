/* The inside of a predictor, for the files that make it up. Floor 8. Private to this room. */
#ifndef LK_TRAIN_PREDICT_PREDICTOR_H
#define LK_TRAIN_PREDICT_PREDICTOR_H

#include "data/text/texts.h"
#include "model/checkpoint/checkpoint.h"
#include "train/evaluation/evaluator.h"
#include "train/evaluation/images.h"

/* Inputs and outputs of an ONNX model, as its file has them. {0}: it is none. */
struct lk_onnx_ports {
    const char *inputs[LK_MOST_INPUTS], *outputs[LK_MOST_OUTPUTS]; /* names */
    bool is_turned[LK_MOST_INPUTS]; /* floats [h, w, c], which the model wants as [c, h, w] */
    bool are_there;
};

struct lk_predictor {
    char data[512]; /* the SPEC it was validated with */
    char trained_with[512];
    enum lk_data_part part;
    bool serves; /* few samples should not wait long: see lk_predictor_open_to_serve() */
    struct lk_device *device;
    struct lk_model *model;
    struct lk_onnx_ports ports;
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

/* All but the weights; the model too, unless it is there. */
LK_MUST_CHECK enum lk_status lk_predictor_open_about(struct lk_predictor *predictor,
                                                     const struct lk_checkpoint *about,
                                                     const char *device, int64_t batch);

/* --- onnx.c --- */

/* The ONNX model that a path names: a file, or a folder with model.onnx. False: none. */
bool lk_predictor_find_onnx(const char *path, char *found, size_t bytes);

/* fails: as lk_import(), and as opening a predictor does */
LK_MUST_CHECK enum lk_status lk_predictor_open_onnx(struct lk_predictor *predictor,
                                                    const char *path, const char *device,
                                                    int64_t batch);

/* Puts copies, which the caller frees, in place of samples that the model wants turned. */
LK_MUST_CHECK enum lk_status lk_predictor_turn(const struct lk_predictor *predictor,
                                               int64_t count, const void **from, void **copies);

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
