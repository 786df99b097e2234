/* Freezing by the top of a model text: what is frozen, what the text then says, what is
 * refused.
 */
#include "model/rig.h"

#define LAYERS                                                                                 \
    "blocks:\n"                                                                                \
    "  two:\n"                                                                                 \
    "    layers:\n"                                                                            \
    "      - {name: $name_a, conv2d: {filters: 2, kernel: 1}}\n"                               \
    "      - {name: $name_b, conv2d: {filters: 2, kernel: 1, activation: relu}}\n"             \
    "layers:\n"                                                                                \
    "  - {name: first, two: }\n"                                                               \
    "  - {name: norm, batch_norm: }\n"                                                         \
    "  - {name: second, two: }\n"                                                              \
    "  - {name: again, weights: second_a, conv2d: {filters: 2, kernel: 1}}\n"                  \
    "  - flatten\n"                                                                            \
    "  - {name: head, dense: {units: 3, activation: softmax}}\n"
#define TEXT "input: [4, 4, 2]\n" LAYERS

/* The entries that have parameters and are trained, "second_a,second_b,again,head". */
static void trained(struct lk_model *model, char text[256])
{
    const struct lk_node *node;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; (node = lk_graph_node(lk_model_graph(model), i)) != NULL; i++) {
        const struct lk_node_info info = lk_node_info(node);
        if (info.is_trainable && (info.parameters > 0 || info.weights_of))
            used +=
                (size_t)snprintf(text + used, 256 - used, "%s%s", used ? "," : "", info.name);
    }
}

static void assert_trained(struct lk_model *model, const char *expected)
{
    char found[256];
    trained(model, found);
    assert_string_equal(found, expected);
}

static void freezes_by_text(void **state)
{
    (void)state;
    static const struct {
        const char *key, *trained;
    } cases[] = {
        {"", "first_a,first_b,norm,second_a,second_b,again,head"},
        {"freeze_until: first_a\n", "first_b,norm,second_a,second_b,again,head"},
        /* a block's name is that of its last entry */
        {"freeze_until: first\n", "norm,second_a,second_b,again,head"},
        {"freeze_until: norm\n", "second_a,second_b,again,head"},
        /* a shared entry is frozen with its owner */
        {"freeze_until: second_a\n", "second_b,head"},
        {"freeze_until: flatten_1\n", "head"},
        {"train_last: 1\n", "head"},
        /* batch norm is an entry of its own, one with another's weights is none */
        {"train_last: 2\n", "second_b,head"},
        {"train_last: 3\n", "second_a,second_b,again,head"},
        {"train_last: 4\n", "norm,second_a,second_b,again,head"},
        {"train_last: 6\n", "first_a,first_b,norm,second_a,second_b,again,head"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s%s", cases[i].key, TEXT);
        struct lk_model *model = read_model(text);
        assert_trained(model, cases[i].trained);
        lk_model_destroy(model);
    }
}

static void what_the_text_freezes_stays_frozen(void **state)
{
    (void)state;
    struct lk_model *model = read_model("train_last: 2\n"
                                        "input: [2]\n"
                                        "layers:\n"
                                        "  - {name: a, dense: {units: 2}}\n"
                                        "  - {name: b, dense: {units: 2}}\n"
                                        "  - {name: c, dense: {units: 2}, trainable: false}\n"
                                        "  - softmax\n");
    assert_trained(model, "b");
    lk_model_destroy(model);
}

/* Freezing an open model is freezing by its text, wherever that text begins. */
static void the_text_says_it(void **state)
{
    (void)state;
    static const char *const texts[] = {
        TEXT,
        "# a comment\n---\n" TEXT,
        "  name: deep\n  input: [2]\n  layers:\n    - {name: norm, dense: {units: 2}}\n"
        "    - {name: head, dense: {units: 2}}\n    - softmax\n",
        "{input: [2], layers: [{name: norm, dense: {units: 2}}, {name: head, dense: "
        "{units: 2}}, softmax]}\n",
        "freeze_until: head\ninput: [2]\nlayers:\n- {name: norm, dense: {units: 2}}\n"
        "- {name: head, dense: {units: 2}}\n- {dense: {units: 2}, name: more}\n- softmax\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct lk_model *model = read_model(texts[i]), *again = NULL;
        char name[64], expected[256], found[256];
        bool is_same = false;
        snprintf(name, sizeof name, "%s", lk_model_name(model));
        assert_int_equal(lk_model_freeze(&model, "norm", 0), LK_OK);
        assert_string_equal(lk_model_name(model), name);
        trained(model, expected);
        assert_null(strstr(expected, "norm"));
        assert_non_null(strstr(expected, "head"));
        again = read_model(lk_model_text(model));
        trained(again, found);
        assert_string_equal(found, expected);
        assert_int_equal(lk_model_compare(model, texts[i], &is_same), LK_OK);
        assert_false(is_same);
        lk_model_destroy(again);
        lk_model_destroy(model);
    }
}

static void nothing_asked_for_changes_nothing(void **state)
{
    (void)state;
    struct lk_model *model = read_model(TEXT), *was = model;
    assert_int_equal(lk_model_freeze(&model, "", 0), LK_OK);
    assert_int_equal(lk_model_freeze(&model, NULL, 0), LK_OK);
    assert_ptr_equal(model, was);
    assert_string_equal(lk_model_text(model), TEXT);
    lk_model_destroy(model);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *until, *said;
        int64_t last;
    } cases[] = {
        {"norn", "is named 'norn'; did you mean 'norm'?", 0},
        {"image", "'image' is an input", 0},
        {"head", "nothing is left to train", 0},
        {"", "7 entries with parameters are asked for, the model has 6", 7},
        {"norm", "exclude one another", 1},
        {"a\"b", "is no name of an entry", 0},
        {"a\nb", "is no name of an entry", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_model *model = read_model(TEXT), *was = model;
        assert_int_not_equal(lk_model_freeze(&model, cases[i].until, cases[i].last), LK_OK);
        if (!strstr(lk_error_text(), cases[i].said))
            fail_msg("'%s', expected '%s'", lk_error_text(), cases[i].said);
        lk_error_clear();
        assert_ptr_equal(model, was);
        lk_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freezes_by_text),
        cmocka_unit_test(what_the_text_freezes_stays_frozen),
        cmocka_unit_test(the_text_says_it),
        cmocka_unit_test(nothing_asked_for_changes_nothing),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests_name("model/freeze", tests, NULL, NULL);
}
