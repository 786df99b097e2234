/* A trained model that predicts and is evaluated. Floor 8. */
#ifndef LOCKSTEP_PREDICT_H
#define LOCKSTEP_PREDICT_H

#include <lockstep/data.h>
#include <lockstep/field.h>
#include <lockstep/status.h>
#include <lockstep/tensor.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an evaluation found (lockstep/train.h). */
struct lk_evaluation;

struct lk_model;

/* Opens the model of a run directory, which is that of its newest checkpoint, or of a
 * checkpoint file. fails: LK_E_IO where there is no checkpoint; LK_E_DATA */
LK_API LK_MUST_CHECK enum lk_status lk_run_open_model(const char *path,
                                                      struct lk_model **model);

/* A trained model, ready to predict. */
struct lk_predictor;

/* Opens a run directory (its newest checkpoint) or a checkpoint file on device `device`
 * (NULL: the default) for batches of up to `batch` samples. fails: LK_E_IO, LK_E_DATA */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_open(const char *path, const char *device,
                                                      int64_t batch,
                                                      struct lk_predictor **predictor);

/* As lk_predictor_open(). On a CPU convolutional networks also get a second set of kernels and
 * activations, with which up to 8 samples cost no more than they have to; the weights are
 * shared. Both differ by rounding. path: also an ONNX model, FILE.onnx or a folder with
 * model.onnx, which has its own names and order of axes. fails: also as lk_import() */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_open_to_serve(const char *path,
                                                               const char *device,
                                                               int64_t batch,
                                                               struct lk_predictor **predictor);

/* Bytes that it takes on the device; *few: of these, for up to 8 samples alone, or 0. */
LK_API size_t lk_predictor_bytes(const struct lk_predictor *predictor, size_t *few);

struct lk_settings;

/* Opens a model with the weights of a file, by these settings: "model" (a name of the zoo, a
 * model file, a run directory or a checkpoint, which then keep their pipeline), "weights",
 * "skip_mismatch", "device", "batch_size"; of a model also "data", "input", "classes",
 * "pipeline". Without skip_mismatch every parameter must be in the file.
 * fails: as lk_predictor_open(); LK_E_SHAPE naming what does not fit */
LK_API LK_MUST_CHECK enum lk_status
lk_predictor_open_weights(const struct lk_settings *settings, struct lk_predictor **predictor);

/* Releases the predictor and its device. NULL is fine. */
LK_API void lk_predictor_close(struct lk_predictor *predictor);

/* Input `index` as it is to be given, an image as [h, w, c]; false past the last. */
LK_API bool lk_predictor_input(const struct lk_predictor *predictor, int index,
                               struct lk_field *input);

/* An output: its name and shape, and whether its numbers are probabilities of classes. */
struct lk_predictor_port {
    const char *name;
    struct lk_shape shape; /* of three axes [c, h, w] */
    bool keeps_order;      /* but of an ONNX model as its file has them */
    bool is_class;
    const char *const *class_names; /* [named_classes]: of the data that it was trained on */
    int64_t named_classes;          /* 0: its classes have no names */
};

/* Output `index`; false past the last. */
LK_API bool lk_predictor_output(const struct lk_predictor *predictor, int index,
                                struct lk_predictor_port *output);

/* Calls visit() for each sample of the data SPEC's test part, or of all that there is, with
 * predictions of all outputs: outputs[o] of its shape. Labels are not needed. fails: as
 * lk_data_open_as(), LK_E_SHAPE; what visit() returns, if it is not LK_OK, ends it */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_each(
    struct lk_predictor *predictor, const char *data, void *context,
    enum lk_status (*visit)(void *context, int64_t sample, const float *const *outputs));

/* Reads a PNG or JPEG file of any size for the first input, as samples are made of the images
 * that the model is evaluated on: resized and cropped. pixels: [h][w][c] of that input.
 * fails: LK_E_IO; LK_E_DATA no image, broken or too large; LK_E_ARGUMENT where the input takes
 * no image */
LK_API LK_MUST_CHECK enum lk_status
lk_predictor_read_image(const struct lk_predictor *predictor, const char *path,
                        uint8_t *pixels);

/* As lk_predictor_read_image(), of a file that lies in memory. Any thread. */
LK_API LK_MUST_CHECK enum lk_status
lk_predictor_decode_image(const struct lk_predictor *predictor, const void *data, size_t bytes,
                          uint8_t *pixels);

/* Predictions of all outputs, to[o]: float [count][its shape]. from[i]: [count] samples of
 * input i. fails: LK_E_DEVICE */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_run_fields(struct lk_predictor *predictor,
                                                            int64_t count,
                                                            const void *const *from,
                                                            float *const *to);

/* Predictions of all outputs, to[o]: float [its shape], of a text: its tokens by the vocabulary
 * that the model was trained with, cut or filled as there.
 * fails: LK_E_ARGUMENT the model reads no tokens, or other inputs beside them and their number;
 * LK_E_DATA the text is empty or no UTF-8; LK_E_DEVICE */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_run_text(struct lk_predictor *predictor,
                                                          const char *text, size_t bytes,
                                                          float *const *to);

/* Makes one sample of a text, to[i]: of input i, as lk_predictor_run_fields() takes it.
 * fails: as lk_predictor_run_text() */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_take_text(struct lk_predictor *predictor,
                                                           const char *text, size_t bytes,
                                                           void *const *to);

/* Whether the model reads texts: tokens with a vocabulary, or bytes of lines. */
LK_API bool lk_predictor_takes_text(const struct lk_predictor *predictor);

/* Of how many tokens a language model says how likely they are to be the next one: its only
 * output has a number for each token of the vocabulary at every time step. 0: it is none. */
LK_API int64_t lk_predictor_next_choices(struct lk_predictor *predictor);

/* How likely each token is to follow a text, to[lk_predictor_next_choices()], of which the
 * model sees as many tokens at the end as it takes. fails: LK_E_ARGUMENT it is no language
 * model; as lk_predictor_run_text() */
LK_API LK_MUST_CHECK enum lk_status
lk_predictor_next(struct lk_predictor *predictor, const char *text, size_t bytes, float *to);

/* The text that a token stands for, with a zero byte behind; it may have such bytes itself, and
 * lives until the next call. Of padding it is empty. fails: LK_E_ARGUMENT the model was not
 * trained on texts; LK_E_DATA no such token */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_token(struct lk_predictor *predictor,
                                                       int64_t token, const char **text,
                                                       size_t *bytes);

/* The same of several that follow one another; words have a blank between them. */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_decode(struct lk_predictor *predictor,
                                                        const int32_t *tokens, int64_t count,
                                                        const char **text, size_t *bytes);

/* How a language model goes on with a text. */
struct lk_generate_options {
    int64_t tokens;     /* to add */
    double temperature; /* above 1 bolder, below 1 closer to the likeliest; 0: the likeliest */
    int64_t top_k;      /* of so many likeliest tokens one is drawn; 0: of all */
    uint64_t seed;      /* the same one gives the same text */
};

/* Adds tokens to the prompt one by one and calls visit() with the text of each. The first
 * output says at every time step how likely each token is to be the next one; the model looks
 * at as many tokens before it as it takes. fails: LK_E_ARGUMENT it has no such output; as
 * lk_predictor_run_text(); what visit() returns, if it is not LK_OK, ends it */
LK_API LK_MUST_CHECK enum lk_status
lk_predictor_generate(struct lk_predictor *predictor, const char *prompt,
                      const struct lk_generate_options *options, void *context,
                      enum lk_status (*visit)(void *context, const char *text, size_t bytes));

/* Height, width, channels of the images of the first input, and the elements of the first
 * output: for models of one image and one vector of classes. */
LK_API void lk_predictor_shape(const struct lk_predictor *predictor, int64_t shape[3],
                               int *classes);

/* Probabilities [count][classes] of images uint8 [count][h][w][c]. */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_run(struct lk_predictor *predictor,
                                                     int64_t count, const uint8_t *images,
                                                     float *probabilities);

/* Evaluates on the data SPEC's test part (NULL: what training validated with). The
 * result's pointers live until the next evaluation or close. fails: LK_E_SHAPE where model and
 * data do not fit, as lk_data_open() */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_evaluate(struct lk_predictor *predictor,
                                                          const char *data,
                                                          struct lk_evaluation *result);

/* The data that was evaluated last, until the next evaluation or close; NULL: none was. */
LK_API const struct lk_data *lk_predictor_evaluated(const struct lk_predictor *predictor);

/* As lk_predictor_evaluate(), on that part of the data (NULL: of the data trained with).
 * fails: LK_E_IO too, where there is no such part */
LK_API LK_MUST_CHECK enum lk_status lk_predictor_evaluate_part(struct lk_predictor *predictor,
                                                               const char *data,
                                                               enum lk_data_part part,
                                                               struct lk_evaluation *result);

#ifdef __cplusplus
}
#endif
#endif
