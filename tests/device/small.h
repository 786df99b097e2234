/* What the devices of small_layer.c have. */
#ifndef TESTS_DEVICE_SMALL_H
#define TESTS_DEVICE_SMALL_H

enum { LOCAL_BYTES = 16 << 10, GROUP_ITEMS = 64 }; /* of a group */

#endif
