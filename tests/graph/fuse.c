/* Outside training a convolution takes over what comes behind it, to the bit: a network beside
 * one whose values between are outputs, which nothing can take over. Every algorithm, both
 * classes of kernels, a batch with a last tile that is not full. */
#include "device/trace.h"
#include "graph/rig.h"

#include <stdlib.h>
#include <string.h>

enum { BETWEEN = 7, MOST_PROBABILITIES = BATCH * CLASSES, MOST_COMMANDS = 256 };

struct blocks {
    struct network net;
    const struct lk_node *between[BETWEEN]; /* sums of products, before what comes behind */
    int count;
};

static struct lk_node *convolve(struct blocks *b, struct lk_node *x, const char *options)
{
    struct lk_node *y = add(&b->net, "conv2d", x, options);
    assert_true(b->count < BETWEEN);
    b->between[b->count++] = y;
    return y;
}

static struct lk_node *sum(struct blocks *b, struct lk_node *x, struct lk_node *other)
{
    struct lk_node *pair[] = {x, other}, *y = NULL;
    ASSERT_OK(lk_graph_add_many(b->net.graph, "add", 2, pair, "", &y));
    return y;
}

/* One block for each kernel of sums: of few channels, depthwise, of single taps, strided, 3x3,
 * in groups. */
static void make_blocks(struct blocks *b)
{
    const struct lk_input input = {"image",   LK_U8, {3, {CHANNELS, SIDE, SIDE}},
                                   1 / 255.0, 0,     false};
    struct network *net = &b->net;
    memset(b, 0, sizeof *b);
    ASSERT_OK(lk_graph_create(&net->graph));
    ASSERT_OK(lk_graph_add_input(net->graph, &input, &net->images));
    struct lk_node *x = convolve(b, net->images, "filters=12 padding=same bias=false");
    struct lk_node *stem = add(net, "relu", add(net, "batch_norm", x, "epsilon=0.01"), "");
    x = convolve(b, stem, "filters=12 groups=12 padding=same");
    x = add(net, "relu6", add(net, "batch_norm", x, ""), "");
    x = convolve(b, x, "filters=12 kernel=1");
    x = add(net, "relu", sum(b, stem, add(net, "batch_norm", x, "")), "");
    x = convolve(b, x, "filters=18 kernel=3 stride=2 padding=same bias=false");
    struct lk_node *half = add(net, "silu", add(net, "batch_norm", x, ""), "");
    x = convolve(b, half, "filters=18 kernel=3 padding=same");
    x = add(net, "clipped_relu", sum(b, x, half), "max=1.5");
    x = convolve(b, x, "filters=10 groups=2 kernel=3 padding=same");
    x = convolve(b, add(net, "batch_norm", x, ""), "filters=4 kernel=1");
    x = add(net, "batch_norm", add(net, "flatten", x, ""), ""); /* it is not taken over */
    net->probabilities = add(net, "softmax", add(net, "dense", x, "units=3"), "");
}

/* Weights of a trained network: no batch normalization leaves what it gets as it is. */
static void write_weights(struct lk_replica *replica)
{
    const struct lk_param *param;
    for (int i = 0; (param = lk_replica_param(replica, i)); i++) {
        const bool is_variance = strstr(param->name, "variance") != NULL;
        float *values = malloc((size_t)param->count * sizeof *values);
        assert_non_null(values);
        for (int64_t j = 0; j < param->count; j++) {
            const float fraction = (float)((j * 37 + i * 11 + j / 5) % 101) / 101;
            values[j] = is_variance ? 0.2f + fraction : fraction - 0.4f;
        }
        ASSERT_OK(lk_replica_write_param(replica, i, values));
        free(values);
    }
}

/* How many commands of that name ran since the trace began. */
static int count_commands(struct lk_device *device, const char *name)
{
    static struct lk_traced commands[MOST_COMMANDS];
    int64_t dropped = 0;
    int count = 0;
    ASSERT_OK(lk_device_finish(device));
    const int all = lk_trace_collect(device, commands, MOST_COMMANDS, &dropped);
    assert_int_equal(dropped, 0);
    assert_true(all > 0);
    for (int i = 0; i < all; i++)
        count += strcmp(commands[i].name, name) == 0;
    return count;
}

/* The probabilities, with new weights and once more; returns the batch normalizations that
 * went over an image by themselves. */
static int compute(struct lk_device *device, struct lk_choices *choices, const struct blocks *b,
                   bool apart, float probabilities[MOST_PROBABILITIES])
{
    struct lk_replica *replica = NULL;
    struct lk_shape shape;
    float again[MOST_PROBABILITIES];
    struct lk_replica_config config = {.device = device,
                                       .outputs = {b->net.probabilities},
                                       .batch = BATCH,
                                       .shards = 1,
                                       .real = LK_F32,
                                       .choices = choices};
    for (int i = 0; apart && i < b->count; i++)
        config.outputs[1 + i] = b->between[i];
    ASSERT_OK(lk_replica_create(&config, &replica));
    ASSERT_OK(lk_replica_build(replica));
    ASSERT_OK(lk_trace_begin(device, MOST_COMMANDS));
    write_weights(replica);
    uint8_t *images = lk_replica_slot(replica, b->net.images, 0);
    for (int i = 0; i < BATCH * CHANNELS * SIDE * SIDE; i++)
        images[i] = (uint8_t)(i * 37 + i / 7);
    lk_trace_step(device, 1);
    for (int turn = 0; turn < 2; turn++) {
        ASSERT_OK(lk_replica_load(replica, 0, BATCH));
        ASSERT_OK(lk_replica_forward(replica, 0));
        ASSERT_OK(lk_tiled_read(lk_replica_output(replica, 0, &shape),
                                lk_replica_tiling(replica), &shape, LK_F32, BATCH,
                                turn ? again : probabilities));
        ASSERT_OK(lk_replica_wait_slot(replica, 0));
    }
    assert_memory_equal(probabilities, again, sizeof again);
    const int norms = count_commands(device, "batch_norm_forward");
    lk_trace_end(device);
    lk_replica_destroy(replica);
    return norms;
}

static void compare(const char *kernel_class, const char *algorithm)
{
    struct lk_device *device = NULL;
    struct lk_choices *choices = NULL;
    struct blocks b;
    float whole[MOST_PROBABILITIES], apart[MOST_PROBABILITIES];
    setenv("LOCKSTEP_CLASS", kernel_class, 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    unsetenv("LOCKSTEP_CLASS");
    ASSERT_OK(lk_choices_create(LK_MATH_NORMAL, &choices));
    ASSERT_OK(lk_choices_prefer(choices, algorithm));
    make_blocks(&b);
    assert_int_equal(compute(device, choices, &b, false, whole), 2 * 1);
    assert_int_equal(compute(device, choices, &b, true, apart), 2 * 6);
    assert_memory_equal(whole, apart, sizeof whole);
    assert_true(whole[0] != whole[CLASSES]);
    lk_device_close(device);
    lk_graph_destroy(b.net.graph);
    lk_choices_destroy(choices);
}

static void cpu_kernels_finish_their_sums(void **state)
{
    (void)state;
    compare("cpu", "direct");
    compare("cpu", "winograd4");
}

static void others_are_finished_behind_them(void **state)
{
    (void)state;
    compare("cpu", "fft");
    compare("gpu", "gemm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_kernels_finish_their_sums),
        cmocka_unit_test(others_are_finished_behind_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
