/* Transposes filters x lanes, as they lie in memory, to lanes x filters; likewise for channels.
 * Needs lib/real.cl. */

typedef PASTE(REAL, 4) Q;

/* Shuffles of the elements of a and b, each of which becomes one instruction. With as many
 * arguments as a vector has elements: not all compilers know macros of any number. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLES
#endif
#endif
#ifdef HAS_SHUFFLES
#define SHUFFLE_16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)                       \
    __builtin_shufflevector(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
#define SHUFFLE_8(a, b, c, d, e, f, g, h, i, j)                                                \
    __builtin_shufflevector(a, b, c, d, e, f, g, h, i, j)
#define SHUFFLE_4(a, b, c, d, e, f)                                                            \
    __builtin_shufflevector(a, b, c, d, e, f)
#else
#if REAL_BYTES == 8
#define PLACES PASTE(ulong, VECTOR)
#else
#define PLACES PASTE(uint, VECTOR)
#endif
#define SHUFFLE_16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)                       \
    shuffle2(a, b, (PLACES)(c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r))
#define SHUFFLE_8(a, b, c, d, e, f, g, h, i, j)                                                \
    shuffle2(a, b, (PLACES)(c, d, e, f, g, h, i, j))
#define SHUFFLE_4(a, b, c, d, e, f)                                                            \
    shuffle2(a, b, (PLACES)(c, d, e, f))
#endif

/* IN_TURN: of the first or the last halves. PAIRS: of each four numbers, the two first or last
 * ones in turn; HALVES: those of a, then those of b. FOUR_OF_EACH(v, i): four number i of v[0],
 * v[4], v[8]... */
#if VECTOR == 16
#define FIRST_IN_TURN(a, b)                                                                    \
    SHUFFLE_16(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define LAST_IN_TURN(a, b)                                                                     \
    SHUFFLE_16(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define FIRST_PAIRS(a, b)                                                                      \
    SHUFFLE_16(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define LAST_PAIRS(a, b)                                                                       \
    SHUFFLE_16(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define FIRST_HALVES(a, b)                                                                     \
    SHUFFLE_16(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define LAST_HALVES(a, b)                                                                      \
    SHUFFLE_16(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define FOUR_OF_EACH(v, i)                                                                     \
    (V)(((__local const Q *)((v) + 0))[i], ((__local const Q *)((v) + 4))[i],                  \
        ((__local const Q *)((v) + 8))[i], ((__local const Q *)((v) + 12))[i])
#elif VECTOR == 8
#define FIRST_IN_TURN(a, b) SHUFFLE_8(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define LAST_IN_TURN(a, b) SHUFFLE_8(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define FIRST_PAIRS(a, b) SHUFFLE_8(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define LAST_PAIRS(a, b) SHUFFLE_8(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define FIRST_HALVES(a, b) SHUFFLE_8(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define LAST_HALVES(a, b) SHUFFLE_8(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define FOUR_OF_EACH(v, i)                                                                     \
    (V)(((__local const Q *)((v) + 0))[i], ((__local const Q *)((v) + 4))[i])
#else
#define FIRST_IN_TURN(a, b) SHUFFLE_4(a, b, 0, 4, 1, 5)
#define LAST_IN_TURN(a, b) SHUFFLE_4(a, b, 2, 6, 3, 7)
#define FIRST_PAIRS(a, b) SHUFFLE_4(a, b, 0, 4, 1, 5)
#define LAST_PAIRS(a, b) SHUFFLE_4(a, b, 2, 6, 3, 7)
#define FIRST_HALVES(a, b) SHUFFLE_4(a, b, 0, 1, 4, 5)
#define LAST_HALVES(a, b) SHUFFLE_4(a, b, 2, 3, 6, 7)
#define FOUR_OF_EACH(v, i) ((__local const Q *)((v) + 0))[i]
#endif

/* VECTOR vectors of lanes, one for each filter, become as many of filters, one for each lane.
 * Each round interleaves them like the halves of a pack of cards. */
INLINE void transpose(V t[VECTOR])
{
    UNROLL for (int round = 1; round < VECTOR; round *= 2) {
        V u[VECTOR];
        UNROLL for (int i = 0; i < VECTOR / 2; i++) {
            u[2 * i] = FIRST_IN_TURN(t[i], t[i + VECTOR / 2]);
            u[2 * i + 1] = LAST_IN_TURN(t[i], t[i + VECTOR / 2]);
        }
        UNROLL for (int i = 0; i < VECTOR; i++)
            t[i] = u[i];
    }
}

/* --- in two rounds of four vectors, for which a few registers do ------------------------ */

#define FOURS (VECTOR / 4)

/* Of each four numbers, number f of t[0..3] come to t[f]. */
INLINE void transpose_each_four(V t[4])
{
    const V a = FIRST_PAIRS(t[0], t[1]), b = LAST_PAIRS(t[0], t[1]);
    const V c = FIRST_PAIRS(t[2], t[3]), d = LAST_PAIRS(t[2], t[3]);
    t[0] = FIRST_HALVES(a, c);
    t[1] = LAST_HALVES(a, c);
    t[2] = FIRST_HALVES(b, d);
    t[3] = LAST_HALVES(b, d);
}
