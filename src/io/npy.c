/* Reads and writes the header of a .npy file, which is a Python dictionary as text. */
#include "io/npy.h"

#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[6] = "\x93NUMPY";

/* The text of a header while it is read. */
struct cursor {
    const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
}

static bool take(struct cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* 'text' in single or double quotes, without escapes. */
static bool take_text(struct cursor *c, char *text, size_t room)
{
    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    const char quote = *c->at++;
    const char *close = memchr(c->at, quote, (size_t)(c->end - c->at));
    if (!close || (size_t)(close - c->at) >= room)
        return false;
    memcpy(text, c->at, (size_t)(close - c->at));
    text[close - c->at] = '\0';
    c->at = close + 1;
    return true;
}

static bool take_length(struct cursor *c, int64_t *length)
{
    skip_blanks(c);
    const char *first = c->at;
    int64_t value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *c->at - '0', &value))
            return false;
    *length = value;
    return c->at > first;
}

/* (3, 28, 28), (3,) or (). */
static bool take_shape(struct cursor *c, struct lk_npy *npy)
{
    bool has_comma = true;
    if (!take(c, '('))
        return false;
    for (npy->rank = 0; !take(c, ')'); npy->rank++) {
        if (!has_comma || npy->rank == LK_NPY_MOST_AXES ||
            !take_length(c, &npy->shape[npy->rank]))
            return false;
        has_comma = take(c, ',');
    }
    return npy->rank != 1 || has_comma; /* (3) is a number */
}

/* "<i8", "|u1", ">f4" */
static bool read_type(const char *text, struct lk_npy *npy)
{
    char *end;
    if (!*text || !strchr("<>|=", *text) || !text[1] || !text[2])
        return false;
    const long size = strtol(text + 2, &end, 10);
    if (*end || size < 1 || size > 1 << 20 || text[2] < '0' || text[2] > '9')
        return false;
    npy->kind = text[1];
    npy->size = (int)size;
    npy->is_big_endian = *text == '>';
    return true;
}

/* {'descr': '|u1', 'fortran_order': False, 'shape': (3, 28, 28), }, the keys in any order. */
static bool read_dictionary(struct cursor *c, struct lk_npy *npy, bool *is_columns_first,
                            bool *is_structured)
{
    enum { TYPE = 1, ORDER = 2, SHAPE = 4 };
    unsigned seen = 0;
    if (!take(c, '{'))
        return false;
    while (!take(c, '}')) {
        char key[32], type[32];
        if (!take_text(c, key, sizeof key) || !take(c, ':'))
            return false;
        const unsigned which = strcmp(key, "descr") == 0           ? TYPE
                               : strcmp(key, "fortran_order") == 0 ? ORDER
                               : strcmp(key, "shape") == 0         ? SHAPE
                                                                   : 0;
        if (which == 0 || (seen & which))
            return false;
        seen |= which;
        skip_blanks(c);
        *is_structured = which == TYPE && c->at < c->end && *c->at == '[';
        if (*is_structured)
            return true;
        if (which == TYPE && (!take_text(c, type, sizeof type) || !read_type(type, npy)))
            return false;
        if (which == SHAPE && !take_shape(c, npy))
            return false;
        if (which == ORDER) {
            *is_columns_first = take_word(c, "True");
            if (!*is_columns_first && !take_word(c, "False"))
                return false;
        }
        if (!take(c, ',')) {
            if (!take(c, '}'))
                return false;
            break;
        }
    }
    skip_blanks(c);
    return seen == (TYPE | ORDER | SHAPE) && c->at == c->end;
}

/* Elements, below 2^62 bytes; false: more. */
static bool count_elements(struct lk_npy *npy)
{
    int64_t count = 1, bytes;
    for (int i = 0; i < npy->rank; i++)
        if (__builtin_mul_overflow(count, npy->shape[i], &count))
            return false;
    npy->count = count;
    return !__builtin_mul_overflow(count, (int64_t)npy->size, &bytes) && bytes < (int64_t)1
                                                                                     << 62;
}

/* Checks the bytes in front of the dictionary and finds where that begins and ends. */
static enum lk_status find_header(const uint8_t *data, size_t bytes, const char *where,
                                  size_t *start, size_t *length)
{
    if (bytes < 10 || memcmp(data, magic, sizeof magic) != 0)
        return lk_fail(LK_E_DATA, "'%s': no .npy file: it does not begin with \\x93NUMPY",
                       where);
    if (data[6] < 1 || data[6] > 3)
        return lk_fail(LK_E_DATA, "'%s': a .npy file of version 1 to 3 is expected, found %d",
                       where, data[6]);
    *start = data[6] == 1 ? 10 : 12;
    *length = (size_t)data[8] | (size_t)data[9] << 8;
    if (data[6] > 1 && bytes >= 12)
        *length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (bytes < *start || *length > LK_NPY_MOST_HEADER || *length > bytes - *start)
        return lk_fail(LK_E_DATA,
                       "'%s': a header of %zu bytes, at most %d and what the file has are "
                       "expected",
                       where, *length, LK_NPY_MOST_HEADER);
    return LK_OK;
}

enum lk_status lk_npy_parse(const void *data, size_t bytes, int64_t file_bytes,
                            const char *where, struct lk_npy *npy)
{
    const char *text = data;
    struct lk_npy found = {0};
    size_t start = 0, length = 0;
    bool is_columns_first = false, is_structured = false;
    LK_TRY(find_header(data, bytes, where, &start, &length));
    struct cursor cursor = {text + start, text + start + length};
    const bool is_read = read_dictionary(&cursor, &found, &is_columns_first, &is_structured);
    if (is_structured)
        return lk_fail(LK_E_UNSUPPORTED, "'%s': elements of several values", where);
    if (!is_read || !count_elements(&found))
        return lk_fail(LK_E_DATA, "'%s': a broken header", where);
    if (is_columns_first && found.rank > 1)
        return lk_fail(LK_E_UNSUPPORTED,
                       "'%s': columns come first (Fortran order); save "
                       "numpy.ascontiguousarray() of it",
                       where);
    found.offset = start + length;
    const int64_t wanted = (int64_t)found.offset + found.count * found.size;
    if (file_bytes != wanted)
        return lk_fail(LK_E_DATA, "'%s': %lld bytes are expected, found %lld", where,
                       (long long)wanted, (long long)file_bytes);
    *npy = found;
    return LK_OK;
}

int64_t lk_npy_integer(const struct lk_npy *npy, const uint8_t *element)
{
    uint64_t bits = 0;
    for (int i = 0; i < npy->size; i++)
        bits = bits << 8 | element[npy->is_big_endian ? i : npy->size - 1 - i];
    if (npy->kind == 'u')
        return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
    const uint64_t sign = (uint64_t)1 << (8 * npy->size - 1);
    return (int64_t)((bits ^ sign) - sign);
}

/* Eight axes of 20 characters, as many as a length can have, leave room in 256 bytes. */
size_t lk_npy_write_header(const int64_t *shape, int rank,
                           uint8_t header[LK_NPY_WRITTEN_HEADER])
{
    enum { ALIGN = 64, PREFIX = 10 };
    char text[LK_NPY_WRITTEN_HEADER];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < rank && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? ", " : "",
                                 (long long)shape[i]);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s), }", rank == 1 ? "," : "");
    const size_t bytes = (PREFIX + used + 1 + ALIGN - 1) / ALIGN * ALIGN;
    memcpy(header, magic, sizeof magic);
    header[6] = 1;
    header[7] = 0;
    header[8] = (uint8_t)(bytes - PREFIX);
    header[9] = (uint8_t)((bytes - PREFIX) >> 8);
    memcpy(header + PREFIX, text, used);
    memset(header + PREFIX + used, ' ', bytes - PREFIX - used);
    header[bytes - 1] = '\n';
    return bytes;
}
