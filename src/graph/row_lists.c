/* Which tables have row lists for gradients, and what these take. */
#include "graph/replica_internal.h"
#include "tensor/row_list.h"

/* Several operations with one table add up gradients as large as the table. */
static bool is_used_once(const struct lk_replica *replica, int param)
{
    int uses = 0;
    for (int i = 0; i < replica->schedule.op_count; i++)
        for (int j = 0; j < replica->schedule.ops[i].shapes.params; j++)
            uses += replica->prepared[i].param[j] == param;
    return uses == 1;
}

/* The places of a shard that read the table; 0: it has no list. It has one where the whole
 * batch reads at most half as many rows as there are, which is the same on every device. */
static int64_t find_places(const struct lk_replica *replica, int param)
{
    const struct lk_param *p = &replica->params[param];
    const int64_t rows = p->shape.dim[0], units = p->shape.dim[1];
    const int op = lk_replica_param_owner(replica, param);
    if (!p->is_trainable || !p->spec.is_rows || op < 0 || !is_used_once(replica, param) ||
        rows >= LK_MOST_LISTED_ROWS || units % LK_LISTED_UNITS)
        return 0;
    const struct lk_scheduled_op *reader = &replica->schedule.ops[op];
    const int64_t steps = lk_shape_count(&reader->shapes.y) / units;
    const int64_t places = replica->tiling.shard_samples * steps;
    return 2 * places * replica->config.list_shards <= rows ? places : 0;
}

static int64_t room_of(const struct lk_param *param)
{
    return lk_divide_up(param->count, LK_PARAM_ALIGN) * LK_PARAM_ALIGN;
}

/* The elements of tables with lists among those before `offset`. */
static int64_t listed_before(const struct lk_replica *replica, int64_t offset)
{
    int64_t listed = 0;
    for (int p = 0; p < replica->param_count; p++)
        if (replica->params[p].places > 0 && replica->params[p].offset < offset)
            listed += room_of(&replica->params[p]);
    return listed;
}

void lk_replica_find_lists(struct lk_replica *replica)
{
    const bool wants_any = replica->config.list_shards > 0 && replica->config.training &&
                           replica->config.part != LK_PART_FROZEN;
    int found = 0;
    for (int p = 0; wants_any && p < replica->param_count && found < LK_MOST_LISTS; p++) {
        struct lk_param *param = &replica->params[p];
        if ((param->places = find_places(replica, p)) == 0)
            continue;
        found++;
        replica->listed_count += room_of(param);
    }
    for (int p = 0; p < replica->param_count; p++)
        replica->params[p].gradient_at =
            replica->params[p].offset - listed_before(replica, replica->params[p].offset);
}

/* Runs end where a list begins; trained parameters lie in the order of their numbers. */
bool lk_replica_gradient_run(const struct lk_replica *replica, int index,
                             struct lk_gradient_run *run)
{
    int64_t first = 0;
    for (int p = 0; p <= replica->param_count; p++) {
        const struct lk_param *param = &replica->params[p];
        const bool is_end = p == replica->param_count;
        if (!is_end && param->places == 0)
            continue;
        const int64_t end = is_end ? replica->gradient_count : param->offset;
        if (end > first && index-- == 0) {
            *run = (struct lk_gradient_run){first, first - listed_before(replica, first),
                                            end - first};
            return true;
        }
        first = is_end ? end : param->offset + room_of(param);
    }
    return false;
}

int64_t lk_replica_gradient_stride(const struct lk_replica *replica)
{
    return replica->gradient_count - replica->listed_count;
}

int64_t lk_param_list_stride(const struct lk_param *param)
{
    return lk_row_list_stride(param->places, param->shape.dim[1]);
}

int64_t lk_replica_list_reals(const struct lk_replica *replica)
{
    int64_t reals = 0;
    for (int p = 0; p < replica->param_count; p++)
        if (replica->params[p].places > 0)
            reals += lk_param_list_stride(&replica->params[p]);
    return reals;
}

int64_t lk_replica_listed_count(const struct lk_replica *replica)
{
    return replica->listed_count;
}
