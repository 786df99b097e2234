/* Lists of choices: kept, known, preferred; how names of kernels match; reading and printing.
 */
#include "products/kernel/choice.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/text.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHOICES = 1 << 13 }; /* far more than models have; a file may claim any number */

struct choice {
    char key[LK_CHOICE_KEY_BYTES], text[LK_CHOICE_TEXT_BYTES];
};

struct lk_choices {
    enum lk_math math;
    pthread_mutex_t lock;
    char preferred[LK_CHOICE_TEXT_BYTES];
    struct lk_choices *known, *blockings; /* NULL: none */
    struct choice *list;                  /* in order of keys */
    int count, room;
};

enum lk_status lk_choices_create(enum lk_math math, struct lk_choices **choices)
{
    struct lk_choices *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("choices of algorithms", sizeof *made);
    made->math = math;
    pthread_mutex_init(&made->lock, NULL);
    *choices = made;
    return LK_OK;
}

void lk_choices_destroy(struct lk_choices *choices)
{
    if (!choices)
        return;
    pthread_mutex_destroy(&choices->lock);
    free(choices->list);
    free(choices);
}

enum lk_math lk_choices_math(const struct lk_choices *choices)
{
    return choices ? choices->math : LK_MATH_STRICT;
}

/* Where `key` is or would be. */
static int place_of(const struct lk_choices *choices, const char *key, bool *is_there)
{
    int low = 0, high = choices->count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (strcmp(choices->list[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *is_there = low < choices->count && strcmp(choices->list[low].key, key) == 0;
    return low;
}

bool lk_choices_find(struct lk_choices *choices, const char *key,
                     char text[LK_CHOICE_TEXT_BYTES])
{
    bool is_there = false;
    if (!choices)
        return false;
    pthread_mutex_lock(&choices->lock);
    const int at = place_of(choices, key, &is_there);
    if (is_there)
        memcpy(text, choices->list[at].text, LK_CHOICE_TEXT_BYTES);
    pthread_mutex_unlock(&choices->lock);
    return is_there || lk_choices_find(choices->known, key, text);
}

static enum lk_status check_length(const char *text, size_t room, const char *what)
{
    if (strlen(text) < room)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "%s of %zu characters, at most %zu: '%.80s...'", what,
                   strlen(text), room - 1, text);
}

static enum lk_status set_locked(struct lk_choices *choices, const char *key, const char *text)
{
    bool is_there;
    const int at = place_of(choices, key, &is_there);
    if (!is_there && choices->count == MOST_CHOICES)
        return lk_fail(LK_E_DATA, "more than %d choices of algorithms", MOST_CHOICES);
    if (!is_there && choices->count == choices->room) {
        const int room = choices->room ? 2 * choices->room : 16;
        struct choice *list = realloc(choices->list, (size_t)room * sizeof *list);
        if (!list)
            return lk_fail_memory("choices of algorithms", (size_t)room * sizeof *list);
        choices->list = list;
        choices->room = room;
    }
    struct choice *c = &choices->list[at];
    if (!is_there)
        memmove(c + 1, c, (size_t)(choices->count++ - at) * sizeof *c);
    *c = (struct choice){0};
    strcpy(c->key, key);
    strcpy(c->text, text);
    return LK_OK;
}

enum lk_status lk_choices_set(struct lk_choices *choices, const char *key, const char *text)
{
    LK_TRY(check_length(key, LK_CHOICE_KEY_BYTES, "key of a choice"));
    LK_TRY(check_length(text, LK_CHOICE_TEXT_BYTES, "name of an algorithm"));
    pthread_mutex_lock(&choices->lock);
    const enum lk_status status = set_locked(choices, key, text);
    pthread_mutex_unlock(&choices->lock);
    return status;
}

enum lk_status lk_choices_prefer(struct lk_choices *choices, const char *text)
{
    LK_TRY(check_length(text ? text : "", LK_CHOICE_TEXT_BYTES, "name of an algorithm"));
    strcpy(choices->preferred, text ? text : "");
    return LK_OK;
}

void lk_choices_set_fallbacks(struct lk_choices *choices, struct lk_choices *known,
                              struct lk_choices *blockings)
{
    choices->known = known;
    choices->blockings = blockings;
}

const char *const lk_math_names[] = {"strict", "normal", "fast", NULL};

enum lk_status lk_math_find(const char *name, enum lk_math *math)
{
    for (int i = 0; lk_math_names[i]; i++)
        if (!name ? i == LK_MATH_NORMAL : strcmp(lk_math_names[i], name) == 0) {
            *math = (enum lk_math)i;
            return LK_OK;
        }
    return lk_fail(LK_E_ARGUMENT, "math '%s' is none of strict, normal, fast", name);
}

enum lk_status lk_choices_print(struct lk_choices *choices, char **text)
{
    struct lk_text made = {0};
    lk_text_append(&made, "math %s\n", lk_math_names[choices->math]);
    pthread_mutex_lock(&choices->lock);
    for (int i = 0; i < choices->count; i++)
        lk_text_append(&made, "%s\t%s\n", choices->list[i].key, choices->list[i].text);
    pthread_mutex_unlock(&choices->lock);
    if (made.failed) {
        free(made.bytes);
        return lk_fail_memory("choices of algorithms", made.room);
    }
    *text = made.bytes;
    return LK_OK;
}

/* `line` without its end. */
static enum lk_status read_line(struct lk_choices *choices, char *line, int number,
                                const char *where)
{
    char *tab = strchr(line, '\t');
    if (!tab || tab == line || !tab[1] || strchr(tab + 1, '\t'))
        return lk_fail(LK_E_DATA,
                       "%s, line %d: expected a key, a tab and an algorithm, found "
                       "'%.80s'",
                       where, number, line);
    *tab = '\0';
    return lk_choices_set(choices, line, tab + 1);
}

/* The first line's, of `length` characters. */
static enum lk_status find_math(const char *text, size_t length, const char *where,
                                enum lk_math *math)
{
    for (int i = 0; lk_math_names[i]; i++)
        if (length == strlen("math ") + strlen(lk_math_names[i]) &&
            memcmp(text, "math ", strlen("math ")) == 0 &&
            memcmp(text + strlen("math "), lk_math_names[i], strlen(lk_math_names[i])) == 0) {
            *math = (enum lk_math)i;
            return LK_OK;
        }
    return lk_fail(LK_E_DATA, "%s, line 1: expected math and its name, found '%.*s'", where,
                   (int)(length < 80 ? length : 80), text);
}

enum lk_status lk_choices_read(struct lk_choices *choices, const char *text, const char *where)
{
    char line[LK_CHOICE_KEY_BYTES + LK_CHOICE_TEXT_BYTES];
    enum lk_math math = LK_MATH_STRICT;
    size_t length = strcspn(text, "\n");
    LK_TRY(find_math(text, length, where, &math));
    if (math != choices->math)
        return lk_fail(LK_E_DATA, "%s: made with math %s, asked for is %s", where,
                       lk_math_names[math], lk_math_names[choices->math]);
    for (int number = 2; text[length]; number++) {
        text += length + 1;
        length = strcspn(text, "\n");
        if (length == 0 && !*text)
            break;
        if (length >= sizeof line)
            return lk_fail(LK_E_DATA, "%s, line %d: %zu characters are too many", where, number,
                           length);
        memcpy(line, text, length);
        line[length] = '\0';
        LK_TRY(read_line(choices, line, number, where));
    }
    return LK_OK;
}

enum lk_status lk_choices_open(const char *text, const char *where, struct lk_choices **choices)
{
    enum lk_math math = LK_MATH_STRICT;
    struct lk_choices *made = NULL;
    LK_TRY(find_math(text, strcspn(text, "\n"), where, &math));
    LK_TRY(lk_choices_create(math, &made));
    const enum lk_status status = lk_choices_read(made, text, where);
    if (status != LK_OK) {
        lk_choices_destroy(made);
        return status;
    }
    *choices = made;
    return LK_OK;
}

enum lk_status lk_choices_copy(struct lk_choices *choices, struct lk_choices **copy)
{
    char *text;
    *copy = NULL;
    if (!choices)
        return LK_OK;
    LK_TRY(lk_choices_print(choices, &text));
    const enum lk_status status = lk_choices_open(text, "choices", copy);
    free(text);
    return status;
}

void lk_choices_each(struct lk_choices *choices,
                     void (*visit)(void *context, const char *key, const char *text),
                     void *context)
{
    pthread_mutex_lock(&choices->lock);
    for (int i = 0; i < choices->count; i++)
        visit(context, choices->list[i].key, choices->list[i].text);
    pthread_mutex_unlock(&choices->lock);
}

bool lk_candidate_is_possible(const struct lk_candidate *candidate, enum lk_math math)
{
    return candidate->cost >= 0 && candidate->math <= math;
}

const char *lk_candidate_blocking(const char *name)
{
    const char *space = strchr(name, ' ');
    while (space && (space[1] < '0' || space[1] > '9'))
        space = strchr(space + 1, ' ');
    return space ? space + 1 : "";
}

/* Characters of a name without its blocking. */
static size_t kernel_length(const char *name)
{
    const char *blocking = lk_candidate_blocking(name);
    return *blocking ? (size_t)(blocking - name) - 1 : strlen(name);
}

bool lk_candidate_is_same(const char *a, const char *b)
{
    const size_t n = kernel_length(a);
    return kernel_length(b) == n && memcmp(a, b, n) == 0;
}

bool lk_candidate_is_kin(const char *a, const char *b)
{
    const size_t n = strcspn(a, " ");
    return strcspn(b, " ") == n && memcmp(a, b, n) == 0;
}

bool lk_candidate_answers(const char *name, const char *asked)
{
    const size_t n = kernel_length(asked);
    const char *blocking = lk_candidate_blocking(asked);
    return kernel_length(name) >= n && memcmp(name, asked, n) == 0 &&
           (name[n] == '\0' || name[n] == ' ') &&
           (!*blocking || strcmp(blocking, lk_candidate_blocking(name)) == 0);
}

/* How well a candidate is what `name` asks for; 0: not at all. */
static int match(const struct lk_candidate *c, const char *name)
{
    if (!lk_candidate_is_kin(c->name, name))
        return 0;
    const bool has_blocking =
        strcmp(lk_candidate_blocking(c->name), lk_candidate_blocking(name)) == 0;
    return 1 + has_blocking + 2 * lk_candidate_is_same(c->name, name);
}

static int named(const struct lk_choice *choice, enum lk_math math, const char *name)
{
    int found = -1, best = 0;
    for (int i = 0; i < choice->count; i++) {
        const struct lk_candidate *c = &choice->candidates[i];
        const int matches = lk_candidate_is_possible(c, math) ? match(c, name) : 0;
        if (matches > best) {
            best = matches;
            found = i;
        }
    }
    return found;
}

static int cheapest(const struct lk_choice *choice, enum lk_math math)
{
    int best = -1;
    for (int i = 0; i < choice->count; i++)
        if (lk_candidate_is_possible(&choice->candidates[i], math) &&
            (best < 0 || choice->candidates[i].cost < choice->candidates[best].cost))
            best = i;
    return best;
}

/* Where none is kept or known. -1: none can */
static int by_rule(struct lk_choices *choices, const struct lk_choice *choice)
{
    char text[LK_CHOICE_TEXT_BYTES];
    const enum lk_math math = lk_choices_math(choices);
    int best = choices && *choices->preferred ? named(choice, math, choices->preferred) : -1;
    if (best < 0)
        best = cheapest(choice, math);
    if (best >= 0 && choices && lk_choices_find(choices->blockings, choice->key, text) &&
        lk_candidate_is_kin(text, choice->candidates[best].name))
        best = named(choice, math, text);
    return best;
}

enum lk_status lk_choices_make(struct lk_choices *choices, const struct lk_choice *choice,
                               int *place)
{
    char text[LK_CHOICE_TEXT_BYTES];
    int best = -1;
    if (lk_choices_find(choices, choice->key, text) &&
        (best = named(choice, lk_choices_math(choices), text)) < 0)
        lk_log(LK_LOG_WARNING, "'%s' cannot be had for %s, its rule decides", text,
               choice->key);
    if (best < 0)
        best = by_rule(choices, choice);
    if (best < 0)
        return lk_fail(LK_E_UNSUPPORTED, "no algorithm does %s", choice->key);
    if (choices)
        LK_TRY(lk_choices_set(choices, choice->key, choice->candidates[best].name));
    *place = best;
    return LK_OK;
}
