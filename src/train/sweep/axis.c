/* What one setting of a sweep may be, and its values. */
#include "train/sweep/internal.h"

#include "base/fail.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = LK_MOST_SWEEP_TRIALS };

static const char *const kinds[] = {[LK_AXIS_LIST] = "list",
                                    [LK_AXIS_UNIFORM] = "uniform",
                                    [LK_AXIS_LOG] = "log",
                                    [LK_AXIS_INT] = "int"};
static const double largest_int = 1e15;

static enum lk_status read_number(const struct lk_yaml *value, double *number)
{
    char *end, found[80];
    if (value->kind == LK_YAML_SCALAR && !value->is_null) {
        *number = strtod(value->text, &end);
        if (end > value->text && !*end && isfinite(*number))
            return LK_OK;
    }
    return lk_yaml_fail(value, "expected a number, found %s",
                        lk_yaml_found(value, found, sizeof found));
}

/* "[1e-4, 1e-1]" */
static enum lk_status read_range(const struct lk_yaml *value, struct lk_axis *axis)
{
    const bool is_int = axis->kind == LK_AXIS_INT;
    if (value->kind != LK_YAML_LIST || value->count != 2)
        return lk_yaml_fail(value, "'%s' needs a range [lowest, highest]", value->key);
    LK_TRY(read_number(lk_yaml_item(value, 0), &axis->low));
    LK_TRY(read_number(lk_yaml_item(value, 1), &axis->high));
    if (!(axis->low < axis->high))
        return lk_yaml_fail(value, "the range %g..%g is empty", axis->low, axis->high);
    if (axis->kind == LK_AXIS_LOG && !(axis->low > 0))
        return lk_yaml_fail(value, "a range of 'log' begins above 0, found %g", axis->low);
    if (!isfinite(axis->high - axis->low) || (axis->kind == LK_AXIS_LOG && axis->high > 1e300))
        return lk_yaml_fail(value, "the range %g..%g is too large", axis->low, axis->high);
    if (is_int && (axis->low != floor(axis->low) || axis->high != floor(axis->high) ||
                   fabs(axis->low) > largest_int || fabs(axis->high) > largest_int))
        return lk_yaml_fail(value, "a range of 'int' has whole numbers, found %g..%g",
                            axis->low, axis->high);
    return LK_OK;
}

static enum lk_status read_points(const struct lk_yaml *value, struct lk_axis *axis)
{
    double points = 0;
    LK_TRY(read_number(value, &points));
    if (!(points >= 2 && points <= MOST_POINTS && points == floor(points)))
        return lk_yaml_fail(value, "'points' is a whole number in 2..%d, found %g",
                            (int)MOST_POINTS, points);
    if (axis->kind == LK_AXIS_INT && points > axis->high - axis->low + 1)
        return lk_yaml_fail(value, "%g points of %g..%g are not all different", points,
                            axis->low, axis->high);
    axis->points = (int)points;
    return LK_OK;
}

static enum lk_status read_list(struct lk_axis *axis)
{
    char found[80];
    axis->kind = LK_AXIS_LIST;
    axis->points = axis->entry->count;
    if (axis->points == 0 || axis->points > MOST_POINTS)
        return lk_yaml_fail(axis->entry, "'%s' has %d values, expected 1 to %d",
                            axis->entry->key, axis->points, (int)MOST_POINTS);
    for (const struct lk_yaml *value = axis->entry->first; value; value = value->next)
        if (value->kind != LK_YAML_SCALAR || strlen(value->text) >= LK_AXIS_TEXT)
            return lk_yaml_fail(value,
                                "a value of '%s' is %s, expected a text such as "
                                "'sgd momentum=0.9'",
                                axis->entry->key, lk_yaml_found(value, found, sizeof found));
    return LK_OK;
}

enum lk_status lk_axis_read(const struct lk_yaml *entry, bool is_grid, struct lk_axis *axis)
{
    static const char *const known[] = {"uniform", "log", "int", "points", NULL};
    const struct lk_yaml *range = NULL;
    *axis = (struct lk_axis){.entry = entry, .name = entry->key};
    if (strncmp(axis->name, "train.", 6) == 0)
        axis->name += 6;
    if (entry->kind == LK_YAML_LIST)
        return read_list(axis);
    if (entry->kind != LK_YAML_MAP)
        return lk_yaml_fail(entry, "'%s' is a list of values or a range: {log: [1e-4, 1e-1]}",
                            entry->key);
    LK_TRY(lk_yaml_check_keys(entry, known));
    for (int kind = LK_AXIS_UNIFORM; kind <= LK_AXIS_INT; kind++) {
        const struct lk_yaml *found = lk_yaml_find(entry, kinds[kind]);
        if (found && range)
            return lk_yaml_fail(found, "'%s' has two ranges", entry->key);
        if (found)
            axis->kind = (enum lk_axis_kind)kind;
        range = found ? found : range;
    }
    if (!range)
        return lk_yaml_fail(entry, "'%s' has no range: uniform, log or int", entry->key);
    LK_TRY(read_range(range, axis));
    const struct lk_yaml *points = lk_yaml_find(entry, "points");
    if (points && !is_grid)
        return lk_yaml_fail(points, "'points' is for a grid; this search draws from ranges");
    if (!points && is_grid)
        return lk_yaml_fail(entry,
                            "a grid needs a list for '%s', or points: {log: [..], points: 4}",
                            entry->key);
    return points ? read_points(points, axis) : LK_OK;
}

static void print(const struct lk_axis *axis, double share, char text[LK_AXIS_TEXT])
{
    const double range = axis->high - axis->low;
    if (axis->kind == LK_AXIS_LOG)
        snprintf(text, LK_AXIS_TEXT, "%.6g", axis->low * pow(axis->high / axis->low, share));
    else if (axis->kind == LK_AXIS_INT)
        snprintf(text, LK_AXIS_TEXT, "%.0f", axis->low + round(range * share));
    else
        snprintf(text, LK_AXIS_TEXT, "%.6g", axis->low + range * share);
}

void lk_axis_point(const struct lk_axis *axis, int index, char text[LK_AXIS_TEXT])
{
    if (axis->kind == LK_AXIS_LIST)
        snprintf(text, LK_AXIS_TEXT, "%s", lk_yaml_item(axis->entry, index)->text);
    else
        print(axis, (double)index / (axis->points - 1), text);
}

void lk_axis_draw(const struct lk_axis *axis, double chance, char text[LK_AXIS_TEXT])
{
    if (axis->kind == LK_AXIS_LIST)
        lk_axis_point(axis, (int)(chance * axis->points), text);
    else if (axis->kind == LK_AXIS_INT) /* each as likely as the others */
        snprintf(text, LK_AXIS_TEXT, "%.0f",
                 axis->low + floor(chance * (axis->high - axis->low + 1)));
    else
        print(axis, chance, text);
}
