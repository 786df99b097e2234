/* Runs the kernels of plane tiles: an image of bytes and one of numbers, joined; convolutions
 * with edges, strides, gaps and groups; every pool; what reads an image as a vector. The
 * same network in batch tiles, where convolutions take over what is behind them, too. Then one
 * that is trained. */
#include "oclgrind/planes.h"

#include "base/fail.h"
#include "graph/replica.h"

enum { CHANNELS = 3, HEIGHT = 7, WIDTH = 9, SAMPLES = 2 };

struct network {
    struct lk_graph *graph;
    struct lk_node *images, *numbers, *y;
};

static enum lk_status make_network(struct network *net)
{
    const struct lk_shape shape = {3, {CHANNELS, HEIGHT, WIDTH}};
    const struct lk_input images = {"image", LK_U8, shape, 1 / 255.0, 0, false};
    const struct lk_input numbers = {"numbers", LK_F32, shape, 1, 0, true};
    struct lk_graph *graph = net->graph;
    struct lk_node *pair[2], *x, *of_all;
    LK_TRY(lk_graph_add_input(graph, &images, &net->images));
    LK_TRY(lk_graph_add_input(graph, &numbers, &net->numbers));
    pair[0] = net->images;
    pair[1] = net->numbers;
    LK_TRY(lk_graph_add_many(graph, "concat", 2, pair, "", &x));
    LK_TRY(lk_graph_add(graph, "conv2d", x, "filters=6 padding=same bias=false", &x));
    LK_TRY(lk_graph_add(graph, "batch_norm", x, "", &pair[0]));
    LK_TRY(lk_graph_add(graph, "conv2d", pair[0], "filters=6 groups=6 padding=same", &pair[1]));
    LK_TRY(lk_graph_add_many(graph, "add", 2, pair, "", &x));
    LK_TRY(lk_graph_add(graph, "relu", x, "", &x));
    LK_TRY(lk_graph_add(graph, "max_pool", x, "size=3 stride=1 padding=same", &x));
    LK_TRY(lk_graph_add(graph, "average_pool", x, "size=2 stride=1", &x));
    LK_TRY(lk_graph_add(graph, "global_average_pool", x, "", &pair[0]));
    LK_TRY(lk_graph_add(graph, "conv2d", x, "filters=6 kernel=3 stride=2 padding=1", &pair[1]));
    LK_TRY(lk_graph_add(graph, "global_max_pool", pair[1], "", &pair[1]));
    LK_TRY(lk_graph_add_many(graph, "add", 2, pair, "", &of_all));
    LK_TRY(lk_graph_add(graph, "dense", of_all, "units=5", &pair[0]));
    LK_TRY(lk_graph_add(graph, "conv2d", x,
                        "filters=10 kernel=3,2 stride=1,2 dilation=2,1 padding=2 groups=2",
                        &x));
    LK_TRY(lk_graph_add(graph, "conv2d", x, "filters=4 kernel=3 padding=same pool=true", &x));
    LK_TRY(lk_graph_add(graph, "flatten", x, "", &x));
    LK_TRY(lk_graph_add(graph, "dense", x, "units=5", &pair[1]));
    return lk_graph_add_many(graph, "add", 2, pair, "", &net->y);
}

static void fill(struct lk_replica *replica, const struct network *net)
{
    for (int i = 0; i < SAMPLES * CHANNELS * HEIGHT * WIDTH; i++) {
        ((uint8_t *)lk_replica_slot(replica, net->images, 0))[i] = (uint8_t)(i * 37);
        ((float *)lk_replica_slot(replica, net->numbers, 0))[i] = (float)(i % 11) / 11;
    }
}

static enum lk_status run_with(struct lk_device *device, const struct network *net,
                               const char *algorithm, bool few_samples)
{
    struct lk_replica *replica = NULL;
    struct lk_replica_config config = {.device = device,
                                       .outputs = {net->y},
                                       .batch = SAMPLES,
                                       .shards = 1,
                                       .real = LK_F32,
                                       .few_samples = few_samples};
    enum lk_status status;
    LK_TRY(lk_choices_create(LK_MATH_NORMAL, &config.choices));
    LK_TRY_OUT(lk_choices_prefer(config.choices, algorithm));
    LK_TRY_OUT(lk_replica_create(&config, &replica));
    LK_TRY_OUT(lk_replica_build(replica));
    LK_TRY_OUT(lk_replica_init_weights(replica, 3));
    fill(replica, net);
    LK_TRY_OUT(lk_replica_load(replica, 0, SAMPLES));
    LK_TRY_OUT(lk_replica_forward(replica, 0));
    LK_TRY_OUT(lk_replica_wait_slot(replica, 0));
    status = lk_device_finish(device);
out:
    lk_replica_destroy(replica);
    lk_choices_destroy(config.choices);
    return status;
}

static enum lk_status run_all(struct lk_device *device, int count,
                              const char *const *algorithms, bool few_samples)
{
    struct network net = {0};
    enum lk_status status;
    LK_TRY_OUT(lk_graph_create(&net.graph));
    LK_TRY_OUT(make_network(&net));
    for (int i = 0; i < count; i++)
        LK_TRY_OUT(run_with(device, &net, algorithms[i], few_samples));
out:
    lk_graph_destroy(net.graph);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "a network that is not trained");
}

/* --- in training ------------------------------------------------------------------------- */

struct trained {
    struct lk_graph *graph;
    struct lk_node *numbers, *labels, *loss;
};

static enum lk_status make_trained(struct trained *net)
{
    const struct lk_input numbers = {"numbers", LK_F32, {3, {CHANNELS, HEIGHT, WIDTH}},
                                     1,         0,      true};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    struct lk_node *x, *pair[2];
    LK_TRY(lk_graph_create(&net->graph));
    LK_TRY(lk_graph_add_input(net->graph, &numbers, &net->numbers));
    LK_TRY(lk_graph_add_input(net->graph, &labels, &net->labels));
    LK_TRY(lk_graph_add(net->graph, "conv2d", net->numbers, "filters=6 padding=same", &x));
    LK_TRY(lk_graph_add(net->graph, "batch_norm", x, "", &pair[0]));
    LK_TRY(lk_graph_add(net->graph, "conv2d", pair[0], "filters=6 groups=6 padding=same",
                        &pair[1]));
    LK_TRY(lk_graph_add_many(net->graph, "add", 2, pair, "", &x));
    LK_TRY(lk_graph_add(net->graph, "max_pool", x, "size=3 stride=1 padding=same", &x));
    LK_TRY(
        lk_graph_add(net->graph, "conv2d", x, "filters=5 kernel=3 stride=2 padding=same", &x));
    LK_TRY(lk_graph_add(net->graph, "average_pool", x, "size=2 stride=1 padding=same", &x));
    LK_TRY(
        lk_graph_add(net->graph, "conv2d", x, "filters=4 kernel=3 padding=same pool=true", &x));
    LK_TRY(lk_graph_add(net->graph, "flatten", x, "", &x));
    LK_TRY(lk_graph_add(net->graph, "dense", x, "units=3", &x));
    LK_TRY(lk_graph_add(net->graph, "softmax", x, "", &pair[0]));
    pair[1] = net->labels;
    return lk_graph_add_many(net->graph, "cross_entropy", 2, pair, "", &net->loss);
}

static enum lk_status train_with(struct lk_device *device, const struct trained *net,
                                 const char *algorithm)
{
    struct lk_replica *replica = NULL;
    struct lk_replica_config config = {.device = device,
                                       .outputs = {net->loss},
                                       .batch = SAMPLES,
                                       .shards = SAMPLES,
                                       .real = LK_F32,
                                       .training = true,
                                       .few_samples = true};
    enum lk_status status;
    LK_TRY(lk_choices_create(LK_MATH_NORMAL, &config.choices));
    LK_TRY_OUT(lk_choices_prefer(config.choices, algorithm));
    LK_TRY_OUT(lk_replica_create(&config, &replica));
    LK_TRY_OUT(lk_replica_build(replica));
    LK_TRY_OUT(lk_replica_init_weights(replica, 3));
    for (int i = 0; i < SAMPLES * CHANNELS * HEIGHT * WIDTH; i++)
        ((float *)lk_replica_slot(replica, net->numbers, 0))[i] = (float)(i % 11) / 11;
    for (int i = 0; i < SAMPLES; i++)
        ((int32_t *)lk_replica_slot(replica, net->labels, 0))[i] = i;
    LK_TRY_OUT(lk_replica_load(replica, 0, SAMPLES));
    LK_TRY_OUT(lk_replica_forward(replica, 1));
    LK_TRY_OUT(lk_replica_backward(replica));
    LK_TRY_OUT(lk_replica_wait_slot(replica, 0));
    status = lk_device_finish(device);
out:
    lk_replica_destroy(replica);
    lk_choices_destroy(config.choices);
    return status;
}

static enum lk_status train_planes(struct lk_device *device)
{
    static const char *const algorithms[] = {"planes direct", "planes_winograd2"};
    struct trained net = {0};
    enum lk_status status;
    LK_TRY_OUT(make_trained(&net));
    for (int i = 0; i < LK_COUNT(algorithms); i++)
        LK_TRY_OUT(train_with(device, &net, algorithms[i]));
out:
    lk_graph_destroy(net.graph);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "training in plane tiles");
}

enum lk_status run_planes(struct lk_device *device)
{
    static const char *const planes[] = {"planes direct", "winograd2", "winograd4"};
    static const char *const tiles[] = {"direct", "winograd2"};
    LK_TRY(run_all(device, LK_COUNT(planes), planes, true));
    LK_TRY(run_all(device, LK_COUNT(tiles), tiles, false));
    return train_planes(device);
}

enum lk_status run_endings(struct lk_device *device)
{
    static const char *const gemm[] = {"gemm"};
    return run_all(device, LK_COUNT(gemm), gemm, false);
}
