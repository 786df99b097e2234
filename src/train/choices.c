/* The algorithms of a run: they decide bits, so a run that goes on takes those of its
 * checkpoint, and all ranks those of rank 0. */
#include "train/trainer_parts.h"

#include "base/fail.h"
#include "model/checkpoint.h"
#include "train/tuning.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum lk_status read_checkpoint(struct lk_trainer *trainer)
{
    const struct lk_checkpoint *about = lk_checkpoint_about(trainer->checkpoint);
    if (lk_choices_read(trainer->choices, about->choices, "its checkpoint") == LK_OK)
        return LK_OK;
    return lk_fail_within(
        LK_E_ARGUMENT, "run directory '%s' (use --fresh to start over, or another directory)",
        trainer->settings->run);
}

/* Makes a list that of rank 0. */
static enum lk_status take_from_first(struct lk_world *world, struct lk_choices *choices)
{
    int64_t bytes = 0;
    char *text = NULL;
    const bool is_first = lk_world_rank(world) == 0;
    if (is_first) {
        LK_TRY(lk_choices_print(choices, &text));
        bytes = (int64_t)strlen(text) + 1;
    }
    enum lk_status status = lk_world_share(world, sizeof bytes, &bytes);
    if (status == LK_OK && !is_first && !(text = malloc((size_t)bytes)))
        status = lk_fail_memory("choices of algorithms", (size_t)bytes);
    if (status == LK_OK)
        status = lk_world_share(world, (size_t)bytes, text);
    if (status == LK_OK && !is_first)
        status = lk_choices_read(choices, text, "rank 0");
    free(text);
    return status;
}

/* One device of each kind; those that cannot be opened the team will report. */
static enum lk_status tune_kinds(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    int count = 0;
    char last[sizeof((struct lk_device_info *)0)->name] = "";
    LK_TRY(lk_device_list_count(s->device, &count));
    for (int i = 0; i < count; i++) {
        struct lk_device *device = NULL;
        enum lk_status status = lk_device_open(s->device, i, &device);
        if (status != LK_OK) {
            lk_error_clear();
            continue;
        }
        const double worth =
            strcmp(lk_device_info(device)->name, last) == 0
                ? 0
                : lk_tuning_worth(device, trainer->loss, s->batch_size, s->steps);
        snprintf(last, sizeof last, "%s", lk_device_info(device)->name);
        if (worth > 0)
            status =
                lk_tuning_quick(device, trainer->loss, s->batch_size, worth, trainer->tuned);
        lk_device_close(device);
        if (status == LK_E_MEMORY)
            return status;
        lk_error_clear();
    }
    return LK_OK;
}

enum lk_status lk_trainer_open_choices(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    struct lk_world *world = trainer->world;
    LK_TRY(lk_choices_create((enum lk_math)s->math, &trainer->choices));
    LK_TRY(lk_choices_create((enum lk_math)s->math, &trainer->tuned));
    lk_choices_know(trainer->choices, trainer->tuned);
    if (trainer->checkpoint)
        LK_TRY(read_checkpoint(trainer));
    else if (lk_world_rank(world) == 0 && s->tune != LK_TUNE_OFF) {
        lk_tuning_load(trainer->tuned);
        LK_TRY(tune_kinds(trainer));
    }
    if (lk_world_size(world) < 2)
        return LK_OK;
    LK_TRY(take_from_first(world, trainer->choices));
    return take_from_first(world, trainer->tuned);
}
