/* Groups of devices for a model that is divided among them. */
#include "train/place/place.h"

#include "base/fail.h"
#include "model/place/place.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count_text(const struct lk_model *model)
{
    int count = 0;
    while (lk_model_device(model, count))
        count++;
    return count;
}

enum lk_status lk_place_count(struct lk_model *model, const char *words, const char *devices,
                              int *places)
{
    int each, all, named = 0;
    LK_TRY(lk_device_list_groups(devices, &each));
    LK_TRY(lk_device_list_count(devices, &all));
    const bool is_off = strcmp(words, "off") == 0, is_auto = strcmp(words, "auto") == 0;
    if (!*words)
        named = count_text(model);
    else if (!is_off && !is_auto)
        LK_TRY(lk_model_count_places(model, words, &named));
    *places = 1;
    if (each > 0 && (is_off || (!*words && named == 0)))
        return lk_fail(LK_E_ARGUMENT,
                       "devices '%s' are groups, but nothing says which device of a group "
                       "computes what: --place auto would do, or ',' in place of '+'",
                       devices);
    if (each > 0)
        *places = each;
    else if (is_auto)
        *places = all;
    else if (named > 1 && (all > 1 || *words))
        *places = named;
    else if (named == 1 && *words)
        *places = all; /* one group, of which all but device 0 are refused as idle */
    if (*places > LK_MOST_PLACES)
        return lk_fail(LK_E_ARGUMENT, "a group of %d devices: at most %d", *places,
                       LK_MOST_PLACES);
    if (all % *places != 0)
        return lk_fail(LK_E_ARGUMENT,
                       "%d device%s for a model that is divided among %d: expected %d, or a "
                       "multiple of that; --place off lets each compute all",
                       all, all == 1 ? "" : "s", *places, *places);
    return LK_OK;
}

struct placing {
    struct lk_model *model;
    const char *words;
    char lacks[512]; /* why no division fits; "": one does */
};

static enum lk_status try_place(struct placing *p, struct lk_worker *worker)
{
    struct lk_replica_config config;
    struct lk_placing plan = {.config = &config, .devices = worker->group};
    LK_TRY(lk_worker_plan(worker, &plan.in_flight, &config));
    return lk_model_place(p->model, p->words, worker->places, &plan);
}

/* On a device's thread, since `auto` plans for its memory: first for all shards that it may
 * compute at a time, then for fewer. That it lacks room is no failure of the device. */
static enum lk_status place(void *context, struct lk_worker *worker)
{
    struct placing *p = context;
    const int most = worker->most_shards, in_flight = worker->in_flight;
    enum lk_status status = try_place(p, worker);
    while (status == LK_E_DEVICE_MEMORY && lk_worker_take_less(worker, &worker->most_shards)) {
        lk_error_clear();
        status = try_place(p, worker);
    }
    worker->most_shards = most;
    worker->in_flight = in_flight;
    if (status != LK_E_DEVICE_MEMORY)
        return status;
    snprintf(p->lacks, sizeof p->lacks, "%s", lk_error_text());
    lk_error_clear();
    return LK_OK;
}

static enum lk_status choose(struct lk_team *team, struct lk_model *model, const char *words)
{
    struct placing p = {.model = model, .words = words};
    LK_TRY(lk_team_call(team, place, &p));
    return *p.lacks ? lk_fail(LK_E_DEVICE_MEMORY, "%s", p.lacks) : LK_OK;
}

/* Sums are exchanged between ranks place by place, so all divide the model as rank 0 does. */
static enum lk_status take_from_first(struct lk_world *world, const struct lk_graph *graph)
{
    const size_t bytes = (size_t)graph->count * sizeof(int);
    int *places = malloc(bytes + 1);
    if (!places)
        return lk_fail_memory("places", bytes);
    for (int i = 0; i < graph->count; i++)
        places[i] = graph->nodes[i]->place;
    const enum lk_status status = lk_world_broadcast(world, bytes, places);
    for (int i = 0; i < graph->count && status == LK_OK; i++)
        lk_node_set_place(graph->nodes[i], places[i]);
    free(places);
    return status;
}

/* Devices of one place compute the same part: those of other makes might with other bits. What
 * could not be opened is lost already. */
static enum lk_status check_makes(const struct lk_team *team)
{
    for (int i = 1; i < lk_team_devices(team); i++)
        for (int p = 0; p < lk_team_worker(team, 0)->places; p++) {
            const struct lk_device *first = lk_team_worker(team, 0)->group[p];
            const struct lk_device *other = lk_team_worker(team, i)->group[p];
            if (first && other &&
                strcmp(lk_device_info(first)->name, lk_device_info(other)->name) != 0)
                return lk_fail(LK_E_ARGUMENT,
                               "groups of devices differ: place %d is %s in group 0 and %s in "
                               "group %d; expected groups of one make",
                               p, lk_device_info(first)->name, lk_device_info(other)->name, i);
        }
    return LK_OK;
}

enum lk_status lk_place_nodes(struct lk_team *team, struct lk_world *world,
                              struct lk_model *model, const char *words)
{
    const int places = lk_team_worker(team, 0)->places;
    char text[64];
    snprintf(text, sizeof text, "%d device%s for the parts of a model", places,
             places > 1 ? "s" : "");
    if (lk_world_size(world) > 1)
        LK_TRY(lk_world_check_equal(world, "groups", text));
    if (places < 2)
        return LK_OK;
    LK_TRY(check_makes(team));
    if (lk_world_rank(world) == 0)
        LK_TRY(choose(team, model, words));
    return lk_place_share(world, model);
}

enum lk_status lk_place_again(struct lk_team *team, struct lk_model *model, const char *words)
{
    return choose(team, model, words);
}

enum lk_status lk_place_share(struct lk_world *world, struct lk_model *model)
{
    return lk_world_size(world) > 1 ? take_from_first(world, model->graph) : LK_OK;
}

static enum lk_status set_most(void *context, struct lk_worker *worker)
{
    worker->most_shards = *(const int *)context;
    return LK_OK;
}

enum lk_status lk_place_set_most_shards(struct lk_team *team, int most)
{
    return lk_team_call_each(team, set_most, &most, false);
}

enum lk_status lk_place_find_most_shards(struct lk_team *team, const struct lk_model *model,
                                         int shards)
{
    const int places = lk_team_worker(team, 0)->places;
    double wait;
    LK_TRY(lk_group_wait(model->graph, places, &wait));
    return lk_place_set_most_shards(
        team, lk_team_most_of_group(shards, places, lk_team_devices_of_all(team), wait));
}
