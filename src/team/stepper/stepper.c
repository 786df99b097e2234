/* Creates steppers: of a device that is alone, of one of several devices, of a group. */
#include "team/stepper/internal.h"

#include "base/fail.h"
#include "graph/watch.h"
#include <stdlib.h>

/* Arrays as long as the gradient that hold sums over shards: terms, and what comes back. */
static int count_sums(const struct lk_stepper_config *c)
{
    if (!c->most_shards)
        return 1;
    return lk_exchange_terms(c->shards, c->most_shards, c->keeps_sums) + !c->keeps_sums;
}

enum lk_status lk_stepper_plan(const struct lk_stepper_config *c,
                               struct lk_replica_config *replica)
{
    const int shards = c->most_shards ? c->most_shards : c->shards;
    struct lk_optimizer_traits traits = {0};
    LK_TRY(lk_optimizer_ask(c->optimizer, c->optimizer_options, &traits));
    *replica = (struct lk_replica_config){
        .device = c->device,
        .outputs = {c->loss},
        .batch = c->most_shards ? shards * lk_divide_up(c->batch, c->shards) : c->batch,
        .shards = shards,
        .micro_batches = c->shards / shards,
        .transform = c->transform,
        .real = c->real,
        .stores_half = c->loss_scale.first > 0,
        .training = true,
        .part = c->part,
        .recompute = c->recompute,
        .few_samples = c->few_samples,
        .seed = c->seed,
        .choices = c->choices,
        .optimizer_arrays = traits.arrays + (c->ema > 0),
        .gradient_sums = count_sums(c),
        .list_shards = c->lists_rows ? c->shards : 0,
    };
    return LK_OK;
}

static enum lk_status create(struct lk_stepper *stepper)
{
    const struct lk_stepper_config *c = &stepper->config;
    struct lk_optimizer_traits traits = {0};
    struct lk_replica_config replica;
    LK_TRY(lk_optimizer_ask(c->optimizer, c->optimizer_options, &traits));
    stepper->spares_vectors = traits.spares;
    stepper->is_lazy = traits.lazy;
    LK_TRY(lk_stepper_plan(c, &replica));
    stepper->place_count = 1;
    stepper->places[0].device = c->device;
    if (c->places > 0)
        return lk_stepper_group_create(stepper, &replica);
    LK_TRY(lk_replica_create(&replica, &stepper->places[0].replica));
    if (c->most_shards)
        return LK_OK;
    return lk_shard_sum_create(c->device, lk_replica_tiling(stepper->places[0].replica),
                               c->real, false, &stepper->sum);
}

enum lk_status lk_stepper_create(const struct lk_stepper_config *config,
                                 struct lk_stepper **stepper)
{
    struct lk_stepper *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a stepper", sizeof *made);
    made->config = *config;
    const enum lk_status status = create(made);
    if (status != LK_OK) {
        lk_stepper_destroy(made);
        return status;
    }
    *stepper = made;
    return LK_OK;
}

static enum lk_status allocate_alone(struct lk_stepper *stepper, size_t real)
{
    struct lk_device *device = stepper->config.device;
    const size_t dense = (size_t)lk_replica_gradient_stride(stepper->places[0].replica);
    struct lk_gradient_run run;
    LK_TRY(lk_buffer_create(device, dense * real, &stepper->gradient));
    for (int i = 0; lk_replica_gradient_run(stepper->places[0].replica, i, &run); i++)
        LK_TRY(lk_buffer_view(stepper->gradient, (size_t)run.at * real,
                              (size_t)run.count * real, &stepper->runs[i]));
    LK_TRY(lk_buffer_create(device, LK_STEP_METRICS * real, &stepper->metrics));
    for (int i = 0; i < LK_REPLICA_SLOTS; i++)
        LK_TRY(lk_staging_create(device, LK_STEP_METRICS * real, &stepper->slots[i].metrics));
    return LK_OK;
}

/* Factors of a parameter's updates. */
static struct lk_param_factors factors_of(const struct lk_stepper *stepper,
                                          const struct lk_param *param)
{
    const struct lk_param_penalties penalties = lk_param_penalties(param);
    return (struct lk_param_factors){.first = param->offset,
                                     .count = param->count,
                                     .rate = param->lr_scale,
                                     .decay = !stepper->spares_vectors ||
                                              lk_param_is_weight(&param->spec),
                                     .l1 = penalties.l1,
                                     .l2 = penalties.l2};
}

/* What an optimizer is told of single parameters; each has room for all. */
struct about_params {
    struct lk_param_factors *factors;
    struct lk_param_rows *rows;
    struct lk_param_placement *placements;
    int factor_count, row_count;
};

static void describe_params(const struct lk_stepper *stepper, const struct lk_replica *replica,
                            struct about_params *about)
{
    const struct lk_param *param;
    for (int i = 0; (param = lk_replica_param(replica, i)); i++) {
        const struct lk_param_factors of = factors_of(stepper, param);
        if (param->is_trainable && (of.rate != 1 || of.decay != 1 || of.l1 != 0 || of.l2 != 0))
            about->factors[about->factor_count++] = of;
        if (param->is_trainable && param->spec.is_rows &&
            (stepper->is_lazy || param->places > 0))
            about->rows[about->row_count++] =
                (struct lk_param_rows){.first = param->offset,
                                       .count = param->count,
                                       .units = param->shape.dim[param->shape.rank - 1],
                                       .places = param->places,
                                       .shards = stepper->config.shards};
    }
}

static enum lk_status create_optimizer(const struct lk_stepper *stepper,
                                       struct lk_stepper_place *place,
                                       struct about_params *about)
{
    const struct lk_stepper_config *c = &stepper->config;
    describe_params(stepper, place->replica, about);
    struct lk_optimizer_config config = {.device = place->device,
                                         .real = c->real,
                                         .kind = c->optimizer,
                                         .options = c->optimizer_options,
                                         .count = lk_replica_trainable_count(place->replica),
                                         .factors = about->factors,
                                         .factor_count = about->factor_count,
                                         .rows = about->rows,
                                         .row_count = about->row_count,
                                         .clip = c->clip,
                                         .penalizes = stepper->penalizes,
                                         .ema = c->ema};
    if (stepper->group) {
        config.placements = about->placements;
        config.placement_count =
            lk_stepper_placements(place->replica, about->placements, &config.all);
    }
    return lk_optimizer_create(&config, &place->optimizer);
}

static enum lk_status make_optimizer(const struct lk_stepper *stepper,
                                     struct lk_stepper_place *place)
{
    size_t params = 1;
    while (lk_replica_param(place->replica, (int)params - 1))
        params++;
    struct about_params about = {.factors = calloc(params, sizeof *about.factors),
                                 .rows = calloc(params, sizeof *about.rows),
                                 .placements = calloc(params, sizeof *about.placements)};
    const enum lk_status status =
        about.factors && about.rows && about.placements
            ? create_optimizer(stepper, place, &about)
            : lk_fail_memory("factors of parameters", params * sizeof *about.factors);
    free(about.factors);
    free(about.rows);
    free(about.placements);
    return status;
}

/* What one place of a group trains may be nothing; there the optimizer has no work. */
static enum lk_status build_optimizer(const struct lk_stepper *stepper,
                                      struct lk_stepper_place *place)
{
    const struct lk_stepper_config *c = &stepper->config;
    const int64_t count = lk_replica_trainable_count(place->replica);
    const int64_t all = lk_replica_gradient_count(place->replica);
    LK_TRY(make_optimizer(stepper, place));
    if (all > count)
        LK_TRY(lk_optimizer_track(place->optimizer, place->device, all - count));
    if (c->loss_scale.first > 0)
        LK_TRY(lk_optimizer_scale_loss(place->optimizer, place->device, &c->loss_scale));
    const struct lk_buffer *scale = lk_optimizer_info(place->optimizer)->scaling;
    if (stepper->group)
        lk_group_set_loss_scale(stepper->group, (int)(place - stepper->places), scale);
    else
        lk_replica_set_loss_scale(place->replica, scale);
    return LK_OK;
}

static enum lk_status create_exchange(struct lk_stepper *stepper)
{
    struct lk_device *devices[LK_MOST_PLACES];
    struct lk_replica *replicas[LK_MOST_PLACES];
    for (int i = 0; i < stepper->place_count; i++) {
        devices[i] = stepper->places[i].device;
        replicas[i] = stepper->places[i].replica;
    }
    const struct lk_exchange_config config = {
        .devices = devices,
        .replicas = replicas,
        .places = stepper->place_count,
        .place_of_loss = stepper->group ? lk_node_place(stepper->config.loss) : 0,
        .shards = stepper->config.shards,
        .keeps_sums = stepper->config.keeps_sums};
    return lk_exchange_create(&config, &stepper->exchange);
}

static enum lk_status check_trainable(const struct lk_stepper *stepper)
{
    int64_t count = 0;
    for (int i = 0; i < stepper->place_count; i++)
        count += lk_replica_trainable_count(stepper->places[i].replica);
    return count > 0 ? LK_OK : lk_fail(LK_E_MODEL, "the model has no parameter to train");
}

enum lk_status lk_stepper_build(struct lk_stepper *stepper)
{
    const struct lk_stepper_config *c = &stepper->config;
    LK_TRY(check_trainable(stepper));
    for (int i = 0; i < stepper->place_count; i++) {
        LK_TRY(build_optimizer(stepper, &stepper->places[i]));
        stepper->infos[i] = lk_optimizer_info(stepper->places[i].optimizer);
        if (stepper->group)
            lk_optimizer_set_group(stepper->places[i].optimizer, stepper->infos);
    }
    for (int i = 0; i < LK_REPLICA_SLOTS; i++)
        for (int j = 0; j < LK_STEP_TIMESTAMPS; j++)
            LK_TRY(lk_timestamp_create(c->device, &stepper->slots[i].marks[j]));
    LK_TRY(c->most_shards ? create_exchange(stepper)
                          : allocate_alone(stepper, lk_dtype_bytes(c->real)));
    if (stepper->group)
        LK_TRY(lk_group_build(stepper->group));
    else
        LK_TRY(lk_replica_build(stepper->places[0].replica));
    for (int i = 0; i < stepper->place_count; i++)
        LK_TRY(lk_replica_init_weights(stepper->places[i].replica, c->seed));
    return LK_OK;
}

void lk_stepper_destroy(struct lk_stepper *stepper)
{
    if (!stepper)
        return;
    for (int i = 0; i < stepper->place_count; i++)
        (void)!lk_device_finish(stepper->places[i].device);
    for (int i = 0; i < LK_REPLICA_SLOTS; i++) {
        lk_staging_destroy(stepper->slots[i].metrics);
        for (int j = 0; j < LK_STEP_TIMESTAMPS; j++)
            lk_timestamp_destroy(stepper->slots[i].marks[j]);
    }
    lk_exchange_destroy(stepper->exchange);
    lk_buffer_destroy(stepper->metrics);
    for (int i = 0; i < LK_COUNT(stepper->runs); i++)
        lk_buffer_destroy(stepper->runs[i]);
    lk_buffer_destroy(stepper->gradient);
    lk_shard_sum_destroy(stepper->sum);
    for (int i = 0; i < stepper->place_count; i++)
        lk_optimizer_destroy(stepper->places[i].optimizer);
    if (stepper->group)
        lk_group_destroy(stepper->group);
    else
        lk_replica_destroy(stepper->places[0].replica);
    for (int i = 0; i < LK_MOST_PLACES; i++)
        free(stepper->kept[i]);
    free(stepper->sums);
    free(stepper);
}

int lk_stepper_places(const struct lk_stepper *stepper)
{
    return stepper->place_count;
}

struct lk_replica *lk_stepper_replica_at(struct lk_stepper *stepper, int place)
{
    return stepper->places[place].replica;
}

void lk_stepper_watch(struct lk_stepper *stepper, struct lk_watch *watch)
{
    if (stepper->group)
        lk_group_watch(stepper->group, watch);
    else
        lk_replica_watch(stepper->places[0].replica, watch);
}

struct lk_optimizer *lk_stepper_optimizer_at(struct lk_stepper *stepper, int place)
{
    return stepper->places[place].optimizer;
}

struct lk_replica *lk_stepper_replica(struct lk_stepper *stepper)
{
    return lk_stepper_replica_at(stepper, 0);
}

struct lk_optimizer *lk_stepper_optimizer(struct lk_stepper *stepper)
{
    return lk_stepper_optimizer_at(stepper, 0);
}
