/* Finds the OpenCL devices, describes them and names OpenCL's errors. */
#include "device/opencl.h"

#include "base/fail.h"
#include "base/log.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

const char *lk_opencl_name(cl_int error)
{
    static const struct {
        cl_int code;
        const char *name;
    } names[] = {
#define NAMED(code) {code, #code}
        NAMED(CL_DEVICE_NOT_FOUND),
        NAMED(CL_DEVICE_NOT_AVAILABLE),
        NAMED(CL_COMPILER_NOT_AVAILABLE),
        NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE),
        NAMED(CL_OUT_OF_RESOURCES),
        NAMED(CL_OUT_OF_HOST_MEMORY),
        NAMED(CL_PROFILING_INFO_NOT_AVAILABLE),
        NAMED(CL_MEM_COPY_OVERLAP),
        NAMED(CL_BUILD_PROGRAM_FAILURE),
        NAMED(CL_MAP_FAILURE),
        NAMED(CL_MISALIGNED_SUB_BUFFER_OFFSET),
        NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
        NAMED(CL_COMPILE_PROGRAM_FAILURE),
        NAMED(CL_LINKER_NOT_AVAILABLE),
        NAMED(CL_LINK_PROGRAM_FAILURE),
        NAMED(CL_DEVICE_PARTITION_FAILED),
        NAMED(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
        NAMED(CL_INVALID_VALUE),
        NAMED(CL_INVALID_DEVICE_TYPE),
        NAMED(CL_INVALID_PLATFORM),
        NAMED(CL_INVALID_DEVICE),
        NAMED(CL_INVALID_CONTEXT),
        NAMED(CL_INVALID_QUEUE_PROPERTIES),
        NAMED(CL_INVALID_COMMAND_QUEUE),
        NAMED(CL_INVALID_HOST_PTR),
        NAMED(CL_INVALID_MEM_OBJECT),
        NAMED(CL_INVALID_BINARY),
        NAMED(CL_INVALID_BUILD_OPTIONS),
        NAMED(CL_INVALID_PROGRAM),
        NAMED(CL_INVALID_PROGRAM_EXECUTABLE),
        NAMED(CL_INVALID_KERNEL_NAME),
        NAMED(CL_INVALID_KERNEL_DEFINITION),
        NAMED(CL_INVALID_KERNEL),
        NAMED(CL_INVALID_ARG_INDEX),
        NAMED(CL_INVALID_ARG_VALUE),
        NAMED(CL_INVALID_ARG_SIZE),
        NAMED(CL_INVALID_KERNEL_ARGS),
        NAMED(CL_INVALID_WORK_DIMENSION),
        NAMED(CL_INVALID_WORK_GROUP_SIZE),
        NAMED(CL_INVALID_WORK_ITEM_SIZE),
        NAMED(CL_INVALID_GLOBAL_OFFSET),
        NAMED(CL_INVALID_EVENT_WAIT_LIST),
        NAMED(CL_INVALID_EVENT),
        NAMED(CL_INVALID_OPERATION),
        NAMED(CL_INVALID_BUFFER_SIZE),
        NAMED(CL_INVALID_GLOBAL_WORK_SIZE),
        NAMED(CL_INVALID_PROPERTY),
        NAMED(CL_INVALID_DEVICE_PARTITION_COUNT),
#undef NAMED
    };
    for (int i = 0; i < LK_COUNT(names); i++)
        if (names[i].code == error)
            return names[i].name;
    return "unknown OpenCL error";
}

enum lk_status lk_opencl_fail(cl_int error, const char *what)
{
    enum lk_status status = LK_E_DEVICE;
    if (error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_HOST_MEMORY ||
        error == CL_INVALID_BUFFER_SIZE)
        status = LK_E_DEVICE_MEMORY;
    else if (error == CL_BUILD_PROGRAM_FAILURE || error == CL_COMPILER_NOT_AVAILABLE ||
             error == CL_INVALID_WORK_GROUP_SIZE || error == CL_INVALID_WORK_ITEM_SIZE ||
             (error <= CL_INVALID_BINARY && error >= CL_INVALID_KERNEL_DEFINITION))
        status = LK_E_BUILD;
    return lk_fail(status, "%s: %s (%d)", what, lk_opencl_name(error), (int)error);
}

cl_int lk_opencl_wait(cl_event event)
{
    cl_int status = CL_COMPLETE;
    const cl_int error = clWaitForEvents(1, &event);
    if (error != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        return error;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return status < 0 ? status : error;
}

/* MiB that the process may map (ulimit -v); 0: as many as it wants. */
static unsigned long long address_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    return (unsigned long long)limit.rlim_cur >> 20;
}

/* A driver that cannot be loaded looks like one that is not there, and one that gets no memory
 * for its threads ends the process. */
static void warn_of_limit(void)
{
    enum { USUAL_MIB = 1024 };
    static atomic_flag is_said = ATOMIC_FLAG_INIT;
    const unsigned long long limit = address_limit();
    if (limit > 0 && limit < USUAL_MIB && !atomic_flag_test_and_set(&is_said))
        lk_log(LK_LOG_WARNING,
               "the process may map %llu MiB of memory (ulimit -v), with which OpenCL drivers "
               "may fail to load or end it",
               limit);
}

static enum lk_status no_platform(void)
{
    const unsigned long long limit = address_limit();
    if (limit > 0)
        return lk_fail(LK_E_NO_DEVICE,
                       "no OpenCL platform can be loaded: none is installed, or the %llu MiB "
                       "that the process may map (ulimit -v) are too few",
                       limit);
    return lk_fail(LK_E_NO_DEVICE,
                   "no OpenCL platform is installed: install a driver, for example the "
                   "Debian package pocl-opencl-icd (CPU), mesa-opencl-icd (AMD), "
                   "intel-opencl-icd (Intel) or nvidia-opencl-icd (NVIDIA)");
}

enum lk_status lk_opencl_list(cl_device_id *ids, int *count)
{
    cl_platform_id platforms[16];
    cl_uint found = 0;
    int devices = 0;
    warn_of_limit();
    const cl_int error = clGetPlatformIDs(16, platforms, &found);
    if (error != CL_SUCCESS || found == 0)
        return no_platform();
    for (cl_uint i = 0; i < found && i < 16; i++) {
        cl_uint here = 0;
        const cl_uint room = (cl_uint)(LK_MOST_DEVICES - devices);
        if (room == 0 || clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, room, ids + devices,
                                        &here) != CL_SUCCESS)
            continue;
        devices += (int)(here < room ? here : room);
    }
    if (devices == 0)
        return lk_fail(LK_E_NO_DEVICE, "%u OpenCL platform%s installed, but no device on any",
                       found, found == 1 ? " is" : "s are");
    *count = devices;
    return LK_OK;
}

static void get_text(cl_device_id id, cl_device_info what, char *text, size_t bytes)
{
    size_t need = 0;
    text[0] = '\0';
    if (clGetDeviceInfo(id, what, 0, NULL, &need) != CL_SUCCESS || need == 0)
        return;
    char *whole = malloc(need);
    if (whole && clGetDeviceInfo(id, what, need, whole, NULL) == CL_SUCCESS)
        snprintf(text, bytes, "%s", whole);
    free(whole);
}

static cl_ulong get_number(cl_device_id id, cl_device_info what, size_t bytes)
{
    union {
        cl_uint u;
        cl_ulong l;
        size_t z;
    } value = {.l = 0};
    if (clGetDeviceInfo(id, what, bytes, &value, NULL) != CL_SUCCESS)
        return 0;
    return bytes == sizeof value.u ? value.u : value.l;
}

/* Whether the platform caches compiled programs on disk by itself. */
static bool keeps_programs(const char *platform)
{
    static const char *const keepers[] = {"Portable Computing Language", "NVIDIA CUDA",
                                          "Intel(R) OpenCL", "rusticl"};
    for (int i = 0; i < LK_COUNT(keepers); i++)
        if (strstr(platform, keepers[i]))
            return true;
    return false;
}

/* Sets *choice to the index of the variable's value among `known`; leaves it alone where the
 * variable is not set. */
static enum lk_status read_choice(const char *variable, const char *const *known,
                                  const char *expected, int *choice)
{
    const char *word = getenv(variable);
    if (!word || !*word)
        return LK_OK;
    for (int i = 0; known[i]; i++)
        if (strcmp(word, known[i]) == 0) {
            *choice = i;
            return LK_OK;
        }
    return lk_fail(LK_E_ARGUMENT, "%s='%s' in the environment: expected %s", variable, word,
                   expected);
}

/* Chooses class, vector and lanes. Lanes: one vector on a CPU; 32 on a GPU, which is a warp of
 * NVIDIA's and no more than a wave of the others. */
static enum lk_status choose_tile(struct lk_device_info *info)
{
    static const char *const classes[] = {"cpu", "gpu", NULL};
    static const char *const vectors[] = {"4", "8", "16", NULL};
    /* Clover 22.3 computed wrong gradients with the CPU class's vectors: it gets the GPU class.
     */
    int class = info->device_class == LK_CLASS_GPU || strcmp(info->platform, "Clover") == 0;
    int vector = info->vector_width >= 16 ? 2 : info->vector_width >= 8;
    LK_TRY(read_choice("LOCKSTEP_CLASS", classes, "cpu or gpu", &class));
    LK_TRY(read_choice("LOCKSTEP_VECTOR", vectors, "4, 8 or 16", &vector));
    /* Vectors of 16 floats lie wherever numbers do; NVIDIA's GPUs (580.159.04) fault there. */
    class |= info->device_class == LK_CLASS_GPU;
    info->device_class = class ? LK_CLASS_GPU : LK_CLASS_CPU;
    info->vector = class ? 1 : 4 << vector;
    info->lanes = class ? 32 : info->vector;
    while (class && (size_t)info->lanes > info->group_items)
        info->lanes /= 2;
    return LK_OK;
}

enum lk_status lk_opencl_describe(cl_device_id id, int index, struct lk_device_info *info)
{
    *info = (struct lk_device_info){.index = index};
    cl_platform_id platform = NULL;
    clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL);
    if (platform)
        clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof info->platform, info->platform,
                          NULL);
    get_text(id, CL_DEVICE_NAME, info->name, sizeof info->name);
    get_text(id, CL_DEVICE_VENDOR, info->vendor, sizeof info->vendor);
    get_text(id, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    get_text(id, CL_DEVICE_VERSION, info->version, sizeof info->version);
    get_text(id, CL_DEVICE_EXTENSIONS, info->extensions, sizeof info->extensions);
    const cl_ulong type = get_number(id, CL_DEVICE_TYPE, sizeof(cl_device_type));
    info->device_class = type & CL_DEVICE_TYPE_CPU ? LK_CLASS_CPU : LK_CLASS_GPU;
    info->compute_units = (int)get_number(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint));
    info->clock_mhz = (int)get_number(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(cl_uint));
    info->vector_width =
        (int)get_number(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof(cl_uint));
    info->memory_bytes = get_number(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong));
    info->allocation_bytes = get_number(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong));
    info->local_bytes = get_number(id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong));
    info->group_items = get_number(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    info->align_bytes = get_number(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(cl_uint)) / 8;
    /* Clover asks for a page (4096 bytes), which is more than it needs and more than parameters
     * are padded to. */
    if (info->align_bytes > 512)
        info->align_bytes = 512;
    if (info->align_bytes < 128)
        info->align_bytes = 128;
    info->shares_memory = get_number(id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(cl_bool)) != 0;
    info->has_fp64 = strstr(info->extensions, "cl_khr_fp64") != NULL;
    info->keeps_programs = keeps_programs(info->platform);
    return choose_tile(info);
}
