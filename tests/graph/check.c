/* Which operations of a graph the check before training runs: each once, and one that stands
 * for those that are the same to the bit. */
#include "graph/check/check.h"

#include "device/trace.h"
#include "graph/planes.h"
#include "graph/rig.h"
#include <string.h>

enum { MOST = 4000 };

static struct lk_device *device;

static int open_device(void **state)
{
    (void)state;
    return lk_device_open(NULL, 0, &device) == LK_OK ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    lk_device_close(device);
    return 0;
}

/* Two convolutions of the same kind and a third, with these options. Between them stands what
 * is not checked, since its output does not scale. */
static struct network make(const char *options, bool is_trained)
{
    struct network net = {0};
    const struct lk_input image = {"image",   LK_U8, {3, {CHANNELS, SIDE, SIDE}},
                                   1 / 255.0, 0,     false};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    ASSERT_OK(lk_graph_create(&net.graph));
    ASSERT_OK(lk_graph_add_input(net.graph, &image, &net.images));
    ASSERT_OK(lk_graph_add_input(net.graph, &labels, &net.labels));
    struct lk_node *x = add(&net, "conv2d", net.images, "filters=4 kernel=1");
    x = add(&net, "tanh", x, "");
    x = add(&net, "conv2d", x, "filters=4 kernel=3 padding=same");
    x = add(&net, "tanh", x, "");
    if (options) {
        struct lk_node *third = x = add(&net, "conv2d", x, options);
        lk_node_set_trainable(third, is_trained);
        x = add(&net, "tanh", x, "");
    }
    x = add(&net, "flatten", x, "");
    x = add(&net, "dense", x, "units=3");
    struct lk_node *pair[] = {add(&net, "softmax", x, ""), net.labels};
    ASSERT_OK(lk_graph_add_many(net.graph, "cross_entropy", 2, pair, "", &net.loss));
    return net;
}

/* How many kernels with such a name a check of such a network runs. */
static int count_named(const char *begin, const char *options, bool is_trained, bool few)
{
    static struct lk_traced traced[MOST];
    struct network net = make(options, is_trained);
    const struct lk_check_config config = {
        .device = device, .loss = net.loss, .batch = BATCH, .shards = 1, .few_samples = few};
    int64_t dropped = 0;
    int launches = 0;
    ASSERT_OK(lk_trace_begin(device, MOST));
    lk_trace_step(device, 1);
    ASSERT_OK(lk_graph_check(&config));
    ASSERT_OK(lk_device_finish(device));
    const int count = lk_trace_collect(device, traced, MOST, &dropped);
    lk_trace_end(device);
    lk_graph_destroy(net.graph);
    assert_int_equal(dropped, 0);
    for (int i = 0; i < count; i++)
        launches += strncmp(traced[i].name, begin, strlen(begin)) == 0;
    return launches;
}

static int count_launches(const char *options, bool is_trained)
{
    return count_named("conv2d", options, is_trained, false);
}

/* Those that run in plane tiles (a plane of which has dead lanes) are checked there. */
static void checks_few_samples_in_plane_tiles(void **state)
{
    (void)state;
    if (!lk_devices_take_planes(&device, 1))
        skip();
    const int launches = count_named("planes", "filters=5 kernel=3", true, true);
    assert_true(launches >= 6);
    assert_true(count_named("conv2d", "filters=5 kernel=3", true, true) <
                count_launches("filters=5 kernel=3", true));
    assert_int_equal(count_named("planes", "filters=5 kernel=3", true, false), 0);
}

static void checks_equal_operations_once(void **state)
{
    (void)state;
    const int launches = count_launches(NULL, true);
    assert_true(launches > 0);
    assert_int_equal(count_launches("filters=4 kernel=3 padding=same", true), launches);
}

static void checks_different_operations(void **state)
{
    (void)state;
    static const char *const different[] = {"filters=4 kernel=3 padding=same bias=false",
                                            "filters=4 kernel=3 padding=same stride=2",
                                            "filters=4 kernel=3 padding=same activation=relu",
                                            "filters=5 kernel=3 padding=same",
                                            "filters=4 kernel=3"};
    const int launches = count_launches(NULL, true);
    for (size_t i = 0; i < sizeof different / sizeof different[0]; i++)
        assert_true(count_launches(different[i], true) > launches);
    /* the same, but frozen: it has no gradient of weights */
    assert_true(count_launches("filters=4 kernel=3 padding=same", false) > launches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_equal_operations_once),
        cmocka_unit_test(checks_different_operations),
        cmocka_unit_test(checks_few_samples_in_plane_tiles),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
