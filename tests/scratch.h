/* A folder of a test's own below /tmp, and its removal. Knows cmocka. */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char scratch[64];

/* Group setup: makes the folder `scratch`. */
static inline int scratch_make(void **state)
{
    (void)state;
    strcpy(scratch, "/tmp/lockstep-test-XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

/* `scratch`/name; valid until the fourth call after this one. */
static inline const char *scratch_path(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

static inline void scratch_delete(const char *path)
{
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        DIR *folder = opendir(path);
        for (struct dirent *entry; folder && (entry = readdir(folder));) {
            char inner[1024];
            const int used = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
            if (used < (int)sizeof inner && strcmp(entry->d_name, ".") != 0 &&
                strcmp(entry->d_name, "..") != 0)
                scratch_delete(inner);
        }
        if (folder)
            closedir(folder);
    }
    remove(path);
}

/* Group teardown: removes it with all it holds. */
static inline int scratch_remove(void **state)
{
    (void)state;
    scratch_delete(scratch);
    return 0;
}

/* How many entries the folder has. */
static inline int scratch_entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count - 2; /* . and .. */
}

/* Writes a file without the code under test. */
static inline void scratch_put(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* A call failed with `code` and its message contains `said`; forgets the message. */
static inline void assert_refused(int status, int code, const char *text, const char *said)
{
    if (status != code || !strstr(text, said))
        fail_msg("expected status %d and '%s'; got status %d and '%s'", code, said, status,
                 text);
}

#endif
