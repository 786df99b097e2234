/* The option `bidirectional` of recurrent layers: the same graph as both directions and what
 * joins them, written by hand; texts that it cannot stand in. */
#include "model/rig.h"

#define TOP                                                                                    \
    "input: {words: {shape: [6, 3], length: true}, states: [2, 4], others: [2, 4]}\n"          \
    "layers:\n"

static const struct {
    const char *text, *by_hand;
} pairs[] = {
    /* the last outputs beside one another; the standard word; options of both */
    {TOP "- {name: a, from: words, lstm: {units: 4, bidirectional: concat, dropout: 0.25}}\n",
     TOP "- {name: a_forward, from: words, lstm: {units: 4, dropout: 0.25}}\n"
         "- {name: a_backward, from: words, lstm: {units: 4, dropout: 0.25, go_backwards: "
         "true}}\n"
         "- {name: a, from: [a_forward, a_backward], concat: }\n"},
    {TOP "- {name: a, from: words, gru: {bidirectional: true, units: 4}}\n",
     TOP "- {name: a_forward, from: words, gru: {units: 4}}\n"
         "- {name: a_backward, from: words, gru: {units: 4, go_backwards: true}}\n"
         "- {name: a, from: [a_forward, a_backward], concat: {axis: c}}\n"},
    /* stacked, of all time steps, summed; names that count */
    {TOP "- {from: words, gru: {units: 4, bidirectional: sum, return_sequences: true}}\n"
         "- rnn: {units: 5, bidirectional: true, activation: relu}\n",
     TOP "- {name: bidirectional_1_forward, from: words, gru: {units: 4, return_sequences: "
         "true}}\n"
         "- {name: bidirectional_1_backward, from: words, gru: {units: 4, return_sequences: "
         "true, go_backwards: true}}\n"
         "- {name: bidirectional_1, from: [bidirectional_1_forward, "
         "bidirectional_1_backward], add: }\n"
         "- {name: bidirectional_2_forward, rnn: {units: 5, activation: relu}}\n"
         "- {name: bidirectional_2_backward, from: bidirectional_1, rnn: {units: 5, "
         "activation: relu, go_backwards: true}}\n"
         "- {name: bidirectional_2, from: [bidirectional_2_forward, "
         "bidirectional_2_backward], concat: }\n"},
    /* one direction */
    {TOP "- {from: words, rnn: {units: 2, bidirectional: false, return_sequences: true}}\n",
     TOP "- {from: words, rnn: {units: 2, return_sequences: true}}\n"},
    /* states in and out */
    {TOP "- {name: a, from: [words, states, others], lstm: {units: 4, bidirectional: concat, "
         "return_state: true}}\n",
     TOP "- {name: a_forward, from: [words, states], lstm: {units: 4, return_state: true}}\n"
         "- {name: a_backward, from: [words, others], lstm: {units: 4, return_state: true, "
         "go_backwards: true}}\n"
         "- {name: a, from: [a_forward, a_backward], concat: }\n"},
    /* keys of the entry are those of both; weights of the same direction */
    {TOP "- {name: a, from: words, lr_scale: 0.5, l1: 0.25, l2: 2, gru: {units: 4, "
         "bidirectional: sum}}\n"
         "- {name: b, from: words, weights: a, gru: {units: 4, bidirectional: concat}}\n"
         "- {name: c, from: words, trainable: false, gru: {units: 4, bidirectional: sum}}\n"
         "- {from: [a, c], add: }\n",
     TOP "- {name: a_forward, from: words, lr_scale: 0.5, l1: 0.25, l2: 2, gru: {units: 4}}\n"
         "- {name: a_backward, from: words, lr_scale: 0.5, l1: 0.25, l2: 2, gru: {units: 4, "
         "go_backwards: true}}\n"
         "- {name: a, from: [a_forward, a_backward], add: }\n"
         "- {name: b_forward, from: words, weights: a_forward, gru: {units: 4}}\n"
         "- {name: b_backward, from: words, weights: a_backward, gru: {units: 4, "
         "go_backwards: true}}\n"
         "- {name: b, from: [b_forward, b_backward], concat: }\n"
         "- {name: c_forward, from: words, trainable: false, gru: {units: 4}}\n"
         "- {name: c_backward, from: words, trainable: false, gru: {units: 4, "
         "go_backwards: true}}\n"
         "- {name: c, from: [c_forward, c_backward], add: }\n"
         "- {from: [a, c], add: }\n"},
    /* within a block, repeated, by words; a name that the count has to pass over */
    {TOP "- {name: bidirectional_1, from: words, relu: }\n"
         "- {name: tower, read: {units: 4, how: sum}}\n"
         "- rnn: {units: 4, bidirectional: true}\n"
         "blocks:\n  read:\n    parameters: {units: , how: concat}\n    layers:\n"
         "    - {name: $name_$number, lstm: {units: $units, bidirectional: $how, "
         "return_sequences: true}, repeat: 2}\n",
     TOP "- {name: bidirectional_1, from: words, relu: }\n"
         "- {name: tower_1_forward, lstm: {units: 4, return_sequences: true}}\n"
         "- {name: tower_1_backward, from: bidirectional_1, lstm: {units: 4, "
         "return_sequences: true, go_backwards: true}}\n"
         "- {name: tower_1, from: [tower_1_forward, tower_1_backward], add: }\n"
         "- {name: tower_2_forward, lstm: {units: 4, return_sequences: true}}\n"
         "- {name: tower_2_backward, from: tower_1, lstm: {units: 4, return_sequences: true, "
         "go_backwards: true}}\n"
         "- {name: tower_2, from: [tower_2_forward, tower_2_backward], add: }\n"
         "- {name: bidirectional_2_forward, rnn: {units: 4}}\n"
         "- {name: bidirectional_2_backward, from: tower_2, rnn: {units: 4, go_backwards: "
         "true}}\n"
         "- {name: bidirectional_2, from: [bidirectional_2_forward, "
         "bidirectional_2_backward], concat: }\n"},
};

static bool is_same(const struct lk_model *model, const char *text)
{
    bool found = false;
    if (lk_model_compare(model, text, &found) != LK_OK)
        fail_msg("'%s' gave '%s'", text, lk_error_text());
    return found;
}

static void becomes_both_directions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct lk_model *model = read_model(pairs[i].text);
        if (!is_same(model, pairs[i].by_hand))
            fail_msg("'%s' is another graph", pairs[i].text);
        lk_model_destroy(model);
    }
}

/* Outputs of time steps keep the length of their sequence, whose padding counts nowhere. */
static void keeps_the_length(void **state)
{
    (void)state;
    struct lk_model *model =
        read_model(TOP "- {from: words, name: a, gru: {units: 4, bidirectional: concat, "
                       "return_sequences: true}}\n"
                       "- {name: b, gru: {units: 3, bidirectional: sum}}\n");
    const struct lk_node *inner = lk_graph_find(lk_model_graph(model), "b_backward");
    assert_non_null(inner);
    assert_int_equal(lk_node_info(inner).inputs, 2);
    assert_string_equal(lk_node_info(lk_node_input(inner, 0)).name, "a");
    assert_string_equal(lk_node_info(lk_node_input(inner, 1)).name, "words_length");
    const struct lk_node *outer = lk_graph_find(lk_model_graph(model), "a");
    assert_int_equal(lk_node_info(outer).shape.rank, 2);
    assert_int_equal(lk_node_info(outer).shape.dim[1], 8);
    lk_model_destroy(model);
}

static const struct {
    const char *text, *said;
} bad_texts[] = {
    {TOP "- {from: words, lstm: {units: 4, bidirectional: mean}}\n",
     "m.yaml:3: option 'bidirectional': 'mean' is none of concat, sum, true, false"},
    {TOP "- {from: words, lstm: {units: 4, bidirectional: }}\n",
     "m.yaml:3: a number or a word expected, found nothing"},
    {TOP "- {from: words, lstm: {units: 4, bidirectional: [sum]}}\n", "m.yaml:3: "},
    {TOP "- {from: words, dense: {units: 4, bidirectional: sum}}\n",
     "m.yaml:3: dense: unknown option 'bidirectional'"},
    {TOP "- {from: words, lstm: {units: 4, bidirectional: sum, go_backwards: false}}\n",
     "m.yaml:3: 'go_backwards' beside 'bidirectional', which goes both ways"},
    {TOP "- {from: words, lstm: {units: 4, bidirectional: sum, return_state: true}}\n",
     "m.yaml:3: 'return_state' beside 'bidirectional: sum', which would add the states"},
    {TOP "- {from: words, lstm: {units: 4, bidirectional: sum, return_state: maybe}}\n",
     "m.yaml:3: option 'return_state': 'maybe'"},
    {TOP "- {from: [words, states], lstm: {units: 4, bidirectional: sum}}\n",
     "m.yaml:3: a bidirectional lstm reads a sequence, or a sequence and the initial states of "
     "each direction, not 2 layers"},
    {TOP "- {from: words, lstm: {bidirectional: sum}}\n", "m.yaml:3: "},
    {TOP "- {from: words, lstm: {units: 0, bidirectional: sum}}\n", "m.yaml:3: lstm: option"},
    {TOP "- {name: [a], from: words, lstm: {units: 4, bidirectional: sum}}\n",
     "m.yaml:3: a name expected, found a list"},
    {TOP "- {name: words, from: words, lstm: {units: 4, bidirectional: sum}}\n",
     "m.yaml:3: two layers are named 'words'"},
    {TOP "- {name: a_backward, from: words, relu: }\n"
         "- {name: a, lstm: {units: 4, bidirectional: sum}}\n",
     "m.yaml:4: two nodes are named 'a_backward'"},
    {TOP "- {name: a123456789b123456789c123456789d123456789e123456789f12345, from: words, "
         "lstm: {units: 4, bidirectional: sum}}\n",
     "m.yaml:3: "},
    {TOP "- {name: a, from: words, lstm: {units: 4}}\n"
         "- {from: words, weights: a, lstm: {units: 4, bidirectional: sum}}\n",
     "m.yaml:4: no layer or input before this one is named 'a_forward'"},
    {TOP "- {name: a, from: words, lstm: {units: 4, bidirectional: sum}}\n"
         "- {from: words, weights: [a], lstm: {units: 4, bidirectional: sum}}\n",
     "m.yaml:4: 'weights' names one layer, found a list"},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_texts / sizeof *bad_texts; i++) {
        struct lk_model *model = NULL;
        const char *text = bad_texts[i].text;
        assert_int_equal(lk_model_read(text, strlen(text), "m.yaml", &model), LK_E_MODEL);
        assert_null(model);
        if (!strstr(lk_error_text(), bad_texts[i].said))
            fail_msg("'%s' gave '%s'", text, lk_error_text());
        lk_error_clear();
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, catch_warnings, release_warnings)
    const struct CMUnitTest tests[] = {TEST(becomes_both_directions), TEST(keeps_the_length),
                                       TEST(refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
