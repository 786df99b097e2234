/* Which device computes which shards. */
#include "train/team_parts.h"

#include "base/fail.h"
#include "base/log.h"

enum lk_status lk_team_init_deal(struct lk_team *team)
{
    struct lk_split_policy policy;
    LK_TRY(lk_split_parse(team->config.split, team->count, &policy));
    return lk_split_init(&team->split, &policy, team->config.shards, team->count, NULL);
}

/* Devices that were lost since; one that cannot give its shards away was the last. */
static void take_from_lost(struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (team->workers[i]->is_lost && !team->split.is_lost[i] &&
            lk_split_lose(&team->split, i) != LK_OK)
            lk_error_clear();
}

void lk_team_deal(struct lk_team *team)
{
    int first = 0;
    take_from_lost(team);
    for (int i = 0; i < team->count; i++) {
        team->workers[i]->run = (struct lk_shard_run){first, team->split.counts[i]};
        first += team->split.counts[i];
    }
}

void lk_team_measure(struct lk_team *team)
{
    double seconds[LK_MOST_TEAM] = {0};
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *worker = team->workers[i];
        if (!worker->is_lost && worker->run.count > 0)
            seconds[i] = 1e-3 * (worker->times.compute_ms + worker->times.transfer_ms);
    }
    team->counts.dealt += lk_split_step(&team->split, seconds);
}
