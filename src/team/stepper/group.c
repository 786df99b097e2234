/* A step of a group: the shards of a share follow one another, as micro-batches, through the
 * devices among which the graph is divided. */
#include "team/stepper/internal.h"

#include "base/clock.h"
#include "base/fail.h"
#include "optim/group_sums.h"

/* --- making ------------------------------------------------------------------------------- */

enum lk_status lk_stepper_group_create(struct lk_stepper *stepper,
                                       const struct lk_replica_config *config)
{
    const struct lk_stepper_config *c = &stepper->config;
    struct lk_replica_config own = *config;
    own.packs_once = c->most_shards < c->shards;
    LK_TRY(lk_group_create(&own, c->group, c->places, c->in_flight, &stepper->group));
    stepper->place_count = c->places;
    for (int i = 0; i < c->places; i++) {
        stepper->places[i].device = c->group[i];
        stepper->places[i].replica = lk_group_replica(stepper->group, i);
    }
    stepper->penalizes = lk_stepper_penalizes(stepper);
    return LK_OK;
}

/* --- a share --------------------------------------------------------------------------------
 */

struct share {
    struct lk_stepper *stepper;
    struct lk_batches *batches;
    const struct lk_step_share *given;
    struct lk_shard_run at_once[LK_MOST_SHARDS]; /* of each micro-batch */
};

/* Reads the samples of a micro-batch for all places at once. */
static enum lk_status fetch_for_all(struct lk_stepper *stepper, struct lk_batches *batches,
                                    const struct lk_step_share *given,
                                    struct lk_shard_run at_once, int index)
{
    struct lk_feed_target targets[LK_MOST_PLACES];
    const struct lk_micro_batch micro_batch = lk_stepper_micro_batch(stepper, given, at_once);
    for (int p = 0; p < stepper->place_count; p++) {
        struct lk_replica *replica = lk_group_runner(stepper->group, p, index);
        targets[p] = (struct lk_feed_target){replica, lk_group_free_slot(replica)};
    }
    return lk_stepper_fetch(stepper, targets, stepper->place_count, batches, given,
                            &micro_batch);
}

static enum lk_status fetch(void *context, int index)
{
    struct share *share = context;
    struct lk_stepper *stepper = share->stepper;
    const double start = lk_seconds();
    LK_TRY(fetch_for_all(stepper, share->batches, share->given, share->at_once[index], index));
    stepper->input_ms += 1e3 * (lk_seconds() - start);
    return LK_OK;
}

/* One more micro-batch of the share that comes next. */
static enum lk_status fetch_next(void *context, bool *has_fetched)
{
    const struct share *share = context;
    struct lk_stepper *stepper = share->stepper;
    struct lk_step_share next;
    const int before = stepper->fetched_count;
    if (!stepper->next.get || !stepper->next.get(stepper->next.context, &next))
        return LK_OK;
    LK_TRY(lk_stepper_prefetch(stepper, share->batches, &next));
    *has_fetched = stepper->fetched_count > before;
    return LK_OK;
}

static enum lk_status load(void *context, struct lk_replica *replica, int place, int index)
{
    const struct share *share = context;
    const struct lk_stepper *stepper = share->stepper;
    const struct lk_micro_batch micro_batch =
        lk_stepper_micro_batch(stepper, share->given, share->at_once[index]);
    LK_TRY(lk_replica_load_micro_batch(replica, lk_group_free_slot(replica), &micro_batch));
    return place == 0 && index == 0
               ? lk_timestamp_enqueue(stepper->slots[0].marks[LK_AT_LOADED])
               : LK_OK;
}

static enum lk_status forwarded(void *context, struct lk_replica *replica, int place, int index)
{
    const struct share *share = context;
    const struct lk_stepper *stepper = share->stepper;
    if (place != lk_node_place(stepper->config.loss))
        return LK_OK;
    LK_TRY(lk_optimizer_enqueue_all_penalties(
        stepper->places[place].optimizer, share->at_once[index].first == 0,
        lk_exchange_shard_metrics(stepper->exchange), LK_METRIC_PENALTY));
    return lk_exchange_enqueue_metrics(stepper->exchange, replica, share->at_once[index]);
}

static enum lk_status finished(void *context, struct lk_replica *replica, int place, int index,
                               int bucket)
{
    const struct share *share = context;
    struct lk_exchange *exchange = share->stepper->exchange;
    (void)replica;
    return lk_exchange_enqueue_bucket(exchange, lk_exchange_bucket(exchange, place, bucket),
                                      share->at_once[index]);
}

/* The micro-batches of a share. Returns how many. */
static int cut(const struct lk_stepper *stepper, const struct lk_step_share *given,
               struct lk_shard_run at_once[LK_MOST_SHARDS])
{
    const int end = given->run.first + given->run.count;
    int count = 0;
    for (int first = given->run.first; first < end; first += at_once[count++].count)
        at_once[count] = lk_shard_run_at_once(given->run, first, stepper->config.most_shards);
    return count;
}

enum lk_status lk_stepper_group_begin(struct lk_stepper *stepper, struct lk_batches *batches,
                                      const struct lk_step_share *given, int fetched)
{
    struct share share = {.stepper = stepper, .batches = batches, .given = given};
    const struct lk_group_work work = {.context = &share,
                                       .step = given->step,
                                       .micro_batches = cut(stepper, given, share.at_once),
                                       .fetched = fetched,
                                       .fetch = fetch,
                                       .fetch_next = fetch_next,
                                       .load = load,
                                       .forwarded = forwarded,
                                       .finished = finished};
    for (int p = 0; p < stepper->place_count; p++)
        lk_replica_renew_weights(stepper->places[p].replica);
    if (given->run.first == 0)
        LK_TRY(lk_stepper_share_penalties(stepper));
    LK_TRY(lk_stepper_share_scale(stepper));
    LK_TRY(lk_exchange_begin(stepper->exchange, given->run));
    LK_TRY(lk_timestamp_enqueue(stepper->slots[0].marks[LK_AT_START]));
    LK_TRY(lk_group_run(stepper->group, &work));
    return lk_timestamp_enqueue(stepper->slots[0].marks[LK_AT_BACKWARD]);
}

enum lk_status lk_stepper_group_prefetch(struct lk_stepper *stepper, struct lk_batches *batches,
                                         const struct lk_step_share *given, int index)
{
    struct lk_shard_run at_once[LK_MOST_SHARDS];
    if (index >= stepper->config.in_flight || index >= cut(stepper, given, at_once))
        return LK_OK;
    LK_TRY(fetch_for_all(stepper, batches, given, at_once[index], index));
    stepper->fetched_count++;
    return LK_OK;
}
