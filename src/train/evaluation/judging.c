/* Compares what an evaluator predicts with targets: losses, metrics and a confusion matrix, all
 * on the host. */
#include "train/evaluation/internal.h"

#include "base/clock.h"
#include "base/fail.h"
#include "model/classes.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 1 << 15 };

static enum lk_status make_metric(const struct lk_model_metric *asked,
                                  const struct lk_metric_shape *shape,
                                  struct lk_metric **metric)
{
    if (*metric) {
        lk_metric_reset(*metric);
        return LK_OK;
    }
    return lk_metric_create(asked->kind, asked->options, shape, metric);
}

/* Creates or resets the metrics of an output. If the model's text says nothing of a loss,
 * outputs are taken for class probabilities. */
static enum lk_status prepare_judged(struct lk_evaluator *evaluator, int index)
{
    struct lk_judged *j = &evaluator->judged[index];
    struct lk_model_output *output = j->output;
    if (!evaluator->model->says_loss && !output->loss.kind)
        LK_TRY(lk_output_set_standard(evaluator->model, output));
    if (!output->loss.kind)
        return LK_OK;
    LK_TRY(make_metric(&output->loss, &output->shape, &j->loss));
    for (int m = 0; m < output->metric_count; m++)
        LK_TRY(make_metric(&output->metrics[m], &output->shape, &j->metrics[m]));
    const bool is_class = output->shape.form == LK_FORM_CLASS && output->shape.time_steps == 1;
    if (evaluator->of_classes < 0 && is_class && output->shape.width <= MOST_CLASSES)
        evaluator->of_classes = index;
    return LK_OK;
}

static enum lk_status prepare(struct lk_evaluator *evaluator)
{
    for (int i = 0; i < evaluator->model->output_count; i++)
        LK_TRY(prepare_judged(evaluator, i));
    evaluator->mistake_count = 0;
    if (evaluator->of_classes < 0)
        return LK_OK;
    const int64_t classes = evaluator->judged[evaluator->of_classes].output->shape.width;
    const size_t bytes = (size_t)(classes * classes) * sizeof *evaluator->confusion;
    if (!evaluator->confusion)
        evaluator->confusion = malloc(bytes);
    if (!evaluator->confusion)
        return lk_fail_memory("a confusion matrix", bytes);
    memset(evaluator->confusion, 0, bytes);
    return LK_OK;
}

/* The targets of a batch, as the metrics take them. */
static const void *targets_of(const struct lk_evaluator *evaluator, struct lk_judged *j,
                              const struct lk_field *fields, int64_t count)
{
    const enum lk_metric_form form = j->output->shape.form;
    const bool takes_floats = form != LK_FORM_CLASS && form != LK_FORM_CHOICE;
    const int32_t *integers = evaluator->targets[j->field];
    if (!takes_floats || fields[j->field].dtype != LK_I32)
        return evaluator->targets[j->field];
    for (int64_t i = 0; i < count; i++)
        j->converted[i] = (float)integers[i];
    return j->converted;
}

/* Keeps the worst mistakes in their order; of equally bad ones the first. */
static void keep_mistake(struct lk_evaluator *evaluator, struct lk_mistake new)
{
    struct lk_mistake *list = evaluator->mistakes;
    int at = evaluator->mistake_count;
    if (new.truth == new.taken ||
        (at == LK_MOST_MISTAKES && !(new.margin > list[at - 1].margin)))
        return;
    if (at < LK_MOST_MISTAKES)
        evaluator->mistake_count++;
    else
        at--;
    for (; at > 0 && new.margin > list[at - 1].margin; at--)
        list[at] = list[at - 1];
    list[at] = new;
}

/* Counts which class sample number `sample` was taken for. */
static void count_class(struct lk_evaluator *evaluator, int64_t sample, const float *y,
                        int32_t label, int64_t width)
{
    if (label < 0 || label >= width)
        return;
    const int64_t taken = lk_metric_largest(y, width);
    evaluator->confusion[label * width + taken]++;
    keep_mistake(evaluator, (struct lk_mistake){sample, (int)label, (int)taken,
                                                (double)y[taken] - (double)y[label]});
}

static enum lk_status judge(struct lk_evaluator *evaluator, int index,
                            const struct lk_field *fields, int64_t first, int64_t count)
{
    struct lk_judged *j = &evaluator->judged[index];
    if (!j->loss)
        return LK_OK;
    const struct lk_metric_shape *shape = &j->output->shape;
    const char *target = targets_of(evaluator, j, fields, count);
    const size_t bytes = lk_metric_target_bytes(shape);
    for (int64_t i = 0; i < count; i++, target += bytes) {
        const float *y = j->predictions + i * j->elements;
        LK_TRY(lk_metric_add(j->loss, y, target));
        for (int m = 0; m < j->output->metric_count; m++)
            LK_TRY(lk_metric_add(j->metrics[m], y, target));
        int32_t label;
        memcpy(&label, target, sizeof label);
        if (index == evaluator->of_classes)
            count_class(evaluator, first + i, y, label, shape->width);
    }
    return LK_OK;
}

static enum lk_status judge_batch(struct lk_evaluator *evaluator, void *unused, int64_t first,
                                  int64_t count)
{
    int field_count;
    const struct lk_field *fields = lk_batches_fields(evaluator->batches, &field_count);
    (void)unused;
    for (int i = 0; i < evaluator->model->output_count; i++)
        LK_TRY(judge(evaluator, i, fields, first, count));
    return LK_OK;
}

/* Memory for the targets of a batch, a field each. */
static enum lk_status take_targets(struct lk_evaluator *evaluator, const struct lk_data *data,
                                   const int *targets)
{
    const struct lk_field *fields = lk_data_info(data)->fields;
    for (int i = 0; i < evaluator->model->output_count; i++) {
        const int field = evaluator->judged[i].field = targets[i];
        if (field < 0 || evaluator->targets[field])
            continue;
        const size_t bytes = (size_t)evaluator->batch * lk_field_bytes(&fields[field]);
        evaluator->targets[field] = malloc(bytes);
        if (!evaluator->targets[field])
            return lk_fail_memory("targets", bytes);
    }
    return LK_OK;
}

enum lk_status lk_evaluator_bind(struct lk_evaluator *evaluator, struct lk_data *data)
{
    int targets[LK_MOST_OUTPUTS];
    LK_TRY(lk_binding_make(evaluator->model, data, &evaluator->feed, targets));
    return take_targets(evaluator, data, targets);
}

enum lk_status lk_evaluator_bind_as(struct lk_evaluator *evaluator, const struct lk_data *data,
                                    const struct lk_predicted *predicted)
{
    evaluator->feed = predicted->feed;
    return take_targets(evaluator, data, predicted->fields);
}

void lk_evaluator_release_targets(struct lk_evaluator *evaluator)
{
    for (int i = 0; i < LK_MOST_FIELDS; i++) {
        free(evaluator->targets[i]);
        evaluator->targets[i] = NULL;
    }
}

static enum lk_status run(struct lk_evaluator *evaluator, struct lk_data *data)
{
    LK_TRY(prepare(evaluator));
    LK_TRY(lk_evaluator_bind(evaluator, data));
    return lk_evaluator_for_batches(evaluator, data, NULL, judge_batch);
}

/* Adds the penalties of a parameter's weights, in double and in their order. */
static enum lk_status add_penalties(const struct lk_replica *replica, int index,
                                    const struct lk_param *param, double *sum)
{
    const struct lk_param_penalties penalties = lk_param_penalties(param);
    double absolute = 0, squares = 0;
    if (penalties.l1 == 0 && penalties.l2 == 0)
        return LK_OK;
    float *w = malloc((size_t)param->count * sizeof *w);
    if (!w)
        return lk_fail_memory(param->name, (size_t)param->count * sizeof *w);
    const enum lk_status status = lk_replica_read_param(replica, index, w);
    for (int64_t i = 0; i < param->count && status == LK_OK; i++) {
        absolute += fabs((double)w[i]);
        squares += (double)w[i] * (double)w[i];
    }
    free(w);
    *sum += penalties.l1 * absolute + penalties.l2 * squares;
    return status;
}

/* The loss is that of training: with what its penalties take of the weights that are judged. */
static enum lk_status penalize(const struct lk_evaluator *evaluator,
                               struct lk_evaluation *result)
{
    double sum = 0;
    for (int i = 0; lk_replica_param(evaluator->replica, i); i++) {
        const int place = lk_group_place_of_param(evaluator->replica, i);
        const struct lk_replica *owner = lk_group_member(evaluator->replica, place);
        LK_TRY(add_penalties(owner, i, lk_replica_param(owner, i), &sum));
    }
    result->data_loss = result->loss;
    result->loss += sum;
    return LK_OK;
}

/* The losses and metrics of all outputs, and the sum of weighted losses. */
static void report(struct lk_evaluator *evaluator, struct lk_evaluation *result)
{
    for (int i = 0; i < evaluator->model->output_count; i++) {
        struct lk_judged *j = &evaluator->judged[i];
        struct lk_output_evaluation *found = &evaluator->found[i];
        *found =
            (struct lk_output_evaluation){.name = j->output->name, .weight = j->output->weight};
        if (!j->loss)
            continue;
        found->loss_name = j->output->loss.kind->name;
        found->loss = lk_metric_result(j->loss);
        found->figure_count = j->output->metric_count;
        found->figures = j->figures;
        for (int m = 0; m < j->output->metric_count; m++) {
            j->figures[m] = (struct lk_figure){j->output->metrics[m].label,
                                               lk_metric_result(j->metrics[m])};
            if (isnan(result->accuracy) && strcmp(j->figures[m].name, "accuracy") == 0)
                result->accuracy = j->figures[m].value;
        }
        result->loss += j->output->weight * found->loss;
    }
    result->output_count = evaluator->model->output_count;
    result->outputs = evaluator->found;
}

enum lk_status lk_evaluator_run(struct lk_evaluator *evaluator, struct lk_data *data,
                                struct lk_evaluation *result)
{
    const struct lk_data_info *info = lk_data_info(data);
    const double start = lk_seconds();
    const enum lk_status status = run(evaluator, data);
    lk_evaluator_release_targets(evaluator);
    LK_TRY(status);
    *result = (struct lk_evaluation){.samples = info->count, .accuracy = NAN};
    report(evaluator, result);
    LK_TRY(penalize(evaluator, result));
    result->seconds = lk_seconds() - start;
    if (evaluator->of_classes >= 0) {
        const struct lk_judged *j = &evaluator->judged[evaluator->of_classes];
        const struct lk_field *field = &info->fields[j->field];
        result->classes = (int)j->output->shape.width;
        result->confusion = evaluator->confusion;
        result->mistakes = evaluator->mistakes;
        result->mistake_count = evaluator->mistake_count;
        result->class_names = j->output->class_names;
        result->named_classes = (int)j->output->class_count;
        if (!lk_output_has_words(j->output) && field->class_names &&
            field->classes == result->classes) {
            result->class_names = field->class_names;
            result->named_classes = result->classes;
        }
    }
    return LK_OK;
}
