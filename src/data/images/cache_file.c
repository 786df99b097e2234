/* Making a cache's file. */
#include "data/images/cache_file.h"

#include "base/fail.h"
#include "base/parallel.h"
#include "io/crc32c.h"
#include "io/file.h"
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, ORDER = 0x01020304, MOST_PIECE = 16, MOST_PIECE_BYTES = 4 << 20 };

const char *lk_cache_magic(const struct lk_cache_samples *samples)
{
    return samples->what ? "LKFEATS" : "LKCACHE";
}

uint32_t lk_cache_entry_checksum(const struct lk_cache_entry *entry)
{
    return lk_crc32c(entry, offsetof(struct lk_cache_entry, crc_of_entry));
}

struct lk_cache_header lk_cache_header_make(const struct lk_cache_samples *samples)
{
    struct lk_cache_header header = {.order = ORDER,
                                     .version = VERSION,
                                     .count = samples->count,
                                     .bytes = (int64_t)samples->bytes};
    memcpy(header.magic, lk_cache_magic(samples), sizeof header.magic);
    memcpy(header.sum, samples->sum, sizeof samples->sum);
    header.crc = lk_crc32c(&header, offsetof(struct lk_cache_header, crc));
    return header;
}

/* A file that is being made: pieces of a few samples are read on threads and written in
 * order. */
struct making {
    const struct lk_cache_samples *samples;
    struct lk_cache_entry *entries;
    FILE *stream;
    int64_t each, window; /* samples in a piece; pieces at a time */
    uint8_t *room;        /* [window][each][bytes] */
};

static uint8_t *piece_room(const struct making *m, int64_t piece)
{
    return m->room + (size_t)(piece % m->window * m->each) * m->samples->bytes;
}

static int64_t piece_end(const struct making *m, int64_t piece)
{
    const int64_t end = (piece + 1) * m->each;
    return end < m->samples->count ? end : m->samples->count;
}

static enum lk_status read_piece(void *context, int64_t piece)
{
    const struct making *m = context;
    const struct lk_cache_samples *s = m->samples;
    uint8_t *to = piece_room(m, piece);
    for (int64_t i = piece * m->each; i < piece_end(m, piece); i++, to += s->bytes) {
        struct lk_cache_entry *entry = &m->entries[i];
        LK_TRY(s->read(s->context, i, to, &entry->label));
        entry->crc = lk_crc32c(to, s->bytes);
        entry->is_bad = s->is_bad(s->context, i);
        entry->crc_of_entry = lk_cache_entry_checksum(entry);
    }
    return LK_OK;
}

static enum lk_status write_piece(void *context, int64_t piece)
{
    const struct making *m = context;
    const size_t count = (size_t)(piece_end(m, piece) - piece * m->each);
    if (fwrite(piece_room(m, piece), m->samples->bytes, count, m->stream) != count)
        return lk_file_fail("write", "the cache");
    return LK_OK;
}

static enum lk_status write_all(struct making *m)
{
    const struct lk_cache_samples *s = m->samples;
    const struct lk_cache_header header = lk_cache_header_make(s);
    atomic_bool stop = false;
    const struct lk_parallel crew = {.threads = lk_parallel_threads(0),
                                     .count = (s->count + m->each - 1) / m->each,
                                     .window = m->window,
                                     .stop = &stop,
                                     .context = m,
                                     .work = read_piece,
                                     .take = write_piece};
    if (fwrite(&header, sizeof header, 1, m->stream) != 1)
        return lk_file_fail("write", "the cache");
    LK_TRY(lk_parallel_run(&crew));
    if (fwrite(m->entries, sizeof *m->entries, (size_t)s->count, m->stream) != (size_t)s->count)
        return lk_file_fail("write", "the cache");
    return LK_OK;
}

enum lk_status lk_cache_file_make(const char *path, const struct lk_cache_samples *samples,
                                  struct lk_cache_entry *entries)
{
    const int64_t fits = (int64_t)(MOST_PIECE_BYTES / samples->bytes);
    struct making m = {.samples = samples,
                       .entries = entries,
                       .each = fits < 1            ? 1
                               : fits > MOST_PIECE ? MOST_PIECE
                                                   : fits,
                       .window = 2 * lk_parallel_threads(0)};
    struct lk_file_draft *draft = NULL;
    m.room = malloc((size_t)(m.window * m.each) * samples->bytes);
    if (!m.room)
        return lk_fail_memory("samples for a cache",
                              (size_t)(m.window * m.each) * samples->bytes);
    lk_file_remove_left_overs(path);
    enum lk_status status = lk_file_draft_open(path, &draft);
    if (status == LK_OK) {
        m.stream = lk_file_draft_stream(draft);
        status = write_all(&m);
        if (status == LK_OK)
            status = lk_file_draft_commit(draft);
        else
            lk_file_draft_discard(draft);
    }
    free(m.room);
    return status;
}
