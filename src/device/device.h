/* Buffers, kernels and launches on a device, for the rooms above. Floor 1.
 * Everything enqueued on a device runs in order. Knows no tensor, no graph, no file format. */
#ifndef LK_DEVICE_DEVICE_H
#define LK_DEVICE_DEVICE_H

#include <lockstep/device.h>

struct lk_buffer;
struct lk_kernel;

/* Gives up a device that hangs: whoever is in a call on it, or makes one, stays there for ever.
 * So a thread that wakes up late touches nothing that has gone on without it. Any thread. */
void lk_device_abandon(struct lk_device *device);

/* What was found of the device's matrix units, for products/gpu/units.h to keep; -1: not asked.
 */
int *lk_device_matrix(struct lk_device *device);

/* --- memory ---------------------------------------------------------------------------- */

/* Uninitialized device memory. fails: LK_E_DEVICE_MEMORY (asked, allocated, limit) */
LK_MUST_CHECK enum lk_status lk_buffer_create(struct lk_device *device, size_t bytes,
                                              struct lk_buffer **buffer);

/* A part of `parent` that acts as a buffer; `offset` is a multiple of the device's align_bytes.
 * The buffer whose memory it is must outlive it. fails: LK_E_ARGUMENT: offset, range */
LK_MUST_CHECK enum lk_status lk_buffer_view(struct lk_buffer *parent, size_t offset,
                                            size_t bytes, struct lk_buffer **view);

void lk_buffer_destroy(struct lk_buffer *buffer);

size_t lk_buffer_bytes(const struct lk_buffer *buffer);

/* Copies from or to host memory after all that was enqueued before; the host waits. */
LK_MUST_CHECK enum lk_status lk_buffer_write(struct lk_buffer *buffer, size_t offset,
                                             size_t bytes, const void *from);
LK_MUST_CHECK enum lk_status lk_buffer_read(const struct lk_buffer *buffer, size_t offset,
                                            size_t bytes, void *to);

/* Sets every byte of the buffer; does not wait. */
LK_MUST_CHECK enum lk_status lk_buffer_enqueue_fill(struct lk_buffer *buffer, uint8_t byte);

LK_MUST_CHECK enum lk_status lk_buffer_enqueue_copy(const struct lk_buffer *from,
                                                    struct lk_buffer *to, size_t bytes);

/* Pinned host memory, paired with a transfer's completion. */
struct lk_staging;

/* `bytes` of pinned host memory, mapped until destroyed. */
LK_MUST_CHECK enum lk_status lk_staging_create(struct lk_device *device, size_t bytes,
                                               struct lk_staging **staging);
void lk_staging_destroy(struct lk_staging *staging);
void *lk_staging_memory(struct lk_staging *staging);

/* Copy the whole of staging to the start of a buffer, or the start of a buffer into it; neither
 * waits. */
LK_MUST_CHECK enum lk_status lk_staging_enqueue_write(struct lk_staging *staging,
                                                      struct lk_buffer *to, size_t bytes);
LK_MUST_CHECK enum lk_status
lk_staging_enqueue_read(struct lk_staging *staging, const struct lk_buffer *from, size_t bytes);

/* Waits for the staging's last transfer; at once where there was none. */
LK_MUST_CHECK enum lk_status lk_staging_wait(struct lk_staging *staging);

/* Memory that device and host use in turns, one of them writing and the other reading: one
 * piece where the device shares the host's memory, else device memory and a pinned copy.
 * LK_HOST_UPLOADS: a copy in any case, which stays where and as it is when the device has it.
 * What travels runs beside kernels, in each direction in order. */
struct lk_shared;
enum lk_shared_writer { LK_DEVICE_WRITES, LK_HOST_WRITES, LK_HOST_UPLOADS };

/* The device has it first; kernels use lk_shared_buffer(). fails: LK_E_DEVICE_MEMORY,
 * LK_E_DEVICE
 */
LK_MUST_CHECK enum lk_status lk_shared_create(struct lk_device *device, size_t bytes,
                                              enum lk_shared_writer writer,
                                              struct lk_shared **shared);
void lk_shared_destroy(struct lk_shared *shared);
struct lk_buffer *lk_shared_buffer(struct lk_shared *shared);

/* Hands its first `bytes` bytes to the host when all that was enqueued before has run; beside
 * what is enqueued later. Nothing where the host has it. Does not wait. */
LK_MUST_CHECK enum lk_status lk_shared_enqueue_to_host(struct lk_shared *shared, size_t bytes);

/* Waits until the host has it; its memory is then valid until the turn ends. fails:
 * LK_E_DEVICE, also where the turn of the device before had failed to reach it */
LK_MUST_CHECK enum lk_status lk_shared_wait(struct lk_shared *shared, void **memory);

/* Hands it back: kernels that are enqueued later see the first `bytes` bytes as the host left
 * them, and wait for them.
 * Nothing where the device has it. Does not wait. */
LK_MUST_CHECK enum lk_status lk_shared_enqueue_to_device(struct lk_shared *shared,
                                                         size_t bytes);

/* --- kernels --------------------------------------------------------------------------- */

struct lk_kernel_spec {
    const char *source;  /* path of a file below cl/, without its .cl */
    const char *name;    /* kernel function in it */
    const char *options; /* "-DX=..."; NULL: none. One program for equal source and options */
    int real_bytes;      /* 4: real is float, 8: double */
    int lanes;           /* of the batch tiles it works on; 0: the device's */
    bool stores_half;    /* activations are stored as halves: -DSTORED_BYTES=2 */
};

/* Announces a kernel; it can be enqueued after the next lk_device_build(). The program gets
 * -DREAL=float|double -DLANES=n -DVECTOR=n and `options`. fails: LK_E_BUILD for an unknown
 * source */
LK_MUST_CHECK enum lk_status lk_kernel_create(struct lk_device *device,
                                              const struct lk_kernel_spec *spec,
                                              struct lk_kernel **kernel);
void lk_kernel_destroy(struct lk_kernel *kernel);

/* Short text that changes with any kernel's source. */
const char *lk_kernels_hash(void);

/* Builds all announced programs, in parallel on the host's cores; waits. fails: LK_E_BUILD with
 * the compiler's first error, the whole log in a file that the text names */
LK_MUST_CHECK enum lk_status lk_device_build(struct lk_device *device);

enum lk_arg_kind { LK_ARG_BUFFER, LK_ARG_INT, LK_ARG_REAL, LK_ARG_LOCAL };

struct lk_arg {
    enum lk_arg_kind kind;
    const struct lk_buffer *buffer; /* NULL: a null pointer */
    int64_t number;                 /* an int; bytes of local memory */
    double real;
};

#define LK_BUF(b)                                                                              \
    {                                                                                          \
        .kind = LK_ARG_BUFFER, .buffer = (b)                                                   \
    }
#define LK_INT(n)                                                                              \
    {                                                                                          \
        .kind = LK_ARG_INT, .number = (n)                                                      \
    }
#define LK_REAL(x)                                                                             \
    {                                                                                          \
        .kind = LK_ARG_REAL, .real = (x)                                                       \
    }
#define LK_LOCAL(n)                                                                            \
    {                                                                                          \
        .kind = LK_ARG_LOCAL, .number = (int64_t)(n)                                           \
    }

/* Work-groups in each dimension, and work-items of one group in dimension 0. */
struct lk_grid {
    int64_t groups[3];
    int items;
};

/* Enqueues a kernel; does not wait. A grid with no groups does nothing. Numbers must fit an
 * OpenCL int. fails: LK_E_DEVICE; LK_E_ARGUMENT: not built, a number too large, too few or too
 * many arguments */
LK_MUST_CHECK enum lk_status lk_kernel_enqueue(struct lk_kernel *kernel, struct lk_grid grid,
                                               const struct lk_arg *args, int count);

#define LK_ENQUEUE(kernel, grid, ...)                                                          \
    lk_kernel_enqueue(                                                                         \
        kernel, grid, (const struct lk_arg[]){__VA_ARGS__},                                    \
        (int)(sizeof((const struct lk_arg[]){__VA_ARGS__}) / sizeof(struct lk_arg)))

/* --- time ------------------------------------------------------------------------------ */

/* A point in the device's order of work whose time can be asked for. */
struct lk_mark;
LK_MUST_CHECK enum lk_status lk_mark_create(struct lk_device *device, struct lk_mark **mark);
void lk_mark_destroy(struct lk_mark *mark);

/* Puts the mark behind everything enqueued so far, instead of where it was; does not wait. */
LK_MUST_CHECK enum lk_status lk_mark_enqueue(struct lk_mark *mark);

/* When the device passed the mark, in seconds of its own clock; -1: not passed, or no clock. */
double lk_mark_seconds(const struct lk_mark *mark);

/* Seconds on a clock that never goes back. */
double lk_seconds(void);

#endif
