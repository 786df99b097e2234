/* Checks that all ranks have the same text, and quotes where they differ. */
#include "base/fail.h"
#include "mirror/world_internal.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { QUOTED = 200 }; /* bytes of a line in a message */

/* Copies rank 0's text to every rank; the caller frees it. Where one rank has no memory, all
 * fail. */
static enum lk_status copy_first(struct lk_world *world, const char *text, char **copy)
{
    int64_t bytes = (int64_t)strlen(text) + 1;
    LK_TRY(lk_world_broadcast(world, sizeof bytes, &bytes));
    char *made = malloc((size_t)bytes);
    if (!made)
        return lk_fail_memory("a text to compare", (size_t)bytes);
    if (lk_world_rank(world) == 0)
        memcpy(made, text, (size_t)bytes);
    const enum lk_status status = lk_world_broadcast(world, (size_t)bytes, made);
    if (status != LK_OK) {
        free(made);
        return status;
    }
    *copy = made;
    return LK_OK;
}

/* Finds the first rank whose text is not rank 0's; `size`: all are the same. */
static enum lk_status find_different(struct lk_world *world, bool is_different, int *found)
{
    double *flags = calloc((size_t)world->size, sizeof *flags);
    if (!flags)
        return lk_fail_memory("a flag of each rank", (size_t)world->size * sizeof *flags);
    flags[world->rank] = is_different;
    const enum lk_status status = lk_world_all_reduce(world, (size_t)world->size, flags);
    int rank = 0;
    while (rank < world->size && flags[rank] == 0)
        rank++;
    free(flags);
    if (status == LK_OK)
        *found = rank;
    return status;
}

/* Where the first line in which a and b differ begins. */
static size_t different_line(const char *a, const char *b)
{
    size_t line = 0;
    for (size_t i = 0; a[i] == b[i] && a[i]; i++)
        if (a[i] == '\n')
            line = i + 1;
    return line;
}

static int line_length(const char *line)
{
    const size_t length = strcspn(line, "\n");
    return (int)(length < QUOTED ? length : QUOTED);
}

/* Fails on all ranks with the lines that differ. first: rank 0's text; text: this rank's. */
static enum lk_status quote(struct lk_world *world, int rank, const char *what,
                            const char *first, const char *text)
{
    struct {
        int64_t line; /* where it begins */
        char text[QUOTED + 1];
    } other = {0};
    if (world->rank == rank) {
        const size_t line = different_line(first, text);
        other.line = (int64_t)line;
        memcpy(other.text, text + line, (size_t)line_length(text + line));
    }
    LK_TRY(lk_world_broadcast_from(world, rank, sizeof other, &other));
    const char *line = first + other.line;
    return lk_world_end(world, LK_E_ARGUMENT,
                        "%s differ between ranks: rank 0 has '%.*s', rank %d has '%s'", what,
                        line_length(line), line, rank, other.text);
}

enum lk_status lk_world_check_equal(struct lk_world *world, const char *what, const char *text)
{
    char *first = NULL;
    int rank = 0;
    if (!world->kind)
        return LK_OK;
    LK_TRY(copy_first(world, text, &first));
    enum lk_status status = find_different(world, strcmp(first, text) != 0, &rank);
    if (status == LK_OK && rank < world->size)
        status = quote(world, rank, what, first, text);
    free(first);
    return status;
}
