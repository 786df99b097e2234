/* What a step of one model takes that is divided among the devices of a group. */
#include "scale_group.h"

#include "places.h"
#include "terminal/json.h"
#include "terminal/table.h"
#include "terminal/terminal.h"
#include <inttypes.h>
#include <lockstep/scale.h>
#include <stdio.h>

/* For measuring operations. */
static const double SECONDS = 60;

static void print(const struct lk_scale_group_options *o, const struct lk_scale_group *g,
                  int groups)
{
    static const struct table_column columns[] = {{"device", 0, .width = 6},
                                                  {"compute ms", 1, .width = 10},
                                                  {"crossing ms", 1, .width = 11, .rank = 1},
                                                  {"idle ms", 1, .width = 9},
                                                  {"busy", 1, .width = 6, .rank = 2}};
    struct table table;
    print_lines("%s, divided among %d devices, the first of which was measured: %s\n", o->model,
                g->place_count, lk_device_info(o->devices[0])->name);
    print_lines("a batch of %" PRId64 " in %d micro-batch%s of %d shard%s: %.2f ms a step\n",
                o->batch, g->micro_batches, g->micro_batches == 1 ? "" : "es", g->at_once,
                g->at_once == 1 ? "" : "s", g->step_ms);
    if (groups > 1)
        print_lines(
            "this is the first of %d groups, alone with the batch, which they would share\n",
            groups);
    if (g->alone_ms > 0)
        print_lines("%.2f times as fast as one device alone, which takes %.2f ms\n",
                    g->alone_ms / g->step_ms, g->alone_ms);
    else
        print_lines("one device alone has no room for all of it\n");
    if (g->reading_ms > 0)
        print_lines("reading a batch: %.2f ms of a core, by which the step is %.2f ms longer\n",
                    g->reading_ms, g->places[0].reading_ms);
    printf("\n");
    table_start(&table, columns, (int)(sizeof columns / sizeof *columns));
    for (int i = 0; i < g->place_count; i++) {
        const struct lk_scale_group_place *place = &g->places[i];
        table_cell(&table, "%d", i);
        table_cell(&table, "%.2f", place->compute_ms);
        table_cell(&table, "%.2f", place->crossing_ms);
        table_cell(&table, "%.2f", place->idle_ms);
        table_cell(&table, "%.0f %%",
                   100 * (place->compute_ms + place->crossing_ms) / g->step_ms);
    }
    table_end(&table);
}

static json_t *group_json(const struct lk_scale_group_options *o,
                          const struct lk_scale_group *g)
{
    json_t *places = json_array();
    for (int i = 0; i < g->place_count; i++)
        json_array_append_new(places,
                              json_pack("{s:o, s:o, s:o, s:o}", "compute_ms",
                                        json_number(g->places[i].compute_ms), "crossing_ms",
                                        json_number(g->places[i].crossing_ms), "idle_ms",
                                        json_number(g->places[i].idle_ms), "reading_ms",
                                        json_number(g->places[i].reading_ms)));
    return json_pack("{s:o, s:o, s:I, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "device",
                     device_json(lk_device_info(o->devices[0])), "model", json_text(o->model),
                     "batch", (json_int_t)o->batch, "shards", g->shards, "shards_at_once",
                     g->at_once, "micro_batches", g->micro_batches, "step_ms",
                     json_number(g->step_ms), "alone_ms", json_number(g->alone_ms),
                     "reading_ms", json_number(g->reading_ms), "places", places);
}

int scale_group(const struct arguments *arguments, const char *place,
                struct lk_scale_group_options *options)
{
    const char *list = option_text(arguments, "device"), *path = option_text(arguments, "json");
    struct group group = {.count = 0};
    struct lk_scale_group found;
    int result = group_open(arguments, list, place, 0, 0, &group);
    if (result == DONE) {
        options->place = place;
        options->devices = group.devices;
        options->device_count = group.count;
        options->seconds = SECONDS;
        if (terminal_has_status())
            terminal_status("building and measuring ...");
        const enum lk_status status = lk_bench_scale_group(options, &found);
        terminal_status(NULL);
        result = status == LK_OK ? DONE : failed(status);
        if (status == LK_OK)
            print(options, &found, group.groups);
        if (status == LK_OK && path)
            result = json_write(group_json(options, &found), path);
    }
    group_close(&group);
    return result;
}
