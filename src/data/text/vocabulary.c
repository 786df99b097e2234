/* Turns pieces of texts into numbers, and numbers into bytes. */
#include "data/text/vocabulary.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

static const char unknown[] = "[UNK]";

int64_t lk_vocabulary_size(const struct lk_vocabulary *vocabulary)
{
    if (vocabulary->unit == LK_UNIT_BYTE)
        return 256;
    if (vocabulary->unit == LK_UNIT_PAIRS)
        return LK_PAIRS_BYTES + vocabulary->join_count;
    return LK_TOKEN_FIRST + vocabulary->words.count;
}

void lk_vocabulary_clear(struct lk_vocabulary *vocabulary)
{
    lk_word_set_clear(&vocabulary->words);
    free(vocabulary->joins);
    free(vocabulary->slots);
    *vocabulary = (struct lk_vocabulary){0};
}

void lk_vocabulary_take_words(struct lk_vocabulary *vocabulary, struct lk_word_set *words,
                              int64_t most, int64_t least)
{
    if (most > LK_MOST_VOCABULARY)
        most = LK_MOST_VOCABULARY;
    lk_word_set_rank(words, most > LK_TOKEN_FIRST ? most - LK_TOKEN_FIRST : 0, least);
    vocabulary->words = *words;
    vocabulary->is_there = true;
    *words = (struct lk_word_set){0};
}

/* --- joins ------------------------------------------------------------------------------- */

static uint64_t hash(int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    key = (key ^ key >> 33) * 0xFF51AFD7ED558CCDU; /* source: MurmurHash3, its last steps */
    return key ^ key >> 33;
}

/* The slot of a join, or the free one where it belongs. */
static int64_t find_slot(const struct lk_vocabulary *v, int32_t left, int32_t right)
{
    const uint64_t mask = (uint64_t)v->slot_count - 1;
    uint64_t at = hash(left, right) & mask;
    while (v->slots[at] &&
           (v->joins[v->slots[at] - 1][0] != left || v->joins[v->slots[at] - 1][1] != right))
        at = (at + 1) & mask;
    return (int64_t)at;
}

enum lk_status lk_vocabulary_take_joins(struct lk_vocabulary *vocabulary, int32_t (*joins)[2],
                                        int64_t count)
{
    int64_t slots = 1024;
    while (slots / 2 < count)
        slots *= 2;
    vocabulary->unit = LK_UNIT_PAIRS;
    vocabulary->joins = joins;
    vocabulary->slots = calloc((size_t)slots, sizeof *vocabulary->slots);
    if (!vocabulary->slots)
        return lk_fail_memory("a vocabulary", (size_t)slots * sizeof *vocabulary->slots);
    vocabulary->slot_count = slots;
    for (int64_t i = 0; i < count; i++) {
        for (int side = 0; side < 2; side++)
            if (joins[i][side] < LK_TOKEN_FIRST || joins[i][side] >= LK_PAIRS_BYTES + i)
                return lk_fail(LK_E_DATA, "join %lld is of %d and %d, expected are 2..%lld",
                               (long long)i, joins[i][0], joins[i][1],
                               (long long)(LK_PAIRS_BYTES + i - 1));
        const int64_t slot = find_slot(vocabulary, joins[i][0], joins[i][1]);
        if (vocabulary->slots[slot])
            return lk_fail(LK_E_DATA, "join %lld, of %d and %d, is there twice", (long long)i,
                           joins[i][0], joins[i][1]);
        vocabulary->slots[slot] = i + 1;
    }
    vocabulary->join_count = count;
    vocabulary->is_there = true;
    return LK_OK;
}

/* --- from text to numbers ---------------------------------------------------------------- */

enum lk_status lk_tokens_add(struct lk_tokens *tokens, int32_t token)
{
    if (tokens->count == tokens->room) {
        const int64_t room = tokens->room ? 2 * tokens->room : 1024;
        int32_t *items = realloc(tokens->items, (size_t)room * sizeof *items);
        if (!items)
            return lk_fail_memory("tokens", (size_t)room * sizeof *items);
        tokens->items = items;
        tokens->room = room;
    }
    tokens->items[tokens->count++] = token;
    return LK_OK;
}

/* Joins neighbours of the last tokens, from `first` on, in the order in which they were
 * learned: the earliest join that is possible, wherever it stands, then the next one. */
static void join(const struct lk_vocabulary *v, struct lk_tokens *tokens, int64_t first)
{
    for (;;) {
        int64_t best = INT64_MAX, kept = first;
        for (int64_t i = first; i + 1 < tokens->count; i++) {
            const int64_t found =
                v->slots[find_slot(v, tokens->items[i], tokens->items[i + 1])];
            if (found && found < best)
                best = found;
        }
        if (best == INT64_MAX)
            return;
        const int32_t *two = v->joins[best - 1];
        for (int64_t i = first; i < tokens->count; i++) {
            const bool is_one = i + 1 < tokens->count && tokens->items[i] == two[0] &&
                                tokens->items[i + 1] == two[1];
            tokens->items[kept++] =
                is_one ? (int32_t)(LK_PAIRS_BYTES + best - 1) : tokens->items[i];
            i += is_one;
        }
        tokens->count = kept;
    }
}

enum lk_status lk_vocabulary_encode(const struct lk_vocabulary *vocabulary, const char *text,
                                    size_t bytes, struct lk_tokens *tokens)
{
    const char *at = text, *end = text + bytes, *piece;
    size_t length;
    while (lk_text_next(vocabulary->unit, &at, end, &piece, &length)) {
        if (vocabulary->unit == LK_UNIT_BYTE) {
            LK_TRY(lk_tokens_add(tokens, (unsigned char)*piece));
        } else if (vocabulary->unit == LK_UNIT_PAIRS) {
            const int64_t first = tokens->count;
            for (size_t i = 0; i < length; i++)
                LK_TRY(lk_tokens_add(tokens, LK_TOKEN_FIRST + (unsigned char)piece[i]));
            join(vocabulary, tokens, first);
        } else {
            const int64_t word = lk_word_set_find(&vocabulary->words, piece, length);
            LK_TRY(lk_tokens_add(tokens,
                                 word < 0 ? LK_TOKEN_UNKNOWN : LK_TOKEN_FIRST + (int32_t)word));
        }
    }
    return LK_OK;
}

int64_t lk_vocabulary_fill(const struct lk_vocabulary *vocabulary, const int32_t *tokens,
                           int64_t count, int64_t length, int32_t *to)
{
    const int64_t kept = count < length ? count : length;
    const int64_t from = vocabulary->cuts_start ? count - kept : 0;
    for (int64_t i = 0; i < length; i++)
        to[i] = i < kept ? tokens[from + i] : LK_TOKEN_PADDING;
    return kept;
}

/* --- from numbers to text ---------------------------------------------------------------- */

static enum lk_status append(struct lk_text_room *text, const char *bytes, size_t count)
{
    if (text->used + count > text->room) {
        const size_t room = 2 * (text->used + count) + 64;
        char *grown = realloc(text->bytes, room);
        if (!grown)
            return lk_fail_memory("a text", room);
        text->bytes = grown;
        text->room = room;
    }
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
    return LK_OK;
}

/* Appends what a join stands for, the left one first. Joins are of numbers below their own; the
 * stack holds the right ones that are still to come, of which there are fewer than bytes. A
 * file may have joins that double at each step: what no text of ours has is refused. */
static enum lk_status append_join(const struct lk_vocabulary *v, int32_t token,
                                  struct lk_text_room *text)
{
    enum { MOST_BYTES = 4096 };
    const size_t before = text->used;
    struct lk_tokens waiting = {0};
    enum lk_status status = lk_tokens_add(&waiting, token);
    while (status == LK_OK && waiting.count > 0) {
        const int32_t next = waiting.items[--waiting.count];
        if (next < LK_PAIRS_BYTES) {
            const char byte = (char)(next - LK_TOKEN_FIRST);
            status = text->used - before < MOST_BYTES
                         ? append(text, &byte, 1)
                         : lk_fail(LK_E_DATA, "token %d stands for more than %d bytes", token,
                                   MOST_BYTES);
            continue;
        }
        status = lk_tokens_add(&waiting, v->joins[next - LK_PAIRS_BYTES][1]);
        if (status == LK_OK)
            status = lk_tokens_add(&waiting, v->joins[next - LK_PAIRS_BYTES][0]);
    }
    free(waiting.items);
    return status;
}

enum lk_status lk_vocabulary_decode(const struct lk_vocabulary *vocabulary, int32_t token,
                                    struct lk_text_room *text)
{
    const struct lk_vocabulary *v = vocabulary;
    if (token < 0 || token >= lk_vocabulary_size(v))
        return lk_fail(LK_E_DATA, "token %d is none of the vocabulary's %lld", token,
                       (long long)lk_vocabulary_size(v));
    if (token == LK_TOKEN_PADDING)
        return LK_OK;
    if (v->unit == LK_UNIT_BYTE)
        return append(text, &(const char){(char)token}, 1);
    if (v->unit == LK_UNIT_WORD && text->used > 0)
        LK_TRY(append(text, " ", 1));
    if (token == LK_TOKEN_UNKNOWN)
        return append(text, unknown, sizeof unknown - 1);
    if (v->unit == LK_UNIT_PAIRS)
        return append_join(v, token, text);
    const struct lk_word *word = &v->words.items[token - LK_TOKEN_FIRST];
    return append(text, word->bytes, word->length);
}
