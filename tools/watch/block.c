/* Draws a run: state, progress, curves, devices, what happened last. */
#include "watch/block.h"

#include "figures.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { LABEL = 12, FIGURE = 10, DEVICES = 64, EVENTS = 12, BAR_MOST = 100 };

/* The order in which lines are left out. */
enum rank { NEVER, LOSS, PROGRESS, RATE, VALIDATION, ACCURACY, DEVICE, MODEL, NEWS = 20 };

static enum ink ink_of(enum watched_kind kind)
{
    return kind == WATCHED_GOOD ? INK_GOOD : kind == WATCHED_FAULT ? INK_BAD : INK_PLAIN;
}

static void add_state(struct scene *scene, const struct watched *w)
{
    enum watched_kind kind;
    char time[32];
    const char *state = watched_state(w, &kind);
    scene_add(scene, ink_of(kind), "%s", state);
    if (kind == WATCHED_FAULT)
        scene_add(scene, INK_BAD, " for %s", duration_text(w->silent, time));
}

static void add_title(struct scene *scene, const struct watched *w)
{
    const int room = scene->columns - 14;
    const int width = terminal_width(w->record.path);
    scene_line(scene, NEVER);
    scene_name(scene, INK_BOLD, width < room ? width : room > 8 ? room : 8, w->record.path);
    scene_add(scene, INK_PLAIN, "  ");
    add_state(scene, w);
    if (w->record.damaged > 0)
        scene_add(scene, INK_WARN, "  %" PRId64 " damaged line%s", w->record.damaged,
                  w->record.damaged == 1 ? "" : "s");
    scene_line(scene, MODEL);
    scene_add(scene, INK_DIM, "%s on %s", w->record.model, w->record.data);
    if (isfinite(w->lr))
        scene_add(scene, INK_DIM, "  lr %.4g", w->lr);
}

/* "24%  ETA 1:02  epoch 2/5  step 12/50  0:07 done", behind a bar where there is room. */
static void add_progress(struct scene *scene, const struct watched *w)
{
    char text[256] = "", bar[4 * BAR_MOST + 1], time[32];
    const double share = watched_share(w), eta = watched_eta(w);
    const size_t bytes = sizeof text;
    size_t used = 0;
    if (isfinite(eta))
        used += (size_t)snprintf(text, bytes, "  ETA %s", duration_text(eta, time));
    if (w->epochs > 0 && w->record.step > 0)
        used += (size_t)snprintf(text + used, bytes - used, "  epoch %" PRId64 "/%" PRId64,
                                 w->epoch + 1, w->epochs);
    used += (size_t)snprintf(text + used, bytes - used, "  step %" PRId64, w->record.step);
    if (w->steps > 0)
        used += (size_t)snprintf(text + used, bytes - used, "/%" PRId64, w->steps);
    used += (size_t)snprintf(text + used, bytes - used, "  %s done",
                             duration_text(w->record.seconds, time));
    scene_line(scene, PROGRESS);
    const int room = scene->columns - (int)used - 5;
    if (isfinite(share) && room >= 6) {
        bar_text(bar, room < BAR_MOST ? room : BAR_MOST, share);
        scene_add(scene, INK_BLUE, "%s ", bar);
    }
    if (isfinite(share))
        scene_add(scene, INK_BOLD, "%3.0f%%", floor(100 * share));
    scene_add(scene, INK_PLAIN, "%s", text + (isfinite(share) ? 0 : 2));
}

/* "loss          0.3210  " and the curve. */
static void add_curve(struct scene *scene, enum rank rank, const char *label,
                      const char *figure, const struct history *history)
{
    char curve[4 * HISTORY_POINTS + 1];
    scene_line(scene, (int)rank);
    scene_add(scene, INK_DIM, "%-*s", LABEL, label);
    scene_add(scene, INK_PLAIN, "%*s  ", FIGURE, figure);
    history_draw(history, scene_room(scene), scene->has_unicode, curve);
    scene_add(scene, INK_BLUE, "%s", curve);
}

static void add_curves(struct scene *scene, const struct watched *w)
{
    char text[32], rate[32];
    if (w->losses.count > 0) {
        loss_text(isfinite(w->loss) ? w->loss : w->losses.last, text);
        add_curve(scene, LOSS, "loss", text, &w->losses);
    }
    if (w->accuracies.count > 0) {
        const double last = isfinite(w->accuracy) ? w->accuracy : w->accuracies.last;
        percent_text(last, 1, text);
        add_curve(scene, ACCURACY, "accuracy", text, &w->accuracies);
    }
    if (w->val_accuracies.count > 0) {
        percent_text(w->val_accuracies.last, 2, text);
        add_curve(scene, VALIDATION, "validation", text, &w->val_accuracies);
    } else if (w->val_losses.count > 0) {
        loss_text(w->val_losses.last, text);
        add_curve(scene, VALIDATION, "validation", text, &w->val_losses);
    }
    if (w->rates.count > 0) {
        const double last = isfinite(w->samples_per_s) ? w->samples_per_s : w->rates.last;
        add_curve(scene, RATE, "samples/s", rate_text(last, rate), &w->rates);
    }
}

/* --- devices ---------------------------------------------------------------------------- */

enum { PARTS = 5 };

static const struct {
    const char *key, *name;
    enum ink ink;
    const char *mark, *ascii;
} parts[PARTS] = {
    {"compute_ms", "compute", INK_GOOD, "\u2588", "#"},
    {"transfer_ms", "transfer", INK_BLUE, "\u2593", "="},
    {"reduce_ms", "reduce", INK_PLAIN, "\u2592", "+"},
    {"wait_ms", "wait", INK_DIM, "\u2591", "."},
    {"input_ms", "input", INK_WARN, "\u2592", "i"},
};

static double part_of(const json_t *device, const char *key)
{
    const json_t *value = json_object_get(device, key);
    const double found = json_is_number(value) ? json_number_value(value) : 0;
    return found > 0 && found < 1e12 ? found : 0;
}

/* How the time of the step was spent, as a bar. */
static void add_bar(struct scene *scene, const double ms[PARTS], int columns)
{
    double all = 0, seen = 0;
    int drawn = 0;
    for (int i = 0; i < PARTS; i++)
        all += ms[i];
    for (int i = 0; i < PARTS && all > 0; i++) {
        char text[4 * BAR_MOST + 1] = "";
        int used = 0;
        seen += ms[i];
        for (; drawn < (int)lround(seen / all * columns); drawn++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s",
                             scene->has_unicode ? parts[i].mark : parts[i].ascii);
        scene_add(scene, parts[i].ink, "%s", text);
    }
    scene_add(scene, INK_PLAIN, "%*s", columns - drawn, "");
}

/* A device that is as good as lost has no times, as has one that others are faster without. */
static void add_device(struct scene *scene, const json_t *device, int index, bool is_lost)
{
    double ms[PARTS];
    char label[32];
    scene_line(scene, DEVICE);
    snprintf(label, sizeof label, "device %d", index);
    scene_add(scene, INK_DIM, "%-*s", LABEL, label);
    if (!json_is_object(device)) {
        scene_add(scene, is_lost ? INK_BAD : INK_DIM, "%*s", FIGURE,
                  is_lost ? "lost" : "no part");
        return;
    }
    scene_add(scene, INK_PLAIN, "%*.0f %%  ", FIGURE - 2, 100 * part_of(device, "share"));
    for (int i = 0; i < PARTS; i++)
        ms[i] = part_of(device, parts[i].key);
    const int room = scene_room(scene), words = 68;
    const int columns = room > words + 12 ? room - words : room;
    add_bar(scene, ms, columns < 40 ? columns : 40);
    for (int i = 0; i < PARTS && room > words + 12; i++)
        scene_add(scene, parts[i].ink, "  %s %.1f", parts[i].name, ms[i]);
    if (room > words + 12)
        scene_add(scene, INK_DIM, " ms");
}

static void add_devices(struct scene *scene, const struct watched *w)
{
    json_t *line = w->last_step ? json_loads(w->last_step, 0, NULL) : NULL;
    const json_t *devices = json_object_get(line, "devices");
    const int count = (int)json_array_size(devices);
    for (int i = 0; i < count && i < DEVICES; i++)
        add_device(scene, json_array_get(devices, (size_t)i), i, w->has_lost);
    json_decref(line);
}

/* --- the block -------------------------------------------------------------------------- */

/* The oldest are left out first. */
static void add_events(struct scene *scene, const struct watched *w)
{
    const int64_t from = w->event_count > EVENTS ? w->event_count - EVENTS : 0;
    for (int64_t i = from; i < w->event_count; i++) {
        const struct watched_event *event = &w->events[i % WATCHED_EVENTS];
        scene_line(scene, NEWS + (int)(w->event_count - i));
        scene_add(scene, INK_DIM, "step %-*" PRId64 " ", LABEL - 6, event->step);
        scene_add(scene, ink_of(event->kind), "%s", event->text);
    }
}

void block_add(struct scene *scene, const struct watched *watched)
{
    add_title(scene, watched);
    if (!watched->is_there && watched->record.step == 0)
        return;
    add_progress(scene, watched);
    add_curves(scene, watched);
    add_devices(scene, watched);
    add_events(scene, watched);
}

void block_add_line(struct scene *scene, const struct watched *w, int name_columns)
{
    char text[32];
    const double share = watched_share(w), eta = watched_eta(w);
    scene_line(scene, NEVER);
    scene_name(scene, INK_BOLD, name_columns, w->record.path);
    scene_add(scene, INK_PLAIN, "  ");
    add_state(scene, w);
    if (isfinite(share))
        scene_add(scene, INK_BOLD, "  %.0f%%", floor(100 * share));
    if (w->record.step > 0)
        scene_add(scene, INK_PLAIN, "  step %" PRId64, w->record.step);
    if (w->losses.count > 0)
        scene_add(scene, INK_PLAIN, "  loss %s",
                  loss_text(isfinite(w->loss) ? w->loss : w->losses.last, text));
    if (w->val_accuracies.count > 0)
        scene_add(scene, INK_GOOD, "  validation %s",
                  percent_text(w->val_accuracies.last, 2, text));
    else if (w->val_losses.count > 0)
        scene_add(scene, INK_GOOD, "  validation loss %s", loss_text(w->val_losses.last, text));
    if (w->rates.count > 0 && isfinite(w->samples_per_s))
        scene_add(scene, INK_PLAIN, "  %s samples/s", rate_text(w->samples_per_s, text));
    if (isfinite(eta))
        scene_add(scene, INK_PLAIN, "  ETA %s", duration_text(eta, text));
}
