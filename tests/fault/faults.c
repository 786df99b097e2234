/* Reads LOCKSTEP_FAULT and decides which calls of OpenCL go wrong. */
#include "fault/faults.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FAULTS = 32, MISUSED = 99 };

static const char *const call_names[] = {
#define CALL(name) #name,
    CALLS(CALL)
#undef CALL
};

static const char *const kind_names[] = {"error",   "hang", "hang_event", "event_error",
                                         "corrupt", "nan",  "delay"};

static struct fault faults[MOST_FAULTS];
static int fault_count;
static long counts[MOST_DEVICES][CALL_COUNT];
static int lost[MOST_DEVICES];
static const char *count_file;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void misused(const char *what, const char *found)
{
    fprintf(stderr, "fault: %s: '%s'\n", what, found);
    _exit(MISUSED);
}

static int place_of(const char *word, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    misused("LOCKSTEP_FAULT: unknown kind", word);
    return 0;
}

static void read_entry(struct fault *fault, const char *key, const char *value)
{
    char *end;
    const long number = strtol(value, &end, 10);
    const bool is_number = *value && !*end;
    if (strcmp(key, "call") == 0)
        snprintf(fault->call, sizeof fault->call, "%s", value);
    else if (strcmp(key, "kernel") == 0)
        snprintf(fault->kernel, sizeof fault->kernel, "%s", value);
    else if (strcmp(key, "kind") == 0)
        fault->kind = (enum fault_kind)place_of(value, kind_names,
                                                sizeof kind_names / sizeof *kind_names);
    else if (!is_number)
        misused("LOCKSTEP_FAULT: a number is expected", value);
    else if (strcmp(key, "device") == 0)
        fault->device = (int)number;
    else if (strcmp(key, "arg") == 0)
        fault->arg = (int)number;
    else if (strcmp(key, "nth") == 0)
        fault->nth = number;
    else if (strcmp(key, "times") == 0)
        fault->times = number;
    else if (strcmp(key, "code") == 0)
        fault->code = (int)number;
    else if (strcmp(key, "sticky") == 0)
        fault->is_sticky = number != 0;
    else if (strcmp(key, "ms") == 0)
        fault->ms = number;
    else if (strcmp(key, "bit") == 0)
        fault->bit = number & 31;
    else if (strcmp(key, "bytes") == 0)
        fault->bytes = number;
    else
        misused("LOCKSTEP_FAULT: unknown key", key);
}

static bool changes_data(const struct fault *fault)
{
    return fault->kind == FAULT_CORRUPT || fault->kind == FAULT_NAN;
}

/* The functions a fault means must be known ones, and such as its kind can strike. */
static void check_call(const struct fault *fault)
{
    static const char *const transfers[] = {"clEnqueueReadBuffer", "clEnqueueWriteBuffer",
                                            "clEnqueueMapBuffer", "clEnqueueUnmapMemObject"};
    const bool is_event = fault->kind == FAULT_HANG_EVENT || fault->kind == FAULT_EVENT_ERROR;
    bool is_known = false, is_transfer = false;
    for (int i = 0; i < CALL_COUNT; i++)
        is_known |= fnmatch(fault->call, call_names[i], 0) == 0;
    for (size_t i = 0; i < sizeof transfers / sizeof *transfers; i++)
        is_transfer |= strcmp(fault->call, transfers[i]) == 0;
    if (!is_known)
        misused("LOCKSTEP_FAULT: no such call", fault->call);
    if (changes_data(fault) && strcmp(fault->call, "clEnqueueNDRangeKernel") == 0)
        return;
    if (changes_data(fault) && !is_transfer)
        misused("LOCKSTEP_FAULT: carries no data", fault->call);
    if (is_event && strncmp(fault->call, "clEnqueue", 9) != 0)
        misused("LOCKSTEP_FAULT: is no command", fault->call);
}

static void read_fault(char *text)
{
    char *rest;
    if (fault_count == MOST_FAULTS)
        misused("LOCKSTEP_FAULT: too many faults, this is one too many", text);
    struct fault *fault = &faults[fault_count++];
    *fault = (struct fault){
        .device = ANY_DEVICE, .nth = 1, .times = 1, .code = -5, .ms = 100, .bit = 30};
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(word, '=');
        if (!value)
            misused("LOCKSTEP_FAULT: key=value is expected", word);
        *value++ = '\0';
        read_entry(fault, word, value);
    }
    check_call(fault);
    if (changes_data(fault) && fault->bytes < 1 &&
        strcmp(fault->call, "clEnqueueNDRangeKernel") != 0)
        fault->bytes = 1;
}

static void write_counts(void)
{
    FILE *file = fopen(count_file, "w");
    if (!file)
        return;
    for (int device = 0; device < MOST_DEVICES; device++)
        for (int i = 0; i < CALL_COUNT; i++)
            if (counts[device][i])
                fprintf(file, "%d %s %ld\n", device, call_names[i], counts[device][i]);
    fclose(file);
}

void faults_read(void)
{
    const char *wanted = getenv("LOCKSTEP_FAULT");
    char *text = strdup(wanted ? wanted : ""), *rest;
    for (char *word = text ? strtok_r(text, ";", &rest) : NULL; word;
         word = strtok_r(NULL, ";", &rest))
        read_fault(word);
    free(text);
    count_file = getenv("LOCKSTEP_FAULT_COUNT");
    if (count_file && atexit(write_counts) != 0)
        misused("LOCKSTEP_FAULT_COUNT: nothing can be done at exit", count_file);
}

static bool strikes(struct fault *fault, const char *name, int device, size_t bytes,
                    const char *kernel)
{
    if ((fault->device != ANY_DEVICE && fault->device != device) ||
        fnmatch(fault->call, name, 0) != 0 ||
        (fault->kernel[0] && (!kernel || fnmatch(fault->kernel, kernel, 0) != 0)) ||
        ++fault->seen < fault->nth || bytes < (size_t)fault->bytes ||
        (fault->times && fault->struck == fault->times))
        return false;
    fault->struck++;
    return true;
}

const struct fault *fault_find(enum call call, int device, size_t bytes, const char *kernel)
{
    const char *name = call_names[call];
    const struct fault *found = NULL;
    long seen = 0;
    bool is_first = false;
    if (device < 0 || device >= MOST_DEVICES)
        return NULL;
    pthread_mutex_lock(&mutex);
    counts[device][call]++;
    for (int i = 0; i < fault_count && !lost[device]; i++)
        if (strikes(&faults[i], name, device, bytes, kernel) && !found) {
            found = &faults[i];
            seen = found->seen;
            is_first = found->struck == 1;
        }
    if (found && found->is_sticky)
        lost[device] = found->code;
    pthread_mutex_unlock(&mutex);
    if (is_first)
        fprintf(stderr, "fault: call %ld of %s on device %d: %s\n", seen, name, device,
                kind_names[found->kind]);
    return found;
}

int fault_lost(int device)
{
    if (device < 0 || device >= MOST_DEVICES)
        return 0;
    pthread_mutex_lock(&mutex);
    const int code = lost[device];
    pthread_mutex_unlock(&mutex);
    return code;
}
