/* Which kernels have been tested, for platforms whose compilers take an hour for an operation's
 * whole test: with $LOCKSTEP_TEST_ONCE=1 a case runs where it brings a new one. */
#ifndef TESTS_OPS_ONCE_H
#define TESTS_OPS_ONCE_H

#include "device/device.h"

/* Whether $LOCKSTEP_TEST_ONCE asks for it. */
bool once_is_asked(void);

/* Whether the device is about to build a kernel, by source and name, that it was not before for
 * the algorithm (or NULL) in the configuration; remembers them. */
bool once_finds_new(struct lk_device *device, const char *algorithm, int configuration);

#endif
