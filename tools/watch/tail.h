/* Follows a file of lines while another process appends to it, cuts it or replaces it. */
#ifndef TOOLS_TAIL_H
#define TOOLS_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TAIL_PATH = 1100, TAIL_MARK = 1024, TAIL_MOST_LINE = 1 << 20 };

/* {.path = ...} begins at the first line. */
struct tail {
    char path[TAIL_PATH];
    dev_t device;
    ino_t number;
    off_t at;             /* bytes that were read */
    char mark[TAIL_MARK]; /* the last of them, by which a file that was written anew is known */
    size_t mark_bytes;
    char *line; /* the beginning of one that is not complete */
    size_t used, room;
    bool skips; /* the rest of a line that is too long */
};

struct tail_reader {
    void *context;
    void (*restart)(void *context); /* the file is another one: what was read counts no more */
    void (*take)(void *context, const char *line); /* NULL: one with a byte 0, or too long */
};

enum tail_state { TAIL_ABSENT, TAIL_ENDED, TAIL_GOES_ON };

/* Reads what has come, some megabytes at most: TAIL_GOES_ON where there is more. Lines come
 * without their newline and only when it is there. */
enum tail_state tail_read(struct tail *tail, const struct tail_reader *reader);

void tail_clear(struct tail *tail);

#endif
