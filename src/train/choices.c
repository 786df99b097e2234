/* Chooses the algorithms of a run. They decide bits, so a run that goes on takes those of its
 * checkpoint, and all ranks take those of rank 0. */
#include "train/trainer_internal.h"

#include "base/fail.h"
#include "base/log.h"
#include "graph/check/check.h"
#include "graph/planes.h"
#include "model/checkpoint/checkpoint.h"
#include "train/place/place.h"
#include "train/place/times.h"
#include "train/tuning/tuning.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum lk_status read_checkpoint(struct lk_trainer *trainer)
{
    const struct lk_checkpoint *about = lk_checkpoint_metadata(trainer->checkpoint);
    if (lk_choices_read(trainer->choices, about->choices, "its checkpoint") == LK_OK)
        return LK_OK;
    return lk_fail_within(
        LK_E_ARGUMENT,
        "run directory '%s' (use the --math it was made with, --fresh to start over, or "
        "another directory)",
        trainer->settings->run);
}

/* Makes a list of choices equal to that of rank 0. */
static enum lk_status take_from_first(struct lk_world *world, struct lk_choices *choices)
{
    char *text = NULL;
    const bool is_first = lk_world_rank(world) == 0;
    if (is_first)
        LK_TRY(lk_choices_print(choices, &text));
    enum lk_status status = lk_trainer_share_text(world, &text);
    if (status == LK_OK && !is_first)
        status = lk_choices_read(choices, text, "rank 0");
    free(text);
    return status;
}

struct tuning {
    struct lk_trainer *trainer;
    char last[sizeof((struct lk_device_info *)0)->name];
};

static enum lk_status tune_device(struct tuning *t, struct lk_device *device)
{
    struct lk_trainer *trainer = t->trainer;
    const struct lk_settings *s = trainer->settings;
    const char *name = lk_device_info(device)->name;
    bool has_planes = false;
    if (strcmp(name, t->last) == 0)
        return LK_OK;
    if (trainer->asks_planes && lk_devices_take_planes(&device, 1))
        LK_TRY(lk_planes_are_trained(trainer->loss, &has_planes));
    if (has_planes) /* their blockings are chosen by rule */
        return LK_OK;
    snprintf(t->last, sizeof t->last, "%s", name);
    const struct lk_tuning_run run = {.device = device,
                                      .loss = trainer->loss,
                                      .batch = s->batch_size,
                                      .shards = trainer->shards,
                                      .stores_half = s->precision == LK_PRECISION_MIXED};
    const double worth = lk_tuning_worth(device, trainer->loss, s->batch_size, s->steps);
    const enum lk_status status =
        worth > 0 ? lk_tuning_quick(&run, worth, trainer->blockings) : LK_OK;
    if (status == LK_OK || status == LK_E_MEMORY || status == LK_E_DEVICE)
        return status;
    lk_error_clear(); /* it trains without tuning */
    return LK_OK;
}

/* Tunes on one device of each kind. */
static enum lk_status tune(void *context, struct lk_worker *worker)
{
    for (int i = 0; i < worker->places; i++)
        LK_TRY(tune_device(context, worker->group[i]));
    return LK_OK;
}

/* A division by measured times, on the thread of a group's first device. */
struct placing {
    struct lk_trainer *trainer;
    struct lk_place_found found;
};

static enum lk_status plan(void *context, int shards, int *in_flight,
                           struct lk_replica_config *config)
{
    struct lk_worker *worker = context;
    worker->most_shards = shards;
    return lk_worker_plan(worker, in_flight, config);
}

static enum lk_status place(void *context, struct lk_worker *worker)
{
    struct placing *p = context;
    const struct lk_settings *s = p->trainer->settings;
    const int groups = lk_team_devices_of_all(worker->team), usual = worker->most_shards;
    const struct lk_place_request request = {
        .model = p->trainer->model,
        .words = s->place,
        .loss = p->trainer->loss,
        .devices = worker->group,
        .places = worker->places,
        .groups = groups,
        .choices = p->trainer->choices,
        .usual_shards = usual,
        .most_shards = s->accumulate > 1 ? usual : p->trainer->shards / groups,
        .seconds = lk_tuning_worth(worker->device, p->trainer->loss, s->batch_size, s->steps),
        .plan = plan,
        .context = worker};
    const int in_flight = worker->in_flight;
    enum lk_status status = LK_OK;
    for (bool again = true; again && status == LK_OK;) { /* what was measured is known then */
        p->found = (struct lk_place_found){.shards = usual};
        status = lk_place_by_times(&request, &p->found);
        worker->most_shards = usual;
        again = p->found.estimate.step_ms <= 0 && worker->in_flight > worker->places;
        worker->in_flight -= again;
    }
    if (p->found.estimate.step_ms <= 0)
        worker->in_flight = in_flight;
    return status;
}

static enum lk_status place_by_times(struct lk_trainer *trainer, struct lk_team *team)
{
    struct placing p = {.trainer = trainer};
    const struct lk_group_estimate *estimate = &p.found.estimate;
    LK_TRY(lk_team_call(team, place, &p));
    if (estimate->step_ms <= 0) /* by estimates, as before */
        return lk_place_again(team, trainer->model, trainer->settings->place);
    memcpy(trainer->planned_ms, estimate->busy_ms, sizeof trainer->planned_ms);
    return lk_place_set_most_shards(team, p.found.shards);
}

enum lk_status lk_trainer_tune(void *context, struct lk_team *team)
{
    struct lk_trainer *trainer = context;
    struct lk_world *world = trainer->world;
    struct tuning tuning = {.trainer = trainer};
    LK_TRY(lk_place_nodes(team, world, trainer->model, trainer->settings->place));
    if (!trainer->checkpoint && lk_world_rank(world) == 0 &&
        trainer->settings->tune != LK_TUNE_OFF)
        LK_TRY(lk_team_call_each(team, tune, &tuning, false));
    const bool is_group = lk_team_worker(team, 0)->places > 1;
    /* operations of the whole model are measured: of a head places stay as they are */
    const bool is_whole = is_group && !trainer->features.is_on;
    const bool finds = is_whole && trainer->settings->accumulate < 2;
    if (finds)
        LK_TRY(lk_place_find_most_shards(team, trainer->model, trainer->shards));
    if (is_whole && lk_world_rank(world) == 0 && trainer->settings->tune != LK_TUNE_OFF)
        LK_TRY(place_by_times(trainer, team));
    if (is_group)
        LK_TRY(lk_place_share(world, trainer->model));
    if (finds && trainer->planned_ms[0] <= 0) /* places may be others now */
        LK_TRY(lk_place_find_most_shards(team, trainer->model, trainer->shards));
    if (lk_world_size(world) == 1)
        return LK_OK;
    LK_TRY(take_from_first(world, trainer->tuned));
    return take_from_first(world, trainer->blockings);
}

static enum lk_status check_place(const struct lk_trainer *trainer,
                                  const struct lk_worker *worker, int place)
{
    const struct lk_settings *s = trainer->settings;
    const struct lk_check_config config = {
        .device = worker->group[place],
        .is_placed = worker->places > 1,
        .place = place,
        .loss = trainer->loss,
        .stores_half = s->precision == LK_PRECISION_MIXED,
        .batch = s->batch_size,
        .shards = trainer->shards,
        .few_samples =
            trainer->asks_planes && lk_devices_take_planes(worker->group, worker->places),
        .choices = trainer->choices};
    const enum lk_status status = lk_graph_check(&config);
    if (status == LK_E_DEVICE)
        lk_device_blame(config.device);
    if (status != LK_E_DEVICE_MEMORY)
        return status;
    lk_log(LK_LOG_WARNING, "the numbers of device %d are not checked: %s", worker->position,
           lk_error_text());
    lk_error_clear(); /* training may need less memory than the check */
    return LK_OK;
}

/* Of a group each device, with the operations of its place. */
static enum lk_status check(void *context, struct lk_worker *worker)
{
    for (int i = 0; i < worker->places; i++)
        LK_TRY(check_place(context, worker, i));
    return LK_OK;
}

static enum lk_status build(void *context, struct lk_worker *worker)
{
    (void)context;
    for (int i = 0; i < worker->places; i++)
        LK_TRY(lk_device_build(worker->group[i]));
    return LK_OK;
}

enum lk_status lk_trainer_check(struct lk_trainer *trainer)
{
    LK_TRY(lk_team_call_each(trainer->team, build, NULL, true)); /* all devices at once */
    return lk_team_call_each(trainer->team, check, trainer, false);
}

enum lk_status lk_trainer_open_choices(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    struct lk_world *world = trainer->world;
    LK_TRY(lk_choices_create((enum lk_math)s->math, &trainer->choices));
    LK_TRY(lk_choices_create((enum lk_math)s->math, &trainer->tuned));
    LK_TRY(lk_choices_create((enum lk_math)s->math, &trainer->blockings));
    lk_choices_set_fallbacks(trainer->choices, trainer->tuned, trainer->blockings);
    lk_choices_set_fallbacks(trainer->blockings, trainer->tuned, NULL);
    if (trainer->checkpoint)
        LK_TRY(read_checkpoint(trainer));
    else if (lk_world_rank(world) == 0 && s->tune != LK_TUNE_OFF)
        lk_tuning_load(trainer->tuned, trainer->blockings);
    return lk_world_size(world) > 1 ? take_from_first(world, trainer->choices) : LK_OK;
}
