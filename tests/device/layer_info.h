/* What an OpenCL layer says of itself: layer_info.c, a source of each of our layers. */
#ifndef TESTS_DEVICE_LAYER_INFO_H
#define TESTS_DEVICE_LAYER_INFO_H

extern const char layer_name[]; /* the layer's own */

#endif
