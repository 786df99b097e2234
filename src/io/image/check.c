/* Checks the structure of PNG and JPEG files before a decoder reads them. */
#include "io/image/check.h"

#include "base/fail.h"
#include "io/gzip.h"
#include <stdbool.h>
#include <string.h>

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static enum lk_status fail_at(const char *where, const char *what, size_t at)
{
    return lk_fail(LK_E_DATA, "'%s': broken image: %s at byte %zu", where, what, at);
}

/* Needed since stb_image checks no checksum, allocates what a chunk's length says before it
 * looks whether the file has so many bytes, and copies pixels that begin with an empty chunk to
 * memory that it does not have yet. */
enum lk_status lk_png_check(const uint8_t *data, size_t bytes, const char *where)
{
    bool has_pixels = false;
    size_t at = 8; /* behind the signature */
    while (bytes - at >= 12) {
        const size_t length = big_endian(data + at);
        if (length > bytes - at - 12)
            break;
        if (lk_crc32(data + at + 4, length + 4) != big_endian(data + at + 8 + length))
            return fail_at(where, "a wrong checksum", at);
        if (memcmp(data + at + 4, "IEND", 4) == 0)
            return LK_OK;
        if (memcmp(data + at + 4, "IDAT", 4) == 0) {
            if (length == 0 && !has_pixels)
                return fail_at(where, "no pixels", at);
            has_pixels = true;
        }
        at += 12 + length;
    }
    return fail_at(where, "it is cut short", at);
}

enum lk_status lk_png_size(const uint8_t *data, size_t bytes, const char *where,
                           int64_t size[2])
{
    if (bytes < 24 || memcmp(data + 12, "IHDR", 4) != 0)
        return fail_at(where, "no header", 8);
    size[0] = big_endian(data + 20);
    size[1] = big_endian(data + 16);
    return LK_OK;
}

/* What the segments of a JPEG have defined so far. */
struct jpeg {
    bool is_progressive;
    unsigned tables; /* bit 4 * kind + number: that Huffman table is there; kind 0 DC, 1 AC */
};

/* Reads a segment of Huffman tables. A table is its kind and number, the number of codes of
 * each of 16 lengths, and the codes' values. stb_image 2.27 has room for 256 codes and does not
 * check their number. */
static bool read_tables(struct jpeg *jpeg, const uint8_t *data, size_t bytes)
{
    enum { LENGTHS = 16, HEAD = 1 + LENGTHS, MOST_CODES = 256 };
    while (bytes >= HEAD) {
        size_t codes = 0;
        for (int i = 1; i < HEAD; i++)
            codes += data[i];
        if (codes > MOST_CODES || codes > bytes - HEAD || (data[0] & 0xec))
            return false;
        jpeg->tables |= 1u << (data[0] >> 4) * 4 << (data[0] & 3);
        data += HEAD + codes;
        bytes -= HEAD + codes;
    }
    return bytes == 0;
}

/* Whether all tables that a scan's components name are defined; stb_image uses them unchecked.
 * A scan's header has its components, each with the numbers of its tables, and the range of
 * coefficients. */
static bool has_tables(const struct jpeg *jpeg, const uint8_t *data, size_t bytes)
{
    const size_t components = bytes > 0 ? data[0] : 0;
    if (components < 1 || bytes != 1 + 2 * components + 3)
        return false;
    const uint8_t first = data[1 + 2 * components], last = data[2 + 2 * components];
    for (size_t i = 0; i < components; i++) {
        const uint8_t numbers = data[2 + 2 * i];
        const bool needs_dc = !jpeg->is_progressive || first == 0;
        const bool needs_ac = !jpeg->is_progressive || last > 0;
        if ((numbers & 0xcc) || (needs_dc && !(jpeg->tables >> (numbers >> 4) & 1)) ||
            (needs_ac && !(jpeg->tables >> (4 + (numbers & 3)) & 1)))
            return false;
    }
    return true;
}

static bool is_restart(uint8_t marker)
{
    return (marker & 0xf8) == 0xd0;
}

/* Finds the end of a scan's data: the first 0xff that is followed neither by 0 nor by a restart
 * marker's number. */
static size_t skip_scan(const uint8_t *data, size_t bytes, size_t at)
{
    while (at + 1 < bytes &&
           (data[at] != 0xff || data[at + 1] == 0 || is_restart(data[at + 1])))
        at++;
    return at + 1 < bytes ? at : bytes;
}

enum lk_status lk_jpeg_check(const uint8_t *data, size_t bytes, const char *where)
{
    enum { END = 0xd9, SCAN = 0xda, TABLES = 0xc4, PROGRESSIVE = 0xc2 };
    struct jpeg jpeg = {0};
    for (size_t at = 2;;) { /* behind the first marker */
        if (at < bytes && data[at] != 0xff)
            return fail_at(where, "no marker", at);
        while (at < bytes && data[at] == 0xff)
            at++;
        if (at < bytes && data[at] == END)
            return LK_OK;
        if (bytes - at < 3)
            return fail_at(where, "it is cut short", bytes);
        const uint8_t marker = data[at++];
        const size_t length = (size_t)data[at] << 8 | data[at + 1];
        if (length < 2 || length > bytes - at)
            return fail_at(where, "it is cut short", at);
        const uint8_t *body = data + at + 2;
        if (marker == TABLES && !read_tables(&jpeg, body, length - 2))
            return fail_at(where, "a Huffman table that is none", at);
        if (marker == SCAN && !has_tables(&jpeg, body, length - 2))
            return fail_at(where, "a scan without its Huffman tables", at);
        jpeg.is_progressive |= marker == PROGRESSIVE;
        at += length;
        if (marker == SCAN)
            at = skip_scan(data, bytes, at);
    }
}
