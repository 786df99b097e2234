/* What a device is told of work that is to come. Floor 1. Knows no tensor and no graph. */
#ifndef LK_DEVICE_EXPECT_H
#define LK_DEVICE_EXPECT_H

#include <lockstep/device.h>

/* Buffers of so many bytes in all will be created. Where they will lie in the host's memory a
 * thread brings it in, which takes a second for each GB or two. The first call counts; does not
 * wait. */
void lk_device_expect(struct lk_device *device, size_t bytes);

#endif
