/* A step of a group: the shards of a share follow one another, as micro-batches, through the
 * devices among which the graph is divided. */
#include "team/stepper/internal.h"

#include "base/clock.h"
#include "base/fail.h"

/* --- making ------------------------------------------------------------------------------- */

static enum lk_status check(const struct lk_stepper *stepper)
{
    const struct lk_stepper_config *c = &stepper->config;
    const char *what = c->clip.norm > 0          ? "clipping gradients by their norm"
                       : c->loss_scale.first > 0 ? "mixed precision"
                       : c->part != LK_PART_ALL  ? "a head on cached features"
                                                 : NULL;
    if (what)
        return lk_fail(LK_E_ARGUMENT, "%s is not there where several devices compute one model",
                       what);
    return LK_OK;
}

/* What weights add to the loss is summed over all of them, in one place. */
static enum lk_status check_penalties(const struct lk_stepper *stepper)
{
    const struct lk_param *param;
    for (int i = 0; (param = lk_replica_param(stepper->places[0].replica, i)); i++) {
        const struct lk_param_penalties of = lk_param_penalties(param);
        if (of.l1 != 0 || of.l2 != 0)
            return lk_fail(LK_E_UNSUPPORTED,
                           "penalties of weights (%s has l1 or l2) are not there where several "
                           "devices compute one model",
                           param->name);
    }
    return LK_OK;
}

enum lk_status lk_stepper_group_create(struct lk_stepper *stepper,
                                       const struct lk_replica_config *config)
{
    const struct lk_stepper_config *c = &stepper->config;
    LK_TRY(check(stepper));
    LK_TRY(lk_group_create(config, c->group, c->places, c->in_flight, &stepper->group));
    stepper->place_count = c->places;
    for (int i = 0; i < c->places; i++) {
        stepper->places[i].device = c->group[i];
        stepper->places[i].replica = lk_group_replica(stepper->group, i);
    }
    return check_penalties(stepper);
}

/* --- a share --------------------------------------------------------------------------------
 */

struct share {
    struct lk_stepper *stepper;
    struct lk_batches *batches;
    const struct lk_step_share *given;
    bool is_fetched; /* the first micro-batch, by lk_stepper_prefetch() */
    struct lk_shard_run at_once[LK_MOST_SHARDS]; /* of each micro-batch */
};

static enum lk_status load(void *context, struct lk_replica *replica, int place, int index)
{
    struct share *share = context;
    struct lk_stepper *stepper = share->stepper;
    const int slot = lk_group_free_slot(replica);
    const struct lk_micro_batch micro_batch =
        lk_stepper_micro_batch(stepper, share->given, share->at_once[index]);
    const double start = lk_seconds();
    if (index > 0 || !share->is_fetched)
        LK_TRY(lk_stepper_fetch(stepper, replica, slot, share->batches, share->given,
                                &micro_batch));
    stepper->input_ms += 1e3 * (lk_seconds() - start);
    LK_TRY(lk_replica_load_micro_batch(replica, slot, &micro_batch));
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

enum lk_status lk_stepper_group_begin(struct lk_stepper *stepper, struct lk_batches *batches,
                                      const struct lk_step_share *given, bool is_fetched)
{
    const int end = given->run.first + given->run.count;
    struct share share = {
        .stepper = stepper, .batches = batches, .given = given, .is_fetched = is_fetched};
    struct lk_group_work work = {.context = &share,
                                 .step = given->step,
                                 .load = load,
                                 .forwarded = forwarded,
                                 .finished = finished};
    for (int first = given->run.first; first < end;) {
        const struct lk_shard_run at_once =
            lk_shard_run_at_once(given->run, first, stepper->config.most_shards);
        share.at_once[work.micro_batches++] = at_once;
        first += at_once.count;
    }
    LK_TRY(lk_exchange_begin(stepper->exchange, given->run));
    LK_TRY(lk_timestamp_enqueue(stepper->slots[0].marks[LK_AT_START]));
    LK_TRY(lk_group_run(stepper->group, &work));
    return lk_timestamp_enqueue(stepper->slots[0].marks[LK_AT_BACKWARD]);
}

/* Replicas take micro-batches as they come free, so the first one goes to the first replica of
 * each place. */
enum lk_status lk_stepper_group_prefetch(struct lk_stepper *stepper, struct lk_batches *batches,
                                         const struct lk_step_share *given,
                                         const struct lk_micro_batch *micro_batch)
{
    for (int p = 0; p < stepper->place_count; p++) {
        struct lk_replica *replica = stepper->places[p].replica;
        LK_TRY(lk_stepper_fetch(stepper, replica, lk_group_free_slot(replica), batches, given,
                                micro_batch));
    }
    return LK_OK;
}
