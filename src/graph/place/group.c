/* Runs the replicas of a group: each as far as it can, then what has to cross is moved. */
#include "graph/place/group.h"

#include "base/fail.h"
#include "graph/crossing.h"
#include <limits.h>
#include <stdlib.h>

struct lk_group {
    struct lk_replica *replicas[LK_MOST_PLACES];
    int count;
};

static enum lk_status check_tiles(const struct lk_group *group, int i)
{
    const struct lk_tiling *first = lk_replica_tiling(group->replicas[0]);
    const struct lk_tiling *own = lk_replica_tiling(group->replicas[i]);
    if (own->lanes == first->lanes && own->shard_samples == first->shard_samples)
        return LK_OK;
    return lk_fail(LK_E_UNSUPPORTED,
                   "devices of a group hold %d and %d samples in a batch tile, so nothing can "
                   "cross between them",
                   first->lanes, own->lanes);
}

enum lk_status lk_group_create(const struct lk_replica_config *config,
                               struct lk_device *const *devices, int count,
                               struct lk_group **group)
{
    enum lk_status status = LK_OK;
    if (count < 1 || count > LK_MOST_PLACES)
        return lk_fail(LK_E_ARGUMENT, "a group of %d devices: 1 to %d", count, LK_MOST_PLACES);
    struct lk_group *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a group of devices", sizeof *made);
    for (int i = 0; i < count && status == LK_OK; i++) {
        struct lk_replica_config own = *config;
        own.device = devices[i];
        own.place = i;
        own.places = count;
        status = lk_replica_create(&own, &made->replicas[i]);
        made->count += status == LK_OK;
        if (status == LK_OK)
            status = check_tiles(made, i);
    }
    if (status != LK_OK) {
        lk_group_destroy(made);
        return status;
    }
    *group = made;
    return LK_OK;
}

void lk_group_destroy(struct lk_group *group)
{
    if (!group)
        return;
    for (int i = 0; i < group->count; i++)
        lk_replica_destroy(group->replicas[i]);
    free(group);
}

struct lk_replica *lk_group_replica(struct lk_group *group, int index)
{
    return index >= 0 && index < group->count ? group->replicas[index] : NULL;
}

/* Moves the first of what was sent and not taken yet. Others may still be computing: they have
 * been given all that they can do. */
static enum lk_status move_one(struct lk_group *group, bool in_backward)
{
    for (int c = 0; c < lk_crossing_count(group->replicas[0]); c++) {
        const struct lk_crossing *crossing = lk_crossing_get(group->replicas[0], c);
        struct lk_replica *from = group->replicas[in_backward ? crossing->to : crossing->from];
        struct lk_replica *to = group->replicas[in_backward ? crossing->from : crossing->to];
        if (lk_crossing_is_sent(from, c, in_backward))
            return lk_crossing_move(from, to, c, in_backward);
    }
    return lk_fail(LK_E_UNSUPPORTED, "devices of a group wait for each other");
}

static enum lk_status run(struct lk_group *group, bool in_backward)
{
    for (;;) {
        bool all_done = true, is_done;
        for (int i = 0; i < group->count; i++) {
            LK_TRY(in_backward ? lk_replica_go_backward(group->replicas[i], INT_MAX, &is_done)
                               : lk_replica_go_forward(group->replicas[i], &is_done));
            all_done &= is_done;
        }
        if (all_done)
            return LK_OK;
        LK_TRY(move_one(group, in_backward));
    }
}

enum lk_status lk_group_forward(struct lk_group *group, int64_t step)
{
    for (int i = 0; i < group->count; i++)
        lk_replica_begin_forward(group->replicas[i], step);
    return run(group, false);
}

enum lk_status lk_group_backward(struct lk_group *group)
{
    return run(group, true);
}
