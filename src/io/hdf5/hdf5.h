/* HDF5 files as Keras and h5py write them: groups, attributes, arrays. Floor 1. Knows no Keras.
 *
 * A reader of our own, because a file may come from anyone: libhdf5 follows whatever a file
 * says, and malformed ones make it crash, hang or allocate without bounds, load plugins and
 * open other files. This one reads the classic format (superblock 0, object headers 1, symbol
 * tables, contiguous and compact arrays); all else it names and does not read. No lock, no
 * global state. source: "HDF5 File Format Specification Version 3.0", The HDF Group */
#ifndef LK_IO_HDF5_HDF5_H
#define LK_IO_HDF5_HDF5_H

#include "io/bytes.h"
#include "io/safetensors.h"
#include <stdbool.h>

enum lk_hdf5_class { LK_HDF5_NUMBER, LK_HDF5_TEXT, LK_HDF5_LONG_TEXT, LK_HDF5_OPAQUE };

/* Of elements. LONG_TEXT: each is a reference to a text of any length. */
struct lk_hdf5_type {
    enum lk_hdf5_class class;
    uint32_t bytes;
    enum lk_safetensor_type number;
    bool big_endian;
};

struct lk_hdf5_attribute {
    const char *name;
    struct lk_hdf5_type type;
    int64_t count;
    const unsigned char *data;
};

/* A group (with `objects`, in the order of their names) or an array. problem: why it is not
 * read, "is compressed"; NULL: nothing is wrong. offset: of its elements in the file. */
struct lk_hdf5_object {
    const char *name; /* within its group */
    const char *problem;
    bool group;
    int count, attribute_count;
    struct lk_hdf5_object *objects;
    struct lk_hdf5_attribute *attributes;
    struct lk_hdf5_type type;
    int rank;
    int64_t shape[LK_SAFETENSOR_AXES];
    uint64_t offset, bytes;
};

struct lk_hdf5 {
    struct lk_hdf5_object root;
};

/* Reads all but the arrays' elements. `bytes` is copied and must stay open.
 * fails: LK_E_DATA malformed: what was expected, at which byte; LK_E_UNSUPPORTED a file of a
 * newer format, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_hdf5_open(const struct lk_bytes *bytes, struct lk_hdf5 **file);
void lk_hdf5_close(struct lk_hdf5 *file);

/* The object at "a/b/c" below a group; NULL: absent. */
const struct lk_hdf5_object *lk_hdf5_find(const struct lk_hdf5_object *group, const char *path);

/* The attribute of that name; NULL: absent. */
const struct lk_hdf5_attribute *lk_hdf5_attribute(const struct lk_hdf5_object *object,
                                                  const char *name);

/* The texts of an attribute, attribute->count of them; they live as long as the file does.
 * fails: LK_E_DATA malformed, or no texts; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_hdf5_texts(struct lk_hdf5 *file,
                                           const struct lk_hdf5_attribute *attribute,
                                           const char *const **texts);

/* Reads an array's elements into to[object->bytes], little-endian. Any thread. */
LK_MUST_CHECK enum lk_status lk_hdf5_read(const struct lk_hdf5 *file,
                                          const struct lk_hdf5_object *object, void *to);

#endif
