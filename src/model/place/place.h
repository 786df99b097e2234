/* Which device of a group computes what of a model: the words of `device:` and `--place` become
 * places of nodes. Floor 6. Knows no training, and opens no device. */
#ifndef LK_MODEL_PLACE_PLACE_H
#define LK_MODEL_PLACE_PLACE_H

#include "graph/place/choose.h"
#include "model/model.h"

/* What `auto` plans with; all others do without. */
struct lk_placing {
    const struct lk_replica_config *config; /* as lk_group_create() will take it: the loss of
                                             * lk_model_add_losses() is its output */
    struct lk_device *const *devices;       /* of the group, open */
    int in_flight;                          /* micro-batches on their way at a time */
    const struct lk_measured_ops
        *measured; /* as lk_group_choose() takes it; NULL: nothing is */
};

/* Sets the places of all nodes of a model, for a group of so many devices. `words`:
 *   "a=0,b=1"  the text's device `a` is device 0 of the group; also names of entries and
 * blocks, which go before: what comes behind them follows its first input "auto"     by
 * estimated time, such that it fits (lk_group_choose())
 *   "", NULL   the text's devices in the order of their first use; where it has none, "auto".
 * A group of one device computes all. Call it again for other places, once losses are added.
 * fails: LK_E_ARGUMENT what no device answers to, by name; with auto, as lk_group_choose() */
LK_MUST_CHECK enum lk_status lk_model_place(struct lk_model *model, const char *words,
                                            int devices, const struct lk_placing *placing);

/* The devices that words other than "auto" name: one more than the highest number. What cannot
 * be read, or what no device or entry answers to, is refused before a device is opened; all
 * nodes have no place then. fails: LK_E_ARGUMENT, in the words of lk_model_place() */
LK_MUST_CHECK enum lk_status lk_model_count_places(struct lk_model *model, const char *words,
                                                   int *count);

/* The word for device `index` of the text, in the order of first use; NULL past the last. */
const char *lk_model_device(const struct lk_model *model, int index);

#endif
