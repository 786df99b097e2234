/* Which device computes which shards. */
#include "train/team_parts.h"

void lk_team_deal(struct lk_team *team)
{
    const int left = lk_team_left(team);
    int first = 0, number = 0;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        worker->run = (struct lk_shard_run){first, 0};
        if (worker->is_lost)
            continue;
        worker->run.count =
            team->config.shards * (number + 1) / left - team->config.shards * number / left;
        first += worker->run.count;
        number++;
    }
}
