/* Inflates gzip files and zlib streams, and deflates to zlib streams. */
#include "io/gzip.h"

#include "base/fail.h"
#include "io/file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

enum {
    CHUNK = 1 << 30,   /* zlib counts in 32 bits */
    MOST_RATIO = 1032, /* the largest ratio that deflate can reach */
    LEAST_ROOM = 4096,
};

struct inflation {
    z_stream z;
    const unsigned char *packed;
    size_t packed_left, limit;
    unsigned char *data;
    size_t bytes, room;
    bool is_larger;
};

static size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bytes to allocate first. The last four bytes of a gzip file of one member are its size modulo
 * 2^32: only a hint, which is limited by the ratio that deflate can reach. One byte more lets
 * the end be seen without growing the buffer. */
static size_t first_room(const unsigned char *packed, size_t bytes, size_t limit)
{
    size_t hint = LEAST_ROOM;
    if (bytes >= 18) {
        const unsigned char *size = packed + bytes - 4;
        hint = (size_t)size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16 |
               (size_t)size[3] << 24;
        if (hint / MOST_RATIO > bytes)
            hint = LEAST_ROOM;
    }
    return lesser(hint, limit) + 1;
}

static enum lk_status grow(struct inflation *s, size_t room)
{
    unsigned char *data = realloc(s->data, room);
    if (!data)
        return lk_fail_memory("inflated data", room);
    s->data = data;
    s->room = room;
    return LK_OK;
}

/* Calls inflate() once with as much as it takes; returns its code. */
static int advance(struct inflation *s)
{
    s->z.next_in = s->packed;
    s->z.avail_in = (uInt)lesser(s->packed_left, CHUNK);
    s->z.next_out = s->data + s->bytes;
    s->z.avail_out = (uInt)lesser(s->room - s->bytes, CHUNK);
    const int code = inflate(&s->z, Z_NO_FLUSH);
    s->packed_left -= (size_t)(s->z.next_in - s->packed);
    s->packed = s->z.next_in;
    s->bytes = (size_t)(s->z.next_out - s->data);
    return code;
}

/* After the end of a member: begins the next one, or finds the end of the file. */
static enum lk_status next_member(struct inflation *s)
{
    if (s->packed_left < 2 || s->packed[0] != 0x1f || s->packed[1] != 0x8b)
        return lk_fail(LK_E_DATA, "gzip: %zu bytes of something else stand behind the data",
                       s->packed_left);
    inflateReset(&s->z);
    return LK_OK;
}

static enum lk_status inflate_all(struct inflation *s)
{
    for (;;) {
        s->is_larger = s->bytes > s->limit;
        if (s->is_larger)
            return lk_fail(LK_E_DATA, "gzip: more than the expected %zu bytes", s->limit);
        if (s->bytes == s->room)
            LK_TRY(grow(s, lesser(s->room, s->limit / 2) * 2 + 2));
        const int code = advance(s);
        if (code == Z_MEM_ERROR)
            return lk_fail_memory("inflating", 1 << 16);
        if (code == Z_STREAM_END && s->packed_left == 0 && s->bytes <= s->limit)
            return LK_OK;
        if (code == Z_STREAM_END && s->packed_left > 0) {
            LK_TRY(next_member(s));
        } else if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
            return lk_fail(LK_E_DATA, "gzip: corrupt after %zu bytes: %s", s->bytes,
                           s->z.msg ? s->z.msg : "no gzip data");
        } else if (s->packed_left == 0 && s->bytes < s->room && s->bytes <= s->limit) {
            return lk_fail(LK_E_DATA, "gzip: cut short; it ends after %zu bytes of data",
                           s->bytes);
        }
    }
}

static enum lk_status inflate_framed(struct inflation *s, int framing, size_t room)
{
    if (s->limit >= SIZE_MAX / 2)
        return lk_fail(LK_E_ARGUMENT, "gzip: a limit of %zu bytes is none", s->limit);
    if (inflateInit2(&s->z, framing) != Z_OK)
        return lk_fail_memory("inflating", 1 << 16);
    enum lk_status status = grow(s, room);
    if (status == LK_OK)
        status = inflate_all(s);
    inflateEnd(&s->z);
    if (status != LK_OK)
        free(s->data);
    return status;
}

enum { WINDOW = 15, GZIP_ONLY = 16 }; /* a window of 32 KB; what is added to it */

enum lk_status lk_inflate(bool is_gzip, const void *packed, size_t packed_bytes, size_t limit,
                          struct lk_inflated *inflated)
{
    struct inflation s = {.packed = packed, .packed_left = packed_bytes, .limit = limit};
    const enum lk_status status =
        is_gzip
            ? inflate_framed(&s, WINDOW + GZIP_ONLY, first_room(packed, packed_bytes, limit))
            : inflate_framed(&s, WINDOW, lesser(limit, LEAST_ROOM) + 1);
    inflated->is_larger = s.is_larger;
    LK_TRY(status);
    inflated->data = s.data;
    inflated->bytes = s.bytes;
    return LK_OK;
}

static enum lk_status inflate_plainly(bool is_gzip, const void *packed, size_t packed_bytes,
                                      size_t limit, void **data, size_t *bytes)
{
    struct lk_inflated inflated = {0};
    LK_TRY(lk_inflate(is_gzip, packed, packed_bytes, limit, &inflated));
    *data = inflated.data;
    *bytes = inflated.bytes;
    return LK_OK;
}

enum lk_status lk_gzip_inflate(const void *packed, size_t packed_bytes, size_t limit,
                               void **data, size_t *bytes)
{
    return inflate_plainly(true, packed, packed_bytes, limit, data, bytes);
}

enum lk_status lk_zlib_inflate(const void *packed, size_t packed_bytes, size_t limit,
                               void **data, size_t *bytes)
{
    return inflate_plainly(false, packed, packed_bytes, limit, data, bytes);
}

enum lk_status lk_zlib_deflate(const void *data, size_t bytes, void **packed,
                               size_t *packed_bytes)
{
    uLongf used = compressBound((uLong)bytes);
    unsigned char *made = malloc(used);
    if (!made || compress2(made, &used, data, (uLong)bytes, Z_DEFAULT_COMPRESSION) != Z_OK) {
        free(made); /* `made` is large enough, so only zlib's own memory can be lacking */
        return lk_fail_memory("deflating", bytes);
    }
    *packed = made;
    *packed_bytes = used;
    return LK_OK;
}

uint32_t lk_crc32(const void *data, size_t bytes)
{
    return (uint32_t)crc32_z(0, data, bytes);
}

enum lk_status lk_gzip_read(const char *path, size_t limit, void **data, size_t *bytes)
{
    void *packed = NULL;
    size_t packed_bytes = 0;
    /* Deflating grows data that it cannot shrink by less than a thousandth. */
    LK_TRY(lk_file_read(path, limit + limit / 1000 + 65536, &packed, &packed_bytes));
    const enum lk_status status = lk_gzip_inflate(packed, packed_bytes, limit, data, bytes);
    free(packed);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "'%s'", path);
}
