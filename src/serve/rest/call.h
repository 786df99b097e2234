/* A call: a request to a model on its way from its body to its answer. Floor 9. */
#ifndef LK_SERVE_CALL_H
#define LK_SERVE_CALL_H

#include "serve/http/answer.h"
#include "serve/models/served.h"

struct lk_call {
    struct lk_http_exchange *exchange;
    const struct lk_http_request *request;
    struct lk_version *version; /* acquired */
    struct lk_job *job;
    /* Writes the answer to the job, which has predictions. */
    void (*answer)(struct lk_call *call, struct lk_http_reply *reply, struct lk_text *text);
    bool is_too_large;                          /* the body, once it is inflated */
    bool is_columns;                            /* of predictions by input, not by sample */
    char id[LK_JSON_NAME];                      /* that the client gave the call; "": none */
    int outputs[LK_MOST_OUTPUTS], output_count; /* that it asks for */
    bool is_binary[LK_MOST_OUTPUTS];            /* of those */
    int64_t class_counts[LK_MOST_OUTPUTS];      /* likewise: so many classes; 0: all numbers */
    void *inflated;                             /* the body, where it came compressed */
    struct lk_http_request plain;               /* the request with that body */
};

/* How a protocol reads a body into call->job. fails: what the client is told, with 400 */
typedef enum lk_status lk_call_reader(struct lk_call *call);

/* Reads the call's body, has its job computed and answers; the version is released then. */
void lk_call_run(struct lk_http_exchange *exchange, const struct lk_http_request *request,
                 struct lk_version *version, lk_call_reader *read);

/* One sample of a body that is an image file or a text, as it is. False: it is neither, or the
 * model does not take it. fails: as lk_job_put_image() */
LK_MUST_CHECK enum lk_status lk_call_take_plain(struct lk_call *call, bool *is_plain);

/* TensorFlow Serving's :predict and :classify; KServe's infer. */
enum lk_status lk_tensorflow_predict(struct lk_call *call);
enum lk_status lk_tensorflow_classify(struct lk_call *call);
enum lk_status lk_kserve_infer(struct lk_call *call);
void lk_kserve_answer(struct lk_call *call, struct lk_http_reply *reply, struct lk_text *text);

/* What these protocols tell of a model. number: the version whose status it is; 0: all. */
void lk_tensorflow_tell_status(struct lk_served *served, int64_t number, struct lk_text *text);
void lk_tensorflow_tell_metadata(const struct lk_version *version, struct lk_text *text);
void lk_kserve_tell_model(const struct lk_version *version, struct lk_text *text);

/* Members of JSON objects: the versions that may be asked for; inputs and outputs, and which of
 * these are of classes, with their names. */
void lk_call_tell_versions(struct lk_served *served, struct lk_text *text);
void lk_kserve_tell_ports(const struct lk_signature *signature, bool with_classes,
                          struct lk_text *text);

/* The model's card, for the page: what it takes and gives, and where it comes from. */
void lk_page_tell_model(const struct lk_version *version, struct lk_text *text);

/* "DT_UINT8" and "UINT8". */
const char *lk_tensorflow_type(enum lk_dtype dtype);
const char *lk_kserve_type(enum lk_dtype dtype);

#endif
