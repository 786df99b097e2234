/* Bodies of requests to a served model, by its first byte: rows and columns, examples, tensors
 * with binary data behind them. The model takes an image and numbers, or a text. */
#include "fuzz.h"
#include "serve/models/served.h"
#include "serve/rest/call.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct lk_serve_options options = {.max_batch = 4, .max_pixels = 1 << 16};
static struct lk_served served = {.name = "fuzz", .options = &options};

static struct lk_signature signature_of(bool takes_text)
{
    struct lk_signature s = {
        .inputs = {{.name = takes_text ? "tokens" : "image",
                    .dtype = takes_text ? LK_I32 : LK_U8,
                    .shape = {takes_text ? 1 : 3, {2, 2, 1}}},
                   {.name = "numbers", .dtype = LK_F32, .shape = {1, {3}}}},
        .outputs = {{.name = "class", .shape = {1, {2}}, .is_class = true}},
        .input_bytes = {takes_text ? 8 : 4, 12},
        .own_shapes = {{1, {2}}},
        .output_elements = {2},
        .input_count = takes_text ? 1 : 2,
        .output_count = 1,
        .takes_text = takes_text,
        .most_pixels = 0}; /* no image is decoded: there is no predictor */
    return s;
}

/* The answer is written too, with predictions that are all 0.5. */
static void answer(struct lk_call *call)
{
    struct lk_job *job = call->job;
    struct lk_http_reply reply = {0};
    struct lk_text text = {0};
    job->outputs[0] = malloc((size_t)job->count * 2 * sizeof(float));
    for (int64_t i = 0; job->outputs[0] && i < 2 * job->count; i++)
        job->outputs[0][i] = 0.5F;
    if (job->outputs[0] && job->count < 64)
        call->answer(call, &reply, &text);
    free(text.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static lk_call_reader *const readers[] = {lk_tensorflow_predict, lk_tensorflow_classify,
                                              lk_kserve_infer, lk_kserve_infer};
    char length[24];
    if (bytes < 2)
        return 0;
    const int reader = data[0] & 3;
    struct lk_version version = {
        .served = &served, .number = 1, .signature = signature_of(data[0] & 4)};
    /* of the last reader the second byte says how much is binary */
    const size_t binary = data[1] < bytes - 2 ? data[1] : bytes - 2;
    snprintf(length, sizeof length, "%zu", bytes - 2 - binary);
    const struct lk_http_request request = {.method = "POST",
                                            .path = "",
                                            .peer = "",
                                            .content_type = "application/json",
                                            .content_encoding = "",
                                            .header_length = reader == 3 ? length : "",
                                            .body = data + 2,
                                            .bytes = bytes - 2};
    struct lk_call call = {.request = &request, .version = &version};
    if (lk_job_create(&version, &version.signature, &call.job) == LK_OK &&
        readers[reader](&call) == LK_OK && call.job->count > 0)
        answer(&call);
    lk_job_destroy(call.job);
    lk_error_clear();
    return 0;
}
