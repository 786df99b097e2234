/* Philox4x32-10 for the samples of a V at once: the numbers of lk_random() in base/random.h.
 * Needs lib/real.cl. source: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (SC11)
 */

#if VECTOR == 1
typedef uint U;
#define LANE_NUMBERS 0u
#else
typedef PASTE(uint, VECTOR) U;
#if VECTOR == 16
#define LANE_NUMBERS (U)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#elif VECTOR == 8
#define LANE_NUMBERS (U)(0, 1, 2, 3, 4, 5, 6, 7)
#else
#define LANE_NUMBERS (U)(0, 1, 2, 3)
#endif
#endif

/* The numbers of the work-item's lanes in their batch tile. */
#define LANES_HERE ((uint)(PART * VECTOR) + LANE_NUMBERS)

/* As enum lk_random_purpose. */
#define RANDOM_DROPOUT 2u

struct random4 {
    U v0, v1, v2, v3;
};

INLINE struct random4 random_bits(uint key_low, uint key_high, uint purpose, U stream,
                                  uint index_low, uint index_high)
{
    U c0 = purpose, c1 = stream, c2 = index_low, c3 = index_high;
    for (int round = 0; round < 10; round++) {
        const U high0 = mul_hi((U)0xD2511F53u, c0), low0 = (U)0xD2511F53u * c0;
        const U high1 = mul_hi((U)0xCD9E8D57u, c2), low1 = (U)0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ key_low;
        c1 = low1;
        c2 = high0 ^ c3 ^ key_high;
        c3 = low0;
        key_low += 0x9E3779B9u;
        key_high += 0xBB67AE85u;
    }
    return (struct random4){c0, c1, c2, c3};
}
