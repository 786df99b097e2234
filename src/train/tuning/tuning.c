/* Reads and writes the cache of tuning results, and tunes quickly before a run. */
#include "train/tuning/tuning.h"

#include "base/fail.h"
#include "base/folder.h"
#include "base/log.h"
#include "graph/tune/tune.h"
#include "io/file.h"
#include "mirror/shards.h"
#include <errno.h>
#include <fcntl.h>
#include <lockstep/model.h>
#include <lockstep/settings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MOST_BYTES = 16 << 20, USUAL_BATCH = 512, USUAL_STEPS = 1000 };

/* The most seconds that quick tuning takes, and the most as a fraction of the run that
 * follows. */
static const double MOST_SECONDS = 15, FRACTION = 0.02;

/* --- the cache --------------------------------------------------------------------------- */

static bool path_of(enum lk_tuning kind, enum lk_math math, char *path, size_t bytes)
{
    static const char *const suffixes[] = {
        [LK_TUNING_QUICK] = "-quick", [LK_TUNING_FULL] = "", [LK_TUNING_TIMES] = "-times"};
    char part[64];
    snprintf(part, sizeof part, "tuning/%s-%s-%s%s.txt", LK_VERSION, lk_kernels_hash(),
             lk_math_names[math], suffixes[kind]);
    return lk_cache_folder(part, path, bytes);
}

static void load(enum lk_tuning kind, struct lk_choices *known)
{
    char path[1024];
    void *text = NULL;
    size_t bytes = 0;
    if (!path_of(kind, lk_choices_math(known), path, sizeof path) || !lk_file_exists(path))
        return;
    enum lk_status status = lk_file_read(path, MOST_BYTES, &text, &bytes);
    if (status == LK_OK && strlen(text) != bytes)
        status = lk_fail(LK_E_DATA, "%s: text expected, found a zero byte at %zu", path,
                         strlen(text));
    if (status == LK_OK)
        status = lk_choices_read(known, text, path);
    if (status != LK_OK) {
        lk_log(LK_LOG_WARNING, "results of tuning are left aside: %s", lk_error_text());
        lk_error_clear();
    }
    free(text);
}

void lk_tuning_load(struct lk_choices *known, struct lk_choices *blockings)
{
    load(LK_TUNING_FULL, known);
    load(LK_TUNING_QUICK, blockings);
}

static void copy(void *context, const char *key, const char *text)
{
    (void)!lk_choices_set(context, key,
                          text); /* they came from such a list, so their lengths fit */
}

static enum lk_status merge(enum lk_tuning kind, struct lk_choices *found, const char *path)
{
    struct lk_choices *all = NULL;
    char *text = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_choices_create(lk_choices_math(found), &all));
    load(kind, all);
    lk_choices_each(found, copy, all);
    LK_TRY_OUT(lk_choices_print(all, &text));
    LK_TRY_OUT(lk_file_write(path, text, strlen(text)));
out:
    free(text);
    lk_choices_destroy(all);
    return status;
}

/* Held while a file is read and written anew; a file system without locks is not refused. */
static int lock_beside(const char *path)
{
    char name[1040];
    snprintf(name, sizeof name, "%s.lock", path);
    const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (file >= 0 && flock(file, LOCK_EX) != 0 && errno == EINTR)
        ;
    return file;
}

enum lk_status lk_tuning_save(enum lk_tuning kind, struct lk_choices *found)
{
    char path[1024], folder[1024];
    if (!path_of(kind, lk_choices_math(found), path, sizeof path))
        return LK_OK;
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    LK_TRY(lk_folder_make(folder));
    const int lock = lock_beside(path);
    const enum lk_status status = merge(kind, found, path);
    if (lock >= 0)
        close(lock);
    return status;
}

/* --- quickly, before a run -----------------------------------------------------------------
 */

double lk_tuning_worth(const struct lk_device *device, const struct lk_node *loss,
                       int64_t batch, int64_t steps)
{
    const struct lk_device_info *info = lk_device_info(device);
    double flops = 0;
    for (int i = 0; i < loss->graph->count; i++)
        flops += loss->graph->nodes[i]->shapes.flops;
    /* multiply-adds of a compute unit in a cycle: two vectors; about 128 lanes on a GPU */
    const double each = info->device_class == LK_CLASS_CPU ? 2.0 * info->vector_width : 128;
    const double peak = 2e6 * each * info->clock_mhz * info->compute_units;
    const double run = 3 * flops * (double)batch * (double)(steps > 0 ? steps : USUAL_STEPS);
    const double worth = peak > 0 ? FRACTION * run / peak : 0;
    return worth < 1 ? 0 : worth < MOST_SECONDS ? worth : MOST_SECONDS;
}

enum lk_status lk_tuning_quick(const struct lk_tuning_run *run, double seconds,
                               struct lk_choices *blockings)
{
    const struct lk_tune_config config = {.device = run->device,
                                          .output = run->loss,
                                          .training = true,
                                          .stores_half = run->stores_half,
                                          .batch = run->batch,
                                          .shards = run->shards,
                                          .choices = blockings,
                                          .keeps_bits = true,
                                          .seconds = seconds};
    LK_TRY(lk_tune(&config));
    if (lk_tuning_save(LK_TUNING_QUICK, blockings) != LK_OK) { /* the next run measures again */
        lk_log(LK_LOG_WARNING, "%s", lk_error_text());
        lk_error_clear();
    }
    return LK_OK;
}

/* --- times of operations ------------------------------------------------------------------
 */

void lk_tuning_load_times(struct lk_choices *known)
{
    load(LK_TUNING_TIMES, known);
}

enum lk_status lk_tuning_times(const struct lk_tuning_run *run, double seconds,
                               struct lk_choices *choices, struct lk_op_times *times)
{
    struct lk_choices *copy = NULL;
    LK_TRY(lk_choices_copy(choices, &copy));
    const struct lk_times_config config = {.device = run->device,
                                           .beside = run->beside,
                                           .beside_count = run->beside_count,
                                           .loss = run->loss,
                                           .stores_half = run->stores_half,
                                           .batch = run->batch,
                                           .shards = run->shards,
                                           .packed_for = run->packed_for,
                                           .few_samples = run->few_samples,
                                           .choices = copy,
                                           .known = run->known,
                                           .older = run->older,
                                           .seconds = seconds};
    const enum lk_status status = lk_times_measure(&config, times);
    const enum lk_status saved = lk_tuning_save(LK_TUNING_TIMES, run->known);
    if (saved != LK_OK) { /* the next run measures again */
        lk_log(LK_LOG_WARNING, "%s", lk_error_text());
        if (status == LK_OK)
            lk_error_clear();
    }
    lk_choices_destroy(copy);
    return status;
}

/* --- fully ---------------------------------------------------------------------------------
 */

static bool is_mixed(const struct lk_tune_options *options)
{
    return options->precision && strcmp(options->precision, "mixed") == 0;
}

static enum lk_status tune(struct lk_device *device, const struct lk_tune_options *options,
                           const struct lk_node *loss, struct lk_choices *found)
{
    const int64_t batch = options->batch ? options->batch : USUAL_BATCH;
    const struct lk_tune_config config = {.device = device,
                                          .output = loss,
                                          .training = true,
                                          .stores_half = is_mixed(options),
                                          .batch = batch,
                                          .shards = lk_shards_choose(batch),
                                          .choices = found,
                                          .seconds = options->seconds,
                                          .handler = options->handler,
                                          .context = options->context};
    if (!options->again)
        load(LK_TUNING_FULL, found);
    const enum lk_status status = lk_tune(&config);
    const enum lk_status saved = lk_tuning_save(LK_TUNING_FULL, found);
    return status == LK_OK ? saved : status;
}

enum lk_status lk_tune_model(struct lk_device *device, const struct lk_tune_options *options)
{
    struct lk_model *model = NULL;
    struct lk_node *labels, *loss;
    struct lk_choices *found = NULL;
    enum lk_math math = LK_MATH_NORMAL;
    enum lk_status status;
    if (options->precision && !is_mixed(options) && strcmp(options->precision, "float") != 0)
        return lk_fail(LK_E_ARGUMENT, "precision '%s' is none of float, mixed",
                       options->precision);
    LK_TRY_OUT(lk_math_find(options->math, &math));
    LK_TRY_OUT(options->settings ? lk_settings_open_model(options->settings, &model)
                                 : lk_model_open(options->model, NULL, &model));
    LK_TRY_OUT(lk_model_add_loss(model, &labels, &loss));
    LK_TRY_OUT(lk_choices_create(math, &found));
    LK_TRY_OUT(tune(device, options, loss, found));
out:
    lk_choices_destroy(found);
    lk_model_destroy(model);
    return status;
}
