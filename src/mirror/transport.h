/* The interface to a message-passing library (MPI): calls that begin a transfer, and poll(),
 * which tells the transfers that have ended. The caller numbers transfers; a number and the
 * memory of its transfer may be used again once poll() has returned the number. All calls on
 * one thread. Floor 4. Knows no sums and no shards. */
#ifndef LK_MIRROR_TRANSPORT_H
#define LK_MIRROR_TRANSPORT_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>

struct lk_transport;

enum {
    LK_TRANSPORT_ANY = -1,       /* as `peer` of a receive: any rank */
    LK_TRANSPORT_TAGS = 32768,   /* the number of tags that every MPI has at least */
    LK_TRANSPORT_MOST = 1 << 26, /* bytes of a transfer, at most */
};

/* The calls; all fail with LK_E_IO and the library's text. Sends from one rank with one tag, 0
 * to LK_TRANSPORT_TAGS - 1, arrive in order. `share` is a broadcast from rank `root` to all;
 * `sum` is an all-reduce in place, in no particular order, of reals of `real_bytes` 4 or 8: all
 * ranks must begin these two in the same order. */
struct lk_transport_kind {
    enum lk_status (*open)(struct lk_transport **wire, int *rank, int *size);
    void (*close)(struct lk_transport *wire); /* ends all transfers */
    enum lk_status (*reserve)(struct lk_transport *wire, int transfers); /* never fewer */
    enum lk_status (*send)(struct lk_transport *wire, int transfer, int peer, int tag,
                           size_t bytes, const void *memory);
    enum lk_status (*receive)(struct lk_transport *wire, int transfer, int peer, int tag,
                              size_t bytes, void *memory);
    enum lk_status (*forget)(struct lk_transport *wire, int transfer); /* cancels a receive */
    enum lk_status (*broadcast)(struct lk_transport *wire, int transfer, int root, size_t bytes,
                                void *memory);
    enum lk_status (*sum)(struct lk_transport *wire, int transfer, int real_bytes, size_t count,
                          void *memory);
    /* *ended: [*count] numbers of transfers that have ended; never waits. */
    enum lk_status (*poll)(struct lk_transport *wire, const int **ended, int *count);
};

extern const struct lk_transport_kind lk_transport_mpi; /* where built with -DLK_MPI */

#endif
