/* The four files of MNIST and its kin, plain or gzipped, held in memory.
 * source: http://yann.lecun.com/exdb/mnist (the IDX file format) */
#include "base/fail.h"
#include "data/sources/source.h"
#include "io/file.h"
#include "io/gzip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 4096, UBYTE = 0x08 };
static const size_t most_bytes = (size_t)1 << 31;
static const char *const parts[] = {
    [LK_DATA_TRAIN] = "train",
    [LK_DATA_TEST] = "t10k",
    [LK_DATA_TEST_OR_ALL] = "t10k",
    [LK_DATA_VALIDATION] = "t10k",
    [LK_DATA_VALIDATION_OR_ALL] = "t10k",
};

/* sides[0] is the number of samples; body points into data. */
struct file {
    char *path;
    void *data;
    const uint8_t *body;
    int rank;
    int64_t sides[3];
};

struct idx {
    struct file images, labels;
    size_t sample_bytes;
    char name[64];
};

static void file_clear(struct file *file)
{
    free(file->path);
    free(file->data);
}

/* Finds the file: the first of the usual spellings of its name that is there. */
static enum lk_status find(const char *folder, const char *stem, struct file *file)
{
    static const char *const spellings[] = {"%s/%s-idx%d-ubyte", "%s/%s-idx%d-ubyte.gz",
                                            "%s/%s.idx%d-ubyte", "%s/%s.idx%d-ubyte.gz"};
    if (!lk_folder_exists(folder))
        return lk_fail(LK_E_IO, "there is no folder '%s' to read %s-idx%d-ubyte from", folder,
                       stem, file->rank);
    const size_t room = strlen(folder) + 64;
    file->path = malloc(room);
    if (!file->path)
        return lk_fail_memory("a file name", room);
    for (int i = 0; i < LK_COUNT(spellings); i++) {
        snprintf(file->path, room, spellings[i], folder, stem, file->rank);
        if (lk_file_exists(file->path))
            return LK_OK;
    }
    return lk_fail(LK_E_IO,
                   "there is no %s-idx%d-ubyte (nor %s.idx%d-ubyte, plain or .gz) in '%s'",
                   stem, file->rank, stem, file->rank, folder);
}

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static enum lk_status parse(struct file *file, size_t bytes)
{
    const uint8_t *header = file->data;
    const size_t header_bytes = 4 + 4 * (size_t)file->rank;
    if (bytes < header_bytes)
        return lk_fail(LK_E_DATA, "'%s': a header of %zu bytes is expected, %zu are there",
                       file->path, header_bytes, bytes);
    const uint32_t magic = (uint32_t)(UBYTE << 8 | file->rank);
    if (big_endian(header) != magic)
        return lk_fail(LK_E_DATA,
                       "'%s': magic number 0x%08x (bytes in %d dimensions) is expected, found "
                       "0x%08x",
                       file->path, (unsigned)magic, file->rank, (unsigned)big_endian(header));
    int64_t body_bytes = 1; /* below 2^32 * 4096 * 4096 */
    for (int i = 0; i < file->rank; i++) {
        file->sides[i] = big_endian(header + 4 + 4 * i);
        if (i > 0 && (file->sides[i] < 1 || file->sides[i] > MOST_SIDE))
            return lk_fail(LK_E_DATA, "'%s': a side of 1..%d is expected, found %lld",
                           file->path, MOST_SIDE, (long long)file->sides[i]);
        body_bytes *= file->sides[i];
    }
    if (file->sides[0] < 1)
        return lk_fail(LK_E_DATA, "'%s': at least 1 sample is expected, found none",
                       file->path);
    if ((uint64_t)body_bytes != bytes - header_bytes)
        return lk_fail(
            LK_E_DATA, "'%s': %lld samples make %lld bytes behind the header, found %zu",
            file->path, (long long)file->sides[0], (long long)body_bytes, bytes - header_bytes);
    file->body = header + header_bytes;
    return LK_OK;
}

/* The caller calls file_clear(), after a failure too. */
static enum lk_status read_file(const char *folder, enum lk_data_part part, const char *what,
                                int rank, struct file *file)
{
    char stem[32];
    snprintf(stem, sizeof stem, "%s-%s", parts[part], what);
    *file = (struct file){.rank = rank};
    LK_TRY(find(folder, stem, file));
    size_t bytes = 0;
    const bool packed = file->path[strlen(file->path) - 1] == 'z';
    LK_TRY((packed ? lk_gzip_read : lk_file_read)(file->path, most_bytes, &file->data, &bytes));
    return parse(file, bytes);
}

static int largest(const struct file *labels)
{
    int most = 0;
    for (int64_t i = 0; i < labels->sides[0]; i++)
        most = labels->body[i] > most ? labels->body[i] : most;
    return most;
}

/* The classes are those of the training labels for both parts: a test set may lack some. */
static enum lk_status read_labels(const char *folder, enum lk_data_part part, struct idx *idx,
                                  int *classes)
{
    LK_TRY(read_file(folder, part, "labels", 1, &idx->labels));
    if (part == LK_DATA_TRAIN) {
        *classes = largest(&idx->labels) + 1;
        return LK_OK;
    }
    struct file train;
    const enum lk_status status = read_file(folder, LK_DATA_TRAIN, "labels", 1, &train);
    const int most = status == LK_OK ? largest(&train) : 0;
    file_clear(&train);
    if (status != LK_OK)
        return lk_fail_within(status, "the classes are counted in the training labels");
    const int found = largest(&idx->labels);
    if (found > most)
        return lk_fail(LK_E_DATA, "'%s': labels of 0..%d are expected, found %d",
                       idx->labels.path, most, found);
    *classes = most + 1;
    return LK_OK;
}

static enum lk_status read_files(const char *folder, enum lk_data_part part, struct idx *idx,
                                 struct lk_data_info *info)
{
    int classes = 0;
    LK_TRY(read_labels(folder, part, idx, &classes));
    LK_TRY(read_file(folder, part, "images", 3, &idx->images));
    const int64_t *sides = idx->images.sides;
    if (sides[0] != idx->labels.sides[0])
        return lk_fail(LK_E_DATA,
                       "'%s' has %lld images, '%s' has %lld labels; as many of each "
                       "are expected",
                       idx->images.path, (long long)sides[0], idx->labels.path,
                       (long long)idx->labels.sides[0]);
    if (info->class_names)
        for (int i = 0; i < classes; i++)
            if (!info->class_names[i])
                return lk_fail(LK_E_DATA, "'%s': labels of 0..%d are expected, found %d",
                               idx->labels.path, i - 1, classes - 1);
    idx->sample_bytes = (size_t)(sides[1] * sides[2]);
    info->count = sides[0];
    info->classes = classes;
    info->height = (int)sides[1];
    info->width = (int)sides[2];
    info->channels = 1;
    info->part = part == LK_DATA_TRAIN ? LK_DATA_TRAIN : LK_DATA_TEST;
    return LK_OK;
}

static void idx_close(void *state)
{
    struct idx *idx = state;
    file_clear(&idx->images);
    file_clear(&idx->labels);
    free(idx);
}

static enum lk_status idx_open(struct lk_data_request *request, struct lk_data_info *info,
                               void **state)
{
    struct idx *idx = calloc(1, sizeof *idx);
    if (!idx)
        return lk_fail_memory("a data set", sizeof *idx);
    const enum lk_status status = read_files(request->text, request->part, idx, info);
    if (status != LK_OK) {
        idx_close(idx);
        return status;
    }
    if (!info->name) {
        lk_source_name(request->text, idx->name);
        info->name = idx->name;
    }
    *state = idx;
    return LK_OK;
}

static enum lk_status idx_read(const void *state, int64_t index, void *const to[])
{
    const struct idx *idx = state;
    if (to[LK_FIELD_IMAGE])
        memcpy(to[LK_FIELD_IMAGE], idx->images.body + (size_t)index * idx->sample_bytes,
               idx->sample_bytes);
    if (to[LK_FIELD_CLASS])
        *(int32_t *)to[LK_FIELD_CLASS] = idx->labels.body[index];
    return LK_OK;
}

const struct lk_source lk_source_idx = {
    .kind = "idx", .usage = "idx:DIR", .open = idx_open, .close = idx_close, .read = idx_read};
