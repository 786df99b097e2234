/* Works round faults of PoCL, the OpenCL implementation for CPUs. */
#define _DEFAULT_SOURCE /* madvise() */
#include "device/pocl.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* PoCL 3.1 caches the code of compiled kernels by (hash of program and options, work-group,
 * largest grid), but counts references to an entry by the first two alone. If one context
 * launches a kernel with a larger grid while another runs it, the new entry is released once
 * too often, and the assertion `ref_count > 0' in pocl_release_dlhandle_cache ends the process.
 * Each launch counts its entry twice, so two contexts never get there, but three do. So at most
 * two contexts share compiled kernels; each further pair has build options of its own. */
enum { TOGETHER = 2 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int members[LK_MOST_DEVICES]; /* of each group */

bool lk_pocl_is(const char *platform)
{
    return strstr(platform, "Portable Computing Language") != NULL;
}

int lk_pocl_enter(void)
{
    int group = 0;
    pthread_mutex_lock(&mutex);
    while (group < LK_MOST_DEVICES - 1 && members[group] >= TOGETHER)
        group++;
    members[group]++;
    pthread_mutex_unlock(&mutex);
    return group;
}

void lk_pocl_leave(int group)
{
    pthread_mutex_lock(&mutex);
    members[group]--;
    pthread_mutex_unlock(&mutex);
}

const char *lk_pocl_options(int group, char *text, size_t bytes)
{
    text[0] = '\0';
    if (group > 0)
        snprintf(text, bytes, " -DLK_GROUP=%d", group);
    return text;
}

/* Seen in 3.1; what others do was not tried. */
static bool is_known(const struct lk_device_info *info)
{
    return lk_pocl_is(info->platform) && strncmp(info->driver, "3.1", 3) == 0 &&
           (info->driver[3] < '0' || info->driver[3] > '9') &&
           info->device_class == LK_CLASS_CPU;
}

/* Its driver for one thread compiles elsewhere. */
bool lk_pocl_compiles_late(const struct lk_device_info *info)
{
    return is_known(info) && strncmp(info->name, "pthread", 7) == 0;
}

/* PoCL optimizes a program as a whole when it is built, and each of its kernels twice more when
 * it first runs. Without the first of the three a kernel's code is as fast and has the same
 * bits, since no pass may reorder floats, and a cold start saves half of its build. The
 * compiler's option for that is none of OpenCL's, so PoCL refuses it as a word of its own;
 * but 3.1 cuts options at blanks where it checks them and at tabs too where it hands them on.
 * Without passes the compiler also warns of what they would have removed, hence -w. Other
 * versions were not measured, and get the usual build. */
const char *lk_pocl_unity_options(const struct lk_device_info *info)
{
    return is_known(info) ? " -w -DLK_UNITY\t-disable-llvm-passes" : "";
}

/* PoCL's threads release a command some time after they have reported it as done. If the
 * program ends or the context is released in between, they read freed memory. */
void lk_pocl_finish(cl_command_queue queue)
{
    cl_event last = NULL;
    const struct timespec moment = {.tv_nsec = 1000000};
    clFinish(queue);
    if (clEnqueueMarkerWithWaitList(queue, 0, NULL, &last) != CL_SUCCESS)
        return;
    clFinish(queue);
    for (int i = 0; i < 1000; i++) {
        cl_uint holders = 1;
        nanosleep(&moment, NULL);
        clGetEventInfo(last, CL_EVENT_REFERENCE_COUNT, sizeof holders, &holders, NULL);
        if (holders <= 1)
            break;
    }
    clReleaseEvent(last);
}

/* Sums over channels read many planes at the same time, each in pages of its own: with small
 * pages these are more than the core's TLB holds. PoCL's map gives the buffer's own memory, so
 * madvise() on it acts on the buffer. */
void lk_pocl_advise(cl_command_queue queue, cl_mem mem, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { HUGE_PAGE = 2 << 20 };
    cl_int error = CL_SUCCESS;
    if (bytes < 2 * HUGE_PAGE)
        return;
    char *memory = clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                      bytes, 0, NULL, NULL, &error);
    if (error != CL_SUCCESS)
        return;
    const size_t before = -(uintptr_t)memory % HUGE_PAGE;
    const size_t whole = (bytes - before) / HUGE_PAGE * HUGE_PAGE;
    (void)!madvise(memory + before, whole, MADV_HUGEPAGE);
    clEnqueueUnmapMemObject(queue, mem, memory, 0, NULL, NULL);
    clFinish(queue); /* before other queues use the buffer */
#else
    (void)queue;
    (void)mem;
    (void)bytes;
#endif
}

/* One thread of PoCL fills a buffer. The first fill also brings in the pages, which takes a
 * second for each GB or two, so half of it goes to another queue, whose command a second thread
 * runs. Both halves begin behind what `queue` holds, and what follows there waits for both. */
cl_int lk_pocl_enqueue_fill(cl_command_queue queue, cl_command_queue other, cl_mem mem,
                            uint8_t byte, size_t bytes)
{
    const size_t half = bytes / 2;
    cl_event before = NULL, done = NULL;
    cl_int error = clEnqueueMarkerWithWaitList(queue, 0, NULL, &before);
    if (error == CL_SUCCESS)
        error = clEnqueueFillBuffer(other, mem, &byte, sizeof byte, half, bytes - half, 1,
                                    &before, &done);
    if (error == CL_SUCCESS)
        error = clEnqueueFillBuffer(queue, mem, &byte, sizeof byte, 0, half, 0, NULL, NULL);
    if (error == CL_SUCCESS)
        error = clFlush(other);
    if (error == CL_SUCCESS)
        error = clEnqueueBarrierWithWaitList(queue, 1, &done, NULL);
    if (before)
        clReleaseEvent(before);
    if (done)
        clReleaseEvent(done);
    return error;
}
