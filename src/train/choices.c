/* The algorithms of a run: they decide bits, so a run that goes on takes those of its
 * checkpoint, and all ranks those of rank 0. */
#include "train/trainer_parts.h"

#include "base/fail.h"
#include "model/checkpoint.h"
#include "ops/choice.h"
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

static enum lk_status take_from_first(struct lk_trainer *trainer)
{
    int64_t bytes = 0;
    char *text = NULL;
    const bool is_first = lk_world_rank(trainer->world) == 0;
    if (is_first) {
        LK_TRY(lk_choices_print(trainer->choices, &text));
        bytes = (int64_t)strlen(text) + 1;
    }
    enum lk_status status = lk_world_share(trainer->world, sizeof bytes, &bytes);
    if (status == LK_OK && !is_first && !(text = malloc((size_t)bytes)))
        status = lk_fail_memory("choices of algorithms", (size_t)bytes);
    if (status == LK_OK)
        status = lk_world_share(trainer->world, (size_t)bytes, text);
    if (status == LK_OK && !is_first)
        status = lk_choices_read(trainer->choices, text, "rank 0");
    free(text);
    return status;
}

enum lk_status lk_trainer_open_choices(struct lk_trainer *trainer)
{
    LK_TRY(lk_choices_create((enum lk_math)trainer->settings->math, &trainer->choices));
    if (trainer->checkpoint)
        LK_TRY(read_checkpoint(trainer));
    return lk_world_size(trainer->world) > 1 ? take_from_first(trainer) : LK_OK;
}
