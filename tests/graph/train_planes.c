/* Training in plane tiles: gradients are those of batch tiles but for rounding, and those of
 * finite differences; a shard has the same bits whoever computes it with which others; models
 * whose work is elsewhere keep batch tiles. */
#include "graph/planes.h"
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

static struct network begin(void)
{
    struct lk_input input = {"image", LK_U8, {3, {CHANNELS, SIDE, SIDE}}, 1 / 255.0, 0, false};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    struct network net = {0};
    ASSERT_OK(lk_graph_create(&net.graph));
    ASSERT_OK(lk_graph_add_input(net.graph, &input, &net.images));
    ASSERT_OK(lk_graph_add_input(net.graph, &labels, &net.labels));
    return net;
}

static void end(struct network *net, struct lk_node *x)
{
    net->probabilities = add(net, "softmax", add(net, "dense", x, "units=3"), "");
    net->loss = join(net, "cross_entropy", net->probabilities, net->labels);
}

/* A stem whose pool the convolution takes over; a residual block with a depthwise convolution
 * and a way round it with strides; factors for its channels, which are made and multiplied in
 * batch tiles; a concatenation; pools of both kinds; groups; an image that two read as a
 * vector, of which one is a view. */
static struct network make_blocks(void)
{
    struct network net = begin();
    struct lk_node *stem = add(&net, "conv2d", net.images, "filters=6 kernel=3 padding=same");
    stem = add(&net, "tanh", add(&net, "batch_norm", stem, ""), "");
    struct lk_node *x = add(&net, "conv2d", stem, "filters=6 groups=6 stride=2 padding=same");
    x = add(&net, "relu", add(&net, "batch_norm", x, ""), "");
    x = add(&net, "batch_norm", add(&net, "conv2d", x, "filters=7 kernel=1 bias=false"), "");
    x = join(&net, "add", x, add(&net, "conv2d", stem, "filters=7 kernel=1 stride=2"));
    x = add(&net, "relu", x, "");
    struct lk_node *factors = add(&net, "global_average_pool", x, "");
    factors = add(&net, "sigmoid", add(&net, "dense", factors, "units=7"), "");
    x = join(&net, "multiply", x, factors);
    x = join(&net, "concat", x, add(&net, "max_pool", x, "size=3 stride=1 padding=same"));
    x = add(&net, "silu", add(&net, "conv2d", x, "filters=6 kernel=3 groups=2 padding=same"),
            "");
    x = join(&net, "concat", x, add(&net, "average_pool", x, "size=2 stride=1 padding=same"));
    x = add(&net, "conv2d", x, "filters=5 kernel=3 padding=same activation=relu pool=true");
    struct lk_node *both =
        join(&net, "concat", add(&net, "flatten", x, ""), add(&net, "global_max_pool", x, ""));
    end(&net, both);
    return net;
}

/* Most of the work is that of an operation which plane tiles have no kernels for. */
static struct network make_other(void)
{
    struct network net = begin();
    struct lk_node *x = add(&net, "conv2d", net.images, "filters=2 kernel=1");
    x = add(&net, "conv2d_transpose", x, "filters=9 kernel=3");
    end(&net, add(&net, "flatten", x, ""));
    return net;
}

static struct lk_device *open_cpu(void)
{
    struct lk_device *device = NULL;
    setenv("LOCKSTEP_CLASS", "cpu", 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    unsetenv("LOCKSTEP_CLASS");
    return device;
}

static struct lk_replica *open_replica(const struct network *net, enum lk_dtype real,
                                       bool few_samples, struct lk_device *device,
                                       struct lk_choices *choices)
{
    struct lk_replica *replica = NULL;
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {net->loss},
                                             .batch = BATCH,
                                             .shards = 8,
                                             .real = real,
                                             .training = true,
                                             .seed = 5,
                                             .few_samples = few_samples,
                                             .choices = choices};
    ASSERT_OK(lk_replica_create(&config, &replica));
    ASSERT_OK(lk_replica_build(replica));
    ASSERT_OK(lk_replica_init_weights(replica, 7));
    return replica;
}

/* Of all shards, as they lie. Two steps: what is left of the first must not matter. */
static void *step(struct lk_replica *replica, const struct network *net, int shards,
                  size_t *bytes)
{
    const int64_t each = lk_replica_tiling(replica)->shard_samples;
    const struct lk_micro_batch some = {.shards = shards,
                                        .samples = lk_least(shards * each, BATCH - 1)};
    *bytes = lk_replica_bytes(replica).gradients;
    void *gradients = malloc(*bytes);
    for (int turn = 0; turn < 2; turn++) {
        fill(replica, net, 0);
        ASSERT_OK(lk_replica_load_micro_batch(replica, 0, &some));
        ASSERT_OK(lk_replica_forward(replica, 1));
        ASSERT_OK(lk_replica_backward(replica));
        ASSERT_OK(lk_replica_wait_slot(replica, 0));
    }
    ASSERT_OK(lk_buffer_read(lk_replica_gradients(replica), 0, *bytes, gradients));
    return gradients;
}

/* Parameter by parameter, by the length of what differs. */
static void compare(const struct lk_replica *replica, const double *a, const double *b)
{
    const struct lk_param *param;
    const int64_t stride = lk_replica_gradient_stride(replica);
    for (int i = 0; (param = lk_replica_param(replica, i)); i++) {
        double apart = 0, all = 0;
        for (int shard = 0; shard < 8; shard++)
            for (int64_t e = 0; e < param->count; e++) {
                const int64_t at = shard * stride + param->gradient_at + e;
                apart += (a[at] - b[at]) * (a[at] - b[at]);
                all += a[at] * a[at];
            }
        /* a bias before a batch normalization has none, but for rounding */
        if (!(sqrt(apart) <= 1e-10 * sqrt(all) + 1e-12))
            fail_msg("%s: apart by %g of %g", param->name, sqrt(apart), sqrt(all));
    }
}

static void gradients_are_those_of_batch_tiles(void **state)
{
    size_t bytes;
    struct network net = make_blocks();
    struct lk_device *device = open_cpu();
    (void)state;
    struct lk_replica *one = open_replica(&net, LK_F64, false, device, NULL);
    struct lk_replica *other = open_replica(&net, LK_F64, true, device, NULL);
    assert_false(lk_replica_has_planes(one));
    assert_true(lk_replica_has_planes(other));
    double *a = step(one, &net, 8, &bytes), *b = step(other, &net, 8, &bytes);
    compare(one, a, b);
    free(a);
    free(b);
    lk_replica_destroy(one);
    lk_replica_destroy(other);
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

/* The means that batch normalization takes over a shard make losses of a small shard curved, so
 * gradients of whole batches are checked by those of batch tiles above; here all others. */
static void gradients_are_slopes(void **state)
{
    struct network net = begin();
    struct lk_device *device = open_cpu();
    (void)state;
    struct lk_node *x =
        add(&net, "conv2d", net.images, "filters=6 kernel=3 stride=2 padding=same");
    x = add(&net, "silu", x, "");
    x = join(&net, "add", x, add(&net, "conv2d", x, "filters=6 groups=6 padding=same"));
    x = add(&net, "conv2d", x, "filters=5 kernel=2 activation=relu");
    end(&net, add(&net, "flatten", add(&net, "max_pool", x, "size=2"), ""));
    struct lk_replica *replica = open_replica(&net, LK_F64, true, device, NULL);
    assert_true(lk_replica_has_planes(replica));
    total_loss(replica, &net, BATCH);
    ASSERT_OK(lk_replica_backward(replica));
    double *gradients = read_gradients(replica);
    for (int i = 0; lk_replica_param(replica, i); i++)
        check_parameter(replica, &net, i, gradients, BATCH);
    free(gradients);
    lk_replica_destroy(replica);
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

/* With each algorithm: first all shards at once, then fewer. */
static void shards_have_their_own_bits(void **state)
{
    static const char *const algorithms[] = {"planes direct", "winograd2", "planes_winograd2",
                                             "planes_winograd4"};
    struct network net = make_blocks();
    struct lk_device *device = open_cpu();
    (void)state;
    for (int i = 0; i < LK_COUNT(algorithms); i++) {
        size_t bytes;
        struct lk_choices *choices = NULL;
        ASSERT_OK(lk_choices_create(LK_MATH_NORMAL, &choices));
        ASSERT_OK(lk_choices_prefer(choices, algorithms[i]));
        struct lk_replica *replica = open_replica(&net, LK_F32, true, device, choices);
        char *all = step(replica, &net, 8, &bytes), *some = step(replica, &net, 3, &bytes);
        assert_memory_equal(all, some, bytes / 8 * 3);
        free(all);
        free(some);
        lk_replica_destroy(replica);
        lk_choices_destroy(choices);
    }
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

static void others_keep_batch_tiles(void **state)
{
    struct network net = make_other();
    struct lk_device *device = open_cpu();
    (void)state;
    struct lk_replica *replica = open_replica(&net, LK_F32, true, device, NULL);
    assert_false(lk_replica_has_planes(replica));
    lk_replica_destroy(replica);
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_batch_tiles),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(shards_have_their_own_bits),
        cmocka_unit_test(others_keep_batch_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
