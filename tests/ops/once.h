/* How much of an operation's test is run, since compilers take an hour for some as a whole:
 * with $LOCKSTEP_TEST_ONCE=1 a case runs where it brings a kernel that was not tested yet, with
 * $LOCKSTEP_TEST_ALL=1 thorough cases run in all configurations. */
#ifndef TESTS_OPS_ONCE_H
#define TESTS_OPS_ONCE_H

#include "device/device.h"

/* Whether $LOCKSTEP_TEST_ONCE asks for it. */
bool once_is_asked(void);

/* Whether $LOCKSTEP_TEST_ALL asks for all, and once_is_asked() does not. */
bool once_all_are_asked(void);

/* Whether the device is about to build a kernel, by source and name, that it was not before for
 * the algorithm (or NULL) in the configuration; remembers them. */
bool once_finds_new(struct lk_device *device, const char *algorithm, int configuration);

#endif
