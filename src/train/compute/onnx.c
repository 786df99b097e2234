/* Runs ONNX files on arrays of .npy files and of ONNX's own, writes what comes out, or compares
 * it with what should. */
#include "base/fail.h"
#include "base/text.h"
#include "io/file.h"
#include "io/npy.h"
#include "train/compute/arrays.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024, MOST_ARRAYS = 256 };
static const size_t most_npy_bytes = (size_t)1 << 31;

/* Arrays of files. */
struct given {
    struct lk_onnx_array array[MOST_ARRAYS];
    struct lk_onnx_tensor tensor[MOST_ARRAYS];
    struct lk_onnx_file file[MOST_ARRAYS]; /* that keeps the numbers, or */
    void *bytes[MOST_ARRAYS];              /* all of a .npy file */
    int count;
};

static void clear(struct given *given)
{
    for (int i = 0; i < given->count; i++) {
        lk_onnx_clear(&given->file[i]);
        free(given->bytes[i]);
    }
    free(given);
}

/* --- arrays of files --------------------------------------------------------------------- */

static enum lk_onnx_type type_of(const struct lk_npy *npy)
{
    static const struct {
        char kind;
        int size;
        enum lk_onnx_type type;
    } types[] = {{'f', 2, LK_ONNX_HALF},   {'f', 4, LK_ONNX_FLOAT},  {'f', 8, LK_ONNX_DOUBLE},
                 {'i', 1, LK_ONNX_INT8},   {'i', 2, LK_ONNX_INT16},  {'i', 4, LK_ONNX_INT32},
                 {'i', 8, LK_ONNX_INT64},  {'u', 1, LK_ONNX_UINT8},  {'u', 2, LK_ONNX_UINT16},
                 {'u', 4, LK_ONNX_UINT32}, {'u', 8, LK_ONNX_UINT64}, {'b', 1, LK_ONNX_BOOL}};
    for (int i = 0; i < LK_COUNT(types); i++)
        if (types[i].kind == npy->kind && types[i].size == npy->size)
            return types[i].type;
    return LK_ONNX_NO_TYPE;
}

static enum lk_status read_npy(const char *path, void **bytes, struct lk_onnx_tensor *tensor)
{
    struct lk_npy npy;
    size_t count = 0;
    LK_TRY(lk_file_read(path, most_npy_bytes, bytes, &count));
    LK_TRY(lk_npy_parse(*bytes, count, (int64_t)count, path, &npy));
    *tensor = (struct lk_onnx_tensor){
        .name = path, .type = type_of(&npy), .rank = npy.rank, .count = npy.count};
    if (npy.is_big_endian || !tensor->type || npy.count > INT32_MAX)
        return lk_fail(LK_E_UNSUPPORTED, "'%s': its elements are of a type that is not read",
                       path);
    memcpy(tensor->dim, npy.shape, sizeof tensor->dim);
    memmove(*bytes, (char *)*bytes + npy.offset, count - npy.offset); /* aligned */
    tensor->data = *bytes;
    return LK_OK;
}

static enum lk_status read_array(struct given *given, const char *path, const char *name)
{
    if (given->count == MOST_ARRAYS)
        return lk_fail(LK_E_UNSUPPORTED, "more than %d arrays", MOST_ARRAYS);
    const int i = given->count++;
    LK_TRY(lk_text_ends(path, ".npy")
               ? read_npy(path, &given->bytes[i], &given->tensor[i])
               : lk_onnx_read_tensor(path, &given->file[i], &given->tensor[i]));
    given->array[i] = (struct lk_onnx_array){.name = name, .tensor = &given->tensor[i]};
    return LK_OK;
}

/* FOLDER/input_0.pb and so on. */
static enum lk_status read_folder(struct given *given, const char *folder, const char *what)
{
    char path[PATH_BYTES];
    for (int i = 0;; i++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s_%d.pb", folder, what, i) >= sizeof path)
            return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(folder));
        if (!lk_file_exists(path))
            return LK_OK;
        LK_TRY(read_array(given, path, NULL));
    }
}

/* --- comparing --------------------------------------------------------------------------- */

static bool is_near(double found, double wanted, const struct lk_comparison *how)
{
    if (isnan(found) || isnan(wanted))
        return isnan(found) && isnan(wanted);
    if (isinf(found) || isinf(wanted))
        return found == wanted;
    return fabs(found - wanted) <= how->absolute + how->relative * fabs(wanted);
}

/* How far apart: a number that is none, or is infinite, is as far as can be. */
static double distance(double found, double wanted)
{
    const double apart = fabs(found - wanted);
    return isnan(apart) ? INFINITY : apart;
}

static void say_place(const struct lk_onnx_tensor *wanted, int64_t element, char *text,
                      size_t bytes)
{
    int64_t at[LK_ONNX_AXES], rest = element;
    size_t used = 0;
    for (int i = wanted->rank - 1; i >= 0; i--) {
        at[i] = rest % wanted->dim[i];
        rest /= wanted->dim[i];
    }
    text[0] = '\0';
    for (int i = 0; i < wanted->rank && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? ", " : "",
                                 (long long)at[i]);
}

static bool is_same_shape(const struct lk_onnx_array *found,
                          const struct lk_onnx_tensor *wanted)
{
    bool same = found->rank == wanted->rank;
    for (int i = 0; same && i < found->rank; i++)
        same = found->dim[i] == wanted->dim[i];
    return same;
}

/* Floats, whole numbers and truths: numbers of one kind may have any width. */
static int kind_of(enum lk_onnx_type type)
{
    return type == LK_ONNX_BOOL ? 2 : lk_onnx_is_whole(type);
}

static void print_shape(int rank, const int64_t *dim, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (int i = 0; i < rank && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? ", " : "",
                                 (long long)dim[i]);
    if (used < bytes)
        snprintf(text + used, bytes - used, "]");
}

static void compare_output(const struct lk_computed_array *found,
                           const struct lk_onnx_tensor *wanted, struct lk_comparison *how)
{
    char shapes[2][128], place[128];
    double farthest = -1;
    int64_t where = 0, apart = 0;
    const struct lk_onnx_array *about = found->about;
    if (!is_same_shape(about, wanted)) {
        print_shape(about->rank, about->dim, shapes[0], sizeof shapes[0]);
        print_shape(wanted->rank, wanted->dim, shapes[1], sizeof shapes[1]);
        snprintf(how->difference, sizeof how->difference,
                 "output '%.80s' has shape %s, expected %s", about->name, shapes[0], shapes[1]);
        return;
    }
    if (kind_of(about->type) != kind_of(wanted->type)) {
        snprintf(how->difference, sizeof how->difference,
                 "output '%.80s' is of another type than %s, which is expected", about->name,
                 lk_onnx_type_name(wanted->type));
        return;
    }
    for (int64_t i = 0; i < wanted->count; i++) {
        const double a = lk_computed_number(found, i), b = lk_onnx_real(wanted, i);
        if (is_near(a, b, how))
            continue;
        apart++;
        if (distance(a, b) > farthest) {
            farthest = distance(a, b);
            where = i;
        }
    }
    if (apart == 0)
        return;
    say_place(wanted, where, place, sizeof place);
    snprintf(how->difference, sizeof how->difference,
             "output '%.80s' differs in %lld of %lld elements, most by %g at [%s]: %.9g, "
             "expected %.9g",
             about->name, (long long)apart, (long long)wanted->count, farthest, place,
             lk_computed_number(found, where), lk_onnx_real(wanted, where));
}

static enum lk_status compare(const struct lk_computed *computed, const struct given *wanted,
                              struct lk_comparison *how)
{
    struct lk_computed_array found;
    int outputs = 0;
    how->difference[0] = '\0';
    how->computes = false;
    for (; lk_computed_output(computed, outputs, &found); outputs++)
        how->computes |= found.numbers != NULL;
    if (wanted->count == 0 || wanted->count > outputs)
        return lk_fail(LK_E_DATA, "%d arrays to compare with, the model has %d outputs",
                       wanted->count, outputs);
    for (int o = 0; o < wanted->count && !how->difference[0]; o++)
        if (lk_computed_output(computed, o, &found))
            compare_output(&found, &wanted->tensor[o], how);
    return LK_OK;
}

enum lk_status lk_compare_onnx(const char *file, const char *folder,
                               const struct lk_computation_options *options,
                               struct lk_comparison *comparison)
{
    struct given *given = calloc(1, sizeof *given), *wanted = calloc(1, sizeof *wanted);
    struct lk_computed *computed = NULL;
    enum lk_status status = LK_E_MEMORY;
    if (given && wanted) {
        status = read_folder(given, folder, "input");
        if (status == LK_OK)
            status = read_folder(wanted, folder, "output");
        if (status == LK_OK)
            status = lk_compute_arrays(file, given->array, given->count, options, &computed);
        if (status == LK_OK)
            status = compare(computed, wanted, comparison);
    }
    lk_computed_destroy(computed);
    if (given)
        clear(given);
    if (wanted)
        clear(wanted);
    return status;
}

/* --- writing ----------------------------------------------------------------------------- */

/* Names are the file's author's, who may be anyone: no way out of the folder. */
static void name_file(const char *name, int index, char *made, size_t bytes)
{
    bool is_fine = *name && strlen(name) < 128 && name[0] != '.';
    for (const char *at = name; *at; at++)
        is_fine &= isalnum((unsigned char)*at) || strchr("_-.", *at);
    if (is_fine)
        snprintf(made, bytes, "%s", name);
    else
        snprintf(made, bytes, "output_%d", index);
}

static enum lk_status write_output(const struct lk_computed_array *output, const char *path)
{
    uint8_t header[LK_NPY_WRITTEN_HEADER];
    struct lk_file_draft *draft;
    LK_TRY(lk_file_draft_open(path, &draft));
    FILE *stream = lk_file_draft_stream(draft);
    (void)!fwrite(header, 1,
                  lk_npy_write_header(output->about->dim, output->about->rank, header), stream);
    for (int64_t i = 0; i < output->count; i++) {
        const float number = (float)lk_computed_number(output, i);
        (void)!fwrite(&number, sizeof number, 1, stream);
    }
    return lk_file_draft_commit(draft);
}

static enum lk_status write_all(const struct lk_computed *computed, const char *folder,
                                bool may_replace)
{
    struct lk_computed_array output;
    char path[PATH_BYTES], name[160];
    LK_TRY(lk_folder_make(folder));
    for (int pass = 0; pass < 2; pass++)
        for (int o = 0; lk_computed_output(computed, o, &output); o++) {
            name_file(output.about->name, o, name, sizeof name);
            if ((size_t)snprintf(path, sizeof path, "%s/%s.npy", folder, name) >= sizeof path)
                return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(folder));
            if (pass == 0 && !may_replace && lk_file_exists(path))
                return lk_fail(LK_E_IO, "'%s' is there already; --force replaces it", path);
            if (pass == 1)
                LK_TRY(write_output(&output, path));
        }
    return LK_OK;
}

enum lk_status lk_run_onnx(const char *file, const struct lk_computation_file *files, int count,
                           const char *folder, bool may_replace,
                           const struct lk_computation_options *options)
{
    struct given *given = calloc(1, sizeof *given);
    struct lk_computed *computed = NULL;
    if (!given)
        return lk_fail_memory("arrays", sizeof *given);
    enum lk_status status = LK_OK;
    for (int i = 0; i < count && status == LK_OK; i++)
        status = read_array(given, files[i].path, files[i].input);
    if (status == LK_OK)
        status = lk_compute_arrays(file, given->array, given->count, options, &computed);
    if (status == LK_OK)
        status = write_all(computed, folder, may_replace);
    lk_computed_destroy(computed);
    clear(given);
    return status;
}
