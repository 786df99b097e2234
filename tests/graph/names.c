/* Names of nodes: each finds its node, also when a graph has grown and nodes were renamed. */
#include <lockstep/graph.h>

#include "ok.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { NODES = 3000 };

static struct lk_graph *begin(struct lk_node **x)
{
    const struct lk_input input = {
        .name = "x", .dtype = LK_F32, .shape = {1, {4}}, .scale = 1, .takes_numbers = true};
    struct lk_graph *graph;
    ASSERT_OK(lk_graph_create(&graph));
    ASSERT_OK(lk_graph_add_input(graph, &input, x));
    return graph;
}

/* A chain of many nodes, of which every third gets a name of its own. */
static void finds_all_of_many(void **state)
{
    (void)state;
    struct lk_node *x, *nodes[NODES];
    struct lk_graph *graph = begin(&x);
    char name[32];
    for (int i = 0; i < NODES; i++) {
        ASSERT_OK(lk_graph_add(graph, "tanh", i ? nodes[i - 1] : x, "", &nodes[i]));
        snprintf(name, sizeof name, "other%d", i);
        if (i % 3 == 0)
            ASSERT_OK(lk_node_set_name(nodes[i], name));
    }
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, i % 3 ? "tanh_%d" : "other%d", i % 3 ? i + 1 : i);
        assert_string_equal(lk_node_info(nodes[i]).name, name);
        assert_ptr_equal(lk_graph_find(graph, name), nodes[i]);
        snprintf(name, sizeof name, i % 3 ? "other%d" : "tanh_%d", i % 3 ? i : i + 1);
        assert_null(lk_graph_find(graph, name));
    }
    assert_ptr_equal(lk_graph_find(graph, "x"), x);
    lk_graph_destroy(graph);
}

/* The names that an operation's next nodes would get are taken, hundreds of them. */
static void skips_names_that_are_taken(void **state)
{
    (void)state;
    struct lk_node *x, *y, *z;
    struct lk_graph *graph = begin(&x);
    char name[32];
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "tanh_%d", i + 1);
        ASSERT_OK(lk_graph_add(graph, "relu", x, "", &y));
        ASSERT_OK(lk_node_set_name(y, name));
    }
    ASSERT_OK(lk_graph_add(graph, "tanh", x, "", &z));
    assert_ptr_equal(lk_graph_find(graph, lk_node_info(z).name), z);
    assert_ptr_equal(lk_graph_find(graph, "tanh_600"), y);
    lk_graph_destroy(graph);
}

static void names_are_free_again(void **state)
{
    (void)state;
    struct lk_node *x, *y, *z;
    struct lk_graph *graph = begin(&x);
    assert_null(lk_graph_find(graph, "tanh_1"));
    ASSERT_OK(lk_graph_add(graph, "tanh", x, "", &y));
    ASSERT_OK(lk_node_set_name(y, "first"));
    ASSERT_OK(lk_graph_add(graph, "tanh", x, "", &z));
    assert_int_equal(lk_node_set_name(z, "first"), LK_E_ARGUMENT);
    assert_int_equal(lk_node_set_name(z, "x"), LK_E_ARGUMENT);
    assert_ptr_equal(lk_graph_find(graph, "tanh_2"), z);
    ASSERT_OK(lk_node_set_name(y, "second"));
    ASSERT_OK(lk_node_set_name(z, "first"));
    assert_ptr_equal(lk_graph_find(graph, "first"), z);
    assert_ptr_equal(lk_graph_find(graph, "second"), y);
    assert_null(lk_graph_find(graph, "tanh_2"));
    lk_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_all_of_many),
        cmocka_unit_test(skips_names_that_are_taken),
        cmocka_unit_test(names_are_free_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
