/* Builds the programs of all announced kernels, on at most as many threads as the host has
 * cores. */
#include "base/fail.h"
#include "base/progress.h"
#include "device/program/kernel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 16 };

/* $LOCKSTEP_BUILD_THREADS, for drivers whose compiler is not safe in several threads. */
long lk_build_thread_count(void)
{
    const char *text = getenv("LOCKSTEP_BUILD_THREADS");
    const long wanted = text ? strtol(text, NULL, 10) : 0;
    const long count = wanted > 0 ? wanted : sysconf(_SC_NPROCESSORS_ONLN);
    return count < MOST_THREADS ? count : MOST_THREADS;
}

struct work {
    struct lk_device *device;
    struct lk_program *next;
    enum lk_status status; /* of the first failure */
    char text[4096];
};

static struct lk_program *take(struct work *work)
{
    pthread_mutex_lock(&work->device->mutex);
    struct lk_program *program = work->status == LK_OK ? work->next : NULL;
    while (program && !program->is_wanted)
        program = program->next;
    work->next = program ? program->next : NULL;
    if (program)
        program->is_wanted = false;
    pthread_mutex_unlock(&work->device->mutex);
    return program;
}

/* Errors are kept per thread, so a builder thread hands its text over. */
static void build_one(struct work *work, struct lk_program *program)
{
    const enum lk_status status = lk_program_build(work->device, program);
    if (status == LK_OK) {
        lk_progress_add(LK_TASK_BUILD, 1);
        return;
    }
    pthread_mutex_lock(&work->device->mutex);
    if (work->status == LK_OK) {
        work->status = status;
        snprintf(work->text, sizeof work->text, "%s", lk_error_text());
    }
    pthread_mutex_unlock(&work->device->mutex);
}

static void *build_programs(void *argument)
{
    struct work *work = argument;
    for (struct lk_program *program; (program = take(work)) != NULL;)
        build_one(work, program);
    return NULL;
}

static enum lk_status create_kernels(struct lk_device *device)
{
    while (device->pending) {
        struct lk_kernel *kernel = device->pending;
        const struct lk_program *program = kernel->program;
        char name[80];
        cl_int error;
        snprintf(name, sizeof name, program->unit ? "%s_%d" : "%s", kernel->name,
                 program->unit);
        kernel->kernel = clCreateKernel(program->program, name, &error);
        if (error != CL_SUCCESS) {
            char what[160];
            snprintf(what, sizeof what, "cl/%s: kernel '%s'", program->source->name,
                     kernel->name);
            kernel->kernel = NULL;
            return lk_device_fail(device, error, what);
        }
        clGetKernelInfo(kernel->kernel, CL_KERNEL_NUM_ARGS, sizeof kernel->arg_count,
                        &kernel->arg_count, NULL);
        device->pending = kernel->next_pending;
        kernel->next_pending = NULL;
    }
    return LK_OK;
}

/* Marks the programs that announced kernels still need, and returns how many. Programs of
 * kernels that were destroyed meanwhile are left out: they may be ones that do not build. */
static int mark_wanted(struct lk_device *device)
{
    int count = 0;
    for (struct lk_program *p = device->programs; p; p = p->next)
        p->is_wanted = false;
    for (struct lk_kernel *k = device->pending; k; k = k->next_pending) {
        count += !k->program->program && !k->program->is_wanted;
        k->program->is_wanted = !k->program->program;
    }
    return count;
}

/* A compiler sets itself up when it is first called. Clover's (Mesa 22.3) does it wrongly where
 * two threads come at once, and then never ends: the first program is built by one thread. */
static int build_first(struct work *work, int todo)
{
    const bool is_clover = strcmp(work->device->info.platform, "Clover") == 0;
    struct lk_program *first = is_clover ? take(work) : NULL;
    if (!first)
        return todo;
    build_one(work, first);
    return todo - 1;
}

static void build_alone(struct work *work, int wanted)
{
    pthread_t threads[MOST_THREADS];
    const long most = lk_build_thread_count();
    const int todo = build_first(work, wanted);
    int started = 0;
    while (started < todo - 1 && started < most - 1 &&
           pthread_create(&threads[started], NULL, build_programs, work) == 0)
        started++;
    build_programs(work);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static void build_wanted(struct work *work, int todo)
{
    int left = todo;
    lk_progress_begin(LK_TASK_BUILD, todo);
    if (todo > 1 && work->device->is_pocl) {
        lk_programs_build_together(work->device);
        left = mark_wanted(work->device);
        lk_progress_add(LK_TASK_BUILD, todo - left);
    }
    build_alone(work, left);
    lk_progress_end(LK_TASK_BUILD);
}

enum lk_status lk_device_build(struct lk_device *device)
{
    struct work work = {.device = device, .next = device->programs};
    const int todo = mark_wanted(device);
    if (todo > 0)
        build_wanted(&work, todo);
    lk_device_block_if_abandoned(device);
    if (work.status != LK_OK) {
        lk_error_clear();
        return lk_fail(work.status, "%s", work.text);
    }
    return create_kernels(device);
}
