/* Replicas: fusion, views, forks and the gradients of a whole network in double. */
#include "graph/rig.h"

#include "skip.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A network with a fork, a relu in front of a convolution, a fused pool, dropout and a view. */
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
    x = add(&net, "tanh", x, "");
    struct lk_node *fork[] = {x, add(&net, "conv2d", x, "filters=5 kernel=3 padding=same"), x};
    ASSERT_OK(lk_graph_add_many(net.graph, "add", 3, fork, "", &x));
    x = add(&net, "conv2d", x, "filters=4 kernel=2 activation=relu");
    x = add(&net, "conv2d", x, "filters=4 kernel=2 activation=relu");
    x = add(&net, "max_pool", x, "size=2");
    x = add(&net, "dropout", x, "rate=0.25");
    x = add(&net, "flatten", x, "");
    x = add(&net, "dense", x, "units=3");
    net.probabilities = add(&net, "softmax", x, "");
    struct lk_node *pair[] = {net.probabilities, net.labels};
    ASSERT_OK(lk_graph_add_many(net.graph, "cross_entropy", 2, pair, "", &net.loss));
    return net;
}

static void gradients_in_double(const char *kernel_class)
{
    struct lk_device *device = NULL;
    struct network net = make_network();
    setenv("LOCKSTEP_CLASS", kernel_class, 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    if (!lk_device_info(device)->has_fp64)
        SKIP_TEST("the device has no double precision");
    for (int shards = 1; shards <= 4; shards *= 4) {
        struct lk_replica *replica = make_replica(device, net.loss, LK_F64, shards, false);
        const int64_t samples = shards == 1 ? BATCH : BATCH - 4; /* a short batch, too */
        (void)total_loss(replica, &net, samples);
        const size_t bytes = lk_device_bytes(device);
        ASSERT_OK(lk_replica_backward(replica));
        assert_int_equal(lk_device_bytes(device), bytes);
        double *gradients = read_gradients(replica);
        for (int i = 0; lk_replica_param(replica, i); i++)
            check_parameter(replica, &net, i, gradients, samples);
        free(gradients);
        lk_replica_destroy(replica);
    }
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

static void gradients_on_cpu_kernels(void **state)
{
    (void)state;
    gradients_in_double("cpu");
}

static void gradients_on_gpu_kernels(void **state)
{
    (void)state;
    gradients_in_double("gpu");
}

static void frozen_nodes_have_no_gradient(void **state)
{
    (void)state;
    struct network net = make_network();
    struct lk_schedule schedule;
    lk_node_set_trainable(lk_graph_find(net.graph, "conv2d_1"), false);
    ASSERT_OK(lk_schedule_make((const struct lk_node *[]){net.loss, NULL}, true, &schedule));
    for (int i = 0; i < schedule.op_count; i++) {
        const struct lk_scheduled_op *scheduled = &schedule.ops[i];
        const bool is_frozen = strcmp(scheduled->node->name, "conv2d_1") == 0;
        const bool is_before = is_frozen || strcmp(scheduled->node->name, "tanh_1") == 0;
        assert_int_equal(scheduled->has_backward, !is_before);
        assert_int_equal(scheduled->wants_dw, !is_frozen && scheduled->shapes.params > 0);
    }
    lk_schedule_clear(&schedule);
    lk_graph_destroy(net.graph);
}

static void operations_are_absorbed(void **state)
{
    (void)state;
    struct network net = make_network();
    struct lk_schedule schedule;
    /* conv, tanh, conv, add, conv, conv with pool, dropout, dense, softmax with the loss */
    ASSERT_OK(lk_schedule_make((const struct lk_node *[]){net.loss, NULL}, true, &schedule));
    assert_int_equal(schedule.op_count, 9);
    assert_true(schedule.ops[8].shapes.is_loss);
    lk_schedule_clear(&schedule);
    /* predicting: dropout is a view, and labels are not needed */
    ASSERT_OK(lk_schedule_make((const struct lk_node *[]){net.probabilities, NULL}, false,
                               &schedule));
    assert_int_equal(schedule.op_count, 8);
    for (int v = 0; v < schedule.value_count; v++)
        assert_true(schedule.values[v].input != net.labels);
    lk_schedule_clear(&schedule);
    lk_graph_destroy(net.graph);
}

/* The convolutions that are asked to gate their inputs' gradients, one bit each. */
static unsigned find_gates(const struct lk_node *output)
{
    struct lk_schedule schedule;
    unsigned found = 0;
    ASSERT_OK(lk_schedule_make((const struct lk_node *[]){output, NULL}, true, &schedule));
    for (int i = 0; i < schedule.op_count; i++)
        if (strcmp(schedule.ops[i].op->name, "conv2d") == 0)
            found |= (unsigned)schedule.ops[i].asks_gate[0] << i;
    lk_schedule_clear(&schedule);
    return found;
}

/* Of a relu that one operation alone reads, which is then told that it need not. */
static void gradients_are_gated_by_readers(void **state)
{
    (void)state;
    struct network net = make_network();
    struct lk_node *relu = lk_graph_find(net.graph, "conv2d_3");
    struct lk_node *behind = lk_graph_find(net.graph, "conv2d_4");
    struct lk_schedule schedule;
    struct lk_op_setup setup;
    assert_int_equal(find_gates(net.loss), 1 << 5);
    assert_int_equal(find_gates(relu), 0);
    ASSERT_OK(lk_schedule_make((const struct lk_node *[]){net.loss, NULL}, true, &schedule));
    lk_schedule_describe(&schedule, 5, &setup);
    assert_true(setup.asks_gate[0]);
    lk_schedule_note_gates(&schedule, 5, &setup);
    lk_schedule_describe(&schedule, 4, &setup);
    assert_false(setup.dy_is_gated); /* it did not, although it was asked to */
    setup.gates_dx[0] = true;
    lk_schedule_note_gates(&schedule, 5, &setup);
    lk_schedule_describe(&schedule, 4, &setup);
    assert_true(setup.dy_is_gated);
    lk_schedule_clear(&schedule);
    /* two readers */
    struct lk_node *two[] = {behind, add(&net, "conv2d", relu, "filters=4 kernel=2")};
    struct lk_node *sum = NULL;
    ASSERT_OK(lk_graph_add_many(net.graph, "add", 2, two, "", &sum));
    assert_int_equal(find_gates(add(&net, "tanh", sum, "")), 0);
    /* no gradient is wanted */
    lk_node_set_trainable(relu, false);
    lk_node_set_trainable(lk_graph_find(net.graph, "conv2d_1"), false);
    lk_node_set_trainable(lk_graph_find(net.graph, "conv2d_2"), false);
    assert_int_equal(find_gates(net.loss), 0);
    lk_graph_destroy(net.graph);
}

static void repeats_to_the_bit(void **state)
{
    (void)state;
    struct lk_device *device = NULL;
    struct network net = make_network();
    setenv("LOCKSTEP_CLASS", "cpu", 1);
    float *first = NULL;
    for (int run = 0; run < 3; run++) {
        ASSERT_OK(lk_device_open(run == 2 ? "0/2" : NULL, 0, &device));
        struct lk_replica *replica = make_replica(device, net.loss, LK_F32, 2, false);
        const size_t bytes = lk_buffer_bytes(lk_replica_gradients(replica));
        float *gradients = malloc(bytes);
        load(replica, &net, BATCH);
        ASSERT_OK(lk_replica_forward(replica, 1));
        ASSERT_OK(lk_replica_backward(replica));
        ASSERT_OK(lk_buffer_read(lk_replica_gradients(replica), 0, bytes, gradients));
        if (first) {
            assert_memory_equal(first, gradients, bytes);
            free(gradients);
        } else {
            first = gradients;
        }
        lk_replica_destroy(replica);
        lk_device_close(device);
    }
    free(first);
    lk_graph_destroy(net.graph);
}

static void refuses(void **state)
{
    (void)state;
    struct lk_device *device = NULL;
    struct lk_replica *replica = NULL;
    struct network net = make_network();
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    struct lk_replica_config config = {
        .device = device, .outputs = {net.loss}, .batch = 8, .shards = 3, .training = true};
    assert_int_equal(lk_replica_create(&config, &replica), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "power of two"));
    lk_error_clear();
    config.shards = 1;
    config.batch = INT64_C(1) << 31;
    assert_int_equal(lk_replica_create(&config, &replica), LK_E_DEVICE_MEMORY);
    assert_null(replica);
    lk_error_clear();
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

/* The message of a refusal names a batch that can be had, and not one that is much too small.
 */
static void names_a_batch_that_fits(void **state)
{
    static const struct {
        int64_t batch;
        int shards, micro_batches;
    } cases[] = {{INT64_C(1) << 31, 1, 0}, {INT64_C(1) << 31, 8, 4}, {1234567891, 256, 0}};
    (void)state;
    struct lk_device *device = NULL;
    struct network net = make_network();
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_replica *replica = NULL;
        struct lk_replica_config config = {.device = device,
                                           .outputs = {net.loss},
                                           .batch = cases[i].batch,
                                           .shards = cases[i].shards,
                                           .micro_batches = cases[i].micro_batches,
                                           .training = true};
        const int micro_batches = config.micro_batches ? config.micro_batches : 1;
        assert_int_equal(lk_replica_create(&config, &replica), LK_E_DEVICE_MEMORY);
        const char *found = strstr(lk_error_text(), "a batch size of ");
        assert_non_null(found);
        const int64_t batch = atoll(found + strlen("a batch size of "));
        assert_int_equal(batch % micro_batches, 0);
        lk_error_clear();
        config.batch = batch / micro_batches;
        ASSERT_OK(lk_replica_create(&config, &replica));
        lk_replica_destroy(replica);
        config.batch += config.batch / 4;
        assert_int_equal(lk_replica_create(&config, &replica), LK_E_DEVICE_MEMORY);
        lk_error_clear();
    }
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_absorbed),
        cmocka_unit_test(frozen_nodes_have_no_gradient),
        cmocka_unit_test(gradients_are_gated_by_readers),
        cmocka_unit_test(gradients_on_cpu_kernels),
        cmocka_unit_test(gradients_on_gpu_kernels),
        cmocka_unit_test(repeats_to_the_bit),
        cmocka_unit_test(refuses),
        cmocka_unit_test(names_a_batch_that_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
