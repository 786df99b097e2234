/* KServe's REST of version 2: bodies of infer with tensors as JSON or binary behind it.
 * source: Open Inference Protocol, and its extensions of binary tensor data and classification
 */
#include "base/fail.h"
#include "serve/rest/call.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 8 };

/* A tensor of a request. */
struct tensor {
    char name[LK_JSON_NAME], type[LK_JSON_NAME];
    int64_t shape[MOST_AXES];
    int rank;
    struct lk_json data; /* its place; begin NULL: none */
    double binary_bytes; /* behind the JSON; below 0: none */
};

/* What is left of the binary tensors, and what answers are to be. */
struct infer {
    struct lk_call *call;
    const uint8_t *binary;
    size_t binary_bytes;
    bool wants_binary;
    unsigned found;
};

/* --- reading ------------------------------------------------------------------------------
 */

static enum lk_status read_shape(struct lk_json *json, struct tensor *t)
{
    bool first = true, more = true;
    LK_TRY(lk_json_open(json, '['));
    while (true) {
        double length;
        LK_TRY(lk_json_item(json, &first, &more));
        if (!more)
            return LK_OK;
        LK_TRY(lk_json_number(json, &length));
        if (t->rank == MOST_AXES)
            return lk_json_fail(json, "'shape' has more than %d lengths", MOST_AXES);
        if (!(length >= 0 && length <= INT32_MAX) || length != (double)(int64_t)length)
            return lk_json_fail(json, "%g in 'shape' is no length", length);
        t->shape[t->rank++] = (int64_t)length;
    }
}

static enum lk_status read_size(struct lk_json *json, double *bytes)
{
    double size;
    LK_TRY(lk_json_number(json, &size));
    if (!(size >= 0 && size <= 0x1p53) || size != (double)(int64_t)size)
        return lk_json_fail(json, "'binary_data_size' is a number of bytes");
    *bytes = size;
    return LK_OK;
}

/* How many of the likeliest classes are wanted in place of all numbers. */
static enum lk_status read_classes(struct lk_json *json, int64_t *classes)
{
    double count;
    LK_TRY(lk_json_number(json, &count));
    if (!(count >= 1 && count <= INT32_MAX) || count != (double)(int64_t)count)
        return lk_json_fail(json, "'classification' is a number of classes");
    *classes = (int64_t)count;
    return LK_OK;
}

/* What a tensor's parameters may say, NULL where it may not; others are passed over. */
struct parameters {
    bool *is_binary;
    double *bytes;
    int64_t *classes;
};

static enum lk_status read_parameters(struct lk_json *json, struct parameters to)
{
    char key[LK_JSON_NAME];
    bool first = true, more = true;
    LK_TRY(lk_json_open(json, '{'));
    while (true) {
        LK_TRY(lk_json_key(json, &first, &more, key));
        if (!more)
            return LK_OK;
        if (to.is_binary &&
            (strcmp(key, "binary_data") == 0 || strcmp(key, "binary_data_output") == 0))
            LK_TRY(lk_json_bool(json, to.is_binary));
        else if (to.bytes && strcmp(key, "binary_data_size") == 0)
            LK_TRY(read_size(json, to.bytes));
        else if (to.classes && strcmp(key, "classification") == 0)
            LK_TRY(read_classes(json, to.classes));
        else
            LK_TRY(lk_json_skip(json));
    }
}

static enum lk_status read_tensor(struct lk_json *json, struct tensor *t)
{
    char key[LK_JSON_NAME];
    bool first = true, more = true;
    *t = (struct tensor){.binary_bytes = -1};
    LK_TRY(lk_json_open(json, '{'));
    while (true) {
        LK_TRY(lk_json_key(json, &first, &more, key));
        if (!more)
            return LK_OK;
        if (strcmp(key, "name") == 0) {
            LK_TRY(lk_json_name(json, t->name));
        } else if (strcmp(key, "datatype") == 0) {
            LK_TRY(lk_json_name(json, t->type));
        } else if (strcmp(key, "shape") == 0 && t->rank == 0) {
            LK_TRY(read_shape(json, t));
        } else if (strcmp(key, "parameters") == 0) {
            LK_TRY(read_parameters(json, (struct parameters){.bytes = &t->binary_bytes}));
        } else {
            if (strcmp(key, "data") == 0)
                t->data = *json;
            LK_TRY(lk_json_skip(json));
        }
    }
}

static enum lk_status has_samples(const struct tensor *t)
{
    if (t->rank == 0)
        return lk_fail(LK_E_ARGUMENT, "input '%s' has no 'shape'", t->name);
    return t->shape[0] > 0
               ? LK_OK
               : lk_fail(LK_E_ARGUMENT, "input '%s' has no sample: its shape begins with 0",
                         t->name);
}

/* [n] of texts or of image files, with an axis of 1 behind it or without. */
static enum lk_status check_bytes(const struct tensor *t, int64_t *samples)
{
    if (t->rank > 2 || (t->rank == 2 && t->shape[1] != 1))
        return lk_fail(LK_E_ARGUMENT, "input '%s' of BYTES has the shape [n] or [n, 1]",
                       t->name);
    *samples = t->shape[0];
    return LK_OK;
}

static enum lk_status check_shape(const struct tensor *t, const struct lk_field *field,
                                  int64_t *samples)
{
    static const char *const numbers[] = {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64",
                                          "INT8", "INT16", "INT32",  "INT64",  "FP16",
                                          "FP32", "FP64",  NULL};
    bool fits = t->rank == field->shape.rank + 1, is_known = false;
    for (int i = 0; fits && i < field->shape.rank; i++)
        fits = t->shape[i + 1] == field->shape.dim[i];
    if (!fits) {
        struct lk_text shape = {0};
        lk_answer_shape(&shape, &field->shape);
        const enum lk_status status = lk_fail(LK_E_ARGUMENT, "the shape of input '%s' is %s",
                                              t->name, shape.bytes ? shape.bytes : "another");
        free(shape.bytes);
        return status;
    }
    for (int i = 0; numbers[i]; i++)
        is_known |= strcmp(numbers[i], t->type) == 0;
    if (!is_known)
        return lk_fail(LK_E_ARGUMENT, "input '%s' is of %s, found '%.32s'", t->name,
                       lk_kserve_type(field->dtype), t->type);
    *samples = t->shape[0];
    return LK_OK;
}

static enum lk_status put_bytes(struct lk_job *job, int input, int64_t sample, const void *data,
                                size_t bytes)
{
    return job->signature->takes_text ? lk_job_put_text(job, sample, data, bytes)
                                      : lk_job_put_image(job, input, sample, data, bytes);
}

/* Each text or file has its length before it, in 4 bytes with the lowest first. */
static enum lk_status take_binary_bytes(struct lk_job *job, int input, int64_t samples,
                                        const uint8_t *data, size_t bytes)
{
    for (int64_t n = 0; n < samples; n++) {
        if (bytes < 4)
            return lk_fail(LK_E_DATA, "the binary data ends before sample %lld", (long long)n);
        const size_t length = (size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16 |
                              (size_t)data[3] << 24;
        data += 4;
        bytes -= 4;
        if (length > bytes)
            return lk_fail(LK_E_DATA, "sample %lld has %zu bytes of binary data, %zu are left",
                           (long long)n, length, bytes);
        LK_TRY(put_bytes(job, input, n, data, length));
        data += length;
        bytes -= length;
    }
    return bytes ? lk_fail(LK_E_DATA, "%zu bytes of binary data are too many", bytes) : LK_OK;
}

static enum lk_status take_binary(struct infer *f, const struct tensor *t, int input,
                                  int64_t samples)
{
    struct lk_job *job = f->call->job;
    const struct lk_field *field = &job->signature->inputs[input];
    if (!(t->binary_bytes <= (double)f->binary_bytes))
        return lk_fail(LK_E_DATA, "input '%s': %.0f bytes of binary data, %zu are left",
                       t->name, t->binary_bytes, f->binary_bytes);
    const size_t bytes = (size_t)t->binary_bytes;
    const uint8_t *data = f->binary;
    f->binary += bytes;
    f->binary_bytes -= bytes;
    if (strcmp(t->type, "BYTES") == 0)
        return take_binary_bytes(job, input, samples, data, bytes);
    if (strcmp(t->type, lk_kserve_type(field->dtype)) != 0)
        return lk_fail(LK_E_ARGUMENT, "binary data of input '%s' is %s, found %.32s", t->name,
                       lk_kserve_type(field->dtype), t->type);
    if (bytes / job->signature->input_bytes[input] != (size_t)samples ||
        bytes % job->signature->input_bytes[input] != 0)
        return lk_fail(LK_E_DATA, "input '%s': %zu bytes of binary data, %lld samples of %zu",
                       t->name, bytes, (long long)samples, job->signature->input_bytes[input]);
    LK_TRY(lk_job_reserve(job, samples - 1));
    memcpy(lk_job_sample(job, input, 0), data, bytes);
    return LK_OK;
}

/* A list of texts. */
static enum lk_status take_texts(struct lk_job *job, int input, int64_t samples,
                                 struct lk_json *json)
{
    bool first = true, more = true;
    int64_t n = 0;
    LK_TRY(lk_json_open(json, '['));
    while (true) {
        LK_TRY(lk_json_item(json, &first, &more));
        if (!more)
            return n == samples ? LK_OK
                                : lk_json_fail(json, "%lld texts, the shape says %lld",
                                               (long long)n, (long long)samples);
        if (n == samples || lk_json_kind(json) != '"')
            return lk_json_fail(json, "expected %lld texts", (long long)samples);
        LK_TRY(lk_job_read_value(job, input, n++, json));
    }
}

static enum lk_status take_tensor(struct infer *f, struct tensor *t)
{
    struct lk_job *job = f->call->job;
    const bool is_bytes = strcmp(t->type, "BYTES") == 0;
    int64_t samples = 0;
    int input = 0;
    LK_TRY(lk_job_find_input(job, t->name, &input));
    if (f->found & 1u << input)
        return lk_fail(LK_E_DATA, "input '%s' is there twice", t->name);
    LK_TRY(has_samples(t));
    LK_TRY(is_bytes ? check_bytes(t, &samples)
                    : check_shape(t, &job->signature->inputs[input], &samples));
    if (f->found && samples != job->count)
        return lk_fail(LK_E_ARGUMENT, "input '%s' has %lld samples, those before have %lld",
                       t->name, (long long)samples, (long long)job->count);
    if (t->binary_bytes >= 0 && t->data.begin)
        return lk_fail(LK_E_DATA, "input '%s' has 'data' and binary data", t->name);
    f->found |= 1u << input;
    job->count = samples;
    if (t->binary_bytes >= 0)
        return take_binary(f, t, input, samples);
    if (!t->data.begin)
        return lk_fail(LK_E_DATA, "input '%s' has no data", t->name);
    return is_bytes ? take_texts(job, input, samples, &t->data)
                    : lk_job_read_flat(job, input, samples, &t->data);
}

static enum lk_status read_inputs(struct infer *f, struct lk_json *json)
{
    bool first = true, more = true;
    LK_TRY(lk_json_open(json, '['));
    while (true) {
        struct tensor t;
        LK_TRY(lk_json_item(json, &first, &more));
        if (!more)
            return LK_OK;
        LK_TRY(read_tensor(json, &t));
        LK_TRY(take_tensor(f, &t));
    }
}

/* One that is asked for. */
static enum lk_status read_output(struct infer *f, struct lk_json *json)
{
    struct lk_call *call = f->call;
    const struct lk_signature *s = call->job->signature;
    char key[LK_JSON_NAME], name[LK_JSON_NAME] = "";
    bool first = true, more = true, is_binary = false;
    int64_t classes = 0;
    int found = 0;
    const struct parameters wanted = {.is_binary = &is_binary, .classes = &classes};
    LK_TRY(lk_json_open(json, '{'));
    while (true) {
        LK_TRY(lk_json_key(json, &first, &more, key));
        if (!more)
            break;
        LK_TRY(strcmp(key, "name") == 0         ? lk_json_name(json, name)
               : strcmp(key, "parameters") == 0 ? read_parameters(json, wanted)
                                                : lk_json_skip(json));
    }
    while (found < s->output_count && strcmp(s->outputs[found].name, name) != 0)
        found++;
    if (found == s->output_count)
        return lk_json_fail(json, "no output '%.64s'", name);
    for (int i = 0; i < call->output_count; i++)
        if (call->outputs[i] == found)
            return lk_json_fail(json, "output '%.64s' is there twice", name);
    call->is_binary[call->output_count] = is_binary;
    call->class_counts[call->output_count] = classes;
    call->outputs[call->output_count++] = found;
    return LK_OK;
}

static enum lk_status read_outputs(struct infer *f, struct lk_json *json)
{
    bool first = true, more = true;
    LK_TRY(lk_json_open(json, '['));
    while (true) {
        LK_TRY(lk_json_item(json, &first, &more));
        if (!more)
            return LK_OK;
        LK_TRY(read_output(f, json));
    }
}

static enum lk_status read_json(struct infer *f, size_t bytes)
{
    char key[LK_JSON_NAME];
    bool first = true, more = true;
    struct lk_json json;
    const struct parameters all = {.is_binary = &f->wants_binary};
    lk_json_begin(&json, f->call->request->body, bytes);
    LK_TRY(lk_json_open(&json, '{'));
    while (true) {
        LK_TRY(lk_json_key(&json, &first, &more, key));
        if (!more)
            return lk_json_end(&json);
        LK_TRY(strcmp(key, "id") == 0           ? lk_json_name(&json, f->call->id)
               : strcmp(key, "inputs") == 0     ? read_inputs(f, &json)
               : strcmp(key, "outputs") == 0    ? read_outputs(f, &json)
               : strcmp(key, "parameters") == 0 ? read_parameters(&json, all)
                                                : lk_json_skip(&json));
    }
}

static enum lk_status find_binary(struct infer *f, size_t *json_bytes)
{
    const struct lk_http_request *r = f->call->request;
    char *end;
    *json_bytes = r->bytes;
    if (!*r->header_length)
        return LK_OK;
    const unsigned long long length = strtoull(r->header_length, &end, 10);
    if (*end || *r->header_length < '0' || *r->header_length > '9' || length > r->bytes)
        return lk_fail(LK_E_DATA, "Inference-Header-Content-Length is '%.32s' of %zu bytes",
                       r->header_length, r->bytes);
    *json_bytes = (size_t)length;
    f->binary = r->body + length;
    f->binary_bytes = r->bytes - (size_t)length;
    return LK_OK;
}

enum lk_status lk_kserve_infer(struct lk_call *call)
{
    struct infer f = {.call = call};
    struct lk_job *job = call->job;
    bool is_plain = false;
    size_t json_bytes = 0;
    call->answer = lk_kserve_answer;
    if (!*call->request->header_length)
        LK_TRY(lk_call_take_plain(call, &is_plain));
    LK_TRY(find_binary(&f, &json_bytes));
    if (!is_plain)
        LK_TRY(read_json(&f, json_bytes));
    if (f.binary_bytes > 0)
        return lk_fail(LK_E_DATA, "%zu bytes of binary data are too many", f.binary_bytes);
    const bool wants_all = call->output_count == 0;
    for (int o = 0; wants_all && o < job->signature->output_count; o++)
        call->outputs[call->output_count++] = o;
    for (int i = 0; i < call->output_count; i++)
        call->is_binary[i] |= f.wants_binary;
    for (int i = 0; !is_plain && i < job->signature->input_count; i++)
        if (!(f.found & 1u << i) && !(job->texts && job->count > 0 && job->texts[0].bytes))
            return lk_fail(LK_E_DATA, "input '%s' is missing", job->signature->inputs[i].name);
    return LK_OK;
}
