/* Sub-buffers of buffers. NVIDIA's driver (580.159.04) follows a null pointer where one of
 * several sub-buffers that partly overlap is released before another that was created later, as
 * the values of a memory plan would be. So each region has one sub-buffer, and they are
 * released in the reverse order of their creation: one that no view needs waits for those above
 * it. Nothing is locked: a device is used by one thread, which may hang in any of these calls.
 */
#include "device/regions.h"

#include <stdlib.h>

struct lk_region {
    struct lk_regions *all;
    struct lk_region *below; /* created before it */
    size_t offset, bytes;
    cl_mem mem;
    int views;
};

/* Of one buffer. Views may outlive it, so these are freed by whoever is last. */
struct lk_regions {
    struct lk_region *top;
    bool is_left; /* the buffer is destroyed */
};

static struct lk_region *find(const struct lk_regions *all, size_t offset, size_t bytes)
{
    struct lk_region *r = all->top;
    while (r && (r->offset != offset || r->bytes != bytes))
        r = r->below;
    return r;
}

static struct lk_region *add(struct lk_buffer *whole, size_t offset, size_t bytes,
                             cl_int *error)
{
    const cl_buffer_region region = {offset, bytes ? bytes : 1};
    struct lk_region *made = calloc(1, sizeof *made);
    *error = CL_OUT_OF_HOST_MEMORY;
    if (!made)
        return NULL;
    cl_mem mem = clCreateSubBuffer(whole->mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                   &region, error);
    if (*error != CL_SUCCESS) {
        free(made);
        return NULL;
    }
    *made = (struct lk_region){.all = whole->regions,
                               .below = whole->regions->top,
                               .offset = offset,
                               .bytes = bytes,
                               .mem = mem};
    whole->regions->top = made;
    return made;
}

struct lk_region *lk_region_take(struct lk_buffer *whole, size_t offset, size_t bytes,
                                 cl_int *error)
{
    struct lk_region *region = NULL;
    *error = CL_OUT_OF_HOST_MEMORY;
    if (!whole->regions)
        whole->regions = calloc(1, sizeof *whole->regions);
    if (whole->regions)
        region = find(whole->regions, offset, bytes);
    if (whole->regions && !region)
        region = add(whole, offset, bytes, error);
    if (region)
        region->views++;
    return region;
}

cl_mem lk_region_memory(const struct lk_region *region)
{
    return region->mem;
}

/* Releases what is on top and has no views; then all, if nobody needs it any more. */
static void clear_top(struct lk_regions *all)
{
    while (all->top && all->top->views == 0) {
        struct lk_region *top = all->top;
        all->top = top->below;
        clReleaseMemObject(top->mem);
        free(top);
    }
    if (all->is_left && !all->top)
        free(all);
}

void lk_region_release(struct lk_region *region)
{
    region->views--;
    clear_top(region->all);
}

void lk_regions_leave(struct lk_buffer *whole)
{
    if (!whole->regions)
        return;
    whole->regions->is_left = true;
    clear_top(whole->regions);
}
