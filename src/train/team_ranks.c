/* The ranks of a job: a team computes its rank's run of shards, and sums are finished over all
 * ranks. What a rank has sent stays as it is while a step is computed again. */
#include "train/team_parts.h"

#include "base/fail.h"
#include "base/log.h"
#include "tensor/elementwise.h"
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 128, PATIENCE_US = 500 };

/* Values that ride in the padding of the metrics, which are sums over the ranks too: how many
 * ranks want to stop, how many tell a checksum of their weights, and of each of its bytes the
 * sum and the sum of squares, which are whole numbers that float32 holds. */
enum { STOPS = 2, TELLERS, BYTES, SQUARES = BYTES + 4 };

/* What the last sum has of each device: every rank has places for some, which hold 0 on all
 * others. */
enum { HERE, LEFT, SAMPLES, SHARE, INPUT, TRANSFER, COMPUTE, REDUCE, WAIT, TOLD };

struct bucket {
    int64_t count;
    void *values[LK_MOST_SUBTREES], *result; /* of the rank's subtrees, of all shards */
    bool is_sent;
};

struct lk_team_ranks {
    struct lk_world *world;
    struct lk_subtree subtrees[LK_MOST_SUBTREES];
    int terms, sent;
    struct bucket buckets[LK_MOST_BUCKETS + 2]; /* the metrics first, the devices last */
    int places;                                 /* of a rank's devices */
    double waits[LK_MOST_TEAM];                 /* of this rank's, in the step before */
    char *memory;
};

static int64_t count_told(const struct lk_team_ranks *ranks)
{
    return (int64_t)lk_world_size(ranks->world) * ranks->places * TOLD;
}

static enum lk_status take_memory(struct lk_team *team, struct lk_team_ranks *ranks)
{
    const struct lk_replica *replica = lk_stepper_replica(lk_team_lead(team)->stepper);
    const size_t real = lk_dtype_bytes(team->config.real), parts = (size_t)ranks->terms + 1;
    size_t bytes = 0;
    for (int b = 0; b <= team->buckets + 1; b++) {
        ranks->buckets[b].count = b == 0               ? LK_PAD
                                  : b <= team->buckets ? lk_replica_bucket(replica, b - 1).count
                                                       : count_told(ranks);
        bytes += parts * (size_t)ranks->buckets[b].count * real;
    }
    ranks->memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!ranks->memory)
        return lk_fail_memory("sums between ranks", bytes);
    char *at = ranks->memory;
    for (int b = 0; b <= team->buckets + 1; b++) {
        struct bucket *bucket = &ranks->buckets[b];
        const size_t part = (size_t)bucket->count * real;
        for (int t = 0; t < ranks->terms; t++, at += part)
            bucket->values[t] = at;
        bucket->result = at;
        at += part;
    }
    return LK_OK;
}

static enum lk_status create(struct lk_team *team, struct lk_team_ranks *ranks)
{
    int64_t counts[LK_MOST_BUCKETS + 2];
    LK_TRY(take_memory(team, ranks));
    for (int b = 0; b <= team->buckets + 1; b++)
        counts[b] = ranks->buckets[b].count;
    const struct lk_world_plan plan = {.shards = team->config.shards,
                                       .real = team->config.real,
                                       .buckets = team->buckets + 2,
                                       .counts = counts,
                                       .in_any_order = team->config.in_any_order,
                                       .reducer = team->reducer};
    return lk_world_plan(ranks->world, &plan);
}

enum lk_status lk_team_ranks_create(struct lk_team *team)
{
    if (lk_world_size(team->config.world) == 1)
        return LK_OK;
    struct lk_team_ranks *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a rank", sizeof *made);
    made->world = team->config.world;
    made->places = (int)lk_divide_up(LK_MOST_TEAM, lk_world_size(made->world));
    made->terms = lk_subtrees_of(team->shards.first, team->shards.count, made->subtrees);
    const enum lk_status status = create(team, made);
    if (status != LK_OK) {
        lk_team_ranks_destroy(made);
        return status;
    }
    team->ranks = made;
    return LK_OK;
}

void lk_team_ranks_destroy(struct lk_team_ranks *ranks)
{
    if (!ranks)
        return;
    free(ranks->memory);
    free(ranks);
}

int lk_team_ranks_sums(const struct lk_team_ranks *ranks, int arrival,
                       struct lk_reduced sums[LK_MOST_SUBTREES])
{
    for (int t = 0; t < ranks->terms; t++)
        sums[t] = (struct lk_reduced){.subtree = ranks->subtrees[t],
                                      .copies = &ranks->buckets[arrival].values[t],
                                      .copy_count = 1};
    return ranks->terms;
}

bool lk_team_ranks_has_sent(const struct lk_team_ranks *ranks, int arrival)
{
    return ranks->buckets[arrival].is_sent;
}

static void put(const struct lk_team *team, int arrival, int at, double value)
{
    void *reals = team->ranks->buckets[arrival].values[0];
    if (team->config.real == LK_F64)
        ((double *)reals)[at] = value;
    else
        ((float *)reals)[at] = (float)value;
}

static double get(const struct lk_team *team, int arrival, int at)
{
    const void *reals = team->ranks->buckets[arrival].result;
    return team->config.real == LK_F64 ? ((const double *)reals)[at]
                                       : ((const float *)reals)[at];
}

/* The checksum of the weights after the step before, where it was asked for; the devices of the
 * team have been found to agree on it. */
static const uint32_t *weights_sum(const struct lk_team *team)
{
    const int64_t every = team->config.check_every;
    if (every == 0 || (team->steps[0].step - 1) % every != 0 || !team->has_sums)
        return NULL;
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *worker = team->workers[i];
        if (!worker->is_lost && worker->checks)
            return &worker->checks[team->buckets];
    }
    return NULL;
}

static void add_riders(struct lk_team *team)
{
    const uint32_t *sum = weights_sum(team);
    put(team, 0, STOPS, team->wants_stop);
    put(team, 0, TELLERS, sum != NULL);
    for (int i = 0; i < 4; i++) {
        const double byte = sum ? *sum >> (8 * i) & 255 : 0;
        put(team, 0, BYTES + i, byte);
        put(team, 0, SQUARES + i, byte * byte);
    }
}

/* This rank's devices, with what they waited in the step before: what they wait in this one is
 * not known yet. */
static enum lk_status tell_devices(struct lk_team *team)
{
    struct lk_team_ranks *ranks = team->ranks;
    const int arrival = team->buckets + 1, rank = lk_world_rank(ranks->world);
    const struct bucket *bucket = &ranks->buckets[arrival];
    const size_t bytes = (size_t)bucket->count * lk_dtype_bytes(team->config.real);
    struct lk_device_times times[LK_MOST_TEAM];
    for (int t = 0; t < ranks->terms; t++)
        memset(bucket->values[t], 0, bytes);
    lk_team_fill_times(team, times);
    for (int i = 0; i < team->count && i < ranks->places; i++) {
        const struct lk_device_times *d = &times[i];
        const double told[TOLD] = {[HERE] = 1,
                                   [LEFT] = d->is_left,
                                   [SAMPLES] = (double)d->samples,
                                   [SHARE] = d->share,
                                   [INPUT] = d->input_ms,
                                   [TRANSFER] = d->transfer_ms,
                                   [COMPUTE] = d->compute_ms,
                                   [REDUCE] = d->reduce_ms,
                                   [WAIT] = ranks->waits[i]};
        for (int k = 0; k < TOLD; k++)
            put(team, arrival, (rank * ranks->places + i) * TOLD + k, told[k]);
    }
    return lk_team_ranks_send(team, arrival);
}

int lk_team_ranks_devices(struct lk_team *team, struct lk_device_times times[LK_MOST_TEAM])
{
    struct lk_team_ranks *ranks = team->ranks;
    struct lk_device_times own[LK_MOST_TEAM];
    const int arrival = team->buckets + 1, rank = lk_world_rank(ranks->world);
    int count = 0;
    lk_team_fill_times(team, own);
    for (int i = 0; i < team->count; i++)
        ranks->waits[i] = own[i].wait_ms;
    for (int i = 0; i < lk_world_size(ranks->world) * ranks->places; i++) {
        double told[TOLD];
        for (int k = 0; k < TOLD; k++)
            told[k] = get(team, arrival, i * TOLD + k);
        if (told[HERE] == 0 || count == LK_MOST_TEAM)
            continue;
        const struct lk_device_times other = {.is_left = told[LEFT] > 0,
                                              .rank = i / ranks->places,
                                              .samples = (int64_t)told[SAMPLES],
                                              .share = told[SHARE],
                                              .input_ms = told[INPUT],
                                              .transfer_ms = told[TRANSFER],
                                              .compute_ms = told[COMPUTE],
                                              .reduce_ms = told[REDUCE],
                                              .wait_ms = told[WAIT]};
        times[count] = other.rank == rank ? own[i % ranks->places] : other;
        times[count].rank = other.rank;
        times[count].samples_per_s = lk_team_rate(&times[count]);
        count++;
    }
    return count;
}

enum lk_status lk_team_ranks_send(struct lk_team *team, int arrival)
{
    struct lk_team_ranks *ranks = team->ranks;
    struct bucket *bucket = &ranks->buckets[arrival];
    struct lk_term terms[LK_MOST_SUBTREES];
    if (arrival == 0)
        add_riders(team);
    for (int t = 0; t < ranks->terms; t++)
        terms[t] = (struct lk_term){ranks->subtrees[t], bucket->values[t]};
    LK_TRY(lk_world_sum_begin(ranks->world, arrival, terms, bucket->result));
    bucket->is_sent = true;
    ranks->sent++;
    return LK_OK;
}

enum lk_status lk_team_ranks_wait(struct lk_team *team, double until, bool *is_late)
{
    double soon = lk_team_seconds(team) + 1e-6 * PATIENCE_US;
    if (team->ranks->sent == 0 || soon > until)
        soon = until;
    (void)lk_team_wait(team, soon);
    *is_late = lk_team_seconds(team) >= until;
    pthread_mutex_unlock(&team->mutex);
    const enum lk_status status = lk_world_sum_advance(team->ranks->world);
    pthread_mutex_lock(&team->mutex);
    return status;
}

/* A sum over all ranks to all devices that are left, as the reducer copies a single term. */
static enum lk_status hand_out(struct lk_team *team, int arrival)
{
    const struct bucket *bucket = &team->ranks->buckets[arrival];
    void *copies[LK_MOST_TEAM];
    uint32_t checksum;
    const struct lk_term term = {{0, team->config.shards}, bucket->result};
    struct lk_reduced sum = {.subtree = term.subtree, .copies = copies};
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost)
            copies[sum.copy_count++] = team->workers[i]->arrivals[arrival].result;
    const struct lk_reduction job = {.dtype = team->config.real,
                                     .count = bucket->count,
                                     .terms = &term,
                                     .term_count = 1,
                                     .sums = &sum,
                                     .sum_count = 1,
                                     .checksums = &checksum};
    LK_TRY(lk_reducer_sum(team->reducer, &job));
    team->new_sums[arrival - 1] = sum.checksum;
    return LK_OK;
}

/* Whether all ranks that told a checksum told the same: a sum of squares is least where all are
 * equal. */
static bool are_same(const struct lk_team *team)
{
    const double tellers = get(team, 0, TELLERS);
    for (int i = 0; i < 4; i++) {
        const double sum = get(team, 0, BYTES + i);
        if (tellers * get(team, 0, SQUARES + i) != sum * sum)
            return false;
    }
    return true;
}

enum lk_status lk_team_ranks_receive(struct lk_team *team, void *metrics, bool *is_right)
{
    struct lk_team_ranks *ranks = team->ranks;
    const double start = lk_seconds();
    *is_right = true;
    LK_TRY(tell_devices(team));
    for (int b = 0; b <= team->buckets + 1; b++) {
        LK_TRY(lk_world_sum_end(ranks->world, b));
        ranks->buckets[b].is_sent = false;
        ranks->sent--;
        if (b == 0)
            *is_right = are_same(team);
        else if (*is_right && b <= team->buckets)
            LK_TRY(hand_out(team, b));
    }
    lk_profile_span(team->profile, "host", "ranks", team->steps[0].step, start, lk_seconds());
    memcpy(metrics, ranks->buckets[0].result, LK_PAD * lk_dtype_bytes(team->config.real));
    team->must_stop = get(team, 0, STOPS) > 0;
    if (*is_right)
        return LK_OK;
    if (lk_world_rank(ranks->world) == 0)
        lk_log(LK_LOG_WARNING,
               "the ranks' parameters differ after step %lld: those of rank 0 are copied anew",
               (long long)team->steps[0].step - 1);
    team->counts.repaired++;
    return lk_team_align(team);
}
