#include "ops/choice.h"

#include "base/fail.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    char key[LK_CHOICE_KEY_BYTES], text[LK_CHOICE_TEXT_BYTES];
};

struct lk_choices {
    enum lk_math math;
    pthread_mutex_t lock;
    char preferred[LK_CHOICE_TEXT_BYTES];
    struct choice *list; /* in order of keys */
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
    return is_there;
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

void lk_choices_each(struct lk_choices *choices,
                     void (*visit)(void *context, const char *key, const char *text),
                     void *context)
{
    pthread_mutex_lock(&choices->lock);
    for (int i = 0; i < choices->count; i++)
        visit(context, choices->list[i].key, choices->list[i].text);
    pthread_mutex_unlock(&choices->lock);
}

static bool can(const struct lk_choices *choices, const struct lk_candidate *candidate)
{
    return candidate->cost >= 0 && candidate->math <= lk_choices_math(choices);
}

static int named(const struct lk_choices *choices, const struct lk_candidate *candidates,
                 int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(candidates[i].name, name) == 0 && can(choices, &candidates[i]))
            return i;
    return -1;
}

enum lk_status lk_choices_make(struct lk_choices *choices, const char *key,
                               const struct lk_candidate *candidates, int count, int *place)
{
    char text[LK_CHOICE_TEXT_BYTES];
    int best = -1;
    if (lk_choices_find(choices, key, text))
        best = named(choices, candidates, count, text);
    if (best < 0 && choices && *choices->preferred)
        best = named(choices, candidates, count, choices->preferred);
    if (best < 0)
        for (int i = 0; i < count; i++)
            if (can(choices, &candidates[i]) &&
                (best < 0 || candidates[i].cost < candidates[best].cost))
                best = i;
    if (best < 0)
        return lk_fail(LK_E_UNSUPPORTED, "no algorithm does %s", key);
    if (choices)
        LK_TRY(lk_choices_set(choices, key, candidates[best].name));
    *place = best;
    return LK_OK;
}
