/* What others ask of a team, and set. */
#include "train/team_parts.h"

#include "train/async.h"

void lk_team_set_batches(struct lk_team *team, struct lk_batches *batches)
{
    team->batches = batches;
}

void lk_team_set_steps(struct lk_team *team,
                       void (*describe)(void *context, int64_t number,
                                        struct lk_team_step *step),
                       void *context)
{
    team->describe = describe;
    team->describe_context = context;
}

static enum lk_status add_profile(void *context, struct lk_worker *worker)
{
    return lk_profile_add(context, worker->device, worker->position);
}

enum lk_status lk_team_set_profile(struct lk_team *team, struct lk_profile *profile)
{
    team->profile = profile;
    return profile ? lk_team_call_each(team, add_profile, profile, false) : LK_OK;
}

int lk_team_devices(const struct lk_team *team)
{
    return team->count;
}

int lk_team_left(const struct lk_team *team)
{
    int left = 0;
    for (int i = 0; i < team->count; i++)
        left += !team->workers[i]->is_lost;
    return left;
}

const struct lk_worker *lk_team_worker(const struct lk_team *team, int position)
{
    return team->workers[position];
}

const struct lk_worker *lk_team_lead(const struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost)
            return team->workers[i];
    return team->workers[0];
}

struct lk_team_counts lk_team_counts(const struct lk_team *team)
{
    return team->counts;
}

const struct lk_staleness *lk_team_staleness(const struct lk_team *team)
{
    return team->async ? lk_async_staleness(team->async) : NULL;
}

int lk_team_updates_each(const struct lk_team *team)
{
    return team->async ? lk_async_groups(team->async) : 1;
}

enum lk_status lk_team_set_updates(struct lk_team *team, int64_t updates)
{
    return team->async ? lk_async_set_updates(team, updates) : LK_OK;
}
