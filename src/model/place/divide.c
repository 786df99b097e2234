/* Divides a model among devices and plans what each of them holds. */
#include "base/fail.h"
#include "graph/place/plan.h"
#include "model/place/place.h"
#include <lockstep/place.h>

static enum lk_status tell_places(struct lk_model *model, const struct lk_group_plan *plan,
                                  struct lk_device *const *devices,
                                  struct lk_division *division)
{
    double work = 0;
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&model->arena, (size_t)plan->count * sizeof *division->places,
                             &memory));
    struct lk_place_info *places = memory;
    for (int p = 0; p < plan->count; p++)
        work += plan->places[p].work;
    for (int p = 0; p < plan->count; p++) {
        const struct lk_place_plan *place = &plan->places[p];
        places[p] = (struct lk_place_info){.memory = lk_memory_of(&place->bytes),
                                           .fits = place->fits,
                                           .parameters = place->parameters,
                                           .work = place->work / work};
        LK_TRY(
            lk_arena_text(&model->arena, lk_device_info(devices[p])->name, &places[p].device));
    }
    division->places = places;
    division->place_count = plan->count;
    return LK_OK;
}

static enum lk_status tell_crossings(struct lk_model *model, const struct lk_group_plan *plan,
                                     struct lk_division *division)
{
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&model->arena,
                             (size_t)(plan->crossing_count + 1) * sizeof *division->crossings,
                             &memory));
    struct lk_crossing_info *crossings = memory;
    for (int c = 0; c < plan->crossing_count; c++)
        crossings[c] = (struct lk_crossing_info){.node = plan->crossings[c].node->name,
                                                 .is_weights = plan->crossings[c].is_weights,
                                                 .from = plan->crossings[c].from,
                                                 .to = plan->crossings[c].to,
                                                 .forward = plan->crossings[c].forward,
                                                 .backward = plan->crossings[c].backward};
    division->crossings = crossings;
    division->crossing_count = plan->crossing_count;
    return LK_OK;
}

enum lk_status lk_model_divide(struct lk_model *model,
                               const struct lk_division_options *options,
                               struct lk_division *division)
{
    struct lk_replica_config config = {.batch = options->batch,
                                       .recompute = options->recompute};
    struct lk_group_plan plan;
    LK_TRY(lk_model_config(model, options->use, &config));
    const struct lk_placing placing = {
        .config = &config, .devices = options->devices, .in_flight = 1};
    enum lk_status status =
        lk_model_place(model, options->place, options->device_count, &placing);
    if (status == LK_OK)
        status = lk_group_plan(&config, options->devices, options->device_count, 1, &plan);
    lk_choices_destroy(config.choices);
    LK_TRY(status);
    LK_TRY(tell_places(model, &plan, options->devices, division));
    return tell_crossings(model, &plan, division);
}
