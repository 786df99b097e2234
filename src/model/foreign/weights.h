/* Weights that other programs, or other runs, have trained: from a file into replicas of a
 * model. Floor 6. All is read and checked before anything is written. */
#ifndef LK_MODEL_FOREIGN_WEIGHTS_H
#define LK_MODEL_FOREIGN_WEIGHTS_H

#include "graph/replica.h"
#include "model/model.h"

struct lk_foreign_options {
    const char *weights;   /* FILE, FILE,by=name or FILE,by=order: of any format that
                            * io/arrays/arrays.h reads */
    const char *init_from; /* in place of weights: a run directory or a checkpoint */
    bool skips_mismatch;   /* what does not fit stays as it was, and is said */
    bool may_lack_head;    /* the last parameters may be missing where they are trained */
    enum lk_dtype real;    /* of the replicas to come */
};

struct lk_foreign_weights;

/* Opens the file, pairs its arrays with the model's parameters, says how, and reads them.
 * fails: LK_E_IO, LK_E_DATA; LK_E_SHAPE naming what does not fit, LK_E_ARGUMENT, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_foreign_open(const struct lk_model *model,
                                             const struct lk_foreign_options *options,
                                             struct lk_foreign_weights **weights);
/* How images were prepared for the weights, as far as it is known. Until they are closed. */
struct lk_foreign_images {
    const char *preset;   /* of the stage normalize, "torchvision"; NULL: not known */
    const char *pipeline; /* of evaluation, in a run of ours; NULL: not of a run */
};
struct lk_foreign_images lk_foreign_images(const struct lk_foreign_weights *weights);
/* Names of classes in a run of ours, as lk_model_print_classes() has them; "": not known. */
const char *lk_foreign_classes(const struct lk_foreign_weights *weights);
void lk_foreign_close(struct lk_foreign_weights *weights);

/* Writes them into a built replica of the model's graph; waits. Parameters that the file did
 * not have stay as they are. */
LK_MUST_CHECK enum lk_status lk_foreign_put(const struct lk_foreign_weights *weights,
                                            struct lk_replica *replica);

/* The same at once, for one replica; `real` of the options is the replica's. */
LK_MUST_CHECK enum lk_status lk_foreign_load(const struct lk_model *model,
                                             const struct lk_foreign_options *options,
                                             struct lk_replica *replica);

#endif
