/* What a file of weights holds, for programs that look into one. */
#include <lockstep/weights.h>

#include "base/fail.h"
#include "io/arrays/arrays.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)LK_WEIGHTS_AXES == (int)LK_SAFETENSOR_AXES, "shapes are copied");

/* The file itself, behind the public name. */
struct lk_weights_file {
    struct lk_arrays *arrays;
};

enum lk_status lk_weights_open(const char *path, struct lk_weights_file **file)
{
    struct lk_weights_file *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a file of weights", sizeof *made);
    const enum lk_status status = lk_arrays_open(path, &made->arrays);
    if (status != LK_OK) {
        free(made);
        return status;
    }
    *file = made;
    return LK_OK;
}

void lk_weights_close(struct lk_weights_file *file)
{
    if (!file)
        return;
    lk_arrays_close(file->arrays);
    free(file);
}

const char *lk_weights_format(const struct lk_weights_file *file)
{
    switch (file->arrays->format) {
    case LK_ARRAYS_KERAS_2:
        return "Keras 2";
    case LK_ARRAYS_KERAS_3:
        return "Keras 3";
    case LK_ARRAYS_TORCH:
        return "PyTorch";
    case LK_ARRAYS_SAFETENSORS:
        break;
    }
    return "safetensors";
}

bool lk_weights_array(const struct lk_weights_file *file, int index,
                      struct lk_weights_array *array)
{
    if (index < 0 || index >= file->arrays->count)
        return false;
    const struct lk_array *from = &file->arrays->arrays[index];
    *array = (struct lk_weights_array){.name = from->name,
                                       .type = lk_safetensor_type_name(from->type),
                                       .rank = from->rank,
                                       .count = from->count};
    memcpy(array->shape, from->shape, sizeof array->shape);
    return true;
}

/* Whether floats have every number of the type, so that half the memory will do. */
static bool fits_floats(enum lk_safetensor_type type)
{
    return type == LK_SAFETENSOR_F32 ||
           lk_safetensor_bytes(&(struct lk_safetensor){.type = type}) < sizeof(float);
}

static void measure(const void *values, int64_t count, bool floats, double *mean,
                    double *deviation)
{
    const float *single = values;
    const double *wide = values;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += floats ? (double)single[i] : wide[i];
    const double middle = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        const double off = (floats ? (double)single[i] : wide[i]) - middle;
        squares += off * off;
    }
    *mean = middle;
    *deviation = sqrt(squares / (double)count);
}

enum lk_status lk_weights_measure(const struct lk_weights_file *file, int index, double *mean,
                                  double *deviation)
{
    const struct lk_array *array = &file->arrays->arrays[index];
    const bool floats = fits_floats(array->type);
    const size_t bytes = (size_t)array->count * (floats ? sizeof(float) : sizeof(double));
    *mean = *deviation = NAN;
    if (array->count <= 0)
        return LK_OK;
    void *values = malloc(bytes);
    if (!values)
        return lk_fail_memory(array->name, bytes);
    const enum lk_status status = lk_arrays_read(
        file->arrays, array, floats ? LK_SAFETENSOR_F32 : LK_SAFETENSOR_F64, values);
    if (status == LK_OK)
        measure(values, array->count, floats, mean, deviation);
    free(values);
    return status;
}
