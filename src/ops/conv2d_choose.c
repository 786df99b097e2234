/* Which algorithm a pass of a convolution takes. */
#include "ops/conv2d.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

static const struct lk_conv2d_algorithm *const algorithms[] = {
    &lk_conv2d_depthwise, &lk_conv2d_direct, &lk_conv2d_gpu,  &lk_conv2d_winograd2,
    &lk_conv2d_winograd4, &lk_conv2d_fft,    &lk_conv2d_blas, &lk_conv2d_gpu_matrix};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms, USUAL_SHARD_TILES = 4 };

static void add_candidates(const struct lk_op_setup *setup,
                           const struct lk_conv2d_algorithm *algorithm,
                           const struct lk_conv2d_job *job, struct lk_choice *choice)
{
    char text[LK_CONV2D_BLOCKING_BYTES];
    struct lk_candidate made = {.math = algorithm->is_direct    ? LK_MATH_STRICT
                                        : algorithm->is_reduced ? LK_MATH_FAST
                                                                : LK_MATH_NORMAL};
    made.cost = algorithm->cost(setup, job->shape, job->pass);
    if (made.cost < 0 || choice->count == LK_MOST_CANDIDATES)
        return;
    snprintf(made.name, sizeof made.name, "%s", algorithm->name);
    choice->candidates[choice->count++] = made;
    made.cost *= 1.01; /* by rule, the algorithm's own one */
    for (int i = 0; choice->count < LK_MOST_CANDIDATES && algorithm->blocking &&
                    algorithm->blocking(setup, job, i, text);
         i++) {
        snprintf(made.name, sizeof made.name, "%s %s", algorithm->name, text);
        choice->candidates[choice->count++] = made;
    }
}

static void describe_choice(const struct lk_op_setup *setup,
                            const struct lk_conv2d_shape *shape, enum lk_conv2d_pass pass,
                            struct lk_choice *choice)
{
    static const char *const names[] = {"forward", "dgrad", "wgrad"};
    const struct lk_device_info *info = lk_device_info(setup->device);
    const struct lk_conv2d_job job = {.shape = shape, .pass = pass, .blocking = ""};
    char options[256] = "", x[64];
    struct lk_op_setup usual = *setup; /* a choice is the same whatever the batch */
    usual.tiling.shard_tiles = USUAL_SHARD_TILES;
    *choice = (struct lk_choice){.is_backward = pass != LK_CONV2D_FORWARD,
                                 .dx = pass == LK_CONV2D_DATA,
                                 .dw = pass == LK_CONV2D_WEIGHTS};
    lk_shape_print(&setup->shapes.x[0], x, sizeof x);
    (void)!lk_options_print(lk_conv2d_table, setup->options, false, options, sizeof options);
    snprintf(choice->key, sizeof choice->key, "conv2d %s %s %s %s lanes=%d on %s, %s",
             names[pass], x, options, lk_dtype_name(lk_op_stored(setup)), setup->tiling.lanes,
             info->name, info->driver);
    for (int i = 0; i < ALGORITHMS; i++)
        add_candidates(&usual, algorithms[i], &job, choice);
}

bool lk_conv2d_choice(const struct lk_op_setup *setup, int index, struct lk_choice *choice)
{
    struct lk_conv2d_shape shape;
    const bool wanted[] = {true, setup->wants_dx[0], setup->wants_dw};
    for (int pass = 0; pass < LK_CONV2D_PASSES; pass++)
        if (wanted[pass] && index-- == 0 &&
            lk_conv2d_shape(setup->options, &setup->shapes.x[0], &shape) == LK_OK) {
            describe_choice(setup, &shape, (enum lk_conv2d_pass)pass, choice);
            return true;
        }
    return false;
}

enum lk_status lk_conv2d_choose(const struct lk_op_setup *setup,
                                const struct lk_conv2d_shape *shape, enum lk_conv2d_pass pass,
                                struct lk_conv2d_way *way)
{
    struct lk_choice from;
    int place;
    describe_choice(setup, shape, pass, &from);
    LK_TRY(lk_choices_make(setup->choices, &from, &place));
    const char *name = from.candidates[place].name, *space = strchr(name, ' ');
    for (int i = 0; i < ALGORITHMS; i++)
        if (lk_candidate_is_same(algorithms[i]->name, name))
            way->algorithm = algorithms[i];
    snprintf(way->blocking, sizeof way->blocking, "%s", space ? space + 1 : "");
    return LK_OK;
}
