/* What the ranks of a job do together before they train: only the same model, settings and data
 * give one model. Rank 0 alone has a run directory, validates and reports. */
#include "train/trainer_internal.h"

#include "base/build.h"
#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lk_rank(void)
{
    return lk_world_launched_rank();
}

int lk_ranks(void)
{
    return lk_world_launched_ranks();
}

/* All settings but those that may differ between hosts; model and data are compared by what is
 * in them. */
static enum lk_status compare_settings(struct lk_world *world,
                                       const struct lk_settings *settings)
{
    static const char *const own[] = {"model",      "data",    "validation",
                                      "run",        "device",  "profile",
                                      "data_cache", "weights", "init_from"};
    struct lk_settings *copy;
    char *text = NULL;
    LK_TRY(lk_settings_copy(settings, &copy));
    enum lk_status status = LK_OK;
    for (int i = 0; i < LK_COUNT(own) && status == LK_OK; i++)
        status = lk_settings_set(copy, own[i], "");
    if (status == LK_OK)
        status = lk_settings_print(copy, &text);
    if (status == LK_OK)
        status = lk_world_check_equal(world, "settings", text);
    free(text);
    lk_settings_destroy(copy);
    return status;
}

enum lk_status lk_trainer_join(struct lk_trainer *trainer)
{
    struct lk_settings *s = trainer->settings;
    struct lk_world *world = trainer->world;
    char build[64];
    snprintf(build, sizeof build, "%s, build %s", LK_VERSION, lk_build);
    LK_TRY(lk_world_check_equal(world, "versions", build));
    LK_TRY(compare_settings(world, s));
    LK_TRY(lk_world_check_equal(world, "models", lk_model_text(trainer->model)));
    if (lk_world_rank(world) == 0)
        return LK_OK;
    trainer->handler = NULL;
    s->run[0] = '\0';
    s->profile[0] = '\0';
    snprintf(s->validation, sizeof s->validation, "off");
    return LK_OK;
}

enum lk_status lk_trainer_compare_data(struct lk_trainer *trainer)
{
    char text[LK_SHA256_TEXT + 64];
    snprintf(text, sizeof text, "%lld samples, sha256 %s",
             (long long)lk_data_info(trainer->load.train)->count, trainer->data_sum);
    return lk_world_check_equal(trainer->world, "training data", text);
}

enum lk_status lk_trainer_share_text(struct lk_world *world, char **text)
{
    const bool is_first = lk_world_rank(world) == 0;
    int64_t bytes = is_first ? (int64_t)strlen(*text) + 1 : 0;
    LK_TRY(lk_world_broadcast(world, sizeof bytes, &bytes));
    char *shared = is_first ? *text : malloc((size_t)bytes);
    if (!shared)
        return lk_fail_memory("a text of rank 0", (size_t)bytes);
    const enum lk_status status = lk_world_broadcast(world, (size_t)bytes, shared);
    if (!is_first) {
        free(*text);
        *text = shared;
    }
    return status;
}

enum lk_status lk_trainer_broadcast_state(struct lk_trainer *trainer)
{
    LK_TRY(lk_world_broadcast(trainer->world, sizeof trainer->done, &trainer->done));
    LK_TRY(
        lk_world_broadcast(trainer->world, sizeof trainer->total_steps, &trainer->total_steps));
    LK_TRY(lk_world_broadcast(trainer->world, sizeof trainer->plateau, &trainer->plateau));
    LK_TRY(lk_world_broadcast(trainer->world, sizeof trainer->owes_evaluation,
                              &trainer->owes_evaluation));
    struct lk_callback_rates *rates = lk_callbacks_rates(trainer->callbacks);
    LK_TRY(lk_world_broadcast(trainer->world, sizeof *rates, rates));
    LK_TRY(lk_team_broadcast_state(trainer->team));
    return lk_world_barrier(trainer->world, LK_OK);
}
