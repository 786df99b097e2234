/* Compares the replicas of a team and repairs one that differs. */
#include "team/workers/internal.h"

#include "base/fail.h"
#include "base/log.h"

static bool is_checked(const struct lk_worker *worker)
{
    return lk_worker_is_at_work(worker) && worker->delivery.checks;
}

/* Whether the device received the last step's sums as the host made them. */
static bool has_right_sums(const struct lk_team *team, const struct lk_worker *worker)
{
    for (int b = 0; b < team->buckets; b++)
        if (worker->delivery.checks[b] != team->sums.last[b])
            return false;
    return true;
}

/* Finds a device to copy from: one that received the right sums and has the parameters that
 * most of these have; the first at a tie. */
static struct lk_worker *find_right(struct lk_team *team)
{
    struct lk_worker *right = NULL;
    int most = 0;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        int same = 0;
        if (!is_checked(worker) || !has_right_sums(team, worker))
            continue;
        for (int j = 0; j < team->count; j++)
            same += is_checked(team->workers[j]) &&
                    team->workers[j]->delivery.checks[team->buckets] ==
                        worker->delivery.checks[team->buckets];
        if (same > most) {
            most = same;
            right = worker;
        }
    }
    return right;
}

static bool differs(const struct lk_team *team, const struct lk_worker *worker,
                    const struct lk_worker *right)
{
    return !is_checked(worker) || !has_right_sums(team, worker) ||
           worker->delivery.checks[team->buckets] != right->delivery.checks[team->buckets];
}

enum lk_status lk_team_check_replicas(struct lk_team *team, bool *is_right)
{
    struct lk_worker *right = team->sums.has_last ? find_right(team) : NULL;
    int wrong = 0;
    bool has_checks = false;
    for (int i = 0; i < team->count && right; i++) {
        const struct lk_worker *worker = team->workers[i];
        if (worker == right || !is_checked(worker) || !differs(team, worker, right))
            continue;
        lk_log(LK_LOG_WARNING,
               "device %d's parameters differ from those of device %d after step %lld: they "
               "are copied anew",
               worker->position, right->position, (long long)team->queue.committed);
        wrong++;
    }
    if (wrong == 1 && lk_team_left(team) == 2)
        lk_log(LK_LOG_WARNING, "of two devices nobody knows which is right: the weights may be "
                               "others than without the fault");
    for (int i = 0; i < team->count; i++)
        has_checks |= team->sums.has_last && is_checked(team->workers[i]);
    if (has_checks && !right)
        return lk_fail(LK_E_DEVICE, "no device has got the sums of step %lld as they were sent",
                       (long long)team->queue.committed);
    if (wrong == 0)
        return LK_OK;
    team->counts.repaired += wrong;
    *is_right = false;
    const enum lk_status status = lk_team_copy_state(team, right, differs);
    if (!lk_is_device_failure(status))
        return status;
    lk_error_clear(); /* the device copied from is lost: the next try copies from another one */
    return LK_OK;
}
