/* Simulates a training step on several devices and hosts, bucket by bucket. */
#include "bench/scale/scale.h"

#include "team/stepper/exchange.h"
#include "team/team.h"
#include "tensor/tensor.h"

/* The share of one device. Its shards are computed in two micro-batches if they cross a
 * multiple of the number that the device computes at a time. */
struct share {
    int micro_batches, sizes[2], terms;
};

/* Divides shards equally among devices; where that leaves some over, the first devices get one
 * more. */
static struct share share_of(int shards, int devices, int device)
{
    const int most = lk_team_most_shards(shards, devices);
    const int each = shards / devices, more = shards % devices;
    const struct lk_shard_run run = {device * each + (int)lk_least(device, more),
                                     each + (device < more)};
    struct lk_subtree subtrees[LK_MOST_SUBTREES];
    struct share share = {0};
    for (int first = run.first; first < run.first + run.count;) {
        const struct lk_shard_run at_once = lk_shard_run_at_once(run, first, most);
        share.sizes[share.micro_batches++] = at_once.count;
        share.terms += lk_subtrees_of(at_once.first, at_once.count, subtrees);
        first += at_once.count;
    }
    return share;
}

void lk_scale_want(int shards, int devices, bool wanted[LK_MOST_SHARDS + 1])
{
    const int working = (int)lk_least(devices, shards);
    for (int d = 0; d < working; d++) {
        const struct share share = share_of(shards, working, d);
        for (int i = 0; i < share.micro_batches; i++)
            wanted[share.sizes[i]] = true;
    }
}

double lk_scale_spread(const struct lk_scale_costs *costs, int devices)
{
    const struct share first =
        share_of(costs->shards, (int)lk_least(devices, costs->shards), 0);
    double spread = 0;
    for (int i = 0; i < first.micro_batches; i++)
        if (costs->spread[first.sizes[i]] > spread)
            spread = costs->spread[first.sizes[i]];
    return spread;
}

double lk_scale_cores_time(const struct lk_scale_costs *costs, int devices, int count)
{
    double time = 0;
    for (int d = 0; d < count; d++) {
        const struct share share = share_of(costs->shards, devices, d);
        for (int i = 0; i < share.micro_batches; i++)
            time += costs->cores_time[share.sizes[i]];
    }
    return time;
}

static struct lk_scale_moment later(const struct lk_scale_moment *a,
                                    const struct lk_scale_moment *b)
{
    return a->at >= b->at ? *a : *b;
}

static void spend(struct lk_scale_moment *moment, enum lk_scale_limit on, double seconds)
{
    moment->at += seconds;
    moment->seconds[on] += seconds;
}

/* The times at which each device, link and host is free for the next bucket. */
struct simulation {
    const struct lk_scale_costs *costs;
    const struct lk_scale_links *wires;
    int devices, hosts; /* that have work */
    struct lk_scale_moment links[LK_MOST_SHARDS], adders[LK_MOST_SHARDS], net;
};

/* Sends a device's sums of a bucket to its host; returns how many there are. */
static int deliver(struct simulation *s, int device, int bucket)
{
    const struct lk_scale_costs *c = s->costs;
    const struct share share = share_of(c->shards, s->devices, device);
    struct lk_scale_moment ready = {0};
    spend(&ready, LK_SCALE_FIXED, c->fixed);
    if (share.micro_batches == 2)
        spend(&ready, LK_SCALE_COMPUTE, c->ready[share.sizes[0]][c->buckets - 1]);
    spend(&ready, LK_SCALE_COMPUTE, c->ready[share.sizes[share.micro_batches - 1]][bucket]);
    s->links[device] = later(&ready, &s->links[device]);
    spend(&s->links[device], LK_SCALE_LINK,
          1e-9 * share.terms * c->bytes[bucket] / s->wires->link_gbs);
    return share.terms;
}

/* Adds a host's sums of a bucket and writes a copy for each of its devices. */
static void add(struct simulation *s, int host, int bucket)
{
    const int first = host * s->devices / s->hosts, end = (host + 1) * s->devices / s->hosts;
    int arrays = 0;
    for (int d = first; d < end; d++) {
        arrays += deliver(s, d, bucket) + 1;
        s->adders[host] = later(&s->adders[host], &s->links[d]);
    }
    spend(&s->adders[host], LK_SCALE_ADDITION,
          1e-9 * arrays * s->costs->bytes[bucket] / s->costs->add_gbs);
}

static void sum(struct simulation *s, int bucket)
{
    for (int h = 0; h < s->hosts; h++) {
        add(s, h, bucket);
        s->net = later(&s->net, &s->adders[h]);
    }
    if (s->hosts > 1)
        spend(&s->net, LK_SCALE_NETWORK,
              2e-9 * (s->hosts - 1) / s->hosts * s->costs->bytes[bucket] / s->wires->net_gbs);
}

static struct lk_scale_moment end_alone(const struct lk_scale_costs *costs)
{
    struct lk_scale_moment end = {0};
    spend(&end, LK_SCALE_COMPUTE, costs->ready[costs->shards][costs->buckets - 1]);
    for (int b = 0; b < costs->buckets; b++)
        spend(&end, LK_SCALE_UPDATE, costs->update[b]);
    return end;
}

struct lk_scale_moment lk_scale_simulate(const struct lk_scale_costs *costs,
                                         const struct lk_scale_links *wires, int devices)
{
    struct simulation s = {.costs = costs, .wires = wires};
    if (devices == 1)
        return end_alone(costs);
    s.devices = (int)lk_least(devices, costs->shards);
    s.hosts = (int)lk_least(wires->hosts, s.devices);
    for (int b = 0; b < costs->buckets; b++)
        sum(&s, b);
    struct lk_scale_moment back = s.net, updated = s.net;
    for (int b = 0; b < costs->buckets; b++) {
        spend(&back, LK_SCALE_LINK, 1e-9 * costs->bytes[b] / wires->link_gbs);
        updated = later(&updated, &back);
        spend(&updated, LK_SCALE_UPDATE, costs->update[b]);
    }
    return updated;
}

enum lk_scale_limit lk_scale_limit_of(const struct lk_scale_moment *end, int shards,
                                      int devices)
{
    enum lk_scale_limit most = LK_SCALE_COMPUTE;
    for (int i = 0; i < LK_SCALE_LIMITS; i++)
        if (end->seconds[i] > end->seconds[most])
            most = (enum lk_scale_limit)i;
    const bool is_last_idle =
        devices > 1 && lk_divide_up(shards, devices) == lk_divide_up(shards, devices - 1);
    if (devices > shards || (most == LK_SCALE_COMPUTE && is_last_idle))
        return LK_SCALE_SHARDS;
    return most;
}
