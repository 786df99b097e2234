/* Writes the tables of a training on a terminal, as wide as its window. */
#include "train/tables.h"

#include "figures.h"
#include "terminal/scene.h"
#include "terminal/status.h"
#include "terminal/terminal.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 11, MOST_DEVICES = 16, TEXT = 1400 };

/* Without memory nothing is shown; training goes on. */
static struct scene *new_scene(void)
{
    struct scene *scene = malloc(sizeof *scene);
    if (scene)
        scene_start(scene, terminal_columns() - 1, terminal_has_colour(STDERR_TERMINAL),
                    terminal_has_unicode());
    return scene;
}

/* --- the start -------------------------------------------------------------------------- */

static const char *bytes_text(size_t bytes, char text[32])
{
    static const char *const units[] = {"KB", "MB", "GB", "TB"};
    double size = (double)bytes / 1024;
    int unit = 0;
    for (; size >= 999.5 && unit < 3; unit++)
        size /= 1024;
    snprintf(text, 32, "%.*f %s", size < 9.95 ? 1 : 0, size, units[unit]);
    return text;
}

/* Breaks between words where the window is narrow. */
static void add_row(struct scene *scene, const char *label, const char *text)
{
    char words[TEXT], *rest = words, *word;
    snprintf(words, sizeof words, "%s", text);
    scene_line(scene, 0);
    scene_add(scene, INK_DIM, "%-*s", LABEL, label);
    for (bool is_first = true; (word = strtok_r(rest, " ", &rest)); is_first = false) {
        if (!is_first && terminal_width(word) >= scene_room(scene)) {
            scene_line(scene, 0);
            scene_add(scene, INK_PLAIN, "%*s", LABEL - 1, "");
        }
        scene_add(scene, INK_PLAIN, is_first ? "%s" : " %s", word);
    }
}

/* "" where it does not fit, or is not known. */
static const char *value_of(const struct lk_settings *settings, const char *name,
                            char value[512])
{
    if (lk_settings_get(settings, name, value, 512) != LK_OK) {
        lk_error_clear();
        value[0] = '\0';
    }
    return value;
}

static void add_model(struct scene *scene, const struct lk_event *e,
                      const struct lk_settings *settings)
{
    char text[TEXT], value[512];
    snprintf(text, sizeof text, "%s, %" PRId64 " parameters",
             value_of(settings, "model", value), e->start->parameters);
    add_row(scene, "model", text);
    int used = snprintf(text, sizeof text, "%s, %" PRId64 " samples",
                        value_of(settings, "data", value), e->start->samples);
    if (*value_of(settings, "validation", value))
        snprintf(text + used, sizeof text - (size_t)used, ", validation %s", value);
    add_row(scene, "data", text);
}

static void add_training(struct scene *scene, const struct lk_event *e,
                         const struct lk_settings *settings)
{
    char text[TEXT], value[512];
    snprintf(text, sizeof text,
             "%" PRId64 " epoch%s, %" PRId64 " steps, batches of %" PRId64 " in %d shard%s",
             e->epochs, e->epochs == 1 ? "" : "s", e->steps, e->start->batch, e->start->shards,
             e->start->shards == 1 ? "" : "s");
    add_row(scene, "training", text);
    int used = snprintf(text, sizeof text, "%s", value_of(settings, "optimizer", value));
    if (atof(value_of(settings, "lr", value)) > 0)
        used += snprintf(text + used, sizeof text - (size_t)used, ", learning rate %s", value);
    if (*value_of(settings, "schedule", value))
        used += snprintf(text + used, sizeof text - (size_t)used, ", %s", value);
    if (strcmp(value_of(settings, "precision", value), "mixed") == 0)
        snprintf(text + used, sizeof text - (size_t)used, ", mixed precision");
    add_row(scene, "optimizer", text);
    if (*value_of(settings, "callbacks", value))
        add_row(scene, "callbacks", value);
}

static void add_devices(struct scene *scene, const struct lk_start *start)
{
    char label[32], taken[32], all[32], text[256];
    if (start->ranks > 1) {
        snprintf(text, sizeof text, "%d processes; the devices of this one:", start->ranks);
        add_row(scene, "ranks", text);
    }
    for (int i = 0; i < start->device_count && i < MOST_DEVICES; i++) {
        const struct lk_start_device *device = &start->devices[i];
        snprintf(label, sizeof label, "device %d", i);
        snprintf(text, sizeof text, "%s of %s taken, %s",
                 bytes_text(device->taken_bytes, taken), bytes_text(device->memory_bytes, all),
                 device->name);
        add_row(scene, label, text);
    }
    if (start->device_count > MOST_DEVICES) {
        snprintf(text, sizeof text, "and %d more", start->device_count - MOST_DEVICES);
        add_row(scene, "", text);
    }
}

void table_of_start(const struct lk_event *e, const struct lk_settings *settings)
{
    char value[512];
    struct scene *scene = new_scene();
    if (!scene)
        return;
    add_model(scene, e, settings);
    add_training(scene, e, settings);
    add_devices(scene, e->start);
    if (*value_of(settings, "run", value))
        add_row(scene, "run", value);
    status_print(scene);
    if (*e->start->remarks)
        say("%s", e->start->remarks);
    free(scene);
}

/* --- evaluations ------------------------------------------------------------------------ */

/* A column is left out where the window is narrow, those of the highest rank first. */
enum { COLUMNS = 7 };

static const struct {
    const char *heading;
    int width, rank;
} columns[COLUMNS] = {
    {"epoch", 5, 3},    {"step", 9, 0},    {"loss", 9, 2}, {"accuracy", 9, 5},
    {"val loss", 9, 0}, {"val acc", 9, 1}, {"time", 9, 4},
};

static bool is_shown(int column, int room)
{
    int sum = 0;
    for (int i = 0; i < COLUMNS; i++)
        if (columns[i].rank <= columns[column].rank)
            sum += columns[i].width + 1;
    return sum <= room;
}

static void add_cells(struct scene *scene, enum ink ink, char cells[COLUMNS][32])
{
    scene_line(scene, 0);
    for (int i = 0; i < COLUMNS; i++)
        if (is_shown(i, scene->columns))
            scene_add(scene,
                      i == 4 || i == 5 ? ink
                      : ink == INK_DIM ? ink
                                       : INK_PLAIN,
                      "%*s ", columns[i].width, cells[i]);
}

static void share_cell(double share, char cell[32])
{
    snprintf(cell, 32, "-");
    if (!isnan(share))
        snprintf(cell, 32, "%.2f %%", 100 * share);
}

void row_of_evaluation(struct progress *progress, const struct lk_event *e)
{
    char cells[COLUMNS][32];
    struct scene *scene = new_scene();
    if (!scene)
        return;
    int shown = 0;
    for (int i = 0; i < COLUMNS; i++) {
        snprintf(cells[i], sizeof cells[i], "%s", columns[i].heading);
        shown |= is_shown(i, scene->columns) << i;
    }
    if (progress->heading != shown) /* the first, or the window has another width */
        add_cells(scene, INK_DIM, cells);
    progress->heading = shown;
    snprintf(cells[0], sizeof cells[0], "%" PRId64, e->epoch);
    snprintf(cells[1], sizeof cells[1], "%" PRId64, e->step);
    const struct progress_sum *since = &progress->since;
    char loss[32];
    snprintf(cells[2], sizeof cells[2], "%s",
             since->samples ? loss_text(since->loss / (double)since->samples, loss) : "-");
    share_cell(since->samples ? since->accuracy / (double)since->samples : NAN, cells[3]);
    progress->since = (struct progress_sum){0};
    snprintf(cells[4], sizeof cells[4], "%s", loss_text(e->loss, loss));
    share_cell(e->accuracy, cells[5]);
    duration_text(e->seconds, cells[6]);
    add_cells(scene, INK_GOOD, cells);
    status_print(scene);
    free(scene);
}
