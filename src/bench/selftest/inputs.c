/* Makes the inputs of operations with known answers, and compares results. */
#include "bench/selftest/known_answers.h"

#include "base/random.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 2024 };

static uint32_t draw(int which, int64_t index)
{
    return lk_random(SEED, LK_RANDOM_DATA, (uint32_t)which, (uint64_t)index).v[0];
}

void lk_known_fill(const struct lk_known_answer *known, int which, int64_t count, float *values)
{
    const enum lk_known_numbers numbers =
        which < LK_DRAW_W ? known->numbers : LK_KNOWN_INTEGERS;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t r = draw(which, i);
        if (numbers == LK_KNOWN_INTEGERS)
            values[i] = (float)(r % 7) - 3;
        else if (numbers == LK_KNOWN_QUARTERS)
            values[i] = ((float)(r % 65) - 32) / 4;
        else
            values[i] = (float)(r % 63 + 1) / 64;
    }
}

struct lk_shape lk_known_shape(const struct lk_known_answer *known, int i)
{
    return i == 1 && known->second.rank > 0 ? known->second : known->x;
}

struct lk_shape lk_known_label_shape(const struct lk_known_answer *known)
{
    struct lk_shape shape = known->x;
    shape.dim[--shape.rank] = 0;
    return shape;
}

void lk_known_labels(const struct lk_known_answer *known, int32_t *labels)
{
    const struct lk_shape shape = lk_known_label_shape(known);
    const int64_t count = LK_KNOWN_BATCH * lk_shape_count(&shape);
    const int64_t last = known->x.dim[known->x.rank - 1];
    const uint32_t classes = last > 1 ? (uint32_t)last : 2, masked = shape.rank > 0;
    for (int64_t i = 0; i < count; i++)
        labels[i] = (int32_t)(draw(LK_DRAW_LABELS, i) % (classes + masked)) - (int32_t)masked;
}

void lk_known_tokens(const struct lk_known_answer *known, int32_t *tokens)
{
    for (int64_t i = 0; i < LK_KNOWN_BATCH * lk_shape_count(&known->x); i++)
        tokens[i] = (int32_t)(draw(LK_DRAW_X, i) % 8) - 1;
}

void lk_known_lengths(const struct lk_known_answer *known, int32_t *lengths)
{
    for (int64_t i = 0; i < LK_KNOWN_BATCH; i++)
        lengths[i] = (int32_t)(draw(LK_DRAW_LABELS, i) % (uint32_t)(known->x.dim[0] + 3)) - 1;
}

uint64_t lk_known_hash(uint64_t sum, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const float value = values[i] == 0 ? 0 : values[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        sum = ((sum ? sum : 0xcbf29ce484222325u) ^ bits) * 0x100000001b3u;
    }
    return sum;
}

void lk_known_compare(const float *values, const double *expected, int64_t count, int places,
                      char *detail, size_t bytes)
{
    detail[0] = '\0';
    for (int64_t i = 0; i < count; i++) {
        const double allowed = places * 0x1p-23 * fmax(1, fabs(expected[i]));
        if (fabs(values[i] - expected[i]) <= allowed)
            continue;
        snprintf(detail, bytes, "element %lld of %lld: expected %.9g, found %.9g", (long long)i,
                 (long long)count, expected[i], (double)values[i]);
        return;
    }
}
