/* A job: samples that a client wants predictions of, and what became of them. Floor 9. Knows no
 * protocol. */
#ifndef LK_SERVE_JOB_H
#define LK_SERVE_JOB_H

#include "model/model.h"
#include "serve/http/json.h"
#include <lockstep/predict.h>

enum { LK_MOST_JOB_SAMPLES = 1 << 16, LK_MOST_JOB_BYTES = 256 << 20, LK_JOB_ERROR = 512 };

/* What a version of a model takes and gives; images, and all with three axes, are [h, w, c]. */
struct lk_signature {
    struct lk_field inputs[LK_MOST_INPUTS];
    struct lk_predictor_port outputs[LK_MOST_OUTPUTS];
    size_t input_bytes[LK_MOST_INPUTS];          /* of a sample */
    struct lk_shape own_shapes[LK_MOST_OUTPUTS]; /* of outputs, as they are computed */
    bool is_turned[LK_MOST_OUTPUTS];             /* to [h, w, c] */
    int64_t output_elements[LK_MOST_OUTPUTS];
    int input_count, output_count;
    bool takes_text;
    int64_t most_pixels;                  /* of an image that is decoded */
    const struct lk_predictor *predictor; /* that decodes images */
};

struct lk_version;

struct lk_job_text {
    char *bytes;
    size_t count;
};

struct lk_job {
    struct lk_job *behind; /* in a queue */
    struct lk_version *version;
    const struct lk_signature *signature;
    int64_t count, room;
    uint8_t *inputs[LK_MOST_INPUTS]; /* [count] samples */
    struct lk_job_text *texts;       /* [count], which become inputs; NULL: none */
    float *outputs[LK_MOST_OUTPUTS]; /* [count][elements], channels last */
    enum lk_status status;
    char error[LK_JOB_ERROR];
    double queued;                    /* lk_seconds() */
    void (*done)(struct lk_job *job); /* on the worker's thread */
    void *context;
};

/* fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_job_create(struct lk_version *version,
                                           const struct lk_signature *signature,
                                           struct lk_job **job);
/* NULL is fine. */
void lk_job_destroy(struct lk_job *job);

/* Makes room for sample `sample` in all inputs. fails: LK_E_ARGUMENT more than a request may
 * have; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_job_reserve(struct lk_job *job, int64_t sample);

/* The place of a sample in an input; lk_job_reserve() comes first. */
void *lk_job_sample(const struct lk_job *job, int input, int64_t sample);

/* The input of that name. fails: LK_E_ARGUMENT naming those that there are */
LK_MUST_CHECK enum lk_status lk_job_find_input(const struct lk_job *job, const char *name,
                                               int *input);

/* Reads a value of one sample: numbers in lists, or {"b64": ...} of an image, or a text.
 * fails: LK_E_DATA, LK_E_ARGUMENT, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_job_read_value(struct lk_job *job, int input, int64_t sample,
                                               struct lk_json *json);

/* Reads all numbers, however they are put into lists, as the input's first `samples` samples.
 */
LK_MUST_CHECK enum lk_status lk_job_read_flat(struct lk_job *job, int input, int64_t samples,
                                              struct lk_json *json);

/* Lengths of sequences, once all is read: what is computed would take another one in place of
 * one that cannot be. fails: LK_E_DATA, naming it */
LK_MUST_CHECK enum lk_status lk_job_check_lengths(const struct lk_job *job);

/* An image file, or a text, as the sample. The text is copied. */
LK_MUST_CHECK enum lk_status lk_job_put_image(struct lk_job *job, int input, int64_t sample,
                                              const void *data, size_t bytes);
LK_MUST_CHECK enum lk_status lk_job_put_text(struct lk_job *job, int64_t sample,
                                             const char *text, size_t bytes);

#endif
