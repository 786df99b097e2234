/* Tokens and lengths that a graph only makes sure of. Converters from TensorFlow write t + rows
 * (t < 0) for the tokens t of an embedding, PyTorch's clamp and our own export a Clip, where t
 * alone means the same for every row of the table. Our export hides what other tokens find,
 * which an embedding of ours gives as 0 anyway, and clips lengths, which layers of ours do. */
#include "model/onnx_samples/samples.h"

#include "base/fail.h"
#include <math.h>
#include <string.h>

enum { NEAR = 256, MOST_STEPS = 24, MOST_LOOKS = 1 << 23, MOST_DEPTH = 8 };

enum step_kind {
    TOKEN,
    NUMBER,
    ADD,
    SUBTRACT,
    MULTIPLY,
    LESS,
    EQUAL,
    NOT,
    SAME,
    WHERE,
    CLIP,
    SMALLER,
    LARGER
};

/* A number computed from those of steps before. */
struct step {
    const char *name;
    enum step_kind kind;
    double number;
    int from[3];
};

struct program {
    const draft *d;
    int node; /* that reads what is computed */
    int count;
    struct step step[MOST_STEPS];
    const char *input;
};

static const struct {
    const char *op;
    enum step_kind kind;
    int inputs;
} known[] = {{"Add", ADD, 2},   {"Sub", SUBTRACT, 2},  {"Mul", MULTIPLY, 2},
             {"Less", LESS, 2}, {"Equal", EQUAL, 2},   {"Not", NOT, 1},
             {"Cast", SAME, 1}, {"Identity", SAME, 1}, {"Where", WHERE, 3},
             {"Clip", CLIP, 3}, {"Min", SMALLER, 2},   {"Max", LARGER, 2}};

static bool is_input(const struct lk_onnx_graph *file, const char *name)
{
    for (int i = 0; i < file->input_count; i++)
        if (strcmp(file->inputs[i].name, name) == 0)
            return true;
    return false;
}

static const struct lk_onnx_node *find_maker(const struct program *p, const char *name)
{
    for (int n = p->node - 1; n >= 0 && n >= p->node - NEAR; n--) {
        const struct lk_onnx_node *node = &p->d->file->nodes[n];
        if (node->output_count == 1 && strcmp(node->outputs[0], name) == 0)
            return node;
    }
    return NULL;
}

static int put_step(struct program *p, const struct step *step)
{
    if (p->count == MOST_STEPS)
        return -1;
    p->step[p->count] = *step;
    return p->count++;
}

/* Which row of `known` a node is; -1: none. */
static int find_kind(const struct lk_onnx_node *node)
{
    const struct lk_onnx_attribute *to = lk_onnx_find_attribute(node, "to");
    for (int k = 0; k < LK_COUNT(known); k++) {
        if (strcmp(known[k].op, node->op) != 0)
            continue;
        if (strcmp(node->op, "Cast") == 0) /* which keeps numbers of rows as they are */
            return to && (to->integer == LK_ONNX_INT32 || to->integer == LK_ONNX_INT64 ||
                          to->integer == LK_ONNX_FLOAT || to->integer == LK_ONNX_DOUBLE)
                       ? k
                       : -1;
        if (known[k].kind == CLIP)
            return node->input_count <= 3 && node->attribute_count == 0 ? k : -1;
        return node->input_count == known[k].inputs ? k : -1;
    }
    return -1;
}

static int add_step(struct program *p, const char *name, int depth);

static int add_node(struct program *p, const struct lk_onnx_node *node, struct step *step,
                    int depth)
{
    static const struct step bounds[] = {{.name = "\1low", NUMBER, -INFINITY},
                                         {.name = "\1high", NUMBER, INFINITY}};
    const int k = node && depth > 0 ? find_kind(node) : -1;
    if (k < 0)
        return -1;
    step->kind = known[k].kind;
    for (int i = 0; i < known[k].inputs; i++) {
        const bool is_there = i < node->input_count && *node->inputs[i];
        if (!is_there && (step->kind != CLIP || i == 0))
            return -1;
        step->from[i] =
            is_there ? add_step(p, node->inputs[i], depth - 1) : put_step(p, &bounds[i - 1]);
        if (step->from[i] < 0)
            return -1;
    }
    return put_step(p, step);
}

/* The step that computes a name, with those before it; -1: it is not so simple. */
static int add_step(struct program *p, const char *name, int depth)
{
    const value *found = lk_onnx_find(p->d, name);
    struct step step = {.name = name, .kind = TOKEN};
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->step[i].name, name) == 0)
            return i;
    if (found && found->constant) {
        if (found->constant->count != 1)
            return -1;
        step.kind = NUMBER;
        step.number = lk_onnx_real(found->constant, 0);
    } else if (is_input(p->d->file, name)) {
        if (p->input && strcmp(p->input, name) != 0)
            return -1;
        p->input = name;
    } else {
        return add_node(p, find_maker(p, name), &step, depth);
    }
    return put_step(p, &step);
}

/* What a name that node n reads is of the numbers of one input. */
static bool read_program(const draft *d, int n, const char *name, struct program *p)
{
    *p = (struct program){.d = d, .node = n};
    return !is_input(d->file, name) && add_step(p, name, MOST_DEPTH) >= 0 && p->input;
}

static double compute(const struct program *p, double token)
{
    double made[MOST_STEPS] = {0};
    for (int i = 0; i < p->count; i++) {
        const struct step *s = &p->step[i];
        const double a = made[s->from[0]], b = made[s->from[1]], c = made[s->from[2]];
        made[i] = s->kind == TOKEN      ? token
                  : s->kind == NUMBER   ? s->number
                  : s->kind == ADD      ? a + b
                  : s->kind == SUBTRACT ? a - b
                  : s->kind == MULTIPLY ? a * b
                  : s->kind == LESS     ? a < b
                  : s->kind == EQUAL    ? a == b
                  : s->kind == NOT      ? a == 0
                  : s->kind == WHERE    ? (a != 0 ? b : c)
                  : s->kind == SMALLER  ? fmin(a, b)
                  : s->kind == LARGER   ? fmax(a, b)
                  : s->kind == CLIP     ? fmin(fmax(a, b), c)
                                        : a;
    }
    return made[p->count - 1];
}

/* Whether every token that has a row stays itself. */
static bool is_same(const struct program *p, int64_t rows)
{
    for (int64_t t = 0; t < rows; t++)
        if (compute(p, (double)t) != (double)t)
            return false;
    return true;
}

/* Whether it is true of every token that has a row. */
static bool is_true(const struct program *p, int64_t rows)
{
    for (int64_t t = 0; t < rows; t++)
        if (compute(p, (double)t) == 0)
            return false;
    return true;
}

/* --- what is rewritten ------------------------------------------------------------------- */

/* The file is read for this draft alone. */
static struct lk_onnx_node *node_at(const draft *d, int n)
{
    return (struct lk_onnx_node *)(uintptr_t)&d->file->nodes[n];
}

static enum lk_status set_input(draft *d, struct lk_onnx_node *node, int input,
                                const char *name)
{
    void *memory;
    const size_t bytes = (size_t)node->input_count * sizeof *node->inputs;
    LK_TRY(lk_arena_allocate(&d->arena, bytes, &memory));
    const char **inputs = memory;
    memcpy(inputs, node->inputs, bytes);
    inputs[input] = name;
    node->inputs = inputs;
    return LK_OK;
}

static enum lk_status make_identity(draft *d, struct lk_onnx_node *node, const char *name)
{
    LK_TRY(set_input(d, node, 0, name));
    node->op = "Identity";
    node->input_count = 1;
    node->attribute_count = 0;
    return LK_OK;
}

/* --- guards ------------------------------------------------------------------------------ */

/* An embedding of tokens of an input: a Gather. */
struct rows {
    const char *input;
    int64_t count, *looked;
    const struct lk_onnx_node *gather;
};

static const struct lk_onnx_port *find_port(const draft *d, const char *name)
{
    for (int i = 0; i < d->file->input_count; i++)
        if (strcmp(d->file->inputs[i].name, name) == 0)
            return &d->file->inputs[i];
    return NULL;
}

static int count_readers(const draft *d, const char *name)
{
    int count = 0;
    for (int n = 0; n < d->file->node_count; n++)
        for (int i = 0; i < d->file->nodes[n].input_count; i++)
            count += strcmp(d->file->nodes[n].inputs[i], name) == 0;
    for (int o = 0; o < d->file->output_count; o++)
        count += strcmp(d->file->outputs[o].name, name) == 0;
    return count;
}

/* Whether a Reshape of the tokens' shape adds an axis of length 1 behind. */
static bool adds_last(const draft *d, const struct lk_onnx_node *node,
                      const struct lk_onnx_port *port)
{
    const value *found = node->input_count == 2 ? lk_onnx_find(d, node->inputs[1]) : NULL;
    const struct lk_onnx_tensor *shape = found ? found->constant : NULL;
    if (strcmp(node->op, "Reshape") != 0 || !shape || shape->count != port->rank + 1 ||
        lk_onnx_integer(shape, port->rank) != 1)
        return false;
    for (int i = 0; i < port->rank; i++) {
        const int64_t said = lk_onnx_integer(shape, i);
        if (said != port->dim[i] && (i > 0 || said != 0))
            return false;
    }
    return true;
}

static bool is_guard(const draft *d, int n, const char *name, const struct rows *rows)
{
    struct program p;
    return read_program(d, n, name, &p) && strcmp(p.input, rows->input) == 0 &&
           (*rows->looked += rows->count) <= MOST_LOOKS && is_true(&p, rows->count);
}

/* Leaves out what a Where at node n asks of tokens alone, beside what else it asks. */
static enum lk_status drop_guard(draft *d, int n, const struct rows *rows)
{
    struct lk_onnx_node *where = node_at(d, n);
    const struct program here = {.d = d, .node = n};
    const struct lk_onnx_node *shaped = find_maker(&here, where->inputs[0]);
    if (!shaped || !adds_last(d, shaped, find_port(d, rows->input)))
        return LK_OK;
    const char *condition = shaped->inputs[0];
    if (is_guard(d, n, condition, rows))
        return make_identity(d, where, where->inputs[1]);
    const struct lk_onnx_node *both = find_maker(&here, condition);
    if (!both || strcmp(both->op, "And") != 0 || both->input_count != 2 ||
        count_readers(d, condition) != 1 || count_readers(d, where->inputs[0]) != 1)
        return LK_OK;
    for (int i = 0; i < 2; i++)
        if (is_guard(d, n, both->inputs[i], rows))
            return make_identity(d, node_at(d, (int)(both - d->file->nodes)),
                                 both->inputs[1 - i]);
    return LK_OK;
}

static bool is_zero(const draft *d, const char *name)
{
    const value *found = lk_onnx_find(d, name);
    return found && found->constant && found->constant->count == 1 &&
           lk_onnx_real(found->constant, 0) == 0;
}

static enum lk_status drop_guards(draft *d, int n, const struct rows *rows)
{
    for (int w = n + 1; w < d->file->node_count && w <= n + NEAR; w++) {
        const struct lk_onnx_node *node = &d->file->nodes[w];
        if (strcmp(node->op, "Where") == 0 && node->input_count == 3 &&
            strcmp(node->inputs[1], rows->gather->outputs[0]) == 0 &&
            is_zero(d, node->inputs[2]))
            LK_TRY(drop_guard(d, w, rows));
    }
    return LK_OK;
}

/* --- nodes ------------------------------------------------------------------------------- */

static enum lk_status join_gather(draft *d, int n, int64_t *looked)
{
    struct lk_onnx_node *node = node_at(d, n);
    struct program p;
    if (node->input_count != 2)
        return LK_OK;
    const value *table = lk_onnx_find(d, node->inputs[0]);
    if (!table || !table->constant || table->constant->rank != 2 ||
        (*looked += table->constant->dim[0]) > MOST_LOOKS ||
        !read_program(d, n, node->inputs[1], &p) || !is_same(&p, table->constant->dim[0]))
        return LK_OK;
    LK_TRY(set_input(d, node, 1, p.input));
    return drop_guards(d, n, &(struct rows){p.input, table->constant->dim[0], looked, node});
}

/* Up to which number from 0 on it stays itself, and what is beyond becomes that; -1: it is no
 * length. */
static int64_t find_limit(const struct program *p, int64_t *looked)
{
    enum { BEYOND = 1 << 30 };
    int64_t n = 0;
    if (compute(p, BEYOND) == BEYOND)
        return -1;
    while (*looked < MOST_LOOKS && compute(p, (double)n) == (double)n) {
        n++;
        ++*looked;
    }
    return n > 0 && *looked < MOST_LOOKS && compute(p, (double)n) == (double)(n - 1) &&
                   compute(p, BEYOND) == (double)(n - 1) && compute(p, -BEYOND) == 0
               ? n - 1
               : -1;
}

/* Lengths that end where a sequence of the file does are clipped by the layer as well. */
static enum lk_status join_length(draft *d, int n, int64_t *looked)
{
    const struct lk_onnx_node *node = &d->file->nodes[n];
    struct program p;
    if (node->input_count < 5 || !*node->inputs[4] || !read_program(d, n, node->inputs[4], &p))
        return LK_OK;
    const int64_t limit = find_limit(&p, looked);
    for (int i = 0; limit > 0 && i < d->file->input_count; i++)
        if (d->file->inputs[i].rank > 1 && d->file->inputs[i].dim[1] == limit)
            return set_input(d, node_at(d, n), 4, p.input);
    return LK_OK;
}

enum lk_status lk_onnx_join_tokens(struct lk_onnx_draft *draft)
{
    int64_t looked = 0; /* numbers that are tried, so that no file takes long */
    for (int n = 0; n < draft->file->node_count; n++) {
        const char *op = draft->file->nodes[n].op;
        if (strcmp(op, "Gather") == 0)
            LK_TRY(join_gather(draft, n, &looked));
        if (strcmp(op, "LSTM") == 0 || strcmp(op, "GRU") == 0 || strcmp(op, "RNN") == 0)
            LK_TRY(join_length(draft, n, &looked));
    }
    return LK_OK;
}
