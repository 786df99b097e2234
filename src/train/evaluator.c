/* Predicts with a replica, and compares with targets on the host, where all metrics are. */
#include "train/evaluator.h"

#include "base/fail.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One output of the model. */
struct judged {
    struct lk_model_output *output;
    int64_t elements;       /* of a sample's prediction */
    float *predictions;     /* [batch][elements] */
    struct lk_metric *loss; /* NULL: not trained, so not judged */
    struct lk_metric *metrics[LK_MOST_METRICS];
    float *converted; /* [batch]: targets that are integers in the data */
    int field;        /* of its targets in the data at work; -1: none */
    struct lk_figure figures[LK_MOST_METRICS];
};

struct lk_evaluator {
    struct lk_model *model;
    struct lk_replica *replica;
    int64_t batch;
    const char *pipeline;
    struct judged judged[LK_MOST_OUTPUTS];
    struct lk_output_evaluation found[LK_MOST_OUTPUTS];
    int of_classes;     /* the first output that predicts one class a sample; -1: none */
    int64_t *confusion; /* [classes][classes] of it */
    struct lk_feed feed;
    void *targets[LK_MOST_FIELDS]; /* of the batch at work */
    struct lk_batches *batches;
    void (*beat)(void *); /* NULL: nobody watches */
    void *watcher;
};

enum { MOST_CLASSES = 1 << 15 };

/* The first input that takes images; NULL: none does. */
static const struct lk_node *find_images(const struct lk_model *model)
{
    for (int i = 0; i < model->input_count; i++)
        if (model->inputs[i]->input.dtype == LK_U8)
            return model->inputs[i];
    return NULL;
}

struct lk_data_options lk_data_wanted(const struct lk_model *model,
                                      const struct lk_pipeline *pipeline)
{
    const struct lk_node *images = find_images(model);
    if (!images)
        return (struct lk_data_options){0};
    const struct lk_shape x = images->shapes.y;
    const int *size = pipeline->resize;
    return (struct lk_data_options){.height = size[0] ? size[0] : (int)x.dim[1],
                                    .width = size[0] ? size[1] : (int)x.dim[2],
                                    .channels = (int)x.dim[0],
                                    .decode = pipeline->decodes_full ? "full" : NULL,
                                    .part_height = pipeline->part[0],
                                    .part_width = pipeline->part[1],
                                    .parts_by_chance = pipeline->parts_by_chance};
}

enum lk_status lk_model_transform(const struct lk_model *model,
                                  const struct lk_pipeline *pipeline,
                                  struct lk_transform *transform)
{
    const struct lk_node *images = find_images(model);
    const struct lk_shape x = images ? images->shapes.y : (struct lk_shape){3, {1, 1, 1}};
    const int *crop = pipeline->crop;
    if (crop[0] && (x.dim[1] != crop[0] || x.dim[2] != crop[1]))
        return lk_fail(LK_E_ARGUMENT,
                       "the pipeline crops to %dx%d, the model takes images of %lldx%lld",
                       crop[0], crop[1], (long long)x.dim[1], (long long)x.dim[2]);
    return lk_pipeline_transform(pipeline, (int)x.dim[0], transform);
}

/* --- making it --------------------------------------------------------------------------- */

static enum lk_status create_judged(struct lk_evaluator *evaluator, int index)
{
    struct judged *j = &evaluator->judged[index];
    j->output = &evaluator->model->outputs[index];
    j->elements = lk_shape_count(&j->output->node->shapes.y);
    j->field = -1;
    const size_t count = (size_t)evaluator->batch * (size_t)j->elements;
    j->predictions = malloc(count * sizeof *j->predictions);
    j->converted = malloc((size_t)evaluator->batch * sizeof *j->converted);
    return j->predictions && j->converted
               ? LK_OK
               : lk_fail_memory("predictions", count * sizeof(float));
}

static enum lk_status create(struct lk_evaluator *evaluator,
                             const struct lk_evaluator_config *c)
{
    struct lk_replica_config config = {
        .device = c->device,
        .batch = c->batch,
        .shards = 1,
        .transform = c->transform,
        .real = LK_F32,
        .weights_of = c->weights_of,
        .choices = c->choices,
    };
    lk_model_output_nodes(c->model, config.outputs);
    for (int i = 0; i < c->model->output_count; i++)
        LK_TRY(create_judged(evaluator, i));
    LK_TRY(lk_replica_create(&config, &evaluator->replica));
    return lk_replica_build(evaluator->replica);
}

enum lk_status lk_evaluator_create(const struct lk_evaluator_config *config,
                                   struct lk_evaluator **evaluator)
{
    struct lk_evaluator *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("an evaluator", sizeof *made);
    made->model = config->model;
    made->batch = config->batch;
    made->pipeline = config->pipeline;
    made->of_classes = -1;
    const enum lk_status status = create(made, config);
    if (status != LK_OK) {
        lk_evaluator_destroy(made);
        return status;
    }
    *evaluator = made;
    return LK_OK;
}

void lk_evaluator_destroy(struct lk_evaluator *evaluator)
{
    if (!evaluator)
        return;
    lk_replica_destroy(evaluator->replica);
    for (int i = 0; i < LK_MOST_OUTPUTS; i++) {
        struct judged *j = &evaluator->judged[i];
        free(j->predictions);
        free(j->converted);
        lk_metric_destroy(j->loss);
        for (int m = 0; m < LK_MOST_METRICS; m++)
            lk_metric_destroy(j->metrics[m]);
    }
    free(evaluator->confusion);
    free(evaluator);
}

struct lk_replica *lk_evaluator_replica(struct lk_evaluator *evaluator)
{
    return evaluator->replica;
}

void lk_evaluator_watch(struct lk_evaluator *evaluator, void (*beat)(void *), void *context)
{
    evaluator->beat = beat;
    evaluator->watcher = context;
}

/* --- predicting -------------------------------------------------------------------------- */

/* What the outputs say of the `count` samples that lie in slot 0; to[o]: [count][elements]. */
static enum lk_status predict_slot(struct lk_evaluator *evaluator, int64_t count,
                                   float *const *to)
{
    struct lk_replica *replica = evaluator->replica;
    LK_TRY(lk_replica_load(replica, 0, count));
    LK_TRY(lk_replica_forward(replica, 0));
    for (int i = 0; i < evaluator->model->output_count; i++) {
        struct lk_shape shape;
        const struct lk_buffer *y = lk_replica_output(replica, i, &shape);
        LK_TRY(lk_tiled_read(y, lk_replica_tiling(replica), &shape, LK_F32, count, to[i]));
    }
    return lk_replica_wait_slot(replica, 0);
}

enum lk_status lk_evaluator_predict(struct lk_evaluator *evaluator, int64_t count,
                                    const void *const *inputs, float *const *outputs)
{
    const struct lk_model *model = evaluator->model;
    for (int64_t i = 0; i < count; i += evaluator->batch) {
        const int64_t n = lk_least(evaluator->batch, count - i);
        float *to[LK_MOST_OUTPUTS];
        for (int j = 0; j < model->input_count; j++) {
            const struct lk_node *node = model->inputs[j];
            const size_t bytes =
                (size_t)lk_shape_count(&node->input.shape) * lk_dtype_bytes(node->input.dtype);
            void *slot = lk_replica_slot(evaluator->replica, node, 0);
            if (slot)
                memcpy(slot, (const char *)inputs[j] + (size_t)i * bytes, (size_t)n * bytes);
        }
        for (int j = 0; j < model->output_count; j++)
            to[j] = outputs[j] + i * evaluator->judged[j].elements;
        LK_TRY(predict_slot(evaluator, n, to));
    }
    return LK_OK;
}

/* --- judging ----------------------------------------------------------------------------- */

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

/* A model whose text says nothing of a loss is one of classes. */
static enum lk_status prepare_judged(struct lk_evaluator *evaluator, int index)
{
    struct judged *j = &evaluator->judged[index];
    struct lk_model_output *output = j->output;
    if (!evaluator->model->says_loss && !output->loss.kind)
        LK_TRY(lk_output_set_standard(evaluator->model, output));
    if (!output->loss.kind)
        return LK_OK;
    LK_TRY(make_metric(&output->loss, &output->shape, &j->loss));
    for (int m = 0; m < output->metric_count; m++)
        LK_TRY(make_metric(&output->metrics[m], &output->shape, &j->metrics[m]));
    const bool is_class = output->shape.form == LK_FORM_CLASS && output->shape.steps == 1;
    if (evaluator->of_classes < 0 && is_class && output->shape.width <= MOST_CLASSES)
        evaluator->of_classes = index;
    return LK_OK;
}

static enum lk_status prepare(struct lk_evaluator *evaluator)
{
    for (int i = 0; i < evaluator->model->output_count; i++)
        LK_TRY(prepare_judged(evaluator, i));
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

/* Of a batch, as the metrics take them. */
static const void *targets_of(const struct lk_evaluator *evaluator, struct judged *j,
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

static enum lk_status judge(struct lk_evaluator *evaluator, int index,
                            const struct lk_field *fields, int64_t count)
{
    struct judged *j = &evaluator->judged[index];
    if (!j->loss)
        return LK_OK;
    const struct lk_metric_shape *shape = &j->output->shape;
    const char *target = targets_of(evaluator, j, fields, count);
    const size_t step = lk_metric_target_bytes(shape);
    for (int64_t i = 0; i < count; i++, target += step) {
        const float *y = j->predictions + i * j->elements;
        LK_TRY(lk_metric_add(j->loss, y, target));
        for (int m = 0; m < j->output->metric_count; m++)
            LK_TRY(lk_metric_add(j->metrics[m], y, target));
        int32_t label;
        memcpy(&label, target, sizeof label);
        if (index == evaluator->of_classes && label >= 0 && label < shape->width)
            evaluator->confusion[label * shape->width + lk_metric_largest(y, shape->width)]++;
    }
    return LK_OK;
}

/* Reads a batch, its inputs and targets, and predicts. */
static enum lk_status predict_batch(struct lk_evaluator *evaluator, int64_t batch,
                                    int64_t count)
{
    float *to[LK_MOST_OUTPUTS];
    void *fields[LK_MOST_FIELDS];
    memcpy(fields, evaluator->targets, sizeof fields);
    for (int i = 0; i < evaluator->model->output_count; i++)
        to[i] = evaluator->judged[i].predictions;
    LK_TRY(lk_feed_read(&evaluator->feed, evaluator->replica, 0, evaluator->batches,
                        (struct lk_batch_range){batch, 0, count}, fields));
    return predict_slot(evaluator, count, to);
}

static enum lk_status judge_batch(struct lk_evaluator *evaluator, void *unused, int64_t first,
                                  int64_t count)
{
    int field_count;
    const struct lk_field *fields = lk_batches_fields(evaluator->batches, &field_count);
    (void)unused, (void)first;
    for (int i = 0; i < evaluator->model->output_count; i++)
        LK_TRY(judge(evaluator, i, fields, count));
    return LK_OK;
}

/* Calls `use` for each batch of the data, once it is predicted: samples first to
 * first + count - 1. */
static enum lk_status
for_batches(struct lk_evaluator *evaluator, const struct lk_data *data, void *context,
            enum lk_status (*use)(struct lk_evaluator *evaluator, void *context, int64_t first,
                                  int64_t count))
{
    const struct lk_node *images = find_images(evaluator->model);
    const struct lk_batches_options options = {
        .size = (int)evaluator->batch,
        .height = images ? (int)images->shapes.y.dim[1] : 0,
        .width = images ? (int)images->shapes.y.dim[2] : 0,
        .threads = LK_BATCHES_AUTO,
        .eval_pipeline = evaluator->pipeline,
        .end = lk_divide_up(lk_data_info(data)->count, evaluator->batch),
    };
    LK_TRY(lk_batches_create(data, &options, &evaluator->batches));
    enum lk_status status = LK_OK;
    for (int64_t batch = 0; batch < options.end && status == LK_OK; batch++) {
        const int64_t count = lk_batches_size(evaluator->batches, batch);
        status = predict_batch(evaluator, batch, count);
        if (status == LK_OK)
            status = use(evaluator, context, batch * evaluator->batch, count);
        if (evaluator->beat)
            evaluator->beat(evaluator->watcher);
    }
    lk_batches_destroy(evaluator->batches);
    evaluator->batches = NULL;
    return status;
}

struct visitor {
    void *context;
    enum lk_status (*visit)(void *context, int64_t sample, const float *const *outputs);
};

static enum lk_status visit_batch(struct lk_evaluator *evaluator, void *context, int64_t first,
                                  int64_t count)
{
    const struct visitor *visitor = context;
    for (int64_t i = 0; i < count; i++) {
        const float *outputs[LK_MOST_OUTPUTS];
        for (int o = 0; o < evaluator->model->output_count; o++)
            outputs[o] = evaluator->judged[o].predictions + i * evaluator->judged[o].elements;
        LK_TRY(visitor->visit(visitor->context, first + i, outputs));
    }
    return LK_OK;
}

enum lk_status lk_evaluator_each(struct lk_evaluator *evaluator, const struct lk_data *data,
                                 void *context,
                                 enum lk_status (*visit)(void *, int64_t, const float *const *))
{
    struct visitor visitor = {context, visit};
    LK_TRY(lk_binding_make_inputs(evaluator->model, data, &evaluator->feed));
    return for_batches(evaluator, data, &visitor, visit_batch);
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

static enum lk_status run(struct lk_evaluator *evaluator, const struct lk_data *data)
{
    int targets[LK_MOST_OUTPUTS];
    LK_TRY(prepare(evaluator));
    LK_TRY(lk_binding_make(evaluator->model, data, &evaluator->feed, targets));
    LK_TRY(take_targets(evaluator, data, targets));
    return for_batches(evaluator, data, NULL, judge_batch);
}

/* The losses and metrics of all outputs, and the sum of weighted losses. */
static void report(struct lk_evaluator *evaluator, struct lk_evaluation *result)
{
    for (int i = 0; i < evaluator->model->output_count; i++) {
        struct judged *j = &evaluator->judged[i];
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
            j->figures[m] = (struct lk_figure){j->output->metrics[m].kind->name,
                                               lk_metric_result(j->metrics[m])};
            if (isnan(result->accuracy) && strcmp(j->figures[m].name, "accuracy") == 0)
                result->accuracy = j->figures[m].value;
        }
        result->loss += j->output->weight * found->loss;
    }
    result->output_count = evaluator->model->output_count;
    result->outputs = evaluator->found;
}

enum lk_status lk_evaluator_run(struct lk_evaluator *evaluator, const struct lk_data *data,
                                struct lk_evaluation *result)
{
    const struct lk_data_info *info = lk_data_info(data);
    const double start = lk_seconds();
    const enum lk_status status = run(evaluator, data);
    for (int i = 0; i < LK_MOST_FIELDS; i++) {
        free(evaluator->targets[i]);
        evaluator->targets[i] = NULL;
    }
    LK_TRY(status);
    *result = (struct lk_evaluation){.samples = info->count, .accuracy = NAN};
    report(evaluator, result);
    result->seconds = lk_seconds() - start;
    if (evaluator->of_classes >= 0) {
        const struct judged *j = &evaluator->judged[evaluator->of_classes];
        const struct lk_field *field = &info->fields[j->field];
        result->classes = (int)j->output->shape.width;
        result->confusion = evaluator->confusion;
        result->class_names = field->class_names;
        result->named_classes = field->class_names ? (int)field->classes : 0;
    }
    return LK_OK;
}
