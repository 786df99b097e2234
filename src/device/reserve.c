/* Sets memory aside for buffers, and brings in its pages ahead of their use. */
#define _DEFAULT_SOURCE /* madvise(), MAP_ANONYMOUS */
#include "device/reserve.h"

#include "base/parallel.h"
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    HUGE_PAGE = 2 << 20,
    ALIGN = 4096,      /* of buffers */
    SMALLEST = 1 << 18 /* smaller ones would only break it up */
};

/* What a buffer has of the memory. */
struct piece {
    struct lk_reserve *reserve;
    size_t at, bytes;
    struct piece *next; /* the one behind it */
};

struct lk_reserve {
    pthread_mutex_t mutex;
    char *mapping, *memory; /* as it was given; from the first huge page on */
    size_t bytes;
    size_t fresh; /* from this byte on no buffer has had it */
    struct piece *pieces;
    bool is_released;
    atomic_bool ends;
    bool has_thread;
    pthread_t thread;
};

/* Writes to each page, which brings it in, and changes none: a buffer may be in use there.
 * The host may compile and train meanwhile. */
static void *bring_in(void *argument)
{
    struct lk_reserve *r = argument;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    lk_thread_give_way();
    for (size_t at = 0; at < r->bytes && !atomic_load(&r->ends); at += page) {
        char zero = 0;
        __atomic_compare_exchange_n(&r->memory[at], &zero, 0, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
    return NULL;
}

static void destroy(struct lk_reserve *r)
{
    munmap(r->mapping, r->bytes + HUGE_PAGE);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

struct lk_reserve *lk_reserve_create(size_t bytes)
{
    struct lk_reserve *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *mapping = mmap(NULL, r->bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
        free(r);
        return NULL;
    }
    r->mapping = mapping;
    r->memory = r->mapping + -(uintptr_t)r->mapping % HUGE_PAGE;
#ifdef MADV_HUGEPAGE
    (void)!madvise(r->memory, r->bytes, MADV_HUGEPAGE);
#endif
    pthread_mutex_init(&r->mutex, NULL);
    r->has_thread = pthread_create(&r->thread, NULL, bring_in, r) == 0;
    return r;
}

void lk_reserve_release(struct lk_reserve *r)
{
    if (!r)
        return;
    atomic_store(&r->ends, true);
    if (r->has_thread)
        pthread_join(r->thread, NULL);
    pthread_mutex_lock(&r->mutex);
    r->is_released = true;
    const bool is_last = !r->pieces;
    pthread_mutex_unlock(&r->mutex);
    if (is_last)
        destroy(r);
}

static void CL_CALLBACK give_back(cl_mem mem, void *argument)
{
    struct piece *piece = argument;
    struct lk_reserve *r = piece->reserve;
    struct piece **place = &r->pieces;
    (void)mem;
    pthread_mutex_lock(&r->mutex);
    while (*place != piece)
        place = &(*place)->next;
    *place = piece->next;
    const bool is_last = r->is_released && !r->pieces;
    pthread_mutex_unlock(&r->mutex);
    free(piece);
    if (is_last)
        destroy(r);
}

/* Puts the piece where it fits first. */
static bool place(struct lk_reserve *r, struct piece *piece, size_t *used)
{
    pthread_mutex_lock(&r->mutex);
    struct piece **before = &r->pieces;
    size_t at = 0;
    while (*before && (*before)->at - at < piece->bytes) {
        at = (*before)->at + (*before)->bytes;
        before = &(*before)->next;
    }
    const bool fits = piece->bytes <= r->bytes - at;
    if (fits) {
        piece->at = at;
        piece->next = *before;
        *before = piece;
        *used = r->fresh <= at ? 0 : r->fresh - at;
        if (r->fresh < at + piece->bytes)
            r->fresh = at + piece->bytes;
    }
    pthread_mutex_unlock(&r->mutex);
    return fits;
}

cl_mem lk_reserve_cut(struct lk_reserve *reserve, cl_context context, size_t bytes,
                      size_t *used)
{
    cl_int error;
    if (!reserve || bytes < SMALLEST || bytes > reserve->bytes)
        return NULL;
    struct piece *piece = calloc(1, sizeof *piece);
    if (!piece)
        return NULL;
    *piece = (struct piece){.reserve = reserve, .bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN};
    if (!place(reserve, piece, used)) {
        free(piece);
        return NULL;
    }
    cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes,
                                reserve->memory + piece->at, &error);
    if (error == CL_SUCCESS &&
        clSetMemObjectDestructorCallback(mem, give_back, piece) == CL_SUCCESS)
        return mem;
    if (error == CL_SUCCESS)
        clReleaseMemObject(mem);
    give_back(NULL, piece);
    return NULL;
}
