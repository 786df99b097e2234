/* Which algorithm a pass of an operation runs, where several could. Floor 3. Knows no
 * operation.
 *
 * Algorithms sum in orders of their own, so the choice belongs to a run's numerics: it is made
 * once for a kind of device, kept with the run and used again on resume and by every device of
 * that kind. */
#ifndef LK_OPS_CHOICE_H
#define LK_OPS_CHOICE_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>

/* STRICT: direct sums only. NORMAL: any algorithm whose products are of full precision.
 * FAST: products of reduced precision too. */
enum lk_math { LK_MATH_STRICT, LK_MATH_NORMAL, LK_MATH_FAST };

/* A list of choices for one kind of device; any thread may use it. */
struct lk_choices;

enum { LK_CHOICE_KEY_BYTES = 320, LK_CHOICE_TEXT_BYTES = 64 };

LK_MUST_CHECK enum lk_status lk_choices_create(enum lk_math math, struct lk_choices **choices);
void lk_choices_destroy(struct lk_choices *choices);

/* STRICT for NULL. */
enum lk_math lk_choices_math(const struct lk_choices *choices);

/* The algorithm kept under `key`, a copy; false: none is. */
bool lk_choices_find(struct lk_choices *choices, const char *key,
                     char text[LK_CHOICE_TEXT_BYTES]);

/* Keeps or replaces. fails: LK_E_MEMORY; LK_E_ARGUMENT for a text that is too long */
LK_MUST_CHECK enum lk_status lk_choices_set(struct lk_choices *choices, const char *key,
                                            const char *text);

/* The algorithm to take wherever it can be and none is kept; NULL: none, by rule. */
LK_MUST_CHECK enum lk_status lk_choices_prefer(struct lk_choices *choices, const char *text);

/* Calls for each, in order of keys; `visit` may not use the list. */
void lk_choices_each(struct lk_choices *choices,
                     void (*visit)(void *context, const char *key, const char *text),
                     void *context);

/* One candidate of a choice. */
struct lk_candidate {
    const char *name;
    double cost;       /* multiply-adds of a sample, over the share of the peak it may reach;
                        * negative: it cannot do this */
    enum lk_math math; /* least that allows it */
};

/* The place of the one to use: the one kept under `key`, else the preferred one, else the
 * cheapest; it is then kept. One that `math` does not allow or that cannot is never taken.
 * fails: LK_E_UNSUPPORTED where none can; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_choices_make(struct lk_choices *choices, const char *key,
                                             const struct lk_candidate *candidates, int count,
                                             int *place);

#endif
