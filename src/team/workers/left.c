/* Which devices of a team are left, and which rest. */
#include "team/workers/internal.h"

#include "base/fail.h"

bool lk_worker_is_at_work(const struct lk_worker *worker)
{
    switch (worker->state) {
    case LK_WORKER_REFUSED:
    case LK_WORKER_NEW:
    case LK_WORKER_RESTING:
    case LK_WORKER_LOST:
    case LK_WORKER_ENDED:
    case LK_WORKER_STATES:
        return false;
    case LK_WORKER_READY:
    case LK_WORKER_CALLED:
    case LK_WORKER_COMPUTING:
    case LK_WORKER_DELIVERED:
    case LK_WORKER_UPDATING:
    case LK_WORKER_WORKING:
    case LK_WORKER_STOPPED:
    case LK_WORKER_FAILED:
        break;
    }
    return true;
}

int lk_team_devices(const struct lk_team *team)
{
    return team->count;
}

int lk_team_devices_of_all(const struct lk_team *team)
{
    return team->job.all;
}

int lk_team_left(const struct lk_team *team)
{
    int left = 0;
    for (int i = 0; i < team->count; i++)
        left += lk_worker_is_at_work(team->workers[i]);
    return left;
}

const struct lk_worker *lk_team_worker(const struct lk_team *team, int position)
{
    return team->workers[position];
}

const struct lk_worker *lk_team_lead(const struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (lk_worker_is_at_work(team->workers[i]))
            return team->workers[i];
    return team->workers[0];
}

int lk_team_resting(const struct lk_team *team)
{
    int resting = 0;
    for (int i = 0; i < team->count; i++)
        resting += team->workers[i]->state == LK_WORKER_RESTING;
    return resting;
}

enum lk_status lk_team_none_left(const struct lk_team *team)
{
    const char *what = team->workers[0]->places > 1 ? "group" : "device";
    for (int i = 0; i < team->count; i++)
        if (team->workers[i]->report.text[0])
            return lk_fail(LK_E_DEVICE, "no %s is left: %s %d: %s", what, what, i,
                           team->workers[i]->report.text);
    return lk_fail(LK_E_DEVICE, "no %s is left: they do not answer", what);
}
