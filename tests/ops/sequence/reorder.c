/* The last step, and all steps in reverse, against copies number by number. */
#include "lengths.h"

#include <string.h>

/* Calls visit for each number of y with the one of x that it is. */
static void walk(const struct op_problem *p, const double *const x[], void *context,
                 void (*visit)(void *context, int64_t y, int64_t x))
{
    const int64_t steps = p->shapes->x[0].dim[0], c = p->shapes->x[0].dim[1];
    const bool is_last = p->shapes->y.rank == 1;
    for (int64_t n = 0; n < p->samples; n++) {
        const int64_t valid = length_of(p, x, n);
        for (int64_t t = 0; t < valid; t++)
            for (int64_t k = 0; k < c; k++) {
                const int64_t from = (n * steps + valid - 1 - t) * c + k;
                if (!is_last || t == 0)
                    visit(context, is_last ? n * c + k : (n * steps + t) * c + k, from);
            }
    }
}

struct copy {
    const double *from;
    double *to;
};

static void take(void *context, int64_t y, int64_t x)
{
    struct copy *copy = context;
    copy->to[y] = copy->from[x];
}

static void give_back(void *context, int64_t y, int64_t x)
{
    struct copy *copy = context;
    copy->to[x] += copy->from[y];
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    (void)w;
    struct copy copy = {x[0], y};
    walk(p, x, &copy, take);
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    (void)w, (void)dw;
    struct copy copy = {dy, dx[0]};
    walk(p, x, &copy, give_back);
}

static const struct op_oracle oracle = {forward, backward, arrange_lengths};

/* clang-format off */
#define CASE(op_, t, c, ...)                                                                   \
    {.op = op_, .x = {OP_SHAPE(t, c)}, .classes = {0, 1}, __VA_ARGS__}

static const struct op_case cases[] = {
    CASE("last_step", 5, 7, .inputs = 2, .samples = 37, .thorough = true, .sizes = true),
    CASE("last_step", 3, 4, .samples = 20, .y = OP_SHAPE(4)),
    CASE("last_step", 20, 3, .inputs = 2, .samples = 33, .shards = 2, .inference = true),
    CASE("reverse_steps", 5, 7, .inputs = 2, .samples = 37, .thorough = true, .sizes = true),
    CASE("reverse_steps", 30, 4, .samples = 20, .y = OP_SHAPE(30, 4), .integers = true),
};

static const struct op_refusal refusals[] = {
    {.op = "last_step", .x = {OP_SHAPE(5)}, .status = LK_E_SHAPE,
     .said = "last_step: a sequence [t, c] expected, found [5]"},
    {.op = "reverse_steps", .x = {OP_SHAPE(5, 5)}, .labels = {true}, .status = LK_E_SHAPE,
     .said = "found whole numbers [5, 5]"},
    {.op = "last_step", .x = {OP_SHAPE(5, 2), OP_SHAPE(5)}, .inputs = 2,
     .labels = {false, true}, .status = LK_E_SHAPE, .said = "length of a sequence, int32 []"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}
