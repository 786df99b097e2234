/* A replica that computes one time step after the other, against one that computes them all. */
#include "graph/rig.h"

#include "base/random.h"
#include <math.h>
#include <string.h>

enum { STEPS = 21, TOKENS = 11, SAMPLES = 3 };

struct decoder {
    struct network net;
    struct lk_node *tokens, *length;
};

/* With a position, rotary pairs and two causal attentions; `behind` comes behind them. */
static struct decoder make_decoder(const char *heads, const char *behind, const char *options)
{
    struct decoder d = {0};
    const struct lk_input tokens = {"tokens", LK_I32, {1, {STEPS}}, 0, 0, false};
    ASSERT_OK(lk_graph_create(&d.net.graph));
    ASSERT_OK(lk_graph_add_input(d.net.graph, &tokens, &d.tokens));
    ASSERT_OK(lk_graph_add_length(d.tokens, &d.length));
    struct lk_node *x = add(&d.net, "embedding", d.tokens, "vocabulary=11 units=8");
    x = add(&d.net, "position", x, "kind=learned");
    x = add(&d.net, "position", x, "kind=sines");
    for (int i = 0; i < 2; i++) {
        struct lk_node *pair[] = {x, add(&d.net, "layer_norm", x, "")};
        x = add(&d.net, "dense", pair[1], "units=24");
        x = add(&d.net, "rotary", x, "heads=2 packed=true");
        pair[1] = add(&d.net, "attention", x, heads);
        ASSERT_OK(lk_graph_add_many(d.net.graph, "add", 2, pair, "", &x));
    }
    if (behind)
        x = add(&d.net, behind, x, options);
    x = add(&d.net, "dense", x, "units=11");
    d.net.probabilities = add(&d.net, "softmax", x, "");
    return d;
}

/* With every recurrent layer that goes forward. */
static struct decoder make_recurrent(void)
{
    struct decoder d = {0};
    const struct lk_input tokens = {"tokens", LK_I32, {1, {STEPS}}, 0, 0, false};
    ASSERT_OK(lk_graph_create(&d.net.graph));
    ASSERT_OK(lk_graph_add_input(d.net.graph, &tokens, &d.tokens));
    ASSERT_OK(lk_graph_add_length(d.tokens, &d.length));
    struct lk_node *x = add(&d.net, "embedding", d.tokens, "vocabulary=11 units=8");
    x = add(&d.net, "lstm", x, "units=9 return_sequences=true");
    x = add(&d.net, "gru", x, "units=10 return_sequences=true");
    x = add(&d.net, "gru", x, "units=7 return_sequences=true reset_after=false");
    x = add(&d.net, "rnn", x, "units=12 return_sequences=true recurrent_dropout=0.5");
    x = add(&d.net, "dense", x, "units=11");
    d.net.probabilities = add(&d.net, "softmax", x, "");
    return d;
}

static struct lk_replica_config config_of(struct lk_device *device, const struct decoder *d)
{
    return (struct lk_replica_config){.device = device,
                                      .outputs = {d->net.probabilities},
                                      .batch = SAMPLES,
                                      .shards = 1,
                                      .real = LK_F32};
}

static int32_t token_of(int sample, int step)
{
    return (int32_t)(lk_random(5, 0, (uint64_t)sample, (uint64_t)step).v[0] % TOKENS);
}

/* Fills slot 0 with `count` time steps from `first` on and reads what is predicted. */
static void run(struct lk_replica *replica, const struct decoder *d, int first, int count,
                float *to)
{
    struct lk_shape shape;
    int32_t *tokens = lk_replica_slot(replica, d->tokens, 0);
    int32_t *lengths = lk_replica_slot(replica, d->length, 0);
    for (int s = 0; s < SAMPLES; s++) {
        lengths[s] = count;
        for (int t = 0; t < count; t++)
            tokens[s * count + t] = token_of(s, first + t);
    }
    ASSERT_OK(lk_replica_load(replica, 0, SAMPLES));
    ASSERT_OK(lk_replica_forward(replica, first));
    const struct lk_buffer *y = lk_replica_output(replica, 0, &shape);
    assert_int_equal(shape.dim[0], count);
    ASSERT_OK(lk_tiled_read(y, lk_replica_tiling(replica), &shape, LK_F32, SAMPLES, to));
    ASSERT_OK(lk_replica_wait_slot(replica, 0));
}

/* Steps differ from the whole by at most `most`; `goes_on`: more may come. */
static void check_steps(struct decoder d, float most, bool goes_on)
{
    static float all[SAMPLES][STEPS][TOKENS], one[SAMPLES][1][TOKENS];
    struct lk_device *device = NULL;
    struct lk_replica *whole = NULL, *stepping = NULL;
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    struct lk_replica_config config = config_of(device, &d);
    ASSERT_OK(lk_replica_create(&config, &whole));
    ASSERT_OK(lk_replica_build(whole));
    ASSERT_OK(lk_replica_init_weights(whole, 3));
    config.one_step = true;
    config.weights_of = whole;
    ASSERT_OK(lk_replica_create(&config, &stepping));
    ASSERT_OK(lk_replica_build(stepping));
    assert_int_equal(lk_replica_forgets_nothing(stepping), goes_on);
    run(whole, &d, 0, STEPS, &all[0][0][0]);
    for (int again = 0; again < 2; again++) /* the first text leaves nothing to the second */
        for (int t = 0; t < (again ? STEPS : STEPS - 4); t++) {
            run(stepping, &d, t, 1, &one[0][0][0]);
            for (int s = 0; s < SAMPLES; s++)
                for (int c = 0; c < TOKENS; c++)
                    assert_true(fabsf(one[s][0][c] - all[s][t][c]) <= most);
        }
    lk_replica_destroy(stepping);
    lk_replica_destroy(whole);
    lk_graph_destroy(d.net.graph);
    lk_device_close(device);
}

static void steps_predict_what_the_whole_does(void **state)
{
    (void)state;
    check_steps(make_decoder("heads=2 causal=true", "tanh", ""), 1e-6f, false);
    check_steps(make_decoder("heads=2 causal=true", "gru", "units=8 return_sequences=true"),
                1e-6f, false);
}

/* A carried state is the same number: not a bit differs. */
static void recurrent_layers_carry_their_states(void **state)
{
    (void)state;
    check_steps(make_recurrent(), 0, true);
}

static void check_refused(struct lk_device *device, const struct decoder *d, const char *node)
{
    struct lk_replica_config config = config_of(device, d);
    struct lk_replica *replica = NULL;
    config.one_step = true;
    assert_int_equal(lk_replica_create(&config, &replica), LK_E_UNSUPPORTED);
    assert_non_null(strstr(lk_error_text(), node));
    lk_error_clear();
    lk_graph_destroy(d->net.graph);
}

/* Whatever looks at later time steps, or changes which there are. */
static void refuses(void **state)
{
    (void)state;
    struct lk_device *device = NULL;
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    struct decoder d = make_decoder("heads=2", NULL, "");
    check_refused(device, &d, "attention_1");
    d = make_decoder("heads=2 causal=true", "conv1d", "filters=8 kernel=3 padding=same");
    check_refused(device, &d, "conv1d_1");
    d = make_decoder("heads=2 causal=true", "reverse_steps", "");
    check_refused(device, &d, "reverse_steps_1");
    d = make_decoder("heads=2 causal=true", "flatten", "");
    check_refused(device, &d, "dense_3");
    d = make_decoder("heads=2 causal=true", "lstm",
                     "units=8 return_sequences=true go_backwards=true");
    check_refused(device, &d, "lstm_1");
    lk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_predict_what_the_whole_does),
        cmocka_unit_test(recurrent_layers_carry_their_states),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
