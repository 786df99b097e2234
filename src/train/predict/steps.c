/* A language model's predictions token by token: each costs one time step, since operations
 * keep what they need of those before it: attention keys and values, recurrent layers states.
 */
#include "train/predict/steps.h"

#include "base/fail.h"
#include "graph/replica.h"
#include <stdlib.h>

struct lk_predictor_steps {
    const struct lk_model *model;
    struct lk_replica *replica;
    int64_t count; /* of tokens that came */
};

static enum lk_status create(struct lk_predictor *predictor, struct lk_replica **replica)
{
    const struct lk_model *model = predictor->model;
    const struct lk_replica_config config = {
        .device = predictor->device,
        .outputs = {model->outputs[0].node},
        .batch = 1,
        .shards = 1,
        .real = LK_F32,
        .one_step = true,
        .weights_of = lk_evaluator_replica(predictor->evaluator),
        .choices = predictor->choices,
    };
    LK_TRY(lk_replica_create(&config, replica));
    return lk_replica_build(*replica);
}

enum lk_status lk_predictor_steps_create(struct lk_predictor *predictor,
                                         struct lk_predictor_steps **steps)
{
    struct lk_predictor_steps *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("time steps", sizeof *made);
    made->model = predictor->model;
    const enum lk_status status = create(predictor, &made->replica);
    if (status != LK_OK) {
        lk_predictor_steps_destroy(made);
        return status;
    }
    *steps = made;
    return LK_OK;
}

void lk_predictor_steps_destroy(struct lk_predictor_steps *steps)
{
    if (!steps)
        return;
    lk_replica_destroy(steps->replica);
    free(steps);
}

bool lk_predictor_steps_go_on(const struct lk_predictor_steps *steps)
{
    return lk_replica_forgets_nothing(steps->replica);
}

/* Lets the next token through, which then is one of those before the others. */
static enum lk_status add(struct lk_predictor_steps *steps, int32_t token)
{
    for (int i = 0; i < steps->model->input_count; i++) {
        const struct lk_node *node = steps->model->inputs[i];
        void *slot = lk_replica_slot(steps->replica, node, 0);
        if (slot)
            *(int32_t *)slot = node->sequence ? 1 : token;
    }
    LK_TRY(lk_replica_load(steps->replica, 0, 1));
    LK_TRY(lk_replica_forward(steps->replica, steps->count++));
    return lk_replica_wait_slot(steps->replica, 0);
}

enum lk_status lk_predictor_steps_run(struct lk_predictor_steps *steps, const int32_t *tokens,
                                      int64_t count, float *predicted)
{
    struct lk_shape shape;
    for (int64_t i = 0; i < count; i++)
        LK_TRY(add(steps, tokens[i]));
    if (!predicted)
        return LK_OK;
    const struct lk_buffer *y = lk_replica_output(steps->replica, 0, &shape);
    return lk_tiled_read(y, lk_replica_tiling(steps->replica), &shape, LK_F32, 1, predicted);
}
