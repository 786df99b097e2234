/* Lengths of sequences in model texts: the input that they are, and which layers have them. */
#include "model/rig.h"

#include "base/fail.h"
#include "graph/nodes/node.h"

static struct lk_model *read_good(const char *text)
{
    struct lk_model *model = read_model(text);
    assert_string_equal(warnings, "");
    return model;
}

/* The length of a layer's time steps; "" for none. */
static const char *length_of(struct lk_model *model, const char *name)
{
    const struct lk_node *node = lk_graph_find(lk_model_graph(model), name);
    if (!node)
        fail_msg("no node '%s'", name);
    const char *length = lk_node_info(node).length;
    return length ? length : "";
}

static void a_sequence_brings_its_length(void **state)
{
    (void)state;
    struct lk_model *model =
        read_model("input: {words: {shape: [5, 3], type: float32, length: true}}\n"
                   "layers:\n"
                   "  - {dense: {units: 4, activation: gelu}, name: body}\n"
                   "  - {slice: {c: [1, 3]}, name: channels}\n"
                   "  - {slice: {t: [0, 4]}, name: steps}\n"
                   "  - {from: channels, reshape: {shape: [2, 5]}, name: turned}\n"
                   "  - {from: channels, flatten: , name: flat}\n"
                   "  - {dense: {units: 5}, name: dense}\n"
                   "  - {from: [channels, channels], concat: {axis: c}, name: both}\n"
                   "output: {a: steps, b: turned, c: dense, d: both}\n"
                   "loss: {a: mean_squared_error, b: mean_squared_error, c: "
                   "mean_squared_error, d: mean_squared_error}\n");
    const struct lk_node *words = lk_model_input(model, 0), *length = lk_model_input(model, 1);
    assert_non_null(length);
    assert_null(lk_model_input(model, 2));
    assert_string_equal(length->name, "words_length");
    assert_int_equal(length->input.dtype, LK_I32);
    assert_int_equal(length->shapes.y.rank, 0);
    assert_ptr_equal(length->sequence, words);
    assert_string_equal(length_of(model, "words"), "words_length");
    for (int i = 0; i < 3; i++) {
        static const char *const as_long[] = {"body", "channels", "both"};
        assert_string_equal(length_of(model, as_long[i]), "words_length");
    }
    for (int i = 0; i < 5; i++) {
        static const char *const others[] = {"words_length", "steps", "turned", "flat",
                                             "dense"};
        assert_string_equal(length_of(model, others[i]), "");
    }
    lk_model_destroy(model);
}

/* Operations on time steps read the length behind their inputs, but not twice. */
static void operations_get_the_length(void **state)
{
    (void)state;
    struct lk_model *model =
        read_good("input: {tokens: {shape: [5], type: int32, length: true}}\n"
                  "layers:\n"
                  "  - {embedding: {vocabulary: 9, units: 4}, name: rows}\n"
                  "  - {conv1d: {filters: 3, kernel: 2, padding: same}, name: same}\n"
                  "  - {conv1d: {filters: 3, kernel: 2}, name: fewer}\n"
                  "  - {global_max_pool1d: , name: whole}\n"
                  "  - {from: [same, tokens_length], last_step: , name: last}\n"
                  "  - {from: [whole, last], add: }\n");
    static const struct {
        const char *name;
        int inputs;
    } layers[] = {{"rows", 2}, {"same", 2}, {"fewer", 2}, {"whole", 1}, {"last", 2}};
    for (int i = 0; i < LK_COUNT(layers); i++) {
        const struct lk_node *node = lk_graph_find(lk_model_graph(model), layers[i].name);
        assert_int_equal(node->inputs, layers[i].inputs);
        if (node->inputs == 2)
            assert_ptr_equal(node->input_nodes[1], lk_model_input(model, 1));
    }
    assert_string_equal(length_of(model, "same"), "tokens_length");
    assert_string_equal(length_of(model, "fewer"), "");
    lk_model_destroy(model);
}

/* States behind the steps, and other shapes, are no time steps, even where they are as many. */
static void what_is_no_time_step_has_no_length(void **state)
{
    (void)state;
    struct lk_model *model =
        read_good("input: {words: {shape: [3, 2], type: float32, length: true}}\n"
                  "layers:\n"
                  "  - {lstm: {units: 2, return_sequences: true}, name: all}\n"
                  "  - {lstm: {units: 2, return_state: true}, name: states}\n"
                  "  - {from: all, reshape: {shape: \"[3, 2]\"}, name: turned}\n"
                  "  - {from: [states, turned], add: }\n");
    assert_string_equal(length_of(model, "all"), "words_length");
    assert_string_equal(length_of(model, "states"), "");
    assert_string_equal(length_of(model, "turned"), "");
    lk_model_destroy(model);
}

static void the_one_input_may_be_described_alone(void **state)
{
    (void)state;
    struct lk_model *model = read_good("input: {shape: [5, 3], length: false}\n"
                                       "layers: [{dense: {units: 4}}]\n");
    assert_null(lk_model_input(model, 1));
    assert_string_equal(length_of(model, "dense_1"), "");
    lk_model_destroy(model);
}

/* An entry without `from` reads the only input that is no length. */
static void an_entry_reads_the_sequence(void **state)
{
    (void)state;
    static const char text[] = "input: {words: {shape: [5, 3], length: yes}, mood: [2]}\n"
                               "layers: [flatten]\n";
    struct lk_model *model = NULL;
    assert_int_equal(lk_model_read(text, strlen(text), "m.yaml", &model), LK_E_MODEL);
    assert_string_equal(lk_error_text(),
                        "m.yaml:2: the first layer of a model with 3 inputs needs 'from'");
}

static void refuses_lengths_of_what_has_none(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"input: {x: {shape: [4, 4, 3], length: true}}\nlayers: [flatten]\n",
         "m.yaml:1: only an input that is a sequence, numbers [t, c] or integers [t], has a "
         "length; 'x' is an input of [3, 4, 4]"},
        {"input: {x: {shape: [4], length: true}}\nlayers: [{dense: {units: 2}}]\n",
         "m.yaml:1: only an input that is a sequence"},
        {"input: {x: {shape: [4, 2], length: long}}\nlayers: [flatten]\n",
         "m.yaml:1: option 'length'"},
        {"input: {x: {shape: [4, 2], length: true}, x_length: [1]}\nlayers: [flatten]\n",
         "m.yaml:1: two nodes are named 'x_length'"},
        {"input: {a: [1], b: [1], c: [1], d: [1], e: [1], f: [1], g: [1],\n"
         "  h: {shape: [4, 2], length: true}}\nlayers: [flatten]\n",
         "m.yaml:2: more than 8 inputs: the length of a sequence is one, too"},
    };
    for (int i = 0; i < LK_COUNT(bad); i++) {
        struct lk_model *model = NULL;
        lk_error_clear();
        assert_int_equal(lk_model_read(bad[i][0], strlen(bad[i][0]), "m.yaml", &model),
                         LK_E_MODEL);
        if (!strstr(lk_error_text(), bad[i][1]))
            fail_msg("'%s' gave '%s'", bad[i][0], lk_error_text());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sequence_brings_its_length, catch_warnings,
                                        release_warnings),
        cmocka_unit_test_setup_teardown(operations_get_the_length, catch_warnings,
                                        release_warnings),
        cmocka_unit_test_setup_teardown(the_one_input_may_be_described_alone, catch_warnings,
                                        release_warnings),
        cmocka_unit_test_setup_teardown(an_entry_reads_the_sequence, catch_warnings,
                                        release_warnings),
        cmocka_unit_test_setup_teardown(what_is_no_time_step_has_no_length, catch_warnings,
                                        release_warnings),
        cmocka_unit_test_setup_teardown(refuses_lengths_of_what_has_none, catch_warnings,
                                        release_warnings),
    };
    return cmocka_run_group_tests_name("length", tests, NULL, NULL);
}
