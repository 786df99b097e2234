/* Nodes that share weights: gradients of all uses, the same bits however a batch is split, and
 * what cannot be shared. */
#include "graph/rig.h"

#include "skip.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same, with the weights of `owner`. */
static struct lk_node *add_like(struct network *net, struct lk_node *owner, struct lk_node *x,
                                const char *options)
{
    struct lk_node *y = add(net, lk_node_info(owner).op, x, options);
    ASSERT_OK(lk_node_share_weights(y, owner));
    return y;
}

static void begin(struct network *net, int inputs)
{
    struct lk_input input = {"image", LK_U8, {3, {CHANNELS, SIDE, SIDE}}, 1 / 255.0, 0, false};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    *net = (struct network){0};
    ASSERT_OK(lk_graph_create(&net->graph));
    ASSERT_OK(lk_graph_add_input(net->graph, &input, &net->images));
    input.name = "other";
    if (inputs == 2)
        ASSERT_OK(lk_graph_add_input(net->graph, &input, &net->others));
    ASSERT_OK(lk_graph_add_input(net->graph, &labels, &net->labels));
}

static void end(struct network *net, struct lk_node *x)
{
    struct lk_node *pair[] = {add(net, "softmax", x, ""), net->labels};
    ASSERT_OK(lk_graph_add_many(net->graph, "cross_entropy", 2, pair, "", &net->loss));
}

/* A convolution used three times (once with another stride and a relu that it takes over), and
 * a dense layer used twice, the way of a loop that is unrolled. */
static struct network make_loops(void)
{
    struct network net;
    begin(&net, 1);
    struct lk_node *x = add(&net, "conv2d", net.images, "filters=4 kernel=1");
    struct lk_node *conv = x = add(&net, "conv2d", x, "filters=4 kernel=3 padding=same");
    x = add(&net, "tanh", x, "");
    x = add_like(&net, conv, x, "filters=4 kernel=3 padding=same activation=relu");
    x = add_like(&net, conv, x, "filters=4 kernel=3 stride=2");
    x = add(&net, "flatten", x, "");
    x = add(&net, "dense", x, "units=5 activation=relu");
    struct lk_node *dense = x = add(&net, "dense", x, "units=5");
    x = add(&net, "tanh", x, "");
    x = add_like(&net, dense, x, "units=5");
    x = add(&net, "dense", x, "units=3");
    end(&net, x);
    return net;
}

/* Two inputs through one tower, then compared. */
static struct network make_siamese(void)
{
    struct network net;
    struct lk_node *sides[2], *x;
    begin(&net, 2);
    struct lk_node *conv = add(&net, "conv2d", net.images, "filters=3 kernel=3");
    struct lk_node *pool = add(&net, "max_pool", add(&net, "tanh", conv, ""), "size=2");
    struct lk_node *dense = add(&net, "dense", add(&net, "flatten", pool, ""), "units=6");
    sides[0] = dense;
    x = add_like(&net, conv, net.others, "filters=3 kernel=3");
    x = add(&net, "max_pool", add(&net, "tanh", x, ""), "size=2");
    sides[1] = add_like(&net, dense, add(&net, "flatten", x, ""), "units=6");
    ASSERT_OK(lk_graph_add_many(net.graph, "multiply", 2, sides, "", &x));
    end(&net, add(&net, "dense", x, "units=3"));
    return net;
}

/* What lies between parameters stays 0, for the optimizer runs over it. */
static void check_padding(struct lk_replica *replica, const double *gradients)
{
    int64_t at = 0;
    for (int i = 0; lk_replica_param(replica, i); i++) {
        const struct lk_param *param = lk_replica_param(replica, i);
        for (; at < param->offset; at++)
            assert_true(gradients[at] == 0);
        at = param->offset + param->count;
    }
}

static void check_gradients(struct network (*make)(void), const char *kernel_class, int params)
{
    struct lk_device *device = NULL;
    struct network net = make();
    setenv("LOCKSTEP_CLASS", kernel_class, 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    if (!lk_device_info(device)->has_fp64) {
        lk_device_close(device);
        lk_graph_destroy(net.graph);
        SKIP_TEST("the device has no double precision");
    }
    for (int shards = 1; shards <= 4; shards *= 4) {
        struct lk_replica *replica = make_replica(device, net.loss, LK_F64, shards, false);
        const int64_t samples = shards == 1 ? BATCH : BATCH - 4; /* a short batch, too */
        (void)total_loss(replica, &net, samples);
        const size_t bytes = lk_device_bytes(device);
        ASSERT_OK(lk_replica_backward(replica));
        assert_int_equal(lk_device_bytes(device), bytes);
        double *gradients = read_gradients(replica);
        check_padding(replica, gradients);
        int count = 0;
        for (; lk_replica_param(replica, count); count++)
            check_parameter(replica, &net, count, gradients, samples);
        assert_int_equal(count, params);
        free(gradients);
        lk_replica_destroy(replica);
    }
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

static void gradients_on_cpu_kernels(void **state)
{
    (void)state;
    check_gradients(make_loops, "cpu", 10);
    check_gradients(make_siamese, "cpu", 6);
}

static void gradients_on_gpu_kernels(void **state)
{
    (void)state;
    check_gradients(make_loops, "gpu", 10);
    check_gradients(make_siamese, "gpu", 6);
}

/* The gradients of one pass, which the caller frees. */
static float *run(const struct network *net, struct lk_device *device, bool stores_half,
                  bool by_bucket, size_t *bytes)
{
    struct lk_replica *replica = make_replica(device, net->loss, LK_F32, 2, stores_half);
    *bytes = lk_buffer_bytes(lk_replica_gradients(replica));
    float *gradients = malloc(*bytes);
    load(replica, net, BATCH);
    ASSERT_OK(lk_replica_forward(replica, 1));
    for (int i = 0; by_bucket && i < lk_replica_bucket_count(replica); i++)
        ASSERT_OK(lk_replica_backward_bucket(replica, i));
    if (!by_bucket)
        ASSERT_OK(lk_replica_backward(replica));
    ASSERT_OK(lk_buffer_read(lk_replica_gradients(replica), 0, *bytes, gradients));
    lk_replica_destroy(replica);
    return gradients;
}

/* On a whole device and on half of one, in one go and bucket by bucket; halves in memory are
 * near. */
static void repeats_to_the_bit(void **state)
{
    (void)state;
    struct lk_device *device = NULL;
    struct network net = make_loops();
    setenv("LOCKSTEP_CLASS", "cpu", 1);
    float *first = NULL;
    for (int i = 0; i < 4; i++) {
        size_t bytes = 0;
        ASSERT_OK(lk_device_open(i == 2 ? "0/2" : NULL, 0, &device));
        float *gradients = run(&net, device, i == 3, i == 1, &bytes);
        for (size_t e = 0; i == 3 && e < bytes / sizeof *first; e++)
            if (!(fabsf(gradients[e] - first[e]) <= 0.05F * fabsf(first[e]) + 0.02F))
                fail_msg("element %zu: %g with halves, %g without", e, (double)gradients[e],
                         (double)first[e]);
        if (i == 1 || i == 2)
            assert_memory_equal(first, gradients, bytes);
        lk_device_close(device);
        if (i > 0)
            free(gradients);
        else
            first = gradients;
    }
    free(first);
    lk_graph_destroy(net.graph);
}

/* A bucket of shared parameters is there when backward has come to their first use, and not
 * before: the second dense layer is used behind the third, whose bucket is the first. */
static void buckets_end_with_the_first_use(void **state)
{
    (void)state;
    struct lk_device *device = NULL;
    struct network net;
    begin(&net, 1);
    struct lk_node *x = add(&net, "flatten", net.images, "");
    x = add(&net, "dense", x, "units=600 activation=relu");
    struct lk_node *shared = x = add(&net, "dense", x, "units=600 activation=relu");
    x = add(&net, "dense", x, "units=600 activation=relu");
    x = add_like(&net, shared, x, "units=600 activation=relu");
    end(&net, add(&net, "dense", x, "units=3"));
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    struct lk_replica *replica = make_replica(device, net.loss, LK_F32, 1, false);
    const size_t bytes = lk_buffer_bytes(lk_replica_gradients(replica));
    float *now = malloc(bytes), *last = malloc(bytes);
    load(replica, &net, BATCH);
    ASSERT_OK(lk_replica_forward(replica, 1));
    ASSERT_OK(lk_replica_backward(replica));
    ASSERT_OK(lk_buffer_read(lk_replica_gradients(replica), 0, bytes, last));
    assert_int_equal(lk_replica_bucket_count(replica), 3);
    load(replica, &net, BATCH);
    ASSERT_OK(lk_replica_forward(replica, 1));
    for (int i = 0; i < 3; i++) {
        const struct lk_bucket b = lk_replica_bucket(replica, i);
        ASSERT_OK(lk_replica_backward_bucket(replica, i));
        ASSERT_OK(lk_buffer_read(lk_replica_gradients(replica), 0, bytes, now));
        assert_memory_equal(now + b.first, last + b.first, (size_t)b.count * sizeof *now);
        const struct lk_bucket next = lk_replica_bucket(replica, 1);
        if (i == 0) /* of two uses one is there */
            assert_memory_not_equal(now + next.first, last + next.first,
                                    (size_t)next.count * sizeof *now);
    }
    free(now);
    free(last);
    lk_replica_destroy(replica);
    lk_device_close(device);
    lk_graph_destroy(net.graph);
}

static void names_and_counts_once(void **state)
{
    (void)state;
    struct network net = make_loops();
    const struct lk_node *owner = lk_graph_find(net.graph, "conv2d_2");
    const struct lk_node *other = lk_graph_find(net.graph, "conv2d_3");
    struct lk_schedule schedule;
    assert_int_equal(lk_node_info(owner).parameters, 4 * 4 * 9 + 4);
    assert_null(lk_node_info(owner).weights_of);
    assert_int_equal(lk_node_info(other).parameters, 0);
    assert_int_equal(lk_node_info(other).trained, 0);
    assert_string_equal(lk_node_info(other).weights_of, "conv2d_2");
    /* the owner's setting counts */
    lk_node_set_trainable(lk_graph_find(net.graph, "conv2d_2"), false);
    assert_false(lk_node_info(other).is_trainable);
    ASSERT_OK(lk_schedule_make((const struct lk_node *[]){net.loss, NULL}, true, &schedule));
    for (int i = 0; i < schedule.op_count; i++)
        if (lk_node_owner(schedule.ops[i].node) == owner)
            assert_false(schedule.ops[i].wants_dw);
    lk_schedule_clear(&schedule);
    lk_graph_destroy(net.graph);
}

static void check_refused(struct lk_node *node, struct lk_node *owner, enum lk_status code,
                          const char *said)
{
    lk_error_clear();
    const enum lk_status status = lk_node_share_weights(node, owner);
    if (status != code || !strstr(lk_error_text(), said))
        fail_msg("gave %d '%s', expected '%s'", (int)status, lk_error_text(), said);
    lk_error_clear();
}

static void refuses(void **state)
{
    (void)state;
    struct network net, strange;
    begin(&net, 1);
    begin(&strange, 1);
    struct lk_node *a = add(&net, "conv2d", net.images, "filters=2 kernel=3");
    struct lk_node *b = add(&net, "conv2d", a, "filters=2 kernel=3");
    struct lk_node *c = add(&net, "conv2d", b, "filters=2 kernel=3");
    struct lk_node *wide = add(&net, "conv2d", a, "filters=4 kernel=3");
    struct lk_node *bare = add(&net, "conv2d", a, "filters=2 kernel=3 bias=false");
    struct lk_node *relu = add(&net, "relu", a, ""), *again = add(&net, "relu", a, "");
    struct lk_node *norm = add(&net, "batch_norm", a, ""),
                   *twin = add(&net, "batch_norm", a, "");
    struct lk_node *elsewhere = add(&strange, "conv2d", strange.images, "filters=2 kernel=3");
    check_refused(b, NULL, LK_E_ARGUMENT, "two nodes of one graph");
    check_refused(b, elsewhere, LK_E_ARGUMENT, "two nodes of one graph");
    check_refused(b, b, LK_E_ARGUMENT, "'conv2d_2' cannot have its own weights of itself");
    check_refused(relu, a, LK_E_ARGUMENT,
                  "'relu_1' is relu, 'conv2d_1', whose weights it is to have, is conv2d");
    check_refused(net.images, a, LK_E_ARGUMENT, "'image' is an input");
    check_refused(a, b, LK_E_ARGUMENT, "'conv2d_2', which stands behind it");
    check_refused(again, relu, LK_E_ARGUMENT, "'relu_1' has no weights that could be shared");
    check_refused(wide, a, LK_E_SHAPE,
                  "'conv2d_4.weight' is [2, 3, 3, 4], 'conv2d_1.weight' is [2, 3, 3, 2]");
    check_refused(bare, a, LK_E_SHAPE, "'conv2d_5' has 1 parameters, 'conv2d_1' has 2");
    check_refused(twin, norm, LK_E_UNSUPPORTED,
                  "'batch_norm_1' has moving averages ('moving_mean')");
    ASSERT_OK(lk_node_share_weights(b, a));
    check_refused(c, b, LK_E_ARGUMENT,
                  "'conv2d_2' has itself the weights of 'conv2d_1': 'conv2d_3' can have them");
    lk_graph_destroy(strange.graph);
    lk_graph_destroy(net.graph);
    begin(&net, 1);
    a = add(&net, "dense", add(&net, "flatten", net.images, ""), "units=4");
    b = add(&net, "dense", a, "units=4");
    c = add(&net, "dense", b, "units=4");
    ASSERT_OK(lk_node_share_weights(c, b));
    struct lk_node *d = add(&net, "dense", c, "units=4");
    ASSERT_OK(lk_node_share_weights(d, b));
    check_refused(b, a, LK_E_ARGUMENT, "'dense_3' has the weights of 'dense_2', which cannot");
    struct lk_node *shifts = add(&net, "layer_norm", d, "scale=false");
    struct lk_node *scales = add(&net, "layer_norm", shifts, "center=false");
    check_refused(scales, shifts, LK_E_SHAPE,
                  "'layer_norm_2' has 'gamma' where 'layer_norm_1' has 'beta'");
    ASSERT_OK(lk_node_share_weights(add(&net, "layer_norm", d, "scale=false"), shifts));
    lk_graph_destroy(net.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_on_cpu_kernels),
        cmocka_unit_test(gradients_on_gpu_kernels),
        cmocka_unit_test(repeats_to_the_bit),
        cmocka_unit_test(buckets_end_with_the_first_use),
        cmocka_unit_test(names_and_counts_once),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
