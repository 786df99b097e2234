/* Divides a model among devices and plans what each of them holds. */
#include "base/fail.h"
#include "graph/place/plan.h"
#include "model/place/place.h"
#include <lockstep/place.h>
#include <string.h>

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

/* Where weights that cross for another use already stand; NULL: nowhere. */
static struct lk_crossing_info *find_weights(struct lk_crossing_info *told, int count,
                                             const struct lk_place_crossing *of)
{
    for (int i = 0; i < count && of->is_weights; i++)
        if (told[i].is_weights && told[i].from == of->from && told[i].to == of->to &&
            strcmp(told[i].node, of->node->name) == 0)
            return &told[i];
    return NULL;
}

static enum lk_status tell_crossings(struct lk_model *model, const struct lk_group_plan *plan,
                                     struct lk_division *division)
{
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&model->arena,
                             (size_t)(plan->crossing_count + 1) * sizeof *division->crossings,
                             &memory));
    struct lk_crossing_info *crossings = memory;
    int count = 0;
    for (int c = 0; c < plan->crossing_count; c++) {
        const struct lk_place_crossing *of = &plan->crossings[c];
        struct lk_crossing_info *told = find_weights(crossings, count, of);
        if (!told)
            told = &crossings[count++];
        told->node = of->node->name;
        told->is_weights = of->is_weights;
        told->from = of->from;
        told->to = of->to;
        told->forward += of->forward;
        told->backward += of->backward;
    }
    division->crossings = crossings;
    division->crossing_count = count;
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
