/* Finds and reads the records of TFRecord files, plain or compressed. */
#include "io/records/tfrecord.h"

#include "base/fail.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/gzip.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A record is its length in 64 bits, the length's checksum, the bytes, and their checksum. */
enum { HEADER = 12, FOOTER = 4, MOST_RECORD = 1 << 30 };

/* While records are SMALL, the file is read in large stretches to find them; of larger ones
 * only the headers are read. */
enum { SMALL = 16 << 10, STRETCH = 256 << 10, PEEK = 4 << 10 };

struct lk_tfrecord {
    char *path;
    uint8_t *inflated; /* the contents of a compressed file; NULL: it is not compressed */
    int64_t bytes;     /* of the file, or inflated */
    int64_t count, room;
    int64_t *begins; /* [count + 1]: the last is the end of the last whole record */
};

/* The search for records in a file: a window of it is in memory. */
struct scan {
    struct lk_tfrecord *file;
    int fd;
    uint8_t *window;
    int64_t at; /* where the window begins */
    int64_t held;
    int64_t step; /* how much of the file to read next */
};

static uint64_t little_endian(const uint8_t *b, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | b[i];
    return value;
}

static bool is_header(const uint8_t *header)
{
    return lk_crc32c_masked(header, 8) == little_endian(header + 8, 4);
}

/* Reads up to `bytes` bytes, less at the end of the file. */
static enum lk_status read_at(const char *path, int fd, int64_t at, void *data, int64_t bytes,
                              int64_t *got)
{
    int64_t done = 0;
    while (done < bytes) {
        const ssize_t n = pread(fd, (char *)data + done, (size_t)(bytes - done), at + done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return lk_file_fail("read", path);
        if (n == 0)
            break;
        done += n;
    }
    *got = done;
    return LK_OK;
}

/* Brings the header at byte `at` into the window; it lies within the file. */
static enum lk_status find_header(struct scan *scan, int64_t at, const uint8_t **header)
{
    const struct lk_tfrecord *file = scan->file;
    if (file->inflated) {
        *header = file->inflated + at;
        return LK_OK;
    }
    if (at < scan->at || at + HEADER > scan->at + scan->held) {
        LK_TRY(read_at(file->path, scan->fd, at, scan->window, scan->step, &scan->held));
        scan->at = at;
        if (scan->held < HEADER)
            return lk_fail(LK_E_IO, "'%s' became shorter while it was read", file->path);
    }
    *header = scan->window + (at - scan->at);
    return LK_OK;
}

static enum lk_status add_begin(struct lk_tfrecord *file, int64_t at)
{
    if (file->count + 1 >= file->room) {
        const int64_t room = file->room ? 2 * file->room : 64;
        int64_t *begins = realloc(file->begins, (size_t)room * sizeof *begins);
        if (!begins)
            return lk_fail_memory(file->path, (size_t)room * sizeof *begins);
        file->begins = begins;
        file->room = room;
    }
    file->begins[file->count] = at;
    return LK_OK;
}

static enum lk_status find_records(struct scan *scan)
{
    struct lk_tfrecord *file = scan->file;
    int64_t at = 0;
    LK_TRY(add_begin(file, 0));
    while (file->bytes - at >= HEADER) {
        const uint8_t *header = NULL;
        LK_TRY(find_header(scan, at, &header));
        if (!is_header(header))
            return lk_fail(LK_E_DATA, "'%s': record %lld, at byte %lld: %s", file->path,
                           (long long)file->count, (long long)at,
                           at == 0 ? "this is no TFRecord file"
                                   : "its length has another checksum than it should");
        const uint64_t length = little_endian(header, 8);
        const int64_t left = file->bytes - at - HEADER;
        if (left < FOOTER || length > (uint64_t)(left - FOOTER))
            break; /* cut short */
        if (length > MOST_RECORD)
            return lk_fail(LK_E_DATA, "'%s': record %lld has %llu bytes, at most %d can be",
                           file->path, (long long)file->count, (unsigned long long)length,
                           MOST_RECORD);
        at += HEADER + (int64_t)length + FOOTER;
        file->count++;
        scan->step = length < SMALL ? STRETCH : PEEK;
        LK_TRY(add_begin(file, at));
    }
    return LK_OK;
}

static enum lk_status inflate_file(struct lk_tfrecord *file, bool is_gzip, size_t limit)
{
    void *packed, *inflated = NULL;
    size_t packed_bytes, bytes = 0;
    LK_TRY(lk_file_read(file->path, limit + limit / 1000 + 65536, &packed, &packed_bytes));
    const enum lk_status status = (is_gzip ? lk_gzip_inflate : lk_zlib_inflate)(
        packed, packed_bytes, limit, &inflated, &bytes);
    free(packed);
    if (status != LK_OK)
        return lk_fail_within(status, "'%s'", file->path);
    file->inflated = inflated;
    file->bytes = (int64_t)bytes;
    return LK_OK;
}

/* Finds all records. A plain file begins with a length whose checksum is right; any other may
 * be a compressed one. */
static enum lk_status find_in(struct scan *scan, size_t limit)
{
    struct lk_tfrecord *file = scan->file;
    struct stat about;
    uint8_t begin[HEADER] = {0};
    int64_t got = 0;
    if (fstat(scan->fd, &about))
        return lk_file_fail("read", file->path);
    file->bytes = about.st_size;
    LK_TRY(read_at(file->path, scan->fd, 0, begin, HEADER, &got));
    const bool is_gzip = begin[0] == 0x1f && begin[1] == 0x8b;
    const bool is_zlib = (begin[0] & 15) == 8 && (begin[0] << 8 | begin[1]) % 31 == 0;
    if (got >= 2 && (got < HEADER || !is_header(begin)) && (is_gzip || is_zlib))
        LK_TRY(inflate_file(file, is_gzip, limit));
    return find_records(scan);
}

enum lk_status lk_tfrecord_open(const char *path, size_t limit, struct lk_tfrecord **file)
{
    struct lk_tfrecord *made = calloc(1, sizeof *made);
    struct scan scan = {.file = made, .fd = -1, .step = STRETCH, .window = malloc(STRETCH)};
    if (made)
        made->path = strdup(path);
    enum lk_status status = LK_OK;
    if (!made || !made->path || !scan.window)
        status = lk_fail_memory(path, STRETCH);
    if (status == LK_OK) {
        status = lk_file_open(path, &scan.fd);
        if (status == LK_OK)
            status = find_in(&scan, limit);
    }
    if (scan.fd >= 0)
        close(scan.fd);
    free(scan.window);
    if (status != LK_OK) {
        lk_tfrecord_close(made);
        return status;
    }
    *file = made;
    return LK_OK;
}

void lk_tfrecord_close(struct lk_tfrecord *file)
{
    if (!file)
        return;
    free(file->path);
    free(file->inflated);
    free(file->begins);
    free(file);
}

const char *lk_tfrecord_path(const struct lk_tfrecord *file)
{
    return file->path;
}

int64_t lk_tfrecord_count(const struct lk_tfrecord *file)
{
    return file->count;
}

size_t lk_tfrecord_memory(const struct lk_tfrecord *file)
{
    return file->inflated ? (size_t)file->bytes : 0;
}

int64_t lk_tfrecord_tail(const struct lk_tfrecord *file)
{
    return file->bytes - file->begins[file->count];
}

/* Opens the file for each read: a data set may have more files than a process can hold open. */
static enum lk_status read_file_part(const struct lk_tfrecord *file, int64_t at, void *data,
                                     int64_t bytes)
{
    int64_t got = 0;
    int fd;
    LK_TRY(lk_file_open(file->path, &fd));
    const enum lk_status status = read_at(file->path, fd, at, data, bytes, &got);
    close(fd);
    if (status == LK_OK && got < bytes)
        return lk_fail(LK_E_DATA, "'%s' has become shorter than it was", file->path);
    return status;
}

static enum lk_status check_record(const struct lk_tfrecord *file, int64_t index,
                                   const uint8_t *record, int64_t length)
{
    if (!is_header(record) || little_endian(record, 8) != (uint64_t)length)
        return lk_fail(LK_E_DATA, "'%s': record %lld has changed its length", file->path,
                       (long long)index);
    const uint8_t *footer = record + HEADER + length;
    if (lk_crc32c_masked(record + HEADER, (size_t)length) != little_endian(footer, FOOTER))
        return lk_fail(LK_E_DATA, "'%s': record %lld has another checksum than it should",
                       file->path, (long long)index);
    return LK_OK;
}

enum lk_status lk_tfrecord_read(const struct lk_tfrecord *file, int64_t index, void **data,
                                size_t *bytes)
{
    const int64_t at = file->begins[index], whole = file->begins[index + 1] - at;
    const int64_t length = whole - HEADER - FOOTER;
    uint8_t *record = malloc((size_t)whole);
    if (!record)
        return lk_fail_memory("a record", (size_t)whole);
    enum lk_status status = LK_OK;
    if (file->inflated)
        memcpy(record, file->inflated + at, (size_t)whole);
    else
        status = read_file_part(file, at, record, whole);
    if (status == LK_OK)
        status = check_record(file, index, record, length);
    if (status != LK_OK) {
        free(record);
        return status;
    }
    memmove(record, record + HEADER, (size_t)length);
    *data = record;
    *bytes = (size_t)length;
    return LK_OK;
}

/* The end of the records from `first` on that fit in `room` bytes, but at least one of them. */
static int64_t find_stretch(const struct lk_tfrecord *file, int64_t first, int64_t room)
{
    int64_t end = first + 1;
    while (end < file->count && file->begins[end + 1] - file->begins[first] <= room)
        end++;
    return end;
}

struct watcher {
    void (*see)(void *context, const void *data, size_t bytes);
    void *context;
};

static void see_stretch(const struct lk_tfrecord *file, int64_t first, int64_t end,
                        const uint8_t *stretch, const struct watcher *watcher)
{
    for (int64_t i = first; i < end; i++) {
        const uint8_t *record = stretch + (file->begins[i] - file->begins[first]);
        const int64_t length = file->begins[i + 1] - file->begins[i] - HEADER - FOOTER;
        if (check_record(file, i, record, length) == LK_OK)
            watcher->see(watcher->context, record + HEADER, (size_t)length);
        else
            lk_error_clear(); /* a damaged record is reported when it is read by its number */
    }
}

enum lk_status lk_tfrecord_each(const struct lk_tfrecord *file,
                                void (*see)(void *context, const void *data, size_t bytes),
                                void *context)
{
    const struct watcher watcher = {see, context};
    if (file->inflated) {
        see_stretch(file, 0, file->count, file->inflated, &watcher);
        return LK_OK;
    }
    enum lk_status status = LK_OK;
    for (int64_t i = 0, end; i < file->count && status == LK_OK; i = end) {
        end = find_stretch(file, i, STRETCH);
        const int64_t bytes = file->begins[end] - file->begins[i];
        uint8_t *stretch = malloc((size_t)bytes);
        if (!stretch)
            return lk_fail_memory("records", (size_t)bytes);
        status = read_file_part(file, file->begins[i], stretch, bytes);
        if (status == LK_OK)
            see_stretch(file, i, end, stretch, &watcher);
        free(stretch);
    }
    return status;
}
