/* A list of zeroed allocations, and of other objects, that are all released at once. */
#include "base/arena.h"

#include "base/fail.h"
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Each object is an allocation of its own: an arena holds tens of objects, too few for cutting
 * them from larger blocks to pay. */
struct lk_arena_block {
    struct lk_arena_block *next;
    void (*release)(void *object); /* NULL: nothing is kept here */
    void *object;
    alignas(max_align_t) unsigned char memory[];
};

enum lk_status lk_arena_allocate(struct lk_arena *arena, size_t bytes, void **memory)
{
    if (bytes > SIZE_MAX - sizeof(struct lk_arena_block))
        return lk_fail_memory("an arena", bytes);
    struct lk_arena_block *block = calloc(1, sizeof *block + bytes);
    if (!block)
        return lk_fail_memory("an arena", bytes);
    block->next = arena->blocks;
    arena->blocks = block;
    *memory = block->memory;
    return LK_OK;
}

enum lk_status lk_arena_text(struct lk_arena *arena, const char *text, const char **copy)
{
    const size_t bytes = strlen(text) + 1;
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(arena, bytes, &memory));
    *copy = memcpy(memory, text, bytes);
    return LK_OK;
}

enum lk_status lk_arena_keep(struct lk_arena *arena, void (*release)(void *object),
                             void *object)
{
    void *memory;
    const enum lk_status status = lk_arena_allocate(arena, 0, &memory);
    if (status != LK_OK) {
        release(object);
        return status;
    }
    arena->blocks->release = release;
    arena->blocks->object = object;
    return LK_OK;
}

void lk_arena_clear(struct lk_arena *arena)
{
    while (arena->blocks) {
        struct lk_arena_block *block = arena->blocks;
        arena->blocks = block->next;
        if (block->release)
            block->release(block->object);
        free(block);
    }
}
