/* A team's steps on the trainer's thread: shares are sent out, what they bring is collected,
 * and a step counts when all is there and right; else it is begun anew. */
#include "team/lockstep/ranks.h"

#include "base/clock.h"
#include "base/fail.h"
#include "tensor/elementwise.h"
#include <string.h>

enum { MOST_TRIES = 8 };

/* --- sending commands ------------------------------------------------------------------- */

static bool is_alone(const struct lk_team *team)
{
    return team->phase == LK_TEAM_ALONE;
}

static void send_begin(struct lk_team *team, struct lk_worker *worker,
                       const struct lk_team_step *step)
{
    const struct lk_command command = {
        .kind = LK_COMMAND_BEGIN,
        .run = is_alone(team) ? team->acts->begin_alone : team->acts->begin_share,
        .share = {.step = step->step, .samples = step->samples, .run = worker->share},
        .ticket = team->queue.ticket,
        .lr = step->lr,
        .copies_state = step->copies_state && is_alone(team),
    };
    lk_worker_send(worker, &command);
}

void lk_team_send_end(struct lk_team *team, struct lk_worker *worker, bool weights)
{
    const struct lk_team_step *step = &team->queue.steps[0];
    const struct lk_command command = {
        .kind = LK_COMMAND_END,
        .run = is_alone(team) ? team->acts->end_alone : team->acts->end_share,
        .share = {.step = step->step, .samples = step->samples},
        .ticket = team->queue.ticket,
        .lr = step->lr,
        .weights = weights,
        .keeps_gradient = step->keeps_gradient && worker == lk_team_lead(team),
        .copies_state = step->copies_state && !is_alone(team) && worker == lk_team_lead(team),
    };
    lk_worker_send(worker, &command);
}

/* Makes the oldest step the one at work: every device gets a share of it, even an empty one,
 * since it needs the sums. Where it `is_sent`, a device that is alone has had the command
 * before. */
static void give_shares(struct lk_team *team, bool is_sent)
{
    lk_team_assign_shards(team);
    team->queue.ticket++;
    team->clock.sent_at = lk_team_seconds(team);
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (!lk_worker_is_at_work(worker))
            continue;
        worker->delivery.ticket = team->queue.ticket;
        worker->delivery.arrived = 0;
        lk_worker_change(worker, LK_WORKER_SHARE, NULL);
        if (!is_sent)
            send_begin(team, worker, &team->queue.steps[0]);
    }
}

/* Sends the devices the steps that they may have by now. Devices that share a step get the
 * oldest one, and read the samples of the next meanwhile; one that is alone enqueues the
 * next one behind it. */
static void send_begun(struct lk_team *team)
{
    struct lk_step_queue *queue = &team->queue;
    const struct lk_team_step *next = &queue->steps[1];
    if (queue->begun > 0 && queue->sent == 0) {
        give_shares(team, false);
        queue->sent = 1;
    }
    if (queue->begun > 1 && queue->sent == 1 && is_alone(team) && lk_team_left(team) > 0) {
        send_begin(team, lk_team_only(team), next);
        queue->sent = 2;
    }
    queue->pending = (struct lk_step_share){0};
    if (queue->begun > queue->sent)
        queue->pending = (struct lk_step_share){.step = next->step, .samples = next->samples};
}

enum lk_status lk_lockstep_begin(struct lk_team *team, const struct lk_team_step *step)
{
    struct lk_step_queue *queue = &team->queue;
    if (queue->begun == LK_COUNT(queue->steps))
        return lk_fail(LK_E_ARGUMENT, "step %lld is begun before step %lld is ended",
                       (long long)step->step, (long long)queue->steps[0].step);
    queue->steps[queue->begun++] = *step;
    send_begun(team);
    return LK_OK;
}

/* --- results ---------------------------------------------------------------------------- */

void lk_team_fill_times(const struct lk_team *team, struct lk_device_times *times)
{
    const struct lk_team_step *step = &team->queue.steps[0];
    const int64_t each = lk_divide_up(team->config.batch, team->config.shards);
    const double now = lk_seconds();
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *w = team->workers[i];
        struct lk_device_times *t = &times[i];
        *t = (struct lk_device_times){.is_left = lk_worker_is_at_work(w)};
        if (!t->is_left)
            continue;
        const int64_t end = lk_least((w->share.first + w->share.count) * each, step->samples);
        t->samples = end - lk_least(w->share.first * each, step->samples);
        t->share = (double)w->share.count / team->config.shards;
        t->input_ms = w->delivery.times.input_ms;
        t->transfer_ms = w->delivery.times.transfer_ms;
        t->compute_ms = w->delivery.times.compute_ms;
        t->reduce_ms = 1e3 * team->reduce_seconds;
        /* one that is alone waits for nobody: there the host waits for it */
        t->wait_ms = is_alone(team) ? 0 : 1e3 * (now - w->delivery.came_at);
        t->samples_per_s = lk_team_rate(t);
        t->places = w->delivery.times.places;
        memcpy(t->of_place, w->delivery.times.of_place, sizeof t->of_place);
    }
}

static void fill_result(struct lk_team *team, const void *metrics, int tries,
                        struct lk_team_result *result)
{
    const struct lk_step_metrics found =
        lk_step_metrics_read(metrics, team->config.real, team->queue.steps[0].samples);
    *result = (struct lk_team_result){.loss = found.loss,
                                      .accuracy = found.accuracy,
                                      .tries = tries,
                                      .device_count = team->job.all};
    if (is_alone(team)) { /* it has divided by the number of samples already */
        const struct lk_step_result *own = &lk_team_only(team)->delivery.result;
        result->loss = own->loss;
        result->accuracy = own->accuracy;
        result->ended = own->ended;
    }
    if (team->job.ranks)
        lk_team_ranks_times(team, result->devices);
    else
        lk_team_fill_times(team, result->devices);
}

/* --- ending ----------------------------------------------------------------------------- */

/* What the fastest of several devices has needed for its shards; 0: there is none. */
static double fastest_share(const struct lk_team *team)
{
    double fastest = 0;
    int sharers = 0;
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *worker = team->workers[i];
        const struct lk_share_times *t = &worker->delivery.times;
        const double ms = t->input_ms + t->transfer_ms + t->compute_ms;
        if (!lk_worker_is_at_work(worker) || worker->share.count == 0)
            continue;
        sharers++;
        if (ms > 0 && (fastest == 0 || ms < 1e3 * fastest))
            fastest = 1e-3 * ms;
    }
    return sharers > 1 ? fastest : 0;
}

/* From here on the step counts. A device that is alone has updated by itself. */
static void count_step(struct lk_team *team)
{
    const int64_t step = team->queue.steps[0].step, every = team->config.check_every;
    const double seconds = lk_team_seconds(team) - team->clock.sent_at;
    const double fastest = fastest_share(team);
    const bool is_own = is_alone(team);
    team->queue.committed = step;
    if (!is_own) {
        memcpy(team->sums.last, team->sums.next, sizeof team->sums.last);
        team->sums.has_last = true;
    }
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        worker->evidence = (struct lk_evidence){0};
        worker->has_computed |= worker->share.count > 0;
        if (!lk_worker_is_at_work(worker))
            continue;
        lk_worker_change(worker, LK_WORKER_COMMIT, NULL);
        if (is_own)
            lk_worker_change(worker, LK_WORKER_UPDATED, NULL);
        else
            lk_team_send_end(team, worker, every > 0 && step % every == 0);
    }
    if (team->clock.has_worked)
        lk_team_note_step(team, seconds, fastest);
    else
        team->clock.first_seconds = seconds;
}

/* Goes on to the next step, which begins before this one is reported to anybody. */
static void go_on(struct lk_team *team)
{
    struct lk_step_queue *queue = &team->queue;
    queue->steps[0] = queue->steps[1];
    queue->begun--;
    queue->sent--;
    if (team->trial.is_one_faster) {
        team->trial.is_one_faster = false;
        pthread_mutex_unlock(&team->mutex);
        lk_team_go_alone(team, team->workers[team->trial.fastest]);
        pthread_mutex_lock(&team->mutex);
    }
    if (queue->sent > 0)
        give_shares(team, true);
    send_begun(team);
}

/* Takes out devices whose gradients were changed on their way twice in a step. */
static void lose_struck(struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (lk_worker_is_at_work(team->workers[i]) && team->workers[i]->evidence.changed > 1)
            lk_worker_change(team->workers[i], LK_WORKER_LOSE,
                             "what it sends does not arrive unchanged");
}

/* Gives the verdict on devices whose sums were not finite: one is lost if its shards gave
 * finite sums on another device. Where they did not there either, training has diverged and
 * no device is to blame. */
static void judge_doubted(struct lk_team *team, bool are_others_right)
{
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (worker->evidence.not_finite && are_others_right && worker->share.count == 0)
            lk_worker_change(worker, LK_WORKER_LOSE, "it computes no numbers where others do");
        worker->evidence.not_finite = false;
    }
}

static enum lk_status commit(struct lk_team *team, const void *metrics, int tries,
                             struct lk_team_result *result)
{
    struct lk_judgement *judgement = &team->judgement;
    judgement->overflows = judgement->has_overflowed ? judgement->overflows + 1 : 0;
    judge_doubted(team, true);
    fill_result(team, metrics, tries, result);
    count_step(team);
    const double now = lk_seconds();
    if (team->clock.has_worked && !is_alone(team)) /* the first step compiles kernels */
        LK_TRY(lk_team_measure(team, result, now - team->clock.committed_at));
    team->clock.has_worked = true;
    team->clock.committed_at = now;
    go_on(team);
    return LK_OK;
}

/* The device that was alone is lost, or its sums were not finite and it rests until the
 * others have judged it: these repeat what it has left undone, and the step at work. */
static enum lk_status call_back(struct lk_team *team, bool is_doubt)
{
    struct lk_worker *doubted = is_doubt ? lk_team_only(team) : NULL;
    pthread_mutex_unlock(&team->mutex);
    const enum lk_status status = lk_team_call_back(team, doubted);
    pthread_mutex_lock(&team->mutex);
    if (doubted) {
        doubted->evidence.not_finite = true;
        team->counts.repeated_steps++;
    }
    return status;
}

/* Begins the oldest step anew. *was_not_finite: the sums of an earlier try were not finite.
 * If those of this one, by other devices, are not either, the training itself has diverged. */
static enum lk_status begin_anew(struct lk_team *team, bool *was_not_finite)
{
    struct lk_judgement *judgement = &team->judgement;
    const bool is_not_finite = judgement->is_not_finite;
    judgement->is_not_finite = false;
    if (*was_not_finite && is_not_finite) {
        judgement->has_diverged = true; /* the step is made as it is */
        judge_doubted(team, false);
    }
    *was_not_finite |= is_not_finite;
    if (is_alone(team) && lk_team_resting(team) > 0)
        return call_back(team, is_not_finite);
    team->counts.repeated_steps++;
    team->queue.sent = 0;
    send_begun(team);
    return LK_OK;
}

enum lk_status lk_lockstep_end(struct lk_team *team, struct lk_team_result *result)
{
    double metrics[LK_PAD];
    const int64_t lost_before = team->counts.lost;
    bool was_not_finite = false;
    team->judgement.is_not_finite = false;
    for (int tries = 1;; tries++) {
        bool is_whole = false;
        team->judgement.has_overflowed = false;
        LK_TRY(lk_team_collect(team, metrics, &is_whole));
        if (is_whole)
            return commit(team, metrics, tries, result);
        lose_struck(team);
        if (lk_team_left(team) == 0 && !(is_alone(team) && lk_team_resting(team) > 0))
            return lk_team_none_left(team);
        const int64_t lost = team->counts.lost - lost_before;
        if (tries - lost >= MOST_TRIES) /* each of which has cost no device */
            return lk_fail(LK_E_DEVICE, "step %lld has failed %d times",
                           (long long)team->queue.steps[0].step, tries);
        LK_TRY(begin_anew(team, &was_not_finite));
    }
}

enum lk_status lk_lockstep_redo(struct lk_team *team, int64_t first, int64_t last)
{
    struct lk_step_queue *queue = &team->queue;
    struct lk_team_result result;
    enum lk_status status = LK_OK;
    pthread_mutex_lock(&team->mutex);
    const struct lk_step_queue before = *queue;
    for (int64_t number = first; number <= last && status == LK_OK; number++) {
        team->recall.describe(team->recall.context, number, &queue->steps[0]);
        queue->begun = 1;
        queue->sent = 0;
        send_begun(team);
        status = lk_lockstep_end(team, &result);
    }
    memcpy(queue->steps, before.steps, sizeof before.steps);
    queue->begun = before.begun;
    queue->sent = 0;
    if (status == LK_OK) {
        lk_team_enter(team, LK_TEAM_SHARED);
        send_begun(team);
    }
    pthread_mutex_unlock(&team->mutex);
    return status;
}
