/* Predicts a training step of one model that is divided among the devices of a group, from what
 * its operations take on the first of them. */
#include "base/fail.h"
#include "bench/scale/scale.h"
#include "graph/place/plan.h"
#include "mirror/shards.h"
#include "model/model.h"
#include "model/place/place.h"
#include "team/team.h"
#include "train/place/times.h"
#include "train/tuning/tuning.h"
#include <lockstep/scale.h>
#include <lockstep/settings.h>
#include <stdlib.h>

enum { MOST_BATCH = 1 << 24 };

struct prediction {
    const struct lk_scale_group_options *options;
    struct lk_scale_group *group;
    struct lk_model *model;
    struct lk_node *loss;
    struct lk_choices *choices, *known, *blockings;
    struct lk_scale_reading reading;
};

static enum lk_status check(const struct lk_scale_group_options *o)
{
    if (o->device_count < 2 || o->device_count > LK_MOST_PLACES)
        return lk_fail(LK_E_ARGUMENT, "a group of %d devices; expected 2 to %d",
                       o->device_count, LK_MOST_PLACES);
    if (o->batch < 1 || o->batch > MOST_BATCH)
        return lk_fail(LK_E_ARGUMENT, "a batch of %lld samples; expected 1 to %d",
                       (long long)o->batch, MOST_BATCH);
    if (o->shards < 0 || o->shards > LK_MOST_SHARDS || (o->shards & (o->shards - 1)))
        return lk_fail(LK_E_ARGUMENT, "%d shards; expected a power of two, at most %d",
                       o->shards, LK_MOST_SHARDS);
    return LK_OK;
}

static enum lk_status open(struct prediction *p)
{
    const struct lk_scale_group_options *o = p->options;
    struct lk_node *labels;
    LK_TRY(o->settings ? lk_settings_open_model(o->settings, &p->model)
                       : lk_model_open(o->model, NULL, &p->model));
    LK_TRY(lk_model_add_loss(p->model, &labels, &p->loss));
    LK_TRY(lk_choices_create(LK_MATH_NORMAL, &p->choices));
    LK_TRY(lk_choices_create(LK_MATH_NORMAL, &p->known));
    LK_TRY(lk_choices_create(LK_MATH_NORMAL, &p->blockings));
    lk_choices_set_fallbacks(p->choices, p->known, p->blockings);
    lk_tuning_load(p->known, p->blockings);
    return LK_OK;
}

static enum lk_status plan(void *context, int shards, int *in_flight,
                           struct lk_replica_config *config)
{
    const struct prediction *p = context;
    const struct lk_scale_group_options *o = p->options;
    *in_flight =
        (int)lk_least(lk_team_in_flight(0, o->device_count), p->group->shards / shards);
    const struct lk_stepper_config stepper = {
        .device = o->devices[0],
        .group = o->devices,
        .places = o->device_count,
        .in_flight = *in_flight,
        .loss = p->loss,
        .batch = o->batch,
        .shards = p->group->shards,
        .most_shards = shards,
        .real = LK_F32,
        .seed = 1,
        .optimizer = "adam",
        .choices = p->choices,
        .lists_rows = true,
        .loss_scale = lk_scale_loss_scale(o->settings),
        .few_samples = lk_scale_asks_planes(o->settings, p->model, o->batch, p->group->shards)};
    return lk_stepper_plan(&stepper, config);
}

/* Shards that training would compute at a time, by the places that nodes get by estimates. */
static enum lk_status find_usual_shards(const struct prediction *p, int *shards)
{
    const struct lk_scale_group_options *o = p->options;
    const int places = o->device_count;
    struct lk_replica_config config;
    struct lk_placing placing = {.config = &config, .devices = o->devices};
    double wait = places - 1;
    *shards = lk_team_most_of_group(p->group->shards, places, 1, wait);
    LK_TRY(plan((void *)p, *shards, &placing.in_flight, &config));
    const enum lk_status status = lk_model_place(p->model, o->place, places, &placing);
    struct lk_group_plan plan_of_all; /* refuses by name what cannot be divided so */
    if (status == LK_OK)
        LK_TRY(lk_group_plan(&config, o->devices, places, placing.in_flight, &plan_of_all));
    if (status == LK_OK)
        LK_TRY(lk_group_wait(p->model->graph, places, &wait));
    else if (status != LK_E_DEVICE_MEMORY) /* which is said when all ways were tried */
        return status;
    lk_error_clear();
    *shards = lk_team_most_of_group(p->group->shards, places, 1, wait);
    return LK_OK;
}

static enum lk_status find(const struct prediction *p, struct lk_place_found *found)
{
    const struct lk_scale_group_options *o = p->options;
    int usual;
    LK_TRY(find_usual_shards(p, &usual));
    const struct lk_place_request request = {.model = p->model,
                                             .words = o->place,
                                             .loss = p->loss,
                                             .devices = o->devices,
                                             .places = o->device_count,
                                             .groups = 1,
                                             .choices = p->choices,
                                             .usual_shards = usual,
                                             .most_shards = p->group->shards,
                                             .seconds = o->seconds,
                                             .measures_again = true,
                                             .plan = plan,
                                             .context = (void *)p};
    LK_TRY(lk_place_by_times(&request, found));
    return found->estimate.step_ms > 0
               ? LK_OK
               : lk_fail(LK_E_UNSUPPORTED,
                         "the operations of '%s' cannot be measured in %g s, or its parts have "
                         "no room on these devices",
                         o->model, o->seconds);
}

/* A step as one device would take it; 0: it has no room for all of the model. */
static enum lk_status measure_alone(const struct prediction *p, double *ms)
{
    static const double SECONDS = 0.7;
    struct lk_scale_subject subject = {.model = p->options->model,
                                       .settings = p->options->settings,
                                       .batch = p->options->batch,
                                       .shards = p->group->shards};
    const struct lk_scale_links none = {.hosts = 1};
    struct lk_scale_costs *costs = calloc(1, sizeof *costs);
    if (!costs)
        return lk_fail_memory("times of steps", sizeof *costs);
    lk_scale_want(p->group->shards, 1, subject.wanted);
    const enum lk_status status =
        lk_scale_measure(p->options->devices[0], &subject, SECONDS, costs);
    *ms = status == LK_OK ? 1e3 * lk_scale_simulate(costs, &none, 1).at : 0;
    free(costs);
    if (status != LK_E_DEVICE_MEMORY)
        return status;
    lk_error_clear();
    return LK_OK;
}

static double units_of(const struct prediction *p, int devices)
{
    double units = 0;
    for (int i = 0; i < devices; i++) {
        const struct lk_device_info *info = lk_device_info(p->options->devices[i]);
        units += info->device_class == LK_CLASS_CPU ? info->compute_units : 0;
    }
    return units;
}

/* Cores of the host that the first devices of the group are: those that share cores, as 0*2
 * does, were measured so. */
static double cores_of(const struct prediction *p, int devices)
{
    const double all = units_of(p, p->options->device_count), there = p->reading.cores;
    return units_of(p, devices) * (all > there ? there / all : 1);
}

/* A step of `ms` on the first devices, whose cores are busy for so many milliseconds in all,
 * with reading. */
static double read_beside(const struct prediction *p, int devices, double ms, double busy)
{
    return 1e3 * lk_scale_read_beside(&p->reading, (double)p->options->batch, 1e-3 * ms,
                                      1e-3 * busy, cores_of(p, devices));
}

static void report(const struct prediction *p, const struct lk_place_found *found)
{
    struct lk_scale_group *g = p->group;
    const struct lk_group_estimate *e = &found->estimate;
    double busy = 0;
    g->at_once = found->shards;
    g->micro_batches = found->micro_batches;
    g->place_count = p->options->device_count;
    g->reading_ms = 1e3 * p->reading.cores_time * (double)p->options->batch;
    for (int i = 0; i < g->place_count; i++)
        busy += e->busy_ms[i] * (cores_of(p, i + 1) - cores_of(p, i));
    g->step_ms = read_beside(p, g->place_count, e->step_ms, busy);
    if (g->alone_ms > 0)
        g->alone_ms = read_beside(p, 1, g->alone_ms, g->alone_ms * cores_of(p, 1));
    for (int i = 0; i < g->place_count; i++) {
        const double crossing = e->crossing_ms[i];
        g->places[i] = (struct lk_scale_group_place){.compute_ms = e->busy_ms[i] - crossing,
                                                     .crossing_ms = crossing,
                                                     .idle_ms = e->step_ms - e->busy_ms[i],
                                                     .reading_ms = g->step_ms - e->step_ms};
    }
}

static enum lk_status predict(struct prediction *p)
{
    struct lk_place_found found = {.shards = 0};
    LK_TRY(open(p));
    LK_TRY(lk_scale_measure_reading(p->options->settings, p->options->batch, &p->reading));
    LK_TRY(find(p, &found));
    LK_TRY(measure_alone(p, &p->group->alone_ms));
    report(p, &found);
    return LK_OK;
}

enum lk_status lk_bench_scale_group(const struct lk_scale_group_options *options,
                                    struct lk_scale_group *group)
{
    struct prediction p = {.options = options, .group = group};
    LK_TRY(check(options));
    *group = (struct lk_scale_group){
        .shards = options->shards ? options->shards : lk_shards_choose(options->batch)};
    const enum lk_status status = predict(&p);
    lk_choices_destroy(p.choices);
    lk_choices_destroy(p.known);
    lk_choices_destroy(p.blockings);
    lk_model_destroy(p.model);
    return status;
}
