/* Compiles one program, or loads it from the cache on disk, and reports the compiler's errors.
 */
#include "device/program/kernel.h"

#include "base/embedded.h"
#include "base/fail.h"
#include "base/folder.h"
#include "base/log.h"
#include "device/program/cache.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct lk_embedded lk_kernel_files[];
extern const char lk_kernel_files_hash[];

const char *lk_kernels_hash(void)
{
    return lk_kernel_files_hash;
}

static char *format_options(const struct lk_device *device, const struct lk_kernel_spec *spec)
{
    char text[4096];
    const struct lk_device_info *info = &device->info;
    const int n = snprintf(text, sizeof text,
                           "%s -DREAL=%s -DREAL_BYTES=%d -DLANES=%d -DVECTOR=%d%s%s %s",
                           device->options, spec->real_bytes == 8 ? "double" : "float",
                           spec->real_bytes, spec->lanes ? spec->lanes : info->lanes,
                           info->vector, spec->stores_half ? " -DSTORED_BYTES=2" : "",
                           device->shuffle, spec->options ? spec->options : "");
    return n > 0 && (size_t)n < sizeof text ? strdup(text) : NULL;
}

enum lk_status lk_program_find(struct lk_device *device, const struct lk_kernel_spec *spec,
                               struct lk_program **program)
{
    char file[64];
    snprintf(file, sizeof file, "%s.cl", spec->source);
    const struct lk_embedded *source = lk_embedded_find(lk_kernel_files, file);
    if (!source)
        return lk_fail(LK_E_BUILD, "no kernel source named '%s'", file);
    struct lk_program *made = calloc(1, sizeof *made);
    char *options = format_options(device, spec);
    if (!made || !options) {
        free(made);
        free(options);
        return lk_fail_memory("a program", sizeof *made);
    }
    *made = (struct lk_program){.source = source, .options = options};
    pthread_mutex_lock(&device->mutex);
    struct lk_program *known = device->programs;
    while (known &&
           (known->source != made->source || strcmp(known->options, made->options) != 0))
        known = known->next;
    if (!known) {
        made->next = device->programs;
        device->programs = made;
    }
    pthread_mutex_unlock(&device->mutex);
    if (known)
        lk_program_destroy(made);
    *program = known ? known : made;
    return LK_OK;
}

void lk_program_destroy(struct lk_program *program)
{
    if (program->program)
        clReleaseProgram(program->program);
    free(program->options);
    free(program);
}

static char *build_log(const struct lk_device *device, cl_program program)
{
    size_t bytes = 0;
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *log = calloc(1, bytes + 1);
    if (log && bytes)
        clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    return log;
}

/* The log's first line with "error" in it, else its first line. */
static void first_error(const char *log, char *line, size_t bytes)
{
    const char *at = strstr(log, "error");
    while (at && at > log && at[-1] != '\n')
        at--;
    if (!at)
        at = log;
    snprintf(line, bytes, "%.*s", (int)strcspn(at, "\n"), at);
}

/* Writes options and log to a file that users can send; `path` is its name, "" on failure. */
static void keep_log(const struct lk_device *device, const struct lk_program *program,
                     const char *log, char *path, size_t bytes)
{
    char folder[512], name[64];
    if (device->log_folder[0])
        snprintf(folder, sizeof folder, "%s", device->log_folder);
    else if (!lk_cache_folder("logs", folder, sizeof folder) || !lk_folder_create(folder))
        folder[0] = '\0';
    snprintf(name, sizeof name, "%.*s", (int)strcspn(program->source->name, "."),
             program->source->name);
    for (char *slash = name; (slash = strchr(slash, '/')) != NULL;)
        *slash = '-';
    snprintf(path, bytes, "%s/build-%s.log", folder, name);
    FILE *file = folder[0] ? fopen(path, "w") : NULL;
    if (!file) {
        path[0] = '\0';
        return;
    }
    fprintf(file, "device: %s, %s, driver %s\nsource: cl/%s\noptions: %s\n\n%s\n",
            device->info.name, device->info.platform, device->info.driver,
            program->source->name, program->options, log);
    if (fclose(file) != 0)
        path[0] = '\0';
}

static enum lk_status fail_build(const struct lk_device *device,
                                 const struct lk_program *program, cl_program built,
                                 cl_int error)
{
    char line[512], path[640];
    char *log = build_log(device, built);
    first_error(log ? log : "", line, sizeof line);
    keep_log(device, program, log ? log : "", path, sizeof path);
    free(log);
    return lk_fail(LK_E_BUILD, "cl/%s does not build on %s: %s%s%s%s%s%s",
                   program->source->name, device->info.name, lk_opencl_name(error),
                   line[0] ? ": " : "", line, path[0] ? " (log: " : "", path,
                   path[0] ? ")" : "");
}

/* The options for a second attempt: only the -D definitions, without the flags in front of them
 * that make code faster or rounding stricter, which a compiler may not know. */
static const char *plain_options(const char *options)
{
    const char *definitions = strstr(options, "-DREAL=");
    return definitions ? definitions : options;
}

enum lk_status lk_program_build(struct lk_device *device, struct lk_program *program)
{
    cl_program built = lk_cache_load(device, program);
    if (built) {
        program->program = built;
        return LK_OK;
    }
    cl_int error;
    const char *text = program->source->text;
    built = clCreateProgramWithSource(device->context, 1, &text, NULL, &error);
    if (error != CL_SUCCESS)
        return lk_device_fail(device, error, "clCreateProgramWithSource");
    error = clBuildProgram(built, 1, &device->id, program->options, NULL, NULL);
    if (error != CL_SUCCESS) {
        const enum lk_status status = fail_build(device, program, built, error);
        error =
            clBuildProgram(built, 1, &device->id, plain_options(program->options), NULL, NULL);
        if (error != CL_SUCCESS) {
            clReleaseProgram(built);
            return status;
        }
        lk_log(LK_LOG_WARNING, "%s; built with plain options instead", lk_error_text());
        lk_error_clear();
    }
    program->program = built;
    lk_cache_save(device, program);
    return LK_OK;
}
