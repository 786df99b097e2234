/* A team's steps on the trainer's thread: shares are ordered, what they bring is collected, and
 * a step counts when all is there and right; else it is begun anew. */
#include "team/lockstep/ranks.h"

#include "base/fail.h"
#include "tensor/elementwise.h"
#include <string.h>

enum { MOST_TRIES = 8 };

/* --- ordering --------------------------------------------------------------------------- */

static bool is_alone(const struct lk_team *team)
{
    return team->phase == LK_TEAM_ALONE;
}

static void order_begin(struct lk_team *team, struct lk_worker *worker,
                        const struct lk_team_step *step)
{
    const struct lk_command order = {
        .kind = LK_COMMAND_BEGIN,
        .run = is_alone(team) ? team->acts->begin_alone : team->acts->begin_share,
        .share = {.step = step->step, .samples = step->samples, .run = worker->share},
        .ticket = team->queue.ticket,
        .lr = step->lr,
    };
    lk_worker_send(worker, &order);
}

void lk_team_order_end(struct lk_team *team, struct lk_worker *worker, bool weights)
{
    const struct lk_team_step *step = &team->queue.steps[0];
    const struct lk_command order = {
        .kind = LK_COMMAND_END,
        .run = is_alone(team) ? team->acts->end_alone : team->acts->end_share,
        .share = {.step = step->step, .samples = step->samples},
        .ticket = team->queue.ticket,
        .lr = step->lr,
        .weights = weights,
    };
    lk_worker_send(worker, &order);
}

/* The oldest step is the one at work from now on: every device has a share of it, also those
 * without a shard, which need its sums. A device that is alone may have been given it before.
 */
static void give_shares(struct lk_team *team, bool is_ordered)
{
    lk_team_assign_shards(team);
    team->queue.ticket++;
    team->clock.ordered_at = lk_team_seconds(team);
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (!lk_worker_is_at_work(worker))
            continue;
        worker->delivery.ticket = team->queue.ticket;
        worker->delivery.arrived = 0;
        lk_worker_change(worker, LK_WORKER_SHARE, NULL);
        if (!is_ordered)
            order_begin(team, worker, &team->queue.steps[0]);
    }
}

/* Gives the devices the steps that they may have: of several that share a step, the oldest, and
 * they read the next one's samples; one that is alone enqueues the next one behind it. */
static void order_begun(struct lk_team *team)
{
    struct lk_step_queue *queue = &team->queue;
    const struct lk_team_step *next = &queue->steps[1];
    if (queue->begun > 0 && queue->ordered == 0) {
        give_shares(team, false);
        queue->ordered = 1;
    }
    if (queue->begun > 1 && queue->ordered == 1 && is_alone(team) && lk_team_left(team) > 0) {
        order_begin(team, lk_team_only(team), next);
        queue->ordered = 2;
    }
    queue->pending = (struct lk_step_share){0};
    if (queue->begun > queue->ordered)
        queue->pending = (struct lk_step_share){.step = next->step, .samples = next->samples};
}

enum lk_status lk_lockstep_begin(struct lk_team *team, const struct lk_team_step *step)
{
    struct lk_step_queue *queue = &team->queue;
    if (queue->begun == LK_COUNT(queue->steps))
        return lk_fail(LK_E_ARGUMENT, "step %lld is begun before step %lld is ended",
                       (long long)step->step, (long long)queue->steps[0].step);
    queue->steps[queue->begun++] = *step;
    order_begun(team);
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
        t->wait_ms = 1e3 * (now - w->delivery.came_at);
        t->samples_per_s = lk_team_rate(t);
    }
}

static void fill_result(struct lk_team *team, const void *metrics, int tries,
                        struct lk_team_result *result)
{
    const bool is_f64 = team->config.real == LK_F64;
    const double samples = (double)team->queue.steps[0].samples;
    const double loss = is_f64 ? ((const double *)metrics)[0] : ((const float *)metrics)[0];
    const double correct = is_f64 ? ((const double *)metrics)[1] : ((const float *)metrics)[1];
    *result = (struct lk_team_result){.loss = loss / samples,
                                      .accuracy = correct / samples,
                                      .tries = tries,
                                      .device_count = team->job.all};
    if (is_alone(team)) { /* the device has divided */
        const struct lk_step_result *own = &lk_team_only(team)->delivery.result;
        result->loss = own->loss;
        result->accuracy = own->accuracy;
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

/* From here on the step counts. One that is alone has updated by itself. */
static void count_step(struct lk_team *team)
{
    const int64_t step = team->queue.steps[0].step, every = team->config.check_every;
    const double seconds = lk_team_seconds(team) - team->clock.ordered_at;
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
            lk_team_order_end(team, worker, every > 0 && step % every == 0);
    }
    if (team->clock.has_worked)
        lk_team_note_step(team, seconds, fastest);
}

/* The step after this one begins before anybody reports this one. */
static void go_on(struct lk_team *team)
{
    struct lk_step_queue *queue = &team->queue;
    queue->steps[0] = queue->steps[1];
    queue->begun--;
    queue->ordered--;
    if (team->trial.is_one_faster) {
        team->trial.is_one_faster = false;
        pthread_mutex_unlock(&team->mutex);
        lk_team_go_alone(team, team->workers[team->trial.fastest]);
        pthread_mutex_lock(&team->mutex);
    }
    if (queue->ordered > 0)
        give_shares(team, true);
    order_begun(team);
}

/* Devices whose gradients were changed twice in a step are no longer trusted. */
static void lose_struck(struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (lk_worker_is_at_work(team->workers[i]) && team->workers[i]->evidence.changed > 1)
            lk_worker_change(team->workers[i], LK_WORKER_LOSE,
                             "what it sends does not arrive unchanged");
}

/* Devices whose shards gave numbers on another one; or, where they gave none there either, the
 * training has diverged. */
static void judge_doubted(struct lk_team *team, bool are_others_right)
{
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (worker->evidence.no_numbers && are_others_right && worker->share.count == 0)
            lk_worker_change(worker, LK_WORKER_LOSE, "it computes no numbers where others do");
        worker->evidence.no_numbers = false;
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

/* The one that was alone is lost, or is in doubt and rests until the others have judged it:
 * they do what it has left undone, and the step at work. */
static enum lk_status call_back(struct lk_team *team, bool is_doubt)
{
    struct lk_worker *doubted = is_doubt ? lk_team_only(team) : NULL;
    pthread_mutex_unlock(&team->mutex);
    const enum lk_status status = lk_team_call_back(team, doubted);
    pthread_mutex_lock(&team->mutex);
    if (doubted) {
        doubted->evidence.no_numbers = true;
        team->counts.repeated_steps++;
    }
    return status;
}

/* Begins the oldest step anew. *had_no_numbers: an earlier try gave none, by a device or by
 * nature: then others find none either. */
static enum lk_status begin_anew(struct lk_team *team, bool *had_no_numbers)
{
    struct lk_judgement *judgement = &team->judgement;
    const bool has_no_numbers = judgement->has_no_numbers;
    judgement->has_no_numbers = false;
    if (*had_no_numbers && has_no_numbers) {
        judgement->has_diverged = true; /* so be it */
        judge_doubted(team, false);
    }
    *had_no_numbers |= has_no_numbers;
    if (is_alone(team) && lk_team_resting(team) > 0)
        return call_back(team, has_no_numbers);
    team->counts.repeated_steps++;
    team->queue.ordered = 0;
    order_begun(team);
    return LK_OK;
}

enum lk_status lk_lockstep_end(struct lk_team *team, struct lk_team_result *result)
{
    double metrics[LK_PAD];
    const int64_t lost_before = team->counts.lost;
    bool had_no_numbers = false;
    team->judgement.has_no_numbers = false;
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
        LK_TRY(begin_anew(team, &had_no_numbers));
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
        queue->ordered = 0;
        order_begun(team);
        status = lk_lockstep_end(team, &result);
    }
    memcpy(queue->steps, before.steps, sizeof before.steps);
    queue->begun = before.begun;
    queue->ordered = 0;
    if (status == LK_OK) {
        lk_team_enter(team, LK_TEAM_SHARED);
        order_begun(team);
    }
    pthread_mutex_unlock(&team->mutex);
    return status;
}
