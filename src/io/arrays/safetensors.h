/* Safetensors files as files of named arrays. Floor 1. Private to this room. */
#ifndef LK_IO_ARRAYS_SAFETENSORS_H
#define LK_IO_ARRAYS_SAFETENSORS_H

#include "io/arrays/file.h"

/* fails: as lk_safetensors_open(), whose messages name the file */
LK_MUST_CHECK enum lk_status lk_arrays_open_safetensors(const char *path,
                                                        struct lk_arrays_file *file);

#endif
