/* Launches that run as one: see device/chain.h and cl/device/chain.cl. */
#include "device/chain.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/text.h"
#include "device/opencl.h"
#include "device/program/callees.h"
#include <stdlib.h>
#include <string.h>

enum {
    STEP = 7, /* numbers of a step, buffers of a launch, ints of the state: as there */
    BASES = 12,
    STATE = 256,
    MOST_SEGMENTS = 16, /* launches of the chain in one round */
    MOST_STEPS = 64,    /* of one: a thread that has left the chain is there for the next */
    GROUPS = 8, /* for each core: a thread that has left the chain tries again with another */
    ROUNDS = 2  /* after which it is compiled */
};

struct numbers {
    int32_t *at;
    int count, room;
};

/* Steps between what cannot be chained. */
struct segment {
    struct numbers sent; /* what lies in the table */
    struct lk_buffer *table, *state;
};

struct lk_chain {
    struct lk_device *device;
    int rounds;
    bool failed; /* all is launched by itself */
    struct lk_callees callees;
    cl_program program;
    cl_kernel kernel; /* NULL: not compiled yet */
    struct numbers steps, args, table;
    const struct lk_buffer *bases[BASES];
    int base_count;
    size_t local; /* bytes: as many as any of them takes */
    struct segment segments[MOST_SEGMENTS];
    int segment;
};

enum lk_status lk_chain_create(struct lk_device *device, struct lk_chain **chain)
{
    *chain = NULL;
    if (!device->is_pocl || device->info.device_class != LK_CLASS_CPU)
        return LK_OK;
    struct lk_chain *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a chain", sizeof *made);
    made->device = device;
    made->local = sizeof(cl_int); /* without any there is no argument */
    *chain = made;
    return LK_OK;
}

void lk_chain_destroy(struct lk_chain *chain)
{
    if (!chain)
        return;
    if (chain->device->chain == chain)
        chain->device->chain = NULL;
    lk_callees_clear(&chain->callees);
    for (int i = 0; i < MOST_SEGMENTS; i++) {
        free(chain->segments[i].sent.at);
        lk_buffer_destroy(chain->segments[i].table);
        lk_buffer_destroy(chain->segments[i].state);
    }
    if (chain->kernel)
        clReleaseKernel(chain->kernel);
    if (chain->program)
        clReleaseProgram(chain->program);
    free(chain->steps.at);
    free(chain->args.at);
    free(chain->table.at);
    free(chain);
}

static enum lk_status compile(struct lk_chain *chain)
{
    const struct lk_kernel_spec spec = {.source = "device/chain", .real_bytes = 4};
    struct lk_program *loop;
    struct lk_text text = {0};
    cl_int error;
    LK_TRY(lk_program_find(chain->device, &spec, &loop));
    lk_callees_print(&chain->callees, loop, &text);
    chain->program = text.failed ? NULL : lk_unity_build(chain->device, text.bytes);
    free(text.bytes);
    lk_device_block_if_abandoned(chain->device);
    if (!chain->program)
        return lk_fail(LK_E_BUILD, "the kernels of a chain do not build as one");
    chain->kernel = clCreateKernel(chain->program, "chain_0", &error);
    return error == CL_SUCCESS
               ? LK_OK
               : lk_device_fail(chain->device, error, "clCreateKernel of a chain");
}

/* --- running it -------------------------------------------------------------------------- */

static bool append(struct numbers *numbers, int64_t number)
{
    if (numbers->count == numbers->room) {
        const int room = numbers->room ? 2 * numbers->room : 256;
        int32_t *more = realloc(numbers->at, (size_t)room * sizeof *more);
        if (!more)
            return false;
        numbers->at = more;
        numbers->room = room;
    }
    numbers->at[numbers->count++] = (int32_t)number;
    return true;
}

/* The number of the memory in which the buffer lies; -1: there are too many. */
static int base_of(struct lk_chain *chain, const struct lk_buffer *buffer)
{
    const struct lk_buffer *whole = buffer->whole ? buffer->whole : buffer;
    for (int i = 0; i < chain->base_count; i++)
        if (chain->bases[i] == whole)
            return i;
    if (chain->base_count == BASES)
        return -1;
    chain->bases[chain->base_count] = whole;
    return chain->base_count++;
}

static bool append_arg(struct lk_chain *chain, const struct lk_arg *arg)
{
    struct numbers *to = &chain->args;
    union {
        float real;
        int32_t bits;
    } single = {.real = (float)arg->real};
    bool is_there = true;
    if (arg->kind == LK_ARG_BUFFER) {
        const int base = arg->buffer ? base_of(chain, arg->buffer) : -1;
        const size_t offset = arg->buffer ? arg->buffer->offset : 0;
        return (base >= 0 || !arg->buffer) && offset % 4 == 0 && offset / 4 <= INT32_MAX &&
               append(to, base) && append(to, (int64_t)(offset / 4));
    }
    if (arg->kind == LK_ARG_LOCAL) {
        if ((size_t)arg->number > chain->local)
            chain->local = (size_t)arg->number;
        return true;
    }
    if (arg->kind != LK_ARG_STRUCT)
        return append(to, arg->kind == LK_ARG_REAL ? single.bits : arg->number);
    for (int64_t i = 0; i < arg->number; i++)
        is_there &= append(to, arg->data[i]);
    return is_there;
}

/* Appends a step; leaves the chain as it was where it cannot. */
static bool append_step(struct lk_chain *chain, int callee, const int64_t groups[3],
                        const struct lk_arg *args, int count)
{
    const int steps = chain->steps.count, at = chain->args.count, bases = chain->base_count;
    const int64_t tasks = groups[0] * groups[1] * groups[2];
    bool fits = tasks <= INT32_MAX / 2;
    for (int i = 0; i < count && fits; i++)
        fits = append_arg(chain, &args[i]);
    fits = fits && append(&chain->steps, callee) && append(&chain->steps, tasks);
    for (int d = 0; d < 3 && fits; d++)
        fits = append(&chain->steps, groups[d]);
    const int64_t share = 4 * (int64_t)chain->device->info.compute_units;
    if (fits && append(&chain->steps, at) && append(&chain->steps, share))
        return true;
    chain->steps.count = steps;
    chain->args.count = at;
    chain->base_count = bases;
    return false;
}

/* Brings the collected numbers to the device, where they are not those of the last time. */
static enum lk_status send(struct lk_chain *chain, struct segment *s)
{
    struct numbers *table = &chain->table;
    table->count = 0;
    for (int i = 0; i < chain->steps.count + chain->args.count; i++)
        if (!append(table, i < chain->steps.count ? chain->steps.at[i]
                                                  : chain->args.at[i - chain->steps.count]))
            return lk_fail_memory("a chain", (size_t)i);
    const size_t bytes = (size_t)table->count * sizeof *table->at;
    if (s->sent.count == table->count && memcmp(s->sent.at, table->at, bytes) == 0)
        return LK_OK;
    if (!s->state) {
        LK_TRY(lk_buffer_create(chain->device, STATE * sizeof *table->at, &s->state));
        LK_TRY(lk_buffer_enqueue_fill(s->state, 0));
    }
    if (!s->table || lk_buffer_bytes(s->table) < bytes) {
        lk_buffer_destroy(s->table);
        s->table = NULL;
        LK_TRY(lk_buffer_create(chain->device, bytes, &s->table));
    }
    s->sent.count = 0;
    LK_TRY(lk_buffer_write(s->table, 0, bytes, table->at));
    for (int i = 0; i < table->count; i++)
        if (!append(&s->sent, table->at[i]))
            return lk_fail_memory("a chain", bytes);
    return LK_OK;
}

static cl_int set_args(const struct lk_chain *chain, const struct segment *s)
{
    const cl_int steps = chain->steps.count / STEP;
    cl_int error = clSetKernelArg(chain->kernel, 0, sizeof(cl_mem), &s->state->mem);
    error |= clSetKernelArg(chain->kernel, 1, sizeof(cl_mem), &s->table->mem);
    error |= clSetKernelArg(chain->kernel, 2, sizeof steps, &steps);
    for (int i = 0; i < BASES; i++)
        error |= clSetKernelArg(chain->kernel, (cl_uint)(3 + i), sizeof(cl_mem),
                                i < chain->base_count ? &chain->bases[i]->mem : NULL);
    error |= clSetKernelArg(chain->kernel, 3 + BASES, chain->local, NULL);
    return error == CL_SUCCESS ? error : CL_INVALID_KERNEL_ARGS;
}

/* PoCL gives a thread up to one group and an even share of those that are left. */
static enum lk_status launch(struct lk_chain *chain)
{
    struct lk_device *device = chain->device;
    struct segment *s = &chain->segments[chain->segment++];
    const size_t groups = GROUPS * (size_t)device->info.compute_units;
    const size_t one[3] = {1, 1, 1}, all[3] = {groups, 1, 1};
    LK_TRY(send(chain, s));
    cl_int error = set_args(chain, s);
    if (error == CL_SUCCESS)
        error = clEnqueueNDRangeKernel(device->queue, chain->kernel, 3, NULL, all, one, 0, NULL,
                                       NULL);
    lk_device_block_if_abandoned(device);
    return error == CL_SUCCESS ? LK_OK : lk_device_fail(device, error, "a chain of kernels");
}

enum lk_status lk_chain_flush(struct lk_device *device)
{
    struct lk_chain *chain = device->chain;
    enum lk_status status = LK_OK;
    if (!chain)
        return LK_OK;
    device->chain = NULL; /* what is enqueued now is no part of it */
    if (chain->steps.count > 0)
        status = launch(chain);
    chain->steps.count = chain->args.count = chain->base_count = 0;
    device->chain = chain;
    return status;
}

enum lk_status lk_chain_add(struct lk_kernel *kernel, const struct lk_grid *grid,
                            const struct lk_arg *args, int count, bool *is_taken)
{
    struct lk_chain *chain = kernel->device->chain;
    *is_taken = false;
    if (!chain)
        return LK_OK;
    if (!chain->kernel) {
        if (grid->items == 1)
            lk_callees_note(&chain->callees, kernel, args, count);
        return LK_OK;
    }
    const int callee = grid->items == 1 && chain->segment < MOST_SEGMENTS
                           ? lk_callees_find(&chain->callees, kernel)
                           : -1;
    *is_taken = callee >= 0 && append_step(chain, callee, grid->groups, args, count);
    return *is_taken && chain->steps.count < MOST_STEPS * STEP ? LK_OK
                                                               : lk_chain_flush(kernel->device);
}

enum lk_status lk_chain_begin(struct lk_chain *chain)
{
    if (!chain || chain->failed || chain->device->trace)
        return LK_OK;
    chain->segment = 0;
    chain->device->chain = chain;
    return LK_OK;
}

enum lk_status lk_chain_end(struct lk_chain *chain)
{
    if (!chain || chain->device->chain != chain)
        return LK_OK;
    const enum lk_status status = lk_chain_flush(chain->device);
    chain->device->chain = NULL;
    if (status != LK_OK || chain->kernel || ++chain->rounds < ROUNDS)
        return status;
    chain->failed = chain->callees.count == 0 || compile(chain) != LK_OK;
    if (chain->failed && chain->callees.count > 0)
        lk_log(LK_LOG_WARNING, "%s: they are launched one by one", lk_error_text());
    if (chain->failed)
        lk_error_clear();
    return LK_OK;
}
