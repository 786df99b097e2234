/* A call from its body to its answer. */
#include "serve/rest/call.h"

#include "base/clock.h"
#include "base/fail.h"
#include "io/gzip.h"
#include "io/image/image.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void end(struct lk_call *call)
{
    lk_job_destroy(call->job);
    lk_served_release(call->version);
    free(call);
}

/* Whose fault a failure is. */
static int http_status(enum lk_status status)
{
    if (status == LK_OK)
        return 200;
    if (lk_status_is_of_device(status) || status == LK_E_MEMORY)
        return 503;
    if (status == LK_E_UNSUPPORTED)
        return 415;
    return status == LK_E_INTERRUPTED || status == LK_E_IO ? 500 : 400;
}

static struct lk_http_reply reply_of(const struct lk_call *call, enum lk_status status)
{
    return (struct lk_http_reply){.status = call->is_too_large ? 413 : http_status(status),
                                  .retry_after = http_status(status) == 503 ? 1 : 0,
                                  .model = call->version->served->name,
                                  .samples = call->job ? call->job->count : 0};
}

/* On the worker's thread. The exchange is gone when this returns. */
static void answer(struct lk_job *job)
{
    struct lk_call *call = job->context;
    struct lk_http_reply reply = reply_of(call, job->status);
    struct lk_text text = {0};
    if (job->status != LK_OK) {
        lk_answer_error(call->exchange, reply, "%s", job->error);
    } else {
        call->answer(call, &reply, &text);
        lk_answer_send(call->exchange, reply, &text);
    }
    end(call);
}

static void refuse(struct lk_call *call, enum lk_status status)
{
    char message[LK_JOB_ERROR];
    snprintf(message, sizeof message, "%s", lk_error_text());
    struct lk_http_reply reply = reply_of(call, status);
    lk_answer_error(call->exchange, reply, "%s", message);
    end(call);
}

/* Puts the body that was compressed in place of what came. */
static enum lk_status inflate(struct lk_call *call)
{
    const struct lk_http_request *r = call->request;
    const size_t most = call->version->served->options->max_body;
    const char *how = r->content_encoding;
    struct lk_inflated inflated = {0};
    if (!*how || strcasecmp(how, "identity") == 0)
        return LK_OK;
    const bool is_gzip = strcasecmp(how, "gzip") == 0 || strcasecmp(how, "x-gzip") == 0;
    if (!is_gzip && strcasecmp(how, "deflate") != 0)
        return lk_fail(LK_E_UNSUPPORTED, "Content-Encoding '%.32s': gzip and deflate are known",
                       how);
    const enum lk_status status = lk_inflate(is_gzip, r->body, r->bytes, most, &inflated);
    call->is_too_large = inflated.is_larger;
    LK_TRY(status);
    call->inflated = inflated.data;
    call->plain = *r;
    call->plain.body = call->inflated;
    call->plain.bytes = inflated.bytes;
    call->request = &call->plain;
    return LK_OK;
}

/* Afterwards nothing of the body is needed. */
static enum lk_status read_body(struct lk_call *call, lk_call_reader *read)
{
    LK_TRY(inflate(call));
    const enum lk_status status = read(call);
    free(call->inflated);
    call->inflated = NULL;
    return status;
}

void lk_call_run(struct lk_http_exchange *exchange, const struct lk_http_request *request,
                 struct lk_version *version, lk_call_reader *read)
{
    struct lk_call *call = calloc(1, sizeof *call);
    if (!call) {
        lk_served_release(version);
        lk_answer_error(exchange, (struct lk_http_reply){.status = 503}, "out of memory");
        return;
    }
    *call = (struct lk_call){.exchange = exchange, .request = request, .version = version};
    lk_error_clear();
    enum lk_status status = lk_job_create(version, &version->signature, &call->job);
    if (status == LK_OK)
        status = read_body(call, read);
    if (status == LK_OK && call->job->count == 0)
        status = lk_fail(LK_E_DATA, "the request has no sample");
    if (status == LK_OK)
        status = lk_job_check_lengths(call->job);
    if (status != LK_OK) {
        refuse(call, status);
        return;
    }
    call->job->done = answer;
    call->job->context = call;
    const enum lk_submitted submitted = lk_version_submit(version, call->job);
    if (submitted == LK_SUBMITTED)
        return;
    if (submitted == LK_DEVICE_HANGS) {
        refuse(call, lk_fail(LK_E_DEVICE, "the device does not answer"));
        return;
    }
    struct lk_http_reply reply = reply_of(call, LK_OK);
    lk_counts_add_refused(&version->served->counts);
    reply.status = 429;
    reply.retry_after = 1;
    lk_answer_error(exchange, reply, "%lld samples wait already: try again later",
                    (long long)version->served->options->max_queue);
    end(call);
}

static bool begins_json(const struct lk_http_request *request)
{
    size_t at = 0;
    while (at < request->bytes && strchr(" \t\r\n", request->body[at]) && request->body[at])
        at++;
    return at < request->bytes && request->body[at] == '{';
}

enum lk_status lk_call_take_plain(struct lk_call *call, bool *is_plain)
{
    const struct lk_http_request *r = call->request;
    const char *type = r->content_type;
    const bool is_image = lk_image_format(r->body, r->bytes) || strncmp(type, "image/", 6) == 0;
    const bool is_text = !is_image && (strncmp(type, "text/", 5) == 0 ||
                                       (call->job->signature->takes_text && !begins_json(r) &&
                                        strncmp(type, "application/json", 16) != 0));
    *is_plain = r->bytes > 0 && (is_image || is_text);
    if (!*is_plain)
        return LK_OK;
    LK_TRY(is_image ? lk_job_put_image(call->job, 0, 0, r->body, r->bytes)
                    : lk_job_put_text(call->job, 0, (const char *)r->body, r->bytes));
    call->job->count = 1;
    return LK_OK;
}
