/* Tokens with a length on their whole way: arrays of a file, batches that threads read ahead,
 * binding by name, a slot, and integers in tiles on the device, where an operation that takes
 * tokens will find them. Losses stand in for it: their targets are such inputs. */
#include "graph/replica_internal.h"
#include "npy.h"
#include "ok.h"
#include "train/evaluation/binding.h"

enum { SAMPLES = 61, LENGTH = 5, CLASSES = 7, BATCH = 24 };

static int32_t length_of(int64_t sample)
{
    return (int32_t)(sample % (LENGTH + 1));
}

static int32_t token_of(int64_t sample, int64_t place)
{
    return (int32_t)((3 * sample + place) % CLASSES);
}

/* Behind each length the file has other numbers, which nobody may see. */
static struct lk_data *open_tokens(void)
{
    static int64_t ids[SAMPLES * LENGTH], lengths[SAMPLES];
    static float numbers[SAMPLES * LENGTH * CLASSES];
    char spec[600];
    struct lk_data *data = NULL;
    for (int i = 0; i < SAMPLES; i++) {
        lengths[i] = length_of(i);
        for (int k = 0; k < LENGTH; k++)
            ids[i * LENGTH + k] = k < lengths[i] ? token_of(i, k) : 99;
    }
    put_npy("ids_train.npy", "<i8", "(61, 5)", ids, sizeof ids);
    put_npy("lengths_train.npy", "<i8", "(61,)", lengths, sizeof lengths);
    put_npy("numbers_train.npy", "<f4", "(61, 35)", numbers, sizeof numbers);
    snprintf(spec, sizeof spec,
             "npy:%s,fields=tokens:ids,tokens.length:lengths,numbers:numbers,label=", scratch);
    ASSERT_OK(lk_data_open(spec, LK_DATA_TRAIN, &data));
    return data;
}

struct network {
    struct lk_model model; /* of which binding reads the inputs alone */
    struct lk_node *numbers, *tokens, *length, *losses[2];
};

static struct lk_node *add(struct lk_graph *graph, const char *op, int count,
                           struct lk_node *const *x, const char *options)
{
    struct lk_node *y = NULL;
    ASSERT_OK(lk_graph_add_many(graph, op, count, x, options, &y));
    return y;
}

/* A class for each token, and one of the whole sample for the length. */
static void make_network(struct network *net)
{
    const struct lk_input numbers = {"numbers", LK_F32, {1, {LENGTH * CLASSES}}, 1, 0, true};
    const struct lk_input tokens = {"tokens", LK_I32, {1, {LENGTH}}, 0, 0, false};
    const struct lk_input length = {"tokens_length", LK_I32, {0, {0}}, 0, 0, false};
    struct lk_graph *graph = NULL;
    ASSERT_OK(lk_graph_create(&graph));
    ASSERT_OK(lk_graph_add_input(graph, &numbers, &net->numbers));
    ASSERT_OK(lk_graph_add_input(graph, &tokens, &net->tokens));
    ASSERT_OK(lk_graph_add_input(graph, &length, &net->length));
    struct lk_node *each = add(graph, "reshape", 1, &net->numbers, "shape=5,7");
    each = add(graph, "softmax", 1, &each, "");
    struct lk_node *whole = add(graph, "dense", 1, &net->numbers, "units=6");
    whole = add(graph, "softmax", 1, &whole, "");
    net->losses[0] =
        add(graph, "cross_entropy", 2, (struct lk_node *[]){each, net->tokens}, "");
    net->losses[1] =
        add(graph, "cross_entropy", 2, (struct lk_node *[]){whole, net->length}, "");
    net->model = (struct lk_model){.graph = graph,
                                   .name = "tokens",
                                   .inputs = {net->numbers, net->tokens, net->length},
                                   .input_count = 3};
}

/* Tiles of an input on the device in the order of the host, [samples][elements]. */
static void read_input(const struct lk_replica *replica, const struct lk_node *node,
                       int64_t samples, int32_t *to)
{
    const struct lk_replica_input *found = NULL;
    for (int i = 0; i < replica->input_count; i++)
        if (replica->inputs[i].node == node)
            found = &replica->inputs[i];
    assert_non_null(found);
    const struct lk_buffer *tiles =
        replica->live_range_views[replica->activation[found->value]];
    ASSERT_OK(lk_tiled_read(tiles, lk_replica_tiling(replica), &node->input.shape, LK_I32,
                            samples, to));
}

static void expect_batch(const struct lk_replica *replica, const struct network *net,
                         const int64_t *order, int64_t count)
{
    int32_t tokens[BATCH * LENGTH], lengths[BATCH];
    read_input(replica, net->tokens, count, tokens);
    read_input(replica, net->length, count, lengths);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(lengths[i], length_of(order[i]));
        for (int k = 0; k < LENGTH; k++)
            assert_int_equal(tokens[i * LENGTH + k],
                             k < lengths[i] ? token_of(order[i], k) : 0);
    }
}

static void tokens_reach_the_device(void **state)
{
    struct lk_device *device = *state;
    struct lk_data *data = open_tokens();
    struct network net;
    struct lk_feed feed;
    struct lk_replica *replica = NULL;
    struct lk_batches *batches = NULL;
    int64_t order[SAMPLES];
    make_network(&net);
    ASSERT_OK(lk_binding_make_inputs(&net.model, data, &feed));
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {net.losses[0], net.losses[1]},
                                             .batch = BATCH,
                                             .shards = 2,
                                             .real = LK_F32,
                                             .training = true};
    ASSERT_OK(lk_replica_create(&config, &replica));
    ASSERT_OK(lk_replica_build(replica));
    const struct lk_batches_options options = {
        .size = BATCH, .seed = 3, .shuffle = true, .threads = 2};
    ASSERT_OK(lk_batches_create(data, &options, &batches));
    lk_data_order(3, 0, SAMPLES, order);
    for (int64_t batch = 0; batch < lk_batches_per_epoch(batches); batch++) {
        const int64_t count = lk_batches_size(batches, batch);
        void *to[LK_MOST_FIELDS] = {NULL};
        ASSERT_OK(lk_feed_read(&feed, replica, batch % 2, batches,
                               (struct lk_batch_range){batch, 0, count}, to));
        ASSERT_OK(lk_replica_load(replica, batch % 2, count));
        ASSERT_OK(lk_replica_wait_slot(replica, batch % 2));
        expect_batch(replica, &net, order + batch * BATCH, count);
    }
    lk_batches_destroy(batches);
    lk_replica_destroy(replica);
    lk_graph_destroy(net.model.graph);
    lk_data_close(data);
}

static int open_device(void **state)
{
    (void)scratch_make(state);
    return lk_device_open(NULL, 0, (struct lk_device **)state) == LK_OK ? 0 : -1;
}

static int close_device(void **state)
{
    lk_device_close(*state);
    return scratch_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_reach_the_device)};
    return cmocka_run_group_tests_name("tokens", tests, open_device, close_device);
}
