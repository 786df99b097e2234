#include "device/device.h"

#include "base/fail.h"
#include "device/blas.h"
#include "device/kernel.h"
#include "device/opencl.h"
#include "device/pocl.h"
#include "device/subgroups.h"
#include "device/trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One device of a list: device `index`, or part `part` of `parts` equal ones. */
struct entry {
    int index, part, parts;
};

struct list {
    cl_device_id ids[LK_MOST_DEVICES];
    int known, count;
    struct entry entries[LK_MOST_DEVICES];
};

static bool is_class(cl_device_id id, bool cpu)
{
    cl_device_type type = 0;
    clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    return ((type & CL_DEVICE_TYPE_CPU) != 0) == cpu;
}

static enum lk_status add_entry(struct list *list, struct entry entry)
{
    if (list->count == LK_MOST_DEVICES)
        return lk_fail(LK_E_ARGUMENT, "more than %d devices", LK_MOST_DEVICES);
    list->entries[list->count++] = entry;
    return LK_OK;
}

/* A device stands in one word of a list only: it would get a share of the work for each. */
static enum lk_status check_new(const struct list *list, int index)
{
    for (int i = 0; i < list->count; i++)
        if (list->entries[i].index == index)
            return lk_fail(LK_E_ARGUMENT,
                           "device %d is named twice; '%d*2' makes two replicas on it, '%d/2' "
                           "cuts it in two",
                           index, index, index);
    return LK_OK;
}

static enum lk_status add_word(struct list *list, const char *word)
{
    char *end;
    const bool all = strcmp(word, "all") == 0, cpu = strcmp(word, "cpu") == 0;
    if (all || cpu || strcmp(word, "gpu") == 0) {
        const int before = list->count;
        for (int i = 0; i < list->known; i++)
            if (all || is_class(list->ids[i], cpu)) {
                LK_TRY(check_new(list, i));
                LK_TRY(add_entry(list, (struct entry){i, 0, 1}));
            }
        if (list->count == before)
            return lk_fail(LK_E_NO_DEVICE, "device list '%s': there is no %s among %d device%s",
                           word, word, list->known, list->known == 1 ? "" : "s");
        return LK_OK;
    }
    const long index = strtol(word, &end, 10);
    if (!*word)
        return lk_fail(LK_E_ARGUMENT, "a list of devices has an empty place: expected '0,1'");
    if (end == word)
        return lk_fail(LK_E_ARGUMENT,
                       "device '%s' is not a number, 'N/PARTS', 'N*COPIES', all, gpu or cpu",
                       word);
    if (index < 0 || index >= list->known)
        return lk_fail(LK_E_NO_DEVICE, "device %ld is not there: there %s %d, numbered from 0",
                       index, list->known == 1 ? "is" : "are", list->known);
    LK_TRY(check_new(list, (int)index));
    if (!*end)
        return add_entry(list, (struct entry){(int)index, 0, 1});
    const bool cut = *end == '/', copied = *end == '*';
    const long parts = strtol(end + 1, &end, 10);
    if ((!cut && !copied) || *end || parts < 1 || parts > LK_MOST_DEVICES)
        return lk_fail(LK_E_ARGUMENT,
                       "device '%s': expected N, N/PARTS or N*COPIES, at most %d of them", word,
                       LK_MOST_DEVICES);
    for (int i = 0; i < (int)parts; i++)
        LK_TRY(add_entry(list, (struct entry){(int)index, cut ? i : 0, cut ? (int)parts : 1}));
    return LK_OK;
}

static enum lk_status parse_list(const char *spec, struct list *list)
{
    char text[512], *rest = text;
    list->count = 0;
    LK_TRY(lk_opencl_list(list->ids, &list->known));
    if (!spec || !*spec)
        spec = getenv("LOCKSTEP_DEVICE");
    if (!spec || !*spec) {
        for (int i = 0; i < list->known; i++)
            if (is_class(list->ids[i], false))
                return add_entry(list, (struct entry){i, 0, 1});
        return add_entry(list, (struct entry){0, 0, 1});
    }
    if (strlen(spec) >= sizeof text)
        return lk_fail(LK_E_ARGUMENT, "device list of %zu characters", strlen(spec));
    snprintf(text, sizeof text, "%s", spec);
    while (rest) {
        char *word = rest;
        rest = strchr(rest, ',');
        if (rest)
            *rest++ = '\0';
        LK_TRY(add_word(list, word));
    }
    return LK_OK;
}

enum lk_status lk_device_count(int *count)
{
    cl_device_id ids[LK_MOST_DEVICES];
    return lk_opencl_list(ids, count);
}

enum lk_status lk_device_query(int index, struct lk_device_info *info)
{
    cl_device_id ids[LK_MOST_DEVICES];
    int count;
    LK_TRY(lk_opencl_list(ids, &count));
    if (index < 0 || index >= count)
        return lk_fail(LK_E_NO_DEVICE, "device %d is not there: there are %d", index, count);
    return lk_opencl_describe(ids[index], index, info);
}

enum lk_status lk_device_list_count(const char *spec, int *count)
{
    struct list list;
    LK_TRY(parse_list(spec, &list));
    *count = list.count;
    return LK_OK;
}

/* Asked first, since some drivers have no clCreateSubDevices at all. */
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

/* Cuts the device into equal parts and keeps one of them. By counts, since cutting "equally"
 * makes parts of what is left over too. */
static enum lk_status take_part(struct lk_device *device, struct entry entry)
{
    cl_device_id parts[LK_MOST_DEVICES];
    cl_uint made = 0;
    const int units = device->info.compute_units / entry.parts;
    cl_device_partition_property how[LK_MOST_DEVICES + 3] = {CL_DEVICE_PARTITION_BY_COUNTS};
    if (units < 1)
        return lk_fail(LK_E_ARGUMENT, "device %d has %d compute units, not enough for %d parts",
                       entry.index, device->info.compute_units, entry.parts);
    if (!can_be_cut(device->id))
        return lk_fail(LK_E_UNSUPPORTED, "device %d cannot be cut into parts", entry.index);
    for (int i = 0; i < entry.parts; i++)
        how[1 + i] = units; /* zeros end the counts and the properties */
    const cl_int error = clCreateSubDevices(device->id, how, LK_MOST_DEVICES, parts, &made);
    if (error != CL_SUCCESS)
        return lk_fail(LK_E_UNSUPPORTED, "device %d cannot be cut into parts: %s", entry.index,
                       lk_opencl_name(error));
    for (int i = 0; i < (int)made; i++)
        if (i != entry.part)
            clReleaseDevice(parts[i]);
    device->id = parts[entry.part];
    device->is_sub_device = true;
    return LK_OK;
}

static enum lk_status start(struct lk_device *device, struct entry entry)
{
    cl_int error;
    char group[32];
    cl_device_fp_config fp = 0;
    LK_TRY(lk_opencl_describe(device->id, entry.index, &device->info));
    if (entry.parts > 1) {
        LK_TRY(take_part(device, entry));
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
    struct list list;
    LK_TRY(parse_list(spec, &list));
    if (position < 0 || position >= list.count)
        return lk_fail(LK_E_ARGUMENT, "entry %d of a list of %d devices", position, list.count);
    struct lk_device *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a device", sizeof *made);
    pthread_mutex_init(&made->mutex, NULL);
    made->matrix = -1;
    const struct entry entry = list.entries[position];
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
    lk_blas_leave(device);
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
    if (device->is_pocl)
        lk_pocl_leave(device->pocl_group);
    if (device->is_sub_device)
        clReleaseDevice(device->id);
    pthread_mutex_destroy(&device->mutex);
    free(device);
}

const struct lk_device_info *lk_device_info(const struct lk_device *device)
{
    return &device->info;
}

void lk_device_set_log_folder(struct lk_device *device, const char *folder)
{
    snprintf(device->log_folder, sizeof device->log_folder, "%s", folder ? folder : "");
}

size_t lk_device_bytes(const struct lk_device *device)
{
    return device->bytes;
}

size_t lk_device_peak_bytes(const struct lk_device *device)
{
    return device->peak_bytes;
}

int *lk_device_matrix(struct lk_device *device)
{
    return &device->matrix;
}

void lk_device_abandon(struct lk_device *device)
{
    atomic_store(&device->is_abandoned, true);
}

void lk_device_pass(const struct lk_device *device)
{
    while (atomic_load_explicit(&device->is_abandoned, memory_order_relaxed))
        pause();
}

enum lk_status lk_device_finish(struct lk_device *device)
{
    const cl_command_queue queues[] = {device->queue, device->transfer, device->upload};
    cl_int error = CL_SUCCESS;
    for (int i = 0; i < LK_COUNT(queues); i++) { /* none may work on what is freed then */
        const cl_int found = clFinish(queues[i]);
        error = error == CL_SUCCESS ? found : error;
    }
    lk_device_pass(device);
    return error == CL_SUCCESS ? LK_OK : lk_opencl_fail(error, "clFinish");
}
