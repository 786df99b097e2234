/* Numbers of any type of a file as float or double. Floor 1. Knows no file. */
#ifndef LK_IO_ARRAYS_CONVERT_H
#define LK_IO_ARRAYS_CONVERT_H

#include "io/safetensors.h"

/* Converts `count` numbers of type `from`, little-endian, of any alignment: to the nearest
 * float (as: F32) or double (F64). */
void lk_arrays_convert(enum lk_safetensor_type from, const void *data, int64_t count,
                       enum lk_safetensor_type as, void *to);

#endif
