/* A graph on one device: parameters, gradients, activations, kernels, and running it. Floor 5.
 * Knows no file, no optimizer and no particular operation. */
#ifndef LK_GRAPH_REPLICA_H
#define LK_GRAPH_REPLICA_H

#include "graph/bucket.h"
#include "graph/nodes/node.h"

struct lk_replica;

/* What a replica runs. FROZEN: all that gives the same for a sample each time, as
 * it has no trained parameters before or in it, and nothing by chance; HEAD: the rest, for
 * which values of the frozen part (features) come as inputs, with the bits of LK_PART_ALL. Each
 * has all parameters, in one order. */
enum lk_replica_part { LK_PART_ALL, LK_PART_FROZEN, LK_PART_HEAD };

struct lk_replica_config {
    struct lk_device *device;
    const struct lk_node *outputs[LK_MOST_VALUES + 1]; /* NULL behind the last; in training
                                                        * the loss alone */
    int64_t batch;                                     /* most samples at a time */
    int shards;
    int micro_batches;  /* a larger batch is computed in so many of `batch` samples, which
                         * messages mention; 0: `batch` is the whole batch */
    enum lk_dtype real; /* LK_F32 or LK_F64 */
    bool stores_half;   /* as lk_op_setup; the output must be a loss */
    bool training;
    enum lk_replica_part part;
    enum lk_recompute_mode recompute;
    int place, places; /* it runs the operations of one place of a group of so many devices
                        * (place/group.h), and has their parameters; places 0: of all */
    uint64_t seed;
    const struct lk_transform *transform; /* of uint8 inputs, copied; NULL: none */
    int optimizer_arrays; /* arrays of gradient_count reals that the optimizer and others will
                           * allocate on the device: counted when the replica's memory is
                           * planned */
    int gradient_sums;    /* of gradients over shards, counted likewise */
    int list_shards; /* of the whole batch: a table of which it reads at most half of the rows
                      * has a row list (tensor/row_list.h) for gradient. 0: none has */
    struct lk_replica *weights_of; /* a replica of the same graph on the same device whose
                                    * weights this one uses, and in training its gradients; it
                                    * must be destroyed after this one. NULL: it has its own */
    bool packs_once;               /* in training: lk_replica_renew_weights() */
    bool weights_stay; /* of weights_of, from the first forward on; not with borrows_memory */
    bool one_step; /* forward computes time step `step` of sequences, from 0 on: inputs are [1],
                    * lengths 1, outputs [1, c]. Not in training. fails: LK_E_UNSUPPORTED where
                    * an operation needs more than earlier time steps */
    bool few_samples; /* plane tiles on a CPU, where planes/ can; perhaps of less than `batch`
                       * samples then, unless in training: lk_replica_batch() */
    bool borrows_memory; /* of weights_of for activations, where that is large enough: neither
                          * may run forward before the other's results were used */
    struct lk_choices *choices; /* of algorithms; outlives the replica. NULL: those of
                                 * weights_of, else direct sums */
};

/* Bytes of device memory by use. */
struct lk_replica_bytes {
    size_t weights, gradients, activations, inputs, optimizer_arrays, total;
    double again; /* the work of operations that backward runs again, in parts of that of
                   * forward: 0 where it runs none */
};

/* One parameter: elements `offset` to `offset + count` of the weights. */
struct lk_param {
    char name[96]; /* "conv2d_1.weight" */
    struct lk_shape shape;
    int64_t offset, count;
    bool has_gradient, is_trainable; /* the latter: by an optimizer, so it is not tracked */
    double lr_scale, l1, l2;         /* factor of its learning rate; penalties of its node */
    bool is_elsewhere;               /* another replica of the group has it */
    bool is_borrowed;    /* another replica of the group has it, and it comes from there */
    int64_t places;      /* of a shard, if its gradient is a row list; else 0 */
    int64_t gradient_at; /* else: where its gradient begins in those of a shard */
    struct lk_param_spec spec;
};

/* By these training adds l1 sum |w| + l2 sum w^2 to the loss. Those of a parameter's node
 * spare vectors and what is not trained. */
struct lk_param_penalties {
    double l1, l2;
};
struct lk_param_penalties lk_param_penalties(const struct lk_param *param);

/* Schedules, picks kernels, plans memory; the device is not touched. The graph must outlive it.
 * fails: LK_E_DEVICE_MEMORY where it does not fit (the text names the batch that would), or as
 * operations do */
LK_MUST_CHECK enum lk_status lk_replica_create(const struct lk_replica_config *config,
                                               struct lk_replica **replica);

/* Builds the kernels and allocates all memory; weights are not set. */
LK_MUST_CHECK enum lk_status lk_replica_build(struct lk_replica *replica);
void lk_replica_destroy(struct lk_replica *replica);

struct lk_replica_bytes lk_replica_bytes(const struct lk_replica *replica);
const struct lk_tiling *lk_replica_tiling(const struct lk_replica *replica);
int64_t lk_replica_batch(const struct lk_replica *replica);

/* From now on multiplies gradients by the first real of `scale`, which must outlive the
 * replica's work; NULL: by 1. */
void lk_replica_set_loss_scale(struct lk_replica *replica, const struct lk_buffer *scale);

/* LK_F32 or LK_F64. */
enum lk_dtype lk_replica_real(const struct lk_replica *replica);

/* Parameters in the order of the graph's nodes; NULL past the last. */
const struct lk_param *lk_replica_param(const struct lk_replica *replica, int index);

/* All parameters, with zeros between them as padding: elements 0 to trainable_count are moved
 * by an optimizer, those up to gradient_count tracked, those behind frozen. */
struct lk_buffer *lk_replica_weights(struct lk_replica *replica);
int64_t lk_replica_trainable_count(const struct lk_replica *replica);
int64_t lk_replica_gradient_count(const struct lk_replica *replica);

/* Gradient sums [shards][gradient_stride] of the last backward: those of elements 0 to
 * gradient_count without the listed_count ones of tables that have row lists. */
struct lk_buffer *lk_replica_gradients(struct lk_replica *replica);
int64_t lk_replica_listed_count(const struct lk_replica *replica);
int64_t lk_replica_gradient_stride(const struct lk_replica *replica);

/* Fills weights as their operations say, from the seed: the same on every device. Waits. */
LK_MUST_CHECK enum lk_status lk_replica_init_weights(struct lk_replica *replica, uint64_t seed);

/* Copy one parameter from or to host memory of the replica's real type; wait. */
LK_MUST_CHECK enum lk_status lk_replica_write_param(struct lk_replica *replica, int index,
                                                    const void *from);
LK_MUST_CHECK enum lk_status lk_replica_read_param(const struct lk_replica *replica, int index,
                                                   void *to);

/* The features, in one order for both parts: the node that stands for number `index`, by which
 * the head's slots are asked for, and which output of the frozen part it is; numbers of type
 * LK_F32. Their values in memory are as lk_replica_feature_dtype() says. NULL past the last. */
const struct lk_node *lk_replica_cut_value(const struct lk_replica *replica, int index,
                                           struct lk_shape *shape);
enum lk_dtype lk_replica_feature_dtype(const struct lk_replica *replica);

/* Appends a line for each operation of a replica, which need not fit into the device's memory:
 * its options, inputs and the algorithms that it computes forward with. fails: LK_E_ARGUMENT
 * options that are too long to print; as lk_replica_create() */
struct lk_text;
LK_MUST_CHECK enum lk_status lk_replica_describe(const struct lk_replica_config *config,
                                                 struct lk_text *text);

/* Whether it takes this input. */
bool lk_replica_reads(const struct lk_replica *replica, const struct lk_node *input);

enum { LK_REPLICA_SLOTS = 2 };

/* The samples of a batch that a replica computes at once (a micro-batch), where several devices
 * share the batch: `shards` shards, at most config.shards, which begin with sample
 * `first_sample` of the batch and have `samples` samples, perhaps none. */
struct lk_micro_batch {
    int shards;
    int64_t first_sample, samples;
};

/* Pinned memory of slot 0 or 1 for a batch of one input, [batch] samples as struct lk_input has
 * them: uint8 [h][w][c], int32 or float of its shape. NULL for an input that no output needs.
 */
void *lk_replica_slot(struct lk_replica *replica, const struct lk_node *input, int slot);

/* Memory for what was drawn for each sample of the slot, such as flip and colour factors; NULL:
 * nothing is drawn. */
struct lk_transform_params *lk_replica_transform_params(struct lk_replica *replica,
                                                        const struct lk_node *input, int slot);

/* Waits until the slot's last load is done, so that it may be filled again. Returns at once if
 * the slot was uploaded but not loaded. fails: LK_E_DEVICE, also where its upload had failed */
LK_MUST_CHECK enum lk_status lk_replica_wait_slot(struct lk_replica *replica, int slot);

/* Likewise; samples that were uploaded but not loaded are dropped. */
LK_MUST_CHECK enum lk_status lk_replica_claim_slot(struct lk_replica *replica, int slot);

/* Sends the slot's first `samples` samples to the device, which may still compute on those of
 * another slot. Enqueues. Call lk_replica_wait_slot() before. */
LK_MUST_CHECK enum lk_status lk_replica_upload(struct lk_replica *replica, int slot,
                                               int64_t samples);

/* Converts the slot's first `samples` samples, or a micro-batch, into the graph's inputs, on
 * which forward runs, which has to be next: both may be one launch. Uploads them first unless
 * that was done. Enqueues. fails: LK_E_ARGUMENT more samples than the replica was made for */
LK_MUST_CHECK enum lk_status lk_replica_load(struct lk_replica *replica, int slot,
                                             int64_t samples);
LK_MUST_CHECK enum lk_status
lk_replica_load_micro_batch(struct lk_replica *replica, int slot,
                            const struct lk_micro_batch *micro_batch);

/* Runs forward on the loaded inputs. These may share memory with later activations, so load
 * before each forward. `step`: for random numbers, and see config.one_step. Enqueues. */
LK_MUST_CHECK enum lk_status lk_replica_forward(struct lk_replica *replica, int64_t step);

/* Runs backward from the loss of the last forward into the gradients: to the end, or as far as
 * needed for the gradients of `bucket`, which must be asked for in order. Enqueues. */
LK_MUST_CHECK enum lk_status lk_replica_backward(struct lk_replica *replica);
LK_MUST_CHECK enum lk_status lk_replica_backward_bucket(struct lk_replica *replica, int bucket);

/* Values of output `index` in batch tiles, and their shape; valid until the next forward. */
const struct lk_buffer *lk_replica_output(const struct lk_replica *replica, int index,
                                          struct lk_shape *shape);

#endif
