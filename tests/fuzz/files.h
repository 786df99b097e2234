/* Files for parsers that read files: in a folder below $TMPDIR (/tmp) that goes when the
 * process ends. Where TMPDIR is in memory, as /dev/shm is, searching is many times as fast. */
#ifndef TESTS_FUZZ_FILES_H
#define TESTS_FUZZ_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char fuzz_folder[64];
static char fuzz_paths[8][128];
static int fuzz_files;

static inline void fuzz_remove(void)
{
    for (int i = 0; i < fuzz_files; i++)
        unlink(fuzz_paths[i]);
    rmdir(fuzz_folder);
}

/* The folder; makes it on first use. */
static inline const char *fuzz_open_folder(void)
{
    if (!fuzz_folder[0]) {
        const char *place = getenv("TMPDIR");
        const int used = snprintf(fuzz_folder, sizeof fuzz_folder, "%s/lockstep-fuzz-XXXXXX",
                                  place ? place : "/tmp");
        if (used >= (int)sizeof fuzz_folder || !mkdtemp(fuzz_folder))
            abort();
        atexit(fuzz_remove);
    }
    return fuzz_folder;
}

/* Replaces a file of the folder, at most 8 of them; its path. */
static inline const char *fuzz_put(const char *name, const uint8_t *data, size_t bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", fuzz_open_folder(), name);
    int at = 0;
    while (at < fuzz_files && strcmp(fuzz_paths[at], path) != 0)
        at++;
    if (at == fuzz_files)
        strcpy(fuzz_paths[fuzz_files++], path);
    unlink(path); /* file systems are slow to replace what is in a file */
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
        abort();
    return fuzz_paths[at];
}

#endif
