/* How a function fails: it records the reason as text and returns a status code. Floor 0. */
#ifndef LK_BASE_FAIL_H
#define LK_BASE_FAIL_H

#include <lockstep/status.h>

/* Returns `status`. Keeps the text if it is the thread's first failure since lk_error_clear().
 */
enum lk_status lk_fail(enum lk_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* As lk_fail(LK_E_MEMORY, ...) for an allocation of `bytes` for `what`. */
enum lk_status lk_fail_memory(const char *what, unsigned long long bytes);

/* Puts "prefix: " before the kept text, so that a caller can add where it happened. Returns
 * `status`. */
enum lk_status lk_fail_within(enum lk_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns from the calling function where `call` fails. */
#define LK_TRY(call)                                                                           \
    do {                                                                                       \
        const enum lk_status lk_try_status = (call);                                           \
        if (lk_try_status != LK_OK)                                                            \
            return lk_try_status;                                                              \
    } while (0)

/* Jumps to `out` where `call` fails; `status` is the calling function's variable. */
#define LK_TRY_OUT(call)                                                                       \
    do {                                                                                       \
        status = (call);                                                                       \
        if (status != LK_OK)                                                                   \
            goto out;                                                                          \
    } while (0)

/* The number of elements of an array (not of a pointer). */
#define LK_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

#endif
