/* The figures that callbacks monitor: whether there will be one, and its value. */
#include "base/fail.h"
#include "base/number.h"
#include "train/callbacks/kinds.h"
#include <math.h>
#include <string.h>

static const char *name_at(const void *context, int index)
{
    const struct lk_figures *figures = context;
    return index < figures->count ? figures->items[index].name : NULL;
}

enum lk_status lk_monitor_check(const char *monitor, const struct lk_callback_site *site)
{
    double value;
    struct lk_figures expected = {0};
    lk_figures_set_expected(&expected, site->model, site->has_accuracy, site->has_validation);
    if (lk_figures_find(&expected, monitor, &value) || site->own_count > 0)
        return LK_OK;
    if (strncmp(monitor, "val_", 4) == 0 && !site->has_validation)
        return lk_fail(LK_E_ARGUMENT,
                       "it monitors '%s', and there is no validation data: --val SPEC would do",
                       monitor);
    const char *near = lk_nearest_name(monitor, name_at, &expected);
    return lk_fail(LK_E_ARGUMENT, "it monitors '%s', which the training has not%s%s%s", monitor,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

enum lk_status lk_epoch_find(const struct lk_epoch *epoch, const struct lk_called *called,
                             const char *monitor, double *value)
{
    if (lk_figures_find(&epoch->figures, monitor, value))
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "%s monitors '%s', which epoch %lld has not",
                   called->kind->name, monitor, (long long)epoch->number + 1);
}

enum lk_status lk_bound_read(const char *name, const char *text, bool *is_there, double *bound)
{
    char *end;
    *is_there = *text != '\0';
    if (!*is_there)
        return LK_OK;
    *bound = lk_number_read(text, &end);
    return end > text && !*end && !isnan(*bound)
               ? LK_OK
               : lk_fail(LK_E_ARGUMENT, "option '%s': '%s' is not a number", name, text);
}
