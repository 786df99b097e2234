/* Unity builds: several sources, the units, compiled as one program. PoCL compiles one program
 * at a time and spends 0.1 s of each on OpenCL's own header: as one program, those of a model
 * build in a fraction of the time. */
#include "base/fail.h"
#include "base/text.h"
#include "device/pocl.h"
#include "device/program/ahead.h"
#include "device/program/cache.h"
#include "device/program/kernel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* PoCL takes a program from its cache in less than that, and compiles one in more. */
static const double CACHED_SECONDS = 0.15;

enum { MOST_OPTIONS = sizeof((struct lk_device *)0)->options + 64 };

/* Calls print(text, name, length, unit) for each name of a list separated by blanks. */
static void for_names(struct lk_text *text, const char *names, int unit,
                      void (*print)(struct lk_text *, const char *, int, int))
{
    while (*names) {
        const int length = (int)strcspn(names, " ");
        print(text, names, length, unit);
        names += length;
        names += strspn(names, " ");
    }
}

static void print_rename(struct lk_text *text, const char *name, int length, int unit)
{
    lk_text_append(text, "#define %.*s %.*s_%d\n", length, name, length, name, unit);
}

static void print_forget(struct lk_text *text, const char *name, int length, int unit)
{
    (void)unit;
    lk_text_append(text, "#undef %.*s\n", length, name);
}

/* "-DNAME=VALUE" or "-DNAME"; other options are the same for all programs of a device. */
static void print_define(struct lk_text *text, const char *option, int length, int unit)
{
    (void)unit;
    if (length < 3 || strncmp(option, "-D", 2) != 0)
        return;
    const char *equals = memchr(option, '=', (size_t)length);
    const int name = equals ? (int)(equals - option) - 2 : length - 2;
    lk_text_append(text, "#define %.*s %.*s\n", name, option + 2,
                   equals ? length - name - 3 : 1, equals ? equals + 1 : "1");
}

static void print_undefine(struct lk_text *text, const char *option, int length, int unit)
{
    if (length > 2 && strncmp(option, "-D", 2) == 0)
        print_forget(text, option + 2, (int)strcspn(option + 2, "= "), unit);
}

/* Its options become macros, its names get the unit's number, and at the end all its macros are
 * undefined again. */
void lk_unity_print(struct lk_text *text, const struct lk_program *program, int unit,
                    const char *behind)
{
    const struct lk_embedded *source = program->source;
    for_names(text, program->options, unit, print_define);
    for_names(text, source->declared, unit, print_rename);
    lk_text_append(text, "%s\n%s", source->text, behind);
    for_names(text, source->declared, unit, print_forget);
    for_names(text, source->macros, unit, print_forget);
    for_names(text, program->options, unit, print_undefine);
}

/* Processor time of this thread, on which PoCL builds. */
static double cpu_seconds(void)
{
    struct timespec time = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void print_options(const struct lk_device *device, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s%s", device->options, lk_pocl_unity_options(&device->info));
}

cl_program lk_unity_build(const struct lk_device *device, const char *text)
{
    char options[MOST_OPTIONS];
    cl_int error;
    print_options(device, options, sizeof options);
    cl_program program = clCreateProgramWithSource(device->context, 1, &text, NULL, &error);
    if (error != CL_SUCCESS)
        return NULL;
    if (clBuildProgram(program, 1, &device->id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    clReleaseProgram(program);
    return NULL;
}

/* Each wanted program holds the one of them all. */
static void share(struct lk_device *device, cl_program program)
{
    int units = 0;
    for (struct lk_program *p = device->programs; p; p = p->next)
        if (p->is_wanted) {
            clRetainProgram(program);
            p->program = program;
            p->unit = ++units;
        }
    clReleaseProgram(program);
}

void lk_programs_build_together(struct lk_device *device)
{
    struct lk_text text = {0};
    int units = 0;
    if (lk_cache_is_wanted(device)) /* the cache on disk has a file for each program alone */
        return;
    for (struct lk_program *p = device->programs; p; p = p->next)
        if (p->is_wanted)
            lk_unity_print(&text, p, ++units, "");
    const double begin = cpu_seconds();
    cl_program program = units && !text.failed ? lk_unity_build(device, text.bytes) : NULL;
    const bool was_cached = cpu_seconds() - begin < CACHED_SECONDS;
    if (program) {
        share(device, program);
        if (!was_cached) {
            char options[MOST_OPTIONS];
            print_options(device, options, sizeof options);
            lk_ahead_start(device, options, text.bytes);
        }
    }
    free(text.bytes);
}
