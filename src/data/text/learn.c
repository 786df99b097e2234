/* Learns joins: a heap knows the most frequent pair, and each pair the pieces it stands in, so
 * that a join looks at no others. */
#include "data/text/learn.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

/* A distinct piece, as the tokens that it consists of by now. */
struct piece {
    int32_t *tokens; /* [length] */
    int32_t length;
    int64_t count;
};

struct pair {
    int32_t left, right;
    int64_t count;
    int64_t *places; /* [place_count] pieces that it is, or was, in */
    int64_t place_count, place_room;
};

/* A pair with the count that it had; one that has changed since is put back with its new one.
 */
struct entry {
    int64_t count, pair;
};

struct learner {
    struct piece *pieces; /* [piece_count] */
    int64_t piece_count;
    int32_t *tokens; /* of all pieces */
    struct pair *pairs;
    int64_t pair_count, pair_room;
    int64_t *slots; /* [slot_count] pairs + 1, by hash; 0: free */
    int64_t slot_count;
    struct entry *heap; /* [heap_count], the first is the most frequent */
    int64_t heap_count, heap_room;
};

static void clear(struct learner *l)
{
    for (int64_t i = 0; i < l->pair_count; i++)
        free(l->pairs[i].places);
    free(l->pieces);
    free(l->tokens);
    free(l->pairs);
    free(l->slots);
    free(l->heap);
}

/* Makes room for one more item of `size` bytes. */
static enum lk_status grow(void **items, int64_t count, int64_t *room, size_t size)
{
    if (count < *room)
        return LK_OK;
    const int64_t wanted = *room ? 2 * *room : 4;
    void *grown = realloc(*items, (size_t)wanted * size);
    if (!grown)
        return lk_fail_memory("pairs of tokens", (size_t)wanted * size);
    *items = grown;
    *room = wanted;
    return LK_OK;
}

/* --- heap -------------------------------------------------------------------------------- */

static bool comes_before(const struct learner *l, const struct entry *a, const struct entry *b)
{
    const struct pair *x = &l->pairs[a->pair], *y = &l->pairs[b->pair];
    if (a->count != b->count)
        return a->count > b->count;
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static enum lk_status push(struct learner *l, int64_t pair)
{
    void *items = l->heap;
    LK_TRY(grow(&items, l->heap_count, &l->heap_room, sizeof *l->heap));
    l->heap = items;
    const struct entry entry = {l->pairs[pair].count, pair};
    int64_t at = l->heap_count++;
    for (int64_t above; at > 0 && comes_before(l, &entry, &l->heap[above = (at - 1) / 2]);
         at = above)
        l->heap[at] = l->heap[above];
    l->heap[at] = entry;
    return LK_OK;
}

static struct entry pop(struct learner *l)
{
    const struct entry first = l->heap[0], last = l->heap[--l->heap_count];
    int64_t at = 0;
    for (int64_t below; (below = 2 * at + 1) < l->heap_count; at = below) {
        if (below + 1 < l->heap_count && comes_before(l, &l->heap[below + 1], &l->heap[below]))
            below++;
        if (!comes_before(l, &l->heap[below], &last))
            break;
        l->heap[at] = l->heap[below];
    }
    l->heap[at] = last;
    return first;
}

/* --- pairs ------------------------------------------------------------------------------- */

static int64_t find_slot(const struct learner *l, int32_t left, int32_t right)
{
    const uint64_t mask = (uint64_t)l->slot_count - 1;
    uint64_t at = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15U;
    at = (at ^ at >> 32) & mask;
    while (l->slots[at] && (l->pairs[l->slots[at] - 1].left != left ||
                            l->pairs[l->slots[at] - 1].right != right))
        at = (at + 1) & mask;
    return (int64_t)at;
}

static enum lk_status make_slots(struct learner *l)
{
    if (l->slot_count / 2 > l->pair_count)
        return LK_OK;
    const int64_t wanted = l->slot_count ? 2 * l->slot_count : 1 << 16;
    int64_t *slots = calloc((size_t)wanted, sizeof *slots);
    if (!slots)
        return lk_fail_memory("pairs of tokens", (size_t)wanted * sizeof *slots);
    free(l->slots);
    l->slots = slots;
    l->slot_count = wanted;
    for (int64_t i = 0; i < l->pair_count; i++)
        slots[find_slot(l, l->pairs[i].left, l->pairs[i].right)] = i + 1;
    return LK_OK;
}

/* Adds `times` to the count of two neighbours. The piece at `place` that has them is noted, if
 * there is one (not below 0) and the count grows. */
static enum lk_status add_pair(struct learner *l, const int32_t two[2], int64_t times,
                               int64_t place)
{
    LK_TRY(make_slots(l));
    const int64_t slot = find_slot(l, two[0], two[1]);
    if (!l->slots[slot]) {
        void *items = l->pairs;
        LK_TRY(grow(&items, l->pair_count, &l->pair_room, sizeof *l->pairs));
        l->pairs = items;
        l->pairs[l->pair_count++] = (struct pair){.left = two[0], .right = two[1]};
        l->slots[slot] = l->pair_count;
    }
    struct pair *pair = &l->pairs[l->slots[slot] - 1];
    pair->count += times;
    const bool is_noted = pair->place_count > 0 && pair->places[pair->place_count - 1] == place;
    if (times <= 0 || place < 0 || is_noted)
        return LK_OK;
    void *places = pair->places;
    LK_TRY(grow(&places, pair->place_count, &pair->place_room, sizeof *pair->places));
    pair->places = places;
    pair->places[pair->place_count++] = place;
    return LK_OK;
}

/* Joins two neighbours wherever they stand in a piece, from left to right. */
static enum lk_status join_in(struct learner *l, int64_t place, const int32_t two[2],
                              int32_t token)
{
    struct piece *piece = &l->pieces[place];
    int32_t *t = piece->tokens, kept = 0;
    bool is_there = false;
    for (int32_t i = 0; i + 1 < piece->length; i++)
        is_there = is_there || (t[i] == two[0] && t[i + 1] == two[1]);
    if (!is_there)
        return LK_OK;
    for (int32_t i = 0; i + 1 < piece->length; i++)
        LK_TRY(add_pair(l, t + i, -piece->count, place));
    for (int32_t i = 0; i < piece->length; i++) {
        const bool is_pair = i + 1 < piece->length && t[i] == two[0] && t[i + 1] == two[1];
        t[kept++] = is_pair ? token : t[i];
        i += is_pair;
    }
    piece->length = kept;
    for (int32_t i = 0; i + 1 < kept; i++) {
        const bool is_new = t[i] == token || t[i + 1] == token;
        LK_TRY(add_pair(l, t + i, piece->count, is_new ? place : -1));
    }
    return LK_OK;
}

/* --- learning ---------------------------------------------------------------------------- */

static enum lk_status begin(struct learner *l, const struct lk_word_set *pieces)
{
    size_t bytes = 1;
    for (int64_t i = 0; i < pieces->count; i++)
        bytes += pieces->items[i].length;
    l->pieces = calloc((size_t)pieces->count + 1, sizeof *l->pieces);
    l->tokens = malloc(bytes * sizeof *l->tokens);
    if (!l->pieces || !l->tokens)
        return lk_fail_memory("pieces of texts", bytes * sizeof *l->tokens);
    int32_t *next = l->tokens;
    for (int64_t i = 0; i < pieces->count; i++) {
        const struct lk_word *word = &pieces->items[i];
        l->pieces[l->piece_count++] = (struct piece){next, (int32_t)word->length, word->count};
        for (uint32_t k = 0; k < word->length; k++)
            *next++ = LK_TOKEN_FIRST + (unsigned char)word->bytes[k];
        for (uint32_t k = 0; k + 1 < word->length; k++)
            LK_TRY(add_pair(l, l->pieces[i].tokens + k, word->count, i));
    }
    for (int64_t i = 0; i < l->pair_count; i++)
        LK_TRY(push(l, i));
    return LK_OK;
}

/* The most frequent pair; -1: none is there `least` times. */
static enum lk_status find_best(struct learner *l, int64_t least, int64_t *best)
{
    *best = -1;
    while (l->heap_count > 0 && *best < 0) {
        const struct entry entry = pop(l);
        const int64_t count = l->pairs[entry.pair].count;
        if (count == entry.count && count >= least)
            *best = entry.pair;
        else if (count >= least)
            LK_TRY(push(l, entry.pair));
    }
    return LK_OK;
}

static enum lk_status join(struct learner *l, int64_t best, int32_t token)
{
    const int32_t two[2] = {l->pairs[best].left, l->pairs[best].right};
    const int64_t first = l->pair_count, count = l->pairs[best].place_count;
    int64_t *places = l->pairs[best].places;
    enum lk_status status = LK_OK;
    l->pairs[best].places = NULL;
    l->pairs[best].place_count = l->pairs[best].place_room = 0;
    for (int64_t i = 0; i < count && status == LK_OK; i++)
        status = join_in(l, places[i], two, token);
    free(places);
    for (int64_t i = first; i < l->pair_count && status == LK_OK; i++)
        status = push(l, i); /* those with the new token; no other has become more frequent */
    return status;
}

enum lk_status lk_text_learn(const struct lk_word_set *pieces, int64_t size, int64_t least,
                             int32_t (**joins)[2], int64_t *count, int64_t *tokens)
{
    struct learner l = {0};
    const int64_t most = size > LK_PAIRS_BYTES ? size - LK_PAIRS_BYTES : 0;
    int32_t(*made)[2] = calloc((size_t)most + 1, sizeof *made);
    enum lk_status status = made ? begin(&l, pieces) : lk_fail_memory("joins", (size_t)most);
    int64_t used = 0, best = 0, all = 0;
    while (status == LK_OK && used < most) {
        status = find_best(&l, least < 2 ? 2 : least, &best);
        if (status != LK_OK || best < 0)
            break;
        made[used][0] = l.pairs[best].left;
        made[used][1] = l.pairs[best].right;
        status = join(&l, best, (int32_t)(LK_PAIRS_BYTES + used++));
    }
    for (int64_t i = 0; i < l.piece_count && status == LK_OK; i++)
        all += l.pieces[i].length * l.pieces[i].count;
    clear(&l);
    if (status != LK_OK) {
        free(made);
        return status;
    }
    *joins = made;
    *count = used;
    *tokens = all;
    return LK_OK;
}
