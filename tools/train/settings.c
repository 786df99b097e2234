/* The settings of a training: from files, the environment and the command line. */
#include "terminal/terminal.h"
#include "train/train.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Options that are settings, and under which name. */
static const struct {
    const char *option, *setting;
} setting_names[] = {
    {"data", "data"},
    {"val", "validation"},
    {"max-bad", "max_bad"},
    {"pipeline", "pipeline"},
    {"augment", "augment"},
    {"data-threads", "data_threads"},
    {"cache", "data_cache"},
    {"freeze-until", "freeze_until"},
    {"train-last", "train_last"},
    {"cache-features", "cache_features"},
    {"cache-augmentations", "cache_augmentations"},
    {"run", "run"},
    {"fresh", "fresh"},
    {"weights", "weights"},
    {"init-from", "init_from"},
    {"skip-mismatch", "skip_mismatch"},
    {"epochs", "epochs"},
    {"steps", "steps"},
    {"batch-size", "batch_size"},
    {"bucket", "bucket"},
    {"device", "device"},
    {"memory-limit", "memory_limit"},
    {"recompute", "recompute"},
    {"split", "split"},
    {"place", "place"},
    {"shards", "shards"},
    {"mode", "mode"},
    {"math", "math"},
    {"tune", "tune"},
    {"precision", "precision"},
    {"max-staleness", "max_staleness"},
    {"seed", "seed"},
    {"lr", "lr"},
    {"optimizer", "optimizer"},
    {"callback", "callback"},
    {"eval-every", "eval_every"},
    {"checkpoint-every", "checkpoint_every"},
    {"check-every", "check_every"},
    {"profile", "profile"},
};

static const char *setting_of(const char *option)
{
    for (size_t i = 0; i < sizeof setting_names / sizeof *setting_names; i++)
        if (strcmp(setting_names[i].option, option) == 0)
            return setting_names[i].setting;
    return NULL;
}

/* LOCKSTEP_BATCH_SIZE and so on. LOCKSTEP_DATA is the folder of data sets, no setting. */
static enum lk_status apply_environment(struct lk_settings *settings)
{
    const char *name;
    enum lk_status status = LK_OK;
    for (int i = 0; status == LK_OK && (name = lk_setting_name(i)) != NULL; i++) {
        char variable[80] = "LOCKSTEP_";
        size_t length = strlen(variable);
        for (const char *p = name; *p && length < sizeof variable - 1; p++)
            variable[length++] = (char)toupper((unsigned char)*p);
        variable[length] = '\0';
        const char *value = strcmp(name, "data") == 0 ? NULL : getenv(variable);
        if (!value || !*value)
            continue;
        status = lk_settings_set(settings, name, value);
        if (status != LK_OK)
            say("in the environment, %s='%s':", variable, value);
    }
    return status;
}

static int set_pair(const struct arguments *arguments, struct lk_settings *settings,
                    const char *pair)
{
    char name[64];
    const char *equals = strchr(pair, '=');
    if (!equals || equals == pair || equals - pair >= (int)sizeof name)
        return wrong_usage(arguments->command, "option '--set' needs KEY=VALUE, found '%s'",
                           pair);
    snprintf(name, sizeof name, "%.*s", (int)(equals - pair), pair);
    const enum lk_status status = lk_settings_set(settings, name, equals + 1);
    return status == LK_OK ? DONE : failed(status);
}

int train_set_pairs(const struct arguments *arguments, struct lk_settings *settings)
{
    int result = DONE;
    for (int i = 0; i < arguments->given_count && result == DONE; i++)
        if (strcmp(arguments->given[i].option->name, "set") == 0)
            result = set_pair(arguments, settings, arguments->given[i].value);
    return result;
}

int train_model_settings(const struct arguments *arguments, struct lk_settings **settings)
{
    const char *data = option_text(arguments, "data");
    char found[512] = "";
    *settings = NULL;
    if (!option_given(arguments, "set") && !data)
        return DONE;
    if (data && !*data)
        return wrong_usage(arguments->command, "--data names no data");
    enum lk_status status = lk_settings_create(settings);
    if (status == LK_OK)
        status = lk_settings_set(*settings, "model", arguments->words[0]);
    const int result = status == LK_OK ? train_set_pairs(arguments, *settings) : failed(status);
    if (result != DONE)
        return result;
    if (data)
        status = lk_settings_set(*settings, "data", data);
    if (status == LK_OK)
        status = lk_settings_get(*settings, "data", found, sizeof found);
    if (status == LK_OK && *found)
        status = lk_settings_fit(*settings);
    return status == LK_OK ? DONE : failed(status);
}

/* Stages of the command line take the place of all that a run file has. */
static int check_pipeline(const struct arguments *arguments, const struct lk_settings *settings)
{
    char before[4096];
    const char *augment = option_text(arguments, "augment");
    const char *stages = augment ? augment : option_text(arguments, "pipeline");
    if (augment && option_text(arguments, "pipeline"))
        return wrong_usage(arguments->command,
                           "--augment and --pipeline are two names of one list of stages: all "
                           "of them go into one of both");
    const enum lk_status status = lk_settings_get(settings, "pipeline", before, sizeof before);
    if (status != LK_OK)
        return failed(status);
    if (stages && *before && lk_rank() == 0)
        say("the stages '%s' of the run file or the environment are replaced", before);
    return DONE;
}

static int apply_options(const struct arguments *arguments, struct lk_settings *settings)
{
    const int checked = check_pipeline(arguments, settings);
    if (checked != DONE)
        return checked;
    for (int i = 0; i < arguments->given_count; i++) {
        const struct given *given = &arguments->given[i];
        const char *setting = setting_of(given->option->name);
        enum lk_status status = LK_OK;
        int result = DONE;
        if (strcmp(given->option->name, "set") == 0)
            result = set_pair(arguments, settings, given->value);
        else if (setting)
            status = lk_settings_set(settings, setting, given->value ? given->value : "true");
        if (status != LK_OK) {
            say("on the command line, '--%s%s%s':", given->option->name,
                given->value ? " " : "", given->value ? given->value : "");
            result = failed(status);
        }
        if (result != DONE)
            return result;
    }
    return DONE;
}

/* --batch-per-device: the global batch size, now that the devices are known; ranks have equally
 * many, or they refuse one another's batch size. */
static int apply_batch_per_device(const struct arguments *arguments,
                                  struct lk_settings *settings)
{
    int64_t batch = 0;
    int devices = 0, result = option_number(arguments, "batch-per-device", 1, 1 << 24, &batch);
    char list[512], number[32];
    if (result != DONE || !batch)
        return result;
    if (option_given(arguments, "batch-size"))
        return wrong_usage(arguments->command,
                           "--batch-size and --batch-per-device exclude one another");
    enum lk_status status = lk_settings_get(settings, "device", list, sizeof list);
    if (status == LK_OK)
        status = lk_device_list_count(list, &devices);
    snprintf(number, sizeof number, "%" PRId64,
             batch * devices * (lk_ranks() > 0 ? lk_ranks() : 1));
    if (status == LK_OK)
        status = lk_settings_set(settings, "batch_size", number);
    return status == LK_OK ? DONE : failed(status);
}

/* Whether the folder is one that a run made. */
static bool has_config(const char *folder)
{
    char path[1024];
    return snprintf(path, sizeof path, "%s/config.yaml", folder) < (int)sizeof path &&
           access(path, R_OK) == 0;
}

/* Whether the model is to be read from a file that is not there. */
static bool is_missing_file(const struct arguments *arguments)
{
    const char *end = arguments->word_count ? strrchr(arguments->words[0], '.') : NULL;
    return end && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0) &&
           access(arguments->words[0], R_OK) != 0;
}

/* The run directory that a file lies in, which is its config.yaml; false: none. */
static bool find_own_run(const char *file, char *folder, size_t bytes)
{
    char path[1088];
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    const int length = slash ? (int)(slash - file) : 0;
    if (strcmp(name, "config.yaml") != 0 || length >= (int)bytes)
        return false;
    snprintf(folder, bytes, "%.*s", slash ? length : 1, slash ? file : ".");
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    return access(path, F_OK) == 0;
}

static bool is_one_folder(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Whether something else than a file says which run directory it is, or that it is a new one.
 */
static bool names_run(const struct arguments *arguments)
{
    const char *variable = getenv("LOCKSTEP_RUN");
    return (variable && *variable) || option_given(arguments, "run") ||
           option_given(arguments, "fresh") || option_given(arguments, "config");
}

/* A run directory that was moved, or is seen from another folder, has not the name that its
 * config.yaml has. */
static enum lk_status follow_run(const char *file, struct lk_settings *settings)
{
    char run[1024], folder[1024];
    const enum lk_status status = lk_settings_get(settings, "run", run, sizeof run);
    if (status != LK_OK || !*run || !find_own_run(file, folder, sizeof folder) ||
        is_one_folder(run, folder))
        return status;
    if (access(run, F_OK) == 0) {
        say("'%s' names run directory '%s', which is used; --run %s goes on with its own", file,
            run, folder);
        return LK_OK;
    }
    say("there is no run directory '%s': going on in '%s', where its config.yaml lies", run,
        folder);
    return lk_settings_set(settings, "run", folder);
}

static int check_data(const struct arguments *arguments, const struct lk_settings *settings)
{
    char data[1024];
    const enum lk_status status = lk_settings_get(settings, "data", data, sizeof data);
    if (status != LK_OK)
        return failed(status);
    if (*data)
        return DONE;
    if (arguments->word_count && has_config(arguments->words[0])) {
        say("train: '%s' is a run directory; 'lockstep train %s/config.yaml' goes on with it",
            arguments->words[0], arguments->words[0]);
        return USAGE;
    }
    if (is_missing_file(arguments)) {
        say("train: cannot open '%s': %s", arguments->words[0], strerror(errno));
        return BAD_INPUT;
    }
    say("train: no data; say which, for example\n"
        "  --data folder:photos         your own images, in a folder for each class\n"
        "  --data synthetic:digits      drawn digits, needs no file and no network\n"
        "  --data fashion-mnist         downloaded once, or found in $LOCKSTEP_DATA\n"
        "  --data idx:DIR               files with the names MNIST has");
    say("'lockstep %s --help' lists what there is", arguments->command->name);
    return USAGE;
}

int train_settings(const struct arguments *arguments, struct lk_settings *settings)
{
    const char *config = option_text(arguments, "config");
    const char *model = arguments->word_count ? arguments->words[0] : NULL;
    const bool model_is_file = model && lk_settings_is_run_file(model);
    enum lk_status status = LK_OK;
    if (model_is_file)
        status = lk_settings_read(settings, model);
    if (status == LK_OK && model_is_file && !names_run(arguments))
        status = follow_run(model, settings);
    if (status == LK_OK && config)
        status = lk_settings_read(settings, config);
    if (status == LK_OK)
        status = apply_environment(settings);
    if (status == LK_OK && model && !model_is_file)
        status = lk_settings_set(settings, "model", model);
    if (status != LK_OK)
        return failed(status);
    int result = apply_options(arguments, settings);
    if (result == DONE)
        result = apply_batch_per_device(arguments, settings);
    if (result == DONE && (status = lk_settings_inherit(settings)) != LK_OK)
        result = failed(status);
    return result == DONE ? check_data(arguments, settings) : result;
}
