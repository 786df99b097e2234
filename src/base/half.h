/* Conversion between float and IEEE 754 half precision (float16), stored as uint16_t, on the
 * host. Floor 0. */
#ifndef LK_BASE_HALF_H
#define LK_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t lk_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float lk_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The value of a half; every half is exactly a float. */
static inline float lk_half_value(uint16_t half)
{
    const uint32_t sign = (half & 0x8000u) << 16, rest = (half & 0x7fffu) << 13;
    if (rest >= 0x7c00u << 13) /* infinite, or no number */
        return lk_float_of_bits(sign | 0x7f800000u | rest);
    return lk_float_of_bits(sign | lk_float_bits(lk_float_of_bits(rest) * 0x1p112f));
}

/* The nearest half, ties to even; infinity for values that round beyond 65504. */
static inline uint16_t lk_half_of(float value)
{
    const uint32_t bits = lk_float_bits(value), sign = bits >> 16 & 0x8000;
    const uint32_t size = bits & 0x7fffffff;
    if (size > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000u) /* a multiple of 2^-24, which the addition rounds to */
        return (uint16_t)(sign | (lk_float_bits(lk_float_of_bits(size) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | (size - 0x38000000u + 0xfff + (size >> 13 & 1)) >> 13);
}

#endif
