/* Jobs: their memory, and the numbers of samples. */
#include "serve/models/job.h"

#include "base/fail.h"
#include "base/text.h"
#include "io/image/image.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum lk_status lk_job_create(struct lk_version *version, const struct lk_signature *signature,
                             struct lk_job **job)
{
    struct lk_job *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a request", sizeof *made);
    made->version = version;
    made->signature = signature;
    *job = made;
    return LK_OK;
}

void lk_job_destroy(struct lk_job *job)
{
    if (!job)
        return;
    for (int64_t i = 0; job->texts && i < job->room; i++)
        free(job->texts[i].bytes);
    free(job->texts);
    for (int i = 0; i < LK_MOST_INPUTS; i++)
        free(job->inputs[i]);
    for (int i = 0; i < LK_MOST_OUTPUTS; i++)
        free(job->outputs[i]);
    free(job);
}

/* Bytes that a sample takes before it is computed and after. */
static size_t sample_bytes(const struct lk_signature *s)
{
    size_t bytes = sizeof(struct lk_job_text);
    for (int i = 0; i < s->input_count; i++)
        bytes += s->input_bytes[i];
    for (int i = 0; i < s->output_count; i++)
        bytes += (size_t)s->output_elements[i] * sizeof(float);
    return bytes;
}

static enum lk_status grow_texts(struct lk_job *job, int64_t room)
{
    struct lk_job_text *grown = realloc(job->texts, (size_t)room * sizeof *grown);
    if (!grown)
        return lk_fail_memory("texts", (size_t)room * sizeof *grown);
    job->texts = grown;
    memset(grown + job->room, 0, (size_t)(room - job->room) * sizeof *grown);
    return LK_OK;
}

enum lk_status lk_job_reserve(struct lk_job *job, int64_t sample)
{
    const struct lk_signature *s = job->signature;
    int64_t most = (int64_t)((size_t)LK_MOST_JOB_BYTES / sample_bytes(s));
    most = most > LK_MOST_JOB_SAMPLES ? LK_MOST_JOB_SAMPLES : most < 1 ? 1 : most;
    if (sample < job->room)
        return LK_OK;
    if (sample >= most)
        return lk_fail(LK_E_ARGUMENT, "a request may have %lld samples of this model",
                       (long long)most);
    int64_t room = job->room ? 2 * job->room : 1;
    room = room <= sample ? sample + 1 : room > most ? most : room;
    for (int i = 0; i < s->input_count; i++) {
        const size_t bytes = (size_t)room * s->input_bytes[i];
        uint8_t *grown = realloc(job->inputs[i], bytes + 1);
        if (!grown)
            return lk_fail_memory("samples", bytes);
        job->inputs[i] = grown;
        memset(grown + (size_t)job->room * s->input_bytes[i], 0,
               (size_t)(room - job->room) * s->input_bytes[i]);
    }
    if (s->takes_text)
        LK_TRY(grow_texts(job, room));
    job->room = room;
    return LK_OK;
}

void *lk_job_sample(const struct lk_job *job, int input, int64_t sample)
{
    return job->inputs[input] + (size_t)sample * job->signature->input_bytes[input];
}

enum lk_status lk_job_find_input(const struct lk_job *job, const char *name, int *input)
{
    const struct lk_signature *s = job->signature;
    char known[256] = "";
    size_t used = 0;
    for (int i = 0; i < s->input_count; i++) {
        if (strcmp(s->inputs[i].name, name) == 0) {
            *input = i;
            return LK_OK;
        }
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s'%s'", i ? ", " : "",
                                     s->inputs[i].name);
    }
    return lk_fail(LK_E_ARGUMENT, "no input '%.64s'; there are %s", name, known);
}

/* --- numbers ------------------------------------------------------------------------------
 */

/* Where numbers go to: those of an input's samples, one after the other. */
struct numbers {
    const struct lk_field *field;
    void *to;
    int64_t count, room;
};

static enum lk_status put_whole(struct numbers *n, const struct lk_json *json, double number)
{
    const bool is_image = n->field->dtype == LK_U8;
    const double low = is_image ? 0 : -2147483648.0, high = is_image ? 255 : 2147483647;
    if (!(number >= low && number <= high) || number != trunc(number))
        return lk_json_fail(json, "input '%s' takes whole numbers of %.0f to %.0f, found %g",
                            n->field->name, low, high, number);
    if (is_image)
        ((uint8_t *)n->to)[n->count++] = (uint8_t)number;
    else
        ((int32_t *)n->to)[n->count++] = (int32_t)number;
    return LK_OK;
}

static enum lk_status read_number(struct numbers *n, struct lk_json *json)
{
    double number;
    LK_TRY(lk_json_number(json, &number));
    if (n->count == n->room)
        return lk_json_fail(json, "input '%s' takes %lld numbers, found more", n->field->name,
                            (long long)n->room);
    if (n->field->dtype != LK_F32)
        return put_whole(n, json, number);
    ((float *)n->to)[n->count++] = (float)number;
    return LK_OK;
}

static enum lk_status refuse_length(const struct numbers *n, const struct lk_json *json,
                                    int axis, int64_t found, bool is_more)
{
    const struct lk_shape *s = &n->field->shape;
    char shape[96] = "";
    size_t used = 0;
    for (int i = 0; i < s->rank; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", i ? ", " : "",
                                 (long long)s->dim[i]);
    return lk_json_fail(json,
                        "input '%s' is [%s] a sample: axis %d has %lld values, found %s%lld",
                        n->field->name, shape, axis, (long long)s->dim[axis],
                        is_more ? "more than " : "", (long long)found);
}

/* Lists as deep as the shape; one of a single number need not be there. */
static enum lk_status read_axis(struct numbers *n, struct lk_json *json, int axis)
{
    const struct lk_shape *s = &n->field->shape;
    bool first = true, more = true;
    int64_t found = 0;
    const bool is_last = axis + 1 >= s->rank;
    if (axis == s->rank || axis == LK_MOST_AXES ||
        (is_last && s->dim[axis] == 1 && lk_json_kind(json) == '0'))
        return read_number(n, json);
    LK_TRY(lk_json_open(json, '['));
    while (true) {
        LK_TRY(lk_json_item(json, &first, &more));
        if (!more)
            break;
        if (found++ == s->dim[axis])
            return refuse_length(n, json, axis, found - 1, true);
        LK_TRY(is_last ? read_number(n, json) : read_axis(n, json, axis + 1));
    }
    return found == s->dim[axis] ? LK_OK : refuse_length(n, json, axis, found, false);
}

/* A number, or a list of one. */
static enum lk_status read_single(struct numbers *n, struct lk_json *json)
{
    bool first = true, more = true;
    if (lk_json_kind(json) != '[')
        return read_number(n, json);
    LK_TRY(lk_json_open(json, '['));
    LK_TRY(lk_json_item(json, &first, &more));
    LK_TRY(read_number(n, json));
    LK_TRY(lk_json_item(json, &first, &more));
    return more ? lk_json_fail(json, "input '%s' is a single number", n->field->name) : LK_OK;
}

static enum lk_status read_any(struct numbers *n, struct lk_json *json)
{
    bool first = true, more = true;
    if (lk_json_kind(json) == '0')
        return read_number(n, json);
    LK_TRY(lk_json_open(json, '['));
    while (true) {
        LK_TRY(lk_json_item(json, &first, &more));
        if (!more)
            return LK_OK;
        LK_TRY(read_any(n, json));
    }
}

static int64_t elements(const struct lk_field *field)
{
    int64_t count = 1;
    for (int i = 0; i < field->shape.rank; i++)
        count *= field->shape.dim[i];
    return count;
}

enum lk_status lk_job_read_flat(struct lk_job *job, int input, int64_t samples,
                                struct lk_json *json)
{
    const struct lk_field *field = &job->signature->inputs[input];
    if (samples < 1)
        return lk_fail(LK_E_ARGUMENT, "input '%s' has no samples", field->name);
    LK_TRY(lk_job_reserve(job, samples - 1));
    struct numbers n = {
        .field = field, .to = lk_job_sample(job, input, 0), .room = samples * elements(field)};
    LK_TRY(read_any(&n, json));
    return n.count == n.room ? LK_OK
                             : lk_json_fail(json, "input '%s' takes %lld numbers, found %lld",
                                            field->name, (long long)n.room, (long long)n.count);
}

enum lk_status lk_job_check_lengths(const struct lk_job *job)
{
    const struct lk_signature *s = job->signature;
    for (int i = 0; i < s->input_count; i++) {
        const int length = s->inputs[i].length;
        const int64_t most = s->inputs[i].shape.dim[0];
        for (int64_t n = 0; length >= 0 && n < job->count; n++) {
            int32_t found;
            memcpy(&found, lk_job_sample(job, length, n), sizeof found);
            if ((found < 0 || found > most) && !(job->texts && job->texts[n].bytes))
                return lk_fail(LK_E_DATA,
                               "input '%s' of sample %lld is %d: '%s' has lengths of 0 to %lld",
                               s->inputs[length].name, (long long)n, (int)found,
                               s->inputs[i].name, (long long)most);
        }
    }
    return LK_OK;
}

/* --- images and texts ---------------------------------------------------------------------
 */

enum lk_status lk_job_put_image(struct lk_job *job, int input, int64_t sample, const void *data,
                                size_t bytes)
{
    const struct lk_signature *s = job->signature;
    int shape[3];
    if (s->inputs[input].dtype != LK_U8 || input > 0)
        return lk_fail(LK_E_ARGUMENT, "input '%s' takes no image", s->inputs[input].name);
    LK_TRY(lk_image_measure(data, bytes, "the image", shape));
    if ((int64_t)shape[0] * shape[1] > s->most_pixels)
        return lk_fail(LK_E_DATA, "an image of %d x %d pixels: %lld are decoded at most",
                       shape[1], shape[0], (long long)s->most_pixels);
    LK_TRY(lk_job_reserve(job, sample));
    return lk_predictor_decode_image(s->predictor, data, bytes,
                                     lk_job_sample(job, input, sample));
}

enum lk_status lk_job_put_text(struct lk_job *job, int64_t sample, const char *text,
                               size_t bytes)
{
    if (!job->signature->takes_text)
        return lk_fail(LK_E_ARGUMENT, "the model takes no text");
    LK_TRY(lk_job_reserve(job, sample));
    char *copy = malloc(bytes + 1);
    if (!copy)
        return lk_fail_memory("a text", bytes);
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    free(job->texts[sample].bytes);
    job->texts[sample] = (struct lk_job_text){copy, bytes};
    return LK_OK;
}

static enum lk_status put_base64(struct lk_job *job, int input, int64_t sample,
                                 const char *text, size_t length)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    LK_TRY(lk_base64_read(text, length, &bytes, &count));
    const enum lk_status status = job->signature->takes_text
                                      ? lk_job_put_text(job, sample, (char *)bytes, count)
                                      : lk_job_put_image(job, input, sample, bytes, count);
    free(bytes);
    return status;
}

/* {"b64": "..."} */
static enum lk_status read_base64(struct lk_job *job, int input, int64_t sample,
                                  struct lk_json *json)
{
    char key[LK_JSON_NAME], *text = NULL;
    size_t bytes = 0;
    bool first = true, more = true;
    LK_TRY(lk_json_open(json, '{'));
    LK_TRY(lk_json_key(json, &first, &more, key));
    if (!more || strcmp(key, "b64") != 0)
        return lk_json_fail(json, "expected {\"b64\": ...}");
    LK_TRY(lk_json_text(json, &text, &bytes));
    enum lk_status status = put_base64(job, input, sample, text, bytes);
    free(text);
    LK_TRY(status);
    LK_TRY(lk_json_key(json, &first, &more, key));
    return more ? lk_json_fail(json, "something beside 'b64'") : LK_OK;
}

static enum lk_status read_text(struct lk_job *job, int64_t sample, struct lk_json *json)
{
    char *text = NULL;
    size_t bytes = 0;
    LK_TRY(lk_json_text(json, &text, &bytes));
    const enum lk_status status = lk_job_put_text(job, sample, text, bytes);
    free(text);
    return status;
}

enum lk_status lk_job_read_value(struct lk_job *job, int input, int64_t sample,
                                 struct lk_json *json)
{
    const struct lk_field *field = &job->signature->inputs[input];
    LK_TRY(lk_job_reserve(job, sample));
    if (lk_json_kind(json) == '{')
        return read_base64(job, input, sample, json);
    if (lk_json_kind(json) == '"' && job->signature->takes_text)
        return read_text(job, sample, json);
    struct numbers n = {
        .field = field, .to = lk_job_sample(job, input, sample), .room = elements(field)};
    return field->shape.rank ? read_axis(&n, json, 0) : read_single(&n, json);
}
