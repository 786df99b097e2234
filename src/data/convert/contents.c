/* What is remembered of a shard's records as they are written, and reading a shard back to
 * compare. */
#include "data/convert/contents.h"

#include "base/fail.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/records/example.h"
#include "io/records/tfrecord.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void lk_shard_contents_add(struct lk_shard_contents *contents, int label, const void *data,
                           size_t bytes)
{
    const uint32_t pair[2] = {contents->sum, lk_crc32c(data, bytes)};
    contents->sum = lk_crc32c(pair, sizeof pair);
    contents->records++;
    contents->counts[label]++;
}

void lk_shard_contents_clear(struct lk_shard_contents *contents, int classes)
{
    contents->records = contents->sum = 0;
    memset(contents->counts, 0, (size_t)classes * sizeof *contents->counts);
}

/* A shard that is being read back. */
struct reading {
    const struct lk_conversion *c;
    struct lk_shard_contents *contents;
    const char *wrong;
};

static void see_record(void *context, const void *data, size_t bytes)
{
    struct reading *reading = context;
    const struct lk_conversion *c = reading->c;
    const struct lk_example_bytes record = {data, bytes};
    struct lk_example_list image, label;
    struct lk_example_bytes encoded;
    int64_t number = 0;
    if (lk_example_find(record, c->keys.image, &image) != LK_OK ||
        lk_example_find(record, c->keys.label, &label) != LK_OK ||
        !lk_example_bytes_at(&image, 0, &encoded) || encoded.bytes == 0 ||
        !lk_example_int_at(&label, 0, &number))
        reading->wrong = "a record without image or label";
    else if (__builtin_add_overflow(number, c->keys.offset, &number) || number < 0 ||
             number >= c->class_count)
        reading->wrong = "a label that is none";
    else
        lk_shard_contents_add(reading->contents, (int)number, data, bytes);
    lk_error_clear();
}

/* Reads from the disk rather than from the system's cache of the file, where the system lets
 * that go. */
enum lk_status lk_shard_contents_read(const struct lk_conversion *c, const char *path,
                                      struct lk_shard_contents *contents)
{
    struct lk_tfrecord *file;
    struct reading reading = {c, contents, NULL};
    lk_shard_contents_clear(contents, c->class_count);
    int fd;
    LK_TRY(lk_file_open(path, &fd));
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    LK_TRY(lk_tfrecord_open(path, 0, &file));
    enum lk_status status = lk_tfrecord_each(file, see_record, &reading);
    if (status == LK_OK && lk_tfrecord_tail(file) > 0)
        reading.wrong = "a record that was cut short";
    else if (status == LK_OK && !reading.wrong && contents->records < lk_tfrecord_count(file))
        reading.wrong = "a record with another checksum than it should have";
    lk_tfrecord_close(file);
    if (status == LK_OK && reading.wrong)
        return lk_fail(LK_E_DATA, "'%s' was read back and has %s", path, reading.wrong);
    return status;
}
