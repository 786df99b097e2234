/* A probe: one operation on a device without a graph, with buffers of its own, to be timed or
 * tested. Floor 4. */
#ifndef LK_OPS_PROBE_PROBE_H
#define LK_OPS_PROBE_PROBE_H

#include "ops/op.h"

struct lk_probe_config {
    struct lk_device *device;
    const char *op, *options;
    const char *absorbed, *absorbed_options; /* an operation it takes over; NULL: none */
    int inputs;
    struct lk_shape x[LK_MOST_INPUTS];
    enum lk_dtype x_dtype[LK_MOST_INPUTS]; /* LK_F32, or LK_I32 for labels */
    int64_t batch;
    int shards;
    bool training, dx, dw;       /* dx, dw: which gradients backward computes */
    bool asks_gate, dy_is_gated; /* as in lk_op_setup; ignored where input or output is
                                  * no gate */
    uint64_t seed;
    struct lk_choices *choices; /* outlives the probe; NULL: direct sums */
};

struct lk_probe {
    const struct lk_op *op;
    struct lk_op_setup setup;
    struct lk_arena arena;
    struct lk_op_run *runs; /* [copies]: of activations; weights and workspace are shared */
    int copies;
    int64_t batch;
    struct lk_buffer **buffers; /* all that are in runs */
    int buffer_count;
};

/* Infers and announces the kernels. fails: as the operation does; LK_E_UNSUPPORTED where it
 * does not absorb the other one. lk_probe_close() in any case */
LK_MUST_CHECK enum lk_status lk_probe_open(struct lk_probe *probe,
                                           const struct lk_probe_config *config);

/* As lk_probe_open() for an operation that is set up already: copies `like` (its options are
 * borrowed; arena and state are not used), with a tiling for `batch` samples. */
LK_MUST_CHECK enum lk_status lk_probe_open_like(struct lk_probe *probe, const struct lk_op *op,
                                                const struct lk_op_setup *like, int64_t batch);

/* Allocates as many copies of the activations as fit into `bytes`, at least one; memory for
 * gradients only with `backward`. fails: LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_probe_allocate(struct lk_probe *probe, size_t bytes,
                                               bool backward);
void lk_probe_close(struct lk_probe *probe);

/* Fills a buffer of floats with numbers in (-1, 1), none 0. Waits. */
LK_MUST_CHECK enum lk_status lk_buffer_fill_random(struct lk_buffer *buffer);

/* Whether input i is the length of the sequence that comes first. */
bool lk_probe_is_length(const struct lk_op *op, const struct lk_op_shapes *shapes, int i);

/* Fills inputs, weights and dy of all copies with such numbers (0 where a gated gradient is 0),
 * lengths with all steps, other whole numbers with 0,
 * and runs forward on each, so that backward finds what forward saves. Waits. fails:
 * LK_E_MEMORY, LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_probe_fill(struct lk_probe *probe);

/* Bytes that a pass has to read and write once: x and y or their gradients, weights, and what
 * backward reads of the forward pass; living samples only. */
double lk_probe_bytes(const struct lk_probe *probe, bool backward);

/* Reads `count` numbers from number `first` on, of type `dtype`, as floats. Waits. */
LK_MUST_CHECK enum lk_status lk_probe_read(const struct lk_buffer *buffer, enum lk_dtype dtype,
                                           int64_t first, int64_t count, float *values);

/* Enqueue a pass on a copy. */
LK_MUST_CHECK enum lk_status lk_probe_forward(struct lk_probe *probe, int copy);
LK_MUST_CHECK enum lk_status lk_probe_backward(struct lk_probe *probe, int copy);

#endif
