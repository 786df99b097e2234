/* Measures the rounding errors of fast algorithms against sums in double. Floor 9. */
#ifndef LOCKSTEP_ACCURACY_H
#define LOCKSTEP_ACCURACY_H

#include <lockstep/device.h>
#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How far an algorithm's results are from sums in double: the root mean square of the error,
 * relative to that of the results; inputs are drawn evenly from -1 .. 1. */
struct lk_accuracy {
    const char *shape;            /* "conv2d [32, 14, 14] filters=32 kernel=3" */
    const char *algorithm, *pass; /* "winograd4", "forward" */
    double error, allowed;
};

/* Measures every algorithm of convolutions that the device can run, all passes, and calls the
 * handler for each; *failures: those above what is allowed. Waits; some algorithms take seconds
 * to build. fails: LK_E_BUILD, LK_E_DEVICE, LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status
lk_accuracy_measure(struct lk_device *device,
                    void (*handler)(void *context, const struct lk_accuracy *result),
                    void *context, int *failures);

#ifdef __cplusplus
}
#endif

#endif
