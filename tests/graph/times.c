/* Measured times of operations: each is measured once, and divisions and the estimate of a step
 * follow what was measured. */
#include "graph/tune/times.h"
#include "device/device.h"
#include "graph/nodes/schedule.h"
#include "graph/place/choose.h"
#include "graph/rig.h"
#include "graph/tune/rounds.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 20, SHARDS = 4, LAYERS = 4 };

/* Four layers of one size in a row, then the loss. */
static struct network make_chain(struct lk_node *layers[LAYERS])
{
    struct network net = {0};
    const struct lk_input image = {"image", LK_U8, {3, {CHANNELS, SIDE, SIDE}}, 1, 0, false};
    const struct lk_input labels = {"labels", LK_I32, {0, {0}}, 0, 0, false};
    ASSERT_OK(lk_graph_create(&net.graph));
    ASSERT_OK(lk_graph_add_input(net.graph, &image, &net.images));
    ASSERT_OK(lk_graph_add_input(net.graph, &labels, &net.labels));
    struct lk_node *x = add(&net, "flatten", net.images, "");
    for (int i = 0; i < LAYERS; i++)
        x = layers[i] = add(&net, "dense", x, "units=64");
    x = add(&net, "softmax", add(&net, "dense", x, "units=3"), "");
    struct lk_node *pair[] = {x, net.labels};
    ASSERT_OK(lk_graph_add_many(net.graph, "cross_entropy", 2, pair, "", &net.loss));
    return net;
}

static struct lk_replica_config config_of(const struct network *net)
{
    return (struct lk_replica_config){.outputs = {net->loss},
                                      .batch = SAMPLES,
                                      .shards = SHARDS,
                                      .real = LK_F32,
                                      .training = true};
}

struct change {
    struct lk_choices *to;
    int count;
};

static void slow_down(void *context, const char *key, const char *text)
{
    struct change *change = context;
    (void)text;
    change->count++;
    ASSERT_OK(lk_choices_set(change->to, key, "123.5"));
}

static void measures_once(void **state)
{
    struct lk_node *layers[LAYERS];
    struct network net = make_chain(layers);
    struct lk_device *device = NULL;
    struct lk_choices *known = NULL, *changed = NULL;
    struct lk_op_times times;
    int timed = 0;
    (void)state;
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    ASSERT_OK(lk_choices_create(LK_MATH_NORMAL, &known));
    ASSERT_OK(lk_choices_create(LK_MATH_NORMAL, &changed));
    struct lk_times_config config = {.device = device,
                                     .loss = net.loss,
                                     .batch = SAMPLES,
                                     .shards = SHARDS,
                                     .choices = known,
                                     .known = changed};
    assert_int_equal(lk_times_measure(&config, &times), LK_E_UNSUPPORTED); /* in no time */
    lk_error_clear();
    config.seconds = 1000;
    ASSERT_OK(lk_times_measure(&config, &times));
    for (int i = 0; i < times.count; i++)
        timed += times.ms[i] > 0;
    assert_true(timed >= LAYERS + 1); /* all but flatten and the loss */
    free(times.ms);
    struct change change = {.count = 0};
    ASSERT_OK(lk_choices_create(LK_MATH_NORMAL, &change.to));
    lk_choices_each(changed, slow_down, &change);
    assert_int_equal(change.count, timed - LAYERS + 2); /* the last three layers are one */
    config.known = change.to;
    config.seconds = 0;
    ASSERT_OK(lk_times_measure(&config, &times));
    for (int i = 0; i < times.count; i++)
        assert_true(times.ms[i] == 0 || times.ms[i] == 123.5);
    free(times.ms);
    struct lk_choices *none = NULL; /* where no time is left, older times are taken */
    ASSERT_OK(lk_choices_create(LK_MATH_NORMAL, &none));
    config.known = none;
    config.older = change.to;
    ASSERT_OK(lk_times_measure(&config, &times));
    for (int i = 0; i < times.count; i++)
        assert_true(times.ms[i] == 0 || times.ms[i] == 123.5);
    free(times.ms);
    config.seconds = 1000; /* else they are measured again */
    ASSERT_OK(lk_times_measure(&config, &times));
    for (int i = 0; i < times.count; i++)
        assert_true(times.ms[i] < 123.5);
    free(times.ms);
    lk_choices_destroy(none);
    lk_choices_destroy(change.to);
    lk_choices_destroy(changed);
    lk_choices_destroy(known);
    lk_graph_destroy(net.graph);
    lk_device_close(device);
}

/* One layer takes longer than the three others together, whatever its FLOPs. */
static void follows_what_was_measured(void **state)
{
    struct lk_device *devices[2] = {NULL};
    (void)state;
    ASSERT_OK(lk_device_open(NULL, 0, &devices[0]));
    devices[1] = devices[0];
    for (int slow = 0; slow < LAYERS; slow += LAYERS - 1) {
        struct lk_node *layers[LAYERS];
        struct network net = make_chain(layers);
        struct lk_schedule schedule = {0};
        double ms[16] = {0};
        const struct lk_replica_config config = config_of(&net);
        ASSERT_OK(lk_schedule_make(config.outputs, true, &schedule));
        struct lk_measured_ops measured = {
            .ms = ms, .count = schedule.op_count, .micro_batches = 4};
        for (int i = 0; i < schedule.op_count; i++)
            ms[i] = 1;
        const double all = schedule.op_count - LAYERS + 10 * (LAYERS - 1) + 40;
        for (int i = 0; i < schedule.op_count; i++)
            for (int j = 0; j < LAYERS; j++)
                if (schedule.ops[i].node == layers[j])
                    ms[i] = j == slow ? 40 : 10;
        lk_schedule_clear(&schedule);
        ASSERT_OK(lk_group_choose(&config, devices, 2, 1, &measured));
        assert_int_equal(lk_node_place(layers[0]), 0);
        assert_int_equal(lk_node_place(layers[1]), slow == 0);
        assert_int_equal(lk_node_place(layers[LAYERS - 1]), 1);

        struct lk_group_estimate of_four, of_one;
        ASSERT_OK(lk_group_estimate(&config, devices, 2, 2, &measured, &of_four));
        assert_float_equal(of_four.alone_ms, 4 * all, 1e-6 * all);
        assert_true(of_four.step_ms > of_four.busy_ms[0] &&
                    of_four.step_ms > of_four.busy_ms[1]);
        assert_true(of_four.crossing_ms[0] > 0);
        const double crossing = of_four.crossing_ms[0] + of_four.crossing_ms[1];
        const double busy = of_four.busy_ms[0] + of_four.busy_ms[1];
        assert_true(busy > 4 * all + crossing); /* with sums and updates */
        assert_true(of_four.step_ms < busy);    /* at the same time, for a part */
        measured.micro_batches = 1;             /* one device after the other */
        ASSERT_OK(lk_group_estimate(&config, devices, 2, 2, &measured, &of_one));
        assert_true(of_one.step_ms >= all);
        measured.count--; /* of another graph */
        assert_int_equal(lk_group_estimate(&config, devices, 2, 2, &measured, &of_one),
                         LK_E_UNSUPPORTED);
        lk_error_clear();
        lk_graph_destroy(net.graph);
    }
    lk_device_close(devices[0]);
}

/* Times of a driver count only where all of them can be right. */
static void doubts_marks(void **state)
{
    static const struct {
        double marks[4], all, expected[3];
    } cases[] = {{{10, 13, 15, 19}, 10, {1.5, 1, 2}},
                 {{-1, -1, -1, -1}, 12, {2, 2, 2}},             /* none */
                 {{10, 13, 13, 19}, 12, {2, 2, 2}},             /* not one by one */
                 {{10, 10.001, 10.002, 10.003}, 12, {2, 2, 2}}, /* far too short */
                 {{0, 13, 15, 19}, 12, {2, 2, 2}}}; /* longer than by the host's clock */
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds[3];
        lk_rounds_divide(cases[i].marks, 3, 2, cases[i].all, seconds);
        for (int r = 0; r < 3; r++)
            assert_float_equal(seconds[r], cases[i].expected[r], 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(measures_once),
                                       cmocka_unit_test(doubts_marks),
                                       cmocka_unit_test(follows_what_was_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
