/* Buffers, kernels and launches on a device, for the rooms above. Floor 1.
 * Everything enqueued on a device runs in order. Knows no tensor, no graph, no file format. */
#ifndef LK_DEVICE_DEVICE_H
#define LK_DEVICE_DEVICE_H

#include "device/args.h"
#include <lockstep/device.h>

struct lk_buffer;
struct lk_kernel;

/* Gives up a device that hangs: a thread that calls it, now or later, never returns, and cannot
 * touch what others have freed. Taken back, to be closed, once none does. Any thread. */
void lk_device_abandon(struct lk_device *device);
void lk_device_take_back(struct lk_device *device);

/* Whether a command of it failed for another reason than memory, or it is blamed for computing
 * wrongly. Any thread. */
bool lk_device_has_failed(const struct lk_device *device);
void lk_device_blame(struct lk_device *device);

/* Kept for products/gpu/units.h: which matrix units it can use; -1: not tried yet. */
int *lk_device_matrix(struct lk_device *device);

/* --- memory ---------------------------------------------------------------------------- */

/* Device memory, uninitialized or (does not wait) zeros. fails: LK_E_DEVICE_MEMORY, with the
 * bytes that were asked for, are allocated and are there */
LK_MUST_CHECK enum lk_status lk_buffer_create(struct lk_device *device, size_t bytes,
                                              struct lk_buffer **buffer);
LK_MUST_CHECK enum lk_status lk_buffer_create_zeros(struct lk_device *device, size_t bytes,
                                                    struct lk_buffer **buffer);

/* A range of `parent` as a buffer of its own (an OpenCL sub-buffer); `offset` is a multiple of
 * the device's align_bytes. Once the buffer that owns the memory is destroyed, the view may be
 * used, but no view be made of it.
 * fails: LK_E_ARGUMENT offset, range */
LK_MUST_CHECK enum lk_status lk_buffer_view(struct lk_buffer *parent, size_t offset,
                                            size_t bytes, struct lk_buffer **view);

void lk_buffer_destroy(struct lk_buffer *buffer);

size_t lk_buffer_bytes(const struct lk_buffer *buffer);

/* Copy from or to host memory, after all commands enqueued before; the host waits. */
LK_MUST_CHECK enum lk_status lk_buffer_write(struct lk_buffer *buffer, size_t offset,
                                             size_t bytes, const void *from);
LK_MUST_CHECK enum lk_status lk_buffer_read(const struct lk_buffer *buffer, size_t offset,
                                            size_t bytes, void *to);

/* As lk_buffer_write(), and reads back what it has written: for weights, since a wrong bit in
 * them changes all that follows, and nothing would tell. A second try follows a failed one.
 * fails: LK_E_DEVICE it was changed on the way twice; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_buffer_write_surely(struct lk_buffer *buffer, size_t offset,
                                                    size_t bytes, const void *from);

/* Sets every byte of the buffer; does not wait. */
LK_MUST_CHECK enum lk_status lk_buffer_enqueue_fill(struct lk_buffer *buffer, uint8_t byte);

/* Copies the first `bytes` bytes of one buffer to the start of another; does not wait. */
LK_MUST_CHECK enum lk_status lk_buffer_enqueue_copy(const struct lk_buffer *from,
                                                    struct lk_buffer *to, size_t bytes);

/* Memory that device and host use in turns; one of them writes it and the other reads it. Where
 * the device shares the host's memory it is one allocation that is mapped, elsewhere a device
 * buffer and a pinned copy in host memory. LK_HOST_UPLOADS: always a copy, whose address and
 * contents stay the same for the host while the device uses the buffer. Transfers run at the
 * same time as kernels; those of one direction run in order. LK_DEVICE_SENDS: the device writes
 * what somebody waits for; a CPU, whose cores run both, lets no kernel run before it.
 * LK_HOST_SHARES: as LK_HOST_UPLOADS, but no copy on PoCL's CPUs, where it is mapped once. */
struct lk_transfer_buffer;
enum lk_buffer_writer {
    LK_DEVICE_WRITES,
    LK_DEVICE_SENDS,
    LK_HOST_WRITES,
    LK_HOST_UPLOADS,
    LK_HOST_SHARES
};
enum { LK_LARGE_UPLOAD = 4000000 }; /* bytes from which on a copy takes milliseconds */

/* The first turn is the device's; kernels use lk_transfer_buffer_on_device(). fails:
 * LK_E_DEVICE_MEMORY, LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_transfer_buffer_create(struct lk_device *device, size_t bytes,
                                                       enum lk_buffer_writer writer,
                                                       struct lk_transfer_buffer **transfer);
void lk_transfer_buffer_destroy(struct lk_transfer_buffer *transfer);
struct lk_buffer *lk_transfer_buffer_on_device(struct lk_transfer_buffer *transfer);

/* Begins the host's turn: hands it the first `bytes` bytes once all kernels enqueued before
 * have run, while later ones go on. Does nothing in the host's turn. Does not wait. */
LK_MUST_CHECK enum lk_status
lk_transfer_buffer_enqueue_to_host(struct lk_transfer_buffer *transfer, size_t bytes);

/* Waits until the memory has come to the host; *memory is valid until the host's turn ends.
 * fails: LK_E_DEVICE, also where the transfer to the device before it had failed */
LK_MUST_CHECK enum lk_status lk_transfer_buffer_wait(struct lk_transfer_buffer *transfer,
                                                     void **memory);
/* Whether that would not wait. */
bool lk_transfer_buffer_is_there(const struct lk_transfer_buffer *transfer);

/* Begins the device's turn: kernels enqueued later wait for the first `bytes` bytes and see
 * what the host has written. Does nothing in the device's turn. Does not wait. */
LK_MUST_CHECK enum lk_status
lk_transfer_buffer_enqueue_to_device(struct lk_transfer_buffer *transfer, size_t bytes);

/* --- kernels --------------------------------------------------------------------------- */

struct lk_kernel_spec {
    const char *source;  /* path of a file below cl/, without its .cl */
    const char *name;    /* kernel function in it */
    const char *options; /* "-DX=..."; NULL: none. One program for equal source and options */
    int real_bytes;      /* 4: real is float, 8: double */
    int lanes;           /* samples of a batch tile (-DLANES); 0: as the device has them */
    bool stores_half;    /* activations are stored as halves: -DSTORED_BYTES=2 */
};

/* Announces a kernel: the next lk_device_build() compiles it, then it can be enqueued. Its
 * program is compiled with -DREAL=float|double -DLANES=n -DVECTOR=n and `options`.
 * fails: LK_E_BUILD unknown source */
LK_MUST_CHECK enum lk_status lk_kernel_create(struct lk_device *device,
                                              const struct lk_kernel_spec *spec,
                                              struct lk_kernel **kernel);
void lk_kernel_destroy(struct lk_kernel *kernel);

/* A hash of the sources of all kernels, as short text. */
const char *lk_kernels_hash(void);

/* Builds the programs of all announced kernels, in parallel on the host's cores; waits.
 * fails: LK_E_BUILD with the compiler's first error and the name of a file with the whole log
 */
LK_MUST_CHECK enum lk_status lk_device_build(struct lk_device *device);

enum lk_arg_kind { LK_ARG_BUFFER, LK_ARG_INT, LK_ARG_REAL, LK_ARG_LOCAL, LK_ARG_STRUCT };

struct lk_arg {
    enum lk_arg_kind kind;
    const struct lk_buffer *buffer; /* BUFFER; NULL: the kernel gets a null pointer */
    int64_t number;     /* INT: the int; LOCAL: bytes of local memory; STRUCT: its numbers */
    const lk_int *data; /* STRUCT */
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
/* One struct by value. It is declared once for both languages, in a header called args.h, all
 * of lk_int: int64_t here, each of which is checked as LK_INT() is, and int there. */
#define LK_STRUCT(p)                                                                           \
    {                                                                                          \
        .kind = LK_ARG_STRUCT, .data = (const lk_int *)(p),                                    \
        .number = (int64_t)(sizeof *(p) / sizeof(lk_int))                                      \
    }

/* The size of a launch: work-groups in each dimension, and work-items of a group, all of them
 * in dimension 0. */
struct lk_grid {
    int64_t groups[3];
    int items;
};

/* Enqueues a kernel; does not wait. A grid without groups does nothing. Numbers must fit an
 * OpenCL int. fails: LK_E_DEVICE; LK_E_ARGUMENT not built, a number that is too large, a wrong
 * number of arguments */
LK_MUST_CHECK enum lk_status lk_kernel_enqueue(struct lk_kernel *kernel, struct lk_grid grid,
                                               const struct lk_arg *args, int count);

#define LK_ENQUEUE(kernel, grid, ...)                                                          \
    lk_kernel_enqueue(                                                                         \
        kernel, grid, (const struct lk_arg[]){__VA_ARGS__},                                    \
        (int)(sizeof((const struct lk_arg[]){__VA_ARGS__}) / sizeof(struct lk_arg)))

/* --- time ------------------------------------------------------------------------------ */

/* A point in the device's queue whose time can be read once the device has passed it. */
struct lk_timestamp;
LK_MUST_CHECK enum lk_status lk_timestamp_create(struct lk_device *device,
                                                 struct lk_timestamp **mark);
void lk_timestamp_destroy(struct lk_timestamp *mark);

/* Moves the mark behind everything enqueued so far; does not wait. */
LK_MUST_CHECK enum lk_status lk_timestamp_enqueue(struct lk_timestamp *mark);

/* When the device passed the mark, in seconds of the device's clock; -1: it has not passed it
 * yet, or tells no times. */
double lk_timestamp_seconds(const struct lk_timestamp *mark);

#endif
