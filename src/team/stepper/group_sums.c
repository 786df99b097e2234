/* What is known of the parameters of all places of a group together: the norm of a gradient,
 * whether it is finite, the penalties of weights. Blocks of parameters are summed where the
 * parameters are; then the host puts the sums of all blocks together in the order of one
 * device, and every place makes of them what one device would, to the bit. */
#include "team/stepper/internal.h"

#include "base/fail.h"
#include "optim/group_sums.h"
#include <stdlib.h>
#include <string.h>

/* Parameters lie in the order of the graph, at the places as on one device. */
int lk_stepper_placements(const struct lk_replica *replica, struct lk_param_placement *list,
                          int64_t *all)
{
    const struct lk_param *own;
    int count = 0;
    int64_t at = 0;
    for (int i = 0; (own = lk_replica_param(replica, i)); i++) {
        const int place = lk_group_place_of_param(replica, i);
        const struct lk_param *param = lk_replica_param(lk_group_member(replica, place), i);
        const int64_t length = lk_divide_up(param->count, LK_FACTOR_BLOCK) * LK_FACTOR_BLOCK;
        struct lk_param_placement *last = count > 0 ? &list[count - 1] : NULL;
        if (!param->is_trainable)
            continue;
        if (param == own && last && last->first + last->count == own->offset &&
            last->at + last->count == at)
            last->count += length;
        else if (param == own)
            list[count++] = (struct lk_param_placement){own->offset, length, at};
        at += length;
    }
    *all = at;
    return count;
}

bool lk_stepper_penalizes(const struct lk_stepper *stepper)
{
    const struct lk_replica *any = stepper->places[0].replica;
    bool has_any = false;
    for (int i = 0; lk_replica_param(any, i); i++) {
        const int place = lk_group_place_of_param(any, i);
        const struct lk_param_penalties of =
            lk_param_penalties(lk_replica_param(lk_group_member(any, place), i));
        has_any |= of.l1 != 0 || of.l2 != 0;
    }
    return has_any;
}

/* --- the scale of the loss ----------------------------------------------------------------
 */

static struct lk_buffer *scaling_of(const struct lk_stepper *stepper, int place)
{
    return lk_optimizer_info(stepper->places[place].optimizer)->scaling;
}

/* That of the first place is the one that checkpoints have, and that others may have set. */
enum lk_status lk_stepper_share_scale(struct lk_stepper *stepper)
{
    float numbers[LK_LOSS_SCALE_NUMBERS];
    if (!scaling_of(stepper, 0))
        return LK_OK;
    LK_TRY(lk_buffer_read(scaling_of(stepper, 0), 0, sizeof numbers, numbers));
    for (int i = 1; i < stepper->place_count; i++)
        LK_TRY(lk_buffer_write(scaling_of(stepper, i), 0, sizeof numbers, numbers));
    return LK_OK;
}

/* A gradient of one place that is not finite keeps all of them from updating. */
static enum lk_status share_overflow(struct lk_stepper *stepper)
{
    const size_t at = LK_LOSS_SCALE_FOUND * sizeof(float);
    int32_t all = 0, found;
    for (int i = 0; i < stepper->place_count; i++) {
        LK_TRY(lk_buffer_read(scaling_of(stepper, i), at, sizeof found, &found));
        all |= found;
    }
    for (int i = 0; i < stepper->place_count && all; i++)
        LK_TRY(lk_buffer_write(scaling_of(stepper, i), at, sizeof all, &all));
    return LK_OK;
}

/* --- sums ----------------------------------------------------------------------------------
 */

static enum lk_status share_sums(struct lk_stepper *stepper, enum lk_block_sums which)
{
    const size_t bytes = lk_optimizer_sum_bytes(stepper->places[0].optimizer, which);
    if (bytes == 0)
        return LK_OK;
    if (!stepper->sums)
        stepper->sums = malloc(bytes); /* as many for squares as for penalties */
    if (!stepper->sums)
        return lk_fail_memory("sums over the parameters of a group", bytes);
    memset(stepper->sums, 0, bytes);
    for (int i = 0; i < stepper->place_count; i++)
        LK_TRY(lk_optimizer_read_sums(stepper->places[i].optimizer, which, stepper->sums));
    for (int i = 0; i < stepper->place_count; i++)
        LK_TRY(lk_optimizer_write_sums(stepper->places[i].optimizer, which, stepper->sums));
    return LK_OK;
}

enum lk_status lk_stepper_share_penalties(struct lk_stepper *stepper)
{
    if (!stepper->penalizes)
        return LK_OK;
    for (int i = 0; i < stepper->place_count; i++)
        LK_TRY(lk_optimizer_enqueue_own_penalties(
            stepper->places[i].optimizer, lk_replica_weights(stepper->places[i].replica)));
    return share_sums(stepper, LK_SUMS_OF_PENALTIES);
}

enum lk_status lk_stepper_share_checks(struct lk_stepper *stepper)
{
    if (scaling_of(stepper, 0))
        LK_TRY(share_overflow(stepper));
    return stepper->config.clip.norm > 0 ? share_sums(stepper, LK_SUMS_OF_SQUARES) : LK_OK;
}
