/* What takes a loss over becomes that loss, with its weight; a sum takes a relu over. */
#include "ops/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The operation `name` with the options of one that has taken over `next`, written out; ""
 * where it does not. */
static const struct lk_op *absorb(const char *name, const char *options, const char *next,
                                  const char *next_options, void *kept)
{
    const struct lk_op *op, *behind;
    char text[256];
    long long of_next[64] = {0};
    assert_int_equal(lk_op_find(name, &op), LK_OK);
    assert_int_equal(lk_op_find(next, &behind), LK_OK);
    assert_int_equal(lk_options_parse(op->options, kept, options), LK_OK);
    assert_int_equal(lk_options_parse(behind->options, of_next, next_options), LK_OK);
    assert_true(lk_options_print(behind->options, of_next, true, text, sizeof text));
    return op->absorb && op->absorb(kept, next, text) ? op : NULL;
}

static void expect_loss(const char *name, const char *next, const char *next_options,
                        const char *expected)
{
    long long options[64] = {0};
    char text[256];
    const struct lk_op *op = absorb(name, "", next, next_options, options);
    assert_non_null(op);
    assert_true(lk_options_print(op->options, options, false, text, sizeof text));
    assert_string_equal(text, expected);
    struct lk_op_shapes shapes = {
        .options = options, .inputs = 2, .x = {{1, {5}}, {1, {5}}}, .y = {1, {9}}};
    assert_int_equal(op->infer(&shapes), LK_OK);
    assert_true(shapes.is_loss && shapes.y.rank == 1 && shapes.y.dim[0] == 2);
    assert_true(op->max_inputs == 2);
    assert_false(op->absorb(options, next, "weight=1"));
}

static void softmax_takes_cross_entropy(void **state)
{
    (void)state;
    expect_loss("softmax", "cross_entropy", "", "loss=cross_entropy");
    expect_loss("softmax", "cross_entropy", "weight=0.25", "loss=cross_entropy weight=0.25");
}

static void sigmoid_takes_binary_cross_entropy(void **state)
{
    (void)state;
    expect_loss("sigmoid", "binary_cross_entropy", "", "loss=binary_cross_entropy");
    expect_loss("sigmoid", "binary_cross_entropy", "weight=3",
                "loss=binary_cross_entropy weight=3");
}

/* The relu of an entry remains a node of its own in the graph, and runs with the sum. */
static void add_takes_relu(void **state)
{
    (void)state;
    long long options[64] = {0};
    char text[256];
    const struct lk_op *op = absorb("add", "", "relu", "", options);
    assert_non_null(op);
    assert_true(lk_options_print(op->options, options, false, text, sizeof text));
    assert_string_equal(text, "relu=true");
    struct lk_op_shapes shapes = {.options = options, .inputs = 2, .x = {{1, {5}}, {1, {5}}}};
    assert_int_equal(op->infer(&shapes), LK_OK);
    assert_true(shapes.is_gate && shapes.backward_reads_y);
    assert_false(op->absorb(options, "relu", ""));
    assert_null(absorb("add", "", "relu6", "", options));
}

/* Neither the loss of another output function, nor a loss by one that has none. */
static void others_are_left(void **state)
{
    (void)state;
    long long options[64] = {0};
    assert_null(absorb("sigmoid", "", "cross_entropy", "", options));
    assert_null(absorb("sigmoid", "", "mean_squared_error", "", options));
    assert_null(absorb("softmax", "", "binary_cross_entropy", "", options));
    assert_null(absorb("tanh", "", "binary_cross_entropy", "", options));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_takes_cross_entropy),
        cmocka_unit_test(sigmoid_takes_binary_cross_entropy),
        cmocka_unit_test(add_takes_relu),
        cmocka_unit_test(others_are_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
