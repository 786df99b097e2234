/* A step over several ranks: a team computes its rank's run of shards, and sums are finished
 * over all ranks. What a rank has sent stays as it is while a step is computed again. */
#include "team/lockstep/ranks.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "tensor/elementwise.h"
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 128, PATIENCE_US = 500 };

/* --- creating --------------------------------------------------------------------------- */

/* Every rank learns how many devices each has. */
static enum lk_status count_devices(struct lk_team_ranks *ranks, int own)
{
    const int size = lk_world_size(ranks->world);
    double *counts = calloc((size_t)size, sizeof *counts);
    if (!counts)
        return lk_fail_memory("numbers of devices", (size_t)size * sizeof *counts);
    counts[lk_world_rank(ranks->world)] = own;
    const enum lk_status status = lk_world_all_reduce(ranks->world, (size_t)size, counts);
    for (int i = 0; i < size && status == LK_OK; i++)
        ranks->first[i + 1] = ranks->first[i] + (int)counts[i];
    free(counts);
    return status;
}

enum lk_status lk_team_ranks_create(struct lk_world *world, int devices,
                                    struct lk_team_ranks **ranks)
{
    if (lk_world_size(world) > LK_MOST_SPLIT_DEVICES)
        return lk_fail(LK_E_ARGUMENT, "%d ranks, at most %d", lk_world_size(world),
                       LK_MOST_SPLIT_DEVICES);
    struct lk_team_ranks *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a rank", sizeof *made);
    made->world = world;
    const enum lk_status status = count_devices(made, devices);
    if (status != LK_OK) {
        lk_team_ranks_destroy(made);
        return status;
    }
    *ranks = made;
    return LK_OK;
}

void lk_team_ranks_destroy(struct lk_team_ranks *ranks)
{
    if (!ranks)
        return;
    free(ranks->memory);
    free(ranks);
}

int lk_team_ranks_devices(const struct lk_team_ranks *ranks)
{
    return ranks->first[lk_world_size(ranks->world)];
}

int lk_team_ranks_first(const struct lk_team_ranks *ranks)
{
    return ranks->first[lk_world_rank(ranks->world)];
}

/* --- sharing a step --------------------------------------------------------------------- */

/* For each arrival its sums over the rank's subtrees and the one over all shards. */
static enum lk_status take_memory(struct lk_team *team, struct lk_team_ranks *ranks)
{
    const size_t real = lk_dtype_bytes(team->config.real), parts = (size_t)ranks->terms + 1;
    const int arrivals = LK_ARRIVAL_BUCKETS + team->buckets;
    size_t bytes = 0;
    for (int a = 0; a < arrivals; a++)
        bytes += parts * (size_t)team->values[a] * real;
    free(ranks->memory);
    ranks->memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!ranks->memory)
        return lk_fail_memory("sums between ranks", bytes);
    char *at = ranks->memory;
    for (int a = 0; a < arrivals; a++) {
        const size_t part = (size_t)team->values[a] * real;
        for (int t = 0; t < ranks->terms; t++, at += part)
            ranks->arrivals[a].values[t] = at;
        ranks->arrivals[a].result = at;
        at += part;
    }
    return LK_OK;
}

enum lk_status lk_team_ranks_allocate(struct lk_team *team)
{
    struct lk_team_ranks *ranks = team->job.ranks;
    int runs[LK_MOST_SPLIT_DEVICES] = {0};
    for (int rank = 0; rank < lk_world_size(ranks->world); rank++)
        for (int i = ranks->first[rank]; i < ranks->first[rank + 1]; i++)
            runs[rank] += team->split.counts[i];
    const struct lk_shard_run own = lk_team_own_shards(team);
    ranks->terms = lk_subtrees_of(own.first, own.count, ranks->subtrees);
    LK_TRY(take_memory(team, ranks));
    const struct lk_world_plan plan = {.shards = team->config.shards,
                                       .runs = runs,
                                       .real = team->config.real,
                                       .buckets = LK_ARRIVAL_BUCKETS + team->buckets,
                                       .counts = team->values,
                                       .in_any_order = team->config.in_any_order,
                                       .reducer = team->reducer};
    return lk_world_plan(ranks->world, &plan);
}

int lk_team_ranks_sums(const struct lk_team_ranks *ranks, int arrival,
                       struct lk_reduction_result sums[LK_MOST_SUBTREES])
{
    for (int t = 0; t < ranks->terms; t++)
        sums[t] = (struct lk_reduction_result){.subtree = ranks->subtrees[t],
                                               .copies = &ranks->arrivals[arrival].values[t],
                                               .copy_count = 1};
    return ranks->terms;
}

bool lk_team_ranks_has_sent(const struct lk_team_ranks *ranks, int arrival)
{
    return ranks->arrivals[arrival].is_sent;
}

enum lk_status lk_team_ranks_send(struct lk_team *team, int arrival)
{
    struct lk_team_ranks *ranks = team->job.ranks;
    struct lk_rank_arrival *sums = &ranks->arrivals[arrival];
    struct lk_term terms[LK_MOST_SUBTREES];
    for (int t = 0; t < ranks->terms; t++)
        terms[t] = (struct lk_term){ranks->subtrees[t], sums->values[t]};
    LK_TRY(lk_world_sum_begin(ranks->world, arrival, terms, sums->result));
    sums->is_sent = true;
    ranks->sent++;
    return LK_OK;
}

enum lk_status lk_team_ranks_wait(struct lk_team *team, double until, bool *is_late)
{
    double soon = lk_team_seconds(team) + 1e-6 * PATIENCE_US;
    if (team->job.ranks->sent == 0 || soon > until)
        soon = until;
    (void)lk_team_wait(team, soon);
    *is_late = lk_team_seconds(team) >= until;
    pthread_mutex_unlock(&team->mutex);
    const enum lk_status status = lk_world_sum_advance(team->job.ranks->world);
    pthread_mutex_lock(&team->mutex);
    return status;
}

/* Copies a sum over all ranks to all devices that are left: the reducer does so with a
 * single term. */
static enum lk_status hand_out(struct lk_team *team, int arrival)
{
    const struct lk_rank_arrival *sums = &team->job.ranks->arrivals[arrival];
    void *copies[LK_MOST_TEAM];
    uint32_t checksum;
    const struct lk_term term = {{0, team->config.shards}, sums->result};
    struct lk_reduction_result sum = {.subtree = term.subtree, .copies = copies};
    for (int i = 0; i < team->count; i++)
        if (lk_worker_is_at_work(team->workers[i]))
            copies[sum.copy_count++] = team->workers[i]->delivery.arrivals[arrival].result;
    const struct lk_reduction_job job = {.dtype = team->config.real,
                                         .count = team->values[arrival],
                                         .terms = &term,
                                         .term_count = 1,
                                         .sums = &sum,
                                         .sum_count = 1,
                                         .checksums = &checksum};
    LK_TRY(lk_reducer_sum(team->reducer, &job));
    team->sums.next[arrival - LK_ARRIVAL_BUCKETS] = sum.checksum;
    return LK_OK;
}

enum lk_status lk_team_ranks_receive(struct lk_team *team, void *metrics, bool *is_right)
{
    struct lk_team_ranks *ranks = team->job.ranks;
    const double start = lk_seconds();
    LK_TRY(lk_team_ranks_exchange_reports(team, is_right));
    for (int a = 0; a < LK_ARRIVAL_BUCKETS + team->buckets; a++) {
        LK_TRY(lk_world_sum_end(ranks->world, a));
        ranks->arrivals[a].is_sent = false;
        ranks->sent--;
        if (*is_right && a != LK_ARRIVAL_METRICS)
            LK_TRY(hand_out(team, a));
    }
    lk_profile_span(team->profile, "host", "ranks", team->queue.steps[0].step, start,
                    lk_seconds());
    memcpy(metrics, ranks->arrivals[LK_ARRIVAL_METRICS].result,
           LK_PAD * lk_dtype_bytes(team->config.real));
    if (*is_right)
        return LK_OK;
    if (lk_world_rank(ranks->world) == 0)
        lk_log(LK_LOG_WARNING,
               "the ranks' parameters differ after step %lld: those of rank 0 are copied anew",
               (long long)team->queue.steps[0].step - 1);
    team->counts.repaired++;
    return lk_team_broadcast_state(team);
}
