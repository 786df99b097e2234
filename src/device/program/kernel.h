/* Programs and kernels inside the device room. Floor 1. */
#ifndef LK_DEVICE_PROGRAM_KERNEL_H
#define LK_DEVICE_PROGRAM_KERNEL_H

#include "base/embedded.h"
#include "device/device.h"
#include "device/opencl.h"

/* One source built with one set of options; lives as long as its device. */
struct lk_program {
    struct lk_program *next;
    const struct lk_embedded *source;
    char *options;
    cl_program program; /* NULL: not built yet; may be shared with others */
    int unit; /* in a unity build kernels are called NAME_<unit>; 0: this source alone, NAME */
    bool is_wanted; /* the build that is running needs it */
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

/* Compiles the program, or takes it from the cache on disk. fails: LK_E_BUILD */
enum lk_status lk_program_build(struct lk_device *device, struct lk_program *program);

/* On how many threads programs are built at most. */
long lk_build_thread_count(void);

struct lk_text;

/* Appends a program to the text of several, as one of them with that number; `behind` follows
 * where its names and macros are known. */
void lk_unity_print(struct lk_text *text, const struct lk_program *program, int unit,
                    const char *behind);

/* Compiles such a text; NULL: it does not build. */
cl_program lk_unity_build(const struct lk_device *device, const char *text);

/* While a chain is open on the kernel's device (device/chain.h): takes the launch, or launches
 * all that it has taken before. */
LK_MUST_CHECK enum lk_status lk_chain_add(struct lk_kernel *kernel, const struct lk_grid *grid,
                                          const struct lk_arg *args, int count, bool *is_taken);

/* Compiles all wanted programs as one, in which each source's names are made its own (unity.c).
 * Where that fails the programs stay unbuilt, and lk_program_build() of each tells why. */
void lk_programs_build_together(struct lk_device *device);

void lk_program_destroy(struct lk_program *program);

#endif
