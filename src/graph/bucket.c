/* Buckets of gradients. Parameters lie in the order of the schedule, so those that backward
 * finishes first lie last; tracked ones, which lie behind them, are a bucket of their own. */
#include "graph/replica_internal.h"

enum { BUCKET_ELEMENTS = 1 << 18 };

/* The scheduled operation that a parameter belongs to; -1: it is in the part that is not run.
 */
static int owner(const struct lk_replica *replica, int param)
{
    for (int i = 0; i < replica->schedule.op_count; i++)
        for (int j = 0; j < replica->schedule.ops[i].shapes.params; j++)
            if (replica->prepared[i].param[j] == param)
                return i;
    return -1;
}

/* Makes a bucket of the tracked parameters. They are few, so it is finished only when all their
 * gradients are there. */
static void add_tracked(struct lk_replica *replica)
{
    const int64_t first = replica->trainable_count, end = replica->gradient_count;
    for (int p = 0; p < replica->param_count && end > first; p++)
        if (replica->params[p].offset == first) {
            replica->buckets[replica->bucket_count++] =
                (struct bucket_end){{first, end - first}, owner(replica, p)};
            return;
        }
}

void lk_replica_cut_buckets(struct lk_replica *replica)
{
    int64_t end = replica->trainable_count;
    for (int p = replica->param_count - 1; p >= 0; p--) {
        const struct lk_param *param = &replica->params[p];
        const int last = owner(replica, p);
        const bool ends_op = p == 0 || owner(replica, p - 1) != last;
        if (!param->is_trainable || !ends_op)
            continue;
        const bool is_full = end - param->offset >= BUCKET_ELEMENTS &&
                             replica->bucket_count < LK_MOST_BUCKETS - 2;
        if (!is_full && param->offset > 0)
            continue;
        replica->buckets[replica->bucket_count++] =
            (struct bucket_end){{param->offset, end - param->offset}, last};
        end = param->offset;
    }
    add_tracked(replica);
}

int lk_replica_bucket_count(const struct lk_replica *replica)
{
    return replica->bucket_count;
}

struct lk_bucket lk_replica_bucket(const struct lk_replica *replica, int index)
{
    return replica->buckets[index].elements;
}
