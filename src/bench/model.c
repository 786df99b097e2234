/* Times the training steps of a model on random images. */
#include "base/clock.h"
#include "base/fail.h"
#include "base/option.h"
#include "bench/samples.h"
#include "bench/timing.h"
#include "device/device.h"
#include "graph/planes.h"
#include "mirror/shards.h"
#include "train/settings/settings.h"
#include "train/tuning/tuning.h"
#include <lockstep/bench.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { WARM_UP = 1, FEWEST_STEPS = 10, MOST_STEPS = 8192, USUAL_SECONDS = 6 };

static const struct known {
    const char *name;
    int64_t batch;
} known_models[] = {{"fashion-convnet", 512}, {"mlp", 512},  {"mobilenet-v2", 16},
                    {"resnet50", 16},         {"vgg16", 16}, {"vgg16tail", 16},
                    {"xception", 16}};

/* Timed where they are asked for by name. */
static const struct known other_models[] = {
    {"amoebanet-d", 4},         {"densenet121", 16},
    {"efficientnet-b0", 16},    {"inception-v3", 16},
    {"resnet18", 16},           {"squeezenet", 16},
    {"mobilenet-v3-large", 16}, {"vgg19", 16},
    {"gpt-small", 16},          {"text-bilstm", 64},
    {"text-cnn", 64},           {"text-gru", 64},
    {"text-lstm", 64},          {"transformer-encoder", 64},
    {"two-branch", 64},         {"two-branch-text", 64}};

const char *lk_bench_model_name(int index)
{
    return index >= 0 && index < LK_COUNT(known_models) ? known_models[index].name : NULL;
}

int64_t lk_bench_model_batch(int index)
{
    return index >= 0 && index < LK_COUNT(known_models) ? known_models[index].batch : 0;
}

const char *lk_bench_other_model_name(int index)
{
    return index >= 0 && index < LK_COUNT(other_models) ? other_models[index].name : NULL;
}

int64_t lk_bench_other_model_batch(int index)
{
    return index >= 0 && index < LK_COUNT(other_models) ? other_models[index].batch : 0;
}

static const char *name_at(const void *context, int index)
{
    (void)context;
    return index < LK_COUNT(known_models)
               ? lk_bench_model_name(index)
               : lk_bench_other_model_name(index - LK_COUNT(known_models));
}

static enum lk_status find_model(const char *name, const struct known **known)
{
    for (int i = 0; i < LK_COUNT(known_models) + LK_COUNT(other_models); i++)
        if (strcmp(name_at(NULL, i), name) == 0) {
            *known = i < LK_COUNT(known_models) ? &known_models[i]
                                                : &other_models[i - LK_COUNT(known_models)];
            return LK_OK;
        }
    const char *near = lk_nearest_name(name, name_at, NULL);
    return lk_fail(LK_E_MODEL, "unknown model '%s'%s%s%s", name, near ? "; did you mean '" : "",
                   near ? near : "", near ? "'?" : "");
}

enum lk_status lk_bench_model_check(const char *name)
{
    const struct known *known;
    return find_model(name, &known);
}

/* A model that is being timed. */
struct run {
    struct lk_device *device;
    struct lk_model *model;
    struct lk_choices *known, *blockings, *choices;
    struct lk_stepper *stepper;
    int64_t batch, step;
    struct lk_step_result last;
    int count;
    double took[MOST_STEPS], host[MOST_STEPS]; /* seconds of a step, of enqueuing it */
};

/* Chooses algorithms as training does, from what tuning has found before; tunes nothing itself.
 */
static enum lk_status create_choices(struct run *run, const char *name)
{
    enum lk_math math;
    LK_TRY(lk_math_find(name, &math));
    LK_TRY(lk_choices_create(math, &run->known));
    LK_TRY(lk_choices_create(math, &run->blockings));
    LK_TRY(lk_choices_create(math, &run->choices));
    lk_tuning_load(run->known, run->blockings);
    lk_choices_set_fallbacks(run->choices, run->known, run->blockings);
    return LK_OK;
}

/* Precision and tiles, as a run would take them; whether the model must be in plane tiles. */
static enum lk_status read_options(const struct lk_bench_options *options, struct run *run,
                                   struct lk_loss_scale *scale, bool *asks_planes,
                                   bool *must_have_planes)
{
    struct lk_settings *settings = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_settings_create(&settings));
    if (options->precision)
        LK_TRY_OUT(lk_settings_set(settings, "precision", options->precision));
    if (options->tiles)
        LK_TRY_OUT(lk_settings_set(settings, "tiles", options->tiles));
    *scale = lk_settings_loss_scale(settings);
    *asks_planes =
        lk_settings_ask_planes(settings, run->model, run->batch, lk_shards_choose(run->batch));
    *must_have_planes = settings->tiles == LK_TRAIN_PLANE_TILES;
out:
    lk_settings_destroy(settings);
    return status;
}

static enum lk_status open_stepper(struct run *run, const char *name,
                                   const struct lk_bench_options *options)
{
    struct lk_node *labels, *loss;
    struct lk_loss_scale loss_scale;
    bool asks_planes, must_have_planes;
    LK_TRY(options->settings ? lk_settings_open_model(options->settings, &run->model)
                             : lk_model_open(name, NULL, &run->model));
    LK_TRY(read_options(options, run, &loss_scale, &asks_planes, &must_have_planes));
    LK_TRY(lk_model_add_loss(run->model, &labels, &loss));
    LK_TRY(create_choices(run, options->math));
    const struct lk_stepper_config config = {.device = run->device,
                                             .loss = loss,
                                             .batch = run->batch,
                                             .shards = lk_shards_choose(run->batch),
                                             .real = LK_F32,
                                             .loss_scale = loss_scale,
                                             .seed = 1,
                                             .optimizer = "adam",
                                             .choices = run->choices,
                                             .lists_rows = true,
                                             .few_samples = asks_planes};
    LK_TRY(lk_stepper_create(&config, &run->stepper));
    if (must_have_planes && !lk_replica_has_planes(lk_stepper_replica(run->stepper)))
        return lk_fail(LK_E_UNSUPPORTED, "%s does not train in plane tiles here", name);
    LK_TRY(lk_stepper_build(run->stepper));
    for (int slot = 0; slot < LK_REPLICA_SLOTS; slot++)
        lk_samples_fill(run->stepper, run->model, slot, run->batch);
    return LK_OK;
}

/* --- steps ----------------------------------------------------------------------------- */

static enum lk_status enqueue(struct run *run)
{
    const int slot = (int)(run->step % LK_REPLICA_SLOTS);
    run->step++;
    return lk_stepper_enqueue(run->stepper, slot, run->batch, 1e-3, run->step);
}

/* Waits for the step before the last one that was enqueued. */
static enum lk_status wait_for(struct run *run, int64_t step)
{
    return lk_stepper_wait(run->stepper, (int)((step - 1) % LK_REPLICA_SLOTS), &run->last);
}

/* Times steps as training runs them: the device always has a step to compute while the host
 * prepares the next one. The time between the ends of two steps is the time of a step. */
static enum lk_status time_steps(struct run *run, double seconds)
{
    LK_TRY(enqueue(run));
    double before = 0, first = 0;
    for (int i = 0; i < WARM_UP + MOST_STEPS; i++) {
        const double start = lk_seconds();
        LK_TRY(enqueue(run));
        const double enqueued = lk_seconds();
        LK_TRY(wait_for(run, run->step - 1));
        const double now = lk_seconds();
        if (i < WARM_UP) {
            before = first = now;
            continue;
        }
        run->took[run->count] = now - before;
        run->host[run->count++] = enqueued - start;
        before = now;
        if (run->count >= FEWEST_STEPS && now - first >= seconds)
            break;
    }
    return wait_for(run, run->step);
}

static enum lk_status time_model(struct run *run, const char *name,
                                 const struct lk_bench_options *options,
                                 struct lk_bench_model *result)
{
    const size_t bytes_before = lk_device_bytes(run->device);
    const double start = lk_seconds();
    LK_TRY(open_stepper(run, name, options));
    LK_TRY(enqueue(run));
    LK_TRY(wait_for(run, run->step));
    const double built = lk_seconds() - start;
    LK_TRY(time_steps(run, options->seconds > 0 ? options->seconds : USUAL_SECONDS));

    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    const double step = lk_median(run->took, run->count),
                 host = lk_median(run->host, run->count);
    *result = (struct lk_bench_model){
        .name = name,
        .batch = run->batch,
        .steps = run->count,
        .samples_per_s = (double)run->batch / step,
        .step_ms = 1e3 * step,
        .build_s = built,
        .host_percent = 100 * host / step,
        .loss = run->last.loss,
        .peak_bytes = lk_device_bytes(run->device) - bytes_before,
        .resident_bytes = (size_t)usage.ru_maxrss * 1024,
    };
    return LK_OK;
}

enum lk_status lk_bench_model(struct lk_device *device, const char *name,
                              const struct lk_bench_options *options,
                              struct lk_bench_model *result)
{
    const struct lk_bench_options usual = {0}, *o = options ? options : &usual;
    const struct known *known = NULL;
    LK_TRY(find_model(name, &known));
    if (o->batch < 0)
        return lk_fail(LK_E_ARGUMENT, "model '%s': a batch of %lld samples", name,
                       (long long)o->batch);
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return lk_fail_memory("times of steps", sizeof *run);
    run->device = device;
    run->batch = o->batch ? o->batch : known->batch;
    const enum lk_status status = time_model(run, known->name, o, result);
    lk_stepper_destroy(run->stepper);
    lk_choices_destroy(run->choices);
    lk_choices_destroy(run->known);
    lk_choices_destroy(run->blockings);
    lk_model_destroy(run->model);
    free(run);
    return status;
}
