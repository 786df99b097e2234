/* Compiled programs in files of the cache folder, named by a hash of all that decides them. */
#include "device/program/cache.h"

#include "base/folder.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* source: Fowler, Noll, Vo, FNV-1a, 64 bits */
static const uint64_t hash_start = 0xcbf29ce484222325;

static uint64_t hash(uint64_t value, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        value = (value ^ ((const unsigned char *)data)[i]) * 0x100000001b3;
    return value;
}

bool lk_cache_is_wanted(const struct lk_device *device)
{
    const char *forced = getenv("LOCKSTEP_PROGRAM_CACHE");
    return forced && *forced ? *forced == '1' : !device->info.keeps_programs;
}

/* The path of the program's file: its name is a hash of the device, driver, options and source.
 */
static bool entry_path(const struct lk_device *device, const struct lk_program *program,
                       char *path, size_t bytes)
{
    const struct lk_device_info *info = &device->info;
    const char *const parts[] = {info->platform, info->name,       info->driver,
                                 info->version,  program->options, program->source->text};
    uint64_t low = hash_start, high = ~hash_start;
    char folder[512];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        low = hash(low, parts[i], strlen(parts[i]) + 1);
        high = hash(high ^ low, parts[i], strlen(parts[i]) + 1);
    }
    if (!lk_cache_is_wanted(device) || !lk_cache_folder("programs", folder, sizeof folder) ||
        !lk_folder_create(folder))
        return false;
    return (size_t)snprintf(path, bytes, "%s/%016" PRIx64 "%016" PRIx64 ".bin", folder, high,
                            low) < bytes;
}

static unsigned char *read_whole(const char *path, size_t *bytes)
{
    enum { MOST = 64 << 20 };
    FILE *file = fopen(path, "rb");
    struct stat about;
    unsigned char *data = NULL;
    if (file && fstat(fileno(file), &about) == 0 && about.st_size > 0 && about.st_size < MOST &&
        (data = malloc((size_t)about.st_size)) != NULL) {
        *bytes = (size_t)about.st_size;
        if (fread(data, 1, *bytes, file) != *bytes) {
            free(data);
            data = NULL;
        }
    }
    if (file)
        fclose(file);
    return data;
}

/* A file is a hash of the binary and the binary: some drivers crash on a damaged one, so it is
 * checked first. */
enum { HASH_BYTES = sizeof(uint64_t) };

static bool is_whole(const unsigned char *data, size_t bytes)
{
    uint64_t kept;
    if (bytes <= HASH_BYTES)
        return false;
    memcpy(&kept, data, HASH_BYTES);
    return kept == hash(hash_start, data + HASH_BYTES, bytes - HASH_BYTES);
}

static cl_program build(const struct lk_device *device, const struct lk_program *program,
                        const unsigned char *binary, size_t bytes)
{
    cl_int error, loaded;
    cl_program built = clCreateProgramWithBinary(device->context, 1, &device->id, &bytes,
                                                 &binary, &loaded, &error);
    if (error == CL_SUCCESS && loaded == CL_SUCCESS &&
        clBuildProgram(built, 1, &device->id, program->options, NULL, NULL) == CL_SUCCESS)
        return built;
    if (built)
        clReleaseProgram(built);
    return NULL;
}

cl_program lk_cache_load(struct lk_device *device, const struct lk_program *program)
{
    char path[640];
    size_t bytes = 0;
    if (!entry_path(device, program, path, sizeof path))
        return NULL;
    unsigned char *data = read_whole(path, &bytes);
    if (!data)
        return NULL;
    cl_program built = is_whole(data, bytes)
                           ? build(device, program, data + HASH_BYTES, bytes - HASH_BYTES)
                           : NULL;
    free(data);
    if (!built)
        unlink(path); /* cut short or not ours: it will be written again */
    return built;
}

void lk_cache_save(struct lk_device *device, const struct lk_program *program)
{
    char path[640], part[680];
    size_t bytes = 0;
    if (!entry_path(device, program, path, sizeof path) ||
        clGetProgramInfo(program->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes,
                         NULL) != CL_SUCCESS ||
        bytes == 0)
        return;
    unsigned char *binary = malloc(bytes);
    snprintf(part, sizeof part, "%s.%ld.%p", path, (long)getpid(), (const void *)program);
    FILE *file = binary && clGetProgramInfo(program->program, CL_PROGRAM_BINARIES,
                                            sizeof binary, &binary, NULL) == CL_SUCCESS
                     ? fopen(part, "wb")
                     : NULL;
    if (file) {
        const uint64_t kept = hash(hash_start, binary, bytes);
        const bool whole = fwrite(&kept, 1, sizeof kept, file) == sizeof kept &&
                           fwrite(binary, 1, bytes, file) == bytes;
        if (fclose(file) != 0 || !whole || rename(part, path) != 0)
            unlink(part);
    }
    free(binary);
}
