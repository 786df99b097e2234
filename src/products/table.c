/* The table of products, and how a pass chooses from it.
 *
 * A row's name begins with its family. Of a family a pass has one row: the first in the table
 * that fits. `order` says in which order a row adds; rows that share the word add the same
 * terms in the same order, so they give the same bits. README.md explains the words. */
#include "products/table.h"

#include "base/fail.h"
#include "products/direct/direct.h"
#include "products/gpu/gpu.h"
#include "products/gpu/units.h"
#include "products/library/library.h"
#include "products/matrix/matrix.h"
#include "products/winograd/winograd.h"
#include <stdio.h>
#include <string.h>

enum { USUAL_SHARD_TILES = 4 };

/* The words of a row; behind its verbs what else there is to say of it, or 0. */
#define ROW(name_, pass_, class_, math_, takes_, order_, verbs_, ...)                          \
    {                                                                                          \
        .name = name_, .pass = LK_PASS_##pass_, .device_class = LK_ON_##class_,                \
        .math = LK_MATH_##math_, .order = order_, .verbs = &verbs_,                            \
        .takes = LK_DZ_##takes_, __VA_ARGS__                                                \
    }
#define GATES .gates = true

/* clang-format off */
#define WINOGRAD(family, side) \
    ROW(family " fused", FORWARD, CPU, NORMAL, STORED, family, \
        lk_winograd_fused, .tile = side), \
    ROW(family " gemm", FORWARD, GPU, NORMAL, STORED, family " gpu", \
        lk_winograd_gpu, .tile = side), \
    ROW(family " fused", DATA, CPU, NORMAL, FROM_DY, family, \
        lk_winograd_fused, .tile = side, GATES), \
    ROW(family " gemm", DATA, GPU, NORMAL, FROM_DY, family " gpu", \
        lk_winograd_gpu, .tile = side, GATES), \
    ROW(family " fused", WEIGHTS, CPU, NORMAL, FROM_DY, family ": (lanes), parts of squares", \
        lk_winograd_fused_weights, .tile = side), \
    ROW(family " rounds", WEIGHTS, CPU, NORMAL, FROM_DY, family ": (8 squares lanes)", \
        lk_winograd_weights, .tile = side), \
    ROW(family " gemm", WEIGHTS, GPU, NORMAL, FROM_DY, family ": squares lanes, rounds", \
        lk_winograd_gpu, .tile = side)

const struct lk_product lk_products[] = {
    ROW("depthwise", FORWARD, ANY, STRICT, STORED, "c r s",
        lk_direct_depthwise, 0),
    ROW("depthwise", DATA, ANY, STRICT, STORED, "r s",
        lk_direct_depthwise, GATES),
    ROW("depthwise", WEIGHTS, ANY, STRICT, STORED, "i j, tree of lanes, parts of tiles",
        lk_direct_depthwise, 0),

    ROW("direct pointwise", FORWARD, CPU, STRICT, STORED, "c r s",
        lk_direct_pointwise_verbs, 0),
    ROW("direct gather", FORWARD, ANY, STRICT, STORED, "c r s",
        lk_direct_gather_verbs, 0),
    ROW("direct pointwise", DATA, CPU, STRICT, STORED, "k -r -s",
        lk_direct_pointwise_verbs, GATES),
    ROW("direct gather", DATA, ANY, STRICT, STORED, "k -r -s",
        lk_direct_gather_verbs, GATES),
    ROW("direct lanewise", WEIGHTS, CPU, STRICT, FROM_DY,
        "areas i j, tree of lanes, parts of areas", lk_direct_lanewise_weights, 0),
    ROW("direct pointwise", WEIGHTS, CPU, STRICT, FROM_DY, "(4 pixels lanes), parts of areas",
        lk_direct_pointwise_weights, 0),
    ROW("direct turned", WEIGHTS, CPU, STRICT, FROM_DY, "(9 pixels lanes), parts of areas",
        lk_direct_turned_weights, 0),
    ROW("direct staged", WEIGHTS, ANY, STRICT, FROM_DY,
        "strips i j, tree of lanes, parts of tiles", lk_direct_staged_weights, 0),

    ROW("gemm", FORWARD, GPU, STRICT, STORED, "c/8 r s c%8", lk_gpu_gemm, 0),
    ROW("gemm", DATA, GPU, STRICT, STORED, "k/8 -r -s k%8", lk_gpu_gemm, GATES),
    ROW("gemm", WEIGHTS, GPU, STRICT, STORED, "pixels lanes, parts of pixels", lk_gpu_gemm, 0),

    WINOGRAD("winograd2", 2),
    WINOGRAD("winograd4", 4),

    ROW("fft", FORWARD, ANY, NORMAL, STORED, "fft", lk_library_fft, 0),
    ROW("fft", DATA, ANY, NORMAL, STORED, "fft", lk_library_fft, 0),
    ROW("fft", WEIGHTS, ANY, NORMAL, STORED, "fft", lk_library_fft, 0),

    ROW("clblast", FORWARD, ANY, NORMAL, STORED, "clblast", lk_library_blas, 0),
    ROW("clblast", DATA, ANY, NORMAL, STORED, "clblast", lk_library_blas, 0),
    ROW("clblast", WEIGHTS, ANY, NORMAL, STORED, "clblast", lk_library_blas, 0),

    ROW(LK_GPU_MATRIX_NAME, FORWARD, GPU, FAST, STORED, "tf32", lk_gpu_matrix_gemm, 0),
    ROW(LK_GPU_MATRIX_NAME, DATA, GPU, FAST, STORED, "tf32", lk_gpu_matrix_gemm, GATES),
    ROW(LK_GPU_MATRIX_NAME, WEIGHTS, GPU, FAST, STORED, "tf32", lk_gpu_matrix_gemm, 0),

    ROW("matrix", FORWARD, ANY, STRICT, STORED, "c r s", lk_matrix_product, .is_matrix = true),
    ROW("matrix", DATA, ANY, STRICT, STORED, "k -r -s", lk_matrix_product, .is_matrix = true),
    ROW("matrix", WEIGHTS, ANY, STRICT, TRANSPOSED, "tiles lanes", lk_matrix_weights,
        .is_matrix = true),
    {0},
};
/* clang-format on */

static bool is_of_class(const struct lk_product *row, const struct lk_product_setup *setup)
{
    return row->device_class == LK_ON_ANY ||
           (row->device_class == LK_ON_CPU) == (setup->tiling.vector > 1);
}

static bool can(const struct lk_product_setup *setup, const struct lk_product *row,
                const struct lk_product_job *job)
{
    struct lk_product_job of = *job;
    of.product = row;
    return row->pass == job->pass && is_of_class(row, setup) &&
           (!row->verbs->fits || row->verbs->fits(setup, &of));
}

/* Matrices have kernels of their own but where the blocks of a GPU have enough to do. */
static bool is_apart(const struct lk_product_setup *setup, const struct lk_product_shape *shape)
{
    static const struct lk_product gemm = {
        .pass = LK_PASS_FORWARD, .device_class = LK_ON_GPU, .verbs = &lk_gpu_gemm};
    const struct lk_product_job job = {.shape = shape, .pass = LK_PASS_FORWARD};
    return shape->is_matrix &&
           !(can(setup, &gemm, &job) &&
             lk_gpu_gemm.cost(setup, &job) < lk_direct_gather_verbs.cost(setup, &job));
}

bool lk_product_fits(const struct lk_product_setup *setup, const struct lk_product *row,
                     const struct lk_product_job *job)
{
    return row->is_matrix == is_apart(setup, job->shape) && can(setup, row, job);
}

static bool has_family(const struct lk_choice *choice, const char *name)
{
    for (int i = 0; i < choice->count; i++)
        if (lk_candidate_is_kin(choice->candidates[i].name, name))
            return true;
    return false;
}

static void add_candidates(const struct lk_product_setup *setup, const struct lk_product *row,
                           const struct lk_product_job *job, struct lk_choice *choice)
{
    char text[LK_BLOCKING_BYTES];
    struct lk_product_job of = *job;
    of.product = row;
    struct lk_candidate made = {.cost = row->verbs->cost(setup, &of), .math = row->math};
    if (choice->count == LK_MOST_CANDIDATES)
        return;
    snprintf(made.name, sizeof made.name, "%s", row->name);
    choice->candidates[choice->count++] = made;
    made.cost *= 1.01; /* by rule, the kernel's own one */
    for (int i = 0; choice->count < LK_MOST_CANDIDATES && row->verbs->blocking &&
                    row->verbs->blocking(setup, &of, i, text);
         i++) {
        snprintf(made.name, sizeof made.name, "%s %s", row->name, text);
        choice->candidates[choice->count++] = made;
    }
}

void lk_product_describe(const struct lk_product_setup *setup, const struct lk_product_job *job,
                         struct lk_choice *choice)
{
    static const char *const passes[] = {"forward", "dgrad", "wgrad"};
    const struct lk_device_info *info = lk_device_info(setup->device);
    const bool apart = is_apart(setup, job->shape);
    struct lk_product_setup usual = *setup; /* a choice is the same whatever the batch */
    usual.tiling.shard_tiles = USUAL_SHARD_TILES;
    *choice = (struct lk_choice){.is_backward = job->pass != LK_PASS_FORWARD,
                                 .dx = job->pass == LK_PASS_DATA,
                                 .dw = job->pass == LK_PASS_WEIGHTS};
    snprintf(choice->key, sizeof choice->key, "%s %s %s %s lanes=%d on %s, %s",
             apart ? "matrix" : "conv2d", passes[job->pass], setup->problem,
             lk_dtype_name(lk_product_stored(setup)), setup->tiling.lanes, info->name,
             info->driver);
    for (const struct lk_product *row = lk_products; row->name; row++)
        if (row->is_matrix == apart && !has_family(choice, row->name) && can(&usual, row, job))
            add_candidates(&usual, row, job, choice);
}

bool lk_product_is_kept(const struct lk_choice *choice)
{
    return choice->count != 1 || !lk_candidate_is_kin(choice->candidates[0].name, "matrix");
}

/* The row that a candidate is of. */
static const struct lk_product *row_of(const char *candidate, enum lk_pass pass)
{
    for (const struct lk_product *row = lk_products; row->name; row++)
        if (row->pass == pass && lk_candidate_is_same(row->name, candidate))
            return row;
    return NULL;
}

enum lk_status lk_product_choose(const struct lk_product_setup *setup,
                                 const struct lk_product_job *job,
                                 struct lk_product_selection *way)
{
    struct lk_choice from;
    int place;
    lk_product_describe(setup, job, &from);
    LK_TRY(lk_choices_make(lk_product_is_kept(&from) ? setup->choices : NULL, &from, &place));
    const char *name = from.candidates[place].name;
    way->product = row_of(name, job->pass);
    snprintf(way->blocking, sizeof way->blocking, "%s", lk_candidate_blocking(name));
    return LK_OK;
}
