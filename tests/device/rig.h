/* What tests that work on a device share: an open device, a child process with another
 * environment, messages. Knows cmocka. */
#ifndef TESTS_DEVICE_RIG_H
#define TESTS_DEVICE_RIG_H

#include "base/fail.h"
#include "device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const classes[] = {"cpu", "gpu"};

/* The default device, open between the two functions: group setup and teardown. */
static struct lk_device *device;

static inline int open_device(void **state)
{
    (void)state;
    return lk_device_open(NULL, 0, &device) == LK_OK ? 0 : -1;
}

static inline int close_device(void **state)
{
    (void)state;
    lk_device_close(device);
    return 0;
}

static inline void assert_ok(enum lk_status status)
{
    if (status != LK_OK)
        fail_msg("%s", lk_error_text());
}

/* The default device with the kernels of a class; the caller closes it. */
static inline struct lk_device *open_class(const char *class)
{
    struct lk_device *opened = NULL;
    setenv("LOCKSTEP_CLASS", class, 1);
    assert_ok(lk_device_open(NULL, 0, &opened));
    return opened;
}

/* The call failed with `code` and said `said`; forgets the message. */
static inline void assert_fails(enum lk_status status, enum lk_status code, const char *said)
{
    if (status != code || !strstr(lk_error_text(), said))
        fail_msg("expected %d and '%s'; got %d and '%s'", code, said, status, lk_error_text());
    lk_error_clear();
}

/* Starts this program again with one more variable, which OpenCL reads when it loads; `name` is
 * the argument main() gets. Its exit status. */
static inline int run_child(const char *name, const char *variable, const char *value)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setenv(variable, value, 1);
        execl("/proc/self/exe", "child", name, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In a child: the call failed with `code` and said `said`; else tells what it did. */
static inline int judge(enum lk_status status, enum lk_status code, const char *said)
{
    if (status == code && strstr(lk_error_text(), said))
        return 0;
    fprintf(stderr, "expected %d and '%s'; got %d and '%s'\n", code, said, status,
            lk_error_text());
    return 1;
}

#endif
