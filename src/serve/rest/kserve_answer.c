/* Answers of KServe's REST of version 2, and what it tells of models. */
#include "serve/rest/call.h"
#include <math.h>
#include <stdlib.h>

const char *lk_kserve_type(enum lk_dtype dtype)
{
    return dtype == LK_U8 ? "UINT8" : dtype == LK_I32 ? "INT32" : "FP32";
}

/* --- classes ------------------------------------------------------------------------------
 */

struct ranked {
    float value;
    int64_t index;
};

/* The larger value first, those that are no numbers last. */
static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (isnan(x->value) != isnan(y->value))
        return isnan(x->value) ? 1 : -1;
    if (x->value != y->value && !isnan(x->value))
        return x->value > y->value ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static void rank(const float *values, int64_t count, struct ranked *ranked)
{
    for (int64_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){values[i], i};
    qsort(ranked, (size_t)count, sizeof *ranked, compare);
}

static int64_t count_classes(const struct lk_call *call, int i)
{
    const int64_t all = call->job->signature->output_elements[call->outputs[i]];
    return call->class_counts[i] < all ? call->class_counts[i] : all;
}

/* "0.75:3:cat" */
static void print_class(const struct lk_predictor_port *port, const struct ranked *ranked,
                        struct lk_text *text)
{
    lk_answer_float(text, ranked->value);
    lk_text_append(text, ":%lld", (long long)ranked->index);
    if (port->is_class && ranked->index < port->named_classes)
        lk_text_append(text, ":%s", port->class_names[ranked->index]);
}

/* A text in an array of bytes: its length in 4 bytes, the lowest first, and then itself. */
static void append_counted(struct lk_text *text, const struct lk_text *element)
{
    unsigned char length[4];
    for (int i = 0; i < 4; i++)
        length[i] = (unsigned char)(element->used >> 8 * i);
    lk_text_append_bytes(text, length, sizeof length);
    lk_text_append_bytes(text, element->bytes, element->used);
}

/* Of each sample the likeliest classes, as texts in JSON or as binary data. */
static void write_classes(const struct lk_call *call, int i, struct lk_text *text)
{
    const struct lk_job *job = call->job;
    const int o = call->outputs[i];
    const int64_t elements = job->signature->output_elements[o];
    const int64_t classes = count_classes(call, i);
    struct ranked *ranked = malloc((size_t)elements * sizeof *ranked);
    struct lk_text element = {0};
    text->failed |= !ranked;
    for (int64_t n = 0; ranked && n < job->count; n++) {
        rank(job->outputs[o] + n * elements, elements, ranked);
        for (int64_t c = 0; c < classes; c++) {
            element.used = 0;
            print_class(&job->signature->outputs[o], &ranked[c], &element);
            text->failed |= element.failed;
            if (text->failed)
                break;
            if (call->is_binary[i]) {
                append_counted(text, &element);
            } else {
                lk_text_append(text, n || c ? "," : "");
                lk_answer_text(text, element.bytes);
            }
        }
    }
    free(element.bytes);
    free(ranked);
}

/* --- answers ------------------------------------------------------------------------------
 */

static void write_data(const struct lk_call *call, int i, struct lk_text *text)
{
    const struct lk_job *job = call->job;
    const int o = call->outputs[i];
    const int64_t count = job->count * job->signature->output_elements[o];
    lk_text_append(text, "\"data\":[");
    if (call->class_counts[i] > 0)
        write_classes(call, i, text);
    for (int64_t e = 0; call->class_counts[i] == 0 && e < count; e++) {
        lk_text_append(text, e ? "," : "");
        lk_answer_float(text, job->outputs[o][e]);
    }
    lk_text_append(text, "]");
}

/* Floats as they lie in memory. */
static void write_binary(const struct lk_call *call, int i, struct lk_text *text)
{
    const struct lk_job *job = call->job;
    const int o = call->outputs[i];
    const size_t count = (size_t)(job->count * job->signature->output_elements[o]);
    if (call->class_counts[i] > 0)
        write_classes(call, i, text);
    else
        lk_text_append_bytes(text, job->outputs[o], count * sizeof(float));
}

static void write_output(const struct lk_call *call, int i, size_t binary_bytes,
                         struct lk_text *text)
{
    const struct lk_job *job = call->job;
    const int o = call->outputs[i];
    const bool has_classes = call->class_counts[i] > 0;
    const struct lk_shape *shape = &job->signature->outputs[o].shape;
    lk_text_append(text, "%s{\"name\":", i ? "," : "");
    lk_answer_text(text, job->signature->outputs[o].name);
    lk_text_append(text, ",\"datatype\":\"%s\",\"shape\":[%lld", has_classes ? "BYTES" : "FP32",
                   (long long)job->count);
    if (has_classes)
        lk_text_append(text, ",%lld", (long long)count_classes(call, i));
    for (int axis = 0; !has_classes && axis < shape->rank; axis++)
        lk_text_append(text, ",%lld", (long long)shape->dim[axis]);
    lk_text_append(text, "],");
    if (call->is_binary[i])
        lk_text_append(text, "\"parameters\":{\"binary_data_size\":%zu}", binary_bytes);
    else
        write_data(call, i, text);
    lk_text_append(text, "}");
}

void lk_kserve_answer(struct lk_call *call, struct lk_http_reply *reply, struct lk_text *text)
{
    struct lk_text binary = {0}; /* of all outputs, which follows the JSON */
    lk_text_append(text, "{\"model_name\":");
    lk_answer_text(text, call->version->served->name);
    lk_text_append(text, ",\"model_version\":\"%lld\",", (long long)call->version->number);
    if (*call->id) {
        lk_text_append(text, "\"id\":");
        lk_answer_text(text, call->id);
        lk_text_append(text, ",");
    }
    lk_text_append(text, "\"outputs\":[");
    for (int i = 0; i < call->output_count; i++) {
        const size_t before = binary.used;
        if (call->is_binary[i])
            write_binary(call, i, &binary);
        write_output(call, i, binary.used - before, text);
    }
    lk_text_append(text, "]}");
    text->failed |= binary.failed;
    if (binary.bytes) {
        reply->header_length = text->used;
        reply->type = "application/octet-stream";
        lk_text_append_bytes(text, binary.bytes, binary.used);
    }
    free(binary.bytes);
}

/* --- what it tells ------------------------------------------------------------------------
 */

static void tell_port(const char *name, enum lk_dtype dtype, const struct lk_shape *shape,
                      bool is_first, struct lk_text *text)
{
    lk_text_append(text, is_first ? "{\"name\": " : ", {\"name\": ");
    lk_answer_text(text, name);
    lk_text_append(text, ", \"datatype\": \"%s\", \"shape\": ", lk_kserve_type(dtype));
    lk_answer_shape(text, shape);
}

static void tell_classes(const struct lk_predictor_port *port, struct lk_text *text)
{
    lk_text_append(text, ", \"is_class\": %s, \"classes\": [",
                   port->is_class ? "true" : "false");
    for (int64_t i = 0; i < port->named_classes; i++) {
        lk_text_append(text, i ? ", " : "");
        lk_answer_text(text, port->class_names[i]);
    }
    lk_text_append(text, "]");
}

void lk_kserve_tell_ports(const struct lk_signature *signature, bool with_classes,
                          struct lk_text *text)
{
    lk_text_append(text, "\"inputs\": [");
    for (int i = 0; i < signature->input_count; i++) {
        const struct lk_field *input = &signature->inputs[i];
        tell_port(input->name, input->dtype, &input->shape, i == 0, text);
        lk_text_append(text, "}");
    }
    lk_text_append(text, "], \"outputs\": [");
    for (int o = 0; o < signature->output_count; o++) {
        const struct lk_predictor_port *output = &signature->outputs[o];
        tell_port(output->name, LK_F32, &output->shape, o == 0, text);
        if (with_classes)
            tell_classes(output, text);
        lk_text_append(text, "}");
    }
    lk_text_append(text, "]");
}

void lk_call_tell_versions(struct lk_served *served, struct lk_text *text)
{
    lk_text_append(text, "\"versions\": [");
    pthread_mutex_lock(&served->mutex);
    for (const struct lk_version *v = served->open; v; v = v->behind)
        lk_text_append(text, "%s\"%lld\"", v == served->open ? "" : ", ", (long long)v->number);
    pthread_mutex_unlock(&served->mutex);
    lk_text_append(text, "]");
}

void lk_kserve_tell_model(const struct lk_version *version, struct lk_text *text)
{
    lk_text_append(text, "{\"name\": ");
    lk_answer_text(text, version->served->name);
    lk_text_append(text, ", ");
    lk_call_tell_versions(version->served, text);
    lk_text_append(text, ", \"platform\": \"lockstep\", ");
    lk_kserve_tell_ports(&version->signature, false, text);
    lk_text_append(text, "}\n");
}
