/* A step on the thread of a device that is alone at work: all shards are its own, so that their
 * sum and the update need no host, and a step is enqueued while the one before still runs. */
#include "team/lockstep/lockstep.h"

#include "base/clock.h"
#include "base/fail.h"

enum lk_status lk_alone_begin(struct lk_worker *worker, const struct lk_command *command)
{
    struct lk_team *team = worker->team;
    const struct lk_step_share *share = &command->share;
    const int slot = (int)(share->step % LK_REPLICA_SLOTS);
    const double start = lk_seconds();
    LK_TRY(lk_worker_fail(worker, share->step));
    LK_TRY(lk_stepper_read(worker->stepper, slot, team->batches,
                           (struct lk_batch_range){share->step - 1, 0, share->samples}));
    const double read = lk_seconds();
    worker->input_ms[slot] = 1e3 * (read - start);
    lk_worker_trace(worker, share->step);
    LK_TRY(lk_stepper_enqueue(worker->stepper, slot, share->samples, command->lr, share->step));
    if (command->copies_state)
        LK_TRY(lk_worker_begin_copy(worker, share->step));
    lk_worker_note(worker, "read batch", share->step, start, read);
    lk_worker_note(worker, "enqueue", share->step, read, lk_seconds());
    return LK_OK;
}

enum lk_status lk_alone_end(struct lk_worker *worker, const struct lk_command *command)
{
    struct lk_team *team = worker->team;
    struct lk_step_result result;
    const int slot = (int)(command->share.step % LK_REPLICA_SLOTS);
    LK_TRY(lk_stepper_wait(worker->stepper, slot, &result));
    lk_worker_collect(worker, command->share.step);
    LK_TRY(lk_worker_end_copy(worker, command->share.step));
    worker->delivery.result = result;
    worker->delivery.times = (struct lk_share_times){.input_ms = worker->input_ms[slot],
                                                     .transfer_ms = result.transfer_ms,
                                                     .compute_ms = result.compute_ms};
    (void)lk_worker_deliver(worker, command->ticket, LK_ARRIVAL_BUCKETS + team->buckets);
    return LK_OK;
}

/* Where there is no room for a second stepper the device keeps its own, and is not to blame. */
enum lk_status lk_alone_change(void *context, struct lk_worker *worker)
{
    const struct lk_stepper_change *change = context;
    const struct lk_team *team = worker->team;
    struct lk_stepper *before = worker->stepper;
    worker->stepper = NULL;
    enum lk_status status = lk_worker_create_stepper(worker, change->most_shards);
    if (status == LK_OK)
        status = lk_stepper_build(worker->stepper);
    if (status == LK_OK)
        status = lk_training_state_write(change->state, worker);
    if (status != LK_OK) {
        lk_stepper_destroy(worker->stepper);
        worker->stepper = before;
        return status == LK_E_DEVICE_MEMORY ? LK_E_MEMORY : status;
    }
    if (team->config.leaves)
        team->config.leaves(team->config.context, worker);
    lk_stepper_destroy(before);
    return LK_OK;
}
