/* Opens the devices of a list, with their context and queues, and closes them. */
#include "base/fail.h"
#include "device/library/blas.h"
#include "device/open/list.h"
#include "device/opencl.h"
#include "device/pocl.h"
#include "device/program/ahead.h"
#include "device/program/kernel.h"
#include "device/reserve.h"
#include "device/subgroups.h"
#include "device/trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Whether the device can be divided. Asked before clCreateSubDevices(), which some drivers
 * lack. */
static bool can_be_cut(cl_device_id id)
{
    cl_device_partition_property ways[8] = {0};
    if (clGetDeviceInfo(id, CL_DEVICE_PARTITION_PROPERTIES, sizeof ways, ways, NULL) !=
        CL_SUCCESS)
        return false;
    for (int i = 0; i < LK_COUNT(ways); i++)
        if (ways[i] == CL_DEVICE_PARTITION_BY_COUNTS)
            return true;
    return false;
}

/* Replaces the device by one of `entry.subs` equal sub-devices. They are asked for by counts
 * of compute units, since CL_DEVICE_PARTITION_EQUALLY makes one more of the units left over. */
static enum lk_status take_sub_device(struct lk_device *device, struct lk_device_entry entry)
{
    cl_device_id subs[LK_MOST_DEVICES];
    cl_uint made = 0;
    const int units = device->info.compute_units / entry.subs;
    cl_device_partition_property how[LK_MOST_DEVICES + 3] = {CL_DEVICE_PARTITION_BY_COUNTS};
    if (units < 1)
        return lk_fail(LK_E_ARGUMENT, "device %d has %d compute units, not enough for %d parts",
                       entry.index, device->info.compute_units, entry.subs);
    if (!can_be_cut(device->id))
        return lk_fail(LK_E_ARGUMENT, "device %d cannot be cut into parts", entry.index);
    for (int i = 0; i < entry.subs; i++)
        how[1 + i] = units; /* zeros end the counts and the properties */
    const cl_int error = clCreateSubDevices(device->id, how, LK_MOST_DEVICES, subs, &made);
    if (error != CL_SUCCESS)
        return lk_fail(LK_E_ARGUMENT, "device %d cannot be cut into parts: %s", entry.index,
                       lk_opencl_name(error));
    for (int i = 0; i < (int)made; i++)
        if (i != entry.sub)
            clReleaseDevice(subs[i]);
    device->id = subs[entry.sub];
    device->is_sub_device = true;
    return LK_OK;
}

static enum lk_status start(struct lk_device *device, struct lk_device_entry entry)
{
    cl_int error;
    char group[32];
    cl_device_fp_config fp = 0;
    LK_TRY(lk_opencl_describe(device->id, entry.index, &device->info));
    if (entry.subs > 1) {
        LK_TRY(take_sub_device(device, entry));
        LK_TRY(lk_opencl_describe(device->id, entry.index, &device->info));
    }
    device->is_pocl = lk_pocl_is(device->info.platform);
    device->pocl_group = device->is_pocl ? lk_pocl_enter() : 0;
    clGetDeviceInfo(device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof fp, &fp, NULL);
    snprintf(device->options, sizeof device->options, "-cl-std=CL1.2%s%s",
             fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
                 ? " -cl-fp32-correctly-rounded-divide-sqrt"
                 : "",
             lk_pocl_options(device->pocl_group, group, sizeof group));
    device->context = clCreateContext(NULL, 1, &device->id, NULL, NULL, &error);
    if (error != CL_SUCCESS)
        return lk_opencl_fail(error, "clCreateContext");
    device->queue =
        clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &error);
    if (error == CL_SUCCESS)
        device->transfer = clCreateCommandQueue(device->context, device->id,
                                                CL_QUEUE_PROFILING_ENABLE, &error);
    if (error == CL_SUCCESS)
        device->upload = clCreateCommandQueue(device->context, device->id,
                                              CL_QUEUE_PROFILING_ENABLE, &error);
    return error == CL_SUCCESS ? LK_OK : lk_opencl_fail(error, "clCreateCommandQueue");
}

enum lk_status lk_device_open(const char *spec, int position, struct lk_device **device)
{
    struct lk_device_list list;
    LK_TRY(lk_device_list_parse(spec, &list));
    if (position < 0 || position >= list.count)
        return lk_fail(LK_E_ARGUMENT, "entry %d of a list of %d devices", position, list.count);
    struct lk_device *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a device", sizeof *made);
    pthread_mutex_init(&made->mutex, NULL);
    made->matrix = -1;
    const struct lk_device_entry entry = list.entries[position];
    made->id = list.ids[entry.index];
    const enum lk_status status = start(made, entry);
    if (status != LK_OK) {
        lk_device_close(made);
        return status;
    }
    lk_subgroups_choose(made);
    *device = made;
    return LK_OK;
}

static void release_queue(cl_command_queue queue)
{
    if (!queue)
        return;
    lk_pocl_finish(queue);
    clReleaseCommandQueue(queue);
}

void lk_device_close(struct lk_device *device)
{
    if (!device)
        return;
    lk_trace_end(device);
    lk_blas_release_tiles(device);
    release_queue(device->queue);
    release_queue(device->transfer);
    release_queue(device->upload);
    while (device->programs) {
        struct lk_program *program = device->programs;
        device->programs = program->next;
        lk_program_destroy(program);
    }
    if (device->context)
        clReleaseContext(device->context);
    lk_reserve_release(device->reserve);
    lk_ahead_end(device);
    if (device->is_pocl)
        lk_pocl_leave(device->pocl_group);
    if (device->is_sub_device)
        clReleaseDevice(device->id);
    pthread_mutex_destroy(&device->mutex);
    free(device);
}
