/* A team's steps: parts are ordered, their sums added up bucket by bucket as they come, and the
 * update ordered when all is there and right. */
#include "team/lockstep/ranks.h"

#include "base/fail.h"
#include "tensor/elementwise.h"
#include <string.h>

enum { MOST_TRIES = 8 };

/* --- ordering --------------------------------------------------------------------------- */

static void order_part(struct lk_team *team, struct lk_worker *worker)
{
    const struct lk_team_step *step = &team->steps[0];
    const struct lk_order order = {
        .kind = LK_ORDER_PART,
        .part = {.step = step->step, .samples = step->samples, .run = worker->run},
        .ticket = team->ticket,
    };
    worker->ticket = team->ticket;
    worker->arrived = 0;
    lk_worker_order(worker, &order);
}

/* Gives the oldest step to all devices, also to those without a shard, which need its sums; the
 * mutex is held. */
static void order_parts(struct lk_team *team)
{
    lk_team_deal(team);
    team->ticket++;
    team->is_at_work = true;
    team->ordered_at = lk_team_seconds(team);
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost)
            order_part(team, team->workers[i]);
}

enum lk_status lk_lockstep_begin(struct lk_team *team, const struct lk_team_step *step)
{
    if (team->begun == LK_COUNT(team->steps))
        return lk_fail(LK_E_ARGUMENT, "step %lld is begun before step %lld is ended",
                       (long long)step->step, (long long)team->steps[0].step);
    team->steps[team->begun++] = *step;
    if (team->is_alone)
        lk_team_order_alone(team, LK_ORDER_START, step);
    else if (team->begun == 1)
        order_parts(team);
    else
        team->pending = (struct lk_part){.step = step->step, .samples = step->samples};
    return LK_OK;
}

/* --- ending ----------------------------------------------------------------------------- */

void lk_team_fill_times(const struct lk_team *team, struct lk_device_times *times)
{
    const struct lk_team_step *step = &team->steps[0];
    const int64_t each = lk_divide_up(team->config.batch, team->config.shards);
    const double now = lk_seconds();
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *w = team->workers[i];
        struct lk_device_times *t = &times[i];
        *t = (struct lk_device_times){.is_left = !w->is_lost};
        if (w->is_lost)
            continue;
        const int64_t end = lk_least((w->run.first + w->run.count) * each, step->samples);
        t->samples = end - lk_least(w->run.first * each, step->samples);
        t->share = (double)w->run.count / team->config.shards;
        t->input_ms = w->times.input_ms;
        t->transfer_ms = w->times.transfer_ms;
        t->compute_ms = w->times.compute_ms;
        t->reduce_ms = 1e3 * team->reduce_seconds;
        t->wait_ms = 1e3 * (now - w->came_at);
        t->samples_per_s = lk_team_rate(t);
    }
}

static void fill_result(struct lk_team *team, const void *metrics, int tries,
                        struct lk_team_result *result)
{
    const bool is_f64 = team->config.real == LK_F64;
    const double samples = (double)team->steps[0].samples;
    const double loss = is_f64 ? ((const double *)metrics)[0] : ((const float *)metrics)[0];
    const double correct = is_f64 ? ((const double *)metrics)[1] : ((const float *)metrics)[1];
    *result = (struct lk_team_result){.loss = loss / samples,
                                      .accuracy = correct / samples,
                                      .tries = tries,
                                      .device_count = team->all};
    if (team->ranks)
        lk_team_ranks_times(team, result->devices);
    else
        lk_team_fill_times(team, result->devices);
}

/* From here on the step counts. The mutex is held. */
static void commit(struct lk_team *team)
{
    const struct lk_team_step *step = &team->steps[0];
    const int64_t every = team->config.check_every;
    const double seconds = lk_team_seconds(team) - team->ordered_at;
    const bool weighs = every > 0 && step->step % every == 0;
    memcpy(team->sums, team->new_sums, sizeof team->sums);
    team->has_sums = true;
    team->committed = step->step;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        const struct lk_order order = {.kind = LK_ORDER_UPDATE,
                                       .part = {.step = step->step, .samples = step->samples},
                                       .lr = step->lr,
                                       .weights = weighs};
        if (!worker->is_lost)
            lk_worker_order(worker, &order);
        worker->strikes = 0;
        worker->has_computed |= worker->run.count > 0;
    }
    if (team->has_worked)
        lk_team_note_step(team, seconds);
}

/* The step after this one begins before anybody reports this one. */
static void go_on(struct lk_team *team)
{
    team->steps[0] = team->steps[1];
    team->begun--;
    team->pending = (struct lk_part){0};
    team->is_at_work = false;
    if (team->trial.is_one_faster) {
        team->trial.is_one_faster = false;
        pthread_mutex_unlock(&team->mutex);
        lk_team_go_alone(team, team->workers[team->trial.fastest]);
        pthread_mutex_lock(&team->mutex);
    }
    if (team->begun > 0 && team->is_alone)
        lk_team_order_alone(team, LK_ORDER_START, &team->steps[0]);
    else if (team->begun > 0)
        order_parts(team);
}

/* Devices whose gradients were changed twice in a step are no longer trusted. */
static void lose_struck(struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost && team->workers[i]->strikes > 1)
            lk_team_lose(team, team->workers[i], "what it sends does not arrive unchanged");
}

/* Devices whose shards gave numbers on another one; or, where they gave none there either, the
 * training has diverged. */
static void judge_doubted(struct lk_team *team, bool are_others_right)
{
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (worker->is_doubted && are_others_right && worker->run.count == 0)
            lk_team_lose(team, worker, "it computes no numbers where others do");
        worker->is_doubted = false;
    }
}

enum lk_status lk_team_end_shared(struct lk_team *team, struct lk_team_result *result)
{
    double metrics[LK_PAD];
    const int64_t lost_before = team->counts.lost;
    bool had_no_numbers = false; /* by a device or by nature: then others find none either */
    team->has_no_numbers = false;
    for (int tries = 1;; tries++) {
        bool is_whole = false;
        team->has_overflowed = false;
        LK_TRY(lk_team_collect(team, metrics, &is_whole));
        if (is_whole) {
            team->overflows = team->has_overflowed ? team->overflows + 1 : 0;
            judge_doubted(team, true);
            fill_result(team, metrics, tries, result);
            commit(team);
            const double now = lk_seconds();
            if (team->has_worked) /* the first step compiles kernels */
                LK_TRY(lk_team_measure(team, result, now - team->committed_at));
            team->has_worked = true;
            team->committed_at = now;
            go_on(team);
            return LK_OK;
        }
        lose_struck(team);
        if (lk_team_left(team) == 0)
            return lk_team_none_left(team);
        const int64_t lost = team->counts.lost - lost_before;
        if (tries - lost >= MOST_TRIES) /* each of which has cost no device */
            return lk_fail(LK_E_DEVICE, "step %lld has failed %d times",
                           (long long)team->steps[0].step, tries);
        if (had_no_numbers && team->has_no_numbers) {
            team->has_diverged = true; /* so be it */
            judge_doubted(team, false);
        }
        had_no_numbers |= team->has_no_numbers;
        team->has_no_numbers = false;
        team->counts.repeated_steps++;
        order_parts(team);
    }
}

enum lk_status lk_team_redo(struct lk_team *team, int64_t first, int64_t last,
                            struct lk_team_result *result)
{
    enum lk_status status = LK_OK;
    pthread_mutex_lock(&team->mutex);
    const int begun = team->begun;
    const struct lk_team_step steps[2] = {team->steps[0], team->steps[1]};
    for (int64_t number = first; number <= last && status == LK_OK; number++) {
        team->describe(team->describe_context, number, &team->steps[0]);
        team->begun = 1;
        team->pending = (struct lk_part){0};
        order_parts(team);
        status = lk_team_end_shared(team, result);
    }
    team->begun = begun;
    memcpy(team->steps, steps, sizeof steps);
    if (status == LK_OK && begun > 0)
        order_parts(team);
    if (begun > 1)
        team->pending = (struct lk_part){.step = steps[1].step, .samples = steps[1].samples};
    pthread_mutex_unlock(&team->mutex);
    return status;
}
