/* Operators for whole arrays, applied to each sample of a batch. Floor 6. A value is looked at
 * as if the batch had one sample: then its node has all elements of it, in ONNX's order, and
 * what is computed of it is right for that sample. It is right for each sample of any batch
 * where no operator joins numbers of several, for which the axis of samples is followed from
 * value to value. That axis may have k numbers of each sample, n k in all, the samples outside.
 * Private to src/model/onnx_samples. */
#ifndef LK_MODEL_ONNX_SAMPLES_H
#define LK_MODEL_ONNX_SAMPLES_H

#include "model/onnx/convert.h"

typedef struct lk_onnx_value value;
typedef struct lk_onnx_draft draft;

enum { LK_SAMPLES_INPUTS = 64 }; /* that a node may have */

/* --- view.c ------------------------------------------------------------------------------ */

bool lk_samples_is_in(const value *x); /* computed, and another one for each sample */

/* The first axis has the samples, one of its numbers each. */
bool lk_samples_is_plain(const draft *d, const value *x);

/* How many numbers along the axis of samples are of one sample. */
int64_t lk_samples_share(const draft *d, const value *x);

/* x as ONNX has it for one sample: channels last are moved there, tokens become floats. */
LK_MUST_CHECK enum lk_status lk_samples_view(draft *d, const value *x, value *view);

/* Output `index` becomes a value as lk_samples_view() makes them, with samples along axis at.
 */
LK_MUST_CHECK enum lk_status lk_samples_give(draft *d, int index, const value *view, int at);

/* --- axes.c ------------------------------------------------------------------------------ */

/* Along which axis the outputs of the node at work have the samples; x[count]: views of its
 * inputs, constants with at -1. *at -1: there are no samples among them.
 * fails: LK_E_MODEL it joins several samples, or no rule is known */
LK_MUST_CHECK enum lk_status lk_samples_find_axis(draft *d, const value *x, int count, int *at);

/* Whether the axes of all inputs of the node at work lie above one another, the last ones. */
bool lk_samples_are_aligned(const draft *d);

/* --- counted.c --------------------------------------------------------------------------- */

/* Whether the node at work is a Gather or GatherND by a constant that counts samples, which
 * takes of x, whose first axis has all samples, only what is the sample's own. x is a view. */
bool lk_samples_takes_own(const draft *d, const value *x);

/* Where a file has a fixed batch: the places that such a node takes, if they are such numbers,
 * as such a constant. */
LK_MUST_CHECK enum lk_status lk_samples_count_places(draft *d, value *index);

/* The numbers of a constant that are of one sample, which stays an axis of length 1. */
LK_MUST_CHECK enum lk_status lk_samples_take(draft *d, const struct lk_onnx_tensor *x, int axis,
                                             int64_t which, struct lk_onnx_tensor **made);

/* Operators that need more than a view: shapes.c, layers.c, recurrent.c; end with {0}. */
extern const struct lk_onnx_operator lk_samples_shapes[], lk_samples_layers[],
    lk_samples_recurrent[];

#endif
