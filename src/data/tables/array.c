/* Arrays in .npy files: their types and shapes, and conversion to those of fields. */
#include "data/tables/array.h"

#include "base/fail.h"
#include "data/sources/source.h"
#include "io/file.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_SIDE = 16384, MOST_ELEMENTS = 1 << 24, PIECE = 1 << 16 };
static const int64_t most_kept = (int64_t)1 << 32; /* numbers of a label */

void lk_array_close(struct lk_array *array)
{
    if (array->file >= 0)
        close(array->file);
    free(array->kept);
    array->file = -1;
    array->kept = NULL;
}

static enum lk_status open_header(struct lk_array *array)
{
    static uint8_t none[1];
    struct stat about;
    LK_TRY(lk_file_open(array->path, &array->file));
    if (fstat(array->file, &about) != 0)
        return lk_file_fail("read", array->path);
    const size_t room = LK_NPY_MOST_HEADER + 12;
    uint8_t *header = malloc(room);
    if (!header)
        return lk_fail_memory("a header", room);
    const ssize_t got = pread(array->file, header, room, 0);
    enum lk_status status = lk_npy_parse(got > 0 ? header : none, got > 0 ? (size_t)got : 0,
                                         about.st_size, array->path, &array->npy);
    free(header);
    if (status == LK_OK && (array->npy.rank < 1 || array->npy.shape[0] < 1))
        status = lk_fail(LK_E_DATA, "'%s' has no sample", array->path);
    return status;
}

static bool is_whole(const struct lk_npy *npy)
{
    return (npy->kind == 'u' || npy->kind == 'i') &&
           (npy->size == 1 || npy->size == 2 || npy->size == 4 || npy->size == 8);
}

/* fails: LK_E_UNSUPPORTED neither whole numbers nor floats of 4 or 8 bytes */
static enum lk_status find_type(struct lk_array *array)
{
    const struct lk_npy *npy = &array->npy;
    const bool is_float = npy->kind == 'f' && (npy->size == 4 || npy->size == 8);
    if (!is_float && !is_whole(npy))
        return lk_fail(LK_E_UNSUPPORTED,
                       "'%s': elements of type %c%d; expected uint8 (u1) images, whole "
                       "numbers, or floats of 4 or 8 bytes",
                       array->path, npy->kind, npy->size);
    array->dtype = is_float ? LK_F32 : LK_I32;
    return LK_OK;
}

/* The axes behind the first. */
static enum lk_status find_shape(struct lk_array *array)
{
    const struct lk_npy *npy = &array->npy;
    if (npy->rank - 1 > LK_MOST_AXES)
        return lk_fail(LK_E_SHAPE, "'%s' has %d axes; expected at most %d behind the first",
                       array->path, npy->rank, LK_MOST_AXES);
    array->elements = 1;
    array->shape.rank = npy->rank - 1;
    for (int i = 1; i < npy->rank; i++) {
        if (npy->shape[i] < 1 || npy->shape[i] > MOST_ELEMENTS / array->elements)
            return lk_fail(LK_E_SHAPE, "'%s': axis %d has %lld; a sample has 1..%d numbers",
                           array->path, i, (long long)npy->shape[i], MOST_ELEMENTS);
        array->elements *= npy->shape[i];
        array->shape.dim[i - 1] = npy->shape[i];
    }
    return LK_OK;
}

static enum lk_status find_image(struct lk_array *array)
{
    const struct lk_npy *x = &array->npy;
    if (x->rank < 2 || x->rank > 4)
        return lk_fail(LK_E_SHAPE,
                       "'%s' has %d axes; expected [n, h, w, c], [n, h, w] or [n, w]",
                       array->path, x->rank);
    array->dtype = LK_U8;
    array->elements = 1;
    for (int i = 1; i < x->rank; i++) {
        if (x->shape[i] < 1 || x->shape[i] > MOST_SIDE)
            return lk_fail(LK_E_SHAPE, "'%s': axis %d has %lld, expected 1..%d", array->path, i,
                           (long long)x->shape[i], MOST_SIDE);
        array->elements *= x->shape[i]; /* below 2^42 */
    }
    array->shape = (struct lk_shape){3,
                                     {x->rank == 2 ? 1 : x->shape[1],
                                      x->rank == 2 ? x->shape[1] : x->shape[2],
                                      x->rank == 4 ? x->shape[3] : 1}};
    return LK_OK;
}

/* --- numbers --------------------------------------------------------------------------- */

static enum lk_status read_bytes(const struct lk_array *array, int64_t at, uint8_t *to,
                                 size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got =
            pread(array->file, to + done, bytes - done, (off_t)(at + (int64_t)done));
        if (got < 0)
            return lk_file_fail("read", array->path);
        if (got == 0)
            return lk_fail(LK_E_IO, "'%s' was cut short: sample %lld is not there", array->path,
                           (long long)((at - (int64_t)array->npy.offset) /
                                       (array->elements * array->npy.size)));
        done += (size_t)got;
    }
    return LK_OK;
}

static double read_float(const struct lk_npy *npy, const uint8_t *from)
{
    uint64_t bits = 0;
    for (int i = 0; i < npy->size; i++)
        bits = bits << 8 | from[npy->is_big_endian ? i : npy->size - 1 - i];
    const uint32_t low = (uint32_t)bits;
    float single;
    double number;
    memcpy(&single, &low, sizeof single);
    memcpy(&number, &bits, sizeof number);
    return npy->size == 4 ? (double)single : number;
}

/* Number `element` of all, as a field has it. */
static enum lk_status convert(const struct lk_array *array, int64_t element,
                              const uint8_t *from, void *to)
{
    const struct lk_npy *npy = &array->npy;
    const long long sample = (long long)(element / array->elements);
    const long long place = (long long)(element % array->elements);
    if (array->dtype == LK_F32) {
        const double number = read_float(npy, from);
        if (!(fabs(number) <= FLT_MAX))
            return lk_fail(LK_E_DATA,
                           "'%s': number %lld of sample %lld is %g: expected finite ones that "
                           "fit float32",
                           array->path, place, sample, number);
        *(float *)to = (float)number;
        return LK_OK;
    }
    const int64_t value = lk_npy_integer(npy, from);
    /* with several time steps, -1 says that one has no label */
    const int least = array->elements > 1 ? -1 : 0;
    if (array->is_label && (value < least || value >= LK_MOST_CLASSES))
        return lk_fail(LK_E_DATA, "'%s': label %lld of sample %lld is not in %d..%d",
                       array->path, (long long)value, sample, least, LK_MOST_CLASSES - 1);
    if (value < INT32_MIN || value > INT32_MAX)
        return lk_fail(LK_E_DATA, "'%s': number %lld of sample %lld, %lld, does not fit int32",
                       array->path, place, sample, (long long)value);
    *(int32_t *)to = (int32_t)value;
    return LK_OK;
}

/* Numbers first..first+count-1 of all samples, 4 bytes each. */
static enum lk_status read_numbers(const struct lk_array *array, int64_t first, int64_t count,
                                   uint8_t *to)
{
    const int64_t size = array->npy.size;
    uint8_t piece[4096];
    const int64_t most = (int64_t)sizeof piece / size;
    for (int64_t done = 0; done < count;) {
        const int64_t now = count - done < most ? count - done : most;
        LK_TRY(read_bytes(array, (int64_t)array->npy.offset + (first + done) * size, piece,
                          (size_t)(now * size)));
        for (int64_t i = 0; i < now; i++, to += 4)
            LK_TRY(convert(array, first + done + i, piece + i * size, to));
        done += now;
    }
    return LK_OK;
}

static void note_range(struct lk_array *array, const int32_t *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        array->least = values[i] < array->least ? values[i] : array->least;
        array->most = values[i] > array->most ? values[i] : array->most;
    }
}

/* Finds the range of whole numbers; all of them have to fit. */
static enum lk_status find_range(struct lk_array *array)
{
    int32_t *piece = malloc(PIECE * sizeof *piece);
    enum lk_status status = piece ? LK_OK : lk_fail_memory("numbers", PIECE * sizeof *piece);
    const int64_t count = array->npy.count;
    for (int64_t at = 0; at < count && status == LK_OK; at += PIECE) {
        const int64_t now = count - at < PIECE ? count - at : PIECE;
        status = read_numbers(array, at, now, (uint8_t *)piece);
        if (status == LK_OK)
            note_range(array, piece, now);
    }
    free(piece);
    return status;
}

enum lk_status lk_array_open_input(struct lk_array *array)
{
    LK_TRY(open_header(array));
    if (array->npy.kind == 'u' && array->npy.size == 1)
        return find_image(array);
    LK_TRY(find_type(array));
    LK_TRY(find_shape(array));
    if (array->shape.rank == 0)
        array->shape = (struct lk_shape){1, {1}};
    array->least = array->most = 0;
    return array->dtype == LK_I32 ? find_range(array) : LK_OK;
}

enum lk_status lk_array_open_label(struct lk_array *array)
{
    array->is_label = true;
    LK_TRY(open_header(array));
    LK_TRY(find_type(array));
    LK_TRY(find_shape(array));
    if (array->elements == 1)
        array->shape.rank = 0;
    const int64_t count = array->npy.count;
    if (count > most_kept)
        return lk_fail(LK_E_UNSUPPORTED, "'%s': labels of %lld numbers, at most %lld are read",
                       array->path, (long long)count, (long long)most_kept);
    int32_t *kept = malloc((size_t)count * sizeof *kept);
    if (!kept)
        return lk_fail_memory("labels", (size_t)count * sizeof *kept);
    const enum lk_status status = read_numbers(array, 0, count, (uint8_t *)kept);
    if (status != LK_OK) {
        free(kept);
        return status;
    }
    array->kept = kept;
    array->least = array->most = 0;
    if (array->dtype == LK_I32)
        note_range(array, kept, count);
    return LK_OK;
}

enum lk_status lk_array_read(const struct lk_array *array, int64_t index, void *to)
{
    const int64_t first = index * array->elements;
    if (array->kept) {
        memcpy(to, array->kept + first, (size_t)array->elements * sizeof *array->kept);
        return LK_OK;
    }
    if (array->dtype == LK_U8)
        return read_bytes(array, (int64_t)array->npy.offset + first, to,
                          (size_t)array->elements);
    return read_numbers(array, first, array->elements, to);
}
