/* The inner loops of scaling images, for processors with AVX2. */
#include "io/image/resize_avx2.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#define WIDE __attribute__((target("avx2")))

/* ROWS: rows that are scaled at the same time, one in each byte of a vector. */
enum { ROWS = 16, HALF = 1 << (LK_WEIGHT_BITS - 1) };

bool lk_avx2_is_available(void)
{
    const char *said = getenv("LOCKSTEP_WIDE");
    return __builtin_cpu_supports("avx2") && !(said && strcmp(said, "0") == 0);
}

/* Sixteen sums of bytes times weights, as 32-bit integers. */
struct sums {
    __m256i low, high;
};

WIDE static inline struct sums begin(void)
{
    return (struct sums){_mm256_set1_epi32(HALF), _mm256_set1_epi32(HALF)};
}

WIDE static inline void add(struct sums *sums, __m128i bytes, int32_t weight)
{
    const __m256i by = _mm256_set1_epi32(weight);
    const __m256i low = _mm256_cvtepu8_epi32(bytes);
    const __m256i high = _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8));
    sums->low = _mm256_add_epi32(sums->low, _mm256_mullo_epi32(low, by));
    sums->high = _mm256_add_epi32(sums->high, _mm256_mullo_epi32(high, by));
}

/* Rounds the sums to bytes; none is below 0 or above 255. */
WIDE static inline __m128i finish(const struct sums *sums)
{
    const __m256i low = _mm256_srli_epi32(sums->low, LK_WEIGHT_BITS);
    const __m256i high = _mm256_srli_epi32(sums->high, LK_WEIGHT_BITS);
    const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    return _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}

WIDE static inline __m128i load(const uint8_t *from, size_t bytes)
{
    uint8_t part[ROWS] = {0};
    if (bytes >= ROWS)
        return _mm_loadu_si128((const __m128i *)(const void *)from);
    memcpy(part, from, bytes);
    return _mm_loadu_si128((const __m128i *)(const void *)part);
}

WIDE static inline void store(__m128i value, uint8_t *to, size_t bytes)
{
    uint8_t part[ROWS];
    if (bytes >= ROWS) {
        _mm_storeu_si128((__m128i *)(void *)to, value);
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)part, value);
    memcpy(to, part, bytes);
}

/* Transposes a square of ROWS x ROWS bytes, by interleaving its rows four times. */
WIDE static inline void turn(__m128i square[ROWS])
{
    for (int round = 0; round < 4; round++) {
        __m128i next[ROWS];
        for (int i = 0; i < ROWS / 2; i++) {
            next[2 * i] = _mm_unpacklo_epi8(square[i], square[i + ROWS / 2]);
            next[2 * i + 1] = _mm_unpackhi_epi8(square[i], square[i + ROWS / 2]);
        }
        memcpy(square, next, sizeof next);
    }
}

/* Transposes `count` rows of `bytes` bytes to [bytes, rounded up][ROWS]; where there are fewer
 * than ROWS rows the last one is repeated. */
WIDE static void turn_in(const uint8_t *from, size_t bytes, int count, uint8_t *to)
{
    for (size_t at = 0; at < bytes; at += ROWS, to += ROWS * ROWS) {
        __m128i square[ROWS];
        for (int r = 0; r < ROWS; r++)
            square[r] =
                load(from + (size_t)(r < count ? r : count - 1) * bytes + at, bytes - at);
        turn(square);
        for (int r = 0; r < ROWS; r++)
            store(square[r], to + r * ROWS, ROWS);
    }
}

/* Transposes back to rows. */
WIDE static void turn_out(const uint8_t *from, size_t bytes, int count, uint8_t *to)
{
    for (size_t at = 0; at < bytes; at += ROWS, from += ROWS * ROWS) {
        __m128i square[ROWS];
        for (int r = 0; r < ROWS; r++)
            square[r] = load(from + r * ROWS, ROWS);
        turn(square);
        for (int r = 0; r < count; r++)
            store(square[r], to + (size_t)r * bytes + at, bytes - at);
    }
}

/* Scales ROWS transposed rows at a time. x: [old bytes][ROWS], y: [bytes][ROWS]: a vector holds
 * the same byte of all rows, so it is full whatever the number of channels. */
WIDE static void squeeze_block(const struct lk_taps *taps, int width, int channels,
                               const uint8_t *x, uint8_t *y)
{
    for (int i = 0; i < width; i++) {
        const int32_t *weights = taps->weights + (size_t)i * (size_t)taps->most;
        const uint8_t *first = x + (size_t)taps->first[i] * (size_t)channels * ROWS;
        for (int c = 0; c < channels; c++, y += ROWS) {
            const uint8_t *p = first + c * ROWS;
            struct sums sums = begin();
            for (int k = 0; k < taps->count[i]; k++, p += channels * ROWS)
                add(&sums, load(p, ROWS), weights[k]);
            store(finish(&sums), y, ROWS);
        }
    }
}

static size_t turned_bytes(int width, int channels)
{
    return ((size_t)width * (size_t)channels + ROWS) * ROWS;
}

size_t lk_avx2_scratch_bytes(const int size[3])
{
    return turned_bytes(size[0], size[2]) + turned_bytes(size[1], size[2]);
}

void lk_avx2_resize_rows(const struct lk_taps *taps, const int size[3], int count,
                         const uint8_t *from, uint8_t *to, uint8_t *room)
{
    const size_t old = (size_t)size[0] * (size_t)size[2];
    const size_t bytes = (size_t)size[1] * (size_t)size[2];
    uint8_t *y = room + turned_bytes(size[0], size[2]);
    for (int at = 0; at < count; at += ROWS) {
        const int n = count - at < ROWS ? count - at : ROWS;
        turn_in(from + (size_t)at * old, old, n, room);
        squeeze_block(taps, size[1], size[2], room, y);
        turn_out(y, bytes, n, to + (size_t)at * bytes);
    }
}

WIDE void lk_avx2_blend_rows(const int32_t *weights, int count, const uint8_t *from,
                             size_t bytes, uint8_t *to)
{
    for (size_t at = 0; at < bytes; at += ROWS) {
        struct sums sums = begin();
        for (int k = 0; k < count; k++)
            add(&sums, load(from + (size_t)k * bytes + at, bytes - at), weights[k]);
        store(finish(&sums), to + at, bytes - at);
    }
}

#else

bool lk_avx2_is_available(void)
{
    return false;
}

size_t lk_avx2_scratch_bytes(const int size[3])
{
    (void)size;
    return 0;
}

void lk_avx2_resize_rows(const struct lk_taps *taps, const int size[3], int count,
                         const uint8_t *from, uint8_t *to, uint8_t *room)
{
    (void)taps, (void)size, (void)count, (void)from, (void)to, (void)room;
}

void lk_avx2_blend_rows(const int32_t *weights, int count, const uint8_t *from, size_t bytes,
                        uint8_t *to)
{
    (void)weights, (void)count, (void)from, (void)bytes, (void)to;
}

#endif
