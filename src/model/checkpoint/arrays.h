/* The arrays of a checkpoint, between device and host. Floor 6. Private to
 * src/model/checkpoint; knows no file. */
#ifndef LK_MODEL_CHECKPOINT_ARRAYS_H
#define LK_MODEL_CHECKPOINT_ARRAYS_H

#include "io/safetensors.h"
#include "model/checkpoint/checkpoint.h"

/* A parameter, or one state array of the optimizer for it. */
struct lk_checkpoint_array {
    char name[192];
    int param, state; /* state -1: the parameter itself; param -1: the scale of the loss */
    struct lk_safetensor tensor;
    void *data; /* tensor.bytes, on the host; NULL: they are somebody else's */
};

/* {0} is an empty one. */
struct lk_checkpoint_arrays {
    struct lk_checkpoint_array *list;
    int count;
    const struct lk_replica *replica;
    const struct lk_optimizer_info *optimizer; /* NULL: parameters alone */
    const struct lk_host_state *there; /* NULL: nothing is; not used once it is listed */
};

/* Lists all arrays of a checkpoint in order, with room for their data or, where a state is
 * given, with what is there. To be cleared after a failure too. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_checkpoint_arrays_list(
    const struct lk_replica *replica, const struct lk_optimizer_info *optimizer,
    const struct lk_host_state *state, struct lk_checkpoint_arrays *arrays);
void lk_checkpoint_arrays_clear(struct lk_checkpoint_arrays *arrays);

/* Copy all data from the devices, or to them; wait. */
LK_MUST_CHECK enum lk_status
lk_checkpoint_arrays_fetch(const struct lk_checkpoint_arrays *arrays);
LK_MUST_CHECK enum lk_status
lk_checkpoint_arrays_put(const struct lk_checkpoint_arrays *arrays);

/* The sum of the parameters' data, or of the state's. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_checkpoint_arrays_sum(const struct lk_checkpoint_arrays *arrays,
                                                      bool state, char text[LK_SHA256_TEXT]);

#endif
