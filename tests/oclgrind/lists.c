/* Runs the kernels of row lists: an embedding's backward, shards in their places, updates. */
#include "oclgrind/lists.h"

#include "base/fail.h"
#include "graph/replica.h"
#include "mirror/shards.h"
#include "optim/optimizer.h"
#include <string.h>

enum { ROWS = 40, UNITS = 16, STEPS = 3, SAMPLES = 5, SHARDS = 2, CLASSES = 3 };

struct network {
    struct lk_graph *graph;
    struct lk_node *tokens, *length, *labels, *loss;
};

static enum lk_status make_network(struct network *net)
{
    const struct lk_input tokens = {"tokens", LK_I32, {1, {STEPS}}, 0, 0, false};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    struct lk_node *x, *pair[2];
    LK_TRY(lk_graph_create(&net->graph));
    LK_TRY(lk_graph_add_input(net->graph, &tokens, &net->tokens));
    LK_TRY(lk_graph_add_length(net->tokens, &net->length));
    LK_TRY(lk_graph_add_input(net->graph, &labels, &net->labels));
    LK_TRY(lk_graph_add(net->graph, "embedding", net->tokens, "vocabulary=40 units=16", &x));
    LK_TRY(lk_graph_add(net->graph, "flatten", x, "", &x));
    LK_TRY(lk_graph_add(net->graph, "dense", x, "units=3", &pair[0]));
    pair[1] = net->labels;
    return lk_graph_add_many(net->graph, "softmax_cross_entropy", 2, pair, "", &net->loss);
}

/* Some tokens are no rows of the table, and some time steps belong to no text. */
static enum lk_status run_batch(struct lk_replica *replica, const struct network *net)
{
    static const int32_t some[] = {0, ROWS - 1, -1, ROWS, INT32_MAX, 7, 7};
    int32_t *tokens = lk_replica_slot(replica, net->tokens, 0);
    int32_t *lengths = lk_replica_slot(replica, net->length, 0);
    int32_t *labels = lk_replica_slot(replica, net->labels, 0);
    for (int i = 0; i < SAMPLES * STEPS; i++)
        tokens[i] = some[i % LK_COUNT(some)];
    for (int i = 0; i < SAMPLES; i++) {
        lengths[i] = i % (STEPS + 1);
        labels[i] = i % CLASSES;
    }
    LK_TRY(lk_replica_load(replica, 0, SAMPLES));
    LK_TRY(lk_replica_forward(replica, 1));
    return lk_replica_backward(replica);
}

static enum lk_status find_list(const struct lk_replica *replica, struct lk_bucket *list)
{
    for (int b = 0; b < lk_replica_bucket_count(replica); b++) {
        *list = lk_replica_bucket(replica, b);
        if (list->list_stride > 0)
            return LK_OK;
    }
    return lk_fail(LK_E_DATA, "no table has a list");
}

/* The second shard alone, in its place, with numbers that are no rows among it. */
static enum lk_status place(struct lk_device *device, const struct lk_replica *replica,
                            const struct lk_bucket *list, struct lk_buffer *y)
{
    static const float wrong[] = {ROWS + 1, 1e9f, -3};
    const struct lk_shard_places places = {
        .x = list->list, .stride = list->list_stride, .first = 1, .count = 1, .shards = SHARDS};
    const int64_t numbers = lk_replica_param(replica, 0)->places * UNITS;
    struct lk_shard_sum *sum = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_shard_sum_create(device, lk_replica_tiling(replica), LK_F32, true, &sum));
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_shard_sum_enqueue_place(sum, &places, &(struct lk_shard_target){.y = y}));
    LK_TRY_OUT(lk_buffer_write(y, (size_t)numbers * sizeof(float), sizeof wrong, wrong));
    LK_TRY_OUT(lk_device_finish(device));
out:
    lk_shard_sum_destroy(sum);
    return status;
}

/* The gradient's norm has a limit, so the list is looked at before the update. */
static enum lk_status update(struct lk_device *device, struct lk_buffer *w,
                             const struct lk_buffer *g, int64_t places, int64_t reals,
                             const char *options)
{
    const struct lk_param_rows table = {
        .count = ROWS * UNITS, .units = UNITS, .places = places, .shards = SHARDS};
    const struct lk_optimizer_config config = {.device = device,
                                               .real = LK_F32,
                                               .kind = "adam",
                                               .options = options,
                                               .count = ROWS * UNITS,
                                               .rows = &table,
                                               .row_count = 1,
                                               .clip = {.norm = 0.1}};
    const struct lk_update step = {
        .count = ROWS * UNITS, .is_list = true, .scale = 0.5, .lr = 0.1, .step = 1};
    struct lk_optimizer *optimizer = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_optimizer_create(&config, &optimizer));
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_optimizer_enqueue_check_list(optimizer, g, 0, reals));
    LK_TRY_OUT(lk_optimizer_enqueue_decision(optimizer, step.scale));
    LK_TRY_OUT(lk_optimizer_enqueue_part(optimizer, w, g, &step));
    LK_TRY_OUT(lk_device_finish(device));
out:
    lk_optimizer_destroy(optimizer);
    return status;
}

enum lk_status run_lists(struct lk_device *device)
{
    struct network net = {0};
    struct lk_replica *replica = NULL;
    struct lk_buffer *w = NULL, *y = NULL;
    struct lk_bucket list = {0};
    enum lk_status status;
    LK_TRY_OUT(make_network(&net));
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {net.loss},
                                             .batch = SAMPLES,
                                             .shards = SHARDS,
                                             .real = LK_F32,
                                             .training = true,
                                             .list_shards = SHARDS};
    LK_TRY_OUT(lk_replica_create(&config, &replica));
    LK_TRY_OUT(lk_replica_build(replica));
    LK_TRY_OUT(lk_replica_init_weights(replica, 3));
    LK_TRY_OUT(run_batch(replica, &net));
    LK_TRY_OUT(find_list(replica, &list));
    LK_TRY_OUT(lk_buffer_create(device, (size_t)list.sum_count * sizeof(float), &y));
    LK_TRY_OUT(place(device, replica, &list, y));
    const int64_t places = lk_replica_param(replica, 0)->places;
    LK_TRY_OUT(lk_buffer_create(device, ROWS * UNITS * sizeof(float), &w));
    LK_TRY_OUT(lk_buffer_enqueue_fill(w, 0));
    LK_TRY_OUT(update(device, w, list.list, places, list.sum_count, "lazy=true"));
    LK_TRY_OUT(update(device, w, y, places, list.sum_count, ""));
out:
    lk_buffer_destroy(w);
    lk_buffer_destroy(y);
    lk_replica_destroy(replica);
    lk_graph_destroy(net.graph);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "row lists");
}
