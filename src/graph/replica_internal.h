/* The inside of a replica, for the files that make it up. Floor 5. */
#ifndef LK_GRAPH_REPLICA_INTERNAL_H
#define LK_GRAPH_REPLICA_INTERNAL_H

#include "graph/crossing.h"
#include "graph/memory/plan.h"
#include "graph/nodes/schedule.h"
#include "graph/recompute.h"
#include "graph/replica.h"

/* Parameters start at multiples of this many elements. 512 bytes of floats is the coarsest
 * alignment of sub-buffers among known devices, so the layout is the same on all. */
enum { LK_PARAM_ALIGN = 128 };

/* An operation of the schedule on this device. Numbers of live ranges; -1: none. */
struct lk_prepared {
    struct lk_op_setup setup;
    int param[LK_MOST_PARAMS]; /* indices of parameters */
    int saved, forward_workspace, backward_workspace, past, packed;
    int64_t packed_at[2]; /* with config.packs_once: the version of the weights that was packed,
                           * for forward and for backward */
    int saved_again, again_workspace; /* where backward runs it forward again */
    int extra_dx[LK_MOST_INPUTS];     /* where dx goes if another reader of the value has
                                       * written its gradient before; the two are then
                                       * added */
    int returns;  /* its dw go to another place by this crossing, counted from 1; 0: not */
    int extra_dw; /* where dw go if another use has written its own before, or crosses */
    struct lk_extra_dw *extra; /* views of it; NULL: not built */
};

/* Of parameters that several operations share, the gradients of one that is not the first to
 * write: an array [shards][stride] in which they lie as in the replica's gradients, to which
 * they are then added. Of one at another place, also where it is the first. */
struct lk_extra_dw {
    int64_t stride;
    bool is_last_use; /* at another place: the first to write, so they are copied */
    struct lk_buffer *dw[LK_MOST_PARAMS];
    struct lk_buffer **from, **to; /* of each shard: what is added, and to which gradients */
};

struct lk_replica_input {
    const struct lk_node *node;
    struct lk_input about; /* the node's, or of a feature */
    int value;
    size_t records, bytes; /* of a batch in host memory: those of the transform
                            * parameters of its samples, which come first, and all */
    struct lk_transfer_buffer *slots[LK_REPLICA_SLOTS];
    void *memory[LK_REPLICA_SLOTS]; /* the host's, of each slot */
};

struct lk_replica {
    struct lk_replica_config config;
    struct lk_transform transform;
    struct lk_arena arena;
    struct lk_schedule schedule;
    bool forgets_nothing; /* of config.one_step: every operation does */
    struct lk_tiling tiling;
    struct lk_tiling planes;      /* in training: of what is said to be in plane tiles */
    struct lk_prepared *prepared; /* of each operation of the schedule */
    struct lk_loader *loader;
    struct lk_chain *chain; /* the launches of load and forward, if short; else NULL */
    struct lk_kernel *accumulate, *accumulate_dw; /* NULL: not needed */

    struct lk_param *params;
    int param_count;
    int64_t weight_count, listed_count, trainable_count, gradient_count;
    struct lk_buffer *weights, *gradients;
    bool weights_are_new;                              /* nothing was packed of them yet */
    int64_t weights_version;                           /* with config.packs_once */
    struct lk_buffer **weight_views, **gradient_views; /* of each parameter */

    struct lk_live_range *live_ranges;
    int live_range_count;
    int *activation, *gradient; /* live range of each value */
    int *again;                 /* of one that was dropped and is made again; else -1 */
    struct lk_recompute recompute;
    struct lk_memory_plan plan;
    bool is_planned;
    struct lk_buffer *slabs[LK_MOST_SLABS], **live_range_views;

    struct lk_replica_input inputs[LK_MOST_INPUTS];
    int input_count;
    const struct lk_buffer *loss_scale;
    bool is_uploaded[LK_REPLICA_SLOTS]; /* and not loaded yet */
    int loaded;                         /* the slot that was loaded last */
    struct lk_micro_batch micro_batch;  /* as loaded */
    int64_t step;                       /* of the last forward */
    struct lk_watch *watch;             /* NULL: nobody wants to see single operations */
    struct bucket_end {
        struct lk_bucket elements;
        int op;    /* the scheduled operation at which backward has finished the bucket */
        int param; /* the table, of a bucket with a list */
    } buckets[LK_MOST_BUCKETS];
    int bucket_count, next_forward, next_backward; /* scheduled operations that run next */

    struct lk_crossing *crossings;   /* of the whole schedule, where it is divided */
    struct lk_crossing_end *ends;    /* of each, those of this replica */
    struct lk_checked_copy *checked; /* of all replicas of its place */
    int crossing_count;
    int first_crossed;               /* the value that stands for crossing 0 */
    struct lk_replica *const *group; /* of each place; without a group `self` alone */
    struct lk_replica *self;
};

/* Operations that stand for the two ends of a crossing. */
enum { LK_MOST_CROSSINGS = 64 };
extern const struct lk_op lk_op_depart, lk_op_arrive;

/* The types in memory of activations and their gradients, and of a value. */
enum lk_dtype lk_replica_stored(const struct lk_replica *replica);
enum lk_dtype lk_replica_value_stored(const struct lk_replica *replica, int value);

/* Leaves the operations of config.part in the schedule, once parameters are listed.
 * fails: LK_E_ARGUMENT nothing is frozen, too many values between the parts */
LK_MUST_CHECK enum lk_status lk_replica_cut(struct lk_replica *replica);

/* Whether the replica's schedule, as it was made, can run in plane tiles and should; then
 * spread, before its parameters are listed, and map behind all else, make it so. */
bool lk_replica_takes_planes(const struct lk_replica *replica);
void lk_replica_spread_planes(struct lk_replica *replica);
LK_MUST_CHECK enum lk_status lk_replica_map_planes(struct lk_replica *replica);

/* The tiling of an operation or a value that is in plane tiles or not. */
static inline const struct lk_tiling *lk_replica_tiling_of(const struct lk_replica *replica,
                                                           bool in_planes)
{
    return in_planes ? &replica->planes : &replica->tiling;
}

/* Once parameters are listed: what forward alone can have fused. */
bool lk_replica_fuses(const struct lk_replica *replica);
LK_MUST_CHECK enum lk_status lk_replica_fuse(struct lk_replica *replica);

/* Leaves one time step of every sequence in the schedule. fails: LK_E_UNSUPPORTED */
LK_MUST_CHECK enum lk_status lk_replica_narrow(struct lk_replica *replica);

/* Of a divided schedule, before it is divided: the operation of the replica's place that uses
 * the parameters of operation i, whose place is another one; -1: there is none. */
int lk_replica_lends(const struct lk_replica *replica, int i);

/* Whether a value exists in the schedule: some operation makes it, or reads it as an input. */
bool lk_replica_is_live(const struct lk_replica *replica, int value);

/* Cuts the parameters with gradients into buckets. */
void lk_replica_cut_buckets(struct lk_replica *replica);

/* --- tables with row lists -------------------------------------------------------------- */

/* Finds them among the placed parameters, which stay where they are, so that whatever has no
 * lists places every parameter where this replica does; and says where gradients begin. */
void lk_replica_find_lists(struct lk_replica *replica);

/* Reals of a shard's list of a parameter that has one, and of all of its lists. */
int64_t lk_param_list_stride(const struct lk_param *param);
int64_t lk_replica_list_reals(const struct lk_replica *replica);

/* The operation whose parameter it is; -1: it is in the part that is not run. */
int lk_replica_param_owner(const struct lk_replica *replica, int param);

/* --- parameters that several operations use -------------------------------------------------
 */

/* Bytes that operation i needs for gradients of its own, since a later one with the same
 * parameters writes the replica's; 0: none does. */
size_t lk_replica_extra_dw_bytes(const struct lk_replica *replica, int i);

/* Reals of operation i's parameters, with the padding between and behind them. */
int64_t lk_replica_params_span(const struct lk_replica *replica, int i);

/* Announce the kernel that adds such gradients, if there are any; make the views of them. */
LK_MUST_CHECK enum lk_status lk_replica_prepare_shared(struct lk_replica *replica);
LK_MUST_CHECK enum lk_status lk_replica_build_shared(struct lk_replica *replica);
void lk_replica_clear_shared(struct lk_replica *replica);

/* For an operation that has such gradients: lets it write its dw to them; adds them to the
 * replica's. Both enqueue. */
LK_MUST_CHECK enum lk_status lk_replica_begin_extra_dw(const struct lk_replica *replica, int i,
                                                       struct lk_op_run *run);
LK_MUST_CHECK enum lk_status lk_replica_add_extra_dw(const struct lk_replica *replica, int i);

/* Makes room for a list of all memory that the schedule needs. */
LK_MUST_CHECK enum lk_status lk_replica_begin_plan(struct lk_replica *replica);

/* Lists that memory, with what `recompute` says, and places it where that is possible. Again
 * and again, as often as one likes. */
LK_MUST_CHECK enum lk_status lk_replica_plan_memory(struct lk_replica *replica);

/* Bytes of a device's memory that replicas may still take. */
double lk_replica_bytes_there(const struct lk_device *device);

/* Whether what was planned fits into the device's memory. */
bool lk_replica_fits(const struct lk_replica *replica);

/* As lk_replica_create(), without checking that it fits into the device's memory. */
LK_MUST_CHECK enum lk_status lk_replica_make(const struct lk_replica_config *config,
                                             struct lk_replica **replica);

#endif
