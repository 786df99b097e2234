/* Places memory that is needed at different times in as few bytes as possible. */
#include "graph/plan.h"

#include "base/fail.h"
#include <stdbool.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    const struct lk_blob *x = *(struct lk_blob *const *)a, *y = *(struct lk_blob *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y; /* the order given, so that plans repeat */
}

static bool live_together(const struct lk_blob *a, const struct lk_blob *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static size_t round_up(size_t bytes, size_t align)
{
    return (bytes + align - 1) / align * align;
}

/* The lowest offset in `slab` at which `blob` overlaps none of placed[0..count). */
static size_t lowest_offset(struct lk_blob *const *placed, int count,
                            const struct lk_blob *blob, int slab, size_t align)
{
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < count; i++) {
            const struct lk_blob *other = placed[i];
            if (other->slab == slab && live_together(blob, other) &&
                offset < other->offset + other->bytes && other->offset < offset + blob->bytes) {
                offset = round_up(other->offset + other->bytes, align);
                moved = true;
            }
        }
    }
    return offset;
}

static enum lk_status place(struct lk_blob *const *order, int at, size_t align, size_t most,
                            struct lk_plan *plan)
{
    struct lk_blob *blob = order[at];
    if (blob->bytes > most)
        return lk_fail(LK_E_DEVICE_MEMORY,
                       "%zu bytes in one piece, the device allocates at most %zu", blob->bytes,
                       most);
    for (int slab = 0; slab < LK_MOST_SLABS; slab++) {
        const size_t offset = lowest_offset(order, at, blob, slab, align);
        if (offset > most - blob->bytes)
            continue;
        blob->slab = slab;
        blob->offset = offset;
        if (slab >= plan->slabs)
            plan->slabs = slab + 1;
        if (offset + blob->bytes > plan->slab_bytes[slab])
            plan->slab_bytes[slab] = offset + blob->bytes;
        return LK_OK;
    }
    return lk_fail(LK_E_DEVICE_MEMORY, "more than %d allocations of %zu bytes", LK_MOST_SLABS,
                   most);
}

enum lk_status lk_plan_make(struct lk_blob *blobs, int count, size_t align, size_t most,
                            struct lk_plan *plan)
{
    struct lk_plan made = {0};
    struct lk_blob **order = malloc(((size_t)count + 1) * sizeof *order);
    enum lk_status status = LK_OK;
    if (!order)
        return lk_fail_memory("a memory plan", (size_t)count * sizeof *order);
    for (int i = 0; i < count; i++)
        order[i] = &blobs[i];
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
