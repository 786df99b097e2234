/* An OpenCL layer that ends the process where a sub-buffer is released before one of the same
 * buffer that was created later: NVIDIA's driver (580.159.04) crashes of that where they partly
 * overlap (src/device/regions.c). The ICD loader loads it where OPENCL_LAYERS names it. */
#include "device/layer_info.h"

#include <CL/cl_layer.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

const char layer_name[] = "minds the order of sub-buffers for Lockstep's tests";

static const cl_icd_dispatch *target;

/* Those that live, the newest first. Nobody retains them. */
struct sub {
    cl_mem mem, whole;
    struct sub *older;
};
static struct sub *newest;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static cl_mem CL_API_CALL create_sub_buffer(cl_mem whole, cl_mem_flags flags,
                                            cl_buffer_create_type type, const void *region,
                                            cl_int *error)
{
    cl_mem found = target->clCreateSubBuffer(whole, flags, type, region, error);
    struct sub *sub = found ? malloc(sizeof *sub) : NULL;
    if (!sub)
        return found;
    pthread_mutex_lock(&mutex);
    *sub = (struct sub){found, whole, newest};
    newest = sub;
    pthread_mutex_unlock(&mutex);
    return found;
}

static struct sub **place_of(cl_mem mem)
{
    struct sub **at = &newest;
    while (*at && (*at)->mem != mem)
        at = &(*at)->older;
    return at;
}

static cl_int CL_API_CALL release(cl_mem mem)
{
    pthread_mutex_lock(&mutex);
    struct sub **at = place_of(mem), *sub = *at;
    for (struct sub *s = newest; sub && s != sub; s = s->older)
        if (s->whole == sub->whole) {
            fprintf(stderr, "a sub-buffer is released before a newer one\n");
            abort();
        }
    if (sub)
        *at = sub->older;
    free(sub);
    pthread_mutex_unlock(&mutex);
    return target->clReleaseMemObject(mem);
}

/* What the layer's table leaves empty, the loader fills from the target's. */
CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *below,
                                            cl_uint *own_entries, const cl_icd_dispatch **own)
{
    static cl_icd_dispatch dispatch;
    if (!below || !own_entries || !own || entries < sizeof dispatch / sizeof(void *))
        return CL_INVALID_VALUE;
    target = below;
    dispatch.clCreateSubBuffer = create_sub_buffer;
    dispatch.clReleaseMemObject = release;
    *own_entries = sizeof dispatch / sizeof(void *);
    *own = &dispatch;
    return CL_SUCCESS;
}
