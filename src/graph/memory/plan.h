/* Plans device memory: data that is needed at different times shares the same bytes. Floor 5.
 * Knows no device and no graph. */
#ifndef LK_GRAPH_MEMORY_PLAN_H
#define LK_GRAPH_MEMORY_PLAN_H

#include <lockstep/status.h>
#include <stddef.h>

/* A live range: memory that is needed from time `first` to time `last`, both included. */
struct lk_live_range {
    size_t bytes;
    int first, last;
    int slab;      /* result: the number of the allocation, */
    size_t offset; /* and the byte in it */
};

enum { LK_MOST_SLABS = 64 };

struct lk_memory_plan {
    int slabs;
    size_t slab_bytes[LK_MOST_SLABS], total_bytes;
};

/* Places live ranges so that no two that live at the same time overlap: the largest first, each
 * at the lowest place that is free all its life, multiples of `align` apart, in allocations of
 * at most `most` bytes. fails: LK_E_DEVICE_MEMORY where one alone is too large, LK_E_MEMORY.
 * source: Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference (2020)
 */
LK_MUST_CHECK enum lk_status lk_memory_plan_make(struct lk_live_range *live_ranges, int count,
                                                 size_t align, size_t most,
                                                 struct lk_memory_plan *plan);

#endif
