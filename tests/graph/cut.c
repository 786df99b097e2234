/* Frozen parts: what they do not keep, and that a replica of the head, given their values,
 * computes the bits of the whole. */
#include "graph/rig.h"

#include "base/half.h"
#include <stdlib.h>
#include <string.h>

/* Two values of the part up to "c2" are read behind it: that of "c2" and that of the pool. */
static struct network make_network(void)
{
    struct network net = {0};
    const struct lk_input images = {"image",   LK_U8, {3, {CHANNELS, SIDE, SIDE}},
                                    1 / 255.0, 0,     false};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    ASSERT_OK(lk_graph_create(&net.graph));
    ASSERT_OK(lk_graph_add_input(net.graph, &images, &net.images));
    ASSERT_OK(lk_graph_add_input(net.graph, &labels, &net.labels));
    struct lk_node *x = add(&net, "conv2d", net.images, "filters=5 kernel=3 padding=same");
    x = add(&net, "batch_norm", x, "activation=relu");
    struct lk_node *pool = add(&net, "max_pool", x, "size=3 stride=2");
    x = add(&net, "conv2d", pool, "filters=5 kernel=3 padding=same");
    struct lk_node *pair[] = {x, pool};
    x = add(&net, "conv2d", x, "filters=5 kernel=3 padding=same activation=relu");
    pair[0] = x;
    ASSERT_OK(lk_graph_add_many(net.graph, "add", 2, pair, "", &x));
    x = add(&net, "batch_norm", x, "");
    x = add(&net, "dropout", x, "rate=0.25");
    x = add(&net, "flatten", x, "");
    x = add(&net, "dense", x, "units=3");
    net.probabilities = add(&net, "softmax", x, "");
    struct lk_node *answer[] = {net.probabilities, net.labels};
    ASSERT_OK(lk_graph_add_many(net.graph, "cross_entropy", 2, answer, "", &net.loss));
    return net;
}

static void freeze(const struct network *net)
{
    static const char *const names[] = {"conv2d_1", "batch_norm_1", "conv2d_2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        lk_node_set_trainable(lk_graph_find(net->graph, names[i]), false);
}

static enum lk_status make_part(struct lk_device *device, const struct network *net,
                                enum lk_replica_part part, int shards, bool stores_half,
                                struct lk_replica *weights_of, struct lk_replica **replica)
{
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {net->loss},
                                             .batch = BATCH,
                                             .shards = shards,
                                             .real = LK_F32,
                                             .stores_half = stores_half,
                                             .training = true,
                                             .part = part,
                                             .weights_of = weights_of,
                                             .seed = 5};
    return lk_replica_create(&config, replica);
}

static struct lk_replica *open_part(struct lk_device *device, const struct network *net,
                                    enum lk_replica_part part, int shards, bool stores_half,
                                    struct lk_replica *weights_of)
{
    struct lk_replica *replica = NULL;
    ASSERT_OK(make_part(device, net, part, shards, stores_half, weights_of, &replica));
    ASSERT_OK(lk_replica_build(replica));
    if (!weights_of)
        ASSERT_OK(lk_replica_init_weights(replica, 7));
    return replica;
}

/* The bytes of all gradients; the caller frees them. */
static uint8_t *gradient_bytes(struct lk_replica *replica, size_t *bytes)
{
    *bytes = (size_t)lk_replica_gradient_count(replica) *
             (size_t)lk_replica_tiling(replica)->shards * sizeof(float);
    uint8_t *all = malloc(*bytes);
    ASSERT_OK(lk_buffer_read(lk_replica_gradients(replica), 0, *bytes, all));
    return all;
}

/* Copies the frozen part's values into the head's first slot, as floats. */
static void hand_over(struct lk_replica *frozen, struct lk_replica *head, int64_t samples)
{
    struct lk_shape shape, same;
    const struct lk_node *node;
    int count = 0;
    for (; (node = lk_replica_cut_value(head, count, &shape)) != NULL; count++) {
        const struct lk_buffer *y = lk_replica_output(frozen, count, &same);
        float *to = lk_replica_slot(head, node, 0);
        assert_true(lk_shape_equal(&shape, &same));
        assert_ptr_equal(lk_replica_cut_value(frozen, count, &same), node);
        assert_non_null(to);
        const int64_t all = samples * lk_shape_count(&shape);
        if (lk_replica_feature_dtype(frozen) == LK_F32) {
            ASSERT_OK(lk_tiled_read(y, lk_replica_tiling(frozen), &shape, LK_F32, samples, to));
            continue;
        }
        uint16_t *halves = malloc((size_t)all * sizeof *halves);
        ASSERT_OK(lk_tiled_read(y, lk_replica_tiling(frozen), &shape, LK_F16, samples, halves));
        for (int64_t i = 0; i < all; i++)
            to[i] = lk_half_value(halves[i]);
        free(halves);
    }
    assert_int_equal(count, 2);
}

static void compare(struct lk_device *device, int shards, bool stores_half)
{
    struct network net = make_network();
    freeze(&net);
    struct lk_replica *all = open_part(device, &net, LK_PART_ALL, shards, stores_half, NULL);
    struct lk_replica *head = open_part(device, &net, LK_PART_HEAD, shards, stores_half, NULL);
    struct lk_replica *frozen =
        open_part(device, &net, LK_PART_FROZEN, shards, stores_half, head);
    const int64_t samples = BATCH - 4;
    size_t bytes = 0, same = 0;
    /* what each part has */
    for (int i = 0; lk_replica_param(all, i); i++)
        assert_memory_equal(lk_replica_param(all, i), lk_replica_param(head, i),
                            sizeof *lk_replica_param(all, i));
    assert_int_equal(lk_replica_bucket_count(head), lk_replica_bucket_count(all));
    for (int b = 0; b < lk_replica_bucket_count(all); b++)
        assert_int_equal(lk_replica_bucket(head, b).first, lk_replica_bucket(all, b).first);
    assert_int_equal(lk_replica_bytes(frozen).gradients, 0);
    assert_true(lk_replica_bytes(head).activations < lk_replica_bytes(all).activations);
    assert_true(lk_replica_reads(frozen, net.images));
    assert_false(lk_replica_reads(frozen, net.labels));
    assert_false(lk_replica_reads(head, net.images));
    assert_true(lk_replica_reads(head, net.labels));
    assert_null(lk_replica_slot(head, net.images, 0));
    /* what they compute */
    load(all, &net, samples);
    ASSERT_OK(lk_replica_forward(all, 3));
    ASSERT_OK(lk_replica_backward(all));
    load(frozen, &net, samples);
    ASSERT_OK(lk_replica_forward(frozen, 0));
    hand_over(frozen, head, samples);
    struct network inputs = net;
    inputs.images = NULL;
    load(head, &inputs, samples);
    ASSERT_OK(lk_replica_forward(head, 3));
    ASSERT_OK(lk_replica_backward(head));
    uint8_t *expected = gradient_bytes(all, &bytes), *found = gradient_bytes(head, &same);
    assert_int_equal(bytes, same);
    assert_memory_equal(expected, found, bytes);
    bool is_any = false;
    for (size_t i = 0; i < bytes; i++)
        is_any |= expected[i] != 0;
    assert_true(is_any);
    free(expected);
    free(found);
    lk_replica_destroy(frozen);
    lk_replica_destroy(head);
    lk_replica_destroy(all);
    lk_graph_destroy(net.graph);
}

static void compare_on(const char *kernel_class)
{
    struct lk_device *device = NULL;
    setenv("LOCKSTEP_CLASS", kernel_class, 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    compare(device, 1, false);
    compare(device, 4, true);
    lk_device_close(device);
}

static void parts_have_the_bits_of_the_whole_on_cpu_kernels(void **state)
{
    (void)state;
    compare_on("cpu");
}

static void parts_have_the_bits_of_the_whole_on_gpu_kernels(void **state)
{
    (void)state;
    compare_on("gpu");
}

/* Activations and positions of maxima are kept only where backward will read them. */
static void frozen_entries_keep_nothing(void **state)
{
    (void)state;
    struct lk_device *device = NULL;
    struct network net = make_network();
    struct lk_replica *trained = NULL, *frozen = NULL;
    setenv("LOCKSTEP_CLASS", "cpu", 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    ASSERT_OK(make_part(device, &net, LK_PART_ALL, 1, false, NULL, &trained));
    freeze(&net);
    ASSERT_OK(make_part(device, &net, LK_PART_ALL, 1, false, NULL, &frozen));
    const struct lk_replica_bytes with = lk_replica_bytes(frozen);
    const struct lk_replica_bytes without = lk_replica_bytes(trained);
    assert_int_equal(with.weights, without.weights);
    assert_true(with.gradients < without.gradients);
    assert_true(with.activations < without.activations);
    int64_t gradients = 0;
    for (int b = 0; b < lk_replica_bucket_count(frozen); b++)
        gradients += lk_replica_bucket(frozen, b).count;
    assert_int_equal(gradients, lk_replica_gradient_count(frozen)); /* what is averaged */
    for (int i = 0; lk_replica_param(frozen, i); i++) {
        const struct lk_param *param = lk_replica_param(frozen, i);
        const bool is_frozen = strstr(param->name, "conv2d_1.") == param->name ||
                               strstr(param->name, "conv2d_2.") == param->name ||
                               strstr(param->name, "batch_norm_1.") == param->name;
        assert_int_equal(param->has_gradient, !is_frozen);
        assert_int_equal(param->offset >= lk_replica_gradient_count(frozen), is_frozen);
    }
    lk_replica_destroy(frozen);
    lk_replica_destroy(trained);
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

static void refuses_where_nothing_is_frozen(void **state)
{
    (void)state;
    struct lk_device *device = NULL;
    struct network net = make_network();
    struct lk_replica *replica = NULL;
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    /* what is frozen behind the first trained entry is no part that never changes */
    lk_node_set_trainable(lk_graph_find(net.graph, "conv2d_2"), false);
    for (int part = LK_PART_FROZEN; part <= LK_PART_HEAD; part++) {
        assert_int_equal(
            make_part(device, &net, (enum lk_replica_part)part, 1, false, NULL, &replica),
            LK_E_ARGUMENT);
        assert_non_null(strstr(lk_error_text(), "no frozen parameters"));
        lk_error_clear();
    }
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_the_bits_of_the_whole_on_cpu_kernels),
        cmocka_unit_test(parts_have_the_bits_of_the_whole_on_gpu_kernels),
        cmocka_unit_test(frozen_entries_keep_nothing),
        cmocka_unit_test(refuses_where_nothing_is_frozen),
    };
    return cmocka_run_group_tests_name("graph/cut", tests, NULL, NULL);
}
