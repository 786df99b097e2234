/* What a convolution may choose from does not depend on how much a device computes at a time,
 * nor do the parts that its sums are made of. */
#include "device/rig.h"
#include "ops/conv2d.h"

static const struct shape {
    int64_t channels, filters, side, kernel;
} shapes[] = {{3, 64, 224, 3}, {512, 512, 14, 3}, {256, 1000, 1, 1}, {16, 33, 9, 7}};

static struct lk_conv2d_options options_of(const struct shape *s)
{
    return (struct lk_conv2d_options){.filters = s->filters,
                                      .kernel = {s->kernel, s->kernel},
                                      .stride = {1, 1},
                                      .dilation = {1, 1},
                                      .groups = 1,
                                      .padding = "same",
                                      .bias = true};
}

static struct lk_op_setup setup_of(struct lk_device *of, const struct shape *s,
                                   const struct lk_conv2d_options *options)
{
    struct lk_op_setup setup = {.device = of,
                                .node = "c",
                                .options = options,
                                .tiling = lk_tiling_make(lk_device_info(of), 256, 2),
                                .real = LK_F32,
                                .training = true,
                                .wants_dx = {true},
                                .wants_dw = true};
    setup.shapes.x[0] = (struct lk_shape){3, {s->channels, s->side, s->side}};
    return setup;
}

static void compare(const struct lk_choice *a, const struct lk_choice *b)
{
    assert_string_equal(a->key, b->key);
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        assert_string_equal(a->candidates[i].name, b->candidates[i].name);
        assert_true(a->candidates[i].cost == b->candidates[i].cost);
    }
}

static void follow_from_shapes_alone(void **state)
{
    static const int shards[] = {1, 8, 1 << 12, 1 << 24};
    (void)state;
    for (int class = 0; class < LK_COUNT(classes); class ++) {
        struct lk_device *of = open_class(classes[class]);
        for (int i = 0; i < LK_COUNT(shapes); i++) {
            const struct lk_conv2d_options options = options_of(&shapes[i]);
            struct lk_op_setup setup = setup_of(of, &shapes[i], &options);
            struct lk_choice first, other;
            for (int pass = 0; pass < LK_PASSES; pass++) {
                assert_true(lk_op_conv2d.choice(&setup, pass, &first));
                assert_true(first.count >= 2);
                for (int n = 0; n < LK_COUNT(shards); n++) {
                    struct lk_op_setup like = setup;
                    like.tiling = lk_tiling_cut(&setup.tiling, shards[n]);
                    assert_true(lk_op_conv2d.choice(&like, pass, &other));
                    compare(&first, &other);
                }
            }
        }
        lk_device_close(of);
    }
}

/* Of CPUs local memory is the second-level cache, whose size a device's name does not tell.
 * With vectors of 16 floats it is 1 MB or more, but for a few chips, which of layers of many
 * channels take another row of the family, with the same bits. */
static void do_not_follow_from_caches(void **state)
{
    static const uint64_t bytes[] = {512 << 10, 1 << 20, 2 << 20};
    static const struct shape more[] = {{3, 64, 224, 3},   {3, 32, 112, 5},  {1, 32, 28, 3},
                                        {64, 64, 56, 3},   {64, 256, 56, 1}, {2048, 512, 7, 1},
                                        {4096, 64, 28, 1}, {512, 512, 7, 3}};
    (void)state;
    struct lk_device *of = open_class("cpu");
    struct lk_device_info *info = (struct lk_device_info *)lk_device_info(of);
    for (int i = 0; i < LK_COUNT(more); i++)
        for (int pass = 0; pass < LK_PASSES; pass++) {
            const struct lk_conv2d_options options = options_of(&more[i]);
            const struct lk_op_setup setup = setup_of(of, &more[i], &options);
            struct lk_choice first, other;
            const int from = info->vector == 16;
            info->local_bytes = bytes[from];
            assert_true(lk_op_conv2d.choice(&setup, pass, &first));
            for (int n = from + 1; n < LK_COUNT(bytes); n++) {
                info->local_bytes = bytes[n];
                assert_true(lk_op_conv2d.choice(&setup, pass, &other));
                compare(&first, &other);
            }
        }
    lk_device_close(of);
}

static const char *cheapest(const struct lk_choice *of)
{
    int best = 0;
    for (int i = 1; i < of->count; i++)
        if (lk_candidate_is_possible(&of->candidates[i], LK_MATH_NORMAL) &&
            of->candidates[i].cost < of->candidates[best].cost)
            best = i;
    return of->candidates[best].name;
}

/* Where blocks are few or half empty, a GPU takes what divides its sums among many compute
 * units, however many it has, as parts of it have the same bits: CLBlast has made dw of 144
 * channels and 24 filters in three work-groups. */
static void large_gpus_are_kept_busy(void **state)
{
    static const struct shape more[] = {{144, 24, 56, 1}, {24, 144, 56, 1}, {32, 16, 112, 1},
                                        {16, 96, 112, 1}, {96, 24, 56, 1},  {192, 32, 28, 1},
                                        {64, 256, 56, 1}, {256, 64, 56, 1}, {960, 320, 7, 1},
                                        {3, 32, 112, 3},  {16, 16, 32, 3},  {64, 64, 56, 3}};
    (void)state;
    struct lk_device *of = open_class("gpu");
    struct lk_device_info *info = (struct lk_device_info *)lk_device_info(of);
    snprintf(info->vendor, sizeof info->vendor, "NVIDIA Corporation");
    for (int i = 0; i < 3 * LK_COUNT(more); i++)
        for (int pass = 0; pass < LK_PASSES; pass++) {
            info->compute_units = (int[]){1, 8, 132}[i / LK_COUNT(more)];
            const struct shape *shape = &more[i % LK_COUNT(more)];
            const struct lk_conv2d_options options = options_of(shape);
            const struct lk_op_setup setup = setup_of(of, shape, &options);
            struct lk_choice choice;
            assert_true(lk_op_conv2d.choice(&setup, pass, &choice));
            assert_string_equal(cheapest(&choice), "gemm");
        }
    lk_device_close(of);
}

/* More columns than the kernel counts are refused, not computed with another order of sums. */
static void too_many_columns_are_refused(void **state)
{
    (void)state;
    struct lk_device *of = open_class("gpu");
    struct lk_arena arena = {0};
    const struct lk_conv2d_options options = options_of(&shapes[0]);
    struct lk_op_setup setup = setup_of(of, &shapes[0], &options);
    setup.arena = &arena;
    setup.tiling = lk_tiling_cut(&setup.tiling, 1 << 10);
    assert_ok(lk_choices_create(LK_MATH_STRICT, &setup.choices));
    assert_fails(lk_op_conv2d.prepare(&setup), LK_E_UNSUPPORTED, "take a smaller batch");
    lk_choices_destroy(setup.choices);
    lk_arena_clear(&arena);
    lk_device_close(of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follow_from_shapes_alone),
        cmocka_unit_test(do_not_follow_from_caches),
        cmocka_unit_test(large_gpus_are_kept_busy),
        cmocka_unit_test(too_many_columns_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
