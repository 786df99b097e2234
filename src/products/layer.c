/* The three passes of a layer: chooses their products, shares the workspace out among them,
 * makes dz of dy where a kernel does not, and the bias gradient. */
#include "products/layer.h"

#include "base/fail.h"
#include "base/log.h"
#include "products/library/library.h"
#include "products/planes/planes.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct lk_product_shape lk_matrix_shape(int64_t channels, int64_t units, bool bias, bool relu)
{
    const struct lk_product_axis one = {
        .in = 1, .out = 1, .all_out = 1, .taps = 1, .stride = 1, .gap = 1};
    return (struct lk_product_shape){.axis = {one, one},
                                     .groups = 1,
                                     .channels = channels,
                                     .filters = units,
                                     .bias = bias,
                                     .relu = relu,
                                     .is_matrix = true};
}

/* What is to be made of dy. */
static enum lk_gradient gradient_of(const struct lk_product_shape *shape,
                                    const struct lk_layer_wants *wants)
{
    if (shape->pool)
        return LK_GRADIENT_POOLED;
    return shape->relu && !wants->dy_is_gated ? LK_GRADIENT_MASKED : LK_GRADIENT_PLAIN;
}

/* Whether the kernels for matrices make all passes: they have a dz of their own. */
static bool has_matrix_kernels(const struct lk_layer *layer)
{
    return layer->shape.is_matrix && layer->uses[LK_PASS_FORWARD].way.product->is_only;
}

/* --- preparing --------------------------------------------------------------------------- */

static enum lk_status prepare_use(const struct lk_product_setup *setup, struct lk_layer *layer,
                                  struct lk_product_job *job, struct lk_layer_use *use)
{
    job->product = use->way.product;
    if (job->pass == LK_PASS_FORWARD && !setup->tiling.planes)
        job->shape = job->product->finishes ? &layer->shape : &layer->bare;
    snprintf(job->blocking, sizeof job->blocking, "%s", use->way.blocking);
    job->is_gated =
        job->pass == LK_PASS_DATA && layer->wants.asks_gate && use->way.product->gates;
    if (job->pass == LK_PASS_DATA)
        layer->gates_dx = job->is_gated;
    return use->way.product->verbs->prepare(setup, job, &use->state);
}

/* A library that gives wrong products is no choice any more: the next best stands in. */
static enum lk_status prepare_way(const struct lk_product_setup *setup, struct lk_layer *layer,
                                  struct lk_product_job *job, struct lk_layer_use *use)
{
    const struct lk_product *first = use->way.product;
    const enum lk_status status = prepare_use(setup, layer, job, use);
    if (status != LK_E_UNSUPPORTED || use->state)
        return status;
    LK_TRY(lk_product_choose(setup, job, &use->way));
    if (use->way.product == first)
        return status;
    lk_log(LK_LOG_WARNING, "%s; %s: %s instead of %s", lk_error_text(), setup->node,
           use->way.product->name, first->name);
    lk_error_clear();
    return prepare_use(setup, layer, job, use);
}

static struct lk_product_job job_of(const struct lk_layer *layer, enum lk_pass pass)
{
    return (struct lk_product_job){.shape = &layer->shape,
                                   .pass = pass,
                                   .kept = layer->wants.kept,
                                   .gradient = layer->expands && !has_matrix_kernels(layer)
                                                   ? LK_GRADIENT_PLAIN
                                                   : gradient_of(&layer->shape, &layer->wants)};
}

/* What comes behind the sums of the forward pass. */
static enum lk_status prepare_ending(const struct lk_product_setup *setup,
                                     struct lk_layer *layer)
{
    layer->ending.shape = layer->shape;
    return lk_ending_prepare(setup, layer->uses[LK_PASS_FORWARD].way.product, &layer->ending);
}

/* The sums alone, where more than a relu or a pool comes behind them. */
static struct lk_product_shape bare_shape(const struct lk_product_shape *shape)
{
    struct lk_product_shape bare = *shape;
    if (!lk_has_finish(shape))
        return bare;
    bare.norm = bare.adds = bare.relu = bare.silu = false;
    bare.most = 0;
    return bare;
}

/* `reals`: of the workspace, taken so far. */
static enum lk_status prepare_pass(const struct lk_product_setup *setup, struct lk_layer *layer,
                                   enum lk_pass pass, int64_t *reals)
{
    struct lk_layer_use *use = &layer->uses[pass];
    struct lk_product_job job = job_of(layer, pass);
    job.first = *reals;
    if (pass != LK_PASS_WEIGHTS) {
        const int64_t before = (int64_t)(layer->packed_bytes / lk_dtype_bytes(setup->real));
        job.packed_first =
            before > 0 ? (before + 15) / 16 * 16 : lk_ending_reals(setup, &layer->shape);
        job.weights_stay = layer->wants.weights_stay;
    }
    LK_TRY(prepare_way(setup, layer, &job, use));
    *reals += (job.count + 15) / 16 * 16;
    if (pass == LK_PASS_FORWARD || job.packed > 0)
        layer->packed_bytes =
            (size_t)(job.packed_first + job.packed) * lk_dtype_bytes(setup->real);
    layer->gives_db |= job.gives_db && (!layer->expands || has_matrix_kernels(layer));
    return LK_OK;
}

static enum lk_status prepare_expand(const struct lk_product_setup *setup,
                                     struct lk_layer *layer, int64_t *reals)
{
    const struct lk_product_shape *s = &layer->shape;
    layer->expand = (struct lk_expand){
        .filters = s->groups * s->filters,
        .height = s->axis[0].out,
        .width = s->axis[1].out,
        .masks = gradient_of(s, &layer->wants) == LK_GRADIENT_MASKED,
        .pools = s->pool,
        .makes_dz = layer->expands,
        .makes_db = layer->wants.dw && s->bias && !layer->gives_db,
    };
    if (setup->tiling.planes && s->pool) {
        layer->expand.height = s->axis[0].all_out;
        layer->expand.width = s->axis[1].all_out;
    } else if (setup->tiling.planes) { /* a column of vectors */
        layer->expand.height =
            lk_divide_up(layer->expand.height * layer->expand.width, setup->tiling.lanes);
        layer->expand.width = 1;
    }
    return lk_expand_prepare(setup, &layer->expand, reals);
}

/* Kernels of matrices take dz from the beginning of the workspace. */
static enum lk_status prepare_turn(const struct lk_product_setup *setup, struct lk_layer *layer,
                                   int64_t *reals)
{
    struct lk_matrix_transpose *turn = &layer->turn;
    const struct lk_product *of_weights = layer->uses[LK_PASS_WEIGHTS].way.product;
    turn->is_masked = gradient_of(&layer->shape, &layer->wants) == LK_GRADIENT_MASKED;
    turn->turns = of_weights && of_weights->takes == LK_DZ_TRANSPOSED;
    turn->kept = layer->wants.kept;
    if (turn->is_masked && turn->kept > 0)
        return lk_fail(LK_E_UNSUPPORTED, "%s: a matrix with a relu keeps no workspace",
                       setup->node);
    if (turn->is_masked || turn->turns)
        LK_TRY(lk_matrix_transpose_prepare(setup, &layer->shape, turn));
    *reals = turn->kernel ? turn->count : turn->kept;
    return LK_OK;
}

/* What each pass takes, and whether dz has to be made for one of them: then for both. */
static enum lk_status choose_backward(const struct lk_product_setup *setup,
                                      struct lk_layer *layer)
{
    const enum lk_gradient gradient = gradient_of(&layer->shape, &layer->wants);
    const bool wants[] = {
        [LK_PASS_DATA] = layer->wants.dx, [LK_PASS_WEIGHTS] = layer->wants.dw};
    bool expands = false;
    for (int i = LK_PASS_DATA; i <= LK_PASS_WEIGHTS; i++) {
        const struct lk_product_job job = job_of(layer, (enum lk_pass)i);
        if (!wants[i])
            continue;
        LK_TRY(lk_product_choose(setup, &job, &layer->uses[i].way));
        expands |=
            gradient != LK_GRADIENT_PLAIN && layer->uses[i].way.product->takes == LK_DZ_STORED;
    }
    layer->expands = expands;
    if (!expands || !wants[LK_PASS_WEIGHTS])
        return LK_OK;
    const struct lk_product_job job = job_of(layer, LK_PASS_WEIGHTS);
    return lk_product_choose(setup, &job, &layer->uses[LK_PASS_WEIGHTS].way);
}

static enum lk_status prepare_backward(const struct lk_product_setup *setup,
                                       struct lk_layer *layer)
{
    int64_t reals = layer->wants.kept;
    LK_TRY(choose_backward(setup, layer));
    if (has_matrix_kernels(layer))
        LK_TRY(prepare_turn(setup, layer, &reals));
    if (layer->wants.dx)
        LK_TRY(prepare_pass(setup, layer, LK_PASS_DATA, &reals));
    if (layer->wants.dw)
        LK_TRY(prepare_pass(setup, layer, LK_PASS_WEIGHTS, &reals));
    if (!has_matrix_kernels(layer))
        LK_TRY(prepare_expand(setup, layer, &reals));
    const size_t bytes = (size_t)reals * lk_dtype_bytes(setup->real);
    if (bytes > layer->workspace_bytes)
        layer->workspace_bytes = bytes;
    return LK_OK;
}

/* Kernels of plane tiles count the workspace's numbers in ints. Fewer samples at once fit. */
static enum lk_status check_workspace(const struct lk_product_setup *setup,
                                      const struct lk_layer *layer)
{
    const size_t reals = layer->workspace_bytes / lk_dtype_bytes(setup->real);
    if (!setup->tiling.planes || reals <= INT32_MAX)
        return LK_OK;
    return lk_fail(LK_E_DEVICE_MEMORY, "a workspace of %zu numbers, at most %d are possible",
                   reals, INT32_MAX);
}

enum lk_status lk_layer_prepare(const struct lk_product_setup *setup,
                                const struct lk_product_shape *shape,
                                const struct lk_layer_wants *wants, struct lk_layer *layer)
{
    int64_t reals = wants->kept;
    layer->shape = *shape;
    layer->bare = bare_shape(shape);
    layer->wants = *wants;
    const struct lk_product_job job = {.shape = &layer->shape, .pass = LK_PASS_FORWARD};
    LK_TRY(lk_product_choose(setup, &job, &layer->uses[LK_PASS_FORWARD].way));
    if (!wants->without_y) {
        LK_TRY(prepare_pass(setup, layer, LK_PASS_FORWARD, &reals));
        LK_TRY(prepare_ending(setup, layer));
    }
    layer->workspace_bytes = (size_t)reals * lk_dtype_bytes(setup->real);
    if (wants->training && setup->tiling.planes)
        LK_TRY(lk_planes_prepare_clear(setup, &layer->clear));
    if (wants->training)
        LK_TRY(prepare_backward(setup, layer));
    return check_workspace(setup, layer);
}

/* --- running ----------------------------------------------------------------------------- */

static enum lk_status enqueue(const struct lk_product_setup *setup,
                              const struct lk_layer *layer, enum lk_pass pass,
                              const struct lk_product_run *run)
{
    const struct lk_layer_use *use = &layer->uses[pass];
    return use->way.product->verbs->enqueue(setup, use->state, run);
}

/* Of images of x or y. */
static enum lk_status clear_beyond(const struct lk_product_setup *setup,
                                   const struct lk_layer *layer, int64_t channels, bool is_x,
                                   struct lk_buffer *images)
{
    const struct lk_product_axis *axis = layer->shape.axis;
    const int64_t pixels = is_x ? axis[0].in * axis[1].in : axis[0].all_out * axis[1].all_out;
    return layer->clear
               ? lk_planes_enqueue_clear(&setup->tiling, layer->clear,
                                         layer->shape.groups * channels, pixels, images)
               : LK_OK;
}

enum lk_status lk_layer_forward(const struct lk_product_setup *setup,
                                const struct lk_layer *layer, const struct lk_layer_run *run)
{
    struct lk_product_run operands = {.x = run->x,
                                      .w = run->w,
                                      .bias = layer->shape.bias ? run->bias : NULL,
                                      .y = run->y,
                                      .at = run->at,
                                      .more = run->more,
                                      .packed = run->packed,
                                      .lengths = run->lengths,
                                      .weights_are_new = run->weights_are_new,
                                      .workspace = run->workspace};
    memcpy(operands.norm, run->norm, sizeof operands.norm);
    operands.norms = layer->ending.norms ? run->packed : NULL;
    LK_TRY(lk_ending_begin(setup, &layer->ending, &operands));
    LK_TRY(enqueue(setup, layer, LK_PASS_FORWARD, &operands));
    if (!layer->shape.pool)
        LK_TRY(clear_beyond(setup, layer, layer->shape.filters, false, run->y));
    return lk_ending_finish(setup, &layer->ending, &operands);
}

/* dz into the workspace, the bias gradient, or both. */
static enum lk_status enqueue_dz(const struct lk_product_setup *setup,
                                 const struct lk_layer *layer, const struct lk_layer_run *run,
                                 struct lk_buffer *db)
{
    const bool wants_dz = layer->expands && (run->dx || run->dw);
    if (has_matrix_kernels(layer))
        return layer->turn.kernel && !run->dy_is_turned
                   ? lk_matrix_transpose_enqueue(setup, &layer->turn, run->dy, run->y,
                                                 run->workspace)
                   : LK_OK;
    const struct lk_expand_run made = {.dy = run->dy,
                                       .y = run->y,
                                       .at = run->at,
                                       .workspace = run->workspace,
                                       .db = db,
                                       .dw_stride = run->dw_stride,
                                       .wants_dz = wants_dz};
    return wants_dz || db ? lk_expand_enqueue(setup, &layer->expand, &made) : LK_OK;
}

enum lk_status lk_layer_backward(const struct lk_product_setup *setup,
                                 const struct lk_layer *layer, const struct lk_layer_run *run)
{
    struct lk_buffer *db = layer->shape.bias ? run->db : NULL;
    LK_TRY(enqueue_dz(setup, layer, run, layer->gives_db ? NULL : db));
    const struct lk_product_run operands = {.x = run->x,
                                            .w = run->w,
                                            .dz = layer->expands ? run->workspace : run->dy,
                                            .dz_first =
                                                layer->expands ? layer->expand.dz_first : 0,
                                            .y = run->y,
                                            .at = run->at,
                                            .dx = run->dx,
                                            .dw = run->dw,
                                            .db = layer->gives_db ? db : NULL,
                                            .dw_stride = run->dw_stride,
                                            .packed = run->packed,
                                            .lengths = run->lengths,
                                            .weights_are_new = run->weights_are_new,
                                            .workspace = run->workspace};
    if (run->dx) {
        LK_TRY(enqueue(setup, layer, LK_PASS_DATA, &operands));
        LK_TRY(clear_beyond(setup, layer, layer->shape.channels, true, run->dx));
    }
    return run->dw ? enqueue(setup, layer, LK_PASS_WEIGHTS, &operands) : LK_OK;
}

/* --- choices ----------------------------------------------------------------------------- */

bool lk_layer_choice(const struct lk_product_setup *setup, const struct lk_product_shape *shape,
                     const struct lk_layer_wants *wants, int index, struct lk_choice *choice)
{
    const bool wanted[] = {!wants->without_y, wants->dx, wants->dw};
    for (int pass = 0; pass < LK_PASSES; pass++)
        if (wanted[pass] && index-- == 0) {
            const struct lk_product_job job = {.shape = shape,
                                               .pass = (enum lk_pass)pass,
                                               .gradient = pass == LK_PASS_FORWARD
                                                               ? LK_GRADIENT_PLAIN
                                                               : gradient_of(shape, wants)};
            lk_product_describe(setup, &job, choice);
            return lk_product_is_kept(choice);
        }
    return false;
}

bool lk_layer_device_choice(const struct lk_product_setup *setup,
                            const struct lk_product_shape *shape, struct lk_choice *choice)
{
    const struct lk_product_job job = {.shape = shape, .pass = LK_PASS_FORWARD};
    struct lk_choice own;
    if (!shape->is_matrix)
        return lk_blas_choice(setup, choice);
    lk_product_describe(setup, &job, &own);
    return lk_product_is_kept(&own) && lk_blas_choice(setup, choice);
}
