/* The training loop: steps, and what happens between them. */
#include "train/follow.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "model/checkpoint/checkpoint.h"
#include "train/saving.h"
#include <math.h>
#include <stdio.h>

enum { SNAPSHOT_SECONDS = 10, LOOKED_AT_STEPS = 10 };

/* --- steps ------------------------------------------------------------------------------ */

static struct lk_team_step *step_of(struct lk_trainer *trainer, int64_t number)
{
    return &trainer->steps[number % LK_COUNT(trainer->steps)];
}

void lk_trainer_describe_step(void *context, int64_t number, struct lk_team_step *step)
{
    const struct lk_trainer *trainer = context;
    double lr = lk_lr_schedule_rate(&trainer->schedule, trainer->rate, number);
    if (trainer->schedule.kind == LK_LR_SCHEDULE_PLATEAU)
        lr = lk_plateau_rate(&trainer->schedule, &trainer->plateau, lr, number);
    lr = lk_callbacks_rate(trainer->callbacks, lr, number);
    *step = (struct lk_team_step){
        .step = number,
        .samples = lk_batches_size(trainer->batches, number - 1),
        .lr = lr,
        .keeps_gradient = lk_callbacks_see_gradient(trainer->callbacks, number),
    };
}

static int64_t save_every(const struct lk_trainer *trainer)
{
    return lk_callbacks_save_every(trainer->callbacks, trainer->settings->checkpoint_every);
}

/* Before a state is copied the one before is on disk, so that the loss of one interval is the
 * most that can happen. Training pauses after step `last`, and saves its state then. */
static enum lk_status begin_step(struct lk_trainer *trainer, int64_t number, int64_t last)
{
    struct lk_team_step *step = step_of(trainer, number);
    lk_trainer_describe_step(trainer, number, step);
    step->copies_state = number < last && lk_trainer_saves_in_passing(trainer) &&
                         number % save_every(trainer) == 0;
    if (step->copies_state)
        LK_TRY(lk_trainer_settle(trainer));
    return lk_team_begin(trainer->team, step);
}

static void warn_of_divergence(struct lk_trainer *trainer, double loss)
{
    if (isfinite(loss) || trainer->has_warned)
        return;
    lk_log(
        LK_LOG_WARNING,
        "training has diverged: the loss is no longer a number at step %lld; a lower learning "
        "rate may help",
        (long long)trainer->done);
    trainer->has_warned = true;
}

/* Tells what has happened to the devices since it was last told. */
static enum lk_status report_devices(struct lk_trainer *trainer)
{
    const struct lk_team_counts now = lk_team_counts(trainer->team), was = trainer->reported;
    char text[256];
    if (now.lost == was.lost && now.repaired == was.repaired &&
        now.repeated_steps == was.repeated_steps && now.dealt == was.dealt)
        return LK_OK;
    snprintf(text, sizeof text,
             "%d of %d devices left; so far %lld steps repeated, %lld replicas mended, shards "
             "dealt %lld times",
             lk_team_left(trainer->team), lk_team_devices(trainer->team),
             (long long)now.repeated_steps, (long long)now.repaired, (long long)now.dealt);
    trainer->reported = now;
    return lk_trainer_report(trainer,
                             (struct lk_event){.kind = LK_EVENT_DEVICES, .text = text});
}

/* Whether to stop. All ranks stop after the same step: the one that follows the step in whose
 * report a rank asked to stop, since some may have begun it already. */
static bool is_asked_to_stop(const struct lk_trainer *trainer)
{
    return lk_world_size(trainer->world) == 1 && atomic_load(&trainer->stop);
}

static bool must_stop(const struct lk_trainer *trainer)
{
    return is_asked_to_stop(trainer) || trainer->done >= trainer->stop_after;
}

static bool is_wished_to_stop(const struct lk_trainer *trainer)
{
    return lk_callbacks_wish(trainer->callbacks)->stop != LK_CALLBACK_GOES_ON;
}

/* How long a step took. Where its device tells when it was over, and the step before came from
 * there too, its clock counts: the host may learn of two ends at once. */
static double time_step(struct lk_trainer *trainer, const struct lk_team_result *result,
                        double now)
{
    const double by_device = result->ended - trainer->last_ended;
    const bool is_known = trainer->last_ended > 0 && by_device > 0;
    const double seconds = is_known ? by_device : now - trainer->last_finish;
    trainer->last_finish = now;
    trainer->last_ended = result->ended;
    return seconds;
}

/* Of groups, beside what their devices took, what their operations were measured to take. */
static void tell_plans(const struct lk_trainer *trainer, struct lk_team_result *result)
{
    for (int d = 0; d < result->device_count; d++) {
        struct lk_device_times *times = &result->devices[d];
        for (int p = 0; p < times->places; p++)
            times->of_place[p].planned_ms =
                trainer->planned_ms[p] * times->share * result->device_count;
    }
}

static enum lk_status end_step(struct lk_trainer *trainer, int64_t number)
{
    const struct lk_team_step *step = step_of(trainer, number);
    struct lk_team_result result;
    const double start = lk_seconds();
    LK_TRY(lk_team_end(trainer->team, atomic_load(&trainer->stop) || is_wished_to_stop(trainer),
                       &result));
    const double now = lk_seconds(), seconds = time_step(trainer, &result, now);
    trainer->done = number;
    if (result.must_stop && lk_world_size(trainer->world) > 1)
        trainer->stop_after = lk_least(trainer->stop_after, number + 1);
    lk_profile_span(trainer->profile, "trainer", "wait", number, start, now);
    warn_of_divergence(trainer, result.loss);
    tell_plans(trainer, &result);
    LK_TRY(lk_trainer_report(trainer,
                             (struct lk_event){
                                 .kind = LK_EVENT_STEP,
                                 .epoch = (number - 1) / trainer->steps_per_epoch,
                                 .loss = result.loss,
                                 .accuracy = trainer->has_accuracy ? result.accuracy : NAN,
                                 .samples = step->samples,
                                 .samples_per_s = (double)step->samples / seconds,
                                 .step_ms = 1e3 * seconds,
                                 .lr = step->lr,
                                 .tries = result.tries,
                                 .devices = result.device_count,
                                 .device_times = result.devices,
                             }));
    if (is_wished_to_stop(trainer) && lk_world_size(trainer->world) == 1)
        trainer->stop_after = lk_least(trainer->stop_after, number + 1);
    LK_TRY(report_devices(trainer));
    LK_TRY(lk_trainer_save_copy(trainer));
    LK_TRY(lk_trainer_settle_if_over(trainer));
    return step->copies_state ? lk_trainer_note_copy(trainer) : LK_OK;
}

/* Begins steps up to `last` as long as the devices want more. */
static enum lk_status begin_steps(struct lk_trainer *trainer, int64_t *begun, int64_t last)
{
    bool wants = true;
    while (*begun < last) {
        LK_TRY(lk_team_wants(trainer->team, &wants));
        if (!wants)
            break;
        ++*begun;
        LK_TRY(begin_step(trainer, *begun, last));
    }
    return LK_OK;
}

/* Rank 0 alone evaluates, and where the clock says when no other rank has to know. */
static bool is_due_by_clock(const struct lk_trainer *trainer)
{
    const double minutes = trainer->eval_period.minutes;
    return minutes > 0 && lk_world_rank(trainer->world) == 0 &&
           trainer->evaluated_step != trainer->done &&
           lk_seconds() - trainer->evaluated_at >= 60 * minutes;
}

/* Trains up to step `last`, the next step always begun before one is ended; when it returns
 * none is on its way. Stops early when asked to, or when it is time to keep a copy of the
 * state. */
static enum lk_status run_steps(struct lk_trainer *trainer, int64_t last)
{
    int64_t begun = trainer->done + 1;
    trainer->last_finish = lk_seconds();
    trainer->last_ended = 0;
    LK_TRY(begin_step(trainer, begun, last));
    while (trainer->done < last) {
        if (is_asked_to_stop(trainer) || is_due_by_clock(trainer) || trainer->saves_late ||
            lk_seconds() - trainer->snapshot_at > SNAPSHOT_SECONDS)
            last = begun;
        last = lk_least(last, trainer->stop_after);
        last = last < begun ? begun : last; /* what is begun is ended */
        LK_TRY(begin_steps(trainer, &begun, last));
        LK_TRY(end_step(trainer, trainer->done + 1));
    }
    return LK_OK;
}

/* --- between steps ---------------------------------------------------------------------- */

static int64_t next_multiple(int64_t done, int64_t of)
{
    return (done / of + 1) * of;
}

/* The step after which something else has to happen. */
static int64_t next_stop(const struct lk_trainer *trainer)
{
    const int64_t every = lk_trainer_saves_in_passing(trainer) ? 0 : save_every(trainer);
    const int64_t evaluates =
        lk_eval_period_steps(&trainer->eval_period, trainer->steps_per_epoch);
    int64_t stop = next_multiple(trainer->done, trainer->steps_per_epoch);
    if (every > 0 && next_multiple(trainer->done, every) < stop)
        stop = next_multiple(trainer->done, every);
    if (evaluates > 0 && evaluates - trainer->done % evaluates < stop - trainer->done)
        stop = next_multiple(trainer->done, evaluates);
    stop = lk_callbacks_next_pause(trainer->callbacks, trainer->done, stop);
    return stop < trainer->total_steps ? stop : trainer->total_steps;
}

static enum lk_status sum_parameters(void *context, struct lk_worker *worker)
{
    return lk_parameters_sha256(lk_stepper_replica(worker->stepper), context);
}

static enum lk_status finish(struct lk_trainer *trainer)
{
    char hash[LK_SHA256_TEXT];
    LK_TRY(lk_team_call(trainer->team, sum_parameters, hash));
    LK_TRY(lk_world_check_equal(trainer->world, "parameters", hash));
    struct lk_event event = {.kind = LK_EVENT_END, .hash = hash};
    const struct lk_staleness *staleness = lk_team_staleness(trainer->team);
    if (staleness) {
        event.updates = staleness->updates;
        event.staleness = staleness->counts;
        event.max_staleness = staleness->most;
    }
    LK_TRY(lk_trainer_report(trainer, event));
    LK_TRY(lk_callbacks_flush(trainer->callbacks, true));
    LK_TRY(lk_callbacks_sync(trainer->callbacks));
    LK_TRY(lk_run_folder_flush(trainer->folder, true));
    return lk_run_folder_sync(trainer->folder);
}

static enum lk_status read_loss_scale(void *context, struct lk_worker *worker)
{
    float numbers[LK_LOSS_SCALE_NUMBERS];
    struct lk_trainer *trainer = context;
    const struct lk_optimizer_info *info =
        lk_optimizer_info(lk_stepper_optimizer(worker->stepper));
    LK_TRY(lk_buffer_read(info->scaling, 0, sizeof numbers, numbers));
    trainer->loss_scale = numbers[LK_LOSS_SCALE_NOW];
    trainer->skipped = (int64_t)numbers[LK_LOSS_SCALE_SKIPPED];
    return LK_OK;
}

/* Reads the scale of the loss, and warns if no step since the last look has changed the model:
 * nothing else would tell the user why it does not learn. */
static enum lk_status look_at_loss_scale(struct lk_trainer *trainer)
{
    if (trainer->settings->precision != LK_PRECISION_MIXED)
        return LK_OK;
    LK_TRY(lk_team_call(trainer->team, read_loss_scale, trainer));
    const int64_t steps = trainer->done - trainer->looked_at;
    if (steps > 0 && steps < LOOKED_AT_STEPS) /* now and then one overflows */
        return LK_OK;
    trainer->looked_at = trainer->done;
    const int64_t skipped = trainer->skipped - trainer->skipped_before;
    trainer->skipped_before = trainer->skipped;
    if (steps > 0 && skipped >= steps)
        lk_log(LK_LOG_WARNING,
               "the last %lld steps have changed nothing: their gradients overflowed halves at "
               "a loss scale of %g",
               (long long)steps, trainer->loss_scale);
    return LK_OK;
}

/* Whether an evaluation is due: not the one after the last step, of which nothing follows. */
static bool is_due(const struct lk_trainer *trainer)
{
    const int64_t every = lk_eval_period_steps(&trainer->eval_period, trainer->steps_per_epoch);
    return trainer->owes_evaluation || is_due_by_clock(trainer) ||
           (every > 0 && trainer->done % every == 0 &&
            trainer->evaluated_step != trainer->done);
}

/* The run can go on from the checkpoint that was written. */
static enum lk_status interrupted(const struct lk_trainer *trainer)
{
    return lk_fail(LK_E_INTERRUPTED, "interrupted after step %lld of %lld%s%s",
                   (long long)trainer->done, (long long)trainer->total_steps,
                   *trainer->why_stopped ? ": " : "", trainer->why_stopped);
}

/* Evaluates and does what follows. One that is interrupted is still owed, as the checkpoint of
 * this step says then. fails: LK_E_INTERRUPTED */
static enum lk_status evaluate(struct lk_trainer *trainer, bool is_saved)
{
    const struct lk_callback_wish *wish = lk_callbacks_wish(trainer->callbacks);
    const enum lk_status status = lk_trainer_evaluate(trainer);
    trainer->evaluated_at = lk_seconds();
    if (status != LK_E_INTERRUPTED)
        return status;
    lk_error_clear();
    if (!is_saved && wish->stop != LK_CALLBACK_FAILS) /* then the state is worth nothing */
        LK_TRY(lk_trainer_save(trainer));
    return interrupted(trainer);
}

static bool saves_now(const struct lk_trainer *trainer)
{
    const int64_t every = save_every(trainer);
    return trainer->done == trainer->total_steps || must_stop(trainer) || trainer->saves_late ||
           trainer->done % (every > 0 ? every : trainer->steps_per_epoch) == 0;
}

/* Whether all ranks are here, at a step that no clock has chosen. */
static bool is_agreed(const struct lk_trainer *trainer)
{
    return trainer->done == trainer->total_steps || must_stop(trainer) ||
           trainer->done % trainer->steps_per_epoch == 0 ||
           (trainer->is_due &&
            (trainer->eval_period.minutes == 0 || lk_world_size(trainer->world) == 1));
}

/* Evaluates and saves where it is time to. What a schedule and callbacks make of an evaluation
 * belongs to the state, so then the evaluation comes first, even where training stops; else a
 * crash in it loses nothing. */
static enum lk_status pause_steps(struct lk_trainer *trainer)
{
    const bool ends = trainer->done == trainer->total_steps, saves = saves_now(trainer);
    bool is_wished = false;
    lk_trainer_drop_copy(trainer);
    LK_TRY(lk_trainer_settle(trainer));
    trainer->is_due = is_due(trainer);
    const bool follows = lk_trainer_follows(trainer);
    const bool evaluates = ends || (trainer->is_due && (follows || !must_stop(trainer)));
    trainer->owes_evaluation = trainer->is_due && (follows || !ends);
    LK_TRY(lk_team_verify_replicas(trainer->team));
    LK_TRY(look_at_loss_scale(trainer));
    if (evaluates && follows)
        LK_TRY(evaluate(trainer, false));
    LK_TRY(lk_trainer_obey(trainer, is_agreed(trainer), saves, &is_wished));
    const bool is_last = trainer->done == trainer->total_steps || must_stop(trainer);
    const bool is_saved = saves || is_wished || is_last;
    LK_TRY(is_last    ? lk_trainer_save(trainer)
           : is_saved ? lk_trainer_begin_to_save(trainer)
                      : lk_trainer_take_snapshot(trainer));
    const bool is_open = !follows && trainer->evaluated_step != trainer->done;
    return evaluates && is_open ? evaluate(trainer, is_saved) : LK_OK;
}

/* A run that is interrupted can go on, if only from its first weights. */
static enum lk_status fill_features(struct lk_trainer *trainer)
{
    const enum lk_status status = lk_features_fill(trainer);
    if (status != LK_E_INTERRUPTED)
        return status;
    lk_error_clear();
    LK_TRY(lk_trainer_save(trainer));
    return lk_fail(status, "interrupted while features were computed");
}

static enum lk_status run(struct lk_trainer *trainer)
{
    LK_TRY(fill_features(trainer));
    trainer->looked_at = trainer->done;
    trainer->evaluated_at = lk_seconds();
    LK_TRY(look_at_loss_scale(trainer));
    LK_TRY(lk_trainer_take_snapshot(trainer));
    if (trainer->owes_evaluation && !must_stop(trainer))
        LK_TRY(pause_steps(trainer));
    while (trainer->done < trainer->total_steps && !must_stop(trainer)) {
        LK_TRY(run_steps(trainer, next_stop(trainer)));
        LK_TRY(pause_steps(trainer));
    }
    if (trainer->done < trainer->total_steps) {
        LK_TRY(lk_trainer_settle(trainer));
        if (trainer->saved != trainer->done) /* it was asked to stop at a pause */
            LK_TRY(lk_trainer_save(trainer));
        return interrupted(trainer);
    }
    if (trainer->evaluated_step != trainer->done)
        LK_TRY(lk_trainer_evaluate(trainer));
    return finish(trainer);
}

/* Saves what can be saved when training fails: without a device the state kept last in host
 * memory; after the failure of another rank the devices' own state. */
static enum lk_status give_up(struct lk_trainer *trainer, enum lk_status status)
{
    char text[2048];
    snprintf(text, sizeof text, "%s", lk_error_text());
    lk_error_clear();
    const enum lk_status saved =
        lk_world_has_failed(trainer->world) && lk_team_left(trainer->team) > 0
            ? lk_trainer_save(trainer)
            : lk_trainer_save_snapshot(trainer);
    if (saved != LK_OK)
        lk_log(LK_LOG_WARNING, "the state could not be saved: %s", lk_error_text());
    lk_error_clear();
    return lk_fail(status, "%s", text);
}

enum lk_status lk_trainer_run(struct lk_trainer *trainer)
{
    lk_team_set_steps(trainer->team, lk_trainer_describe_step, trainer);
    LK_TRY(lk_team_set_profile(trainer->team, trainer->profile));
    enum lk_status status = run(trainer);
    const bool is_lost = status == LK_E_DEVICE || lk_team_left(trainer->team) == 0;
    if (status != LK_OK && (is_lost || lk_world_has_failed(trainer->world)))
        status = give_up(trainer, status);
    if (status != LK_OK && status != LK_E_INTERRUPTED) /* that was agreed */
        status = lk_world_fail(trainer->world, status);
    const enum lk_status closed = lk_profile_close(trainer->profile);
    trainer->profile = NULL;
    return status == LK_OK ? closed : status;
}
