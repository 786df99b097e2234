/* An evaluator: a replica that only predicts, batch by batch, over a data set or over arrays.
 */
#include "train/evaluation/internal.h"

#include "base/fail.h"
#include "base/progress.h"
#include "data/data.h"
#include "train/evaluation/features.h"
#include "train/evaluation/images.h"
#include <stdlib.h>
#include <string.h>

/* --- making it --------------------------------------------------------------------------- */

static enum lk_status create_judged(struct lk_evaluator *evaluator, int index)
{
    struct lk_judged *j = &evaluator->judged[index];
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

/* On the devices of a group that trains the model. */
static enum lk_status create_group(struct lk_evaluator *evaluator,
                                   const struct lk_replica_config *config)
{
    struct lk_device *devices[LK_MOST_PLACES];
    const int places = lk_group_places(config->weights_of);
    for (int i = 0; i < places; i++)
        devices[i] = lk_group_device(config->weights_of, i);
    LK_TRY(lk_group_create(config, devices, places, 1, &evaluator->group));
    evaluator->replica = lk_group_replica(evaluator->group, 0);
    return lk_group_build(evaluator->group);
}

/* A replica beside the first one, with its weights, for few samples: where plane tiles cannot
 * be taken, or there is no memory, the first one computes them too. */
static enum lk_status create_few(struct lk_evaluator *evaluator,
                                 const struct lk_replica_config *first)
{
    struct lk_replica_config config = *first;
    config.batch = config.shards = LK_FEW_SAMPLES; /* so that each sample is a shard */
    config.weights_of = evaluator->replica;
    config.weights_stay = true;
    config.few_samples = true;
    config.borrows_memory = false; /* what it packs of its weights stays there */
    enum lk_status status = lk_replica_create(&config, &evaluator->few);
    if (status == LK_OK && lk_replica_tiling(evaluator->few)->planes) {
        status = lk_replica_build(evaluator->few);
        if (status == LK_OK)
            return LK_OK;
    }
    lk_replica_destroy(evaluator->few);
    evaluator->few = NULL;
    if (status != LK_E_DEVICE_MEMORY)
        return status;
    lk_error_clear();
    return LK_OK;
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
        .few_samples = !c->weights_of && c->batch <= LK_FEW_SAMPLES,
        .borrows_memory = true, /* evaluation comes between steps */
        .choices = c->choices,
    };
    const int lanes = lk_device_info(c->device)->lanes;
    if (c->cuts && c->batch > lanes && c->batch % lanes == 0)
        config.shards = (int)(c->batch / lanes);
    lk_model_output_nodes(c->model, config.outputs);
    for (int i = 0; i < c->model->output_count; i++)
        LK_TRY(create_judged(evaluator, i));
    if (c->weights_of && lk_group_places(c->weights_of) > 1) {
        evaluator->features = NULL; /* a group runs the whole model */
        return create_group(evaluator, &config);
    }
    if (evaluator->features)
        LK_TRY(lk_evaluator_divide(evaluator, &config));
    if (!evaluator->features)
        LK_TRY(lk_replica_create(&config, &evaluator->replica));
    evaluator->batch = lk_replica_batch(evaluator->replica);
    LK_TRY(lk_replica_build(evaluator->replica));
    return c->few_too && c->batch > LK_FEW_SAMPLES ? create_few(evaluator, &config) : LK_OK;
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
    made->features = config->features;
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
    lk_replica_destroy(evaluator->few);
    lk_replica_destroy(evaluator->frozen);
    if (evaluator->group)
        lk_group_destroy(evaluator->group);
    else
        lk_replica_destroy(evaluator->replica);
    for (int i = 0; i < LK_MOST_OUTPUTS; i++) {
        struct lk_judged *j = &evaluator->judged[i];
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

size_t lk_evaluator_bytes(const struct lk_evaluator *evaluator, size_t *few)
{
    *few = evaluator->few ? lk_replica_bytes(evaluator->few).total : 0;
    return lk_replica_bytes(evaluator->replica).total + *few;
}

void lk_evaluator_watch(struct lk_evaluator *evaluator, void (*beat)(void *), void *context)
{
    evaluator->beat = beat;
    evaluator->watcher = context;
}

void lk_evaluator_stop_at(struct lk_evaluator *evaluator, const atomic_bool *stop)
{
    evaluator->stop = stop;
}

/* --- predicting -------------------------------------------------------------------------- */

static enum lk_status load_place(void *context, struct lk_replica *replica, int place,
                                 int index)
{
    (void)place;
    (void)index;
    return lk_replica_load(replica, 0, *(const int64_t *)context);
}

static enum lk_status run_forward(struct lk_evaluator *evaluator, struct lk_replica *replica,
                                  int64_t count)
{
    const struct lk_group_work work = {
        .context = &count, .micro_batches = 1, .load = load_place};
    if (evaluator->group)
        return lk_group_run(evaluator->group, &work);
    const int64_t each = lk_replica_tiling(replica)->shard_samples;
    const struct lk_micro_batch used = {.shards = (int)lk_divide_up(count, each),
                                        .samples = count};
    LK_TRY(lk_replica_load_micro_batch(replica, 0, &used));
    return lk_replica_forward(replica, 0);
}

static enum lk_status predict_once(struct lk_evaluator *evaluator, struct lk_replica *first,
                                   int64_t count, float *const *to)
{
    LK_TRY(run_forward(evaluator, first, count));
    for (int i = 0; i < evaluator->model->output_count; i++) {
        const struct lk_node *node = evaluator->model->outputs[i].node;
        const struct lk_replica *replica =
            lk_group_member(first, evaluator->group ? lk_node_place(node) : 0);
        struct lk_shape shape;
        const struct lk_buffer *y = lk_replica_output(replica, i, &shape);
        LK_TRY(lk_tiled_read(y, lk_replica_tiling(replica), &shape, LK_F32, count, to[i]));
    }
    for (int p = 0; p < lk_group_places(first); p++)
        LK_TRY(lk_replica_wait_slot(lk_group_member(first, p), 0));
    return LK_OK;
}

/* Predicts the `count` samples that lie in slot 0 of `first`, which is evaluator->replica or
 * ->few; to[o]: predictions of output o, [count][elements]. Once more where something crossed
 * wrong between devices of a group. */
static enum lk_status predict_slot(struct lk_evaluator *evaluator, struct lk_replica *first,
                                   int64_t count, float *const *to)
{
    for (int tries = 0; tries < 2; tries++) {
        int wrong_at = -1;
        LK_TRY(predict_once(evaluator, first, count, to));
        if (evaluator->group)
            LK_TRY(lk_group_check(evaluator->group, &wrong_at));
        if (wrong_at < 0)
            return LK_OK;
    }
    return lk_fail(LK_E_DEVICE,
                   "what crosses between the devices of a group does not arrive unchanged");
}

enum lk_status lk_evaluator_predict(struct lk_evaluator *evaluator, int64_t count,
                                    const void *const *inputs, float *const *outputs)
{
    const struct lk_model *model = evaluator->model;
    for (int64_t i = 0, n; i < count; i += n) {
        const bool is_few = evaluator->few && count - i <= LK_FEW_SAMPLES;
        struct lk_replica *used = is_few ? evaluator->few : evaluator->replica;
        n = lk_least(lk_replica_batch(used), count - i);
        float *to[LK_MOST_OUTPUTS];
        for (int j = 0; j < model->input_count; j++) {
            const struct lk_node *node = model->inputs[j];
            const size_t bytes = lk_input_bytes(&node->input);
            for (int p = 0; p < lk_group_places(used); p++) {
                void *slot = lk_replica_slot(lk_group_member(used, p), node, 0);
                if (slot)
                    memcpy(slot, (const char *)inputs[j] + (size_t)i * bytes,
                           (size_t)n * bytes);
            }
        }
        for (int j = 0; j < model->output_count; j++)
            to[j] = outputs[j] + i * evaluator->judged[j].elements;
        LK_TRY(predict_slot(evaluator, used, n, to));
    }
    return LK_OK;
}

static enum lk_status read_batch(struct lk_evaluator *evaluator, int64_t batch, int64_t count,
                                 void *fields[LK_MOST_FIELDS])
{
    void *targets[LK_MOST_FIELDS];
    struct lk_feed_target slots[LK_MOST_PLACES];
    memcpy(targets, fields, sizeof targets);
    const struct lk_batch_range range = {batch, 0, count};
    const int places = lk_group_places(evaluator->replica);
    for (int p = 0; p < places; p++)
        slots[p] = (struct lk_feed_target){lk_group_member(evaluator->replica, p), 0};
    LK_TRY(
        lk_feed_read_all(&evaluator->feed, slots, places, evaluator->batches, range, fields));
    return evaluator->features
               ? lk_evaluator_keep_targets(evaluator, batch * evaluator->batch, count, targets)
               : LK_OK;
}

enum lk_status lk_evaluator_predict_batch(struct lk_evaluator *evaluator, int64_t batch,
                                          int64_t count)
{
    float *to[LK_MOST_OUTPUTS];
    void *fields[LK_MOST_FIELDS];
    memcpy(fields, evaluator->targets, sizeof fields);
    for (int i = 0; i < evaluator->model->output_count; i++)
        to[i] = evaluator->judged[i].predictions;
    if (evaluator->features)
        LK_TRY(lk_evaluator_load_features(evaluator, batch, count));
    if (!evaluator->features ||
        !lk_evaluator_recall_targets(evaluator, batch * evaluator->batch, count, fields))
        LK_TRY(read_batch(evaluator, batch, count, fields));
    return predict_slot(evaluator, evaluator->replica, count, to);
}

enum lk_status lk_evaluator_open_batches(struct lk_evaluator *evaluator,
                                         const struct lk_data *data, int64_t *end)
{
    const struct lk_node *images = lk_model_images(evaluator->model);
    const struct lk_batches_options options = {
        .size = (int)evaluator->batch,
        .height = images ? (int)images->shapes.y.dim[1] : 0,
        .width = images ? (int)images->shapes.y.dim[2] : 0,
        .threads = LK_BATCHES_AUTO,
        .eval_pipeline = evaluator->pipeline,
        .end = lk_divide_up(lk_data_info(data)->count, evaluator->batch),
    };
    *end = options.end;
    return lk_batches_create(data, &options, &evaluator->batches);
}

enum lk_status lk_evaluator_for_batches(struct lk_evaluator *evaluator,
                                        const struct lk_data *data, void *context,
                                        enum lk_status (*use)(struct lk_evaluator *evaluator,
                                                              void *context, int64_t first,
                                                              int64_t count))
{
    int64_t end;
    LK_TRY(lk_evaluator_open_batches(evaluator, data, &end));
    enum lk_status status = LK_OK;
    lk_progress_begin(LK_TASK_EVALUATE, lk_data_info(data)->count);
    for (int64_t batch = 0; batch < end && status == LK_OK; batch++) {
        const int64_t count = lk_batches_size(evaluator->batches, batch);
        if (evaluator->stop && atomic_load(evaluator->stop)) {
            status = lk_fail(LK_E_INTERRUPTED, "the evaluation was interrupted");
            break;
        }
        if (!lk_evaluator_recall_batch(evaluator, batch, count))
            status = lk_evaluator_predict_batch(evaluator, batch, count);
        if (status == LK_OK)
            status = use(evaluator, context, batch * evaluator->batch, count);
        lk_progress_add(LK_TASK_EVALUATE, count);
        if (evaluator->beat)
            evaluator->beat(evaluator->watcher);
    }
    lk_progress_end(LK_TASK_EVALUATE);
    lk_batches_destroy(evaluator->batches);
    evaluator->batches = NULL;
    return status;
}

struct visitor {
    const struct lk_data *data;
    void *context;
    enum lk_status (*visit)(void *context, int64_t sample, const float *const *outputs);
};

static enum lk_status visit_batch(struct lk_evaluator *evaluator, void *context, int64_t first,
                                  int64_t count)
{
    const struct visitor *visitor = context;
    for (int64_t i = 0; i < count; i++) {
        const float *outputs[LK_MOST_OUTPUTS];
        if (lk_data_is_bad(visitor->data, first + i))
            continue; /* another sample stood in for it */
        for (int o = 0; o < evaluator->model->output_count; o++)
            outputs[o] = evaluator->judged[o].predictions + i * evaluator->judged[o].elements;
        LK_TRY(visitor->visit(visitor->context, first + i, outputs));
    }
    return LK_OK;
}

enum lk_status lk_evaluator_each(struct lk_evaluator *evaluator, struct lk_data *data,
                                 void *context,
                                 enum lk_status (*visit)(void *, int64_t, const float *const *))
{
    struct visitor visitor = {data, context, visit};
    LK_TRY(lk_binding_make_inputs(evaluator->model, data, &evaluator->feed));
    return lk_evaluator_for_batches(evaluator, data, &visitor, visit_batch);
}
