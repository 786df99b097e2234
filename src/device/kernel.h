/* Programs and kernels inside the device room. Floor 1. */
#ifndef LK_DEVICE_KERNEL_H
#define LK_DEVICE_KERNEL_H

#include "base/embedded.h"
#include "device/device.h"
#include "device/opencl.h"

/* One source built with one set of options; lives as long as its device. */
struct lk_program {
    struct lk_program *next;
    const struct lk_embedded *source;
    char *options;
    cl_program program; /* NULL: not built yet; may be shared with others */
    int unit;           /* kernels are called NAME_unit in a shared one; 0: NAME */
    bool is_wanted;     /* to be built now */
};

struct lk_kernel {
    struct lk_device *device;
    struct lk_program *program;
    struct lk_kernel *next_pending;
    cl_kernel kernel; /* NULL: not built yet */
    cl_uint arg_count;
    int real_bytes;
    char name[64];
};

/* The device's program for a specification, made where there is none. fails: LK_E_BUILD for an
 * unknown source */
enum lk_status lk_program_find(struct lk_device *device, const struct lk_kernel_spec *spec,
                               struct lk_program **program);

/* Compiles it, or takes it from the disk cache. fails: LK_E_BUILD */
enum lk_status lk_program_build(struct lk_device *device, struct lk_program *program);

/* Compiles all programs that are wanted as one, each a unit of its own names, and marks them
 * built. What fails is left as it was, for lk_program_build() to say why. */
void lk_programs_build_together(struct lk_device *device);

void lk_program_destroy(struct lk_program *program);

#endif
