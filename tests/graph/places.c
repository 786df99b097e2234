/* Graphs that are divided among the devices of a group: the bits of losses and gradients are
 * those of one device; each device has its own part of the weights; what cannot be divided. */
#include "graph/place/group.h"
#include "graph/rig.h"

#include <stdlib.h>
#include <string.h>

/* A short batch: the last shard has fewer samples. */
enum { MOST_DEVICES = 3, SHARDS = 4, ROOM = 20, SAMPLES = 18 };

static struct network begin(int inputs)
{
    struct network net = {0};
    struct lk_input input = {"image", LK_U8, {3, {CHANNELS, SIDE, SIDE}}, 1 / 255.0, 0, false};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    ASSERT_OK(lk_graph_create(&net.graph));
    ASSERT_OK(lk_graph_add_input(net.graph, &input, &net.images));
    input.name = "other";
    if (inputs == 2)
        ASSERT_OK(lk_graph_add_input(net.graph, &input, &net.others));
    ASSERT_OK(lk_graph_add_input(net.graph, &labels, &net.labels));
    return net;
}

static void end(struct network *net, struct lk_node *x)
{
    struct lk_node *pair[] = {add(net, "softmax", x, ""), net->labels};
    ASSERT_OK(lk_graph_add_many(net->graph, "cross_entropy", 2, pair, "", &net->loss));
}

/* Adds a node at a place. */
static struct lk_node *put(struct network *net, int place, const char *op, struct lk_node *x,
                           const char *options)
{
    struct lk_node *y = add(net, op, x, options);
    lk_node_set_place(y, place);
    return y;
}

static struct lk_node *join(struct network *net, int place, const char *op, int count,
                            struct lk_node *const *x)
{
    struct lk_node *y = NULL;
    ASSERT_OK(lk_graph_add_many(net->graph, op, count, x, "", &y));
    lk_node_set_place(y, place);
    return y;
}

/* Three devices in a row, with what is drawn by chance, and moving averages. */
static struct network make_chain(void)
{
    struct network net = begin(1);
    struct lk_node *x = put(&net, 0, "conv2d", net.images, "filters=5 kernel=3 padding=same");
    x = add(&net, "batch_norm", x, "");
    x = add(&net, "max_pool", add(&net, "relu", x, ""), "size=2");
    x = put(&net, 1, "conv2d", x, "filters=4 kernel=3 padding=same activation=relu");
    x = add(&net, "dropout", x, "rate=0.3");
    x = add(&net, "flatten", x, "");
    x = put(&net, 2, "dense", x, "units=7 activation=relu");
    end(&net, add(&net, "dense", x, "units=3"));
    return net;
}

/* Two inputs, each of which a device of its own encodes; the first joins them. */
static struct network make_branches(void)
{
    struct network net = begin(2);
    struct lk_node *sides[2];
    sides[0] = put(&net, 0, "conv2d", net.images, "filters=3 kernel=3");
    sides[0] = add(&net, "max_pool", add(&net, "tanh", sides[0], ""), "size=2");
    sides[1] = put(&net, 1, "conv2d", net.others, "filters=3 kernel=3");
    sides[1] = add(&net, "max_pool", add(&net, "tanh", sides[1], ""), "size=2");
    struct lk_node *x = add(&net, "flatten", join(&net, 0, "concat", 2, sides), "");
    end(&net, add(&net, "dense", x, "units=3"));
    return net;
}

/* One value with readers here and there in turn, whose gradients are added in that order; what
 * the third device reads comes from both others. */
static struct network make_mixed(void)
{
    struct network net = begin(1);
    struct lk_node *branch[4];
    struct lk_node *x = put(&net, 0, "conv2d", net.images, "filters=4 kernel=1");
    for (int i = 0; i < 4; i++)
        branch[i] = put(&net, i % 2 ? 1 : 0, "conv2d", x, "filters=4 kernel=3 padding=same");
    struct lk_node *sum = join(&net, 1, "add", 4, branch);
    struct lk_node *both[] = {sum, x};
    x = add(&net, "flatten", join(&net, 2, "concat", 2, both), "");
    end(&net, add(&net, "dense", x, "units=3"));
    return net;
}

/* Two inputs through one tower, whose weights both devices use. */
static struct network make_siamese(void)
{
    struct network net = begin(2);
    struct lk_node *sides[2], *x, *conv, *dense;
    conv = put(&net, 0, "conv2d", net.images, "filters=3 kernel=3");
    x = add(&net, "max_pool", add(&net, "tanh", conv, ""), "size=2");
    sides[0] = dense = add(&net, "dense", add(&net, "flatten", x, ""), "units=6");
    x = put(&net, 1, "conv2d", net.others, "filters=3 kernel=3");
    ASSERT_OK(lk_node_share_weights(x, conv));
    x = add(&net, "max_pool", add(&net, "tanh", x, ""), "size=2");
    sides[1] = add(&net, "dense", add(&net, "flatten", x, ""), "units=6");
    ASSERT_OK(lk_node_share_weights(sides[1], dense));
    x = join(&net, 1, "multiply", 2, sides);
    end(&net, add(&net, "dense", x, "units=3"));
    return net;
}

/* One layer used five times in a row, behind one another or at places in turn. The first place
 * has the weights; gradients are added from the last use to the first, wherever each is. */
static struct network make_unrolled(const int *places)
{
    struct network net = begin(1);
    const char *options = "filters=4 kernel=3 padding=same activation=relu";
    struct lk_node *x = put(&net, places[0], "conv2d", net.images, "filters=4 kernel=1");
    struct lk_node *first = x = put(&net, places[0], "conv2d", x, options);
    for (int i = 1; i < 5; i++) {
        x = put(&net, places[i], "conv2d", x, options);
        ASSERT_OK(lk_node_share_weights(x, first));
    }
    end(&net, add(&net, "dense", add(&net, "flatten", x, ""), "units=3"));
    return net;
}

static struct network make_unrolled_early(void)
{
    return make_unrolled((const int[]){0, 1, 1, 2, 2});
}

static struct network make_unrolled_late(void)
{
    return make_unrolled((const int[]){0, 0, 0, 1, 2});
}

/* Four inputs of a sum through one layer: uses at places in turn, the last one where the
 * weights are. */
static struct network make_fan(void)
{
    struct network net = begin(2);
    struct lk_node *side[4];
    for (int i = 0; i < 4; i++) {
        side[i] = put(&net, (int[]){0, 1, 2, 0}[i], "conv2d", i % 2 ? net.others : net.images,
                      "filters=3 kernel=3 activation=relu");
        if (i > 0)
            ASSERT_OK(lk_node_share_weights(side[i], side[0]));
        if (i > 1)
            side[i] = add(&net, "tanh", side[i], "");
    }
    struct lk_node *x = add(&net, "flatten", join(&net, 0, "concat", 4, side), "");
    end(&net, add(&net, "dense", x, "units=3"));
    return net;
}

struct outcome {
    float losses[SAMPLES * 2];
    float *gradients[16]; /* of each parameter, of all shards */
    int64_t counts[16];
    int params;
};

/* A step in micro-batches of one shard each, or the whole batch at once. */
struct step {
    const struct network *net;
    struct outcome *outcome;
    int micro_batches;
};

static enum lk_status load_part(void *context, struct lk_replica *replica, int place, int index)
{
    const struct step *step = context;
    const int64_t each = lk_replica_tiling(replica)->shard_samples;
    const int64_t first = index * each,
                  end = index + 1 < step->micro_batches ? first + each : SAMPLES;
    const struct lk_micro_batch part = {step->micro_batches > 1 ? 1 : SHARDS, first,
                                        end - first};
    (void)place;
    fill(replica, step->net, first);
    return lk_replica_load_micro_batch(replica, 0, &part);
}

static enum lk_status read_losses(void *context, struct lk_replica *replica, int place,
                                  int index)
{
    const struct step *step = context;
    const int64_t each = lk_replica_tiling(replica)->shard_samples, first = index * each;
    struct lk_shape shape;
    if (lk_node_place(step->net->loss) != place)
        return LK_OK;
    const struct lk_buffer *y = lk_replica_output(replica, 0, &shape);
    const struct lk_tiling *tiling = lk_replica_tiling(replica);
    const struct lk_tiling used = lk_tiling_cut(tiling, step->micro_batches > 1 ? 1 : SHARDS);
    const int64_t samples = step->micro_batches > 1 ? lk_least(each, SAMPLES - first) : SAMPLES;
    return lk_tiled_read(y, &used, &shape, LK_F32, samples, step->outcome->losses + 2 * first);
}

/* Keeps the gradients of a bucket's parameters, of the micro-batch's shards. */
static enum lk_status read_bucket(void *context, struct lk_replica *replica, int place,
                                  int index, int bucket)
{
    struct step *step = context;
    const struct lk_bucket b = lk_replica_bucket(replica, bucket);
    const int64_t stride = lk_replica_gradient_stride(replica);
    const int shards = step->micro_batches > 1 ? 1 : SHARDS;
    const size_t bytes = lk_buffer_bytes(lk_replica_gradients(replica));
    float *all = malloc(bytes);
    (void)place;
    LK_TRY(lk_buffer_read(lk_replica_gradients(replica), 0, bytes, all));
    for (int p = 0; lk_replica_param(replica, p); p++) {
        const struct lk_param *param = lk_replica_param(replica, p);
        step->outcome->params = p + 1;
        if (!param->has_gradient || param->offset < b.first ||
            param->offset >= b.first + b.count)
            continue;
        float **to = &step->outcome->gradients[p];
        if (!*to)
            *to = malloc((size_t)(param->count * SHARDS) * sizeof(float));
        step->outcome->counts[p] = param->count;
        for (int s = 0; s < shards; s++)
            memcpy(*to + (index + s) * param->count, all + s * stride + param->offset,
                   (size_t)param->count * sizeof(float));
    }
    free(all);
    return LK_OK;
}

struct manner {
    bool stores_half;
    enum lk_recompute_mode recompute;
    int micro_batches, in_flight;
};

static struct outcome run(const struct network *net, struct lk_device *const *devices,
                          int count, struct manner manner)
{
    struct outcome outcome = {.params = 0};
    struct lk_group *group = NULL;
    struct step step = {net, &outcome, manner.micro_batches};
    const int shards = manner.micro_batches > 1 ? 1 : SHARDS;
    const struct lk_replica_config config = {.outputs = {net->loss},
                                             .batch = ROOM / SHARDS * shards,
                                             .shards = shards,
                                             .real = LK_F32,
                                             .stores_half = manner.stores_half,
                                             .training = true,
                                             .recompute = manner.recompute,
                                             .seed = 5};
    ASSERT_OK(lk_group_create(&config, devices, count, manner.in_flight, &group));
    ASSERT_OK(lk_group_build(group));
    assert_int_equal(lk_group_count(group), count);
    for (int i = 0; i < count; i++)
        ASSERT_OK(lk_replica_init_weights(lk_group_replica(group, i), 7));
    for (int i = 1; i <= 2; i++) { /* again: what crosses uses the same memory */
        const struct lk_group_work work = {.context = &step,
                                           .step = i,
                                           .micro_batches = manner.micro_batches,
                                           .load = load_part,
                                           .forwarded = read_losses,
                                           .finished = read_bucket};
        ASSERT_OK(lk_group_run(group, &work));
    }
    lk_group_destroy(group);
    return outcome;
}

/* Puts all nodes on one device. */
static void gather(struct network *net)
{
    for (int i = 0; lk_graph_node(net->graph, i); i++)
        lk_node_set_place(lk_graph_node(net->graph, i), 0);
}

static void compare(const struct outcome *a, const struct outcome *b)
{
    assert_int_equal(a->params, b->params);
    assert_memory_equal(a->losses, b->losses, sizeof a->losses);
    for (int p = 0; p < a->params; p++) {
        assert_non_null(b->gradients[p]);
        assert_memory_equal(a->gradients[p], b->gradients[p],
                            (size_t)(a->counts[p] * SHARDS) * sizeof(float));
        free(a->gradients[p]);
        free(b->gradients[p]);
    }
}

static void check(struct network (*make)(void), const char *kernel_class, bool stores_half)
{
    struct lk_device *devices[MOST_DEVICES] = {NULL};
    setenv("LOCKSTEP_CLASS", kernel_class, 1);
    for (int i = 0; i < MOST_DEVICES; i++)
        ASSERT_OK(lk_device_open(NULL, 0, &devices[i]));
    struct network divided = make(), whole = make();
    gather(&whole);
    const struct manner manners[] = {{stores_half, LK_RECOMPUTE_OFF, 1, 1},
                                     {stores_half, LK_RECOMPUTE_SQRT, 1, 1},
                                     {stores_half, LK_RECOMPUTE_OFF, SHARDS, 1},
                                     {stores_half, LK_RECOMPUTE_OFF, SHARDS, 3}};
    for (int i = 0; i < LK_COUNT(manners); i++) {
        const struct outcome of_one = run(&whole, devices, 1, manners[0]);
        const struct outcome of_group = run(&divided, devices, MOST_DEVICES, manners[i]);
        compare(&of_one, &of_group);
    }
    lk_graph_destroy(divided.graph);
    lk_graph_destroy(whole.graph);
    for (int i = 0; i < MOST_DEVICES; i++)
        lk_device_close(devices[i]);
}

static void bits_are_those_of_one_device(void **state)
{
    (void)state;
    const char *classes[] = {"cpu", "gpu"};
    for (int c = 0; c < 2; c++)
        for (int half = 0; half < 2; half++) {
            check(make_chain, classes[c], half);
            check(make_branches, classes[c], half);
            check(make_mixed, classes[c], half);
            check(make_siamese, classes[c], half);
        }
    for (int c = 0; c < 2; c++) { /* gradients of weights are never halves */
        check(make_unrolled_early, classes[c], false);
        check(make_unrolled_late, classes[c], false);
        check(make_fan, classes[c], false);
    }
}

static void expect_part_refused(enum lk_replica_part part, struct network *net,
                                struct lk_device *const *devices, int count, const char *words)
{
    struct lk_group *group = NULL;
    const struct lk_replica_config config = {.outputs = {net->loss},
                                             .part = part,
                                             .batch = ROOM,
                                             .shards = SHARDS,
                                             .real = LK_F32,
                                             .training = true};
    assert_int_not_equal(lk_group_create(&config, devices, count, 1, &group), LK_OK);
    if (!strstr(lk_error_text(), words))
        fail_msg("'%s' is not in '%s'", words, lk_error_text());
    lk_error_clear();
    lk_graph_destroy(net->graph);
}

static void expect_refusal(struct network *net, struct lk_device *const *devices, int count,
                           const char *words)
{
    expect_part_refused(LK_PART_ALL, net, devices, count, words);
}

static void refuses_by_name(void **state)
{
    (void)state;
    struct lk_device *devices[2] = {NULL};
    setenv("LOCKSTEP_CLASS", "cpu", 1);
    ASSERT_OK(lk_device_open(NULL, 0, &devices[0]));
    devices[1] = devices[0];

    struct network net = make_chain();
    expect_refusal(&net, devices, 2, "'dense_1' is placed on device 2 of a group of 2");

    net = begin(1); /* there and back again */
    struct lk_node *x = put(&net, 0, "conv2d", net.images, "filters=4 kernel=1");
    x = put(&net, 1, "conv2d", x, "filters=4 kernel=1");
    x = add(&net, "flatten", put(&net, 0, "conv2d", x, "filters=4 kernel=1"), "");
    end(&net, add(&net, "dense", x, "units=3"));
    expect_refusal(&net, devices, 2, "devices 0 and 1 of a group wait for each other");

    net = begin(1); /* a relu that the convolution before it takes over */
    x = add(&net, "conv2d", net.images, "filters=4 kernel=1");
    x = add(&net, "flatten", put(&net, 1, "relu", x, ""), "");
    end(&net, add(&net, "dense", x, "units=3"));
    expect_refusal(&net, devices, 2,
                   "'conv2d_1' and 'relu_1' are computed as one: they need one place, not 0");

    net = begin(1); /* a frozen layer once more behind one that is trained */
    struct lk_node *conv = put(&net, 0, "conv2d", net.images, "filters=2 kernel=1");
    lk_node_set_trainable(conv, false);
    x = put(&net, 0, "conv2d", conv, "filters=2 kernel=1");
    x = put(&net, 1, "conv2d", x, "filters=2 kernel=1");
    ASSERT_OK(lk_node_share_weights(x, conv));
    end(&net, add(&net, "dense", add(&net, "flatten", x, ""), "units=3"));
    expect_part_refused(LK_PART_HEAD, &net, devices, 2,
                        "the weights of 'conv2d_1' are used in the frozen part and behind it");
    lk_device_close(devices[0]);
}

/* Stages in a row wait for all that comes before them, branches for nothing but their join. */
static void tells_rows_from_branches(void **state)
{
    (void)state;
    struct network chain = make_chain(), branches = make_branches();
    double wait = 0;
    ASSERT_OK(lk_group_wait(chain.graph, 3, &wait));
    assert_true(wait > 0.1);
    ASSERT_OK(lk_group_wait(branches.graph, 2, &wait));
    assert_true(wait >= 0 && wait < 0.05);
    lk_graph_destroy(chain.graph);
    lk_graph_destroy(branches.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_one_device),
        cmocka_unit_test(refuses_by_name),
        cmocka_unit_test(tells_rows_from_branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
