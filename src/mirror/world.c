/* Joins and leaves a job of several ranks, spreads failures, and calls on all ranks together.
 */
#include "mirror/world_internal.h"

#include "base/fail.h"
#include "base/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef LK_MPI
static const struct lk_transport_kind *const wire_kind = &lk_transport_mpi;
#else
static const struct lk_transport_kind *const wire_kind = NULL;
#endif

static const char *launched_rank(void)
{
    const char *rank = NULL;
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                        "PMI_ID", "MV2_COMM_WORLD_RANK"};
    for (int i = 0; i < LK_COUNT(ranks) && !rank; i++)
        rank = getenv(ranks[i]);
    return rank;
}

/* Tells whether there is a launcher without starting MPI, which takes a third of a second and
 * is left out where there is none. */
int lk_world_launched_ranks(void)
{
    const char *size = NULL;
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "MV2_COMM_WORLD_SIZE"};
    for (int i = 0; i < LK_COUNT(sizes) && !size; i++)
        size = getenv(sizes[i]);
    if (size && atoi(size) > 0)
        return atoi(size);
    if (!launched_rank())
        return 1;
    size = getenv("SLURM_STEP_NUM_TASKS"); /* srun starts processes without MPI too */
    return size ? atoi(size) : 0;
}

int lk_world_launched_rank(void)
{
    const char *rank = launched_rank();
    return rank ? atoi(rank) : 0;
}

int lk_world_transfers(const struct lk_world *world)
{
    return LK_TRANSFER_TOLD + world->size;
}

static enum lk_status listen(struct lk_world *world)
{
    LK_TRY(world->kind->reserve(world->wire, lk_world_transfers(world)));
    return world->kind->receive(world->wire, LK_TRANSFER_NOTICE, LK_TRANSPORT_ANY,
                                LK_TAG_NOTICE, sizeof world->heard, &world->heard);
}

static enum lk_status join(struct lk_world *world)
{
    if (lk_world_launched_ranks() == 1)
        return LK_OK;
    if (!wire_kind)
        return lk_fail(LK_E_ARGUMENT,
                       "started as one of several ranks by an MPI launcher, but this build has "
                       "no MPI: install Open MPI's development files (libopenmpi-dev) and "
                       "build again");
    LK_TRY(wire_kind->open(&world->wire, &world->rank, &world->size));
    world->kind = wire_kind;
    world->staging = malloc(LK_STAGING);
    if (!world->staging)
        return lk_fail_memory("messages between ranks", LK_STAGING);
    return listen(world);
}

enum lk_status lk_world_open(struct lk_world **world)
{
    struct lk_world *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("the ranks of a job", sizeof *made);
    made->size = 1;
    const enum lk_status status = join(made);
    if (status != LK_OK) {
        lk_world_close(made);
        return status;
    }
    *world = made;
    return LK_OK;
}

void lk_world_close(struct lk_world *world)
{
    if (!world)
        return;
    if (world->kind && !world->is_over) /* otherwise a notice may still be arriving */
        (void)!world->kind->forget(world->wire, LK_TRANSFER_NOTICE);
    if (world->kind)
        world->kind->close(world->wire);
    lk_world_sums_destroy(world->sums);
    free(world->staging);
    free(world);
}

bool lk_world_has_failed(const struct lk_world *world)
{
    return world->is_over;
}

int lk_world_rank(const struct lk_world *world)
{
    return world ? world->rank : 0;
}

int lk_world_size(const struct lk_world *world)
{
    return world ? world->size : 1;
}

enum lk_status lk_world_end(struct lk_world *world, enum lk_status status, const char *format,
                            ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(world->text, sizeof world->text, format, args);
    va_end(args);
    world->is_over = true;
    world->status = status;
    lk_error_clear();
    return lk_fail(status, "%s", world->text);
}

static enum lk_status listen_to_failure(struct lk_world *world)
{
    struct lk_notice *heard = &world->heard;
    heard->text[sizeof heard->text - 1] = '\0';
    return lk_world_end(world, heard->status, "rank %d: %s", heard->rank, heard->text);
}

static enum lk_status ended(struct lk_world *world, int transfer)
{
    if (transfer == LK_TRANSFER_NOTICE)
        return listen_to_failure(world);
    if (transfer == LK_TRANSFER_TOGETHER)
        world->is_together = true;
    else if (transfer < lk_world_transfers(world))
        world->untold--;
    else
        return lk_world_sums_ended(world, transfer);
    return LK_OK;
}

enum lk_status lk_world_poll(struct lk_world *world)
{
    const int *transfers;
    int count = 0;
    if (!world->kind)
        return LK_OK;
    if (world->is_over)
        return lk_fail(world->status, "%s", world->text);
    LK_TRY(world->kind->poll(world->wire, &transfers, &count));
    for (int i = 0; i < count; i++)
        LK_TRY(ended(world, transfers[i]));
    return LK_OK;
}

/* Pauses between two polls: polling without a pause would take a core from the devices, and
 * long pauses would delay each message. */
static void be_patient(int polls)
{
    const struct timespec pause = {.tv_nsec = polls < 100 ? 10000 : 100000};
    if (polls > 10)
        nanosleep(&pause, NULL);
}

enum lk_status lk_world_wait(struct lk_world *world, const bool *is_done)
{
    for (int polls = 0; !*is_done; polls += polls < 100) {
        LK_TRY(lk_world_poll(world));
        be_patient(polls);
    }
    return LK_OK;
}

static enum lk_status wait_together(struct lk_world *world)
{
    return lk_world_wait(world, &world->is_together);
}

enum lk_status lk_world_all_reduce(struct lk_world *world, size_t count, double *values)
{
    if (count > LK_MOST_ADDED)
        return lk_fail(LK_E_ARGUMENT, "%zu values to be added over ranks, at most %d", count,
                       LK_MOST_ADDED);
    if (!world->kind)
        return LK_OK;
    world->is_together = false;
    memcpy(world->staging, values, count * sizeof *values);
    LK_TRY(world->kind->sum(world->wire, LK_TRANSFER_TOGETHER, 8, count, world->staging));
    LK_TRY(wait_together(world));
    memcpy(values, world->staging, count * sizeof *values);
    return LK_OK;
}

enum lk_status lk_world_broadcast_from(struct lk_world *world, int root, size_t bytes,
                                       void *memory)
{
    char *at = memory;
    while (world->kind && bytes > 0) {
        const size_t part = bytes < LK_STAGING ? bytes : LK_STAGING;
        if (world->rank == root)
            memcpy(world->staging, at, part);
        world->is_together = false;
        LK_TRY(world->kind->broadcast(world->wire, LK_TRANSFER_TOGETHER, root, part,
                                      world->staging));
        LK_TRY(wait_together(world));
        memcpy(at, world->staging, part);
        at += part;
        bytes -= part;
    }
    return LK_OK;
}

enum lk_status lk_world_broadcast(struct lk_world *world, size_t bytes, void *memory)
{
    return lk_world_broadcast_from(world, 0, bytes, memory);
}

enum lk_status lk_world_barrier(struct lk_world *world, enum lk_status status)
{
    double none = 0;
    if (status != LK_OK)
        return lk_world_fail(world, status);
    return lk_world_all_reduce(world, 1, &none);
}

enum { TELL_MS = 5000 };

/* Waits until all notices are sent, for at most TELL_MS; other transfers that end are ignored.
 */
static bool is_told(struct lk_world *world)
{
    const int *transfers;
    int count;
    for (int ms = 0; world->untold > 0 && ms < TELL_MS; ms++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        if (world->kind->poll(world->wire, &transfers, &count) != LK_OK)
            return false;
        for (int i = 0; i < count; i++)
            world->untold -=
                transfers[i] >= LK_TRANSFER_TOLD && transfers[i] < lk_world_transfers(world);
        nanosleep(&pause, NULL);
    }
    return world->untold == 0;
}

static bool tell(struct lk_world *world)
{
    for (int peer = 0; peer < world->size; peer++) {
        if (peer == world->rank)
            continue;
        if (world->kind->send(world->wire, LK_TRANSFER_TOLD + peer, peer, LK_TAG_NOTICE,
                              sizeof world->told, &world->told) != LK_OK)
            return false;
        world->untold++;
    }
    return is_told(world);
}

enum lk_status lk_world_fail(struct lk_world *world, enum lk_status status)
{
    struct lk_notice *told = &world->told;
    if (!world->kind || world->is_over)
        return status;
    *told = (struct lk_notice){.rank = world->rank, .status = (int)status};
    snprintf(told->text, sizeof told->text, "%s", lk_error_text());
    if (!tell(world))
        lk_log(LK_LOG_WARNING, "rank %d cannot tell the other ranks that it failed: %s",
               world->rank, told->text);
    return lk_world_end(world, status, "rank %d: %s", told->rank, told->text);
}
