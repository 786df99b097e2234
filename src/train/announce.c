/* Tells what a training is when it begins: people as events, others in the run directory. */
#include "train/trainer_internal.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/text.h"
#include "graph/planes.h"
#include <stdlib.h>

/* "pthread-AMD EPYC"; "2 devices: pthread-AMD EPYC, basic-AMD EPYC"; "2 groups of 2 devices: A
 * + B, C + D" */
static void print_devices(const struct lk_team *team, struct lk_text *text)
{
    const int count = lk_team_devices(team), places = lk_team_worker(team, 0)->places;
    if (places > 1)
        lk_text_append(text, "%d group%s of ", count, count > 1 ? "s" : "");
    if (count * places > 1)
        lk_text_append(text, "%d devices: ", places > 1 ? places : count);
    for (int i = 0; i < count * places; i++) {
        const struct lk_device *device = lk_team_worker(team, i / places)->group[i % places];
        lk_text_append(text, "%s%s",
                       !i           ? ""
                       : i % places ? " + "
                                    : ", ",
                       device ? lk_device_info(device)->name : "one that cannot be opened");
    }
}

/* The devices in the order of the text. `devices` has room for all. */
static int list_devices(const struct lk_team *team, struct lk_start_device *devices)
{
    int count = 0;
    for (int i = 0; i < lk_team_devices(team); i++) {
        const struct lk_worker *worker = lk_team_worker(team, i);
        for (int p = 0; p < worker->places; p++)
            if (worker->group[p])
                devices[count++] =
                    (struct lk_start_device){lk_device_info(worker->group[p])->name,
                                             lk_device_info(worker->group[p])->memory_bytes,
                                             lk_device_bytes(worker->group[p])};
    }
    return count;
}

static enum lk_status report_start(struct lk_trainer *trainer, int64_t parameters,
                                   const char *text, size_t remarks)
{
    struct lk_start_device devices[LK_MOST_TEAM * LK_MOST_PLACES];
    const struct lk_start start = {.parameters = parameters,
                                   .samples = lk_data_info(trainer->load.train)->count,
                                   .batch = trainer->settings->batch_size,
                                   .shards = trainer->shards,
                                   .ranks = lk_world_size(trainer->world),
                                   .device_count = list_devices(trainer->team, devices),
                                   .devices = devices,
                                   .remarks = text + remarks + 2 * (text[remarks] == ';')};
    return lk_trainer_report(
        trainer, (struct lk_event){.kind = LK_EVENT_START, .text = text, .start = &start});
}

static const struct lk_replica *lead(const struct lk_trainer *trainer)
{
    return lk_stepper_replica(lk_team_lead(trainer->team)->stepper);
}

enum lk_status lk_trainer_announce(struct lk_trainer *trainer)
{
    struct lk_text text = {0};
    int64_t parameters = 0;
    const struct lk_param *param;
    const struct lk_replica *replica = lead(trainer);
    for (int i = 0; (param = lk_replica_param(replica, i)); i++)
        parameters += param->count;
    lk_text_append(&text, "%s, %lld parameters, on ", lk_model_name(trainer->model),
                   (long long)parameters);
    if (lk_world_size(trainer->world) > 1)
        lk_text_append(&text, "%d ranks, here ", lk_world_size(trainer->world));
    print_devices(trainer->team, &text);
    lk_text_append(&text, "; %lld samples, batches of %lld in %d shard%s",
                   (long long)lk_data_info(trainer->load.train)->count,
                   (long long)trainer->settings->batch_size, trainer->shards,
                   trainer->shards == 1 ? "" : "s");
    const size_t remarks = text.used;
    if (trainer->features.is_on)
        lk_text_append(&text, "; the frozen part is computed once a sample");
    if (lk_replica_has_planes(replica))
        lk_text_append(&text, "; images lie in plane tiles");
    else if (trainer->settings->tiles == LK_TRAIN_PLANE_TILES)
        lk_text_append(&text, "; not in plane tiles, which this device or model has none of");
    if (lk_replica_bytes(replica).again > 0)
        lk_text_append(&text, "; to save memory, backward computes %.0f %% of forward again",
                       100 * lk_replica_bytes(replica).again);
    if (lk_team_staleness(trainer->team))
        lk_text_append(
            &text, "; asynchronous, up to %d updates stale, its bits differ from run to run",
            lk_team_staleness(trainer->team)->most);
    const long long done = trainer->done, asked = trainer->total_steps;
    const char *ended = lk_callbacks_ended(trainer->callbacks);
    if (ended && done == asked)
        lk_text_append(&text, "; %s has ended the run after step %lld", ended, done);
    else if (done > 0 && done < asked)
        lk_text_append(&text, "; going on after step %lld", done);
    else if (done == asked)
        lk_text_append(&text, "; all %lld steps are done, nothing is left to train", done);
    else if (done > asked)
        lk_text_append(&text,
                       "; nothing is left to train: %lld steps are done, %lld are asked for",
                       done, asked);
    const enum lk_status status = text.failed
                                      ? lk_fail_memory("a message", 0)
                                      : report_start(trainer, parameters, text.bytes, remarks);
    free(text.bytes);
    return status;
}

enum lk_status lk_trainer_describe(struct lk_trainer *trainer, enum lk_run_progress progress,
                                   struct lk_setting_changes *changes)
{
    const struct lk_device_info *devices[LK_MOST_TEAM * LK_MOST_PLACES + 1] = {NULL};
    int count = 0;
    for (int i = 0; i < lk_team_devices(trainer->team); i++) {
        const struct lk_worker *worker = lk_team_worker(trainer->team, i);
        for (int p = 0; p < worker->places; p++)
            if (worker->group[p])
                devices[count++] = lk_device_info(worker->group[p]);
    }
    const struct lk_environment environment = {.devices = devices,
                                               .ranks = lk_world_size(trainer->world),
                                               .planes = lk_replica_has_planes(lead(trainer)),
                                               .choices = trainer->choices};
    return lk_run_folder_describe(trainer->folder, trainer->settings, &environment, progress,
                                  changes);
}

enum lk_status lk_trainer_announce_changes(struct lk_trainer *trainer,
                                           const struct lk_setting_changes *changes)
{
    struct lk_text text = {0};
    if (changes->count == 0 && !changes->is_unreadable)
        return LK_OK;
    const bool is_finished = trainer->done >= trainer->total_steps;
    lk_setting_changes_print(changes, &text);
    if (changes->is_unreadable)
        lk_text_append(&text, "config.yaml cannot be read, so what it had is not known");
    if (*changes->kept)
        lk_text_append(&text, "; %s has the settings before", changes->kept);
    enum lk_status status = LK_OK;
    if (text.failed)
        status = lk_fail_memory("a message", text.room);
    else if (is_finished)
        lk_log(LK_LOG_WARNING,
               "the run is finished after step %lld, so these settings change nothing: %s",
               (long long)trainer->done, text.bytes);
    else
        status = lk_trainer_report(trainer, (struct lk_event){.kind = LK_EVENT_SETTINGS,
                                                              .text = text.bytes,
                                                              .changes = changes->items,
                                                              .change_count = changes->count});
    free(text.bytes);
    return status;
}
