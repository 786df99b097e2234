/* Runs a fuzz target on every file of a folder, whole, cut short, and with bytes changed: what
 * the normal suite does of fuzzing. Speaks TAP. */
#include "fuzz.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES = 200, CUTS = 50, MOST_BYTES = 1 << 20 };

static uint32_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)state * below >> 32);
}

/* The input ends where its allocation does, so that tools see a read past it. */
static void run(const uint8_t *data, size_t bytes)
{
    uint8_t *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        abort();
    memcpy(copy, data, bytes);
    LLVMFuzzerTestOneInput(copy, bytes);
    free(copy);
}

static void run_file(const uint8_t *data, size_t bytes)
{
    static uint8_t changed[MOST_BYTES];
    run(data, bytes);
    for (int i = 0; i < CUTS && bytes > 0; i++)
        run(data, draw((uint32_t)bytes));
    for (int i = 0; i < CHANGES && bytes > 0; i++) {
        memcpy(changed, data, bytes);
        for (uint32_t k = 0; k <= draw(4); k++)
            changed[draw((uint32_t)bytes)] = (uint8_t)draw(256);
        run(changed, bytes);
    }
}

int main(int argc, char **argv)
{
    static uint8_t data[MOST_BYTES];
    DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;
    int files = 0;
    if (!folder)
        return 1;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        FILE *file = entry->d_name[0] != '.' ? fopen(path, "rb") : NULL;
        if (!file)
            continue;
        run_file(data, fread(data, 1, sizeof data, file));
        fclose(file);
        printf("ok %d - %s\n", ++files, entry->d_name);
        fflush(stdout);
    }
    closedir(folder);
    printf("1..%d\n", files);
    return files > 0 ? 0 : 1;
}
