/* The files of a set of records. */
#include "data/sources/tfrecord.h"

#include "base/fail.h"
#include "base/log.h"
#include "io/file.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The memory that files may take, all together, that can only be read from their beginning, as
 * compressed ones. */
static const size_t most_inflated = (size_t)4 << 30;

static enum lk_status open_file(struct lk_records *records, const char *path, size_t *inflated,
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

enum lk_status lk_records_open_files(struct lk_records *records, const char *pattern,
                                     int64_t *lost)
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

/* How many files a set has, by the name of one, "train-00003-of-00016.tfrecord"; 0: the name
 * does not tell. */
static int files_of(const struct lk_tfrecord *file)
{
    const char *path = lk_tfrecord_path(file), *slash = strrchr(path, '/');
    const char *of = strstr(slash ? slash : path, "-of-");
    int count = 0;
    return of && sscanf(of, "-of-%d", &count) == 1 && count > 0 ? count : 0;
}

/* The files of a part are read all or not at all. */
enum lk_status lk_records_check_files(const struct lk_records *records, const char *folder)
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
enum lk_status lk_records_find_part(const struct lk_data_request *request, char *pattern,
                                    size_t room, enum lk_data_part *found_part)
{
    const char *text = request->text;
    *found_part = LK_DATA_TRAIN;
    if (!lk_folder_exists(text)) {
        if (!lk_source_takes_all(request->part))
            return lk_source_fail_no_test("tfrecord", text);
        snprintf(pattern, room, "%s", text);
        return LK_OK;
    }
    const char *named = request->options->part;
    snprintf(pattern, room, "%s/%s*", text, *named ? named : "train");
    if (*named || request->part == LK_DATA_TRAIN)
        return LK_OK;
    for (const char *const *name = lk_source_part_names(request->part); *name; name++) {
        glob_t found = {0};
        *found_part = lk_source_part_named(*name);
        snprintf(pattern, room, "%s/%s*", text, *name); /* val* has valid* too */
        const int code = glob(pattern, 0, NULL, &found);
        globfree(&found);
        if (code == 0)
            return LK_OK;
    }
    return lk_source_fail_no_test("tfrecord", text);
}
