/* A file of HDF5 while it is read, and pieces of it. Floor 1. Private to this room. */
#ifndef LK_IO_HDF5_SPAN_H
#define LK_IO_HDF5_SPAN_H

#include "base/arena.h"
#include "base/fail.h"
#include "io/hdf5/hdf5.h"

#define LK_HDF5_NOWHERE UINT64_MAX /* an address that is not set */

/* Some bytes that were read; place: where the first of them lies in the file. */
struct lk_hdf5_span {
    const unsigned char *at;
    size_t left;
    uint64_t place;
};

struct lk_hdf5_file {
    struct lk_hdf5 public; /* the first member */
    struct lk_bytes bytes;
    struct lk_arena arena;
    uint64_t used;           /* bytes of the file that were kept in memory, which are limited */
    int objects, attributes; /* met so far, limited as well */
    int64_t steps;           /* through collections of texts, too */
    struct lk_hdf5_span texts; /* the collection that was read last */
    int leaf_k, internal_k;    /* half the entries of a symbol node, of a B-tree's node */
};

/* Reads bytes of the file, which live as long as it is open. fails: LK_E_DATA they are beyond
 * its end: `what` was expected; all that was read is too much; LK_E_IO, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_hdf5_load(struct lk_hdf5_file *file, uint64_t place,
                                          uint64_t count, const char *what,
                                          struct lk_hdf5_span *span);

/* Counts memory as used. fails: LK_E_DATA it is more than is allowed */
LK_MUST_CHECK enum lk_status lk_hdf5_count(struct lk_hdf5_file *file, uint64_t place,
                                           uint64_t bytes, const char *what);

/* The first `count` bytes of a span, which goes on behind them.
 * fails: LK_E_DATA it ends before: `what` was expected */
LK_MUST_CHECK enum lk_status lk_hdf5_take(struct lk_hdf5_span *span, size_t count,
                                          const char *what, struct lk_hdf5_span *taken);

/* An unsigned number of so many bytes, which must be there. */
uint64_t lk_hdf5_number(const unsigned char *at, int bytes);

/* The parts of messages. problem is set where one is not read.
 * fails: LK_E_DATA malformed */
LK_MUST_CHECK enum lk_status lk_hdf5_get_type(struct lk_hdf5_span span,
                                              struct lk_hdf5_type *type, const char **problem);
LK_MUST_CHECK enum lk_status lk_hdf5_get_space(struct lk_hdf5_span span, int *rank,
                                               int64_t *shape, int64_t *count,
                                               const char **problem);

/* Reads the object at an address and, of a group, all below it. */
LK_MUST_CHECK enum lk_status lk_hdf5_read_object(struct lk_hdf5_file *file, uint64_t place,
                                                 int depth, struct lk_hdf5_object *object);

/* Reads the members of a group from its symbol table: a B-tree and a heap of names. */
LK_MUST_CHECK enum lk_status lk_hdf5_read_group(struct lk_hdf5_file *file, uint64_t tree,
                                                uint64_t heap, int depth,
                                                struct lk_hdf5_object *group);

#endif
