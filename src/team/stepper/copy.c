/* A copy of a device's training state that is made while the next step runs: parameters and
 * optimizer state change only at that step's end. */
#include "team/stepper/internal.h"

#include "base/fail.h"

static enum lk_status enqueue(struct lk_device *device, const struct lk_buffer *from,
                              struct lk_staging **to)
{
    if (!*to)
        LK_TRY(lk_staging_create(device, lk_buffer_bytes(from), to));
    return lk_staging_enqueue_copy(*to, from);
}

enum lk_status lk_stepper_enqueue_copy(struct lk_stepper *stepper, struct lk_state_copy *copy)
{
    for (int i = 0; i < stepper->place_count; i++) {
        const struct lk_stepper_place *at = &stepper->places[i];
        LK_TRY(enqueue(at->device, lk_replica_weights(at->replica), &copy->weights[i]));
        LK_TRY(enqueue(at->device, lk_optimizer_info(at->optimizer)->state, &copy->state[i]));
    }
    stepper->copied = copy;
    return LK_OK;
}

enum lk_status lk_stepper_await_copy(struct lk_stepper *stepper)
{
    const struct lk_state_copy *copy = stepper->copied;
    stepper->copied = NULL;
    for (int i = 0; copy && i < stepper->place_count; i++) {
        LK_TRY(lk_staging_enqueue_barrier(copy->weights[i]));
        LK_TRY(lk_staging_enqueue_barrier(copy->state[i]));
    }
    return LK_OK;
}

enum lk_status lk_state_copy_wait(const struct lk_state_copy *copy)
{
    for (int i = 0; i < LK_MOST_PLACES && copy->state[i]; i++) {
        LK_TRY(lk_staging_wait(copy->weights[i]));
        LK_TRY(lk_staging_wait(copy->state[i]));
    }
    return LK_OK;
}

void lk_state_copy_clear(struct lk_state_copy *copy)
{
    for (int i = 0; i < LK_MOST_PLACES; i++) {
        lk_staging_destroy(copy->weights[i]);
        lk_staging_destroy(copy->state[i]);
    }
    *copy = (struct lk_state_copy){0};
}
