/* tfrecord:GLOB: images and labels in tf.train.Example records. The files of GLOB, in the order
 * of their names, are one set; of a folder the files train* are one part, test* (or val*) the
 * other: all of them, where names such as train-00003-of-00016 tell how many there are. Its
 * labels.txt names the classes where the records agree. */
#include "data/sources/tfrecord.h"

#include "base/fail.h"
#include "io/crc32c.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void lk_records_clear(struct lk_records *records)
{
    for (int i = 0; i < records->file_count; i++)
        lk_tfrecord_close(records->files[i]);
    lk_names_clear(&records->classes);
    free(records->files);
    free(records->ends);
    *records = (struct lk_records){0};
}

static void records_close(void *state)
{
    lk_records_clear(state);
    free(state);
}

const struct lk_tfrecord *lk_records_find_file(const struct lk_records *records, int64_t *index)
{
    int low = 0, high = records->file_count - 1;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (*index < records->ends[middle])
            high = middle;
        else
            low = middle + 1;
    }
    *index -= low > 0 ? records->ends[low - 1] : 0;
    return records->files[low];
}

static enum lk_status find_image(const char *key, struct lk_example_bytes record,
                                 struct lk_example_bytes *image)
{
    struct lk_example_list list;
    LK_TRY(lk_example_find(record, key, &list));
    if (!lk_example_bytes_at(&list, 0, image))
        return lk_records_fail_key("image", key, record);
    return LK_OK;
}

enum lk_status lk_records_fetch(const struct lk_records *records, const char *key,
                                bool has_label, int64_t index, struct lk_encoded *encoded)
{
    const struct lk_tfrecord *file = lk_records_find_file(records, &index);
    void *data = NULL;
    size_t bytes = 0;
    struct lk_example_bytes image;
    snprintf(encoded->where, sizeof encoded->where, "%s' record '%lld", lk_tfrecord_path(file),
             (long long)index);
    LK_TRY(lk_tfrecord_read(file, index, &data, &bytes));
    const struct lk_example_bytes record = {data, bytes};
    enum lk_status status =
        has_label ? lk_records_label(records, record, &encoded->label) : LK_OK;
    if (status == LK_OK)
        status = find_image(key, record, &image);
    if (status != LK_OK) {
        free(data);
        return lk_fail_within(status, "'%s", encoded->where);
    }
    memmove(data, image.data, image.bytes);
    encoded->data = data;
    encoded->bytes = image.bytes;
    return LK_OK;
}

static enum lk_status records_fetch(const void *state, int64_t index,
                                    struct lk_encoded *encoded)
{
    const struct lk_records *records = state;
    return lk_records_fetch(records, records->options.image, true, index, encoded);
}

static enum lk_status tell_about(const struct lk_records *records,
                                 struct lk_example_bytes record,
                                 struct lk_sample_metadata *about)
{
    LK_TRY(lk_records_label(records, record, &about->label));
    LK_TRY(lk_records_text(record, "image/filename", about->name, sizeof about->name));
    about->stamp = lk_crc32c(record.data, record.bytes);
    const struct lk_names *classes = &records->classes;
    if (classes->count == 0)
        return lk_records_text(record, "image/class/text", about->class_name,
                               sizeof about->class_name);
    if (about->label >= 0 && about->label < classes->count)
        snprintf(about->class_name, sizeof about->class_name, "%s",
                 classes->items[about->label]);
    return LK_OK;
}

static enum lk_status records_about(const void *state, int64_t index,
                                    struct lk_sample_metadata *about)
{
    const struct lk_records *records = state;
    const struct lk_tfrecord *file = lk_records_find_file(records, &index);
    void *data = NULL;
    size_t bytes = 0;
    LK_TRY(lk_tfrecord_read(file, index, &data, &bytes));
    const enum lk_status status =
        tell_about(records, (struct lk_example_bytes){data, bytes}, about);
    free(data);
    return status == LK_OK ? LK_OK
                           : lk_fail_within(status, "'%s' record '%lld'",
                                            lk_tfrecord_path(file), (long long)index);
}

/* Tries the keys with a first record: wrong keys would be wrong in all records, so they are
 * reported at once. */
static enum lk_status try_keys(const struct lk_records *records)
{
    void *data;
    size_t bytes;
    int64_t label;
    struct lk_example_bytes image;
    if (lk_tfrecord_read(records->files[0], 0, &data, &bytes) != LK_OK) {
        lk_error_clear();
        return LK_OK;
    }
    enum lk_status status =
        find_image(records->options.image, (struct lk_example_bytes){data, bytes}, &image);
    if (status == LK_OK)
        status = lk_records_label(records, (struct lk_example_bytes){data, bytes}, &label);
    free(data);
    return status == LK_OK
               ? LK_OK
               : lk_fail_within(status, "'%s'", lk_tfrecord_path(records->files[0]));
}

static enum lk_status records_open(struct lk_data_request *request, struct lk_data_info *info,
                                   void **state)
{
    char pattern[4096];
    LK_TRY(lk_records_find_part(request, pattern, sizeof pattern, &info->part));
    struct lk_records *records = calloc(1, sizeof *records);
    if (!records)
        return lk_fail_memory("a data set", sizeof *records);
    records->options = *request->options;
    enum lk_status status = lk_records_open_files(records, pattern, &request->lost);
    if (status == LK_OK && lk_folder_exists(request->text))
        status = lk_records_check_files(records, request->text);
    if (status == LK_OK)
        status = lk_records_find_classes(records, request->text, info);
    if (status == LK_OK && lk_tfrecord_count(records->files[0]) > 0)
        status = try_keys(records);
    if (status != LK_OK) {
        records_close(records);
        return status;
    }
    lk_source_name(request->text, records->name);
    info->name = records->name;
    info->count = records->count;
    *state = records;
    return LK_OK;
}

void lk_records_identify(const struct lk_records *records, struct lk_sha256 *sum)
{
    for (int i = 0; i < records->file_count; i++) {
        const char *path = lk_tfrecord_path(records->files[i]), *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        struct stat found;
        int64_t parts[4] = {lk_tfrecord_count(records->files[i])};
        if (stat(path, &found) == 0) {
            parts[1] = found.st_size;
            parts[2] = found.st_mtim.tv_sec;
            parts[3] = found.st_mtim.tv_nsec;
        }
        lk_sha256_add(sum, name, strlen(name) + 1);
        lk_sha256_add(sum, parts, sizeof parts);
    }
}

static void records_identify(const void *state, struct lk_sha256 *sum)
{
    const struct lk_records *records = state;
    const struct lk_image_options *o = &records->options;
    lk_sha256_add(sum, o->image, strlen(o->image) + 1);
    lk_sha256_add(sum, o->label, strlen(o->label) + 1);
    lk_sha256_add(sum, &o->offset, sizeof o->offset);
    for (int i = 0; i < records->classes.count; i++)
        lk_sha256_add(sum, records->classes.items[i], strlen(records->classes.items[i]) + 1);
    lk_records_identify(records, sum);
}

static const struct lk_option options[] = {
    LK_IMAGE_OPTIONS,
    {LK_IMAGE_TEXT(part), .standard = "", .help = "of a folder the files to read: train, val"},
    {LK_IMAGE_TEXT(image), .standard = "image/encoded", .help = "key of the image file"},
    {LK_IMAGE_TEXT(label), .standard = "image/class/label", .help = "key of the label"},
    {LK_IMAGE_OPTION(offset), .kind = LK_OPTION_INT, .count = 1, .min = -1e6, .max = 1e6,
     .standard = "0", .help = "added to the labels: -1 where they count from 1"},
    {0},
};

const struct lk_source lk_source_tfrecord = {.kind = "tfrecord",
                                             .usage = "tfrecord:GLOB",
                                             .options = options,
                                             .open = records_open,
                                             .close = records_close,
                                             .fetch = records_fetch,
                                             .about = records_about,
                                             .identify = records_identify,
                                             .of_fields = &lk_source_tfrecord_fields,
                                             .of_image_and_fields =
                                                 &lk_source_tfrecord_image_and_fields};
