/* TensorFlow Serving's REST: bodies of :predict and :classify, their answers, and what it tells
 * of models. source: tensorflow.org/tfx/serving/api_rest */
#include "base/fail.h"
#include "serve/rest/call.h"
#include <stdio.h>
#include <string.h>

static const char signature_name[] = "serving_default";

const char *lk_tensorflow_type(enum lk_dtype dtype)
{
    return dtype == LK_U8 ? "DT_UINT8" : dtype == LK_I32 ? "DT_INT32" : "DT_FLOAT";
}

/* --- reading ------------------------------------------------------------------------------
 */

/* Whether what follows is {"b64": ...}; nothing is read. */
static bool is_base64(const struct lk_json *json)
{
    struct lk_json ahead = *json;
    char key[LK_JSON_NAME];
    bool first = true, more = false;
    const bool is_it = lk_json_kind(&ahead) == '{' && lk_json_open(&ahead, '{') == LK_OK &&
                       lk_json_key(&ahead, &first, &more, key) == LK_OK && more &&
                       strcmp(key, "b64") == 0;
    lk_error_clear();
    return is_it;
}

/* Each input once, unless a text stands for all of them. */
static enum lk_status check_inputs(const struct lk_job *job, unsigned found, int64_t sample,
                                   const struct lk_json *json)
{
    const struct lk_signature *s = job->signature;
    if (job->texts && job->texts[sample].bytes)
        return LK_OK;
    for (int i = 0; i < s->input_count; i++)
        if (!(found & 1u << i))
            return lk_json_fail(json, "input '%s' is missing", s->inputs[i].name);
    return LK_OK;
}

static enum lk_status mark(const struct lk_job *job, const struct lk_json *json, int input,
                           unsigned *found)
{
    if (*found & 1u << input)
        return lk_json_fail(json, "input '%s' is there twice",
                            job->signature->inputs[input].name);
    *found |= 1u << input;
    return LK_OK;
}

/* A sample: its values by name, or that of the only input. */
static enum lk_status read_row(struct lk_job *job, int64_t sample, struct lk_json *json)
{
    char key[LK_JSON_NAME];
    bool first = true, more = true;
    unsigned found = 0;
    int input = 0;
    const bool is_alone = job->signature->input_count == 1 || job->signature->takes_text;
    if (is_alone && (lk_json_kind(json) != '{' || is_base64(json)))
        return lk_job_read_value(job, 0, sample, json);
    LK_TRY(lk_job_reserve(job, sample));
    LK_TRY(lk_json_open(json, '{'));
    while (true) {
        LK_TRY(lk_json_key(json, &first, &more, key));
        if (!more)
            return check_inputs(job, found, sample, json);
        LK_TRY(lk_job_find_input(job, key, &input));
        LK_TRY(mark(job, json, input, &found));
        LK_TRY(lk_job_read_value(job, input, sample, json));
    }
}

static enum lk_status read_rows(struct lk_job *job, struct lk_json *json)
{
    bool first = true, more = true;
    LK_TRY(lk_json_open(json, '['));
    while (true) {
        LK_TRY(lk_json_item(json, &first, &more));
        if (!more)
            return LK_OK;
        LK_TRY(read_row(job, job->count, json));
        job->count++;
    }
}

/* All samples of an input. */
static enum lk_status read_column(struct lk_job *job, int input, struct lk_json *json,
                                  int64_t *samples)
{
    bool first = true, more = true;
    *samples = 0;
    if (is_base64(json)) {
        *samples = 1;
        return lk_job_read_value(job, input, 0, json);
    }
    LK_TRY(lk_json_open(json, '['));
    while (true) {
        LK_TRY(lk_json_item(json, &first, &more));
        if (!more)
            return LK_OK;
        LK_TRY(lk_job_read_value(job, input, (*samples)++, json));
    }
}

static enum lk_status read_columns(struct lk_job *job, struct lk_json *json)
{
    char key[LK_JSON_NAME];
    bool first = true, more = true;
    unsigned found = 0;
    int input = 0;
    int64_t samples = 0;
    const bool is_alone = job->signature->input_count == 1 || job->signature->takes_text;
    if (is_alone && (lk_json_kind(json) != '{' || is_base64(json)))
        return read_column(job, 0, json, &job->count);
    LK_TRY(lk_json_open(json, '{'));
    while (true) {
        LK_TRY(lk_json_key(json, &first, &more, key));
        if (!more)
            break;
        LK_TRY(lk_job_find_input(job, key, &input));
        LK_TRY(mark(job, json, input, &found));
        LK_TRY(read_column(job, input, json, &samples));
        if (found != 1u << input && samples != job->count)
            return lk_json_fail(json, "input '%s' has %lld samples, those before have %lld",
                                key, (long long)samples, (long long)job->count);
        job->count = samples;
    }
    for (int64_t n = 0; n < job->count; n++)
        LK_TRY(check_inputs(job, found, n, json));
    return LK_OK;
}

static enum lk_status check_signature(struct lk_json *json)
{
    char name[LK_JSON_NAME];
    LK_TRY(lk_json_name(json, name));
    return !*name || strcmp(name, signature_name) == 0
               ? LK_OK
               : lk_json_fail(json, "no signature '%s'; there is '%s'", name, signature_name);
}

/* The object's samples: below "instances" or "inputs", or below "examples". */
static enum lk_status read_body(struct lk_call *call, const char *rows, const char *columns)
{
    char key[LK_JSON_NAME];
    bool first = true, more = true, is_there = false;
    struct lk_json json;
    lk_json_begin(&json, call->request->body, call->request->bytes);
    LK_TRY(lk_json_open(&json, '{'));
    while (true) {
        LK_TRY(lk_json_key(&json, &first, &more, key));
        if (!more)
            break;
        const bool is_rows = strcmp(key, rows) == 0;
        const bool is_columns = columns && strcmp(key, columns) == 0;
        if ((is_rows || is_columns) && is_there)
            return lk_json_fail(&json, "samples are there twice");
        is_there |= is_rows || is_columns;
        call->is_columns |= is_columns;
        LK_TRY(is_rows                              ? read_rows(call->job, &json)
               : is_columns                         ? read_columns(call->job, &json)
               : strcmp(key, "signature_name") == 0 ? check_signature(&json)
                                                    : lk_json_skip(&json));
    }
    LK_TRY(lk_json_end(&json));
    return is_there ? LK_OK
                    : lk_json_fail(&json, "no '%s'%s%s%s", rows, columns ? " or '" : "",
                                   columns ? columns : "", columns ? "'" : "");
}

/* --- answers ------------------------------------------------------------------------------
 */

static void write_row(const struct lk_job *job, int64_t n, struct lk_text *text)
{
    const struct lk_signature *s = job->signature;
    for (int o = 0; o < s->output_count; o++) {
        if (s->output_count > 1) {
            lk_text_append(text, o ? "," : "{");
            lk_answer_text(text, s->outputs[o].name);
            lk_text_append(text, ":");
        }
        lk_answer_values(text, &s->outputs[o].shape,
                         job->outputs[o] + n * s->output_elements[o]);
    }
    lk_text_append(text, s->output_count > 1 ? "}" : "");
}

static void write_column(const struct lk_job *job, int o, struct lk_text *text)
{
    const struct lk_signature *s = job->signature;
    for (int64_t n = 0; n < job->count; n++) {
        lk_text_append(text, n ? "," : "[");
        lk_answer_values(text, &s->outputs[o].shape,
                         job->outputs[o] + n * s->output_elements[o]);
    }
    lk_text_append(text, "]");
}

static void write_predictions(struct lk_call *call, struct lk_http_reply *reply,
                              struct lk_text *text)
{
    const struct lk_job *job = call->job;
    const struct lk_signature *s = job->signature;
    (void)reply;
    lk_text_append(text, call->is_columns ? "{\"outputs\": " : "{\"predictions\": ");
    for (int64_t n = 0; !call->is_columns && n < job->count; n++) {
        lk_text_append(text, n ? "," : "[");
        write_row(job, n, text);
    }
    for (int o = 0; call->is_columns && o < s->output_count; o++) {
        if (s->output_count > 1) {
            lk_text_append(text, o ? "," : "{");
            lk_answer_text(text, s->outputs[o].name);
            lk_text_append(text, ":");
        }
        write_column(job, o, text);
    }
    lk_text_append(text, !call->is_columns ? "]" : s->output_count > 1 ? "}" : "");
    lk_text_append(text, "}\n");
}

/* The first output that predicts one class; -1: none does. */
static int find_classes(const struct lk_signature *s)
{
    for (int o = 0; o < s->output_count; o++)
        if (s->outputs[o].is_class && s->outputs[o].shape.rank == 1)
            return o;
    return -1;
}

/* A list of each sample, of pairs. */
static void write_pairs(const struct lk_job *job, struct lk_text *text)
{
    const int o = find_classes(job->signature);
    const struct lk_predictor_port *port = &job->signature->outputs[o];
    for (int64_t n = 0; n < job->count; n++)
        for (int64_t i = 0; i < port->shape.dim[0]; i++) {
            char number[24];
            lk_text_append(text, i ? ",[" : n ? "],[[" : "[[[");
            snprintf(number, sizeof number, "%lld", (long long)i);
            lk_answer_text(text, i < port->named_classes ? port->class_names[i] : number);
            lk_text_append(text, ",");
            lk_answer_float(text, job->outputs[o][n * port->shape.dim[0] + i]);
            lk_text_append(text, "]");
        }
    lk_text_append(text, "]]");
}

/* TensorFlow Serving's documentation has "result", its source has "results"
 * (kClassifyRegressResponseKey in json_tensor.cc). Clients are written for either. */
static void write_classes(struct lk_call *call, struct lk_http_reply *reply,
                          struct lk_text *text)
{
    (void)reply;
    lk_text_append(text, "{\"result\": ");
    write_pairs(call->job, text);
    lk_text_append(text, ", \"results\": ");
    write_pairs(call->job, text);
    lk_text_append(text, "}\n");
}

enum lk_status lk_tensorflow_predict(struct lk_call *call)
{
    bool is_plain = false;
    call->answer = write_predictions;
    LK_TRY(lk_call_take_plain(call, &is_plain));
    return is_plain ? LK_OK : read_body(call, "instances", "inputs");
}

enum lk_status lk_tensorflow_classify(struct lk_call *call)
{
    bool is_plain = false;
    call->answer = write_classes;
    if (find_classes(call->job->signature) < 0)
        return lk_fail(LK_E_ARGUMENT, "the model predicts no classes");
    LK_TRY(lk_call_take_plain(call, &is_plain));
    return is_plain ? LK_OK : read_body(call, "examples", NULL);
}

/* --- what it tells ------------------------------------------------------------------------
 */

static void tell_version(int64_t number, const char *state, const char *error,
                         struct lk_text *text)
{
    lk_text_append(text,
                   "{\"version\": \"%lld\", \"state\": \"%s\", \"status\": {\"error_code\": "
                   "\"%s\", \"error_message\": ",
                   (long long)number, state, *error ? "UNKNOWN" : "OK");
    lk_answer_text(text, error);
    lk_text_append(text, "}}");
}

static void tell_versions(const struct lk_version *first, const char *state, bool *is_first,
                          struct lk_text *text)
{
    for (const struct lk_version *v = first; v; v = v->behind) {
        lk_text_append(text, *is_first ? "" : ", ");
        tell_version(v->number, state, "", text);
        *is_first = false;
    }
}

void lk_tensorflow_tell_status(struct lk_served *served, int64_t number, struct lk_text *text)
{
    bool is_first = true;
    lk_text_append(text, "{\"model_version_status\": [");
    if (number > 0) {
        tell_version(number, "AVAILABLE", "", text);
        lk_text_append(text, "]}\n");
        return;
    }
    pthread_mutex_lock(&served->mutex);
    for (int i = served->failed_count; i-- > 0;) {
        const bool is_last = i + 1 == served->failed_count;
        tell_version(served->failed[i].number, "END",
                     is_last ? served->failure : "it cannot be opened", text);
        lk_text_append(text, ", ");
    }
    tell_versions(served->open, "AVAILABLE", &is_first, text);
    tell_versions(served->replaced, "UNLOADING", &is_first, text);
    pthread_mutex_unlock(&served->mutex);
    lk_text_append(text, "]}\n");
}

static void tell_port(const char *name, enum lk_dtype dtype, const struct lk_shape *shape,
                      struct lk_text *text)
{
    lk_answer_text(text, name);
    lk_text_append(text,
                   ": {\"dtype\": \"%s\", \"tensor_shape\": {\"dim\": [{\"size\": \"-1\", "
                   "\"name\": \"\"}",
                   lk_tensorflow_type(dtype));
    for (int i = 0; i < shape->rank; i++)
        lk_text_append(text, ", {\"size\": \"%lld\", \"name\": \"\"}",
                       (long long)shape->dim[i]);
    lk_text_append(text, "], \"unknown_rank\": false}, \"name\": ");
    lk_answer_text(text, name);
    lk_text_append(text, "}");
}

void lk_tensorflow_tell_metadata(const struct lk_version *version, struct lk_text *text)
{
    const struct lk_signature *s = &version->signature;
    lk_text_append(text, "{\"model_spec\": {\"name\": ");
    lk_answer_text(text, version->served->name);
    lk_text_append(text,
                   ", \"signature_name\": \"\", \"version\": \"%lld\"}, \"metadata\": "
                   "{\"signature_def\": {\"signature_def\": {\"%s\": {\"inputs\": {",
                   (long long)version->number, signature_name);
    for (int i = 0; i < s->input_count; i++) {
        lk_text_append(text, i ? ", " : "");
        tell_port(s->inputs[i].name, s->inputs[i].dtype, &s->inputs[i].shape, text);
    }
    lk_text_append(text, "}, \"outputs\": {");
    for (int o = 0; o < s->output_count; o++) {
        lk_text_append(text, o ? ", " : "");
        tell_port(s->outputs[o].name, LK_F32, &s->outputs[o].shape, text);
    }
    lk_text_append(text, "}, \"method_name\": \"tensorflow/serving/predict\"}}}}}\n");
}
