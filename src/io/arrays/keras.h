/* Files of weights of Keras: HDF5, alone or in an archive. Floor 1. Private to this room. */
#ifndef LK_IO_ARRAYS_KERAS_H
#define LK_IO_ARRAYS_KERAS_H

#include "io/arrays/file.h"
#include "io/arrays/zip.h"

/* Opens an HDF5 file: weights or a whole model of Keras 2, weights of Keras 3. */
LK_MUST_CHECK enum lk_status lk_keras_open(struct lk_arrays_file *file);

/* Opens a .keras archive, which the file takes over, also on failure. Whether an archive is
 * one. */
LK_MUST_CHECK enum lk_status lk_keras_open_archive(struct lk_arrays_file *file,
                                                   struct lk_zip *zip);
bool lk_keras_is_archive(const struct lk_zip *zip);

#endif
