/* The operations that run under a checker, each alone. */
#ifndef TESTS_OCLGRIND_OPERATIONS_H
#define TESTS_OCLGRIND_OPERATIONS_H

#include "ops/op.h"

struct operation {
    const char *op, *options;
    struct lk_shape x;
    struct lk_shape second; /* of the second input; rank 0: like x */
    int inputs;             /* labels not counted; 0: one */
    bool is_first;          /* no dx is wanted */
    bool has_labels;        /* one more input */
    struct lk_shape labels; /* their shape */
    bool has_tokens;        /* x is whole numbers */
    bool is_wide;           /* a tile of each shard is enough */
    bool is_for_cpus;       /* GPUs take the same kernels for less */
    const char *algorithm;  /* to prefer; NULL: direct sums */
};

/* Operations whose shapes are chosen for what their kernels do at edges. The others, all rows
 * of tables among them, run as the known answers of the self-test have them. */
/* clang-format off */
#define IMAGE(c, h, w) {3, {c, h, w}}
#define ROW(k) {1, {k}}
#define CASE(op_, options_, ...) {.op = op_, .options = options_, .x = __VA_ARGS__}
static const struct operation operations[] = {
    CASE("conv2d", "filters=5 kernel=3", IMAGE(3, 5, 6)),
    CASE("conv2d", "filters=9 kernel=3 padding=same activation=relu", IMAGE(2, 4, 11)),
    CASE("conv2d", "filters=9 kernel=3 padding=same activation=relu", IMAGE(2, 4, 5),
         .is_first = true),
    CASE("conv2d", "filters=5 kernel=3 pool=true activation=relu", IMAGE(2, 7, 6)),
    CASE("conv2d", "filters=5 kernel=3 pool=true", IMAGE(2, 6, 7), .is_first = true),
    CASE("conv2d", "filters=7 kernel=3 padding=same activation=relu", IMAGE(4, 3, 4)),
    CASE("conv2d", "filters=6 kernel=1", IMAGE(5, 3, 4)),
    CASE("conv2d", "filters=3 kernel=1 stride=2 padding=1", IMAGE(2, 4, 5)),
    CASE("conv2d", "filters=3 kernel=3 stride=2 padding=same", IMAGE(4, 5, 6)),
    CASE("conv2d", "filters=3 kernel=2 dilation=2 stride=4 padding=1", IMAGE(2, 6, 7)),
    CASE("conv2d", "filters=4 kernel=3 groups=2 padding=same bias=false", IMAGE(4, 4, 4)),
    CASE("conv2d", "filters=4 kernel=3 groups=4 padding=same", IMAGE(4, 4, 4)),
    CASE("conv2d", "filters=3 kernel=5 padding=same", IMAGE(2, 2, 3)),
    CASE("conv2d", "filters=2 kernel=3", IMAGE(1, 5, 20)),
    CASE("conv2d", "filters=3 kernel=3 padding=same activation=relu", IMAGE(2, 3, 5),
         .algorithm = "winograd2"),
    CASE("conv2d", "filters=3 kernel=3 padding=same", IMAGE(2, 5, 3), .algorithm = "winograd4"),
    CASE("conv2d", "filters=2 kernel=3 pool=true activation=relu", IMAGE(2, 6, 7),
         .algorithm = "winograd4"),
    CASE("conv2d", "filters=2 kernel=3 padding=0,1,1,0", IMAGE(3, 5, 4),
         .algorithm = "winograd2"),
    CASE("conv2d", "filters=260 kernel=3 padding=same bias=false", IMAGE(1, 1, 1),
         .algorithm = "winograd4"),
    CASE("dense", "units=5", ROW(7)),
    CASE("dense", "units=33 activation=relu", ROW(18)),
    CASE("dense", "units=9 bias=false", ROW(35), .is_first = true),
    CASE("max_pool", "size=2", IMAGE(3, 5, 4)),
    CASE("max_pool", "size=3 stride=2 padding=same", IMAGE(2, 5, 6)),
    CASE("max_pool", "size=17,16", IMAGE(1, 18, 17)),
    CASE("average_pool", "size=2", IMAGE(3, 5, 4)),
    CASE("average_pool", "size=3 stride=2 padding=same", IMAGE(2, 5, 6)),
    CASE("average_pool", "size=3 padding=same count_padding=true", IMAGE(2, 4, 5)),
    CASE("global_average_pool", "", IMAGE(3, 4, 5)),
    CASE("batch_norm", "", IMAGE(3, 9, 15)),
    CASE("batch_norm", "activation=relu", ROW(40)),
    CASE("conv2d_transpose", "filters=3 kernel=3 stride=2 padding=same activation=relu",
         IMAGE(4, 3, 5)),
    CASE("layer_norm", "", IMAGE(3, 3, 7)),
    CASE("layer_norm", "activation=relu", ROW(19)), /* a block of channels, and single ones */
    CASE("layer_norm", "axis=all center=false", IMAGE(2, 3, 3)),
    CASE("layer_norm", "", IMAGE(2, 9, 15)), /* in parts */
    CASE("group_norm", "groups=1 activation=relu", IMAGE(3, 9, 15)), /* in parts on GPUs */
    CASE("group_norm", "groups=1", IMAGE(2, 65, 64), .is_for_cpus = true), /* and there */
    CASE("local_response_norm", "size=3", IMAGE(4, 3, 3)),
    CASE("local_response_norm", "size=4 beta=0.6", IMAGE(2, 3, 5)),
    CASE("math", "function=power", ROW(35), .inputs = 2),
    CASE("math", "function=choice", ROW(5), .inputs = 3),
    CASE("pick", "count=70", ROW(9)),
    CASE("constant", "count=70", ROW(3)),
    CASE("reduce", "function=log_sum_exp length=5 inner=3", ROW(30)),
    CASE("reduce", "function=largest length=2", ROW(36)),
    CASE("matmul", "rows=3 inner=3 columns=3", ROW(18), .inputs = 2),
    CASE("prelu", "slopes=one", IMAGE(3, 9, 15)),
    CASE("prelu", "slopes=elements", IMAGE(3, 2, 3)),
    CASE("dropout", "rate=0.3", IMAGE(2, 3, 5)),
    CASE("mean_squared_error", "", ROW(1100), .inputs = 2), /* in chunks */
};

/* Those that have kernels which no known answer needs, and an embedding whose tokens are -1 to
 * 2 and the largest number there is: before its table, in it, just behind it, far behind. */
static const struct operation further_operations[] = {
    CASE("attention", "heads=2 dropout=0.5", {2, {6, 18}}),
    CASE("lstm", "units=3 dropout=0.5 recurrent_dropout=0.25", {2, {3, 5}}),
    CASE("gru", "units=3 dropout=0.5 recurrent_dropout=0.25", {2, {3, 5}}),
    CASE("gru", "units=3 reset_after=false recurrent_dropout=0.25", {2, {3, 5}}),
    CASE("embedding", "vocabulary=2 units=18", ROW(6), .has_tokens = true),
};

/* Wide enough for the blocks of a GPU, which take work-groups of 64. Lengths are -1 to 2. */
static const struct operation wide_operations[] = {
    CASE("conv2d", "filters=32 kernel=3 padding=same activation=relu", IMAGE(9, 2, 1),
         .is_wide = true),
    CASE("conv2d", "filters=33 kernel=3 padding=same pool=true", IMAGE(3, 2, 2),
         .is_first = true, .is_wide = true),
    CASE("conv2d", "filters=36 kernel=1 stride=2 bias=false", IMAGE(16, 3, 1),
         .is_wide = true),
    CASE("conv2d", "filters=31 kernel=3 padding=same", IMAGE(16, 2, 2), .is_wide = true,
         .algorithm = "winograd2"),
    CASE("conv2d", "filters=31 kernel=3 padding=same activation=relu", IMAGE(16, 3, 2),
         .is_wide = true, .algorithm = "winograd4"),
    CASE("attention", "", {2, {19, 9}}, .is_wide = true),
    CASE("attention", "heads=2 causal=true dropout=0.5", {2, {9, 18}}, .has_labels = true,
         .is_wide = true),
    CASE("lstm", "units=9 recurrent_dropout=0.25", {2, {3, 5}}, .is_wide = true),
    CASE("gru", "units=9 reset_after=false", {2, {3, 5}}, .is_wide = true),
    CASE("softmax", "", ROW(67), .is_wide = true),
    CASE("softmax_cross_entropy", "", ROW(70), .has_labels = true, .is_wide = true),
};
/* clang-format on */

#endif
