/* Reads bytes of a file from any place, within its length as it was when the file was opened.
 */
#include "io/bytes.h"

#include "base/fail.h"
#include "io/file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static enum lk_status read_fd(const struct lk_bytes *bytes, uint64_t offset, size_t count,
                              void *to)
{
    for (char *at = to; count > 0;) {
        const size_t wanted = count < 1 << 30 ? count : 1 << 30;
        const ssize_t got = pread(bytes->fd, at, wanted, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return lk_fail(LK_E_IO, "cannot read: error %d at byte %llu", errno,
                           (unsigned long long)offset);
        if (got == 0)
            return lk_fail(LK_E_IO, "it became shorter while it was read");
        at += got;
        offset += (uint64_t)got;
        count -= (size_t)got;
    }
    return LK_OK;
}

enum lk_status lk_bytes_open(const char *path, struct lk_bytes *bytes)
{
    struct stat about;
    int fd;
    LK_TRY(lk_file_open(path, &fd));
    if (fstat(fd, &about)) {
        const enum lk_status status = lk_file_fail("examine", path);
        close(fd);
        return status;
    }
    *bytes = (struct lk_bytes){.size = (uint64_t)about.st_size, .fd = fd, .read = read_fd};
    return LK_OK;
}

void lk_bytes_close(struct lk_bytes *bytes)
{
    if (bytes->fd >= 0)
        close(bytes->fd);
    bytes->fd = -1;
}

enum lk_status lk_bytes_read(const struct lk_bytes *bytes, uint64_t offset, size_t count,
                             const char *what, void *to)
{
    if (offset > bytes->size || count > bytes->size - offset)
        return lk_fail(LK_E_DATA, "expected %s: %zu bytes at %llu; the file ends at %llu", what,
                       count, (unsigned long long)offset, (unsigned long long)bytes->size);
    return bytes->read(bytes, offset, count, to);
}
