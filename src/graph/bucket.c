/* Buckets of gradients. Parameters lie in the order of the schedule, so those that backward
 * finishes first lie last; tracked ones, which lie behind them, are a bucket of their own. */
#include "graph/replica_internal.h"

enum { BUCKET_ELEMENTS = 1 << 18 };

int lk_replica_param_owner(const struct lk_replica *replica, int param)
{
    for (int i = 0; i < replica->schedule.op_count; i++)
        for (int j = 0; j < replica->schedule.ops[i].shapes.params; j++)
            if (replica->prepared[i].param[j] == param)
                return i;
    return -1;
}

/* The operation with which backward has finished the gradients of the trained parameters
 * `first` to `last`: most often the first one's, but those of weights that are used at another
 * place, too, come back from there last of all. */
static int finished_by(const struct lk_replica *replica, int first, int last)
{
    int op = lk_replica_param_owner(replica, first);
    for (int p = first + 1; p <= last; p++) {
        const struct lk_param *param = &replica->params[p];
        const int owner = lk_replica_param_owner(replica, p);
        if (param->is_trainable && param->places == 0 && owner < op)
            op = owner;
    }
    return op;
}

static struct bucket_end bucket_of(const struct lk_param *first, int64_t end, int op)
{
    const int64_t count = end - first->offset;
    return (struct bucket_end){.elements = {.first = first->offset,
                                            .at = first->gradient_at,
                                            .count = count,
                                            .sum_count = count},
                               .op = op};
}

/* Each table with a list is a bucket. */
static void add_lists(struct lk_replica *replica)
{
    for (int p = 0; p < replica->param_count; p++) {
        const struct lk_param *param = &replica->params[p];
        if (param->places == 0)
            continue;
        struct bucket_end *bucket = &replica->buckets[replica->bucket_count++];
        *bucket =
            bucket_of(param, param->offset + param->count, lk_replica_param_owner(replica, p));
        bucket->elements.list_stride = lk_param_list_stride(param);
        bucket->elements.sum_count = bucket->elements.list_stride * replica->config.list_shards;
        bucket->param = p;
    }
}

/* Makes a bucket of the tracked parameters, none of which is shared. They are few, so it is
 * finished only when all their gradients are there. */
static void add_tracked(struct lk_replica *replica)
{
    for (int p = 0; p < replica->param_count; p++) {
        const struct lk_param *param = &replica->params[p];
        if (!param->has_gradient || param->is_trainable)
            continue;
        replica->buckets[replica->bucket_count++] =
            bucket_of(param, replica->gradient_count, lk_replica_param_owner(replica, p));
        return;
    }
}

/* Whether a trained parameter is the first of all, or the first behind a table with a list. */
static bool begins_run(const struct lk_replica *replica, const struct lk_param *param)
{
    struct lk_gradient_run run;
    for (int i = 0; lk_replica_gradient_run(replica, i, &run); i++)
        if (run.first == param->offset)
            return true;
    return false;
}

/* Whether a parameter is the first of its operation that is trained. */
static bool ends_op(const struct lk_replica *replica, int p)
{
    const int owner = lk_replica_param_owner(replica, p);
    for (int q = p - 1; q >= 0 && lk_replica_param_owner(replica, q) == owner; q--)
        if (replica->params[q].is_trainable)
            return false;
    return replica->params[p].is_trainable;
}

void lk_replica_cut_buckets(struct lk_replica *replica)
{
    const int places = replica->config.places > 1 ? replica->config.places : 1;
    const int most = LK_MOST_BUCKETS / places - 2 - 2 * LK_MOST_LISTS;
    int64_t end = replica->trainable_count;
    int last = replica->param_count - 1; /* that no bucket has yet */
    for (int p = last; p >= 0; p--) {
        const struct lk_param *param = &replica->params[p];
        if (!ends_op(replica, p))
            continue;
        const bool is_full =
            end - param->offset >= BUCKET_ELEMENTS && replica->bucket_count < most;
        if (param->places == 0 && !is_full && !begins_run(replica, param))
            continue;
        if (param->places == 0)
            replica->buckets[replica->bucket_count++] =
                bucket_of(param, end, finished_by(replica, p, last));
        end = param->offset;
        last = p - 1;
    }
    add_lists(replica);
    add_tracked(replica);
}

int lk_replica_bucket_count(const struct lk_replica *replica)
{
    return replica->bucket_count;
}

struct lk_bucket lk_replica_bucket(const struct lk_replica *replica, int index)
{
    struct lk_bucket bucket = replica->buckets[index].elements;
    if (bucket.list_stride > 0)
        bucket.list = replica->gradient_views[replica->buckets[index].param];
    return bucket;
}
