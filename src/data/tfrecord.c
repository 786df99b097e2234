/* tfrecord:GLOB: images and labels in tf.train.Example records. The files of GLOB, in the order
 * of their names, are one set; of a folder the files train* are one part, test* (or val*) the
 * other: all of them, where names such as train-00003-of-00016 tell how many there are. Its
 * labels.txt names the classes where the records agree. */
#include "io/tfrecord.h"
#include "base/fail.h"
#include "base/log.h"
#include "data/names.h"
#include "data/source.h"
#include "io/crc32c.h"
#include "io/example.h"
#include "io/file.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What files that cannot be read from the middle may take in memory, all together. */
static const size_t most_inflated = (size_t)4 << 30;

struct records {
    struct lk_tfrecord **files;
    int64_t *ends; /* [file_count]: records up to and with this file */
    int file_count;
    int64_t count;
    struct lk_image_options options;
    struct lk_names classes;
    char name[64];
};

static void records_close(void *state)
{
    struct records *records = state;
    for (int i = 0; i < records->file_count; i++)
        lk_tfrecord_close(records->files[i]);
    lk_names_clear(&records->classes);
    free(records->files);
    free(records->ends);
    free(records);
}

/* The file that record `index` of all is in; `index` becomes its number there. */
static const struct lk_tfrecord *find_file(const struct records *records, int64_t *index)
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

static enum lk_status fail_key(const char *what, const char *key,
                               struct lk_example_bytes record)
{
    char keys[512];
    lk_example_print_keys(record, keys, sizeof keys);
    return lk_fail(LK_E_DATA, "no %s under the key '%s'; there are %s (option %s=KEY)", what,
                   key, *keys ? keys : "no keys", what);
}

/* A whole number, or with classes that have names one of these. */
static enum lk_status find_label(const struct records *records, struct lk_example_bytes record,
                                 int64_t *label)
{
    const char *key = records->options.label;
    struct lk_example_list list;
    struct lk_example_bytes name;
    int64_t found = 0;
    LK_TRY(lk_example_find(record, key, &list));
    if (lk_example_int_at(&list, 0, &found)) {
        if (__builtin_add_overflow(found, records->options.offset, label))
            return lk_fail(LK_E_DATA, "label %lld is none", (long long)found);
        return LK_OK;
    }
    if (!lk_example_bytes_at(&list, 0, &name))
        return fail_key("label", key, record);
    for (int i = 0; i < records->classes.count; i++)
        if (strlen(records->classes.items[i]) == name.bytes &&
            memcmp(records->classes.items[i], name.data, name.bytes) == 0) {
            *label = i;
            return LK_OK;
        }
    return lk_fail(LK_E_DATA, "label '%.*s' is no number%s",
                   (int)(name.bytes < 64 ? name.bytes : 64), (const char *)name.data,
                   records->classes.count ? " and none of the classes"
                                          : "; classes=FILE says what it stands for");
}

static enum lk_status find_image(const struct records *records, struct lk_example_bytes record,
                                 struct lk_example_bytes *image)
{
    struct lk_example_list list;
    LK_TRY(lk_example_find(record, records->options.image, &list));
    if (!lk_example_bytes_at(&list, 0, image))
        return fail_key("image", records->options.image, record);
    return LK_OK;
}

static enum lk_status records_fetch(const void *state, int64_t index,
                                    struct lk_encoded *encoded)
{
    const struct records *records = state;
    const struct lk_tfrecord *file = find_file(records, &index);
    void *data = NULL;
    size_t bytes = 0;
    struct lk_example_bytes image;
    snprintf(encoded->where, sizeof encoded->where, "%s' record '%lld", lk_tfrecord_path(file),
             (long long)index);
    LK_TRY(lk_tfrecord_read(file, index, &data, &bytes));
    const struct lk_example_bytes record = {data, bytes};
    enum lk_status status = find_label(records, record, &encoded->label);
    if (status == LK_OK)
        status = find_image(records, record, &image);
    if (status != LK_OK) {
        free(data);
        return lk_fail_within(status, "'%s", encoded->where);
    }
    memmove(data, image.data, image.bytes);
    encoded->data = data;
    encoded->bytes = image.bytes;
    return LK_OK;
}

/* The text under a key; "" where there is none, or one that is too long. */
static enum lk_status copy_text(struct lk_example_bytes record, const char *key, char *text,
                                size_t room)
{
    struct lk_example_list list;
    struct lk_example_bytes found;
    LK_TRY(lk_example_find(record, key, &list));
    if (lk_example_bytes_at(&list, 0, &found) && found.bytes < room)
        snprintf(text, room, "%.*s", (int)found.bytes, (const char *)found.data);
    return LK_OK;
}

static enum lk_status tell_about(const struct records *records, struct lk_example_bytes record,
                                 struct lk_sample_about *about)
{
    LK_TRY(find_label(records, record, &about->label));
    LK_TRY(copy_text(record, "image/filename", about->name, sizeof about->name));
    about->stamp = lk_crc32c(record.data, record.bytes);
    const struct lk_names *classes = &records->classes;
    if (classes->count == 0)
        return copy_text(record, "image/class/text", about->class_name,
                         sizeof about->class_name);
    if (about->label >= 0 && about->label < classes->count)
        snprintf(about->class_name, sizeof about->class_name, "%s",
                 classes->items[about->label]);
    return LK_OK;
}

static enum lk_status records_about(const void *state, int64_t index,
                                    struct lk_sample_about *about)
{
    const struct records *records = state;
    const struct lk_tfrecord *file = find_file(records, &index);
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

static enum lk_status open_file(struct records *records, const char *path, size_t *inflated,
                                int64_t *lost)
{
    struct lk_tfrecord *file;
    LK_TRY(lk_tfrecord_open(path, most_inflated - *inflated, &file));
    *inflated += lk_tfrecord_memory(file);
    records->files[records->file_count] = file;
    records->count += lk_tfrecord_count(file);
    records->ends[records->file_count++] = records->count;
    if (lk_tfrecord_tail(file) > 0) {
        lk_log(LK_LOG_WARNING, "'%s' was cut short: %lld bytes of a record end it", path,
               (long long)lk_tfrecord_tail(file));
        ++*lost;
    }
    return LK_OK;
}

static enum lk_status open_files(struct records *records, const char *pattern, int64_t *lost)
{
    glob_t found = {0};
    const int code = glob(pattern, 0, NULL, &found);
    enum lk_status status = LK_OK;
    size_t inflated = 0;
    if (code == GLOB_NOMATCH)
        status = lk_fail(LK_E_IO, "there is no file '%s'", pattern);
    else if (code != 0)
        status = code == GLOB_NOSPACE ? lk_fail_memory("names of files", 0)
                                      : lk_file_fail("list", pattern);
    if (status == LK_OK) {
        records->files = calloc(found.gl_pathc, sizeof(struct lk_tfrecord *));
        records->ends = calloc(found.gl_pathc, sizeof(int64_t));
        if (!records->files || !records->ends)
            status = lk_fail_memory("names of files", found.gl_pathc);
    }
    for (size_t i = 0; status == LK_OK && i < found.gl_pathc; i++)
        status = open_file(records, found.gl_pathv[i], &inflated, lost);
    globfree(&found);
    if (status == LK_OK && records->count == 0)
        return lk_fail(LK_E_DATA, "'%s': there is no record", pattern);
    return status;
}

/* How many files there are by the name of one, "train-00003-of-00016.tfrecord"; 0: not told. */
static int files_of(const struct lk_tfrecord *file)
{
    const char *path = lk_tfrecord_path(file), *slash = strrchr(path, '/');
    const char *of = strstr(slash ? slash : path, "-of-");
    int count = 0;
    return of && sscanf(of, "-of-%d", &count) == 1 && count > 0 ? count : 0;
}

/* A part of a folder is read whole or not at all. */
static enum lk_status check_files(const struct records *records, const char *folder)
{
    const int wanted = files_of(records->files[0]);
    for (int i = 1; i < records->file_count; i++)
        if (files_of(records->files[i]) != wanted)
            return lk_fail(LK_E_DATA, "'%s' and '%s' are of different sets",
                           lk_tfrecord_path(records->files[0]),
                           lk_tfrecord_path(records->files[i]));
    if (wanted && wanted != records->file_count)
        return lk_fail(LK_E_DATA,
                       "'%s' is one of %d files, %d are there; a conversion that was "
                       "interrupted goes on with the same command, and a pattern such as "
                       "'tfrecord:%s/train*' reads what is there",
                       lk_tfrecord_path(records->files[0]), wanted, records->file_count,
                       folder);
    return LK_OK;
}

/* The pattern of the request's part. */
static enum lk_status find_part(const struct lk_data_request *request, char *pattern,
                                size_t room)
{
    const char *text = request->text;
    if (!lk_folder_exists(text)) {
        if (request->part == LK_DATA_TEST)
            return lk_source_fail_no_test("tfrecord", text);
        snprintf(pattern, room, "%s", text);
        return LK_OK;
    }
    const char *named = request->options->part;
    snprintf(pattern, room, "%s/%s*", text, *named ? named : "train");
    if (*named || request->part == LK_DATA_TRAIN)
        return LK_OK;
    static const char *const tests[] = {"test", "val"};
    for (int i = 0; i < LK_COUNT(tests); i++) {
        glob_t found = {0};
        snprintf(pattern, room, "%s/%s*", text, tests[i]);
        const int code = glob(pattern, 0, NULL, &found);
        globfree(&found);
        if (code == 0)
            return LK_OK;
    }
    return lk_source_fail_no_test("tfrecord", text);
}

struct largest {
    const struct records *records;
    int64_t label;
};

static void see_label(void *context, const void *data, size_t bytes)
{
    struct largest *most = context;
    int64_t label = 0;
    const enum lk_status status =
        find_label(most->records, (struct lk_example_bytes){data, bytes}, &label);
    if (status == LK_OK && label > most->label && label < LK_MOST_CLASSES)
        most->label = label;
    lk_error_clear(); /* a record without one is said to be broken when it is read */
}

/* Labels go from 0 to the largest there is. */
static enum lk_status count_classes(const struct records *records, int *classes)
{
    struct largest most = {records, 0};
    for (int i = 0; i < records->file_count; i++)
        LK_TRY(lk_tfrecord_see(records->files[i], see_label, &most));
    *classes = (int)most.label + 1;
    return LK_OK;
}

/* Whether a list of classes calls the first record's class as the record itself does. */
static bool agrees(const struct records *records)
{
    struct lk_sample_about about = {0};
    void *data = NULL;
    size_t bytes = 0;
    bool is_same = false;
    if (lk_tfrecord_count(records->files[0]) > 0 &&
        lk_tfrecord_read(records->files[0], 0, &data, &bytes) == LK_OK) {
        const struct lk_example_bytes record = {data, bytes};
        is_same = find_label(records, record, &about.label) == LK_OK && about.label >= 0 &&
                  about.label < records->classes.count &&
                  copy_text(record, "image/class/text", about.class_name,
                            sizeof about.class_name) == LK_OK &&
                  strcmp(records->classes.items[about.label], about.class_name) == 0;
        free(data);
    }
    lk_error_clear();
    return is_same;
}

/* The classes of a folder's labels.txt; without one that fits, there are none. */
static void read_classes(struct records *records, const char *folder)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/labels.txt", folder) >= (int)sizeof path ||
        !lk_file_exists(path))
        return;
    if (lk_names_read(&records->classes, path) != LK_OK || !agrees(records))
        lk_names_clear(&records->classes);
    lk_error_clear();
}

static enum lk_status find_classes(struct records *records, const char *text,
                                   struct lk_data_info *info)
{
    const char *given = records->options.classes;
    char *end;
    const long number = strtol(given, &end, 10);
    if (*given && !*end && number >= 1 && number <= LK_MOST_CLASSES) {
        info->classes = (int)number;
    } else if (*given) {
        LK_TRY(lk_names_read(&records->classes, given));
    } else {
        read_classes(records, text);
        if (records->classes.count == 0)
            return count_classes(records, &info->classes);
    }
    if (records->classes.count > 0) {
        info->classes = records->classes.count;
        info->class_names = records->classes.items;
    }
    return LK_OK;
}

/* Other keys than expected are the same in all records: said at once. */
static enum lk_status try_keys(const struct records *records)
{
    void *data;
    size_t bytes;
    int64_t label;
    struct lk_example_bytes image;
    if (lk_tfrecord_read(records->files[0], 0, &data, &bytes) != LK_OK) {
        lk_error_clear();
        return LK_OK;
    }
    enum lk_status status = find_image(records, (struct lk_example_bytes){data, bytes}, &image);
    if (status == LK_OK)
        status = find_label(records, (struct lk_example_bytes){data, bytes}, &label);
    free(data);
    return status == LK_OK
               ? LK_OK
               : lk_fail_within(status, "'%s'", lk_tfrecord_path(records->files[0]));
}

static enum lk_status records_open(struct lk_data_request *request, struct lk_data_info *info,
                                   void **state)
{
    char pattern[4096];
    LK_TRY(find_part(request, pattern, sizeof pattern));
    struct records *records = calloc(1, sizeof *records);
    if (!records)
        return lk_fail_memory("a data set", sizeof *records);
    records->options = *request->options;
    enum lk_status status = open_files(records, pattern, &request->lost);
    if (status == LK_OK && lk_folder_exists(request->text))
        status = check_files(records, request->text);
    if (status == LK_OK)
        status = find_classes(records, request->text, info);
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

static void records_identify(const void *state, struct lk_sha256 *sum)
{
    const struct records *records = state;
    const struct lk_image_options *o = &records->options;
    lk_sha256_add(sum, o->image, strlen(o->image) + 1);
    lk_sha256_add(sum, o->label, strlen(o->label) + 1);
    lk_sha256_add(sum, &o->offset, sizeof o->offset);
    for (int i = 0; i < records->classes.count; i++)
        lk_sha256_add(sum, records->classes.items[i], strlen(records->classes.items[i]) + 1);
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
                                             .identify = records_identify};
