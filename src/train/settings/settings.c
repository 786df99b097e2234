/* The table of settings, and reading and printing them. */
#include "train/settings/settings.h"

#include "base/fail.h"
#include "data/sources/broken.h"
#include "data/stages/pipeline.h"
#include "graph/replica.h"
#include "mirror/staleness.h"
#include "model/model.h"
#include "optim/lr_schedule.h"
#include "products/kernel/choice.h"
#include "train/evaluation/period.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a loss that is summed over samples: gradients of logits are at most 1. */
#define FIRST_LOSS_SCALE 0x1p12
enum { STEPS_TO_DOUBLE = 500 };

#define AT(field) .offset = offsetof(struct lk_settings, field)
#define TEXT(field)                                                                            \
    .kind = LK_OPTION_TEXT, AT(field), .count = sizeof((struct lk_settings *)0)->field

static const char *const tunes[] = {"off", "quick", NULL};
static const char *const precisions[] = {"float", "mixed", NULL};
static const char *const tiles[] = {"auto", "batch", "planes", NULL};
static const char *const recomputes[] = {[LK_RECOMPUTE_OFF] = "off",
                                         [LK_RECOMPUTE_SQRT] = "sqrt",
                                         [LK_RECOMPUTE_AUTO] = "auto",
                                         [LK_RECOMPUTE_AUTO + 1] = NULL};
static const char *const modes[] = {"sync", "async", NULL};
static const char *const all_reduces[] = {"tree", "mpi", NULL};

const struct lk_option lk_settings_table[] = {
    {.name = "model", TEXT(model), .standard = "", .help = "zoo name or model file"},
    {.name = "input",
     .kind = LK_OPTION_INT,
     AT(input),
     .count = 3,
     .max = 16384,
     .standard = "0",
     .help = "height, width, channels of a zoo model's images"},
    {.name = "classes",
     .kind = LK_OPTION_INT,
     AT(classes),
     .max = 1 << 20,
     .standard = "0",
     .help = "classes of a zoo model; 0: its own"},
    {.name = "vocabulary",
     .kind = LK_OPTION_INT,
     AT(vocabulary),
     .max = 1 << 20,
     .standard = "0",
     .help = "tokens that a zoo model of texts tells apart; 0: as many as the data has"},
    {.name = "length",
     .kind = LK_OPTION_INT,
     AT(length),
     .max = 1 << 20,
     .standard = "0",
     .help = "tokens of a sample of a zoo model of texts; 0: as the data has"},
    {.name = "parameters",
     TEXT(parameters),
     .standard = "",
     .help = "of a model's text: 'top=false cells=6'; each is also a setting by itself"},
    {.name = "weights",
     TEXT(weights),
     .standard = "",
     .help = "file of weights that a new run begins with: safetensors, Keras's .h5 and .keras, "
             "PyTorch's .pt; behind it ,by=name or ,by=order"},
    {.name = "init_from",
     TEXT(init_from),
     .standard = "",
     .help = "run directory or checkpoint with whose weights a new run begins"},
    {.name = "skip_mismatch",
     .kind = LK_OPTION_BOOL,
     AT(skip_mismatch),
     .standard = "false",
     .help = "what of weights does not fit the model, such as a head for other classes, stays "
             "as initialized"},
    {.name = "freeze_until",
     TEXT(freeze_until),
     .standard = "",
     .help = "name of the last entry whose parameters are frozen, with those of all before it"},
    {.name = "train_last",
     .kind = LK_OPTION_INT,
     AT(train_last),
     .max = 1 << 24,
     .standard = "0",
     .help = "only so many entries with parameters are trained, the last ones; 0: all"},
    {.name = "data", TEXT(data), .standard = "", .help = "training data, a SPEC"},
    {.name = "validation",
     TEXT(validation),
     .standard = "",
     .help =
         "validation data, a SPEC; 10%: that share of data, held out; none: the part val of "
         "data, else its part test; off: no validation"},
    {.name = "max_bad",
     TEXT(max_bad),
     .standard = "1%",
     .help = "broken samples that are left out, a share or a number; more end the run"},
    {.name = "pipeline",
     TEXT(pipeline),
     .standard = "",
     .help = "stages of training images: rotate 10 | crop padding=4 | flip horizontal | "
             "brightness 0.2 | normalize -1..1"},
    {.name = "augment",
     TEXT(pipeline),
     .standard = "",
     .help = "the same, short: flip=horizontal padding=4 rotate=10 brightness=0.2"},
    {.name = "eval_pipeline",
     TEXT(eval_pipeline),
     .standard = "",
     .help = "stages of evaluation; none: size and normalize of pipeline, and the middle"},
    {.name = "data_cache",
     TEXT(data_cache),
     .standard = "none",
     .help = "keep decoded, resized samples: none, memory, or a file"},
    {.name = "cache_features",
     TEXT(cache_features),
     .standard = "none",
     .help = "compute the frozen part of a model once a sample and keep its values: none, "
             "memory, or a file"},
    {.name = "cache_augmentations",
     .kind = LK_OPTION_INT,
     AT(cache_augmentations),
     .max = 10000,
     .standard = "0",
     .help = "cache_features: samples are kept as so many random variants, which epochs take "
             "in turns; 0: none, nothing is random"},
    {.name = "data_threads",
     .kind = LK_OPTION_INT,
     AT(data_threads),
     .min = -1,
     .max = 1024,
     .standard = "-1",
     .help = "threads that read batches ahead; -1: a core each where images are decoded, else "
             "none, and "
             "large batches are read on all cores"},
    {.name = "prefetch",
     .kind = LK_OPTION_INT,
     AT(prefetch),
     .max = 1024,
     .standard = "0",
     .help = "batches that these threads hold in memory; 0: four"},
    {.name = "run", TEXT(run), .standard = "", .help = "run directory"},
    {.name = "device", TEXT(device), .standard = "", .help = "devices: 0, 0,2, all, gpu, cpu"},
    {.name = "epochs",
     .kind = LK_OPTION_INT,
     AT(epochs),
     .min = 1,
     .max = 1e9,
     .standard = "5",
     .help = "times through the training data"},
    {.name = "steps",
     .kind = LK_OPTION_INT,
     AT(steps),
     .max = 1e15,
     .standard = "0",
     .help = "stop after this many steps; 0: after the epochs"},
    {.name = "batch_size",
     .kind = LK_OPTION_INT,
     AT(batch_size),
     .min = 1,
     .max = 1 << 24,
     .standard = "512",
     .help = "samples a step, over all devices"},
    {.name = "bucket",
     .kind = LK_OPTION_INT,
     AT(bucket),
     .max = 1 << 20,
     .standard = "0",
     .help = "batches of similar length, for texts: samples of so many batches at a time are "
             "sorted by length; 0: none are"},
    {.name = "shards",
     .kind = LK_OPTION_INT,
     AT(shards),
     .max = 256,
     .standard = "0",
     .help = "parts of a batch with sums of their own, a power of two; 0: by the batch size"},
    {.name = "accumulate",
     .kind = LK_OPTION_INT,
     AT(accumulate),
     .min = 1,
     .max = 256,
     .standard = "1",
     .help = "pieces in which a device computes its shards of a batch, to take less memory; no "
             "bit depends on it"},
    {.name = "memory_limit",
     TEXT(memory_limit),
     .standard = "",
     .help = "device memory that a run may take of each device: 4G, 512M, bytes; none: all"},
    {.name = "recompute",
     .kind = LK_OPTION_CHOICE,
     AT(recompute),
     .standard = "auto",
     .choices = recomputes,
     .help = "activations that backward computes again, no bit depends on it: auto, as few as "
             "lets the run fit; sqrt, all between about sqrt(n) of n operations; off"},
    {.name = "split",
     TEXT(split),
     .standard = "measured",
     .help =
         "shares of the devices: measured; all: measured, and none rests where one alone is "
         "faster; equal; or weights 2:1:1"},
    {.name = "place",
     TEXT(place),
     .standard = "",
     .help = "which device of a group computes what: a=0,b=1, words of `device:` in the model "
             "text or names of entries; auto; off: each computes all. None: as the text says"},
    {.name = "check_every",
     .kind = LK_OPTION_INT,
     AT(check_every),
     .max = 1e15,
     .standard = "50",
     .help =
         "steps between comparisons of the devices' parameters, which are compared at pauses "
         "too; 0: never"},
    {.name = "math",
     .kind = LK_OPTION_CHOICE,
     AT(math),
     .standard = "normal",
     .choices = lk_math_names,
     .help = "strict: direct sums only; normal: other algorithms where they are faster; fast: "
             "products of reduced precision too"},
    {.name = "tune",
     .kind = LK_OPTION_CHOICE,
     AT(tune),
     .standard = "quick",
     .choices = tunes,
     .help = "quick: blockings of kernels are measured before a long run, no bit depends on "
             "them; off"},
    {.name = "precision",
     .kind = LK_OPTION_CHOICE,
     AT(precision),
     .standard = "float",
     .choices = precisions,
     .help = "float; mixed: activations and their gradients are kept as halves"},
    {.name = "tiles",
     .kind = LK_OPTION_CHOICE,
     AT(tiles),
     .standard = "auto",
     .choices = tiles,
     .help = "what vectors hold in training: batch, a pixel of several samples; planes, pixels "
             "of one sample, on CPUs the faster way for few samples of a shard; bits differ. "
             "auto: planes for up to 4 samples of a shard, if no entry is frozen and precision "
             "is float"},
    {.name = "loss_scale",
     .kind = LK_OPTION_REAL,
     AT(loss_scale),
     .max = 1 << 24,
     .standard = "0",
     .help = "precision mixed: the loss is multiplied by it, a power of two; 0: by what fits, "
             "found while training"},
    {.name = "mode",
     .kind = LK_OPTION_CHOICE,
     AT(mode),
     .standard = "sync",
     .choices = modes,
     .help = "sync: devices in lockstep; async: without waiting for one another, bits differ "
             "from run to run"},
    {.name = "max_staleness",
     .kind = LK_OPTION_INT,
     AT(max_staleness),
     .min = -1,
     .max = LK_MOST_STALENESS,
     .standard = "-1",
     .help = "mode async: updates that a gradient may miss; -1: twice the devices"},
    {.name = "all_reduce",
     .kind = LK_OPTION_CHOICE,
     AT(all_reduce),
     .standard = "tree",
     .choices = all_reduces,
     .help = "sums over ranks: tree, the same bits at any number of them, or mpi's own"},
    {.name = "optimizer",
     TEXT(optimizer),
     .standard = "adam",
     .help = "kind and its options: adam beta_1=0.9"},
    {.name = "clip_value",
     .kind = LK_OPTION_REAL,
     AT(clip_value),
     .max = 1e30,
     .standard = "0",
     .help = "gradients are cut off at this size, each by itself; 0: they are not"},
    {.name = "clip_norm",
     .kind = LK_OPTION_REAL,
     AT(clip_norm),
     .max = 1e30,
     .standard = "0",
     .help = "the gradient of all parameters together is made no longer than this; 0: it is "
             "left as it is"},
    {.name = "ema",
     .kind = LK_OPTION_REAL,
     AT(ema),
     .max = 0.9999999,
     .standard = "0",
     .help = "moving average of the weights, which is evaluated: the share of itself that it "
             "keeps in a step, such as 0.999; 0: none"},
    {.name = "lr",
     .kind = LK_OPTION_REAL,
     AT(lr),
     .max = 1e6,
     .standard = "0",
     .help = "learning rate; 0: the optimizer's own"},
    {.name = "scale_lr",
     .kind = LK_OPTION_INT,
     AT(scale_lr),
     .max = 1 << 24,
     .standard = "0",
     .help = "the learning rate is for batches of so many samples and grows with the batch, "
             "rising over 5 epochs where the schedule has no warmup; 0: it does not grow"},
    {.name = "schedule",
     TEXT(schedule),
     .standard = "",
     .help = "learning rate over time: kind=cosine steps=1000 warmup=100"},
    {.name = "seed",
     .kind = LK_OPTION_INT,
     AT(seed),
     .max = 9e15,
     .standard = "0",
     .help = "of weights, shuffling and dropout"},
    {.name = "shuffle",
     .kind = LK_OPTION_BOOL,
     AT(shuffle),
     .standard = "true",
     .help = "a new order every epoch"},
    {.name = "drop_remainder",
     .kind = LK_OPTION_BOOL,
     AT(drop_remainder),
     .standard = "false",
     .help = "leave out the last batch of an epoch where it is not full"},
    {.name = "callbacks",
     TEXT(callbacks),
     .standard = "",
     .help = "what is done at steps, evaluations and checkpoints: early_stopping patience=3 | "
             "csv_log"},
    {.name = "callback", TEXT(callbacks), .standard = "", .help = "one more of them"},
    {.name = "eval_every",
     TEXT(eval_every),
     .standard = "1epoch",
     .help = "steps, epochs or minutes from one validation to the next: 200steps, 2epochs, "
             "5minutes; after the last step there is always one"},
    {.name = "checkpoint_every",
     .kind = LK_OPTION_INT,
     AT(checkpoint_every),
     .max = 1e15,
     .standard = "0",
     .help = "steps between checkpoints; 0: every epoch"},
    {.name = "fresh",
     .kind = LK_OPTION_BOOL,
     AT(fresh),
     .standard = "false",
     .help = "start over in a run directory that has checkpoints"},
    {.name = "profile",
     TEXT(profile),
     .standard = "",
     .help = "file for a trace of kernels and transfers, for chrome://tracing and Perfetto"},
    {.name = "profile_steps",
     .kind = LK_OPTION_INT,
     AT(profile_steps),
     .max = 1e15,
     .standard = "50",
     .help = "steps in the trace, from the second one on; 0: all"},
    {0},
};

struct lk_loss_scale lk_settings_loss_scale(const struct lk_settings *settings)
{
    const bool is_fixed = settings->loss_scale > 0;
    if (settings->precision != LK_PRECISION_MIXED)
        return (struct lk_loss_scale){0};
    return (struct lk_loss_scale){.first = is_fixed ? settings->loss_scale : FIRST_LOSS_SCALE,
                                  .every = is_fixed ? 0 : STEPS_TO_DOUBLE};
}

bool lk_settings_ask_planes(const struct lk_settings *settings, struct lk_model *model,
                            int64_t batch, int shards)
{
    if (settings->tiles != LK_TRAIN_TILES_AUTO)
        return settings->tiles == LK_TRAIN_PLANE_TILES;
    return settings->precision == LK_PRECISION_FLOAT &&
           lk_model_trains_planes(model, batch, shards);
}

enum lk_status lk_settings_create(struct lk_settings **settings)
{
    struct lk_settings *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("settings", sizeof *made);
    lk_options_default(lk_settings_table, made);
    *settings = made;
    return LK_OK;
}

void lk_settings_destroy(struct lk_settings *settings)
{
    if (!settings)
        return;
    free(settings->model_text);
    free(settings);
}

enum lk_status lk_settings_copy(const struct lk_settings *settings, struct lk_settings **copy)
{
    struct lk_settings *made = malloc(sizeof *made);
    if (!made)
        return lk_fail_memory("settings", sizeof *made);
    *made = *settings;
    if (settings->model_text && !(made->model_text = strdup(settings->model_text))) {
        free(made);
        return lk_fail_memory("settings", sizeof *made);
    }
    *copy = made;
    return LK_OK;
}

/* Equal pipelines become equal texts; what they say of batches becomes settings. */
static enum lk_status set_pipeline(struct lk_settings *settings, const char *name,
                                   const char *value, bool is_training)
{
    struct lk_pipeline p;
    char text[sizeof settings->pipeline];
    LK_TRY(lk_pipeline_parse(value, is_training, &p));
    if (!lk_pipeline_print(&p, text, sizeof text))
        return lk_fail(LK_E_ARGUMENT, "option '%s': more than %zu characters", name,
                       sizeof text - 1);
    LK_TRY(lk_option_set(lk_settings_table, settings, name, text));
    if (p.says_shuffle)
        settings->shuffle = p.shuffles;
    if (p.says_batch) {
        settings->batch_size = p.batch;
        settings->drop_remainder = p.drops_remainder;
    }
    if (*p.cache)
        memcpy(settings->data_cache, p.cache, sizeof p.cache);
    if (p.epochs)
        settings->epochs = p.epochs;
    if (p.prefetch)
        settings->prefetch = p.prefetch;
    if (p.says_threads)
        settings->data_threads = p.threads;
    return LK_OK;
}

/* Equal callbacks become equal texts. */
static enum lk_status set_callbacks(struct lk_settings *settings, const char *name,
                                    const char *value)
{
    char text[2 * LK_CALLBACKS_TEXT + 8], normal[LK_CALLBACKS_TEXT];
    const bool adds = strcmp(name, "callback") == 0;
    snprintf(text, sizeof text, "%s%s%.*s", adds ? settings->callbacks : "", adds ? " | " : "",
             LK_CALLBACKS_TEXT, value);
    LK_TRY(lk_callbacks_normalize(text, normal));
    return lk_option_set(lk_settings_table, settings, "callbacks", normal);
}

enum lk_status lk_settings_add_callback(struct lk_settings *settings,
                                        const struct lk_callback *callback)
{
    const int count = settings->own_callback_count;
    if (!callback->name || !*callback->name || !callback->call)
        return lk_fail(LK_E_ARGUMENT, "a callback has no name or no function");
    for (int i = 0; i < count; i++)
        if (strcmp(settings->own_callbacks[i].name, callback->name) == 0)
            return lk_fail(LK_E_ARGUMENT, "there are two callbacks '%s'", callback->name);
    if (count == LK_MOST_OWN_CALLBACKS)
        return lk_fail(LK_E_ARGUMENT, "more than %d callbacks, '%s' is one too many", count,
                       callback->name);
    settings->own_callbacks[count] = *callback;
    settings->own_callback_count++;
    return LK_OK;
}

/* What else would be refused only when training begins, without the place where it stands. */
static enum lk_status check_value(const char *name, const char *value)
{
    struct lk_lr_schedule schedule;
    char kind[64];
    struct lk_optimizer_traits traits;
    struct lk_eval_period period;
    size_t limit;
    if (strcmp(name, "eval_every") == 0)
        return lk_eval_period_parse(value, &period);
    if (strcmp(name, "memory_limit") == 0)
        return lk_memory_limit_parse(value, &limit);
    if (strcmp(name, "schedule") == 0)
        return lk_lr_schedule_parse(value, &schedule);
    if (strcmp(name, "optimizer") != 0)
        return LK_OK;
    const size_t length = strcspn(value, " ");
    snprintf(kind, sizeof kind, "%.*s", (int)(length < 63 ? length : 63), value);
    return lk_optimizer_ask(kind, value + length, &traits);
}

/* Adds NAME=VALUE to the parameters, in place of an earlier value. */
static enum lk_status set_parameter(struct lk_settings *settings, const char *name,
                                    const char *value)
{
    char made[sizeof settings->parameters] = "";
    const size_t length = strlen(name);
    size_t used = 0;
    for (const char *at = settings->parameters; *(at += strspn(at, " "));
         at += strcspn(at, " "))
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            used += (size_t)snprintf(made + used, sizeof made - used, "%.*s ",
                                     (int)strcspn(at, " "), at);
    used += (size_t)snprintf(made + used, sizeof made - used, "%s=%s", name, value);
    if (used >= sizeof made || strchr(value, ' '))
        return lk_fail(LK_E_ARGUMENT, "parameter '%s': a word or a number expected, found '%s'",
                       name, value);
    memcpy(settings->parameters, made, sizeof made);
    return LK_OK;
}

enum lk_status lk_settings_set(struct lk_settings *settings, const char *name,
                               const char *value)
{
    LK_TRY(check_value(name, value));
    const bool is_newer = strcmp(name, "vocabulary") == 0 || strcmp(name, "length") == 0;
    if ((is_newer || !lk_option_find(lk_settings_table, name)) && settings->model[0] &&
        lk_model_has_parameter(settings->model, name))
        return set_parameter(settings, name, value);
    if (strcmp(name, "eval_pipeline") == 0)
        return set_pipeline(settings, name, value, false);
    if (strcmp(name, "pipeline") == 0 || strcmp(name, "augment") == 0)
        return set_pipeline(settings, name, value, true);
    if (strcmp(name, "callbacks") == 0 || strcmp(name, "callback") == 0)
        return set_callbacks(settings, name, value);
    if (strcmp(name, "max_bad") == 0)
        LK_TRY(lk_broken_check_most(value));
    LK_TRY(lk_option_set(lk_settings_table, settings, name, value));
    if (strcmp(name, "model") == 0) {
        free(settings->model_text);
        settings->model_text = NULL;
    }
    return LK_OK;
}

enum lk_status lk_settings_get(const struct lk_settings *settings, const char *name,
                               char *value, size_t bytes)
{
    char text[1024];
    const struct lk_option *row = lk_option_find(lk_settings_table, name);
    if (!row)
        return lk_fail(LK_E_ARGUMENT, "unknown setting '%s'", name);
    lk_option_print(row, settings, text, sizeof text);
    if (strlen(text) >= bytes)
        return lk_fail(LK_E_ARGUMENT, "setting '%s' has %zu characters", name, strlen(text));
    memcpy(value, text, strlen(text) + 1);
    return LK_OK;
}

const char *lk_setting_name(int index)
{
    return index >= 0 && index < LK_COUNT(lk_settings_table) ? lk_settings_table[index].name
                                                             : NULL;
}

const char *lk_setting_help(int index)
{
    return index >= 0 && index < LK_COUNT(lk_settings_table) ? lk_settings_table[index].help
                                                             : NULL;
}

void lk_settings_split_optimizer(const struct lk_settings *settings, char kind[64],
                                 const char **options)
{
    const size_t length = strcspn(settings->optimizer, " ");
    snprintf(kind, 64, "%.*s", (int)(length < 63 ? length : 63), settings->optimizer);
    *options = settings->optimizer + length;
}
