/* Dividing operations among places, on paper: estimates of small divisions by hand, cuts and
 * branches as they are proposed. */
#include "graph/place/search.h"
#include "ok.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* An operation that reads up to two others. */
#define OP(TIME, CROSSES, HELD, A, B)                                                          \
    {                                                                                          \
        .work = TIME, .crosses = CROSSES, .held = HELD, .uses = 1, .makers = {A, B},           \
        .inputs = (A >= 0) + (B >= 0)                                                          \
    }

enum { MOST_OPS = 16 };

/* Every operation is the first use of its own weights, unless it says which one is. */
static struct lk_place_search begin(struct lk_place_op *ops, int count, int places)
{
    struct lk_place_search search = {.ops = ops, .op_count = count, .places = places};
    for (int i = 0; i < count; i++)
        if (ops[i].uses == 1)
            ops[i].first_use = i;
    for (int p = 0; p < places; p++)
        search.speeds[p] = 1;
    ASSERT_OK(lk_place_search_begin(&search));
    return search;
}

static const char *best_of(struct lk_place_search *search)
{
    static char text[MOST_OPS + 1];
    lk_place_sort(search);
    assert_true(search->proposal_count > 0);
    for (int i = 0; i < search->op_count; i++)
        text[i] = (char)('0' + search->proposals[0].places[i]);
    text[search->op_count] = '\0';
    return text;
}

/* The end of one micro-batch and three times the busiest place, a quarter of both. */
static void estimates(void **state)
{
    (void)state;
    struct lk_place_op chain[] = {OP(4, 1, 0, -1, -1), OP(2, 1, 0, 0, -1), OP(6, 1, 0, 1, -1)};
    struct lk_place_search search = begin(chain, 3, 2);
    const int in_two[] = {0, 0, 1}, idle[] = {0, 0, 0}, back[] = {0, 1, 0};
    assert_float_equal(lk_place_estimate(&search, in_two), (6 + 2 + 6 + 3 * 7) / 4.0, 1e-9);
    assert_true(lk_place_estimate(&search, idle) == INFINITY);
    assert_true(lk_place_estimate(&search, back) == INFINITY);
    struct lk_place_walk walk;
    assert_true(lk_place_walk(&search, in_two, &walk));
    assert_float_equal(walk.busy[0], 7, 1e-9);
    assert_float_equal(walk.crossing[1], 1, 1e-9);
    search.micro_batches = 1;
    assert_float_equal(lk_place_step(&search, &walk), 6 + 2 + 6, 1e-9);
    search.micro_batches = 0;
    search.speeds[1] = 2;
    assert_float_equal(lk_place_estimate(&search, in_two), (6 + 2 + 3 + 3 * 7) / 4.0, 1e-9);
    lk_place_search_clear(&search);

    /* side by side; what several read at one place crosses once */
    struct lk_place_op fork[] = {OP(1, 1, 0, -1, -1), OP(5, 1, 0, 0, -1), OP(2, 1, 0, 0, -1),
                                 OP(3, 1, 0, 0, 2), OP(1, 1, 0, 1, 3)};
    const int apart[] = {0, 0, 1, 1, 1};
    search = begin(fork, 5, 2);
    assert_float_equal(lk_place_estimate(&search, apart), (9 + 3 * 8) / 4.0, 1e-9);
    lk_place_search_clear(&search);

    /* gradients that are added in turn, one from here, one from there, cross by themselves */
    struct lk_place_op turns[] = {OP(1, 1, 0, -1, -1), OP(1, 1, 0, 0, -1), OP(1, 1, 0, 0, -1),
                                  OP(1, 1, 0, 0, -1), OP(1, 1, 0, 2, 3)};
    const int in_turn[] = {0, 1, 0, 1, 1};
    search = begin(turns, 5, 2);
    assert_float_equal(lk_place_estimate(&search, in_turn), (6 + 3 * 5) / 4.0, 1e-9);
    turns[0].has_gradient = true;
    assert_float_equal(lk_place_estimate(&search, in_turn), (6 + 3 * 6) / 4.0, 1e-9);
    lk_place_search_clear(&search);

    /* weights that are elsewhere; of three uses they come when their place is done so far */
    struct lk_place_op shared[] = {OP(4, 1, 0, -1, -1), OP(4, 1, 0, 0, -1)};
    const int split[] = {0, 1};
    shared[0].uses = shared[1].uses = 2;
    shared[1].weights = 3;
    search = begin(shared, 2, 2);
    assert_float_equal(lk_place_estimate(&search, split), (10 + 3 * 8) / 4.0, 1e-9);
    lk_place_search_clear(&search);
    struct lk_place_op thrice[] = {OP(4, 1, 0, -1, -1), OP(4, 1, 0, -1, -1),
                                   OP(4, 1, 0, -1, -1)};
    const int in_three[] = {0, 0, 1};
    for (int i = 0; i < 3; i++) {
        thrice[i].uses = 3;
        thrice[i].first_use = 0;
        thrice[i].weights = 3;
    }
    search = begin(thrice, 3, 2);
    assert_float_equal(lk_place_estimate(&search, in_three), (18 + 3 * 11) / 4.0, 1e-9);
    lk_place_search_clear(&search);
}

/* Two stages in a row, forward 1 and backward 2 each: alone they take 6 for a micro-batch; side
 * by side each is at work for 3 of it, and the first waits for 3. */
static void simulates(void **state)
{
    static const struct simulated {
        int micro_batches, in_flight;
        double step;
    } cases[] = {{1, 2, 6}, {4, 1, 24}, {4, 2, 15}, {4, 3, 15}, {48, 2, 147}};
    const int places[] = {0, 1};
    struct lk_place_simulated found;
    (void)state;
    struct lk_place_op chain[] = {OP(3, 0, 0, -1, -1), OP(3, 0, 0, 0, -1)};
    for (int i = 0; i < 2; i++) {
        chain[i].forward = 1;
        chain[i].has_gradient = true;
    }
    struct lk_place_search search = begin(chain, 2, 2);
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        ASSERT_OK(lk_place_simulate(&search, places, cases[i].micro_batches, cases[i].in_flight,
                                    &found));
        assert_float_equal(found.step, cases[i].step, 1e-9);
        assert_float_equal(found.busy[0], 3 * cases[i].micro_batches, 1e-9);
    }
    search.update[0] = 2; /* before all else */
    search.sums[1] = 1;   /* behind each micro-batch */
    ASSERT_OK(lk_place_simulate(&search, places, 1, 2, &found));
    assert_float_equal(found.step, 2 + 6, 1e-9);
    assert_float_equal(found.busy[0], 2 + 3, 1e-9);
    assert_float_equal(found.busy[1], 3 + 1, 1e-9);
    search.update[0] = search.sums[1] = 0;
    chain[0].crosses = 1; /* half a time for the values, half for their gradients */
    ASSERT_OK(lk_place_simulate(&search, places, 1, 2, &found));
    assert_float_equal(found.crossing[0], 1, 1e-9);
    assert_float_equal(found.crossing[1], 1, 1e-9);
    assert_true(found.step >= 6 + 2);
    lk_place_search_clear(&search);
}

/* Where the work is even; beside it, where less crosses; where memory is even. */
static void proposes_cuts(void **state)
{
    (void)state;
    struct lk_place_op even[] = {OP(3, 1, 9, -1, -1), OP(3, 1, 9, 0, -1), OP(3, 1, 1, 1, -1),
                                 OP(3, 1, 1, 2, -1)};
    struct lk_place_search search = begin(even, 4, 2);
    ASSERT_OK(lk_place_propose_cuts(&search));
    assert_string_equal(best_of(&search), "0011");
    assert_int_equal(search.proposal_count, 2); /* the other one holds less: 0111 */
    const int held_less[] = {0, 1, 1, 1};
    assert_memory_equal(search.proposals[1].places, held_less, sizeof held_less);
    lk_place_search_clear(&search);

    even[1].crosses = 9;
    even[2].crosses = 0;
    search = begin(even, 4, 2);
    ASSERT_OK(lk_place_propose_cuts(&search));
    assert_string_equal(best_of(&search), "0001");
    lk_place_search_clear(&search);

    struct lk_place_op long_chain[12];
    for (int i = 0; i < 12; i++)
        long_chain[i] = (struct lk_place_op)OP(1, 0.01, 1, i - 1, -1);
    search = begin(long_chain, 12, 4);
    ASSERT_OK(lk_place_propose_cuts(&search));
    assert_string_equal(best_of(&search), "000111222333");
    lk_place_search_clear(&search);
    search = begin(long_chain, 12, 2);
    search.speeds[0] = 3;
    ASSERT_OK(lk_place_propose_cuts(&search));
    assert_string_equal(best_of(&search), "000000000111");
    lk_place_search_clear(&search);

    /* not through weights with three uses: they would cross for each use behind the cut */
    for (int i = 4; i < 7; i++) {
        long_chain[i].first_use = 4;
        long_chain[i].uses = 3;
        long_chain[i].weights = 2;
    }
    search = begin(long_chain, 12, 2);
    ASSERT_OK(lk_place_propose_cuts(&search));
    assert_string_equal(best_of(&search), "000000011111");
    lk_place_search_clear(&search);
}

/* Two chains that the order mixes: one behind the other they are cut between. */
static void unmixes_branches(void **state)
{
    (void)state;
    struct lk_place_op mixed[] = {OP(4, 2, 1, -1, -1), OP(4, 2, 1, -1, -1), OP(4, 2, 1, 0, -1),
                                  OP(4, 2, 1, 1, -1),  OP(4, 2, 1, 2, -1),  OP(4, 2, 1, 3, -1),
                                  OP(1, 0, 1, 4, 5)};
    struct lk_place_search search = begin(mixed, 7, 2);
    ASSERT_OK(lk_place_propose_cuts(&search));
    assert_string_equal(best_of(&search), "0101011");
    lk_place_search_clear(&search);
}

/* Four branches of 9, 4, 3 and 2 from one trunk: what a cut cannot part so well. */
static void proposes_branches(void **state)
{
    (void)state;
    struct lk_place_op star[] = {OP(1, 0.1, 1, -1, -1), OP(4, 0.1, 1, 0, -1),
                                 OP(9, 0.1, 1, 0, -1),  OP(3, 0.1, 1, 0, -1),
                                 OP(2, 0.1, 1, 0, -1),  OP(1, 0.1, 1, 1, 2)};
    star[5].makers[2] = 3;
    star[5].makers[3] = 4;
    star[5].inputs = 4;
    struct lk_place_search search = begin(star, 6, 2);
    ASSERT_OK(lk_place_propose_branches(&search));
    assert_int_equal(search.proposal_count, 1);
    assert_string_equal(best_of(&search), "010111"); /* 1 + 9, and 4 + 3 + 2 + 1 */
    lk_place_search_clear(&search);
    search = begin(star, 6, 3);
    ASSERT_OK(lk_place_propose_branches(&search));
    assert_string_equal(best_of(&search), "001222");
    lk_place_search_clear(&search);

    /* a chain has none */
    struct lk_place_op chain[] = {OP(4, 1, 0, -1, -1), OP(2, 1, 0, 0, -1), OP(6, 1, 0, 1, 0)};
    search = begin(chain, 3, 2);
    ASSERT_OK(lk_place_propose_branches(&search));
    assert_int_equal(search.proposal_count, 0);
    lk_place_search_clear(&search);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates),         cmocka_unit_test(simulates),
        cmocka_unit_test(proposes_cuts),     cmocka_unit_test(unmixes_branches),
        cmocka_unit_test(proposes_branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
