/* Model texts: graphs out of good ones, the line and the reason out of bad ones. */
#include "model/rig.h"

#include "base/random.h"
#include <stdlib.h>

static struct lk_node_info find(struct lk_model *model, const char *name)
{
    const struct lk_node *node = lk_graph_find(lk_model_graph(model), name);
    if (!node)
        fail_msg("no node '%s'", name);
    return lk_node_info(node);
}

static void assert_shape(struct lk_shape shape, int rank, int64_t a, int64_t b, int64_t c)
{
    assert_int_equal(shape.rank, rank);
    const int64_t expected[] = {a, b, c};
    for (int i = 0; i < rank; i++)
        assert_int_equal(shape.dim[i], expected[i]);
}

static void reads_a_chain(void **state)
{
    (void)state;
    struct lk_model *model = read_model("input: [20, 16, 3]\n"
                                        "layers:\n"
                                        "  - max_pool: {size: [5, 2], padding: [0, 0, 1, 1]}\n"
                                        "  - flatten\n"
                                        "  - dense: {units: 10, activation: relu}\n"
                                        "    name: head\n"
                                        "    trainable: no\n"
                                        "  - softmax:\n");
    assert_shape(lk_node_info(lk_model_input(model, 0)).shape, 3, 3, 20, 16);
    assert_string_equal(lk_node_info(lk_model_input(model, 0)).name, "image");
    assert_null(lk_model_input(model, 1));
    assert_shape(find(model, "max_pool_1").shape, 3, 3, 4, 9);
    assert_shape(find(model, "flatten_1").shape, 1, 108, 0, 0);
    assert_int_equal(find(model, "head").parameters, 108 * 10 + 10);
    assert_false(find(model, "head").is_trainable);
    assert_true(find(model, "softmax_1").is_trainable);
    assert_string_equal(lk_node_info(lk_model_output(model)).name, "softmax_1");
    assert_string_equal(lk_model_name(model), "m");
    char options[64];
    lk_node_options(lk_graph_find(lk_model_graph(model), "head"), options, sizeof options);
    assert_string_equal(options, "units=10 activation=relu");
    assert_string_equal(warnings, "");
    lk_model_destroy(model);
    lk_model_destroy(NULL);
}

static void adds_activations_behind(void **state)
{
    (void)state;
    struct lk_model *model = read_model("name: act\n"
                                        "input: [2, 2, 1]\n"
                                        "layers:\n"
                                        "  - flatten\n"
                                        "  - dense: {units: 4, activation: tanh}\n"
                                        "    name: a\n"
                                        "  - {dense: {units: 4, activation: relu}, from: a}\n");
    const struct lk_node *tanh_1 = lk_graph_find(lk_model_graph(model), "tanh_1");
    assert_non_null(tanh_1);
    assert_string_equal(lk_node_info(lk_node_input(tanh_1, 0)).name, "a");
    assert_ptr_equal(lk_node_input(lk_model_output(model), 0), tanh_1);
    assert_null(lk_graph_find(lk_model_graph(model), "relu_1"));
    assert_string_equal(lk_model_name(model), "act");
    lk_model_destroy(model);
}

static void reads_branches(void **state)
{
    (void)state;
    struct lk_model *model = read_model("input:\n"
                                        "  image: [4, 4, 2]\n"
                                        "  other: {shape: [4, 4, 2], scale: 0.5, shift: -1}\n"
                                        "classes: 7\n"
                                        "layers:\n"
                                        "  - {relu: , name: left, from: image}\n"
                                        "  - {relu: , name: right, from: other}\n"
                                        "  - add:\n"
                                        "    from: [left, right, image]\n"
                                        "    name: sum\n"
                                        "  - flatten\n"
                                        "  - {dense: {units: $classes}, name: last}\n"
                                        "  - {relu: , from: last, name: extra}\n"
                                        "output: last\n");
    assert_int_equal(find(model, "sum").inputs, 3);
    assert_ptr_equal(lk_node_input(lk_graph_find(lk_model_graph(model), "right"), 0),
                     lk_model_input(model, 1));
    assert_int_equal(find(model, "last").shape.dim[0], 7);
    assert_string_equal(lk_node_info(lk_model_output(model)).name, "last");
    assert_string_equal(warnings, "m.yaml:13: the output 'last' does not need layer 'extra'\n");
    lk_model_destroy(model);
}

/* Axes by name, several inputs, channels repeated over an image. */
static void reads_arrangements(void **state)
{
    (void)state;
    struct lk_model *model = read_model("input: [12, 10, 3]\n"
                                        "layers:\n"
                                        "  - {name: part, slice: {h: [2, -2], c: [0, 2]}}\n"
                                        "  - {name: cut, crop: {cropping: [0, 1, 2, 3]}}\n"
                                        "  - {name: ring, pad: {padding: [1, 2], value: 0.5}}\n"
                                        "  - {name: big, upsample: {size: [2, 3]}}\n"
                                        "  - {name: top, from: image, global_max_pool: }\n"
                                        "  - {name: gain, dense: {units: 2}}\n"
                                        "  - {name: scaled, from: [gain, big], multiply: }\n"
                                        "  - {from: [big, scaled, big], concat: }\n"
                                        "  - {name: last, from: [scaled, big],\n"
                                        "     concat: {axis: h}}\n");
    assert_shape(find(model, "part").shape, 3, 2, 8, 10);
    assert_shape(find(model, "cut").shape, 3, 2, 7, 5);
    assert_shape(find(model, "ring").shape, 3, 2, 9, 9);
    assert_shape(find(model, "big").shape, 3, 2, 18, 27);
    assert_shape(find(model, "top").shape, 1, 3, 0, 0);
    assert_shape(find(model, "scaled").shape, 3, 2, 18, 27);
    assert_shape(find(model, "concat_1").shape, 3, 6, 18, 27);
    assert_shape(find(model, "last").shape, 3, 2, 36, 27);
    lk_model_destroy(model);
}

static void warns_of_unused_inputs(void **state)
{
    (void)state;
    lk_model_destroy(read_model("input: {a: [2, 2, 1], b: [2, 2, 1]}\n"
                                "layers:\n"
                                "  - {relu: , from: b}\n"));
    assert_string_equal(warnings,
                        "m.yaml:1: the output 'relu_1' does not depend on input 'a'\n");
}

#define IN "input: [8, 8, 1]\n"
#define TOP IN "layers:\n"

static const struct {
    const char *text, *said;
} bad_texts[] = {
    {"layers: [relu]\n", "m.yaml:1: 'input: [height, width, channels]' is missing"},
    {"- relu\n", "m.yaml:1: expected a map, found a list"},
    {IN, "m.yaml:1: 'layers:' is missing"},
    {IN "layers: []\n", "m.yaml:2: 'layers' is a list of at least one operation"},
    {IN "layers: relu\n", "m.yaml:2: 'layers' is a list"},
    {IN "layer: [relu]\n", "m.yaml:2: unknown key 'layer'; did you mean 'layers'?"},
    {"input: [1, 2, 3, 4, 5]\nlayers: [relu]\n",
     "m.yaml:1: a shape, [height, width, channels]"},
    {"input: [8, 0, 1]\nlayers: [relu]\n", "m.yaml:1: option 'shape': [8, 0, 1] is not in"},
    {"input: [8, x, 1]\nlayers: [relu]\n", "not one whole number for each axis"},
    {"input: {a: {scale: 1}}\nlayers: [relu]\n", "m.yaml:1: an input without 'shape'"},
    {"input: [4, 2]\nlayers:\n  - rnn: {units: 2, activation: sigmoid}\n",
     "m.yaml:3: rnn: option 'activation'"},
    {"input: {a: {shape: [8, 8, 1], scala: 1}}\nlayers: [relu]\n", "did you mean 'scale'?"},
    {"input: {}\nlayers: [relu]\n", "m.yaml:1: 'input' names no input"},
    {"input: {a: [8, 8, 1], b: [8, 8, 1]}\nlayers: [relu]\n",
     "m.yaml:2: the first layer of a model with 2 inputs needs 'from'"},
    {"input: {a b: [8, 8, 1]}\nlayers: [relu]\n", "m.yaml:1: node name 'a b'"},
    {TOP "- rely\n", "m.yaml:3: unknown operation 'rely'; did you mean 'relu'?"},
    {TOP "- relu\n- flaten: {}\n",
     "m.yaml:4: 'flaten' is no operation and no key of a layer; did you mean 'flatten'?"},
    {TOP "- {relu: , nam: x}\n", "did you mean 'name'?"},
    {TOP "- {relu: , tanh: }\n", "m.yaml:3: two operations in one layer: relu and tanh"},
    {TOP "- {name: x}\n", "m.yaml:3: a layer without an operation"},
    {TOP "- relu:\n    from: x\n",
     "m.yaml:4: 'from' is no option of relu but a key of its entry: write it beside 'relu:'"},
    {TOP "- [relu]\n", "m.yaml:3: an operation or {operation: {options}} expected"},
    {TOP "- flatten\n- dense: 10\n", "m.yaml:4: dense takes {option: value, ...}, found '10'"},
    {TOP "- flatten\n- dense:\n    units: 10\n    bais: no\n",
     "m.yaml:6: dense: unknown option 'bais'; did you mean 'bias'?"},
    {TOP "- flatten\n- dense:\n    units: x\n",
     "m.yaml:5: dense: option 'units': 'x' is not a whole number"},
    {TOP "- flatten\n- dense: {units: 0}\n", "m.yaml:4: dense: option 'units': 0 is not in"},
    {TOP "- flatten\n- dense\n", "m.yaml:4: dense_1: option 'units' is missing"},
    {TOP "- flatten\n- dense: {units: [[1]]}\n", "m.yaml:4: a number or a word expected"},
    {TOP "- flatten\n- dense: {units: }\n", "found nothing"},
    {TOP "- flatten\n- dense: {units: $classes}\n", "'classes:' is missing"},
    {TOP "- flatten\n- dense: {units: $units}\n", "unknown word '$units'"},
    {TOP "- flatten\n- dense: {units: '1\" bias=\"no'}\n", "no quotes"},
    {TOP "- flatten\n- dense: {units: 3, activation: rely}\n",
     "m.yaml:4: unknown operation 'rely'; did you mean 'relu'?"},
    {TOP "- flatten\n- dense: {units: 3, activation: dense}\n",
     "m.yaml:4: dense_2: option 'units' is missing"},
    {TOP "- dense: {units: 3}\n",
     "m.yaml:3: dense_1: dense takes a vector [c] or a sequence [t, c], not [8, 8, 1]"},
    {TOP "- max_pool: {size: 9}\n",
     "m.yaml:3: max_pool_1: max_pool: a kernel of height 9 does not fit an image of height 8"},
    {TOP "- {relu: , name: a}\n- {relu: , name: a}\n", "m.yaml:4: two nodes are named 'a'"},
    {TOP "- {relu: , name: image}\n", "m.yaml:3: two nodes are named 'image'"},
    {TOP "- {relu: , name: }\n", "m.yaml:3: a name expected, found nothing"},
    {TOP "- {relu: , name: left}\n- {relu: , from: lift}\n",
     "m.yaml:4: no layer or input before this one is named 'lift'; did you mean 'left'?"},
    {TOP "- {relu: , from: later}\n- {relu: , name: later}\n", "is named 'later'"},
    {TOP "- {relu: , from: []}\n", "m.yaml:3: 'from' names 1 to 8 layers, not 0"},
    {TOP "- {relu: , from: {a: b}}\n", "m.yaml:3: the name of a layer or input expected"},
    {TOP "- add\n", "m.yaml:3: add takes 2 to"},
    {TOP "- {relu: , trainable: maybe}\n", "m.yaml:3: option 'trainable': 'maybe'"},
    {TOP "- relu\noutput: tanh\n", "m.yaml:4: no layer or input before this one"},
    {TOP "- relu\nclasses: 0\n", "m.yaml:4: option 'classes': 0 is not in"},
    {TOP "- relu\nlayers: []\n", "m.yaml:4: key 'layers' stands here twice"},
    {TOP "- cross_entropy\n", "m.yaml:3: cross_entropy takes 2 to 2 inputs, not 1"},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++) {
        struct lk_model *model = NULL;
        const enum lk_status status =
            lk_model_read(bad_texts[i].text, strlen(bad_texts[i].text), "m.yaml", &model);
        if (status != LK_E_MODEL || !strstr(lk_error_text(), bad_texts[i].said))
            fail_msg("'%s' gave %d '%s', expected '%s'", bad_texts[i].text, status,
                     lk_error_text(), bad_texts[i].said);
        assert_null(model);
        lk_error_clear();
    }
}

static void refuses_too_many_layers(void **state)
{
    (void)state;
    char text[32768];
    struct lk_model *model = NULL;
    size_t used = (size_t)snprintf(text, sizeof text, TOP);
    for (int i = 0; i < 2001; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "- relu\n");
    assert_int_equal(lk_model_read(text, used, "m.yaml", &model), LK_E_MODEL);
    assert_string_equal(lk_error_text(), "m.yaml:2003: more than 2000 layers");
    lk_error_clear();
}

/* The text of a model gives the same model; empty lines before it are gone. */
static void keeps_its_text(void **state)
{
    (void)state;
    static const char text[] = "\n\n" IN "layers:\n  - flatten\n  - dense: {units: 3}\n";
    struct lk_model *model = read_model(text);
    assert_string_equal(lk_model_text(model), text + 2);
    struct lk_model *again = read_model(lk_model_text(model));
    assert_string_equal(lk_model_text(again), text + 2);
    assert_int_equal(find(again, "dense_1").parameters, find(model, "dense_1").parameters);
    lk_model_destroy(again);
    lk_model_destroy(model);
}

static void adds_the_loss_once(void **state)
{
    (void)state;
    struct lk_model *model =
        read_model(TOP "- flatten\n- dense: {units: 3}\n- {softmax: , name: p}\n");
    struct lk_node *labels = NULL, *loss = NULL, *again = NULL;
    assert_int_equal(lk_model_add_loss(model, &labels, &loss), LK_OK);
    assert_string_equal(lk_node_info(labels).name, "labels");
    assert_ptr_equal(lk_node_input(loss, 0), lk_model_output(model));
    assert_ptr_equal(lk_node_input(loss, 1), labels);
    assert_int_equal(lk_model_add_loss(model, &labels, &again), LK_OK);
    assert_ptr_equal(loss, again);
    assert_string_equal(lk_node_info(lk_model_output(model)).name, "p");
    assert_string_equal(warnings, "");
    lk_model_destroy(model);
}

static void names_labels_apart(void **state)
{
    (void)state;
    struct lk_model *model =
        read_model(TOP "- {flatten: , name: labels}\n"
                       "- {dense: {units: 3}, name: labels_1}\n- softmax\n");
    struct lk_node *labels = NULL, *loss = NULL;
    assert_int_equal(lk_model_add_loss(model, &labels, &loss), LK_OK);
    assert_string_equal(lk_node_info(labels).name, "labels_2");
    assert_ptr_equal(lk_node_input(loss, 1), labels);
    lk_model_destroy(model);
}

static void refuses_a_loss(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {TOP "- relu\n", "the output 'relu_1' is [8, 8, 1]"},
        {TOP "- flatten\n- dense: {units: 1}\n", "a vector of at least 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_model *model = read_model(cases[i].text);
        struct lk_node *labels = NULL, *loss = NULL;
        assert_int_equal(lk_model_add_loss(model, &labels, &loss), LK_E_MODEL);
        if (!strstr(lk_error_text(), cases[i].said))
            fail_msg("'%s' gave '%s'", cases[i].text, lk_error_text());
        assert_null(loss);
        lk_error_clear();
        lk_model_destroy(model);
    }
}

static void warns_of_raw_outputs(void **state)
{
    (void)state;
    struct lk_model *model = read_model(TOP "- flatten\n- dense: {units: 3}\n");
    struct lk_node *labels = NULL, *loss = NULL;
    assert_int_equal(lk_model_add_loss(model, &labels, &loss), LK_OK);
    assert_non_null(strstr(warnings, "the output 'dense_1' is no softmax"));
    lk_model_destroy(model);
}

/* Changed texts are read or refused with a reason, and never crash. */
static void change_bytes(const char *good, uint32_t stream)
{
    static const char marks[] = "\n :,[]{}-$#&*!'\"\\0x\xc3\xff\t";
    const size_t length = strlen(good);
    int read = 0, refused = 0;
    for (uint64_t trial = 0; trial < 20000; trial++) {
        char text[1024];
        size_t bytes = length;
        memcpy(text, good, length + 1);
        const struct lk_random4 r = lk_random(11, LK_RANDOM_DATA, stream, trial);
        for (int i = 0; i < 1 + (int)(r.v[3] % 3); i++) {
            const size_t at = (r.v[i % 3] >> 8) % bytes;
            if (r.v[i % 3] % 4 == 0)
                text[at] ^= (char)(1 << (r.v[i % 3] >> 4 & 7));
            else if (r.v[i % 3] % 4 == 1)
                memmove(text + at, text + at + 1, --bytes - at);
            else
                text[at] = marks[(r.v[i % 3] >> 2) % (sizeof marks - 1)];
        }
        struct lk_model *model = NULL;
        const enum lk_status status = lk_model_read(text, bytes, "m.yaml", &model);
        if (status != LK_OK && (status != LK_E_MODEL || strncmp(lk_error_text(), "m.yaml:", 7)))
            fail_msg("'%.*s' gave %d '%s'", (int)bytes, text, status, lk_error_text());
        read += status == LK_OK;
        refused += status != LK_OK;
        lk_model_destroy(model);
        lk_error_clear();
        warnings[0] = '\0';
    }
    assert_true(read > 100 && refused > 100);
}

static void survives_changed_bytes(void **state)
{
    (void)state;
    change_bytes("name: f\ninput: {a: [8, 8, 1], b: {shape: [8, 8, 1]}}\n"
                 "classes: 3\nlayers:\n"
                 "  - {relu: , from: a, name: x}\n"
                 "  - {add: , from: [x, b]}\n"
                 "  - max_pool: {size: [2, 2], padding: same}\n"
                 "  - flatten\n"
                 "  - dense: {units: $classes, activation: tanh, bias: no}\n"
                 "    trainable: false\n"
                 "  - softmax\noutput: softmax_1\n",
                 0);
    change_bytes("input: [8, 8, 1]\nclasses: 3\nblocks:\n"
                 "  b:\n    parameters: {n: , size: 1, last: true}\n    layers:\n"
                 "    - {name: $name_a, conv2d: {filters: $(2*n), kernel: $size}}\n"
                 "    - {name: $name_$number, weights: $name_a, from: $input, repeat: 1,\n"
                 "       conv2d: {filters: $(n+channels), kernel: $size}}\n"
                 "    - {name: $name, when: $last, from: [$name_a, $name_1], add: }\n"
                 "layers:\n  - {name: x, b: {n: 1}}\n"
                 "  - {from: image, weights: x, b: {n: 1, last: no}, trainable: yes}\n"
                 "  - {add: , from: [x, b_2]}\n",
                 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, catch_warnings, release_warnings)
    const struct CMUnitTest tests[] = {
        TEST(reads_a_chain),           TEST(adds_activations_behind),
        TEST(reads_branches),          TEST(reads_arrangements),
        TEST(warns_of_unused_inputs),  TEST(refuses),
        TEST(refuses_too_many_layers), TEST(keeps_its_text),
        TEST(adds_the_loss_once),      TEST(names_labels_apart),
        TEST(refuses_a_loss),          TEST(warns_of_raw_outputs),
        TEST(survives_changed_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
