/* The gradient of a step, for those who want to look at it afterwards. */
#include "team/stepper/internal.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

static enum lk_status keep_place(struct lk_stepper *stepper, int place)
{
    const struct lk_replica *replica = stepper->places[place].replica;
    const int64_t trainable = lk_replica_trainable_count(replica);
    const size_t bytes = (size_t)trainable * sizeof(float);
    float **kept = &stepper->kept[place];
    void *sums;
    if (!*kept && bytes > 0)
        *kept = calloc(1, bytes);
    if (!*kept && bytes > 0)
        return lk_fail_memory("a copy of the gradient", bytes);
    for (int b = 0; b < lk_replica_bucket_count(replica); b++) {
        const struct lk_bucket bucket = lk_replica_bucket(replica, b);
        const int number = lk_exchange_bucket(stepper->exchange, place, b);
        if (bucket.list_stride > 0 || bucket.first >= trainable) /* row lists, averages */
            continue;
        LK_TRY(lk_exchange_result(stepper->exchange, number, &sums));
        memcpy(*kept + bucket.first, sums, (size_t)bucket.count * sizeof(float));
    }
    return LK_OK;
}

enum lk_status lk_stepper_keep_gradient(struct lk_stepper *stepper, int64_t step)
{
    if (stepper->config.real != LK_F32)
        return LK_OK;
    for (int p = 0; p < stepper->place_count; p++)
        LK_TRY(keep_place(stepper, p));
    stepper->kept_step = step;
    return LK_OK;
}

enum lk_status lk_stepper_read_gradient(struct lk_stepper *stepper, int64_t step,
                                        const struct lk_param *param, int place, float *sum,
                                        bool *is_there)
{
    const size_t bytes = (size_t)param->count * sizeof *sum;
    *is_there = stepper->config.real == LK_F32 && param->is_trainable && param->places == 0 &&
                (!stepper->exchange || stepper->kept_step == step);
    if (!*is_there)
        return LK_OK;
    if (!stepper->exchange)
        return lk_buffer_read(stepper->gradient, (size_t)param->gradient_at * sizeof *sum,
                              bytes, sum);
    memcpy(sum, stepper->kept[place] + param->offset, bytes);
    return LK_OK;
}
