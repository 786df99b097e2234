/* Backward that computes activations again: the same gradients to the bit in less memory, as
 * little work as the memory allows, and a refusal that names the least memory. */
#include "graph/rig.h"

#include "device/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds batch normalization, dropout and a convolution, whose pool keeps positions. */
static struct lk_node *add_block(struct network *net, struct lk_node *x, int i)
{
    char options[64];
    snprintf(options, sizeof options, "filters=%d kernel=3 padding=same", 4 + i % 2);
    x = add(net, "conv2d", x, options);
    x = add(net, "batch_norm", x, i % 3 ? "activation=relu" : "");
    if (i % 3 == 1)
        x = add(net, "dropout", x, "rate=0.3");
    if (i == 4)
        x = add(net, "max_pool", x, "size=2");
    return x;
}

/* Twelve blocks with branches that are added, then two losses, of which one is taken in the
 * middle. With `shares` a convolution is used three times. */
static struct network make_network(bool shares)
{
    struct lk_input input = {"image", LK_U8, {3, {CHANNELS, SIDE, SIDE}}, 1 / 255.0, 0, false};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    struct network net = {0};
    struct lk_node *losses[2], *pair[2];
    ASSERT_OK(lk_graph_create(&net.graph));
    ASSERT_OK(lk_graph_add_input(net.graph, &input, &net.images));
    ASSERT_OK(lk_graph_add_input(net.graph, &labels, &net.labels));
    struct lk_node *x = net.images, *before = NULL, *middle = NULL;
    for (int i = 0; i < 12; i++) {
        x = add_block(&net, x, i);
        if (i == 5)
            middle = x;
        if (i % 4 == 1)
            before = x;
        if (i % 4 == 3 && i > 4) {
            pair[0] = x;
            pair[1] = before;
            ASSERT_OK(lk_graph_add_many(net.graph, "add", 2, pair, "", &x));
        }
    }
    if (shares) {
        struct lk_node *owner = x = add(&net, "conv2d", x, "filters=5 kernel=1");
        for (int i = 0; i < 2; i++) {
            x = add(&net, "conv2d", add(&net, "tanh", x, ""), "filters=5 kernel=1");
            ASSERT_OK(lk_node_share_weights(x, owner));
        }
    }
    struct lk_node *ends[] = {x, middle};
    for (int i = 0; i < 2; i++) {
        struct lk_node *flat = add(&net, "flatten", ends[i], "");
        pair[0] = add(&net, "softmax", add(&net, "dense", flat, "units=3"), "");
        pair[1] = net.labels;
        ASSERT_OK(lk_graph_add_many(net.graph, "cross_entropy", 2, pair, "", &losses[i]));
    }
    ASSERT_OK(lk_graph_add_many(net.graph, "sum_losses", 2, losses, "", &net.loss));
    return net;
}

struct outcome {
    unsigned char *gradients;
    size_t bytes, memory;
    double again, loss;
};

/* Two steps, backward bucket by bucket: a buffer that is used too long holds values of the
 * first.
 */
static struct outcome run(const struct network *net, struct lk_replica_config config)
{
    struct lk_replica *replica = NULL;
    struct outcome o = {0};
    ASSERT_OK(lk_replica_create(&config, &replica));
    ASSERT_OK(lk_replica_build(replica));
    ASSERT_OK(lk_replica_init_weights(replica, 7));
    const size_t held = lk_device_bytes(config.device);
    for (int step = 1; step <= 2; step++) {
        load(replica, net, BATCH - step);
        ASSERT_OK(lk_replica_forward(replica, step));
        for (int b = 0; b < lk_replica_bucket_count(replica); b++)
            ASSERT_OK(lk_replica_backward_bucket(replica, b));
    }
    assert_int_equal(lk_device_bytes(config.device), held);
    assert_int_equal(lk_device_peak_bytes(config.device), held);
    o.bytes = lk_replica_bytes(replica).gradients;
    o.memory = lk_replica_bytes(replica).total;
    o.again = lk_replica_bytes(replica).again;
    o.gradients = malloc(o.bytes);
    ASSERT_OK(lk_buffer_read(lk_replica_gradients(replica), 0, o.bytes, o.gradients));
    lk_replica_destroy(replica);
    return o;
}

static void check_equal(const struct outcome *a, const struct outcome *b)
{
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->gradients, b->gradients, a->bytes);
}

/* A network with all that makes a step hard to repeat, kept and computed again. */
static void check_network(bool shares, enum lk_dtype real, bool stores_half)
{
    struct lk_device *device = NULL;
    struct network net = make_network(shares);
    struct lk_replica_config config = {.outputs = {net.loss},
                                       .batch = BATCH,
                                       .shards = 4,
                                       .real = real,
                                       .stores_half = stores_half,
                                       .training = true,
                                       .seed = 5};
    struct outcome outcomes[3];
    for (int mode = LK_RECOMPUTE_OFF; mode <= LK_RECOMPUTE_AUTO; mode++) {
        ASSERT_OK(lk_device_open(NULL, 0, &device)); /* anew: its peak counts from there */
        config.device = device;
        config.recompute = (enum lk_recompute_mode)mode;
        if (mode == LK_RECOMPUTE_AUTO)
            lk_device_limit_memory(device, outcomes[0].memory);
        outcomes[mode] = run(&net, config);
        lk_device_close(device);
    }
    for (int mode = LK_RECOMPUTE_SQRT; mode <= LK_RECOMPUTE_AUTO; mode++) {
        check_equal(&outcomes[0], &outcomes[mode]);
        assert_true(outcomes[mode].memory < outcomes[0].memory);
        assert_true(outcomes[mode].again > 0 && outcomes[mode].again < 1);
    }
    assert_true(outcomes[LK_RECOMPUTE_OFF].again == 0);
    assert_true(outcomes[LK_RECOMPUTE_AUTO].again < outcomes[LK_RECOMPUTE_SQRT].again);
    for (int mode = 0; mode < 3; mode++)
        free(outcomes[mode].gradients);
    lk_graph_destroy(net.graph);
}

static void computes_the_same_gradients(void **state)
{
    (void)state;
    check_network(false, LK_F32, false);
    check_network(true, LK_F64, false);
}

static void computes_the_same_halves(void **state)
{
    (void)state;
    check_network(true, LK_F32, true);
}

/* The tighter the limit, the more is computed again; what fits without is left as it was; what
 * does not fit at all is refused with the least memory that it would take. */
static void fits_a_limit(void **state)
{
    struct lk_device *device = NULL;
    struct lk_replica *replica = NULL;
    struct network net = make_network(false);
    (void)state;
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    struct lk_replica_config config = {.device = device,
                                       .outputs = {net.loss},
                                       .batch = 512,
                                       .shards = 1,
                                       .training = true,
                                       .recompute = LK_RECOMPUTE_AUTO};
    ASSERT_OK(lk_replica_create(&config, &replica));
    const size_t kept = lk_replica_bytes(replica).total;
    assert_true(lk_replica_bytes(replica).again == 0);
    lk_replica_destroy(replica);
    double again = 0;
    size_t bytes = kept, limit = kept;
    int fitted = 0;
    for (;; limit -= limit / 16, fitted++) {
        lk_device_limit_memory(device, limit);
        if (lk_replica_create(&config, &replica) != LK_OK)
            break;
        const struct lk_replica_bytes now = lk_replica_bytes(replica);
        assert_true((double)now.total <= 0.95 * (double)limit);
        assert_true(now.again >= again && now.again > 0);
        again = now.again;
        bytes = now.total;
        lk_replica_destroy(replica);
    }
    assert_true(fitted > 2);
    assert_true(bytes < kept * 3 / 4);
    assert_non_null(strstr(lk_error_text(), "with activations computed again, needs "));
    lk_error_clear();
    config.recompute = LK_RECOMPUTE_OFF;
    assert_int_equal(lk_replica_create(&config, &replica), LK_E_DEVICE_MEMORY);
    assert_null(strstr(lk_error_text(), "computed again"));
    lk_error_clear();
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

/* Without backward there is nothing to be computed again. */
static void leaves_forward_alone(void **state)
{
    struct lk_device *device = NULL;
    struct lk_replica *replica = NULL;
    struct network net = make_network(false);
    (void)state;
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {net.loss},
                                             .batch = 16,
                                             .shards = 1,
                                             .recompute = LK_RECOMPUTE_SQRT};
    ASSERT_OK(lk_replica_create(&config, &replica));
    assert_true(lk_replica_bytes(replica).again == 0);
    lk_replica_destroy(replica);
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_the_same_gradients),
        cmocka_unit_test(computes_the_same_halves),
        cmocka_unit_test(fits_a_limit),
        cmocka_unit_test(leaves_forward_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
