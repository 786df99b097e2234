#include "train/evaluator.h"

#include "base/fail.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lk_evaluator {
    struct lk_node *images;
    struct lk_replica *replica;
    int64_t batch;
    int classes;
    struct lk_batches *batches;
    int32_t *labels;      /* [batch] */
    float *probabilities; /* [batch][classes] */
    int64_t *confusion;   /* [classes][classes] */
    void (*beat)(void *); /* NULL: nobody watches */
    void *watcher;
};

enum { MOST_CLASSES = 1 << 15 };

enum lk_status lk_check_data(const struct lk_model *model, const struct lk_data *data)
{
    const struct lk_data_info *info = lk_data_info(data);
    const struct lk_shape x = lk_node_info(lk_model_input(model, 0)).shape;
    const struct lk_shape y = lk_node_info(lk_model_output(model)).shape;
    const bool is_same = x.dim[1] == info->height && x.dim[2] == info->width;
    /* A SPEC has asked for files to be scaled to more than the model takes: to be cropped. */
    const bool is_cropped =
        info->decodes && x.dim[1] <= info->height && x.dim[2] <= info->width;
    if (x.dim[0] != info->channels || (!is_same && !is_cropped))
        return lk_fail(
            LK_E_SHAPE,
            "data '%s' has images of %dx%dx%d, model '%s' expects %lldx%lldx%lld; set "
            "input and classes in a run file for another size",
            info->name, info->height, info->width, info->channels, lk_model_name(model),
            (long long)x.dim[1], (long long)x.dim[2], (long long)x.dim[0]);
    if (y.rank != 1 || y.dim[0] < info->classes)
        return lk_fail(LK_E_SHAPE, "data '%s' has %d classes, model '%s' predicts %lld",
                       info->name, info->classes, lk_model_name(model), (long long)y.dim[0]);
    return LK_OK;
}

struct lk_data_options lk_data_wanted(const struct lk_model *model,
                                      const struct lk_pipeline *pipeline)
{
    const struct lk_shape x = lk_node_info(lk_model_input(model, 0)).shape;
    if (x.rank != 3)
        return (struct lk_data_options){0};
    const int *size = pipeline->resize;
    return (struct lk_data_options){.height = size[0] ? size[0] : (int)x.dim[1],
                                    .width = size[0] ? size[1] : (int)x.dim[2],
                                    .channels = (int)x.dim[0],
                                    .decode = pipeline->decodes_full ? "full" : NULL,
                                    .part_height = pipeline->part[0],
                                    .part_width = pipeline->part[1],
                                    .parts_by_chance = pipeline->parts_by_chance};
}

enum lk_status lk_model_look(const struct lk_model *model, const struct lk_pipeline *pipeline,
                             struct lk_look *look)
{
    const struct lk_shape x = lk_node_info(lk_model_input(model, 0)).shape;
    const int *crop = pipeline->crop;
    if (crop[0] && (x.dim[1] != crop[0] || x.dim[2] != crop[1]))
        return lk_fail(LK_E_ARGUMENT,
                       "the pipeline crops to %dx%d, the model takes images of %lldx%lld",
                       crop[0], crop[1], (long long)x.dim[1], (long long)x.dim[2]);
    return lk_pipeline_look(pipeline, (int)x.dim[0], look);
}

static enum lk_status create(struct lk_evaluator *evaluator,
                             const struct lk_evaluator_config *c)
{
    struct lk_model *model = c->model;
    const struct lk_shape y = lk_node_info(lk_model_output(model)).shape;
    const struct lk_replica_config config = {
        .device = c->device,
        .outputs = {lk_model_output(model)},
        .batch = c->batch,
        .shards = 1,
        .look = c->look,
        .real = LK_F32,
        .weights_of = c->weights_of,
        .choices = c->choices,
    };
    if (y.rank != 1 || y.dim[0] > MOST_CLASSES)
        return lk_fail(LK_E_MODEL, "model '%s': its output is no vector of at most %d classes",
                       lk_model_name(model), MOST_CLASSES);
    const size_t classes = (size_t)y.dim[0], batch = (size_t)evaluator->batch;
    evaluator->classes = (int)classes;
    evaluator->images = lk_model_input(model, 0);
    evaluator->labels = malloc(batch * sizeof *evaluator->labels);
    evaluator->probabilities = malloc(batch * classes * sizeof *evaluator->probabilities);
    evaluator->confusion = malloc(classes * classes * sizeof *evaluator->confusion);
    if (!evaluator->labels || !evaluator->probabilities || !evaluator->confusion)
        return lk_fail_memory("predictions", batch * classes * sizeof(float));
    LK_TRY(lk_replica_create(&config, &evaluator->replica));
    return lk_replica_build(evaluator->replica);
}

enum lk_status lk_evaluator_create(const struct lk_evaluator_config *config,
                                   struct lk_evaluator **evaluator)
{
    struct lk_evaluator *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("an evaluator", sizeof *made);
    made->batch = config->batch;
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
    free(evaluator->labels);
    free(evaluator->probabilities);
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

/* Probabilities of the `count` images that lie in slot 0. */
static enum lk_status predict_slot(struct lk_evaluator *evaluator, int64_t count,
                                   float *probabilities)
{
    struct lk_shape shape;
    LK_TRY(lk_replica_load(evaluator->replica, 0, count));
    LK_TRY(lk_replica_forward(evaluator->replica, 0));
    const struct lk_buffer *y = lk_replica_output(evaluator->replica, 0, &shape);
    LK_TRY(lk_tiled_read(y, lk_replica_tiling(evaluator->replica), &shape, LK_F32, count,
                         probabilities));
    return lk_replica_wait_slot(evaluator->replica, 0);
}

enum lk_status lk_evaluator_predict(struct lk_evaluator *evaluator, int64_t count,
                                    const uint8_t *images, float *probabilities)
{
    const struct lk_shape x = lk_node_info(evaluator->images).shape;
    const int64_t bytes = lk_shape_count(&x);
    for (int64_t i = 0; i < count; i += evaluator->batch) {
        const int64_t n = count - i < evaluator->batch ? count - i : evaluator->batch;
        memcpy(lk_replica_slot(evaluator->replica, evaluator->images, 0), images + i * bytes,
               (size_t)(n * bytes));
        LK_TRY(predict_slot(evaluator, n, probabilities + i * evaluator->classes));
    }
    return LK_OK;
}

/* Adds one sample's probabilities p to the sums. */
static void count_sample(struct lk_evaluator *evaluator, const float *p, int label,
                         double *loss, int64_t *correct)
{
    int best = 0;
    for (int k = 1; k < evaluator->classes; k++)
        if (p[k] > p[best])
            best = k;
    const bool is_number = p[label] == p[label];
    *loss -= log(p[label] < FLT_MIN ? FLT_MIN : p[label]); /* NaN stays NaN */
    *correct += is_number && best == label;
    evaluator->confusion[(int64_t)label * evaluator->classes + best]++;
}

static enum lk_status run_all(struct lk_evaluator *evaluator, double *loss, int64_t *correct,
                              int64_t *samples)
{
    const int64_t batches = lk_batches_per_epoch(evaluator->batches);
    for (int64_t batch = 0; batch < batches; batch++) {
        const int64_t count = lk_batches_size(evaluator->batches, batch);
        LK_TRY(lk_batches_read(evaluator->batches, batch, 0, count,
                               lk_replica_slot(evaluator->replica, evaluator->images, 0),
                               evaluator->labels));
        LK_TRY(predict_slot(evaluator, count, evaluator->probabilities));
        for (int64_t i = 0; i < count; i++)
            count_sample(evaluator, evaluator->probabilities + i * evaluator->classes,
                         evaluator->labels[i], loss, correct);
        *samples += count;
        if (evaluator->beat)
            evaluator->beat(evaluator->watcher);
    }
    return LK_OK;
}

enum lk_status lk_evaluator_run(struct lk_evaluator *evaluator, const struct lk_data *data,
                                struct lk_evaluation *result)
{
    const struct lk_shape x = lk_node_info(evaluator->images).shape;
    const struct lk_batches_options options = {
        .size = (int)evaluator->batch,
        .height = (int)x.dim[1],
        .width = (int)x.dim[2],
        .threads = LK_BATCHES_AUTO,
        .end = lk_divide_up(lk_data_info(data)->count, evaluator->batch),
    };
    const double start = lk_seconds();
    const size_t classes = (size_t)evaluator->classes;
    double loss = 0;
    int64_t correct = 0, samples = 0;
    LK_TRY(lk_batches_create(data, &options, &evaluator->batches));
    memset(evaluator->confusion, 0, classes * classes * sizeof *evaluator->confusion);
    const enum lk_status status = run_all(evaluator, &loss, &correct, &samples);
    lk_batches_destroy(evaluator->batches);
    evaluator->batches = NULL;
    LK_TRY(status);
    *result = (struct lk_evaluation){
        .samples = samples,
        .classes = evaluator->classes,
        .loss = loss / (double)samples,
        .accuracy = (double)correct / (double)samples,
        .seconds = lk_seconds() - start,
        .confusion = evaluator->confusion,
        .class_names = lk_data_info(data)->class_names,
        .named_classes = lk_data_info(data)->class_names ? lk_data_info(data)->classes : 0,
    };
    return LK_OK;
}
