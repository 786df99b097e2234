/* The inside of a sweep: its settings with what they may be. Floor 8. Private to
 * src/train/sweep. */
#ifndef LK_TRAIN_SWEEP_INTERNAL_H
#define LK_TRAIN_SWEEP_INTERNAL_H

#include "model/yaml/yaml.h"
#include "train/settings/settings.h"
#include <lockstep/sweep.h>

enum lk_axis_kind { LK_AXIS_LIST, LK_AXIS_UNIFORM, LK_AXIS_LOG, LK_AXIS_INT };

/* A setting that differs between trials. */
struct lk_axis {
    const struct lk_yaml *entry; /* its place in the file */
    const char *name;
    enum lk_axis_kind kind;
    double low, high;
    int points; /* of a grid; of a list its values; 0: a range to draw from */
};

struct lk_sweep {
    struct lk_sweep_plan plan;
    struct lk_yaml_document *document;
    char *text, *run_text;
    const char *run_where;
    struct lk_axis axes[LK_MOST_SWEEP_SETTINGS];
    char *values[LK_MOST_SWEEP_TRIALS][LK_MOST_SWEEP_SETTINGS];
};

/* Reads what a setting may be: a list, {log: [1e-4, 1e-1]}, {uniform: [0, 1]}, {int: [1, 9]},
 * of a grid with points. fails: LK_E_MODEL, with its line */
LK_MUST_CHECK enum lk_status lk_axis_read(const struct lk_yaml *entry, bool is_grid,
                                          struct lk_axis *axis);

/* Its value as text: point `index` of a grid or list, or by a number in [0, 1). */
enum { LK_AXIS_TEXT = 1024 };
void lk_axis_point(const struct lk_axis *axis, int index, char text[LK_AXIS_TEXT]);
void lk_axis_draw(const struct lk_axis *axis, double chance, char text[LK_AXIS_TEXT]);

#endif
