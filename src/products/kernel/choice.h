/* Chooses the algorithm that a pass of an operation runs, where several could. Floor 3. Knows
 * no operation.
 *
 * Each algorithm adds in an order of its own, so the choice decides bits. It is made once for a
 * kind of device, stored with the run, and used again when the run goes on and by every device
 * of that kind. The key of a choice names the kind, so one list serves devices of several
 * kinds. */
#ifndef LK_PRODUCTS_CHOICE_H
#define LK_PRODUCTS_CHOICE_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>

/* STRICT: direct sums only. NORMAL: any algorithm whose products are of full precision.
 * FAST: products of reduced precision too. */
enum lk_math { LK_MATH_STRICT, LK_MATH_NORMAL, LK_MATH_FAST };

/* Any thread may use a list. */
struct lk_choices;

enum { LK_CHOICE_KEY_BYTES = 768, LK_CHOICE_TEXT_BYTES = 64 };

LK_MUST_CHECK enum lk_status lk_choices_create(enum lk_math math, struct lk_choices **choices);
void lk_choices_destroy(struct lk_choices *choices);

/* The math level of the list; STRICT for NULL. */
enum lk_math lk_choices_math(const struct lk_choices *choices);

/* The algorithm kept or known under `key`, a copy; false: none is. */
bool lk_choices_find(struct lk_choices *choices, const char *key,
                     char text[LK_CHOICE_TEXT_BYTES]);

/* Stores the algorithm for a key, or replaces it. fails: LK_E_MEMORY; LK_E_ARGUMENT a text that
 * is too long; LK_E_DATA too many keys */
LK_MUST_CHECK enum lk_status lk_choices_set(struct lk_choices *choices, const char *key,
                                            const char *text);

/* Prefers an algorithm wherever it is possible and the list has none for the key; NULL: the
 * cheapest one is taken. For tests. */
LK_MUST_CHECK enum lk_status lk_choices_prefer(struct lk_choices *choices, const char *text);

/* Writes the list as text, which the caller frees: a line "math <name>", then a line
 * "<key>\t<algorithm>" for each key. */
LK_MUST_CHECK enum lk_status lk_choices_print(struct lk_choices *choices, char **text);

/* Adds the choices of such a text, which `where` names in messages. fails: LK_E_DATA, with the
 * line, a malformed text or one of another math level; the lines before it stay added */
LK_MUST_CHECK enum lk_status lk_choices_read(struct lk_choices *choices, const char *text,
                                             const char *where);

/* A new list of what such a text holds, with its math. */
LK_MUST_CHECK enum lk_status lk_choices_open(const char *text, const char *where,
                                             struct lk_choices **choices);

/* A new list with the same choices, for plans that are only tried and may add to it. NULL gives
 * NULL. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_choices_copy(struct lk_choices *choices,
                                             struct lk_choices **copy);

/* "strict", "normal", "fast"; ends with NULL. */
extern const char *const lk_math_names[];

/* The one of that name; NULL: NORMAL. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_math_find(const char *name, enum lk_math *math);

/* Sets lists to fall back to, found by tuning: for a key that this list does not have, the
 * algorithm is taken from `known`; if that has none, only the blocking of the algorithm that is
 * taken by rule is looked up in `blockings`. Both outlive the list; either may be NULL. */
void lk_choices_set_fallbacks(struct lk_choices *choices, struct lk_choices *known,
                              struct lk_choices *blockings);

/* Calls for each, in order of keys; `visit` may not use the list. */
void lk_choices_each(struct lk_choices *choices,
                     void (*visit)(void *context, const char *key, const char *text),
                     void *context);

enum { LK_MOST_CANDIDATES = 24 };

/* One candidate of a choice. Its name is the kernel's, family first, then perhaps a blocking,
 * which begins with a digit and changes no bit: "direct gather", "direct gather 8x3". */
struct lk_candidate {
    char name[LK_CHOICE_TEXT_BYTES];
    double cost;       /* estimated: multiply-adds of a sample divided by the fraction of the
                        * peak that the algorithm reaches; negative: it cannot compute this
                        * pass */
    enum lk_math math; /* the lowest level that allows it */
};

/* What one pass of an operation chooses from. */
struct lk_choice {
    char key[LK_CHOICE_KEY_BYTES];
    bool is_backward, dx, dw; /* the pass: backward for that gradient */
    const char *decides;      /* of a choice that belongs to the device, not to a pass: the
                               * algorithm whose speed (not bits) it decides; else NULL */
    struct lk_candidate candidates[LK_MOST_CANDIDATES];
    int count;
};

/* Whether a candidate is allowed by `math` and can. */
bool lk_candidate_is_possible(const struct lk_candidate *candidate, enum lk_math math);

/* The blocking of a name; "": it has none. */
const char *lk_candidate_blocking(const char *name);

/* Whether two names are of one kernel, whatever its blocking: the same bits. */
bool lk_candidate_is_same(const char *a, const char *b);

/* Whether two names are of one family, whose kernels differ in bits. */
bool lk_candidate_is_kin(const char *a, const char *b);

/* Whether `name` is what `asked` asks for: that kernel, or any of a family that it names alone,
 * as old runs do ("direct", "direct 8x3"), with that blocking, if it has one. */
bool lk_candidate_answers(const char *name, const char *asked);

/* The place of the one to use: the one kept under the key or known, else the preferred one,
 * else the cheapest; it is then kept. One that is not possible is never taken. A name that
 * no candidate has stands for one of its family, with the same blocking if that is there: of a
 * family a choice has the kernel that the rule takes. fails: LK_E_UNSUPPORTED where none can;
 * LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_choices_make(struct lk_choices *choices,
                                             const struct lk_choice *choice, int *place);

#endif
