/* A version of a model: opening it, on which device, and closing it. */
#include "base/fail.h"
#include "base/log.h"
#include "base/number.h"
#include "serve/models/served.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- devices ------------------------------------------------------------------------------
 */

/* Entry `index` of a list of devices that still work, which goes round. */
static enum lk_status choose_device(const char *list, int index, char *entry, size_t bytes)
{
    char left[512] = "";
    static const bool none_lost[256];
    int count = 0;
    *entry = '\0';
    if (!list || !*list)
        return LK_OK;
    LK_TRY(lk_device_list_count(list, &count));
    if (count > 256)
        return lk_fail(LK_E_ARGUMENT, "a list of %d devices", count);
    LK_TRY(lk_device_list_left(list, none_lost, left, sizeof left, &count));
    if (count == 0)
        return lk_fail(LK_E_NO_DEVICE, "no device of '%s' is left", list);
    const char *at = left;
    for (int i = 0; i < index % count; i++)
        at = strchr(at, ',') ? strchr(at, ',') + 1 : left;
    snprintf(entry, bytes, "%.*s", (int)strcspn(at, ","), at);
    return LK_OK;
}

bool lk_status_is_of_device(enum lk_status status)
{
    return status == LK_E_DEVICE || status == LK_E_DEVICE_MEMORY || status == LK_E_NO_DEVICE ||
           status == LK_E_BUILD;
}

static enum lk_status open_predictor(struct lk_version *v, struct lk_predictor **predictor)
{
    LK_TRY(choose_device(v->served->options->device, v->served->index, v->device,
                         sizeof v->device));
    return lk_predictor_open_to_serve(v->path, *v->device ? v->device : NULL,
                                      v->served->options->max_batch, predictor);
}

enum lk_status lk_version_reopen(struct lk_version *v)
{
    struct lk_predictor *opened = NULL;
    lk_log(LK_LOG_WARNING, "model '%s': %s; opened again", v->served->name, lk_error_text());
    lk_error_clear();
    if (v->used != v->first)
        lk_predictor_close(v->used);
    v->used = NULL;
    LK_TRY(open_predictor(v, &opened));
    v->used = opened;
    lk_counts_add_reopened(&v->served->counts);
    return LK_OK;
}

/* --- opening ------------------------------------------------------------------------------
 */

static void describe(struct lk_version *v)
{
    struct lk_signature *s = &v->signature;
    s->predictor = v->first;
    s->most_pixels = v->served->options->max_pixels;
    s->takes_text = lk_predictor_takes_text(v->first);
    while (s->input_count < LK_MOST_INPUTS &&
           lk_predictor_input(v->first, s->input_count, &s->inputs[s->input_count])) {
        s->input_bytes[s->input_count] = lk_field_bytes(&s->inputs[s->input_count]);
        s->input_count++;
    }
    for (int o = 0; o < LK_MOST_OUTPUTS && lk_predictor_output(v->first, o, &s->outputs[o]);
         o++) {
        struct lk_shape *shape = &s->outputs[o].shape;
        s->own_shapes[o] = *shape;
        s->output_elements[o] = lk_shape_count(shape);
        s->is_turned[o] = shape->rank == 3 && !s->outputs[o].keeps_order;
        if (s->is_turned[o])
            *shape = (struct lk_shape){
                3, {s->own_shapes[o].dim[1], s->own_shapes[o].dim[2], s->own_shapes[o].dim[0]}};
        s->output_count = o + 1;
    }
}

static void say_memory(const struct lk_version *v)
{
    size_t few = 0;
    const size_t bytes = lk_predictor_bytes(v->first, &few);
    char more[64] = "";
    if (few > 0)
        snprintf(more, sizeof more, ", of these %.1f MB for up to 8 samples",
                 (double)few / 1e6);
    lk_log(LK_LOG_INFO, "model '%s', version %lld: %.1f MB on its device%s", v->served->name,
           (long long)v->number, (double)bytes / 1e6, more);
}

static enum lk_status take_memory(struct lk_version *v)
{
    const size_t most = (size_t)v->served->options->max_batch;
    for (int i = 0; i < v->signature.input_count; i++) {
        v->inputs[i] = calloc(most, v->signature.input_bytes[i] + 1);
        if (!v->inputs[i])
            return lk_fail_memory("a batch", most * v->signature.input_bytes[i]);
    }
    for (int o = 0; o < v->signature.output_count; o++) {
        v->outputs[o] = calloc(most * (size_t)v->signature.output_elements[o], sizeof(float));
        if (!v->outputs[o])
            return lk_fail_memory("predictions of a batch", most);
    }
    return LK_OK;
}

/* What is slow only the first times should not be a client's: short launches become one at the
 * end of the second (device/chain.h). */
static enum lk_status warm_up(struct lk_version *v)
{
    const void *from[LK_MOST_INPUTS];
    for (int i = 0; i < LK_MOST_INPUTS; i++)
        from[i] = v->inputs[i];
    for (int i = 0; i < 4; i++)
        LK_TRY(lk_predictor_run_fields(v->first, i < 2 ? v->served->options->max_batch : 1,
                                       from, v->outputs));
    return LK_OK;
}

/* Seconds of $LOCKSTEP_HANG_SECONDS, as in training, or 30. */
static enum lk_status read_hang_seconds(double *seconds)
{
    const char *text = getenv("LOCKSTEP_HANG_SECONDS");
    char *end = NULL;
    *seconds = text ? lk_number_read(text, &end) : 30;
    if (text && (end == text || *end || !(*seconds > 0)))
        return lk_fail(
            LK_E_ARGUMENT,
            "LOCKSTEP_HANG_SECONDS='%s' in the environment: expected seconds above 0", text);
    return LK_OK;
}

static enum lk_status open_all(struct lk_version *v)
{
    LK_TRY(read_hang_seconds(&v->hang_seconds));
    LK_TRY(open_predictor(v, &v->first));
    v->used = v->first;
    describe(v);
    say_memory(v);
    LK_TRY(take_memory(v));
    LK_TRY(warm_up(v));
    v->has_thread = pthread_create(&v->thread, NULL, lk_version_work, v) == 0;
    return v->has_thread ? LK_OK : lk_fail_memory("a thread", 0);
}

enum lk_status lk_version_open(struct lk_served *served, int64_t number, const char *path,
                               struct lk_version **version)
{
    pthread_condattr_t monotonic;
    struct lk_version *v = calloc(1, sizeof *v);
    if (!v)
        return lk_fail_memory("a version of a model", sizeof *v);
    v->served = served;
    v->number = number;
    v->last = &v->jobs;
    snprintf(v->path, sizeof v->path, "%s", path);
    pthread_mutex_init(&v->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&v->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    const enum lk_status status = open_all(v);
    if (status != LK_OK) {
        lk_version_close(v);
        return lk_fail_within(status, "model '%s'", served->name);
    }
    *version = v;
    return LK_OK;
}

void lk_version_close(struct lk_version *v)
{
    if (!v)
        return;
    if (v->is_hung) { /* what the device may still write to stays */
        pthread_detach(v->thread);
        return;
    }
    if (v->has_thread) {
        pthread_mutex_lock(&v->mutex);
        v->ends = true;
        pthread_cond_signal(&v->news);
        pthread_mutex_unlock(&v->mutex);
        pthread_join(v->thread, NULL);
    }
    if (v->used != v->first)
        lk_predictor_close(v->used);
    lk_predictor_close(v->first);
    for (int i = 0; i < LK_MOST_INPUTS; i++)
        free(v->inputs[i]);
    for (int o = 0; o < LK_MOST_OUTPUTS; o++)
        free(v->outputs[o]);
    pthread_cond_destroy(&v->news);
    pthread_mutex_destroy(&v->mutex);
    free(v);
}
