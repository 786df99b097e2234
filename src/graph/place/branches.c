/* Puts branches that meet in one operation to places of their own: the longest first, each to
 * the place that is done earliest with it. source: Graham, Bounds on Multiprocessing Timing
 * Anomalies (1969) */
#include "base/fail.h"
#include "graph/place/search.h"

#include <stdlib.h>

/* Of an operation that reads several: to which of its inputs each operation before it leads. */
enum { NONE = -1, SEVERAL = -2 };

struct branch {
    int input; /* of the operation in which they meet */
    double work;
};

/* Marks what leads to the inputs of `join`; the number of its branches. */
static int mark(const struct lk_place_search *search, int join, int *leads,
                struct branch branches[LK_MOST_INPUTS])
{
    const struct lk_place_op *op = &search->ops[join];
    int count = 0;
    for (int i = 0; i < search->op_count; i++)
        leads[i] = NONE;
    for (int j = 0; j < op->inputs; j++)
        if (op->makers[j] >= 0)
            leads[op->makers[j]] = leads[op->makers[j]] == NONE ? j : SEVERAL;
    for (int i = join - 1; i >= 0; i--)
        for (int k = 0; leads[i] != NONE && k < search->ops[i].inputs; k++) {
            const int maker = search->ops[i].makers[k];
            if (maker >= 0 && leads[maker] != leads[i])
                leads[maker] = leads[maker] == NONE ? leads[i] : SEVERAL;
        }
    for (int j = 0; j < op->inputs; j++) {
        struct branch found = {.input = j};
        bool is_any = false;
        for (int i = 0; i < join; i++) {
            found.work += leads[i] == j ? search->ops[i].work : 0;
            is_any |= leads[i] == j;
        }
        if (is_any)
            branches[count++] = found;
    }
    return count;
}

static int by_work(const void *a, const void *b)
{
    const struct branch *x = a, *y = b;
    if (x->work != y->work)
        return x->work < y->work ? 1 : -1;
    return x->input - y->input;
}

/* What several branches need is computed by the first place; the operation in which they meet,
 * and what comes of it, by the last. So no place waits for one that waits for it. */
static enum lk_status propose_at(struct lk_place_search *search, int join, int *leads,
                                 int *places)
{
    struct branch branches[LK_MOST_INPUTS];
    double load[LK_MOST_PLACES] = {0};
    int place_of[LK_MOST_INPUTS] = {0};
    const int last = search->places - 1, count = mark(search, join, leads, branches);
    if (count < 2)
        return LK_OK;
    for (int i = 0; i < search->op_count; i++)
        if (leads[i] < 0)
            load[leads[i] == SEVERAL ? 0 : last] += search->ops[i].work;
    qsort(branches, (size_t)count, sizeof branches[0], by_work);
    for (int b = 0; b < count; b++) {
        int best = 0;
        for (int p = 1; p <= last; p++)
            if ((load[p] + branches[b].work) / search->speeds[p] <
                (load[best] + branches[b].work) / search->speeds[best])
                best = p;
        load[best] += branches[b].work;
        place_of[branches[b].input] = best;
    }
    for (int i = 0; i < search->op_count; i++)
        places[i] = leads[i] >= 0 ? place_of[leads[i]] : leads[i] == SEVERAL ? 0 : last;
    return lk_place_propose(search, places);
}

enum lk_status lk_place_propose_branches(struct lk_place_search *search)
{
    const size_t ops = (size_t)search->op_count;
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&search->arena, (2 * ops + 1) * sizeof(int), &memory));
    int *leads = memory, *places = leads + ops;
    for (int join = 0; join < search->op_count; join++)
        LK_TRY(propose_at(search, join, leads, places));
    return LK_OK;
}
