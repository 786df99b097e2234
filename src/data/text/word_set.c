/* A hash table of words with their counts. */
#include "data/text/word_set.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

/* source: FNV-1a, 64 bits */
static uint64_t hash(const char *bytes, size_t length)
{
    uint64_t sum = 14695981039346656037U;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211U;
    return sum ^ sum >> 32;
}

/* The word's slot, or the free one where it belongs. */
static int64_t find_slot(const struct lk_word_set *set, const char *bytes, size_t length)
{
    const uint64_t mask = (uint64_t)set->slot_count - 1;
    uint64_t at = hash(bytes, length) & mask;
    for (; set->slots[at]; at = (at + 1) & mask) {
        const struct lk_word *word = &set->items[set->slots[at] - 1];
        if (word->length == length && memcmp(word->bytes, bytes, length) == 0)
            break;
    }
    return (int64_t)at;
}

static void fill_slots(struct lk_word_set *set)
{
    memset(set->slots, 0, (size_t)set->slot_count * sizeof *set->slots);
    for (int64_t i = 0; i < set->count; i++)
        set->slots[find_slot(set, set->items[i].bytes, set->items[i].length)] = i + 1;
}

static enum lk_status make_room(struct lk_word_set *set)
{
    if (set->count == set->room) {
        const int64_t room = set->room ? 2 * set->room : 256;
        struct lk_word *items = realloc(set->items, (size_t)room * sizeof *items);
        if (!items)
            return lk_fail_memory("words", (size_t)room * sizeof *items);
        set->items = items;
        set->room = room;
    }
    if (set->slot_count / 2 > set->count)
        return LK_OK;
    const int64_t wanted = set->slot_count ? 2 * set->slot_count : 1024;
    int64_t *slots = calloc((size_t)wanted, sizeof *slots);
    if (!slots)
        return lk_fail_memory("words", (size_t)wanted * sizeof *slots);
    free(set->slots);
    set->slots = slots;
    set->slot_count = wanted;
    fill_slots(set);
    return LK_OK;
}

enum lk_status lk_word_set_add(struct lk_word_set *set, const char *bytes, size_t length,
                               int64_t times)
{
    void *copy = NULL;
    LK_TRY(make_room(set));
    const int64_t slot = find_slot(set, bytes, length);
    if (set->slots[slot]) {
        set->items[set->slots[slot] - 1].count += times;
        return LK_OK;
    }
    LK_TRY(lk_arena_allocate(&set->arena, length + 1, &copy));
    memcpy(copy, bytes, length);
    set->items[set->count++] =
        (struct lk_word){.bytes = copy, .length = (uint32_t)length, .count = times};
    set->slots[slot] = set->count;
    return LK_OK;
}

int64_t lk_word_set_find(const struct lk_word_set *set, const char *bytes, size_t length)
{
    return set->slots ? set->slots[find_slot(set, bytes, length)] - 1 : -1;
}

int lk_word_compare(const struct lk_word *a, const struct lk_word *b)
{
    const size_t shared = a->length < b->length ? a->length : b->length;
    const int order = memcmp(a->bytes, b->bytes, shared);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_ranks(const void *a, const void *b)
{
    const struct lk_word *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return lk_word_compare(y, x);
}

void lk_word_set_rank(struct lk_word_set *set, int64_t most, int64_t least)
{
    if (set->count == 0)
        return;
    qsort(set->items, (size_t)set->count, sizeof *set->items, compare_ranks);
    if (set->count > most)
        set->count = most;
    while (set->count > 0 && set->items[set->count - 1].count < least)
        set->count--;
    fill_slots(set);
}

void lk_word_set_clear(struct lk_word_set *set)
{
    lk_arena_clear(&set->arena);
    free(set->items);
    free(set->slots);
    *set = (struct lk_word_set){0};
}
