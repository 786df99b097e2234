/* Tokens that a graph only makes sure of: converters from TensorFlow write t + rows (t < 0) for
 * the tokens t of an embedding, in several nodes, where t alone means the same. */
#include "model/onnx_samples/samples.h"

#include "base/fail.h"
#include <math.h>
#include <string.h>

enum { NEAR = 64, MOST_STEPS = 24, MOST_ROWS = 1 << 22 };

enum step_kind { TOKEN, NUMBER, ADD, SUBTRACT, MULTIPLY, LESS, NOT, SAME, WHERE };

/* A number computed from those of steps before. */
struct step {
    const char *name;
    enum step_kind kind;
    double number;
    int from[3];
};

struct program {
    const draft *d;
    int node; /* the Gather */
    int count;
    struct step step[MOST_STEPS];
    const char *input;
};

static const struct {
    const char *op;
    enum step_kind kind;
    int inputs;
} known[] = {{"Add", ADD, 2}, {"Sub", SUBTRACT, 2}, {"Mul", MULTIPLY, 2},  {"Less", LESS, 2},
             {"Not", NOT, 1}, {"Cast", SAME, 1},    {"Identity", SAME, 1}, {"Where", WHERE, 3}};

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
        const struct lk_onnx_node *node = find_maker(p, name);
        int k = 0;
        while (node && k < LK_COUNT(known) && strcmp(known[k].op, node->op) != 0)
            k++;
        if (!node || depth == 0 || k == LK_COUNT(known) || node->input_count != known[k].inputs)
            return -1;
        step.kind = known[k].kind;
        for (int i = 0; i < known[k].inputs; i++) {
            step.from[i] = add_step(p, node->inputs[i], depth - 1);
            if (step.from[i] < 0)
                return -1;
        }
    }
    if (p->count == MOST_STEPS)
        return -1;
    p->step[p->count] = step;
    return p->count++;
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
                  : s->kind == NOT      ? a == 0
                  : s->kind == WHERE    ? (a != 0 ? b : c)
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

enum lk_status lk_onnx_join_tokens(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_graph *file = draft->file;
    int64_t looked = 0;
    for (int n = 0; n < file->node_count; n++) {
        /* the file is read for this draft alone */
        struct lk_onnx_node *node = (struct lk_onnx_node *)(uintptr_t)&file->nodes[n];
        struct program p = {.d = draft, .node = n};
        void *memory;
        if (strcmp(node->op, "Gather") != 0 || node->input_count != 2)
            continue;
        const value *table = lk_onnx_find(draft, node->inputs[0]);
        if (!table || !table->constant || table->constant->rank != 2 ||
            (looked += table->constant->dim[0]) > MOST_ROWS ||
            is_input(file, node->inputs[1]) || add_step(&p, node->inputs[1], 8) < 0 ||
            !p.input || !is_same(&p, table->constant->dim[0]))
            continue;
        LK_TRY(lk_arena_allocate(&draft->arena, 2 * sizeof node->inputs[0], &memory));
        const char **inputs = memory;
        inputs[0] = node->inputs[0];
        inputs[1] = p.input;
        node->inputs = inputs;
    }
    return LK_OK;
}
