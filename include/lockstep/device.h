/* OpenCL devices: which there are, what they can do, opening one.
 * Floor 1. Knows no tensor, no graph. */
#ifndef LOCKSTEP_DEVICE_H
#define LOCKSTEP_DEVICE_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which family of kernels runs: explicit vectors in one work-item, or a work-item a sample. */
enum lk_device_class { LK_CLASS_CPU, LK_CLASS_GPU };

struct lk_device_info {
    char name[128], vendor[128], driver[128], version[128], platform[128];
    enum lk_device_class device_class;
    int index; /* position in the list of all platforms' devices */
    int compute_units;
    int clock_mhz;
    int vector_width;  /* native float vector width as the device reports it */
    int lanes, vector; /* samples in a batch tile; of these, values in a work-item's vector */
    bool has_fp64, shares_memory,
        keeps_programs; /* keeps_programs: the platform caches builds */
    size_t memory_bytes, allocation_bytes, local_bytes, group_items, align_bytes;
    char extensions[4096];
    char subgroups[32]; /* of an open device: the extension that sums over lanes; "": none */
};

struct lk_device;

/* The number of devices on all platforms. fails: LK_E_NO_DEVICE where no platform is installed
 * (the text says which package gives one) */
LK_API LK_MUST_CHECK enum lk_status lk_device_count(int *count);

/* Describes device `index`. fails: LK_E_NO_DEVICE for an index that is not there */
LK_API LK_MUST_CHECK enum lk_status lk_device_query(int index, struct lk_device_info *info);

/* How many devices the list `spec` names: "0", "0,2", "all", "gpu", "cpu", "0/2" (device 0 cut
 * into two equal sub-devices), "0/2.1" (the second of these), "0*2" (two replicas on device 0).
 * NULL or "": $LOCKSTEP_DEVICE, else the first GPU, else the first device.
 * fails: LK_E_ARGUMENT, LK_E_NO_DEVICE */
LK_API LK_MUST_CHECK enum lk_status lk_device_list_count(const char *spec, int *count);

/* Devices in each group of a list that has groups, as "0+1,2+3" has two of 2; 0: it has none.
 * fails: as lk_device_list_count */
LK_API LK_MUST_CHECK enum lk_status lk_device_list_groups(const char *spec, int *each);

/* A list of those devices of another list that are not lost, [of that list], and still take and
 * give back numbers. fails: as lk_device_list_count */
LK_API LK_MUST_CHECK enum lk_status lk_device_list_left(const char *spec, const bool *is_lost,
                                                        char *left, size_t bytes, int *count);

/* Opens entry `position` of the list: a context and a queue of its own. $LOCKSTEP_CLASS=gpu|cpu
 * forces the kernel class, $LOCKSTEP_VECTOR the vector width (tests do); kernels are built on
 * $LOCKSTEP_BUILD_THREADS threads (one for each core where it is not set; with 1 no process is
 * started for them either). fails: as lk_device_list_count, LK_E_DEVICE, LK_E_ARGUMENT
 * (sub-devices) */
LK_API LK_MUST_CHECK enum lk_status lk_device_open(const char *spec, int position,
                                                   struct lk_device **device);

/* Waits for the device and releases it; its buffers and kernels must be gone. NULL is fine. */
LK_API void lk_device_close(struct lk_device *device);

/* What the open device is; lives as long as it. */
LK_API const struct lk_device_info *lk_device_info(const struct lk_device *device);

#define LK_COMPILE_AHEAD "compile-ahead"

/* Names a program that lk_device_build() may start with the one argument LK_COMPILE_AHEAD, in
 * processes that compile kernels on other cores while this one runs the first of them; they end
 * with the device at the latest. The program calls lk_device_compile_ahead(). NULL, as it is at
 * first: kernels are compiled in this process alone. `path` is kept, not copied. */
LK_API void lk_device_set_compiler(const char *path);

/* Reads from `input` which kernels to compile, compiles them for the platform's cache, and
 * returns when that is done or `input` ends. Closes all other files above 2. The process must
 * end then by _Exit(): threads of the platform never return. */
LK_API void lk_device_compile_ahead(int input);

/* Where logs of failed kernel builds go; NULL: the cache directory. Copied. */
LK_API void lk_device_set_log_folder(struct lk_device *device, const char *folder);

/* From now on the device counts as one that has no more memory than that. */
LK_API void lk_device_limit_memory(struct lk_device *device, size_t bytes);

/* Bytes of device memory allocated now, and the most there were at any time. */
LK_API size_t lk_device_bytes(const struct lk_device *device);
LK_API size_t lk_device_peak_bytes(const struct lk_device *device);

/* Waits until everything enqueued has run. fails: LK_E_DEVICE */
LK_API LK_MUST_CHECK enum lk_status lk_device_finish(struct lk_device *device);

#ifdef __cplusplus
}
#endif
#endif
