/* Reads files of weights that PyTorch and Keras wrote (weights/weights.py makes them) and
 * compares what is in them with what these frameworks say. With one FILE instead of the folder
 * it prints what is in that file, as weights.py does for any file. */
#include "io/arrays/arrays.h"

#include "io/file.h"
#include "scratch.h"

enum { SHOWN = 32 };

static const char *folder;

/* All values of a short array; of a long one the sum of its doubles' bits, each times its
 * place.
 */
static void print_values(FILE *to, const double *values, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count && count <= SHOWN; i++)
        fprintf(to, " %.17g", values[i]);
    for (int64_t i = 0; i < count && count > SHOWN; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sum += bits * ((uint64_t)i % 1009 + 1);
    }
    if (count > SHOWN)
        fprintf(to, " sum %llu", (unsigned long long)sum);
    fputs("\n", to);
}

static enum lk_status print(FILE *to, const struct lk_arrays *file)
{
    static const char *const formats[] = {"safetensors", "keras 2", "keras 3", "torch"};
    fprintf(to, "%s\n", formats[file->format]);
    for (int i = 0; i < file->texts; i++)
        fprintf(to, "%s: %s\n", file->metadata[i].key, file->metadata[i].value);
    for (int i = 0; i < file->count; i++) {
        const struct lk_array *array = &file->arrays[i];
        double *values = malloc(((size_t)array->count + 1) * sizeof *values);
        fprintf(to, "%s %s [", array->name, lk_safetensor_type_name(array->type));
        for (int axis = 0; axis < array->rank; axis++)
            fprintf(to, "%s%lld", axis ? ", " : "", (long long)array->shape[axis]);
        fputs("]", to);
        const enum lk_status status = lk_arrays_read(file, array, LK_SAFETENSOR_F64, values);
        if (status == LK_OK)
            print_values(to, values, array->count);
        free(values);
        if (status != LK_OK)
            return status;
    }
    return LK_OK;
}

static enum lk_status print_file(FILE *to, const char *path)
{
    struct lk_arrays *file;
    enum lk_status status = lk_arrays_open(path, &file);
    if (status != LK_OK)
        return status;
    status = print(to, file);
    lk_arrays_close(file);
    return status;
}

static char *read_text(const char *path)
{
    void *data;
    size_t bytes;
    if (lk_file_read(path, 1 << 20, &data, &bytes) != LK_OK)
        fail_msg("%s", lk_error_text());
    return data;
}

/* NAME.txt of the folder says what is in NAME; it may be left out by this build. */
static void compare(const char *listing)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, listing);
    char *expected = read_text(path);
    path[strlen(path) - strlen(".txt")] = '\0';
    FILE *to = fopen(scratch_path("listing"), "w");
    assert_non_null(to);
    const enum lk_status status = print_file(to, path);
    assert_int_equal(fclose(to), 0);
    if (status == LK_E_UNSUPPORTED && strstr(lk_error_text(), "was built without")) {
        lk_error_clear();
        free(expected);
        return;
    }
    if (status != LK_OK)
        fail_msg("%s: %s", listing, lk_error_text());
    char *found = read_text(scratch_path("listing"));
    if (strcmp(found, expected) != 0)
        fail_msg("%s:\n%s\nexpected:\n%s", listing, found, expected);
    free(found);
    free(expected);
}

static void reads_what_others_wrote(void **state)
{
    (void)state;
    int count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        const char *end = strrchr(entry->d_name, '.');
        if (end && strcmp(end, ".txt") == 0) {
            compare(entry->d_name);
            count++;
        }
    }
    closedir(entries);
    assert_true(count > 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_what_others_wrote)};
    struct stat about;
    if (argc != 2 || stat(argv[1], &about) != 0)
        return 2;
    folder = argv[1];
    if (S_ISDIR(about.st_mode))
        return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
    if (print_file(stdout, argv[1]) == LK_OK)
        return 0;
    fprintf(stderr, "%s\n", lk_error_text());
    return 1;
}
