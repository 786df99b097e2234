/* An evaluation that several devices share: each predicts a part of the data, and one of them
 * judges all predictions in the order of the samples, so that figures have the bits of one. */
#include "train/evaluation/internal.h"

#include "base/fail.h"
#include "data/data.h"
#include <stdlib.h>
#include <string.h>

int64_t lk_evaluator_batch(const struct lk_evaluator *evaluator)
{
    return evaluator->batch;
}

void lk_evaluator_take_predicted(struct lk_evaluator *evaluator,
                                 const struct lk_predicted *predicted)
{
    evaluator->predicted = predicted;
}

void lk_predicted_clear(struct lk_predicted *predicted)
{
    free(predicted->is_there);
    for (int i = 0; i < LK_MOST_OUTPUTS; i++)
        free(predicted->outputs[i]);
    for (int i = 0; i < LK_MOST_FIELDS; i++)
        free(predicted->targets[i]);
    *predicted = (struct lk_predicted){0};
}

/* Which fields have targets; a sample's bytes in all. */
static size_t measure(const struct lk_evaluator *evaluator, const struct lk_data *data,
                      struct lk_predicted *p)
{
    size_t sum = 0;
    for (int i = 0; i < evaluator->model->output_count; i++) {
        const struct lk_judged *j = &evaluator->judged[i];
        p->fields[i] = j->field;
        p->output_bytes[i] = (size_t)j->elements * sizeof(float);
        sum += p->output_bytes[i];
        if (j->field >= 0 && p->target_bytes[j->field] == 0) {
            p->target_bytes[j->field] = lk_field_bytes(&lk_data_info(data)->fields[j->field]);
            sum += p->target_bytes[j->field];
        }
    }
    return sum;
}

static enum lk_status allocate(struct lk_predicted *p)
{
    const size_t count = (size_t)p->count;
    bool is_whole = true;
    p->is_there = calloc((size_t)lk_divide_up(p->count, p->batch), sizeof *p->is_there);
    for (int i = 0; i < LK_MOST_OUTPUTS; i++)
        if (p->output_bytes[i] > 0)
            is_whole &= (p->outputs[i] = malloc(count * p->output_bytes[i])) != NULL;
    for (int i = 0; i < LK_MOST_FIELDS; i++)
        if (p->target_bytes[i] > 0)
            is_whole &= (p->targets[i] = malloc(count * p->target_bytes[i])) != NULL;
    return is_whole && p->is_there ? LK_OK : lk_fail_memory("predictions", count);
}

enum lk_status lk_predicted_init(struct lk_evaluator *evaluator, struct lk_data *data,
                                 size_t most_bytes, struct lk_predicted *predicted)
{
    *predicted =
        (struct lk_predicted){.count = lk_data_info(data)->count, .batch = evaluator->batch};
    enum lk_status status = lk_evaluator_bind(evaluator, data);
    lk_evaluator_release_targets(evaluator);
    LK_TRY(status);
    predicted->feed = evaluator->feed;
    const size_t bytes = measure(evaluator, data, predicted);
    if (bytes > 0 && (size_t)predicted->count > most_bytes / bytes)
        return lk_fail_memory("predictions", most_bytes);
    status = allocate(predicted);
    if (status != LK_OK)
        lk_predicted_clear(predicted);
    return status;
}

/* Copies what predicting a batch has left, or back. */
static void copy(const struct lk_evaluator *evaluator, const struct lk_predicted *p,
                 int64_t batch, int64_t count, bool back)
{
    const size_t at = (size_t)(batch * p->batch), n = (size_t)count;
    for (int i = 0; i < LK_MOST_OUTPUTS; i++) {
        if (!p->outputs[i])
            continue;
        char *stored = (char *)p->outputs[i] + at * p->output_bytes[i];
        void *own = evaluator->judged[i].predictions;
        memcpy(back ? own : stored, back ? stored : own, n * p->output_bytes[i]);
    }
    for (int i = 0; i < LK_MOST_FIELDS; i++) {
        if (!p->targets[i])
            continue;
        char *stored = p->targets[i] + at * p->target_bytes[i];
        void *own = evaluator->targets[i];
        memcpy(back ? own : stored, back ? stored : own, n * p->target_bytes[i]);
    }
}

bool lk_evaluator_recall_batch(struct lk_evaluator *evaluator, int64_t batch, int64_t count)
{
    const struct lk_predicted *p = evaluator->predicted;
    if (!p || p->batch != evaluator->batch || !p->is_there[batch])
        return false;
    copy(evaluator, p, batch, count, true);
    return true;
}

static enum lk_status predict(struct lk_evaluator *evaluator, int64_t first, int64_t end,
                              struct lk_predicted *predicted)
{
    for (int64_t batch = first; batch < end; batch++) {
        const int64_t count = lk_batches_size(evaluator->batches, batch);
        if (evaluator->stop && atomic_load(evaluator->stop))
            return lk_fail(LK_E_INTERRUPTED, "the evaluation was interrupted");
        LK_TRY(lk_evaluator_predict_batch(evaluator, batch, count));
        copy(evaluator, predicted, batch, count, false);
        predicted->is_there[batch] = true;
        if (evaluator->beat)
            evaluator->beat(evaluator->watcher);
    }
    return LK_OK;
}

enum lk_status lk_evaluator_predict_part(struct lk_evaluator *evaluator, struct lk_data *data,
                                         int64_t first, int64_t end,
                                         struct lk_predicted *predicted)
{
    int64_t batches;
    enum lk_status status = lk_evaluator_bind_as(evaluator, data, predicted);
    if (status == LK_OK)
        status = lk_evaluator_open_batches(evaluator, data, &batches);
    if (status == LK_OK) {
        status = predict(evaluator, first, end, predicted);
        lk_batches_destroy(evaluator->batches);
        evaluator->batches = NULL;
    }
    lk_evaluator_release_targets(evaluator);
    return status;
}
