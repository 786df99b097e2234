/* Models of several inputs and outputs: gradients of the weighted sum of losses against
 * differences of the loss, predictions of every output, and what the text may say. */
#include "model/model.h"

#include "base/fail.h"
#include "base/random.h"
#include "graph/replica.h"
#include "ok.h"
#include "skip.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 21, FEATURES = 5, STEPS = 4, CLASSES = 3 };

/* Numbers and an image in; a class, a class for each step, numbers, and yes or no out. */
static const char text[] = "name: many\n"
                           "input: {numbers: [5], image: [4, 4, 1]}\n"
                           "layers:\n"
                           "  - {flatten: , from: image}\n"
                           "  - {dense: {units: 5, activation: tanh}, name: seen}\n"
                           "  - {add: , from: [seen, numbers], name: body}\n"
                           "  - {dense: {units: 3}, name: c}\n"
                           "  - {softmax: , name: kind}\n"
                           "  - {dense: {units: 8}, from: body}\n"
                           "  - {reshape: {shape: [4, 2]}, name: each}\n"
                           "  - {softmax: , name: steps}\n"
                           "  - {dense: {units: 2}, from: body, name: amounts}\n"
                           "  - {dense: {units: 1}, from: body, name: b}\n"
                           "  - {sigmoid: , name: side}\n"
                           "output: {kind: kind, steps: steps, amounts: amounts, side: side}\n"
                           "loss:\n"
                           "  kind: {cross_entropy: {weight: 2}}\n"
                           "  steps: cross_entropy\n"
                           "  amounts: {huber: {delta: 0.5, weight: 0.25}}\n"
                           "  side: binary_cross_entropy\n"
                           "metrics: {kind: [accuracy, {top_k: {k: 2}}], side: auc}\n";

static struct lk_model *read_model(const char *source)
{
    struct lk_model *model = NULL;
    ASSERT_OK(lk_model_read(source, strlen(source), "m.yaml", &model));
    return model;
}

static double chance(int stream, int64_t i)
{
    return 2 * lk_random_unit(
                   lk_random(9, LK_RANDOM_DATA, (uint32_t)stream, (uint64_t)i).v[0]) -
           1;
}

static void fill(struct lk_replica *replica, const struct lk_node *node, int stream)
{
    const struct lk_input *input = &node->input;
    void *memory = lk_replica_slot(replica, node, 0);
    const int64_t count = BATCH * lk_shape_count(&input->shape);
    for (int64_t i = 0; i < count && memory; i++)
        if (input->dtype == LK_U8)
            ((uint8_t *)memory)[i] = (uint8_t)(i * 37 + i * i % 101);
        else if (input->dtype == LK_F32)
            ((float *)memory)[i] = (float)chance(stream, i);
        else /* of the steps some have no label */
            ((int32_t *)memory)[i] = (int32_t)(i % 5 == 4 && input->shape.rank ? -1 : i % 2);
}

static void load(struct lk_replica *replica, const struct lk_model *model)
{
    for (int i = 0; i < model->input_count; i++)
        fill(replica, model->inputs[i], i);
    for (int i = 0; i < model->output_count; i++)
        if (model->outputs[i].target)
            fill(replica, model->outputs[i].target, 8 + i);
    ASSERT_OK(lk_replica_load(replica, 0, BATCH));
}

static struct lk_replica *make_replica(struct lk_device *device, const struct lk_model *model,
                                       enum lk_dtype real)
{
    struct lk_replica *replica = NULL;
    struct lk_replica_config config = {
        .device = device, .batch = BATCH, .shards = 2, .real = real, .training = model->loss};
    if (model->loss)
        config.outputs[0] = model->loss;
    else
        lk_model_output_nodes(model, config.outputs);
    ASSERT_OK(lk_replica_create(&config, &replica));
    ASSERT_OK(lk_replica_build(replica));
    ASSERT_OK(lk_replica_init_weights(replica, 3));
    return replica;
}

static double total_loss(struct lk_replica *replica, const struct lk_model *model)
{
    double values[BATCH * 2], sum = 0;
    struct lk_shape shape;
    load(replica, model);
    ASSERT_OK(lk_replica_forward(replica, 1));
    const struct lk_buffer *y = lk_replica_output(replica, 0, &shape);
    ASSERT_OK(lk_tiled_read(y, lk_replica_tiling(replica), &shape, LK_F64, BATCH, values));
    for (int i = 0; i < BATCH; i++)
        sum += values[2 * i];
    return sum;
}

static void check_parameter(struct lk_replica *replica, const struct lk_model *model, int index,
                            const double *gradients)
{
    const struct lk_param *param = lk_replica_param(replica, index);
    const int64_t stride = lk_replica_gradient_count(replica);
    const double h = 1e-5;
    double w[64], moved[64], loss[2], slope = 0;
    assert_true(param->count <= 64 || param->count == 80);
    const int64_t count = param->count <= 64 ? param->count : 64;
    double *all = malloc((size_t)param->count * sizeof *all);
    ASSERT_OK(lk_replica_read_param(replica, index, all));
    memcpy(w, all, (size_t)count * sizeof *w);
    for (int64_t e = 0; e < count; e++)
        slope += chance(20 + index, e) *
                 (gradients[param->offset + e] + gradients[stride + param->offset + e]);
    for (int side = 0; side < 2; side++) {
        for (int64_t e = 0; e < count; e++)
            moved[e] = w[e] + (side ? h : -h) * chance(20 + index, e);
        memcpy(all, moved, (size_t)count * sizeof *moved);
        ASSERT_OK(lk_replica_write_param(replica, index, all));
        loss[side] = total_loss(replica, model);
    }
    memcpy(all, w, (size_t)count * sizeof *w);
    ASSERT_OK(lk_replica_write_param(replica, index, all));
    const double measured = (loss[1] - loss[0]) / (2 * h);
    if (!(fabs(measured - slope) <= 1e-6 * (fabs(slope) + 1)) || fabs(slope) < 1e-9)
        fail_msg("%s: slope %.10g, gradient says %.10g", param->name, measured, slope);
    free(all);
}

static void adds_gradients_of_all_losses(void **state)
{
    static const char *const classes[] = {"cpu", "gpu"};
    (void)state;
    for (int c = 0; c < 2; c++) {
        struct lk_device *device = NULL;
        struct lk_model *model = read_model(text);
        struct lk_node *loss = NULL;
        setenv("LOCKSTEP_CLASS", classes[c], 1);
        ASSERT_OK(lk_device_open(NULL, 0, &device));
        if (!lk_device_info(device)->has_fp64) {
            lk_device_close(device);
            lk_model_destroy(model);
            SKIP_TEST("the device has no double precision");
        }
        ASSERT_OK(lk_model_add_losses(model, -1, &loss));
        struct lk_replica *replica = make_replica(device, model, LK_F64);
        const size_t bytes = lk_buffer_bytes(lk_replica_gradients(replica));
        double *gradients = malloc(bytes);
        (void)total_loss(replica, model);
        ASSERT_OK(lk_replica_backward(replica));
        ASSERT_OK(lk_buffer_read(lk_replica_gradients(replica), 0, bytes, gradients));
        for (int i = 0; lk_replica_param(replica, i); i++)
            check_parameter(replica, model, i, gradients);
        free(gradients);
        lk_replica_destroy(replica);
        lk_model_destroy(model);
        lk_device_close(device);
    }
    unsetenv("LOCKSTEP_CLASS");
}

/* The weights of another replica, by their names: what is drawn depends on what else there is.
 */
static void copy_weights(struct lk_replica *to, const struct lk_replica *from)
{
    float values[128];
    for (int i = 0; lk_replica_param(to, i); i++)
        for (int j = 0; lk_replica_param(from, j); j++)
            if (strcmp(lk_replica_param(to, i)->name, lk_replica_param(from, j)->name) == 0) {
                assert_true(lk_replica_param(from, j)->count <= 128);
                ASSERT_OK(lk_replica_read_param(from, j, values));
                ASSERT_OK(lk_replica_write_param(to, i, values));
            }
}

/* Every output's values, as if it were the only one. */
static void predicts_every_output(void **state)
{
    struct lk_device *device = NULL;
    struct lk_model *model = read_model(text);
    (void)state;
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    struct lk_replica *all = make_replica(device, model, LK_F32);
    load(all, model);
    ASSERT_OK(lk_replica_forward(all, 1));
    for (int i = 0; i < model->output_count; i++) {
        struct lk_model alone = *model;
        float together[BATCH * 8], single[BATCH * 8];
        struct lk_shape shape, same;
        const struct lk_buffer *y = lk_replica_output(all, i, &shape);
        ASSERT_OK(lk_tiled_read(y, lk_replica_tiling(all), &shape, LK_F32, BATCH, together));
        alone.outputs[0] = model->outputs[i];
        alone.output_count = 1;
        struct lk_replica *one = make_replica(device, &alone, LK_F32);
        copy_weights(one, all);
        load(one, model);
        ASSERT_OK(lk_replica_forward(one, 1));
        y = lk_replica_output(one, 0, &same);
        assert_true(lk_shape_equal(&shape, &same));
        ASSERT_OK(lk_tiled_read(y, lk_replica_tiling(one), &same, LK_F32, BATCH, single));
        assert_memory_equal(together, single,
                            (size_t)(BATCH * lk_shape_count(&shape)) * sizeof(float));
        lk_replica_destroy(one);
    }
    lk_replica_destroy(all);
    lk_model_destroy(model);
    lk_device_close(device);
}

static void reads_what_is_asked_for(void **state)
{
    struct lk_model *model = read_model(text);
    const struct lk_model_output *o = model->outputs;
    (void)state;
    assert_int_equal(model->output_count, 4);
    assert_string_equal(o[0].name, "kind");
    assert_true(o[0].weight == 2 && o[2].weight == 0.25);
    assert_int_equal(o[0].shape.form, LK_FORM_CLASS);
    assert_int_equal(o[1].shape.time_steps, STEPS);
    assert_int_equal(o[2].shape.form, LK_FORM_VALUES);
    assert_int_equal(o[3].shape.form, LK_FORM_CHOICE);
    assert_int_equal(o[0].metric_count, 2);
    assert_string_equal(o[0].metrics[1].label, "top_k(k=2)");
    assert_string_equal(o[1].metrics[0].kind->name, "accuracy");
    assert_string_equal(o[2].metrics[0].kind->name, "mean_absolute_error");
    assert_string_equal(o[3].metrics[0].kind->name, "auc");
    lk_model_destroy(model);
}

#define TOP "input: [5]\nlayers:\n- {dense: {units: 3}, name: a}\n- {softmax: , name: p}\n"
#define BOTH TOP "output: {a: a, p: p}\n"

static void refuses(void **state)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {TOP "output: {}\n", "m.yaml:5: 'output' names no layer"},
        {TOP "output: {a: q}\n", "m.yaml:5: no layer or input before this one is named 'q'"},
        {TOP "output: [a, a]\n", "m.yaml:5: 'a' is an output twice"},
        {TOP "output: {x: a, y: p, x: p}\n", "'x'"},
        {TOP "loss: crossentropy\n",
         "m.yaml:5: there is no metric 'crossentropy'; did you mean "
         "'cross_entropy'?"},
        {TOP "loss: top_k\n", "m.yaml:5: top_k is a metric, but nothing to train for"},
        {TOP "loss: [huber]\n", "m.yaml:5: a name or {name: {options}} expected, found a list"},
        {TOP "loss: {huber: 3}\n", "m.yaml:5: huber takes {option: value, ...}, found '3'"},
        {TOP "loss: {huber: {dalta: 3}}\n", "m.yaml:5: unknown option 'dalta'; did you mean"},
        {TOP "loss: {huber: {weight: -1}}\n", "m.yaml:5: option 'weight': -1 is not in 0.."},
        {TOP "loss: {cross_entropy: {target: words}}\n", "m.yaml:5: option 'target': 'words'"},
        {TOP "loss: {binary_cross_entropy: {target: class}}\n",
         "m.yaml:5: a class, yes or no, is the target of one number, output 'p' has more"},
        {TOP "loss: cross_entropy\nmetrics: huber\n",
         "m.yaml:6: huber is not defined for an output that predicts one class of several"},
        {TOP "loss: cross_entropy\nmetrics: {top_k: {k: 0}}\n",
         "m.yaml:6: option 'k': 0 is not"},
        {BOTH "loss: huber\n", "m.yaml:6: {output: loss, ...} expected, found 'huber'"},
        {BOTH "loss: {b: huber}\n", "m.yaml:6: unknown key 'b'"},
        {BOTH "loss: {a: huber}\n", "m.yaml:6: output 'p' has no loss"},
        {TOP "loss: {}\n", "m.yaml:5: a name or {name: {options}} expected, found a map"},
        {TOP "metrics: [recall, {top_k: {k: 2}}, recall]\n", "m.yaml:5: metric recall twice"},
        {TOP "metrics: {top_k: {k: 4}}\n", "m.yaml:5: the best 4 of 3 classes"},
        {TOP "loss: {huber: {target: class}}\n",
         "m.yaml:5: huber compares with numbers, not with a class"},
        {"input: [5]\nlayers:\n- {dense: {units: 1}, name: a}\nmetrics: accuracy\n",
         "without `loss:` an output is a vector of at least 2 class probabilities"},
        {"input: {x: {shape: [5], type: uint8}}\nlayers: [relu]\n",
         "m.yaml:1: uint8 is for images"},
        {"input: {x: {shape: [5], type: int64}}\nlayers: [relu]\n", "'int64'"},
    };
    (void)state;
    for (int i = 0; i < LK_COUNT(cases); i++) {
        struct lk_model *model = NULL;
        const char *source = cases[i].text;
        assert_int_equal(lk_model_read(source, strlen(source), "m.yaml", &model), LK_E_MODEL);
        if (!strstr(lk_error_text(), cases[i].said))
            fail_msg("'%s' gave '%s', expected '%s'", source, lk_error_text(), cases[i].said);
        lk_error_clear();
    }
}

/* What is trained for belongs to what a run goes on with; metrics do not. */
static void tells_models_apart(void **state)
{
    static const struct {
        const char *other;
        bool is_same;
    } cases[] = {
        {TOP "loss: cross_entropy\n", true},
        {TOP "loss: cross_entropy\nmetrics: {top_k: {k: 2}}\n", true},
        {TOP "loss: {cross_entropy: {weight: 2}}\n", false},
        {TOP "loss: {cross_entropy: {target: numbers}}\n", false},
        {TOP "loss: mean_squared_error\n", false},
        {TOP "output: a\nloss: mean_squared_error\n", false},
    };
    struct lk_model *model = read_model(TOP "loss: cross_entropy\n");
    (void)state;
    for (int i = 0; i < LK_COUNT(cases); i++) {
        bool is_same = !cases[i].is_same;
        ASSERT_OK(lk_model_compare(model, cases[i].other, &is_same));
        if (is_same != cases[i].is_same)
            fail_msg("'%s' is taken for %s", cases[i].other, is_same ? "the same" : "another");
    }
    lk_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_gradients_of_all_losses), cmocka_unit_test(predicts_every_output),
        cmocka_unit_test(reads_what_is_asked_for),      cmocka_unit_test(refuses),
        cmocka_unit_test(tells_models_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
