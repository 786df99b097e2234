/* Reads the lines that a growing file has got since the last time. */
#include "watch/tail.h"

#include "report/record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 16, PIECES = 256 };

static void start_over(struct tail *tail, const struct stat *about)
{
    tail->device = about->st_dev;
    tail->number = about->st_ino;
    tail->at = 0;
    tail->mark_bytes = tail->used = 0;
    tail->skips = false;
}

/* Whether what was read still stands in front of what is to be read. */
static bool is_same(const struct tail *tail, int file, const struct stat *about)
{
    char found[TAIL_MARK];
    const off_t from = tail->at - (off_t)tail->mark_bytes;
    return tail->device == about->st_dev && tail->number == about->st_ino &&
           about->st_size >= tail->at &&
           pread(file, found, tail->mark_bytes, from) == (ssize_t)tail->mark_bytes &&
           memcmp(found, tail->mark, tail->mark_bytes) == 0;
}

/* Keeps bytes of a line that is not complete. */
static void keep(struct tail *tail, const char *bytes, size_t count)
{
    if (tail->skips)
        return;
    if (tail->used + count >= TAIL_MOST_LINE) {
        tail->skips = true;
        tail->used = 0;
        return;
    }
    if (tail->used + count + 1 > tail->room) {
        const size_t room = 2 * (tail->used + count) + 1024;
        char *longer = realloc(tail->line, room);
        if (!longer) {
            tail->skips = true;
            return;
        }
        tail->line = longer;
        tail->room = room;
    }
    memcpy(tail->line + tail->used, bytes, count);
    tail->used += count;
}

static void give(struct tail *tail, const struct tail_reader *reader)
{
    const bool is_whole = !tail->skips && !memchr(tail->line, '\0', tail->used);
    if (is_whole)
        tail->line[tail->used] = '\0';
    reader->take(reader->context, is_whole ? tail->line : NULL);
    tail->used = 0;
    tail->skips = false;
}

static void add_mark(struct tail *tail, const char *bytes, size_t count)
{
    const size_t added = count < TAIL_MARK ? count : TAIL_MARK, room = TAIL_MARK - added;
    const size_t kept = tail->mark_bytes < room ? tail->mark_bytes : room;
    memmove(tail->mark, tail->mark + tail->mark_bytes - kept, kept);
    memcpy(tail->mark + kept, bytes + count - added, added);
    tail->mark_bytes = kept + added;
}

static void take_bytes(struct tail *tail, const struct tail_reader *reader, const char *bytes,
                       size_t count)
{
    add_mark(tail, bytes, count);
    tail->at += (off_t)count;
    for (const char *at = bytes, *end = bytes + count; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        keep(tail, at, (size_t)((newline ? newline : end) - at));
        if (!newline)
            return;
        give(tail, reader);
        at = newline + 1;
    }
}

enum tail_state tail_read(struct tail *tail, const struct tail_reader *reader)
{
    static char piece[PIECE];
    struct stat about;
    const int file = record_open(tail->path);
    enum tail_state state = TAIL_GOES_ON;
    if (file < 0 || fstat(file, &about) != 0) {
        if (file >= 0)
            close(file);
        return TAIL_ABSENT;
    }
    if (!is_same(tail, file, &about)) {
        start_over(tail, &about);
        reader->restart(reader->context);
    }
    for (int i = 0; i < PIECES && state == TAIL_GOES_ON; i++) {
        const ssize_t count = pread(file, piece, sizeof piece, tail->at);
        if (count > 0)
            take_bytes(tail, reader, piece, (size_t)count);
        else
            state = TAIL_ENDED;
    }
    close(file);
    return state;
}

void tail_clear(struct tail *tail)
{
    free(tail->line);
    *tail = (struct tail){0};
}
