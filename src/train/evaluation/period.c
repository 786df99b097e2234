/* How often a training evaluates, as people write it. */
#include "train/evaluation/period.h"

#include "base/fail.h"
#include "base/number.h"
#include <stdbool.h>
#include <string.h>

static const double most_steps = 1e15, most_minutes = 1e6;

static bool is_unit(const char *text, const char *unit)
{
    const size_t length = strlen(unit);
    return strncmp(text, unit, length) == 0 &&
           (text[length] == '\0' || strcmp(text + length, "s") == 0);
}

enum lk_status lk_eval_period_parse(const char *text, struct lk_eval_period *period)
{
    const size_t digits = strspn(text, "0123456789.");
    char *end = NULL;
    const double count = digits > 0 ? lk_number_read(text, &end) : 0;
    const bool is_plain = end == text + digits; /* no 0x10 and no 1e3 */
    const char *unit = is_plain ? end + strspn(end, " ") : "";
    const bool is_whole = count >= 1 && count <= most_steps && count == (double)(int64_t)count;
    struct lk_eval_period found = {0};
    if (is_whole && is_unit(unit, "step"))
        found.steps = (int64_t)count;
    else if (is_whole && is_unit(unit, "epoch"))
        found.epochs = (int64_t)count;
    else if (count > 0 && count <= most_minutes && is_unit(unit, "minute"))
        found.minutes = count;
    else
        return lk_fail(LK_E_ARGUMENT,
                       "setting 'eval_every': 200steps, 2epochs or 5minutes is expected, found "
                       "'%s'",
                       text);
    *period = found;
    return LK_OK;
}

int64_t lk_eval_period_steps(const struct lk_eval_period *period, int64_t steps_per_epoch)
{
    int64_t steps = period->steps;
    if (period->epochs > 0 && __builtin_mul_overflow(period->epochs, steps_per_epoch, &steps))
        return INT64_MAX;
    return steps;
}
