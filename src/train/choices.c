/* Chooses the algorithms of a run. They decide bits, so a run that goes on takes those of its
 * checkpoint, and all ranks take those of rank 0. */
#include "train/trainer_internal.h"

#include "base/fail.h"
#include "base/log.h"
#include "graph/check/check.h"
#include "model/checkpoint/checkpoint.h"
#include "train/place/place.h"
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

/* Tunes on one device of each kind. */
static enum lk_status tune(void *context, struct lk_worker *worker)
{
    struct tuning *t = context;
    struct lk_trainer *trainer = t->trainer;
    const struct lk_settings *s = trainer->settings;
    const char *name = lk_device_info(worker->device)->name;
    if (strcmp(name, t->last) == 0)
        return LK_OK;
    snprintf(t->last, sizeof t->last, "%s", name);
    const struct lk_tuning_run run = {.device = worker->device,
                                      .loss = trainer->loss,
                                      .batch = s->batch_size,
                                      .shards = trainer->shards,
                                      .stores_half = s->precision == LK_PRECISION_MIXED};
    const double worth =
        lk_tuning_worth(worker->device, trainer->loss, s->batch_size, s->steps);
    const enum lk_status status =
        worth > 0 ? lk_tuning_quick(&run, worth, trainer->blockings) : LK_OK;
    if (status == LK_OK || status == LK_E_MEMORY || status == LK_E_DEVICE)
        return status;
    lk_error_clear(); /* it trains without tuning */
    return LK_OK;
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
    if (lk_world_size(world) == 1)
        return LK_OK;
    LK_TRY(take_from_first(world, trainer->tuned));
    return take_from_first(world, trainer->blockings);
}

static enum lk_status check(void *context, struct lk_worker *worker)
{
    const struct lk_trainer *trainer = context;
    const struct lk_settings *s = trainer->settings;
    const struct lk_check_config config = {.device = worker->device,
                                           .loss = trainer->loss,
                                           .stores_half = s->precision == LK_PRECISION_MIXED,
                                           .batch = s->batch_size,
                                           .shards = trainer->shards,
                                           .choices = trainer->choices};
    const enum lk_status status = lk_graph_check(&config);
    if (status != LK_E_DEVICE_MEMORY)
        return status;
    lk_log(LK_LOG_WARNING, "the numbers of device %d are not checked: %s", worker->position,
           lk_error_text());
    lk_error_clear(); /* training may need less memory than the check */
    return LK_OK;
}

static enum lk_status build(void *context, struct lk_worker *worker)
{
    (void)context;
    return lk_device_build(worker->device);
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
