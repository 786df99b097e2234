/* Which operations backward runs forward again, so that what they made need not be kept until
 * then. Floor 5. source: Chen et al. arXiv:1604.06174 */
#ifndef LK_GRAPH_RECOMPUTE_H
#define LK_GRAPH_RECOMPUTE_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>

struct lk_replica;

/* Writing a byte takes about as long as so many floating-point operations. */
enum { LK_FLOPS_PER_BYTE = 16 };

/* Operations lie in segments: neighbours. A value that only operations of its own segment read
 * is dropped: it is not kept from forward to backward. When backward comes to the last
 * operation of a segment, it first runs those again whose dropped values it will read. A
 * segment of one operation drops nothing. */
struct lk_recompute {
    int *segment;     /* of each operation: the first one of its segment */
    int *last_reader; /* of each operation: the last one that reads what it made; one past the
                       * last operation: it is an output */
    bool *is_dropped; /* of each value */
    bool *runs_again; /* of each operation */
    int *again_time, *backward_time; /* of each operation, in the memory plan; again_time is of
                                      * use where it runs again */
    int end;                         /* the time behind them all */
};

/* Makes room for the above: nothing is recomputed yet. */
LK_MUST_CHECK enum lk_status lk_recompute_init(struct lk_replica *replica);

/* Finds out what follows from the segments. */
void lk_recompute_mark(struct lk_replica *replica);

/* Whether backward of operation i reads the value that it made; its inputs. */
bool lk_recompute_reads_y(const struct lk_replica *replica, int i);
bool lk_recompute_reads_x(const struct lk_replica *replica, int i);

/* Bytes of a value in device memory; all bits set: too many to count. */
size_t lk_recompute_bytes(const struct lk_replica *replica, int value);

/* Cuts the schedule into about as many segments as each then has operations, where few bytes
 * cross the cut. The last one, which backward begins with, drops nothing. */
void lk_recompute_cut_evenly(struct lk_replica *replica);

/* The work of operation i forward, for a batch: as if it were floating-point operations. */
double lk_recompute_op_work(const struct lk_replica *replica, int i);

/* The work of operations that run again, in parts of that of forward. */
double lk_recompute_work(const struct lk_replica *replica);

/* Plans the replica's memory with the segments that cost the least work and fit the device;
 * where none does, with those that need the least memory. */
LK_MUST_CHECK enum lk_status lk_recompute_search(struct lk_replica *replica);

#endif
