/* Random numbers as a pure function of (seed, purpose, stream, index): they do not depend on
 * the thread or device that asks, nor on the order of the calls. Floor 0. */
#ifndef LK_BASE_RANDOM_H
#define LK_BASE_RANDOM_H

#include <stdint.h>

/* What a number is used for. It is part of the generator's counter, so that two purposes never
 * get the same numbers. New ones go to the end: the values decide the bits of a run. */
enum lk_random_purpose {
    LK_RANDOM_INIT,
    LK_RANDOM_SHUFFLE,
    LK_RANDOM_DROPOUT,
    LK_RANDOM_DATA,
    LK_RANDOM_AUGMENT,
    LK_RANDOM_TRANSFORM,
    LK_RANDOM_CROP,
    LK_RANDOM_HOLD_OUT,
    LK_RANDOM_GENERATE,
    LK_RANDOM_BUCKET,
    LK_RANDOM_PAIR,
    LK_RANDOM_SWEEP
};

struct lk_random4 {
    uint32_t v[4];
};

/* Philox4x32-10 with key = seed and counter (purpose, stream, index low, index high).
 * The kernels' cl/lib/random.cl gives the same numbers. Thread-safe, no state.
 * source: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (SC11) */
struct lk_random4 lk_random(uint64_t seed, enum lk_random_purpose purpose, uint32_t stream,
                            uint64_t index);

/* A double in [0, 1) of 32 random bits. */
double lk_random_unit(uint32_t bits);

#endif
