/* How long a team waits for its devices, taking out those that do not answer, and the team's
 * phase. */
#include "base/clock.h"
#include "team/workers/internal.h"

#include <assert.h>
#include <math.h>
#include <time.h>

/* How long to wait: a first step in multiples of the hang limit, since drivers may compile only
 * then; others in multiples of a usual step, and of what the fastest device needs: one that is
 * slower still would make its own slowness usual. */
enum { LONG_LIMITS = 20, MEDIAN_STEPS = 10, FASTEST_SHARES = 100 };

/* Seconds from one look at the devices to the next; if more than lapse_seconds pass between
 * two, the whole process was stopped meanwhile. */
static const double look_seconds = 1, lapse_seconds = 2;

bool lk_team_take_out(struct lk_worker *worker, bool is_late)
{
    if (worker->state == LK_WORKER_FAILED)
        lk_worker_change(worker, LK_WORKER_LOSE, worker->report.text);
    else if (is_late)
        lk_worker_change(worker, LK_WORKER_LOSE, "it does not answer");
    return worker->state == LK_WORKER_LOST;
}

void lk_team_enter(struct lk_team *team, enum lk_team_phase phase)
{
    assert(lk_team_may_follow(team->phase, phase));
    team->phase = phase;
}

/* --- waiting ---------------------------------------------------------------------------- */

double lk_team_seconds(struct lk_team *team)
{
    struct lk_team_clock *clock = &team->clock;
    const double now = lk_seconds(), lapse = now - clock->looked_at;
    if (clock->looked_at > 0 && lapse > lapse_seconds)
        clock->lapsed += lapse;
    clock->looked_at = now;
    return now - clock->lapsed;
}

bool lk_team_wait(struct lk_team *team, double until)
{
    const double left = until - lk_team_seconds(team);
    const double to = lk_seconds() + (left < look_seconds ? left : look_seconds);
    const struct timespec at = {(time_t)floor(to), (long)(1e9 * (to - floor(to)))};
    const bool has_changed = pthread_cond_timedwait(&team->changed, &team->mutex, &at) == 0;
    return lk_team_seconds(team) < until || has_changed;
}

void lk_team_note_step(struct lk_team *team, double seconds, double fastest)
{
    double *usual = &team->clock.step_seconds, *least = &team->clock.fastest_seconds;
    *usual = seconds > *usual ? seconds : 0.9 * *usual + 0.1 * seconds;
    if (fastest > 0)
        *least = *least == 0 || fastest < *least ? fastest : 0.9 * *least + 0.1 * fastest;
}

double lk_team_limit(const struct lk_team *team, bool is_new)
{
    const struct lk_team_clock *clock = &team->clock;
    const int times = team->phase == LK_TEAM_TRIAL_ONE ? team->count : 1;
    const double beyond = FASTEST_SHARES * times * clock->fastest_seconds;
    double usual = MEDIAN_STEPS * times * clock->step_seconds;
    if (is_new || clock->step_seconds + clock->first_seconds == 0)
        return LONG_LIMITS * clock->hang_seconds;
    if (clock->step_seconds == 0) /* the second step has nothing left to compile */
        usual = MEDIAN_STEPS * times * clock->first_seconds;
    if (beyond > 0 && beyond < usual && lk_team_left(team) > 1)
        usual = beyond;
    return usual > clock->hang_seconds ? usual : clock->hang_seconds;
}
