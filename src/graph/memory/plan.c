/* Places memory that is needed at different times in as few bytes as possible. */
#include "graph/memory/plan.h"

#include "base/fail.h"
#include <stdbool.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    const struct lk_live_range *x = *(struct lk_live_range *const *)a,
                               *y = *(struct lk_live_range *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y; /* ties: by the given order, so that the result is always the
                                * same */
}

static bool live_together(const struct lk_live_range *a, const struct lk_live_range *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static size_t round_up(size_t bytes, size_t align)
{
    return (bytes + align - 1) / align * align;
}

/* The lowest offset in `slab` at which `live_range` overlaps none of placed[0..count). */
static size_t lowest_offset(struct lk_live_range *const *placed, int count,
                            const struct lk_live_range *live_range, int slab, size_t align)
{
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < count; i++) {
            const struct lk_live_range *other = placed[i];
            if (other->slab == slab && live_together(live_range, other) &&
                offset < other->offset + other->bytes &&
                other->offset < offset + live_range->bytes) {
                offset = round_up(other->offset + other->bytes, align);
                moved = true;
            }
        }
    }
    return offset;
}

static enum lk_status place(struct lk_live_range *const *order, int at, size_t align,
                            size_t most, struct lk_memory_plan *plan)
{
    struct lk_live_range *live_range = order[at];
    if (live_range->bytes > most)
        return lk_fail(LK_E_DEVICE_MEMORY,
                       "%zu bytes in one piece, the device allocates at most %zu",
                       live_range->bytes, most);
    for (int slab = 0; slab < LK_MOST_SLABS; slab++) {
        const size_t offset = lowest_offset(order, at, live_range, slab, align);
        if (offset > most - live_range->bytes)
            continue;
        live_range->slab = slab;
        live_range->offset = offset;
        if (slab >= plan->slabs)
            plan->slabs = slab + 1;
        if (offset + live_range->bytes > plan->slab_bytes[slab])
            plan->slab_bytes[slab] = offset + live_range->bytes;
        return LK_OK;
    }
    return lk_fail(LK_E_DEVICE_MEMORY, "more than %d allocations of %zu bytes", LK_MOST_SLABS,
                   most);
}

enum lk_status lk_memory_plan_make(struct lk_live_range *live_ranges, int count, size_t align,
                                   size_t most, struct lk_memory_plan *plan)
{
    struct lk_memory_plan made = {0};
    struct lk_live_range **order = malloc(((size_t)count + 1) * sizeof *order);
    enum lk_status status = LK_OK;
    if (!order)
        return lk_fail_memory("a memory plan", (size_t)count * sizeof *order);
    for (int i = 0; i < count; i++)
        order[i] = &live_ranges[i];
    qsort(order, (size_t)count, sizeof *order, by_size);
    for (int i = 0; i < count && status == LK_OK; i++)
        status = place(order, i, align, most, &made);
    free(order);
    for (int i = 0; i < made.slabs; i++)
        made.total_bytes += made.slab_bytes[i];
    if (status == LK_OK)
        *plan = made;
    return status;
}
