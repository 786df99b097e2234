/* Dividing a model among the devices of a group, on paper: which device computes and holds
 * what, and what crosses between them. Floor 6. */
#ifndef LOCKSTEP_PLACE_H
#define LOCKSTEP_PLACE_H

#include <lockstep/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a device of the group is given. */
struct lk_place_info {
    const char *device; /* its name */
    struct lk_memory memory;
    bool fits;          /* the device has that memory */
    int64_t parameters; /* elements */
    double work;        /* estimated, as a part of that of all devices */
};

/* A value, or weights, of an operation at one place that another place reads. */
struct lk_crossing_info {
    const char *node; /* the operation that makes it, or whose weights it is */
    bool is_weights;
    int from, to;             /* devices of the group */
    size_t forward, backward; /* bytes of a sample; of weights, those of a step */
};

/* A model that is divided; the pointers live as long as the model. */
struct lk_division {
    int place_count, crossing_count;
    const struct lk_place_info *places;
    const struct lk_crossing_info *crossings;
};

/* For what it is divided; `place` as `lockstep train --place` has it: "a=0,b=1" with devices of
 * the text or names of entries, "auto", or "": the text's devices in their order, else auto. */
struct lk_division_options {
    const char *place;
    struct lk_device *const *devices; /* [device_count], open */
    int device_count;
    int64_t batch;
    enum lk_memory_use use;
    enum lk_recompute_mode recompute;
};

/* Sets the places of a model's nodes (struct lk_node_info) and plans all devices' memory for
 * batches that are computed at once; allocates none. What does not fit is no failure where it
 * is said which device computes what: see `fits`. fails: LK_E_ARGUMENT, LK_E_UNSUPPORTED: what
 * cannot be divided so, by name; with auto LK_E_DEVICE_MEMORY where nothing fits */
LK_API LK_MUST_CHECK enum lk_status lk_model_divide(struct lk_model *model,
                                                    const struct lk_division_options *options,
                                                    struct lk_division *division);

#ifdef __cplusplus
}
#endif
#endif
