/* A divided model of whose devices some have failed is placed anew on those that are left. */
#include "train/saving.h"

#include "base/fail.h"
#include "base/log.h"
#include <stdio.h>
#include <string.h>

/* Whether some but not all devices of groups that are lost, each of them, still work: writes a
 * list of them, and the words by which a model is placed anew on them. Not where one could not
 * be opened at all. What fails is a group; which of its devices, these tell by commands that
 * failed, or when they are tried. */
static bool find_left(const struct lk_team *team, const char *devices, char *left, size_t bytes,
                      const char **words)
{
    bool is_lost[LK_MOST_TEAM * LK_MOST_PLACES] = {false};
    char why[1024];
    const int places = lk_team_devices(team) > 0 ? lk_team_worker(team, 0)->places : 0;
    int count = 0;
    if (places < 2 || lk_team_left(team) > 0)
        return false;
    for (int i = 0; i < lk_team_devices(team); i++) {
        const struct lk_worker *worker = lk_team_worker(team, i);
        if (!worker->group[places - 1])
            return false;
        if (worker->trouble.fails_at > 0 && worker->trouble.place >= 0)
            is_lost[i * places + worker->trouble.place] = true;
        for (int p = 0; p < places; p++)
            is_lost[i * places + p] |= lk_device_has_failed(worker->group[p]);
        if (worker->delivery.has_crossed_wrong) /* it works, but hands over what is wrong */
            is_lost[i * places + worker->delivery.wrong_at] = true;
    }
    snprintf(why, sizeof why, "%s", lk_error_text());
    const enum lk_status status = lk_device_list_left(devices, is_lost, left, bytes, &count);
    lk_error_clear();
    (void)!lk_fail(LK_E_DEVICE, "%s", why); /* still the reason, if nothing is left */
    *words = count > 1 ? "auto" : "off";
    return status == LK_OK && count > 0 && count < lk_team_devices(team) * places;
}

bool lk_trainer_take_left(const struct lk_trainer *trainer, struct lk_settings *settings)
{
    char left[sizeof settings->device];
    const char *words;
    if (!trainer->team || lk_world_size(trainer->world) > 1 ||
        !find_left(trainer->team, trainer->settings->device, left, sizeof left, &words))
        return false;
    snprintf(settings->device, sizeof settings->device, "%s", left);
    snprintf(settings->place, sizeof settings->place, "%s", words);
    return true;
}

bool lk_trainer_find_left(const struct lk_trainer *trainer, struct lk_settings *settings)
{
    const bool has_run = *trainer->settings->run;
    if ((!has_run && trainer->done > 0) || !lk_trainer_take_left(trainer, settings))
        return false;
    settings->fresh &= !has_run;
    return true;
}

/* Before the first step: as often as there could be fewer. */
enum lk_status lk_trainer_create(const struct lk_settings *settings,
                                 void (*handler)(void *, const struct lk_event *),
                                 void *context, struct lk_trainer **trainer)
{
    struct lk_settings *now = NULL;
    bool again;
    enum lk_status status = lk_settings_copy(settings, &now);
    while (status == LK_OK) {
        status = lk_trainer_create_with(now, handler, context, trainer, &again);
        if (!again)
            break;
        lk_log(LK_LOG_WARNING, "%s; the model is placed anew on what is left: --device %s",
               lk_error_text(), now->device);
        lk_error_clear();
        status = LK_OK;
    }
    lk_settings_destroy(now);
    return status;
}
