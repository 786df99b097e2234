/* How messages travel between the ranks of a job: calls that begin a transfer and one that
 * tells which have ended. Transfers are numbered by the caller; a number is free again once
 * poll has named it. Memory is the caller's and stays until then. One thread. Floor 4. Knows no
 * sums and no shards. */
#ifndef LK_MIRROR_WIRE_H
#define LK_MIRROR_WIRE_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>

struct lk_wire;

enum {
    LK_WIRE_ANY = -1,       /* a peer: whoever it is */
    LK_WIRE_TAGS = 32768,   /* what every MPI has */
    LK_WIRE_MOST = 1 << 26, /* bytes of a transfer */
};

/* All fail with LK_E_IO and the library's text. Sends from one rank under one tag arrive in
 * order; tags are 0 to LK_WIRE_TAGS - 1. `share` (from rank `root` to all) and `sum` (in place,
 * in no particular order, of reals of `real_bytes` 4 or 8) are begun by all ranks in one order.
 */
struct lk_wire_kind {
    enum lk_status (*open)(struct lk_wire **wire, int *rank, int *size);
    void (*close)(struct lk_wire *wire); /* ends all that is on its way */
    enum lk_status (*reserve)(struct lk_wire *wire, int transfers); /* never fewer */
    enum lk_status (*send)(struct lk_wire *wire, int transfer, int peer, int tag, size_t bytes,
                           const void *memory);
    enum lk_status (*receive)(struct lk_wire *wire, int transfer, int peer, int tag,
                              size_t bytes, void *memory);
    enum lk_status (*forget)(struct lk_wire *wire, int transfer); /* a receive */
    enum lk_status (*share)(struct lk_wire *wire, int transfer, int root, size_t bytes,
                            void *memory);
    enum lk_status (*sum)(struct lk_wire *wire, int transfer, int real_bytes, size_t count,
                          void *memory);
    /* ended: [count]; never waits. */
    enum lk_status (*poll)(struct lk_wire *wire, const int **ended, int *count);
};

extern const struct lk_wire_kind lk_wire_mpi; /* where built with -DLK_MPI */

#endif
