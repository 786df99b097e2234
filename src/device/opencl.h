/* OpenCL types, for the device room alone. Floor 1. */
#ifndef LK_DEVICE_OPENCL_H
#define LK_DEVICE_OPENCL_H

#include <CL/cl.h>
#include <lockstep/device.h>
#include <pthread.h>
#include <stdatomic.h>

enum { LK_MOST_DEVICES = 64 };

struct lk_device {
    struct lk_device_info info;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;    /* kernels, and copies that go with them */
    cl_command_queue transfer; /* transfers to the host, at the same time as kernels */
    cl_command_queue upload;   /* transfers to the device, likewise */
    bool is_sub_device;
    bool is_pocl; /* its compiler builds one program at a time; see device/pocl.h */
    int pocl_group;
    pthread_mutex_t mutex; /* programs, kernels and byte counts */
    struct lk_program *programs;
    struct lk_kernel *pending; /* created, not yet built */
    size_t bytes, peak_bytes;
    struct lk_reserve *reserve;   /* see lk_device_expect(); NULL: none */
    bool blas_ready[2];           /* float, double: CLBlast's answers were right */
    bool blas_wrong[2];           /* float, double: they were wrong, or CLBlast failed */
    struct lk_blas_use *blas_use; /* tiles of CLBlast's float kernels; NULL: it was not used */
    int matrix;                   /* see lk_device_matrix() */
    struct lk_chain *chain;       /* that launches belong to now; NULL: none */
    struct lk_trace *trace;       /* NULL: lk_trace_begin() was not called */
    _Atomic int64_t traced_step; /* the step of commands enqueued now; 0: they are not traced */
    atomic_bool is_abandoned;    /* see lk_device_abandon() */
    atomic_bool has_failed;      /* see lk_device_has_failed() */
    char log_folder[512];
    char options[256]; /* build options of every program */
    char shuffle[96];  /* one more: see device/subgroups.h */
};

struct lk_buffer {
    struct lk_device *device;
    cl_mem mem;
    size_t bytes;
    struct lk_buffer *whole; /* of a view: the buffer that owns the memory; else NULL */
    size_t offset;           /* of a view: the byte of `whole` at which it begins */
    size_t used; /* bytes at its beginning that were not known to be 0 when it was created */
    struct lk_region *region;   /* of a view; see device/regions.h */
    struct lk_regions *regions; /* of a buffer that owns its memory; NULL: it has no views */
};

/* lk_buffer_create() with flags of clCreateBuffer. */
enum lk_status lk_buffer_create_with(struct lk_device *device, size_t bytes, cl_mem_flags flags,
                                     struct lk_buffer **buffer);

/* "CL_OUT_OF_RESOURCES" and so on; "unknown OpenCL error" for others. */
const char *lk_opencl_name(cl_int error);

/* lk_fail() with the error's name and `what`, the call that failed: LK_E_DEVICE_MEMORY where
 * memory ran out, LK_E_BUILD for builds, else LK_E_DEVICE. */
enum lk_status lk_opencl_fail(cl_int error, const char *what);

/* The same of a call that a working device would not have failed: the device remembers it. */
enum lk_status lk_device_fail(struct lk_device *device, cl_int error, const char *what);

/* Waits for the event; returns the command's own error where it ended with one. */
cl_int lk_opencl_wait(cl_event event);

/* To be called after each OpenCL call that may take long: returns at once, or never if the
 * device was abandoned meanwhile. */
void lk_device_block_if_abandoned(const struct lk_device *device);

/* An event that completes when all kernels enqueued so far have run; flushes the queue. */
cl_int lk_device_mark(struct lk_device *device, cl_event *event);

/* All devices of all platforms in their order, at most LK_MOST_DEVICES. */
enum lk_status lk_opencl_list(cl_device_id *ids, int *count);

/* Fills `info`: what the device reports, and the class, lanes and vector chosen for it. */
enum lk_status lk_opencl_describe(cl_device_id id, int index, struct lk_device_info *info);

/* Launches what the open chain has taken; does nothing where none is open. To be called before
 * anything else is enqueued that a kernel may depend on, or that depends on one. */
LK_MUST_CHECK enum lk_status lk_chain_flush(struct lk_device *device);

/* To be passed as the event argument of a command whose event nobody else needs: NULL while
 * nothing is traced. */
static inline cl_event *lk_trace_place(struct lk_device *device, cl_event *event)
{
    return atomic_load_explicit(&device->traced_step, memory_order_relaxed) ? event : NULL;
}

/* To be called after the command with the event that it gave, which the trace then owns; NULL:
 * does nothing. `bytes`: that the command moves; 0 for a kernel. */
void lk_trace_add(struct lk_device *device, cl_command_queue queue, const char *name,
                  size_t bytes, cl_event event);

/* As lk_trace_add() for an event that the caller goes on owning; does nothing while nothing is
 * traced. */
void lk_trace_add_retained(struct lk_device *device, cl_command_queue queue, const char *name,
                           size_t bytes, cl_event event);

#endif
