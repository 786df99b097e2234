/* Layouts of other programs: which element of their arrays becomes which of ours. */
#include "model/naming/layout.h"

#include "rig.h"

#include <stdlib.h>

/* A parameter of a model's node, described; what it points to lives until the arena is cleared.
 */
static struct lk_layout describe(struct lk_model *model, const char *node, int param,
                                 enum lk_layout_kind kind, struct lk_arena *arena)
{
    struct lk_layout layout;
    const struct lk_node *found = lk_graph_find(lk_model_graph(model), node);
    assert_non_null(found);
    assert_int_equal(lk_layout_describe(found, param, kind, arena, &layout), LK_OK);
    return layout;
}

static void assert_shape(const struct lk_layout *layout, int rank, const int64_t *shape)
{
    assert_int_equal(layout->rank, rank);
    assert_memory_equal(layout->shape, shape, (size_t)rank * sizeof *shape);
    assert_true(lk_layout_fits(layout, rank, shape));
}

#define SHAPE(...)                                                                             \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }

/* Converts 0, 1, 2 ... there and back, which must give the same; `ours` keeps what we have. */
static void convert(const struct lk_layout *layout, float *ours)
{
    float theirs[512], again[512];
    const int64_t count = lk_shape_count(&layout->own);
    assert_in_range(count, 1, 512);
    for (int i = 0; i < count; i++)
        theirs[i] = (float)i;
    lk_layout_take(layout, sizeof *ours, theirs, ours);
    lk_layout_give(layout, sizeof *ours, ours, again);
    assert_memory_equal(theirs, again, (size_t)count * sizeof *ours);
}

static const char convolutions[] =
    "input: [8, 8, 4]\n"
    "layers:\n"
    "  - {name: full, conv2d: {filters: 6, kernel: [2, 3]}}\n"
    "  - {name: grouped, conv2d: {filters: 8, kernel: [2, 3], groups: 2}}\n"
    "  - {name: deep, conv2d: {filters: 16, kernel: [2, 3], groups: 8}}\n"
    "  - {name: norm, batch_norm: }\n";

static void test_keras_convolutions(void **state)
{
    (void)state;
    float w[512];
    struct lk_arena arena = {0};
    struct lk_model *model = read_model(convolutions);
    struct lk_layout l = describe(model, "full", 0, LK_LAYOUT_KERAS, &arena);
    assert_shape(&l, SHAPE(2, 3, 4, 6)); /* ours: [4][2][3][6] */
    convert(&l, w);
    for (int c = 0, at = 0; c < 4; c++)
        for (int r = 0; r < 2; r++)
            for (int s = 0; s < 3; s++)
                for (int k = 0; k < 6; k++)
                    assert_int_equal((int)w[at++], ((r * 3 + s) * 4 + c) * 6 + k);
    l = describe(model, "grouped", 0, LK_LAYOUT_KERAS, &arena);
    assert_shape(&l, SHAPE(2, 3, 3, 8));
    lk_model_destroy(model);
    lk_arena_clear(&arena);
}

/* Keras counts multipliers last, [r][s][in][multiplier]: filter c * multiplier + m. */
static void test_keras_depthwise(void **state)
{
    (void)state;
    float w[512];
    struct lk_arena arena = {0};
    struct lk_model *model = read_model(convolutions);
    const struct lk_layout l = describe(model, "deep", 0, LK_LAYOUT_KERAS, &arena);
    assert_shape(&l, SHAPE(2, 3, 8, 2));
    assert_true(lk_layout_fits(&l, SHAPE(2, 3, 1, 16)));
    assert_false(lk_layout_fits(&l, SHAPE(2, 3, 2, 8)));
    convert(&l, w);
    for (int at = 0; at < 96; at++)
        assert_int_equal((int)w[at], at);
    lk_model_destroy(model);
    lk_arena_clear(&arena);
}

static void test_torch_convolutions(void **state)
{
    (void)state;
    float w[512];
    struct lk_arena arena = {0};
    struct lk_model *model = read_model(convolutions);
    struct lk_layout l = describe(model, "grouped", 0, LK_LAYOUT_TORCH, &arena);
    assert_shape(&l, SHAPE(8, 3, 2, 3));
    convert(&l, w);
    for (int c = 0, at = 0; c < 3; c++)
        for (int r = 0; r < 2; r++)
            for (int s = 0; s < 3; s++)
                for (int k = 0; k < 8; k++)
                    assert_int_equal((int)w[at++], ((k * 3 + c) * 2 + r) * 3 + s);
    l = describe(model, "deep", 0, LK_LAYOUT_TORCH, &arena);
    assert_shape(&l, SHAPE(16, 1, 2, 3));
    l = describe(model, "norm", 2, LK_LAYOUT_TORCH, &arena);
    assert_shape(&l, SHAPE(16));
    assert_false(lk_layout_fits(&l, SHAPE(15)));
    assert_true(lk_layout_fits(&l, SHAPE(1, 1, 16)));
    lk_model_destroy(model);
    lk_arena_clear(&arena);
}

static const char flattened[] = "input: [2, 3, 4]\n"
                                "layers:\n"
                                "  - flatten\n"
                                "  - {name: norm, batch_norm: }\n"
                                "  - dropout: {rate: 0.5}\n"
                                "  - {name: d1, dense: {units: 5}}\n"
                                "  - {name: d2, dense: {units: 12}}\n"
                                "  - relu\n"
                                "  - reshape: {shape: [2, 2, 3]}\n"
                                "  - {name: c, conv2d: {filters: 1, kernel: 1}}\n";

/* Feature (c, h, w) of a flattened image [2, 3, 4] is number (h * 3 + w) * 4 + c in Keras. */
static void test_features_of_images(void **state)
{
    (void)state;
    float w[512];
    struct lk_arena arena = {0};
    struct lk_model *model = read_model(flattened);
    struct lk_layout l = describe(model, "d1", 0, LK_LAYOUT_KERAS, &arena);
    assert_shape(&l, SHAPE(24, 5));
    convert(&l, w);
    for (int c = 0, at = 0; c < 4; c++)
        for (int p = 0; p < 6; p++)
            for (int k = 0; k < 5; k++)
                assert_int_equal((int)w[at++], (p * 4 + c) * 5 + k);
    l = describe(model, "norm", 1, LK_LAYOUT_KERAS, &arena);
    convert(&l, w);
    for (int c = 0, at = 0; c < 4; c++)
        for (int p = 0; p < 6; p++)
            assert_int_equal((int)w[at++], p * 4 + c);
    l = describe(model, "d1", 1, LK_LAYOUT_KERAS, &arena);
    convert(&l, w);
    for (int i = 0; i < 5; i++)
        assert_int_equal((int)w[i], i);
    lk_model_destroy(model);
    lk_arena_clear(&arena);
}

/* What becomes an image has its features in that order too. */
static void test_features_to_images(void **state)
{
    (void)state;
    float w[512];
    struct lk_arena arena = {0};
    struct lk_model *model = read_model(flattened);
    const struct lk_shape image = lk_graph_find(lk_model_graph(model), "reshape_1")->shapes.y;
    const int64_t channels = image.dim[0], pixels = 12 / channels;
    struct lk_layout l = describe(model, "d2", 1, LK_LAYOUT_KERAS, &arena);
    convert(&l, w);
    for (int c = 0, at = 0; c < channels; c++)
        for (int p = 0; p < pixels; p++)
            assert_int_equal((int)w[at++], p * channels + c);
    l = describe(model, "d2", 0, LK_LAYOUT_TORCH, &arena); /* flattens as we do */
    assert_shape(&l, SHAPE(12, 5));
    convert(&l, w);
    for (int i = 0, at = 0; i < 5; i++)
        for (int k = 0; k < 12; k++)
            assert_int_equal((int)w[at++], k * 5 + i);
    lk_model_destroy(model);
    lk_arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keras_convolutions), cmocka_unit_test(test_keras_depthwise),
        cmocka_unit_test(test_torch_convolutions), cmocka_unit_test(test_features_of_images),
        cmocka_unit_test(test_features_to_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
