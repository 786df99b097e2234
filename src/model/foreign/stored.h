/* The weights that a run or a checkpoint file has stored, with their model. Floor 6. */
#ifndef LK_MODEL_FOREIGN_STORED_H
#define LK_MODEL_FOREIGN_STORED_H

#include "io/arrays/arrays.h"
#include "model/model.h"

/* {0} is closed. */
struct lk_stored {
    char path[1024]; /* of the checkpoint */
    struct lk_model *model;
    struct lk_arrays *file;
    bool averaged;    /* the file has averages of trained parameters */
    char *vocabulary; /* of texts; "": there is none */
    char *pipeline;   /* of an evaluation; "": nothing is done to samples */
};

/* Opens the newest checkpoint of a run, or a checkpoint file; all its sums are compared. What
 * was opened before a failure is closed by lk_stored_close() too. */
LK_MUST_CHECK enum lk_status lk_stored_open(const char *run, struct lk_stored *stored);
void lk_stored_close(struct lk_stored *stored);

/* What evaluation takes for a parameter, "conv2d_1.weight": its average, where there is one;
 * NULL: absent. */
const struct lk_array *lk_stored_find(const struct lk_stored *stored, const char *param);

#endif
