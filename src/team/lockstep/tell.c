/* What the ranks of a job tell one another in a step, beside its sums. */
#include "team/lockstep/ranks.h"

#include "base/fail.h"
#include <string.h>

static double *tells_of_rank(struct lk_team_ranks *ranks, int rank)
{
    return ranks->told + rank * LK_RANK_REPORTS;
}

static double *tells_of_device(struct lk_team_ranks *ranks, int device)
{
    return tells_of_rank(ranks, lk_world_size(ranks->world)) + device * LK_DEVICE_REPORTS;
}

/* The checksum of this rank's weights after the step before, where one was made; all devices
 * of the team were found to have the same. */
static const uint32_t *weights_sum(const struct lk_team *team)
{
    const int64_t every = team->config.check_every;
    if (every == 0 || (team->queue.steps[0].step - 1) % every != 0 || !team->sums.has_last)
        return NULL;
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *worker = team->workers[i];
        if (lk_worker_is_at_work(worker) && worker->delivery.checks)
            return &worker->delivery.checks[team->buckets];
    }
    return NULL;
}

static void fill_own(struct lk_team *team)
{
    struct lk_team_ranks *ranks = team->job.ranks;
    double *tells = tells_of_rank(ranks, lk_world_rank(ranks->world));
    const uint32_t *sum = weights_sum(team);
    struct lk_device_times times[LK_MOST_TEAM];
    tells[LK_REPORT_STOP] = team->job.wants_stop;
    tells[LK_REPORT_CHECKSUM] = sum != NULL;
    tells[LK_REPORT_WEIGHTS] = sum ? *sum : 0;
    lk_team_fill_times(team, times);
    for (int i = 0; i < team->count; i++) {
        const struct lk_device_times *d = &times[i];
        tells = tells_of_device(ranks, lk_team_ranks_first(ranks) + i);
        tells[LK_REPORT_LEFT] = d->is_left;
        tells[LK_REPORT_SAMPLES] = (double)d->samples;
        tells[LK_REPORT_SHARE] = d->share;
        tells[LK_REPORT_INPUT] = d->input_ms;
        tells[LK_REPORT_TRANSFER] = d->transfer_ms;
        tells[LK_REPORT_COMPUTE] = d->compute_ms;
        tells[LK_REPORT_REDUCE] = d->reduce_ms;
        tells[LK_REPORT_WAIT] = ranks->waits[i];
    }
}

/* Whether the checksums of all ranks that have one are equal. */
static bool are_same(struct lk_team_ranks *ranks)
{
    const double *first = NULL;
    for (int rank = 0; rank < lk_world_size(ranks->world); rank++) {
        const double *tells = tells_of_rank(ranks, rank);
        if (tells[LK_REPORT_CHECKSUM] == 0)
            continue;
        if (first && first[LK_REPORT_WEIGHTS] != tells[LK_REPORT_WEIGHTS])
            return false;
        first = tells;
    }
    return true;
}

enum lk_status lk_team_ranks_exchange_reports(struct lk_team *team, bool *is_right)
{
    struct lk_team_ranks *ranks = team->job.ranks;
    const int size = lk_world_size(ranks->world);
    const size_t count = (size_t)(tells_of_device(ranks, ranks->first[size]) - ranks->told);
    memset(ranks->told, 0, sizeof ranks->told);
    fill_own(team);
    LK_TRY(lk_world_all_reduce(ranks->world, count, ranks->told));
    for (int rank = 0; rank < size; rank++)
        team->job.must_stop |= tells_of_rank(ranks, rank)[LK_REPORT_STOP] > 0;
    *is_right = are_same(ranks);
    return LK_OK;
}

void lk_team_ranks_times(struct lk_team *team, struct lk_device_times *times)
{
    struct lk_team_ranks *ranks = team->job.ranks;
    for (int rank = 0; rank < lk_world_size(ranks->world); rank++)
        for (int i = ranks->first[rank]; i < ranks->first[rank + 1]; i++) {
            const double *tells = tells_of_device(ranks, i);
            times[i] = (struct lk_device_times){.is_left = tells[LK_REPORT_LEFT] > 0,
                                                .rank = rank,
                                                .samples = (int64_t)tells[LK_REPORT_SAMPLES],
                                                .share = tells[LK_REPORT_SHARE],
                                                .input_ms = tells[LK_REPORT_INPUT],
                                                .transfer_ms = tells[LK_REPORT_TRANSFER],
                                                .compute_ms = tells[LK_REPORT_COMPUTE],
                                                .reduce_ms = tells[LK_REPORT_REDUCE],
                                                .wait_ms = tells[LK_REPORT_WAIT]};
            times[i].samples_per_s = lk_team_rate(&times[i]);
        }
    struct lk_device_times own[LK_MOST_TEAM];
    lk_team_fill_times(team, own);
    for (int i = 0; i < team->count; i++)
        times[lk_team_ranks_first(ranks) + i].wait_ms = ranks->waits[i] = own[i].wait_ms;
}
