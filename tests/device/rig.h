/* What the tests of the device room share: an open device, a child process with another
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

static inline void assert_ok(enum lk_status status)
{
    if (status != LK_OK)
        fail_msg("%s", lk_error_text());
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
