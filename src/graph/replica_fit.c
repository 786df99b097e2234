/* Whether a replica fits into its device's memory, and which batch would. */
#include "graph/replica_internal.h"

#include "base/fail.h"
#include "mirror/shards.h"
#include "products/kernel/choice.h"
#include <stdio.h>
#include <stdlib.h>

/* The most bytes that are needed at the same time: no plan can take less. */
static size_t live_bytes(const struct lk_replica *replica)
{
    size_t most = 0;
    for (int time = -1; time <= replica->recompute.end; time++) {
        size_t sum = 0;
        for (int i = 0; i < replica->live_range_count; i++)
            if (replica->live_ranges[i].first <= time && time <= replica->live_ranges[i].last)
                sum += replica->live_ranges[i].bytes;
        most = sum > most ? sum : most;
    }
    return most;
}

double lk_replica_bytes_there(const struct lk_device *device)
{
    return (double)lk_device_info(device)->memory_bytes * 0.95 -
           (double)lk_device_bytes(device);
}

bool lk_replica_fits(const struct lk_replica *replica)
{
    const struct lk_device_info *info = lk_device_info(replica->config.device);
    bool fits = replica->is_planned && (double)lk_replica_bytes(replica).total <=
                                           lk_replica_bytes_there(replica->config.device);
    for (int i = 0; i < replica->input_count; i++)
        fits &= replica->inputs[i].bytes <= info->allocation_bytes;
    return fits;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Activations and inputs grow with the batch, the rest does not, and none may be larger than
 * the device allocates at once. */
static int64_t guess_batch(const struct lk_replica *replica)
{
    const struct lk_device_info *info = lk_device_info(replica->config.device);
    const struct lk_replica_bytes need = lk_replica_bytes(replica);
    const double fixed = (double)(need.weights + need.gradients + need.optimizer_arrays);
    const double live = (double)(need.activations ? need.activations : live_bytes(replica));
    double micro_batch =
        (lk_replica_bytes_there(replica->config.device) - fixed) / (live + (double)need.inputs);
    for (int i = 0; i < replica->live_range_count; i++)
        micro_batch = least(micro_batch, (double)info->allocation_bytes /
                                             (double)replica->live_ranges[i].bytes);
    for (int i = 0; i < replica->input_count; i++)
        micro_batch = least(micro_batch,
                            (double)info->allocation_bytes / (double)replica->inputs[i].bytes);
    return micro_batch > 0 ? (int64_t)(micro_batch * (double)replica->config.batch) : 0;
}

/* The shards of another batch: as many as are chosen for it, where nobody has asked for another
 * number of them. */
static int shards_of(const struct lk_replica *replica, int64_t batch)
{
    const struct lk_replica_config *c = &replica->config;
    const int count = c->micro_batches ? c->micro_batches : 1;
    int shards = c->shards;
    if (shards == lk_shards_choose(c->batch * count))
        shards = lk_shards_choose(batch * count);
    while (shards > batch)
        shards /= 2;
    return shards;
}

/* Plans the replica for another batch. */
static bool would_fit(const struct lk_replica *replica, int64_t batch)
{
    struct lk_replica_config config = replica->config;
    struct lk_replica *tried = NULL;
    config.shards = shards_of(replica, batch);
    config.batch = batch;
    bool is_right = lk_choices_copy(replica->config.choices, &config.choices) == LK_OK &&
                    lk_replica_make(&config, &tried) == LK_OK && lk_replica_fits(tried);
    lk_error_clear();
    lk_replica_destroy(tried);
    lk_choices_destroy(config.choices);
    return is_right;
}

/* The first guess ignores tiles that are not full and gaps in the plan, so it is tried and made
 * smaller until it fits; it takes all gradients to stay, though a smaller batch may have fewer
 * arrays of them, so halves above it are tried too. 0: no batch fits. */
static int64_t find_batch(const struct lk_replica *replica)
{
    const int64_t tiles = replica->tiling.shards * replica->tiling.lanes;
    int64_t batch = guess_batch(replica);
    if (batch > tiles)
        batch -= batch % tiles;
    for (int64_t half = replica->config.batch / 2; half > batch; half /= 2)
        if (would_fit(replica, half))
            return half;
    while (batch > 0 && !would_fit(replica, batch))
        batch = batch > tiles ? batch - lk_divide_up(batch, 16 * tiles) * tiles : batch / 2;
    return batch;
}

/* "9.27 GB" */
static const char *bytes_text(double bytes, char text[32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    int unit = 0;
    for (; bytes >= 999.5 && unit + 1 < LK_COUNT(units); unit++)
        bytes /= 1000;
    snprintf(text, 32, unit ? "%.3g %s" : "%.0f %s", bytes >= 0 ? bytes : 0, units[unit]);
    return text;
}

static enum lk_status check_fits(const struct lk_replica *replica)
{
    const struct lk_replica_bytes need = lk_replica_bytes(replica);
    const struct lk_device_info *info = lk_device_info(replica->config.device);
    const int count = replica->config.micro_batches ? replica->config.micro_batches : 1;
    char in_micro_batches[64] = "", in_shards[32] = "", advice[64] = "no batch size would",
         needs[32], has[32], most[32];
    if (lk_replica_fits(replica))
        return LK_OK;
    const double live =
        (double)need.total + (need.activations ? 0 : (double)live_bytes(replica));
    const int64_t batch = find_batch(replica);
    const char *again = need.again > 0 ? ", with activations computed again," : "";
    if (count > 1)
        snprintf(in_micro_batches, sizeof in_micro_batches, " in %d micro-batches", count);
    const int shards = batch > 0 ? shards_of(replica, batch) : 0;
    if (shards != replica->config.shards)
        snprintf(in_shards, sizeof in_shards, " in %d shard%s", shards, shards > 1 ? "s" : "");
    if (batch > 0)
        snprintf(advice, sizeof advice, "a batch size of %lld%s would",
                 (long long)batch * count, in_shards);
    return lk_fail(LK_E_DEVICE_MEMORY,
                   "batch size %lld%s%s needs %s of device memory, %s has %s free and "
                   "allocates %s at once; %s fit",
                   (long long)replica->config.batch * count, in_micro_batches, again,
                   bytes_text(live, needs), info->name,
                   bytes_text(lk_replica_bytes_there(replica->config.device), has),
                   bytes_text((double)info->allocation_bytes, most), advice);
}

enum lk_status lk_replica_create(const struct lk_replica_config *config,
                                 struct lk_replica **replica)
{
    struct lk_replica *made = NULL;
    LK_TRY(lk_replica_make(config, &made));
    const enum lk_status status = check_fits(made);
    if (status != LK_OK) {
        lk_replica_destroy(made);
        return status;
    }
    *replica = made;
    return LK_OK;
}
