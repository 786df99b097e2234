/* Reads zip archives with libzip, after a look at the directory's size, which may be anything.
 */
#include "io/arrays/zip.h"

#include "base/fail.h"

#include <stdlib.h>

#ifdef LK_ZIP

#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

enum {
    MOST_ENTRIES = 1 << 15,
    MOST_DIRECTORY = 8 << 20, /* bytes */
    END_BYTES = 22,           /* of the record at an archive's end, without its comment */
    END64_BYTES = 56,
    LOCATOR_BYTES = 20, /* stands before the end and says where the 64-bit record is */
    TAIL_BYTES = END_BYTES + LOCATOR_BYTES + 65535
};

struct lk_zip {
    zip_t *zip;
    uint64_t file_bytes;
    pthread_mutex_t lock; /* libzip takes one call at a time */
};

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t made = 0;
    for (int i = bytes; i > 0; i--)
        made = made << 8 | at[i - 1];
    return made;
}

static enum lk_status check_directory(uint64_t entries, uint64_t bytes)
{
    if (entries > MOST_ENTRIES || bytes > MOST_DIRECTORY)
        return lk_fail(LK_E_DATA,
                       "a zip directory of %llu entries in %llu bytes; at most %d in %d are "
                       "allowed",
                       (unsigned long long)entries, (unsigned long long)bytes, MOST_ENTRIES,
                       MOST_DIRECTORY);
    return LK_OK;
}

static enum lk_status check_end64(const struct lk_bytes *file, const unsigned char *locator)
{
    unsigned char end[END64_BYTES];
    if (memcmp(locator, "PK\6\7", 4) != 0)
        return LK_OK;
    LK_TRY(lk_bytes_read(file, number(locator + 8, 8), sizeof end, "a zip archive's end", end));
    return check_directory(number(end + 32, 8), number(end + 40, 8));
}

/* libzip would keep every entry of any directory in memory. All records that look like an end
 * are examined, since it is libzip that chooses among them. */
static enum lk_status check_ends(const struct lk_bytes *file)
{
    const size_t bytes = file->size < TAIL_BYTES ? (size_t)file->size : (size_t)TAIL_BYTES;
    unsigned char *tail = malloc(bytes + 1);
    if (!tail)
        return lk_fail_memory("a zip archive's end", bytes + 1);
    enum lk_status status = lk_bytes_read(file, file->size - bytes, bytes, "an end", tail);
    bool found = false;
    for (size_t i = 0; i + END_BYTES <= bytes && status == LK_OK; i++) {
        if (memcmp(tail + i, "PK\5\6", 4) != 0)
            continue;
        const uint64_t directory = number(tail + i + 12, 4);
        found = true;
        if (directory != UINT32_MAX)
            status = check_directory(number(tail + i + 10, 2), directory);
        if (status == LK_OK && i >= LOCATOR_BYTES)
            status = check_end64(file, tail + i - LOCATOR_BYTES);
    }
    free(tail);
    if (status == LK_OK && !found)
        return lk_fail(LK_E_DATA, "a zip archive without its end: it is cut");
    return status;
}

enum lk_status lk_zip_open(const struct lk_bytes *file, struct lk_zip **zip)
{
    int code;
    LK_TRY(check_ends(file));
    struct lk_zip *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a zip archive", sizeof *made);
    const int fd = dup(file->fd);
    made->file_bytes = file->size;
    made->zip = fd >= 0 ? zip_fdopen(fd, 0, &code) : NULL;
    if (!made->zip) {
        zip_error_t error;
        zip_error_init_with_code(&error, fd >= 0 ? code : ZIP_ER_OPEN);
        const enum lk_status status = lk_fail(
            LK_E_DATA, "not a zip archive that can be read: %s", zip_error_strerror(&error));
        zip_error_fini(&error);
        if (fd >= 0)
            close(fd);
        free(made);
        return status;
    }
    pthread_mutex_init(&made->lock, NULL);
    *zip = made;
    return LK_OK;
}

void lk_zip_close(struct lk_zip *zip)
{
    if (!zip)
        return;
    zip_discard(zip->zip);
    pthread_mutex_destroy(&zip->lock);
    free(zip);
}

int lk_zip_count(const struct lk_zip *zip)
{
    return (int)zip_get_num_entries(zip->zip, 0);
}

const char *lk_zip_name(const struct lk_zip *zip, int entry)
{
    const char *name = zip_get_name(zip->zip, (zip_uint64_t)entry, 0);
    return name ? name : "";
}

int lk_zip_find(const struct lk_zip *zip, const char *name)
{
    return (int)zip_name_locate(zip->zip, name, 0);
}

/* What the directory says of an entry; its sizes are checked against the file's. */
static enum lk_status examine(const struct lk_zip *zip, int entry, zip_stat_t *about)
{
    const zip_uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if (zip_stat_index(zip->zip, (zip_uint64_t)entry, 0, about) ||
        (about->valid & wanted) != wanted)
        return lk_fail(LK_E_DATA, "entry %d of the archive cannot be examined", entry);
    if ((about->valid & ZIP_STAT_ENCRYPTION_METHOD) && about->encryption_method != ZIP_EM_NONE)
        return lk_fail(LK_E_UNSUPPORTED, "'%.100s' of the archive is encrypted", about->name);
    if (about->comp_method != ZIP_CM_STORE && about->comp_method != ZIP_CM_DEFLATE)
        return lk_fail(LK_E_UNSUPPORTED, "'%.100s' of the archive is compressed by method %d",
                       about->name, about->comp_method);
    if (about->comp_size > zip->file_bytes ||
        (about->comp_method == ZIP_CM_STORE && about->size != about->comp_size))
        return lk_fail(LK_E_DATA, "'%.100s' takes %llu bytes of an archive of %llu",
                       about->name, (unsigned long long)about->comp_size,
                       (unsigned long long)zip->file_bytes);
    return LK_OK;
}

static enum lk_status fail_reading(const struct lk_zip *zip, int entry, zip_file_t *file)
{
    return lk_fail(LK_E_DATA, "'%.100s' of the archive: %s", lk_zip_name(zip, entry),
                   file ? zip_file_strerror(file) : zip_strerror(zip->zip));
}

/* Reads part of an entry as it lies (raw), or all of it, whose end has a checksum. */
static enum lk_status read_entry(struct lk_zip *zip, int entry, uint64_t offset, size_t count,
                                 bool raw, char *to)
{
    char more;
    zip_file_t *file =
        zip_fopen_index(zip->zip, (zip_uint64_t)entry, raw ? ZIP_FL_COMPRESSED : 0);
    if (!file || (offset > 0 && zip_fseek(file, (zip_int64_t)offset, SEEK_SET) != 0)) {
        const enum lk_status status = fail_reading(zip, entry, file);
        if (file)
            zip_fclose(file);
        return status;
    }
    enum lk_status status = LK_OK;
    while (count > 0 && status == LK_OK) {
        const zip_int64_t got = zip_fread(file, to, count);
        if (got < 0)
            status = fail_reading(zip, entry, file);
        else if (got == 0)
            status = lk_fail(LK_E_DATA, "'%.100s' of the archive is cut: %zu bytes are missing",
                             lk_zip_name(zip, entry), count);
        else
            to += got;
        count -= got > 0 ? (size_t)got : 0;
    }
    if (status == LK_OK && !raw && zip_fread(file, &more, 1) != 0)
        status = lk_fail(LK_E_DATA, "'%.100s' of the archive is damaged: %s",
                         lk_zip_name(zip, entry), zip_file_strerror(file));
    zip_fclose(file);
    return status;
}

enum lk_status lk_zip_read(struct lk_zip *zip, int entry, size_t most, char **data,
                           size_t *bytes)
{
    zip_stat_t about;
    LK_TRY(examine(zip, entry, &about));
    if (about.size > most)
        return lk_fail(LK_E_DATA,
                       "'%.100s' of the archive has %llu bytes; at most %zu are "
                       "allowed",
                       about.name, (unsigned long long)about.size, most);
    char *made = malloc((size_t)about.size + 1);
    if (!made)
        return lk_fail_memory("a file of an archive", about.size + 1);
    pthread_mutex_lock(&zip->lock);
    const enum lk_status status = read_entry(zip, entry, 0, (size_t)about.size, false, made);
    pthread_mutex_unlock(&zip->lock);
    if (status != LK_OK) {
        free(made);
        return status;
    }
    made[about.size] = '\0';
    *data = made;
    *bytes = (size_t)about.size;
    return LK_OK;
}

static enum lk_status read_stored(const struct lk_bytes *bytes, uint64_t offset, size_t count,
                                  void *to)
{
    struct lk_zip *zip = bytes->archive;
    pthread_mutex_lock(&zip->lock);
    const bool raw = offset > 0 || count < bytes->size;
    const enum lk_status status = read_entry(zip, bytes->entry, offset, count, raw, to);
    pthread_mutex_unlock(&zip->lock);
    return status;
}

enum lk_status lk_zip_stored(struct lk_zip *zip, int entry, struct lk_bytes *bytes)
{
    zip_stat_t about;
    LK_TRY(examine(zip, entry, &about));
    if (about.comp_method != ZIP_CM_STORE)
        return lk_fail(LK_E_UNSUPPORTED,
                       "'%.100s' is compressed in the archive; expected it to be stored, as "
                       "Keras and PyTorch do. Pack the archive anew without compression",
                       about.name);
    *bytes = (struct lk_bytes){
        .size = about.size, .fd = -1, .archive = zip, .entry = entry, .read = read_stored};
    return LK_OK;
}

#else

enum lk_status lk_zip_open(const struct lk_bytes *file, struct lk_zip **zip)
{
    (void)file, (void)zip;
    return lk_fail(
        LK_E_UNSUPPORTED,
        "a zip archive, and this program was built without libzip, which reads them");
}

void lk_zip_close(struct lk_zip *zip)
{
    (void)zip;
}

int lk_zip_count(const struct lk_zip *zip)
{
    (void)zip;
    return 0;
}

const char *lk_zip_name(const struct lk_zip *zip, int entry)
{
    (void)zip, (void)entry;
    return "";
}

int lk_zip_find(const struct lk_zip *zip, const char *name)
{
    (void)zip, (void)name;
    return -1;
}

enum lk_status lk_zip_read(struct lk_zip *zip, int entry, size_t most, char **data,
                           size_t *bytes)
{
    (void)zip, (void)entry, (void)most, (void)data, (void)bytes;
    return LK_E_UNSUPPORTED; /* no archive was opened */
}

enum lk_status lk_zip_stored(struct lk_zip *zip, int entry, struct lk_bytes *bytes)
{
    (void)zip, (void)entry, (void)bytes;
    return LK_E_UNSUPPORTED;
}

#endif
