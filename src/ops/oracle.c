/* The rows of the tables of functions and losses as functions in C and double. */
#include "ops/oracle.h"

#include "ops/eltwise_table.h"
#include "ops/loss_table.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

/* --- functions of one element ---------------------------------------------------------- */

enum { ABOUT, EXACTLY };

#define FUNCTION(name_, reads, options, exact, check, low, high, kernel, kernel_slope, value_, \
                 slope_)                                                                       \
    static double value_of_##name_(double v, double alpha, double beta)                        \
    {                                                                                          \
        (void)alpha, (void)beta;                                                               \
        return value_;                                                                         \
    }                                                                                          \
    static double slope_of_##name_(double v, double alpha, double beta)                        \
    {                                                                                          \
        (void)v, (void)alpha, (void)beta;                                                      \
        return slope_;                                                                         \
    }
LK_FUNCTIONS(FUNCTION)

#define FUNCTION_ROW(name_, reads, options, exact_, check_, low_, high_, ...)                  \
    {.name = #name_,                                                                           \
     .check = (check_),                                                                        \
     .is_exact = (exact_),                                                                     \
     .low = (low_),                                                                            \
     .high = (high_),                                                                          \
     .value = value_of_##name_,                                                                \
     .slope = slope_of_##name_},
const struct lk_function_oracle lk_function_oracles[] = {LK_FUNCTIONS(FUNCTION_ROW){0}};

const struct lk_function_oracle *lk_function_oracle_find(const char *name)
{
    for (const struct lk_function_oracle *row = lk_function_oracles; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* --- losses of one element ------------------------------------------------------------- */

enum { YES_OR_NO, NUMBERS };

#define AS_GIVEN(t) (t)
#define AS_SIGN(t) ((t) == 0 ? -1 : (t))

#define OF_LOSS(what, name, target, expression)                                                \
    static double what##_of_##name(double p, double given, double delta)                       \
    {                                                                                          \
        const double t = target(given);                                                        \
        (void)delta, (void)t, (void)p;                                                         \
        return expression;                                                                     \
    }
#define LOSS(name, options, answers, target, low, high, kernel, kernel_dp, kernel_dt,          \
             kernel_right, value_, dp_, dt_, right_)                                           \
    OF_LOSS(loss, name, target, value_)                                                        \
    OF_LOSS(dp, name, target, dp_)                                                             \
    OF_LOSS(dt, name, target, dt_)                                                             \
    static bool right_of_##name(double p, double given)                                        \
    {                                                                                          \
        const double t = target(given);                                                        \
        (void)p, (void)t;                                                                      \
        return right_;                                                                         \
    }
LK_LOSSES(LOSS)

#define LOSS_ROW(name_, options, answers, target, low_, high_, ...)                            \
    {.name = #name_,                                                                           \
     .has_labels = (answers) == YES_OR_NO,                                                     \
     .low = (low_),                                                                            \
     .high = (high_),                                                                          \
     .value = loss_of_##name_,                                                                 \
     .dp = dp_of_##name_,                                                                      \
     .dt = dt_of_##name_,                                                                      \
     .right = right_of_##name_},
const struct lk_loss_oracle lk_loss_oracles[] = {LK_LOSSES(LOSS_ROW){0}};

const struct lk_loss_oracle *lk_loss_oracle_find(const char *name)
{
    for (const struct lk_loss_oracle *row = lk_loss_oracles; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}
