/* Cuts a schedule into neighbouring runs of operations, one for each place, by dynamic
 * programming: so that the place that takes longest takes as little time as possible. */
#include "base/fail.h"
#include "graph/place/search.h"

#include <math.h>

/* Each proposal but the first may hold this part of what the fullest place of the one before
 * held. */
static const double LESS_HELD = 0.9;
enum { MOST_LIMITS = 24 };

/* Sums over the first k operations of an order, and what crosses a cut before operation k. */
struct line {
    const int *order; /* operations */
    int *position;    /* of each operation in it */
    double *work, *held, *crosses;
    double *best; /* [places + 1][ops + 1]: the longest time of so many places for the first
                   * k operations */
    int *from;    /* [places + 1][ops + 1]: where the last of them begins */
    int *places;
};

static enum lk_status take(struct lk_place_search *search, size_t count, size_t bytes,
                           void **memory)
{
    return lk_arena_allocate(&search->arena, count * bytes, memory);
}

static enum lk_status make_room(struct lk_place_search *search, struct line *line)
{
    const size_t ops = (size_t)search->op_count + 1, cells = ops * (size_t)(search->places + 1);
    void *memory = NULL;
    LK_TRY(take(search, ops, sizeof(int), &memory));
    line->position = memory;
    LK_TRY(take(search, ops, sizeof(int), &memory));
    line->places = memory;
    LK_TRY(take(search, ops, sizeof(double), &memory));
    line->work = memory;
    LK_TRY(take(search, ops, sizeof(double), &memory));
    line->held = memory;
    LK_TRY(take(search, ops + 1, sizeof(double), &memory));
    line->crosses = memory;
    LK_TRY(take(search, cells, sizeof(double), &memory));
    line->best = memory;
    LK_TRY(take(search, cells, sizeof(int), &memory));
    line->from = memory;
    return LK_OK;
}

static void add_between(double *crosses, int first, int last, double time)
{
    for (int cut = first + 1; cut <= last; cut++)
        crosses[cut] += time;
}

/* What crosses a cut: values that are read behind it; weights that are used on both sides,
 * once for each use behind it. */
static void measure(const struct lk_place_search *search, struct line *line)
{
    const int ops = search->op_count;
    for (int k = 0; k < ops; k++) {
        const struct lk_place_op *op = &search->ops[line->order[k]];
        line->position[line->order[k]] = k;
        line->work[k + 1] = line->work[k] + op->work;
        line->held[k + 1] = line->held[k] + op->held;
    }
    for (int i = 0; i < ops; i++) {
        int last = line->position[i];
        for (int k = last + 1; k < ops; k++)
            for (int j = 0; j < search->ops[line->order[k]].inputs; j++)
                if (search->ops[line->order[k]].makers[j] == i)
                    last = k;
        add_between(line->crosses, line->position[i], last, search->ops[i].crosses);
        const int here = line->position[i], first = line->position[search->ops[i].first_use];
        add_between(line->crosses, here < first ? here : first, here < first ? first : here,
                    search->ops[i].weights);
    }
}

/* Fills `best` for places that hold at most `limit` bytes each. Times only grow with the run,
 * so shorter runs are tried first. */
static void fill(const struct lk_place_search *search, struct line *line, double limit)
{
    const int ops = search->op_count, row = ops + 1;
    for (int k = 0; k <= ops; k++)
        line->best[k] = k == 0 ? 0 : INFINITY;
    for (int p = 1; p <= search->places; p++)
        for (int end = 0; end <= ops; end++) {
            double *best = &line->best[p * row + end];
            *best = INFINITY;
            for (int begin = end - 1; begin >= 0; begin--) {
                const double work =
                    (line->work[end] - line->work[begin]) / search->speeds[p - 1];
                const double time = fmax(line->best[(p - 1) * row + begin],
                                         work + line->crosses[begin] + line->crosses[end]);
                if (work > *best || line->held[end] - line->held[begin] > limit)
                    break;
                if (time < *best) {
                    *best = time;
                    line->from[p * row + end] = begin;
                }
            }
        }
}

/* Reads the cuts back; the bytes that the fullest place holds. */
static double read_back(const struct lk_place_search *search, struct line *line)
{
    double most = 0;
    int end = search->op_count;
    for (int p = search->places; p >= 1; p--) {
        const int begin = line->from[p * (search->op_count + 1) + end];
        for (int k = begin; k < end; k++)
            line->places[line->order[k]] = p - 1;
        most = fmax(most, line->held[end] - line->held[begin]);
        end = begin;
    }
    return most;
}

static enum lk_status propose_in_order(struct lk_place_search *search, const int *order)
{
    struct line line = {.order = order};
    double limit = INFINITY;
    LK_TRY(make_room(search, &line));
    measure(search, &line);
    for (int i = 0; i < MOST_LIMITS; i++) {
        fill(search, &line, limit);
        if (line.best[search->places * (search->op_count + 1) + search->op_count] == INFINITY)
            return LK_OK;
        limit = LESS_HELD * read_back(search, &line);
        LK_TRY(lk_place_propose(search, line.places));
    }
    return LK_OK;
}

/* Puts an operation behind all that it needs, one input after the other: so branches stand one
 * behind the other, however the text mixes them. Returns how many stand there. */
static int put_behind(const struct lk_place_search *search, int i, bool *is_there, int *order,
                      int count)
{
    is_there[i] = true;
    for (int j = 0; j < search->ops[i].inputs; j++) {
        const int maker = search->ops[i].makers[j];
        if (maker >= 0 && !is_there[maker])
            count = put_behind(search, maker, is_there, order, count);
    }
    order[count] = i;
    return count + 1;
}

enum lk_status lk_place_propose_cuts(struct lk_place_search *search)
{
    const size_t ops = (size_t)search->op_count;
    void *memory = NULL;
    int count = 0;
    LK_TRY(take(search, 2 * ops + 1, sizeof(int), &memory));
    int *as_written = memory, *by_branches = as_written + ops;
    LK_TRY(take(search, ops + 1, sizeof(bool), &memory));
    bool *is_there = memory;
    for (int i = 0; i < search->op_count; i++)
        as_written[i] = i;
    for (int i = search->op_count - 1; i >= 0; i--)
        if (!is_there[i])
            count = put_behind(search, i, is_there, by_branches, count);
    LK_TRY(propose_in_order(search, as_written));
    return propose_in_order(search, by_branches);
}
