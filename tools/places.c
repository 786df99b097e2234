/* Shows how a model is divided among the devices of a group. */
#include "places.h"

#include "terminal/table.h"
#include "terminal/terminal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the group -----------------------------------------------------------------------------
 */

/* The devices that words such as "a=0,b=1" name: one more than the highest number. 0: none. */
static int count_named(const char *place)
{
    int count = 0;
    while ((place = strchr(place, '=')) != NULL) {
        const long number = strtol(++place, NULL, 10); /* what cannot be is refused later */
        if (number < INT16_MAX)
            count = number >= count ? (int)number + 1 : count;
    }
    return count;
}

/* The devices of a group of the list, as training would have it; a list of one device has
 * groups of any number. */
static int count_of_group(const char *place, int listed, int each)
{
    const int named = count_named(place);
    if (each > 0)
        return each;
    if (listed == 1)
        return named > 0 ? named : 1;
    return named > 1 && listed % named == 0 ? named : listed;
}

int group_open(const struct arguments *arguments, const char *list, const char *place,
               int64_t number, size_t memory_limit, struct group *group)
{
    const int most = (int)(sizeof group->devices / sizeof group->devices[0]);
    int listed = 0, each = 0;
    enum lk_status status = lk_device_list_count(list, &listed);
    if (status == LK_OK)
        status = lk_device_list_groups(list, &each);
    if (status != LK_OK)
        return failed(status);
    group->count = number ? (int)number : count_of_group(place, listed, each);
    if (group->count > most)
        return wrong_usage(arguments->command, "a group of %d devices: at most %d can be",
                           group->count, most);
    if (listed > 1 && number && number != (each ? each : listed))
        return wrong_usage(arguments->command,
                           "option '--devices': %d devices of a group of which '%s' lists %d",
                           group->count, list, each ? each : listed);
    group->groups = listed > group->count ? listed / group->count : 1;
    for (int i = 0; i < group->count && i < listed && status == LK_OK; i++) {
        status = lk_device_open(list, i, &group->devices[i]);
        group->opened += status == LK_OK;
        if (status == LK_OK && memory_limit > 0)
            lk_device_limit_memory(group->devices[i], memory_limit);
    }
    for (int i = listed; i < group->count; i++)
        group->devices[i] = group->devices[0];
    return status == LK_OK ? DONE : failed(status);
}

void group_close(struct group *group)
{
    for (int i = 0; i < group->opened; i++)
        lk_device_close(group->devices[i]);
}

/* --- entries of a place --------------------------------------------------------------------
 */

/* The nodes of the text at a place: all, or those that are there since what they read is. */
struct chosen {
    const struct lk_graph *graph;
    int nodes, place;
    bool following;
};

static bool is_chosen(const struct chosen *chosen, int i)
{
    const struct lk_node_info info = lk_node_info(lk_graph_node(chosen->graph, i));
    return info.inputs > 0 && info.place == chosen->place &&
           !(chosen->following && info.has_place);
}

/* Whether nothing but inputs, which have no place, stands between two nodes. */
static bool only_inputs_between(const struct lk_graph *graph, int first, int end)
{
    for (int i = first; i < end; i++)
        if (lk_node_info(lk_graph_node(graph, i)).inputs > 0)
            return false;
    return true;
}

/* "conv2d_1 to relu_3, dense_1"; the caller frees it. */
static char *ranges_text(const struct chosen *chosen)
{
    char *text = calloc((size_t)chosen->nodes + 1, 70);
    size_t used = 0;
    for (int i = 0, end; text && i < chosen->nodes; i = end) {
        end = i + 1;
        if (!is_chosen(chosen, i))
            continue;
        int last = i;
        for (; end < chosen->nodes; end++)
            if (is_chosen(chosen, end) && only_inputs_between(chosen->graph, last + 1, end))
                last = end;
        end = last + 1;
        used += (size_t)sprintf(text + used, "%s%s", used ? ", " : "",
                                lk_node_info(lk_graph_node(chosen->graph, i)).name);
        if (last > i)
            used += (size_t)sprintf(text + used, " to %s",
                                    lk_node_info(lk_graph_node(chosen->graph, last)).name);
    }
    return text;
}

/* What auto has chosen follows nothing: it is all chosen. */
static bool has_followers(const struct lk_division_options *options,
                          const struct lk_graph *graph, int nodes)
{
    bool names_devices = false;
    for (int i = 0; i < nodes; i++)
        names_devices |= lk_node_info(lk_graph_node(graph, i)).device != NULL;
    return *options->place ? strcmp(options->place, "auto") != 0 : names_devices;
}

/* --- printing ------------------------------------------------------------------------------
 */

static void print_ranges(const char *what, const struct chosen *chosen, const char *why)
{
    char *text = ranges_text(chosen);
    if (text && *text)
        print_lines("  %-12s %s%s\n", what, text, why);
    free(text);
}

static void print_place(const struct lk_place_info *place, const struct chosen *chosen,
                        bool has_followers_here)
{
    char text[32];
    struct chosen following = *chosen;
    following.following = true;
    print_lines("\ndevice %d of the group, %s, does %.0f %% of the work and takes %s of "
                "memory%s:\n",
                chosen->place, place->device, 100 * place->work,
                bytes_text((double)place->memory.total, text),
                place->fits ? "" : ", which it does not have");
    print_ranges("computes", chosen, "");
    if (has_followers_here)
        print_ranges("of these", &following, ": they are where their first input is");
    printf("  parameters   %s\n", count_text(place->parameters, text));
    printf("  weights      %s\n", bytes_text((double)place->memory.weights, text));
    printf("  gradients    %s\n", bytes_text((double)place->memory.gradients, text));
    printf("  activations  %s\n", bytes_text((double)place->memory.activations, text));
    printf("  inputs       %s\n", bytes_text((double)place->memory.inputs, text));
    printf("  optimizer    %s\n", bytes_text((double)place->memory.optimizer, text));
    if (place->memory.again > 0)
        printf("  backward computes %.0f %% of forward again\n", 100 * place->memory.again);
}

static const char *crossing_name(const struct lk_crossing_info *crossing, char text[96])
{
    snprintf(text, 96, "%s%s", crossing->is_weights ? "weights of " : "", crossing->node);
    return text;
}

static int crossing_width(const struct lk_division *division)
{
    int width = 7;
    char name[96];
    for (int i = 0; i < division->crossing_count; i++) {
        const int length = (int)strlen(crossing_name(&division->crossings[i], name));
        width = length > width ? length : width;
    }
    return width;
}

static void print_crossings(const struct lk_division *division)
{
    const struct table_column columns[] = {
        {"crosses", 0, crossing_width(division), .is_left = true, .is_name = true},
        {"from", 2, 4, .rank = 0},
        {"to", 2, 4, .rank = 0},
        {"forward", 2, 11, .rank = 0},
        {"backward", 2, 11, .rank = 0},
        {NULL, 2, 8, .is_left = true}, /* of what */
    };
    char bytes[32], name[96];
    struct table table;
    if (division->crossing_count == 0) {
        print_lines("\nnothing crosses between devices\n");
        return;
    }
    printf("\n");
    table_start(&table, columns, 6);
    for (int i = 0; i < division->crossing_count; i++) {
        const struct lk_crossing_info *crossing = &division->crossings[i];
        table_cell(&table, "%s", crossing_name(crossing, name));
        table_cell(&table, "%d", crossing->from);
        table_cell(&table, "%d", crossing->to);
        table_cell(&table, "%s", bytes_text((double)crossing->forward, bytes));
        table_cell(&table, "%s", bytes_text((double)crossing->backward, bytes));
        table_cell(&table, "%s", crossing->is_weights ? "a step" : "a sample");
    }
    table_end(&table);
}

int places_print(struct lk_model *model, const struct lk_division_options *options, int nodes)
{
    const struct lk_graph *graph = lk_model_graph(model);
    struct lk_division division;
    const enum lk_status status = lk_model_divide(model, options, &division);
    if (status != LK_OK)
        return failed(status);
    const bool follow = has_followers(options, graph, nodes);
    for (int p = 0; p < division.place_count; p++) {
        const struct chosen chosen = {.graph = graph, .nodes = nodes, .place = p};
        print_place(&division.places[p], &chosen, follow);
    }
    print_crossings(&division);
    return DONE;
}

/* --- JSON ----------------------------------------------------------------------------------
 */

static json_t *names_json(const struct chosen *chosen)
{
    json_t *names = json_array();
    for (int i = 0; i < chosen->nodes; i++)
        if (is_chosen(chosen, i))
            json_array_append_new(
                names, json_text(lk_node_info(lk_graph_node(chosen->graph, i)).name));
    return names;
}

static json_t *place_json(const struct lk_place_info *place, const struct chosen *chosen,
                          bool has_followers_here)
{
    const struct lk_memory *m = &place->memory;
    struct chosen following = *chosen;
    following.following = true;
    return json_pack(
        "{s:o, s:b, s:f, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "device",
        json_text(place->device), "fits", place->fits, "work", place->work, "parameters",
        (json_int_t)place->parameters, "layers", names_json(chosen), "following",
        has_followers_here ? names_json(&following) : json_array(), "total",
        (json_int_t)m->total, "weights", (json_int_t)m->weights, "gradients",
        (json_int_t)m->gradients, "activations", (json_int_t)m->activations, "inputs",
        (json_int_t)m->inputs, "optimizer", (json_int_t)m->optimizer, "again", m->again);
}

static json_t *crossing_json(const struct lk_crossing_info *crossing)
{
    return json_pack("{s:o, s:b, s:i, s:i, s:I, s:I}", "layer", json_text(crossing->node),
                     "weights", crossing->is_weights, "from", crossing->from, "to",
                     crossing->to, "forward", (json_int_t)crossing->forward, "backward",
                     (json_int_t)crossing->backward);
}

json_t *places_json(struct lk_model *model, const struct lk_division_options *options,
                    int nodes, int *result)
{
    const struct lk_graph *graph = lk_model_graph(model);
    struct lk_division division;
    json_t *places = NULL, *crossings = NULL;
    const enum lk_status status = lk_model_divide(model, options, &division);
    if (status != LK_OK) {
        *result = failed(status);
        return NULL;
    }
    const bool follow = has_followers(options, graph, nodes);
    places = json_array();
    crossings = json_array();
    for (int p = 0; p < division.place_count; p++) {
        const struct chosen chosen = {.graph = graph, .nodes = nodes, .place = p};
        json_array_append_new(places, place_json(&division.places[p], &chosen, follow));
    }
    for (int i = 0; i < division.crossing_count; i++)
        json_array_append_new(crossings, crossing_json(&division.crossings[i]));
    *result = DONE;
    return json_pack("{s:o, s:o}", "places", places, "crossings", crossings);
}
