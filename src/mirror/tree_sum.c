/* Adds terms along the tree in registers, with checksums, for one thread. */
#include "mirror/tree_sum.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* A granule of each term is added in registers, so that the speed of memory is the limit:
 * longer vectors than 16 bytes are no faster (measured on AVX-512, 4 terms). */
enum { LANES = 4, VECTORS = LK_TREE_SUM_GRANULE / 16, MOST_OPEN = 9 };

/* How many bytes ahead is prefetched. The hardware's own prefetcher stops at the end of a page;
 * this makes sums of 4 terms a third faster. */
enum { AHEAD = 2048 };

typedef uint32_t words __attribute__((vector_size(16), may_alias));
typedef uint32_t loose_words __attribute__((vector_size(16), aligned(4), may_alias));
typedef float floats __attribute__((vector_size(16), may_alias));
typedef double doubles __attribute__((vector_size(16), may_alias));

#define ALWAYS __attribute__((always_inline))

/* A checksum without multiplications. After m vectors v[0], v[1], ... `sum` is their sum, and
 * `sums` is the sum of the values that `sum` had after each; so the weighted sum over k of
 * k * v[k] is m * sum - sums. */
struct check {
    words sum, sums;
};

static inline ALWAYS words add(words a, words b, bool is_double)
{
    return is_double ? (words)((doubles)a + (doubles)b) : (words)((floats)a + (floats)b);
}

static inline ALWAYS words subtract(words a, words b, bool is_double)
{
    return is_double ? (words)((doubles)a - (doubles)b) : (words)((floats)a - (floats)b);
}

static inline ALWAYS void check(struct check *c, const words v[VECTORS])
{
    for (int k = 0; k < VECTORS; k++) {
        c->sum += v[k];
        c->sums += c->sum;
    }
}

/* The checksum of `vectors` vectors from byte `first`. */
static uint32_t finish(const struct check *c, size_t first, uint32_t vectors)
{
    uint32_t total = 0;
    for (uint32_t j = 0; j < LANES; j++) {
        const uint32_t weight = 2 * ((uint32_t)(first / 4) + j) + 1;
        total += weight * c->sum[j] + 2 * LANES * (vectors * c->sum[j] - c->sums[j]);
    }
    return total;
}

/* Loads a granule. partial: the bytes of an incomplete one, whose rest counts as 0; 0: it is
 * complete. */
static inline ALWAYS void load(const void *from, words v[VECTORS], size_t partial)
{
    if (partial) {
        memset(v, 0, LK_TREE_SUM_GRANULE);
        memcpy(v, from, partial);
        return;
    }
    for (int line = 0; line < LK_TREE_SUM_GRANULE; line += 64)
        __builtin_prefetch((const char *)from + AHEAD + line, 0, 2);
    for (int k = 0; k < VECTORS; k++)
        v[k] = ((const loose_words *)from)[k];
}

static inline ALWAYS void store(void *to, const words v[VECTORS], size_t partial,
                                bool is_streamed)
{
    if (partial) {
        memcpy(to, v, partial);
        return;
    }
#ifdef __SSE2__
    if (is_streamed && (uintptr_t)to % sizeof(words) == 0) {
        for (int k = 0; k < VECTORS; k++)
            _mm_stream_si128((__m128i *)to + k, (__m128i)v[k]);
        return;
    }
#else
    (void)is_streamed;
#endif
    for (int k = 0; k < VECTORS; k++)
        ((loose_words *)to)[k] = v[k];
}

/* Adds the terms of a granule. After each term as many pairs of siblings are joined as it
 * completes, like the carries of a binary counter. */
static inline ALWAYS void join_terms(const struct lk_tree_sum *s, size_t at, size_t partial,
                                     bool is_double, struct check *checks, words v[VECTORS])
{
    words open[MOST_OPEN][VECTORS];
    int t = 0, top = 0;
    do {
        load((const char *)s->terms[t].values + at, v, partial);
        if (checks)
            check(&checks[t], v);
        for (int joins = s->joins[t]; joins > 0; joins--) {
            top--;
            for (int k = 0; k < VECTORS; k++)
                v[k] = add(open[top][k], v[k], is_double);
        }
        for (int k = 0; k < VECTORS; k++)
            open[top][k] = v[k];
        top++;
    } while (++t < s->term_count);
}

/* Returns whether all sums were finite, where that is checked. */
static inline ALWAYS bool walk(const struct lk_tree_sum *s, size_t first, size_t end,
                               size_t partial, bool is_double, struct check *checks)
{
    words odd = {0};
    for (size_t at = first; at < end; at += LK_TREE_SUM_GRANULE) {
        words v[VECTORS];
        join_terms(s, at, partial, is_double, checks, v);
        if (checks) {
            check(&checks[s->term_count], v);
            for (int k = 0; k < VECTORS; k++) /* x - x is 0, or NaN where x is not finite */
                odd = add(odd, subtract(v[k], v[k], is_double), is_double);
        }
        for (int c = 0; c < s->copy_count; c++)
            store((char *)s->copies[c] + at, v, partial, s->is_streamed);
    }
    const doubles d = (doubles)odd;
    const floats f = (floats)odd;
    return is_double ? d[0] + d[1] == 0 : f[0] + f[1] + f[2] + f[3] == 0;
}

/* Calls walk() with constants for each case, so that its loop contains no conditions. */
static bool walk_whole(const struct lk_tree_sum *s, size_t first, size_t end,
                       struct check *checks)
{
    if (s->is_double)
        return checks ? walk(s, first, end, 0, true, checks)
                      : walk(s, first, end, 0, true, NULL);
    return checks ? walk(s, first, end, 0, false, checks) : walk(s, first, end, 0, false, NULL);
}

static bool walk_all(const struct lk_tree_sum *s, size_t first, size_t bytes,
                     struct check *checks)
{
    const size_t partial = bytes % LK_TREE_SUM_GRANULE, end = first + bytes - partial;
    const bool whole = walk_whole(s, first, end, checks);
    return (!partial || walk(s, end, end + 1, partial, s->is_double, checks)) && whole;
}

void lk_tree_sum(const struct lk_tree_sum *sum, size_t first, size_t bytes,
                 struct lk_checks *checks)
{
    const size_t granules = (bytes + LK_TREE_SUM_GRANULE - 1) / LK_TREE_SUM_GRANULE;
    const uint32_t vectors = (uint32_t)granules * VECTORS;
    struct check found[LK_MOST_SHARDS + 1];
    if (!checks) {
        walk_all(sum, first, bytes, NULL);
        return;
    }
    memset(found, 0, (size_t)(sum->term_count + 1) * sizeof *found);
    if (!walk_all(sum, first, bytes, found))
        checks->is_infinite = true;
    for (int t = 0; t < sum->term_count; t++)
        checks->terms[t] += finish(&found[t], first, vectors);
    checks->sum += finish(&found[sum->term_count], first, vectors);
}

void lk_tree_sum_flush(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}
