/* npy:X.npy,Y.npy: uint8 images [n, h, w] or [n, h, w, c] (or [n, w]: rows) and whole numbers
 * [n], as numpy.save() writes them. npy:DIR: x_train.npy, y_train.npy, x_test.npy, y_test.npy
 * there. Images are read where they lie. */
#include "io/npy.h"
#include "base/fail.h"
#include "data/sources/names.h"
#include "data/sources/source.h"
#include "io/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_SIDE = 16384, MOST_PATH = 4096 };
static const size_t most_label_bytes = (size_t)8 << 31;

struct arrays {
    char images[MOST_PATH], labels[MOST_PATH]; /* paths */
    int file;                                  /* of the images */
    struct lk_npy x;
    size_t sample_bytes;
    int32_t *y; /* [n] */
    struct lk_names classes;
    char name[64];
};

/* Options of a SPEC; empty: not said. */
struct options {
    char classes[512];
};

static const struct lk_option options[] = {
    {.name = "classes",
     .kind = LK_OPTION_TEXT,
     .offset = offsetof(struct options, classes),
     .count = sizeof((struct options *)0)->classes,
     .standard = "",
     .help = "a file of names, one a line in the order of labels"},
    {0},
};

static void npy_close(void *state)
{
    struct arrays *arrays = state;
    if (arrays->file >= 0)
        close(arrays->file);
    lk_names_clear(&arrays->classes);
    free(arrays->y);
    free(arrays);
}

static enum lk_status set_paths(const char *images, const char *labels, struct arrays *arrays)
{
    if (snprintf(arrays->images, MOST_PATH, "%s", images) >= MOST_PATH ||
        snprintf(arrays->labels, MOST_PATH, "%s", labels) >= MOST_PATH)
        return lk_fail(LK_E_ARGUMENT, "npy: a path of more than %d bytes", MOST_PATH - 1);
    return LK_OK;
}

/* The files of a part. */
static enum lk_status find_files(const char *text, enum lk_data_part part,
                                 struct arrays *arrays)
{
    char images[MOST_PATH], labels[MOST_PATH];
    const char *comma = strchr(text, ',');
    if (lk_folder_exists(text)) {
        const char *name = part == LK_DATA_TRAIN ? "train" : "test";
        snprintf(images, sizeof images, "%.4000s/x_%s.npy", text, name);
        snprintf(labels, sizeof labels, "%.4000s/y_%s.npy", text, name);
        return set_paths(images, labels, arrays);
    }
    if (!comma || strchr(comma + 1, ','))
        return lk_fail(LK_E_ARGUMENT,
                       "npy:%s: expected npy:X.npy,Y.npy (images, labels), or a folder with "
                       "x_train.npy and y_train.npy",
                       text);
    if (part == LK_DATA_TEST)
        return lk_source_fail_no_test("npy", text);
    snprintf(images, sizeof images, "%.*s", (int)(comma - text), text);
    return set_paths(images, comma + 1, arrays);
}

static enum lk_status open_images(struct arrays *arrays)
{
    static uint8_t none[1];
    struct stat about;
    arrays->file = open(arrays->images, O_RDONLY | O_CLOEXEC);
    if (arrays->file < 0 || fstat(arrays->file, &about) != 0)
        return lk_file_fail("read", arrays->images);
    const size_t room = LK_NPY_MOST_HEADER + 12;
    uint8_t *header = malloc(room);
    if (!header)
        return lk_fail_memory("a header", room);
    const ssize_t got = pread(arrays->file, header, room, 0);
    const enum lk_status status =
        lk_npy_parse(got > 0 ? header : none, got > 0 ? (size_t)got : 0, about.st_size,
                     arrays->images, &arrays->x);
    free(header);
    return status;
}

static enum lk_status check_images(struct arrays *arrays, struct lk_data_info *info)
{
    const struct lk_npy *x = &arrays->x;
    int64_t bytes = 1;
    if (x->kind != 'u' || x->size != 1)
        return lk_fail(LK_E_UNSUPPORTED,
                       "'%s': elements of type %c%d; expected uint8 (u1): values of 0..255",
                       arrays->images, x->kind, x->size);
    if (x->rank < 2 || x->rank > 4)
        return lk_fail(LK_E_SHAPE,
                       "'%s' has %d axes; expected [n, h, w, c], [n, h, w] or [n, w]",
                       arrays->images, x->rank);
    for (int i = 1; i < x->rank; i++) {
        if (x->shape[i] < 1 || x->shape[i] > MOST_SIDE)
            return lk_fail(LK_E_SHAPE, "'%s': axis %d has %lld, expected 1..%d", arrays->images,
                           i, (long long)x->shape[i], MOST_SIDE);
        bytes *= x->shape[i]; /* below 2^42 */
    }
    if (x->shape[0] < 1)
        return lk_fail(LK_E_DATA, "'%s' has no sample", arrays->images);
    arrays->sample_bytes = (size_t)bytes;
    info->count = x->shape[0];
    info->height = x->rank == 2 ? 1 : (int)x->shape[1];
    info->width = (int)(x->rank == 2 ? x->shape[1] : x->shape[2]);
    info->channels = x->rank == 4 ? (int)x->shape[3] : 1;
    return LK_OK;
}

/* The labels of a file, as int32; `most` is the largest. The caller frees `y`. */
static enum lk_status read_labels(const char *path, int32_t **y, int64_t *count, int *most)
{
    void *data = NULL;
    size_t bytes = 0;
    struct lk_npy npy;
    LK_TRY(lk_file_read(path, most_label_bytes, &data, &bytes));
    enum lk_status status = lk_npy_parse(data, bytes, (int64_t)bytes, path, &npy);
    int32_t *labels = NULL;
    int largest = 0;
    if (status == LK_OK && ((npy.kind != 'u' && npy.kind != 'i') || npy.size > 8 ||
                            npy.rank < 1 || npy.count != npy.shape[0]))
        status = lk_fail(LK_E_UNSUPPORTED,
                         "'%s': expected whole numbers [n], found %c%d in "
                         "%d axes",
                         path, npy.kind, npy.size, npy.rank);
    if (status == LK_OK && !(labels = calloc((size_t)npy.count + 1, sizeof *labels)))
        status = lk_fail_memory("labels", (size_t)npy.count * sizeof *labels);
    for (int64_t i = 0; status == LK_OK && i < npy.count; i++) {
        const uint8_t *from = (const uint8_t *)data + npy.offset + i * npy.size;
        const int64_t label = lk_npy_integer(&npy, from);
        if (label < 0 || label >= LK_MOST_CLASSES)
            status = lk_fail(LK_E_DATA, "'%s': label %lld of sample %lld is not in 0..%d", path,
                             (long long)label, (long long)i, LK_MOST_CLASSES - 1);
        labels[i] = (int32_t)label;
        largest = label > largest ? (int)label : largest;
    }
    free(data);
    if (status != LK_OK) {
        free(labels);
        return status;
    }
    *y = labels;
    *count = npy.count;
    *most = largest;
    return LK_OK;
}

/* The classes are those of the training labels for both parts: a test set may lack some. */
static enum lk_status find_classes(const char *text, const struct options *given,
                                   const struct arrays *arrays, int most, int *classes)
{
    struct arrays train;
    int32_t *labels = NULL;
    int64_t count;
    *classes = most + 1;
    if (arrays->classes.count > 0) {
        *classes = arrays->classes.count;
    } else if (lk_folder_exists(text) && !*given->classes) {
        int trained = 0;
        LK_TRY(find_files(text, LK_DATA_TRAIN, &train));
        LK_TRY(read_labels(train.labels, &labels, &count, &trained));
        free(labels);
        *classes = trained + 1;
    }
    if (most >= *classes)
        return lk_fail(LK_E_DATA, "'%s': labels of 0..%d are expected, found %d",
                       arrays->labels, *classes - 1, most);
    return LK_OK;
}

static enum lk_status read_files(const struct lk_data_request *request, const char *text,
                                 const struct options *given, struct arrays *arrays,
                                 struct lk_data_info *info)
{
    int64_t count = 0;
    int most = 0;
    LK_TRY(find_files(text, request->part, arrays));
    LK_TRY(open_images(arrays));
    LK_TRY(check_images(arrays, info));
    LK_TRY(read_labels(arrays->labels, &arrays->y, &count, &most));
    if (count != info->count)
        return lk_fail(LK_E_DATA,
                       "'%s' has %lld images, '%s' has %lld labels; as many of each are "
                       "expected",
                       arrays->images, (long long)info->count, arrays->labels,
                       (long long)count);
    if (*given->classes)
        LK_TRY(lk_names_read(&arrays->classes, given->classes));
    return find_classes(text, given, arrays, most, &info->classes);
}

static enum lk_status npy_open(struct lk_data_request *request, struct lk_data_info *info,
                               void **state)
{
    struct options given;
    struct arrays *arrays = calloc(1, sizeof *arrays);
    char *text = strdup(request->text);
    enum lk_status status =
        arrays && text ? LK_OK : lk_fail_memory("a data set", sizeof *arrays);
    if (arrays)
        arrays->file = -1;
    if (status == LK_OK)
        status = lk_source_parse_options(options, text, &given);
    if (status == LK_OK)
        status = read_files(request, text, &given, arrays, info);
    if (status != LK_OK) {
        if (arrays)
            npy_close(arrays);
        free(text);
        return status;
    }
    char *comma = strchr(text, ',');
    if (comma)
        *comma = '\0';
    lk_source_name(text, arrays->name);
    free(text);
    info->name = arrays->name;
    if (arrays->classes.count > 0)
        info->class_names = arrays->classes.items;
    *state = arrays;
    return LK_OK;
}

static enum lk_status npy_read(const void *state, int64_t index, void *const to[])
{
    const struct arrays *arrays = state;
    const int64_t at = (int64_t)arrays->x.offset + index * (int64_t)arrays->sample_bytes;
    uint8_t *sample = to[LK_FIELD_IMAGE];
    if (to[LK_FIELD_CLASS])
        *(int32_t *)to[LK_FIELD_CLASS] = arrays->y[index];
    for (size_t done = 0; sample && done < arrays->sample_bytes;) {
        const ssize_t got = pread(arrays->file, sample + done, arrays->sample_bytes - done,
                                  (off_t)(at + (int64_t)done));
        if (got < 0)
            return lk_file_fail("read", arrays->images);
        if (got == 0)
            return lk_fail(LK_E_IO, "'%s' was cut short: sample %lld is not there",
                           arrays->images, (long long)index);
        done += (size_t)got;
    }
    return LK_OK;
}

static int64_t npy_label(const void *state, int64_t index)
{
    return ((const struct arrays *)state)->y[index];
}

const struct lk_source lk_source_npy = {.kind = "npy",
                                        .usage = "npy:X.npy,Y.npy",
                                        .open = npy_open,
                                        .close = npy_close,
                                        .read = npy_read,
                                        .label = npy_label};
