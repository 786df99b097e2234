/* Plane tiles: networks compute in them what they compute in batch tiles, also when weights
 * have changed, and take batch tiles where an operation cannot. */
#include "graph/rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct lk_node *join(struct network *net, const char *op, struct lk_node *a,
                            struct lk_node *b)
{
    struct lk_node *pair[] = {a, b}, *y = NULL;
    ASSERT_OK(lk_graph_add_many(net->graph, op, 2, pair, "", &y));
    return y;
}

static struct network begin(int side)
{
    const struct lk_input input = {"image",   LK_U8, {3, {CHANNELS, side, side}},
                                   1 / 255.0, 0,     false};
    struct network net = {0};
    ASSERT_OK(lk_graph_create(&net.graph));
    ASSERT_OK(lk_graph_add_input(net.graph, &input, &net.images));
    return net;
}

/* A residual block whose normalizations, sum and functions convolutions take over, factors for
 * its channels, a concatenation and both ways to a vector. */
static struct network make_blocks(void)
{
    struct network net = begin(SIDE);
    struct lk_node *stem =
        add(&net, "conv2d", net.images, "filters=12 padding=same bias=false");
    stem = add(&net, "relu", add(&net, "batch_norm", stem, ""), "");
    struct lk_node *x = add(&net, "conv2d", stem, "filters=12 groups=12 padding=same");
    x = add(&net, "clipped_relu", add(&net, "batch_norm", x, ""), "");
    x = add(&net, "batch_norm", add(&net, "conv2d", x, "filters=12 kernel=1"), "");
    x = add(&net, "relu", join(&net, "add", stem, x), "");
    struct lk_node *factors = add(&net, "global_average_pool", x, "");
    factors = add(&net, "sigmoid", add(&net, "dense", factors, "units=12"), "");
    x = join(&net, "multiply", x, factors);
    x = join(&net, "concat", x, add(&net, "max_pool", x, "size=3 stride=1 padding=same"));
    x = add(&net, "average_pool", add(&net, "batch_norm", x, ""), "size=2");
    x = add(&net, "silu", add(&net, "conv2d", x, "filters=9 kernel=3 padding=same"), "");
    x = add(&net, "relu6", add(&net, "conv2d", x, "filters=9 kernel=1"), "");
    x = add(&net, "conv2d", x, "filters=9 kernel=3 padding=same activation=relu");
    x = add(&net, "max_pool", x, "size=2");
    net.probabilities =
        add(&net, "softmax", add(&net, "dense", add(&net, "flatten", x, ""), "units=5"), "");
    return net;
}

/* What an image becomes stays an image. */
static struct network make_image(void)
{
    struct network net = begin(SIDE);
    net.probabilities = add(&net, "conv2d", net.images, "filters=5 kernel=3 stride=2");
    return net;
}

/* Winograd's algorithm has 7x7 of its tiles here, of which the last is alone in a vector. */
static struct network make_even_image(void)
{
    struct network net = begin(14);
    struct lk_node *x = add(&net, "conv2d", net.images, "filters=9 kernel=3 padding=same");
    net.probabilities = add(&net, "global_average_pool", add(&net, "relu", x, ""), "");
    return net;
}

/* More pixels than one work-group converts. */
static struct network make_large_image(void)
{
    struct network net = begin(93);
    net.probabilities = add(&net, "conv2d", net.images, "filters=5 kernel=3 stride=30");
    return net;
}

/* One operation of it has no kernels for planes. */
static struct network make_other(void)
{
    struct network net = begin(SIDE);
    struct lk_node *x = add(&net, "conv2d", net.images, "filters=5 kernel=3");
    net.probabilities = add(&net, "global_average_pool", add(&net, "upsample", x, ""), "");
    return net;
}

enum { FEW = 2, MOST = 512 };

static struct lk_replica *open_replica(struct lk_device *device, const struct network *net,
                                       bool few_samples, struct lk_choices *choices)
{
    struct lk_replica *replica = NULL;
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {net->probabilities},
                                             .batch = FEW,
                                             .shards = 1,
                                             .real = LK_F32,
                                             .choices = choices,
                                             .few_samples = few_samples};
    ASSERT_OK(lk_replica_create(&config, &replica));
    ASSERT_OK(lk_replica_build(replica));
    return replica;
}

static int64_t compute(struct lk_replica *replica, const struct network *net, float *values)
{
    struct lk_shape shape;
    uint8_t *images = lk_replica_slot(replica, net->images, 0);
    for (int i = 0; i < FEW * (int)lk_shape_count(&net->images->input.shape); i++)
        images[i] = (uint8_t)(i * 37 + i / 7);
    ASSERT_OK(lk_replica_load(replica, 0, FEW));
    ASSERT_OK(lk_replica_forward(replica, 0));
    const struct lk_buffer *y = lk_replica_output(replica, 0, &shape);
    const int64_t count = FEW * lk_shape_count(&shape);
    assert_true(count <= MOST);
    ASSERT_OK(lk_tiled_read(y, lk_replica_tiling(replica), &shape, LK_F32, FEW, values));
    ASSERT_OK(lk_replica_wait_slot(replica, 0));
    return count;
}

/* Twice with each weights: the second run finds what the first one packed, and from the third
 * on its launches are chained, which changes no bit. algorithm: of convolutions in plane tiles,
 * where it is possible. */
static void compare(struct network net, const char *algorithm, bool takes_planes)
{
    struct lk_device *device = NULL;
    struct lk_choices *choices = NULL;
    float plain[MOST], planes[MOST], first[MOST];
    setenv("LOCKSTEP_CLASS", "cpu", 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    unsetenv("LOCKSTEP_CLASS");
    ASSERT_OK(lk_choices_create(LK_MATH_NORMAL, &choices));
    ASSERT_OK(lk_choices_prefer(choices, algorithm));
    struct lk_replica *one = open_replica(device, &net, false, NULL);
    struct lk_replica *other = open_replica(device, &net, true, choices);
    assert_false(lk_replica_tiling(one)->planes);
    assert_int_equal(lk_replica_tiling(other)->planes, takes_planes);
    for (int turn = 0; turn < 4; turn++) {
        if (turn % 2 == 0) {
            ASSERT_OK(lk_replica_init_weights(one, (uint64_t)turn));
            ASSERT_OK(lk_replica_init_weights(other, (uint64_t)turn));
        }
        const int64_t count = compute(one, &net, plain);
        assert_int_equal(compute(other, &net, planes), count);
        for (int64_t i = 0; i < count; i++)
            assert_true(fabsf(plain[i] - planes[i]) <= 1e-5f * (1 + fabsf(plain[i])));
        assert_true(plain[0] != plain[count / FEW]);
        if (turn % 2 == 0)
            memcpy(first, planes, sizeof first);
        assert_memory_equal(planes, first, (size_t)count * sizeof *first);
    }
    lk_replica_destroy(one);
    lk_replica_destroy(other);
    lk_device_close(device);
    lk_graph_destroy(net.graph);
    lk_choices_destroy(choices);
}

static void blocks_agree(void **state)
{
    (void)state;
    compare(make_blocks(), "planes direct", true);
    compare(make_blocks(), "winograd2", true);
    compare(make_blocks(), "winograd4", true);
}

static void images_agree(void **state)
{
    (void)state;
    compare(make_image(), NULL, true);
    compare(make_even_image(), "winograd2", true);
    compare(make_large_image(), NULL, true);
}

static void check_batch(int side, int64_t asked, int64_t taken)
{
    struct lk_device *device = NULL;
    struct lk_replica *replica = NULL;
    struct network net = begin(side);
    setenv("LOCKSTEP_CLASS", "cpu", 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    unsetenv("LOCKSTEP_CLASS");
    net.probabilities = add(&net, "conv2d", net.images, "filters=4 kernel=3 padding=same");
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {net.probabilities},
                                             .batch = asked,
                                             .shards = 1,
                                             .real = LK_F32,
                                             .few_samples = true};
    ASSERT_OK(lk_replica_create(&config, &replica));
    assert_int_equal(lk_replica_batch(replica), taken);
    lk_replica_destroy(replica);
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

static void large_images_come_one_by_one(void **state)
{
    (void)state;
    check_batch(SIDE, 7, 7);
    check_batch(256, 7, 4); /* of 1 MiB each */
    check_batch(600, 7, 1);
}

/* As a predictor that serves has it: the weights of the one, each sample a shard of its own, of
 * which only those that came are computed. */
static void fewer_samples_agree(void **state)
{
    enum { ROOM = 4 };
    struct lk_device *device = NULL;
    struct lk_replica *few = NULL;
    struct network net = make_blocks();
    float plain[MOST], planes[MOST];
    (void)state;
    setenv("LOCKSTEP_CLASS", "cpu", 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    unsetenv("LOCKSTEP_CLASS");
    struct lk_replica *one = open_replica(device, &net, false, NULL);
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {net.probabilities},
                                             .batch = ROOM,
                                             .shards = ROOM,
                                             .real = LK_F32,
                                             .weights_of = one,
                                             .weights_stay = true,
                                             .few_samples = true};
    ASSERT_OK(lk_replica_create(&config, &few));
    ASSERT_OK(lk_replica_build(few));
    assert_true(lk_replica_tiling(few)->planes);
    assert_int_equal(lk_replica_bytes(few).weights, 0);
    ASSERT_OK(lk_replica_init_weights(one, 5));
    for (int samples = 1; samples <= FEW; samples++) {
        const struct lk_micro_batch used = {.shards = samples, .samples = samples};
        struct lk_shape shape;
        const int64_t count = compute(one, &net, plain) / FEW * samples;
        memcpy(lk_replica_slot(few, net.images, 0), lk_replica_slot(one, net.images, 0),
               (size_t)samples * CHANNELS * SIDE * SIDE);
        ASSERT_OK(lk_replica_load_micro_batch(few, 0, &used));
        ASSERT_OK(lk_replica_forward(few, 0));
        const struct lk_buffer *y = lk_replica_output(few, 0, &shape);
        ASSERT_OK(lk_tiled_read(y, lk_replica_tiling(few), &shape, LK_F32, samples, planes));
        ASSERT_OK(lk_replica_wait_slot(few, 0));
        for (int64_t i = 0; i < count; i++)
            assert_true(fabsf(plain[i] - planes[i]) <= 1e-5f * (1 + fabsf(plain[i])));
    }
    lk_replica_destroy(few);
    lk_replica_destroy(one);
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

static void others_take_batch_tiles(void **state)
{
    (void)state;
    compare(make_other(), NULL, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_agree),
        cmocka_unit_test(images_agree),
        cmocka_unit_test(large_images_come_one_by_one),
        cmocka_unit_test(fewer_samples_agree),
        cmocka_unit_test(others_take_batch_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
