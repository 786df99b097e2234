/* What the elements of an HDF5 array or attribute are, and how many there are. */
#include "io/hdf5/span.h"

#include <string.h>

/* Bytes, then the twelve that describe a float: the offset and number of bits, the place and
 * size of the exponent, of the mantissa, and the exponent's bias. */
static const struct {
    uint32_t bytes;
    enum lk_safetensor_type type;
    unsigned char bits[12];
} floats[] = {
    {4, LK_SAFETENSOR_F32, {0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0}},
    {8, LK_SAFETENSOR_F64, {0, 0, 64, 0, 52, 11, 0, 52, 255, 3, 0, 0}},
    {2, LK_SAFETENSOR_F16, {0, 0, 16, 0, 10, 5, 0, 10, 15, 0, 0, 0}},
    {2, LK_SAFETENSOR_BF16, {0, 0, 16, 0, 7, 8, 0, 7, 127, 0, 0, 0}},
    {1, LK_SAFETENSOR_F8_E4M3, {0, 0, 8, 0, 3, 4, 0, 3, 7, 0, 0, 0}},
    {1, LK_SAFETENSOR_F8_E5M2, {0, 0, 8, 0, 2, 5, 0, 2, 15, 0, 0, 0}},
};

static enum lk_status get_integer(struct lk_hdf5_span span, uint32_t bits,
                                  struct lk_hdf5_type *type, const char **problem)
{
    static const struct {
        uint32_t bytes;
        enum lk_safetensor_type types[2]; /* without, with a sign */
    } integers[] = {{1, {LK_SAFETENSOR_U8, LK_SAFETENSOR_I8}},
                    {2, {LK_SAFETENSOR_U16, LK_SAFETENSOR_I16}},
                    {4, {LK_SAFETENSOR_U32, LK_SAFETENSOR_I32}},
                    {8, {LK_SAFETENSOR_U64, LK_SAFETENSOR_I64}}};
    struct lk_hdf5_span form;
    LK_TRY(lk_hdf5_take(&span, 4, "the form of an integer", &form));
    type->big_endian = bits & 1;
    for (int i = 0; i < LK_COUNT(integers); i++)
        if (integers[i].bytes == type->bytes && lk_hdf5_number(form.at, 2) == 0 &&
            lk_hdf5_number(form.at + 2, 2) == 8 * type->bytes) {
            type->number = integers[i].types[bits >> 3 & 1];
            return LK_OK;
        }
    *problem = "has integers of an unusual form";
    return LK_OK;
}

static enum lk_status get_float(struct lk_hdf5_span span, uint32_t bits,
                                struct lk_hdf5_type *type, const char **problem)
{
    struct lk_hdf5_span form;
    LK_TRY(lk_hdf5_take(&span, 12, "the form of a float", &form));
    type->big_endian = bits & 1;
    const bool usual =
        !(bits & 0x40) && (bits >> 4 & 3) == 2 && (bits >> 8 & 0xff) == 8 * type->bytes - 1;
    for (int i = 0; i < LK_COUNT(floats) && usual; i++)
        if (floats[i].bytes == type->bytes && memcmp(floats[i].bits, form.at, 12) == 0) {
            type->number = floats[i].type;
            return LK_OK;
        }
    *problem = "has floats of an unusual form";
    return LK_OK;
}

/* h5py keeps truth values as an enumeration of two bytes. */
static void get_truth(uint32_t bits, struct lk_hdf5_type *type, const char **problem)
{
    type->number = LK_SAFETENSOR_BOOL;
    if (type->bytes != 1 || (bits & 0xffff) != 2)
        *problem = "has elements of an enumeration";
}

enum lk_status lk_hdf5_get_type(struct lk_hdf5_span span, struct lk_hdf5_type *type,
                                const char **problem)
{
    struct lk_hdf5_span form;
    LK_TRY(lk_hdf5_take(&span, 8, "the type of elements", &form));
    const uint32_t bits = (uint32_t)lk_hdf5_number(form.at + 1, 3);
    *type = (struct lk_hdf5_type){.bytes = (uint32_t)lk_hdf5_number(form.at + 4, 4)};
    if (type->bytes == 0)
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: elements of 0 bytes",
                       (unsigned long long)form.place);
    switch (form.at[0] & 15) {
    case 0:
        return get_integer(span, bits, type, problem);
    case 1:
        return get_float(span, bits, type, problem);
    case 3:
        type->class = LK_HDF5_TEXT;
        return LK_OK;
    case 5:
        type->class = LK_HDF5_OPAQUE;
        return LK_OK;
    case 8:
        get_truth(bits, type, problem);
        return LK_OK;
    case 9:
        type->class = LK_HDF5_LONG_TEXT;
        if ((bits & 15) != 1 || type->bytes != 16)
            *problem = "has sequences of variable length as elements";
        return LK_OK;
    default:
        *problem = "has elements that are no numbers";
        return LK_OK;
    }
}

enum lk_status lk_hdf5_get_space(struct lk_hdf5_span span, int *rank, int64_t *shape,
                                 int64_t *count, const char **problem)
{
    struct lk_hdf5_span head, axes;
    LK_TRY(lk_hdf5_take(&span, 4, "the number of axes", &head));
    const int version = head.at[0];
    if (version != 1 && version != 2)
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: axes of version %d; expected 1 or 2",
                       (unsigned long long)head.place, version);
    if (version == 1)
        LK_TRY(lk_hdf5_take(&span, 4, "the number of axes", &axes));
    *rank = head.at[1];
    *count = version == 2 && head.at[3] == 2 ? 0 : 1; /* of kind 2: there is nothing */
    if (*rank > LK_SAFETENSOR_AXES) {
        *problem = "has more than 8 axes";
        *rank = 0;
        return LK_OK;
    }
    LK_TRY(lk_hdf5_take(&span, 8 * (size_t)*rank, "the lengths of axes", &axes));
    for (int i = 0; i < *rank; i++) {
        shape[i] = (int64_t)lk_hdf5_number(axes.at + 8 * i, 8);
        if (shape[i] < 0 || __builtin_mul_overflow(*count, shape[i], count))
            return lk_fail(LK_E_DATA, "HDF5, byte %llu: the product of the axes is too large",
                           (unsigned long long)axes.place);
    }
    return LK_OK;
}
