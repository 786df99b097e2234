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
    cl_command_queue transfer; /* what travels to the host while kernels run */
    cl_command_queue upload;   /* and to the device */
    bool is_sub_device;
    bool is_pocl; /* its compiler takes one program at a time; see device/pocl.h */
    int pocl_group;
    pthread_mutex_t mutex; /* programs, kernels and byte counts */
    struct lk_program *programs;
    struct lk_kernel *pending; /* created, not yet built */
    size_t bytes, peak_bytes;
    bool blas_ready[2];           /* float, double: CLBlast has given the right answers */
    bool blas_wrong[2];           /* wrong ones, or none */
    struct lk_blas_use *blas_use; /* of its kernels for floats; NULL: it was not used */
    int matrix;                   /* see lk_device_matrix() */
    struct lk_trace *trace;       /* NULL: none was begun */
    _Atomic int64_t traced_step;  /* of what is enqueued now; 0: is not traced */
    atomic_bool is_abandoned;     /* no call on it returns any more */
    char log_folder[512];
    char options[256]; /* build options of every program */
    char shuffle[96];  /* one more: see device/subgroups.h */
};

struct lk_buffer {
    struct lk_device *device;
    cl_mem mem;
    size_t bytes;
    struct lk_buffer *whole; /* of a view: the buffer it is a part of; else NULL */
    size_t offset;           /* where in it */
};

/* lk_buffer_create() with flags of clCreateBuffer. */
enum lk_status lk_buffer_create_with(struct lk_device *device, size_t bytes, cl_mem_flags flags,
                                     struct lk_buffer **buffer);

/* "CL_OUT_OF_RESOURCES" and so on; "unknown OpenCL error" for others. */
const char *lk_opencl_name(cl_int error);

/* lk_fail() with the error's name and what was being done; LK_E_DEVICE_MEMORY where memory ran
 * out, LK_E_BUILD for builds, else LK_E_DEVICE. */
enum lk_status lk_opencl_fail(cl_int error, const char *what);

/* Waits for the event; returns the command's own error where it ended with one. */
cl_int lk_opencl_wait(cl_event event);

/* Passed after each call that may take long; an abandoned device lets nobody pass. */
void lk_device_pass(const struct lk_device *device);

/* All devices of all platforms in their order, at most LK_MOST_DEVICES. */
enum lk_status lk_opencl_list(cl_device_id *ids, int *count);

/* Fills `info` from the device, class, lanes and vector included. */
enum lk_status lk_opencl_describe(cl_device_id id, int index, struct lk_device_info *info);

/* For device/trace.h, round each command that is enqueued: where its event goes that nobody
 * else needs, NULL while nothing is traced; */
static inline cl_event *lk_trace_place(struct lk_device *device, cl_event *event)
{
    return atomic_load_explicit(&device->traced_step, memory_order_relaxed) ? event : NULL;
}

/* and the event that came, which is the trace's from now on. `bytes`: that the command moves;
 * 0: none, as a kernel. Does nothing for NULL. */
void lk_trace_add(struct lk_device *device, cl_command_queue queue, const char *name,
                  size_t bytes, cl_event event);

/* The same with an event that the caller keeps, for a command that is traced or not. */
void lk_trace_share(struct lk_device *device, cl_command_queue queue, const char *name,
                    size_t bytes, cl_event event);

#endif
