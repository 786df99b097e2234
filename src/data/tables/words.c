/* A hash table of words, so that labels are found quickly even among many classes. */
#include "data/tables/words.h"

#include "base/fail.h"
#include "data/sources/source.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* source: FNV-1a, 32 bits */
static uint32_t hash(const char *word)
{
    uint32_t sum = 2166136261U;
    for (; *word; word++)
        sum = (sum ^ (unsigned char)*word) * 16777619U;
    return sum;
}

/* The word's slot, or the free one where it belongs. */
static int find_slot(const struct lk_class_words *words, const char *word)
{
    const uint32_t mask = (uint32_t)words->slot_count - 1;
    uint32_t at = hash(word) & mask;
    while (words->slots[at] && strcmp(words->names.items[words->slots[at] - 1], word) != 0)
        at = (at + 1) & mask;
    return (int)at;
}

static void fill_slots(struct lk_class_words *words)
{
    memset(words->slots, 0, (size_t)words->slot_count * sizeof *words->slots);
    for (int i = 0; i < words->names.count; i++)
        words->slots[find_slot(words, words->names.items[i])] = i + 1;
}

/* Slots for twice as many words as there are: a power of two. */
static enum lk_status make_room(struct lk_class_words *words)
{
    int wanted = words->slot_count ? words->slot_count : 64;
    while (wanted / 2 <= words->names.count)
        wanted *= 2;
    if (wanted == words->slot_count)
        return LK_OK;
    int *slots = calloc((size_t)wanted, sizeof *slots);
    if (!slots)
        return lk_fail_memory("words", (size_t)wanted * sizeof *slots);
    free(words->slots);
    words->slots = slots;
    words->slot_count = wanted;
    fill_slots(words);
    return LK_OK;
}

enum lk_status lk_class_words_add(struct lk_class_words *words, const char *word)
{
    LK_TRY(make_room(words));
    const int slot = find_slot(words, word);
    if (words->slots[slot])
        return LK_OK;
    if (words->names.count >= LK_MOST_CLASSES)
        return lk_fail(LK_E_DATA, "more than %d classes", LK_MOST_CLASSES);
    LK_TRY(lk_names_add(&words->names, word));
    words->slots[slot] = words->names.count;
    return LK_OK;
}

void lk_class_words_sort(struct lk_class_words *words)
{
    lk_names_sort(&words->names);
    if (words->slots)
        fill_slots(words);
}

enum lk_status lk_class_words_read(struct lk_class_words *words, const char *path)
{
    LK_TRY(lk_names_read(&words->names, path));
    return make_room(words);
}

int lk_class_words_find(const struct lk_class_words *words, const char *word)
{
    return words->slots ? words->slots[find_slot(words, word)] - 1 : -1;
}

void lk_class_words_clear(struct lk_class_words *words)
{
    lk_names_clear(&words->names);
    free(words->slots);
    *words = (struct lk_class_words){0};
}
