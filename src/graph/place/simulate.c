/* Walks all micro-batches of a step through a division, in the order in which lk_group_run()
 * gives work to devices. */
#include "graph/place/search.h"

#include "base/arena.h"
#include "base/fail.h"
#include <math.h>
#include <string.h>

/* A step with more micro-batches goes on as it does between the half of these and all of them.
 */
enum { MOST_SIMULATED = 24 };

/* A micro-batch at a place. Times are INFINITY for what was not sent yet. */
struct visit {
    int forward, backward; /* the operations of the whole schedule that come next */
    bool is_forward_done, is_done;
};

struct simulation {
    const struct lk_place_search *search;
    const int *places;
    int micro_batches, in_flight;
    struct visit *visits; /* [place][micro-batch] */
    int begun[LK_MOST_PLACES], ended[LK_MOST_PLACES];
    double *values, *gradients;     /* when they come: [micro-batch][operation][place] */
    double *weights, *weights_back; /* when they come: [micro-batch][operation] */
    double free[LK_MOST_PLACES], busy[LK_MOST_PLACES], crossing[LK_MOST_PLACES];
    double now;
};

static double *at(const struct simulation *s, double *times, int m, int i, int place)
{
    return &times[(m * s->search->op_count + i) * s->search->places + place];
}

/* Gives a place something to do; when that is done. */
static double work(struct simulation *s, int place, double time)
{
    s->free[place] = fmax(s->free[place], s->now) + time;
    s->busy[place] += time;
    return s->free[place];
}

/* Each end copies, and the host between them. */
static double cross(struct simulation *s, int from, int to, double each)
{
    const double sent = work(s, from, each);
    s->busy[to] += each;
    s->crossing[from] += each;
    s->crossing[to] += each;
    return sent + each;
}

static double one_way(const struct lk_place_op *op)
{
    return op->has_gradient ? op->crosses / 2 : op->crosses;
}

/* Sends weights to another place's operation. */
static void send_weights(struct simulation *s, int place, int m, int i)
{
    s->weights[m * s->search->op_count + i] =
        cross(s, place, s->places[i], s->search->ops[i].weights_forward);
}

static int lender(const struct simulation *s, int i)
{
    return lk_place_lender(s->search->ops, s->places, i);
}

/* Weights of other places' operations that are sent before all else. */
static void send_all_weights(struct simulation *s, int place, int m)
{
    for (int i = 0; i < s->search->op_count; i++)
        if (s->places[s->search->ops[i].first_use] == place && s->places[i] != place &&
            lender(s, i) < 0)
            send_weights(s, place, m, i);
}

static bool can_forward(const struct simulation *s, int place, int m, int i)
{
    const struct lk_place_op *op = &s->search->ops[i];
    if (s->places[op->first_use] != place && s->weights[m * s->search->op_count + i] > s->now)
        return false;
    for (int j = 0; j < op->inputs; j++)
        if (op->makers[j] >= 0 && s->places[op->makers[j]] != place &&
            *at(s, s->values, m, op->makers[j], place) > s->now)
            return false;
    return true;
}

/* What arrives takes the receiver's time as well, counted when it was sent. */
static void receive(struct simulation *s, int place, double each)
{
    s->free[place] = fmax(s->free[place], s->now) + each;
}

static void forward(struct simulation *s, int place, int m, int i)
{
    const struct lk_place_op *op = &s->search->ops[i];
    bool is_sent[LK_MOST_PLACES] = {false};
    for (int j = 0; j < op->inputs; j++)
        if (op->makers[j] >= 0 && s->places[op->makers[j]] != place)
            receive(s, place, one_way(&s->search->ops[op->makers[j]]));
    work(s, place, op->forward / s->search->speeds[place]);
    for (int k = i + 1; k < s->search->op_count; k++) {
        const int to = s->places[k];
        if (to == place || is_sent[to] || !lk_place_reads(&s->search->ops[k], i))
            continue;
        is_sent[to] = true;
        *at(s, s->values, m, i, to) = cross(s, place, to, one_way(op));
    }
}

static bool go_forward(struct simulation *s, int place, int m)
{
    struct visit *v = &s->visits[place * s->micro_batches + m];
    bool has_moved = false;
    for (; v->forward < s->search->op_count; v->forward++) {
        if (lender(s, v->forward) == place)
            send_weights(s, place, m, v->forward);
        if (s->places[v->forward] != place)
            continue;
        if (!can_forward(s, place, m, v->forward))
            return has_moved;
        forward(s, place, m, v->forward);
        has_moved = true;
    }
    v->is_forward_done = true;
    return has_moved;
}

/* The gradient of operation i's value, from the places that read it. */
static bool can_backward(const struct simulation *s, int place, int m, int i)
{
    for (int k = i + 1; s->search->ops[i].has_gradient && k < s->search->op_count; k++)
        if (s->places[k] != place && lk_place_reads(&s->search->ops[k], i) &&
            *at(s, s->gradients, m, i, s->places[k]) > s->now)
            return false;
    return true;
}

/* Whether no earlier operation of the place reads the value too: then its gradient is whole. */
static bool is_first_reader(const struct simulation *s, int maker, int i)
{
    for (int k = maker + 1; k < i; k++)
        if (s->places[k] == s->places[i] && lk_place_reads(&s->search->ops[k], maker))
            return false;
    return true;
}

static void backward(struct simulation *s, int place, int m, int i)
{
    const struct lk_place_op *op = &s->search->ops[i];
    work(s, place, (op->work - op->forward) / s->search->speeds[place]);
    for (int j = 0; j < op->inputs; j++) {
        const int maker = op->makers[j];
        if (maker < 0 || s->places[maker] == place || !s->search->ops[maker].has_gradient ||
            !is_first_reader(s, maker, i))
            continue;
        *at(s, s->gradients, m, maker, place) =
            cross(s, place, s->places[maker], one_way(&s->search->ops[maker]));
    }
    if (s->places[op->first_use] != place)
        s->weights_back[m * s->search->op_count + i] =
            cross(s, place, s->places[op->first_use], op->weights - op->weights_forward);
}

static bool is_weight_back(const struct simulation *s, int m, int i)
{
    return s->weights_back[m * s->search->op_count + i] <= s->now;
}

/* Gradients of weights that other places use are the last to come. */
static bool has_weights_back(const struct simulation *s, int place, int m)
{
    for (int i = 0; i < s->search->op_count; i++)
        if (s->places[s->search->ops[i].first_use] == place && s->places[i] != place &&
            !is_weight_back(s, m, i))
            return false;
    return true;
}

static bool go_backward(struct simulation *s, int place, bool *has_moved)
{
    const int m = s->ended[place];
    if (m >= s->begun[place])
        return false;
    struct visit *v = &s->visits[place * s->micro_batches + m];
    if (!v->is_forward_done)
        return false;
    for (; v->backward >= 0; v->backward--) {
        if (lender(s, v->backward) == place && !is_weight_back(s, m, v->backward))
            return false;
        if (s->places[v->backward] != place)
            continue;
        if (!can_backward(s, place, m, v->backward))
            return false;
        backward(s, place, m, v->backward);
        *has_moved = true;
    }
    if (!has_weights_back(s, place, m))
        return false;
    work(s, place, s->search->sums[place]);
    s->ended[place]++;
    *has_moved = true;
    return true;
}

/* What lk_group_run() enqueues at a place at a time. */
static bool advance(struct simulation *s, int place)
{
    bool has_moved = false;
    do
        for (int m = s->ended[place]; m < s->begun[place]; m++)
            has_moved |= go_forward(s, place, m);
    while (go_backward(s, place, &has_moved));
    if (s->begun[place] == s->micro_batches ||
        s->begun[place] - s->ended[place] == s->in_flight)
        return has_moved;
    work(s, place, s->search->loads[place]);
    send_all_weights(s, place, s->begun[place]++);
    return true;
}

/* The next time at which something arrives; INFINITY: nothing is on its way. */
static double next_arrival(const struct simulation *s)
{
    const int ops = s->search->op_count, all = s->micro_batches * ops;
    double next = INFINITY;
    for (int i = 0; i < all * s->search->places; i++) {
        if (s->values[i] > s->now && s->values[i] < next)
            next = s->values[i];
        if (s->gradients[i] > s->now && s->gradients[i] < next)
            next = s->gradients[i];
    }
    for (int i = 0; i < all; i++) {
        if (s->weights[i] > s->now && s->weights[i] < next)
            next = s->weights[i];
        if (s->weights_back[i] > s->now && s->weights_back[i] < next)
            next = s->weights_back[i];
    }
    return next;
}

static enum lk_status make_room(struct simulation *s, struct lk_arena *arena)
{
    const size_t ops = (size_t)s->search->op_count * (size_t)s->micro_batches;
    const size_t times = 2 * ops * (size_t)s->search->places + 2 * ops;
    const size_t visits = (size_t)s->search->places * (size_t)s->micro_batches;
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(arena, (times + 1) * sizeof(double), &memory));
    s->values = memory;
    s->gradients = s->values + ops * (size_t)s->search->places;
    s->weights = s->gradients + ops * (size_t)s->search->places;
    s->weights_back = s->weights + ops;
    for (size_t i = 0; i < times; i++)
        s->values[i] = INFINITY;
    LK_TRY(lk_arena_allocate(arena, visits * sizeof *s->visits, &memory));
    s->visits = memory;
    for (size_t i = 0; i < visits; i++)
        s->visits[i] = (struct visit){.backward = s->search->op_count - 1};
    return LK_OK;
}

static enum lk_status simulate(struct simulation *s, double *end)
{
    struct lk_arena arena = {0};
    enum lk_status status = make_room(s, &arena);
    for (int p = 0; p < s->search->places; p++)
        work(s, p, s->search->update[p]);
    while (status == LK_OK && s->now < INFINITY) {
        for (bool again = true; again;) {
            again = false;
            for (int p = 0; p < s->search->places; p++)
                again |= advance(s, p);
        }
        s->now = next_arrival(s);
    }
    *end = 0;
    for (int p = 0; p < s->search->places && status == LK_OK; p++) {
        *end = fmax(*end, s->free[p]);
        if (s->ended[p] < s->micro_batches)
            status = lk_fail(LK_E_UNSUPPORTED, "places wait for each other");
    }
    lk_arena_clear(&arena);
    return status;
}

enum lk_status lk_place_simulate(const struct lk_place_search *search, const int *places,
                                 int micro_batches, int in_flight,
                                 struct lk_place_simulated *found)
{
    const int few = micro_batches < MOST_SIMULATED ? micro_batches : MOST_SIMULATED;
    struct simulation s = {.search = search, .places = places, .in_flight = in_flight};
    double end = 0, half = 0;
    s.micro_batches = few / 2;
    if (few < micro_batches) {
        struct simulation first = s;
        LK_TRY(simulate(&first, &half));
    }
    s.micro_batches = few;
    LK_TRY(simulate(&s, &end));
    const double more = micro_batches - few, times = (double)micro_batches / few;
    found->step = end + (more > 0 ? more * (end - half) / (few - few / 2) : 0);
    for (int p = 0; p < search->places; p++) {
        found->busy[p] = times * (s.busy[p] - search->update[p]) + search->update[p];
        found->crossing[p] = times * s.crossing[p];
    }
    return LK_OK;
}
