/* Finds out by a trial whether a device can add the lanes of a tile by shuffles in sub-groups.
 */
#include "device/subgroups.h"

#include "base/fail.h"
#include "base/random.h"
#include "device/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The trial adds GROUPS groups of 8, 16 and 32 lanes, the numbers that GPU tiles may have. */
enum { GROUPS = 64, LEAST = 8, MOST = 32, SIZES = 3 };

/* AMD's compiler offers no shuffle function, so amd_shuffle_xor() is made of an instruction; it
 * shuffles within 32 work-items, since AMD's waves have 32 or 64. */
#define SIZE " -DSUBGROUP=get_max_sub_group_size()"
static const struct way {
    const char *extension, *options;
} ways[] = {
    {"cl_khr_subgroup_shuffle", "-DSHUFFLE=sub_group_shuffle_xor" SIZE},
    {"cl_intel_subgroups", "-DSHUFFLE=intel_sub_group_shuffle_xor" SIZE},
    {"cl_khr_subgroups", "-DSHUFFLE=amd_shuffle_xor -DSUBGROUP=32"},
};

/* Random numbers of either sign and of sizes from 2^-8 to 2^8, so that their sum depends on the
 * order of the additions. */
static void draw(float x[GROUPS * MOST])
{
    for (int i = 0; i < GROUPS * MOST; i++) {
        const struct lk_random4 drawn = lk_random(0, LK_RANDOM_DATA, 1, (uint64_t)i);
        const float size = (float)(1 << drawn.v[1] % 17) / 256;
        x[i] = (float)(2 * lk_random_unit(drawn.v[0]) - 1) * size;
    }
}

/* Whether every lane of every group got the sum of its group. */
static bool is_right(const float *x, const float *y, int lanes)
{
    for (int g = 0; g < GROUPS; g++, x += lanes, y += lanes) {
        float sum[MOST];
        memcpy(sum, x, (size_t)lanes * sizeof *sum);
        for (int apart = lanes / 2; apart > 0; apart /= 2)
            for (int l = 0; l < apart; l++)
                sum[l] += sum[l + apart];
        for (int l = 0; l < lanes; l++)
            if (memcmp(&y[l], sum, sizeof *sum) != 0)
                return false;
    }
    return true;
}

static enum lk_status compare(struct lk_kernel *kernel, struct lk_buffer *const buffer[2],
                              int lanes)
{
    const struct lk_grid grid = {{GROUPS, 1, 1}, lanes};
    float x[GROUPS * MOST], y[GROUPS * MOST];
    draw(x);
    memset(y, 0, sizeof y);
    LK_TRY(lk_buffer_write(buffer[0], 0, sizeof x, x));
    LK_TRY(lk_buffer_write(buffer[1], 0, sizeof y, y));
    LK_TRY(LK_ENQUEUE(kernel, grid, LK_BUF(buffer[0]), LK_BUF(buffer[1])));
    LK_TRY(lk_buffer_read(buffer[1], 0, sizeof y, y));
    return is_right(x, y, lanes) ? LK_OK : lk_fail(LK_E_UNSUPPORTED, "%d lanes", lanes);
}

static enum lk_status check(struct lk_device *device)
{
    struct lk_kernel *kernel[SIZES] = {0};
    struct lk_buffer *buffer[2] = {0};
    enum lk_status status;
    int count = 0;
    for (int lanes = device->info.lanes; lanes >= LEAST; lanes /= 2) {
        const struct lk_kernel_spec spec = {.source = "device/subgroups",
                                            .name = "subgroups_sum",
                                            .real_bytes = 4,
                                            .lanes = lanes};
        LK_TRY_OUT(lk_kernel_create(device, &spec, &kernel[count++]));
    }
    for (int i = 0; i < 2; i++)
        LK_TRY_OUT(lk_buffer_create(device, GROUPS * MOST * sizeof(float), &buffer[i]));
    LK_TRY_OUT(lk_device_build(device));
    for (int i = 0; i < count; i++)
        LK_TRY_OUT(compare(kernel[i], buffer, device->info.lanes >> i));
out:
    for (int i = 0; i < SIZES; i++)
        lk_kernel_destroy(kernel[i]);
    lk_buffer_destroy(buffer[0]);
    lk_buffer_destroy(buffer[1]);
    return status;
}

bool lk_subgroups_try(struct lk_device *device, const char *options)
{
    snprintf(device->shuffle, sizeof device->shuffle, " %s", options);
    if (check(device) == LK_OK)
        return true;
    device->shuffle[0] = '\0';
    lk_error_clear();
    return false;
}

/* Not on CPUs unless asked for: they gain nothing, and Intel's compiler for CPUs sometimes ends
 * the process. */
static bool are_wanted(const struct lk_device *device)
{
    const char *wanted = getenv("LOCKSTEP_SUBGROUPS");
    cl_device_type type = 0;
    clGetDeviceInfo(device->id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    return wanted ? strcmp(wanted, "0") != 0 : !(type & CL_DEVICE_TYPE_CPU);
}

void lk_subgroups_choose(struct lk_device *device)
{
    struct lk_device_info *info = &device->info;
    if (info->vector > 1 || !are_wanted(device))
        return;
    for (int i = 0; i < LK_COUNT(ways); i++)
        if (strstr(info->extensions, ways[i].extension) &&
            lk_subgroups_try(device, ways[i].options)) {
            snprintf(info->subgroups, sizeof info->subgroups, "%s", ways[i].extension);
            return;
        }
}
