/* An arena: many allocations that live equally long and are released together. Floor 0. */
#ifndef LK_BASE_ARENA_H
#define LK_BASE_ARENA_H

#include <lockstep/status.h>
#include <stddef.h>

struct lk_arena {
    struct lk_arena_block *blocks;
};

/* Zeroed memory aligned for any type, valid until lk_arena_clear(). fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_arena_allocate(struct lk_arena *arena, size_t bytes,
                                               void **memory);

/* A copy of `text` in the arena. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_arena_text(struct lk_arena *arena, const char *text,
                                           const char **copy);

/* Calls release(object) at lk_arena_clear(), of what was kept last first; at once if it fails.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_arena_keep(struct lk_arena *arena,
                                           void (*release)(void *object), void *object);

/* Releases everything taken and kept; the arena may be used again. {0} is an empty arena. */
void lk_arena_clear(struct lk_arena *arena);

#endif
