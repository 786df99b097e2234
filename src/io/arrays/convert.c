/* Turns numbers of each type that files have into floats or doubles. */
#include "io/arrays/convert.h"

#include "base/half.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are read as they lie");

static float of_bf16(uint16_t bits)
{
    return lk_float_of_bits((uint32_t)bits << 16);
}

/* The upper byte of a half. */
static float of_e5m2(uint8_t bits)
{
    return lk_half_value((uint16_t)(bits << 8));
}

/* 4 bits of exponent with bias 7; no infinity, all bits set is no number. */
static float of_e4m3(uint8_t bits)
{
    const uint32_t sign = (bits & 0x80u) << 24, rest = bits & 0x7fu;
    if (rest == 0x7f)
        return lk_float_of_bits(sign | 0x7fc00000u);
    return lk_float_of_bits(sign | lk_float_bits(lk_float_of_bits(rest << 20) * 0x1p120f));
}

static double of_bool(uint8_t bits)
{
    return bits != 0;
}

/* X(type of the file, C type that it is read as, how that becomes a number) */
#define TYPES(X)                                                                               \
    X(BOOL, uint8_t, of_bool)                                                                  \
    X(U8, uint8_t, )                                                                           \
    X(I8, int8_t, )                                                                            \
    X(F8_E5M2, uint8_t, of_e5m2)                                                               \
    X(F8_E4M3, uint8_t, of_e4m3)                                                               \
    X(U16, uint16_t, )                                                                         \
    X(I16, int16_t, )                                                                          \
    X(F16, uint16_t, lk_half_value)                                                            \
    X(BF16, uint16_t, of_bf16)                                                                 \
    X(U32, uint32_t, )                                                                         \
    X(I32, int32_t, )                                                                          \
    X(F32, float, )                                                                            \
    X(U64, uint64_t, )                                                                         \
    X(I64, int64_t, )                                                                          \
    X(F64, double, )

#define LOOPS(name, type, value)                                                               \
    case LK_SAFETENSOR_##name:                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                  \
            type x;                                                                            \
            memcpy(&x, at + (size_t)i * sizeof x, sizeof x);                                   \
            if (as == LK_SAFETENSOR_F64)                                                       \
                doubles[i] = (double)value(x);                                                 \
            else                                                                               \
                floats[i] = (float)value(x);                                                   \
        }                                                                                      \
        break;

void lk_arrays_convert(enum lk_safetensor_type from, const void *data, int64_t count,
                       enum lk_safetensor_type as, void *to)
{
    const char *at = data;
    float *floats = to;
    double *doubles = to;
    switch (from) {
        TYPES(LOOPS)
    }
}
