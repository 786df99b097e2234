/* Writes HDF5 files of named arrays, by libhdf5. Floor 1. Knows no Keras. */
#ifndef LK_IO_ARRAYS_HDF5_WRITE_H
#define LK_IO_ARRAYS_HDF5_WRITE_H

#include "io/safetensors.h"

/* Texts at a group, "" being the whole file; count -1: one text, no list. */
struct lk_hdf5_texts {
    const char *group, *name;
    int count;
    const char *const *texts;
};

/* Replaces the file as lk_file_write() does. An array's name is its place,
 * "layers/dense/vars/0"; groups are made as needed, and `groups` (ends with NULL) even if they
 * are empty. The bytes follow from what is written alone. fails: LK_E_IO; LK_E_UNSUPPORTED in a
 * build without libhdf5, and where libhdf5 refuses */
LK_MUST_CHECK enum lk_status lk_hdf5_write(const char *path, const struct lk_safetensor *arrays,
                                           int count, const char *const *groups,
                                           const struct lk_hdf5_texts *texts, int lists);

#endif
