/* What a loop gave, made of what its operator gives, and nodes that read it. */
#include "model/onnx_loops/loops.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

enum lk_status lk_loop_make_name(struct lk_loop *l, const char *role, const char **name)
{
    void *memory;
    const size_t length = strlen(l->name) + 16;
    LK_TRY(lk_arena_allocate(l->arena, length, &memory));
    snprintf(memory, length, "%s/%s", l->name, role);
    *name = memory;
    return LK_OK;
}

enum lk_status lk_loop_add(struct lk_loop *l, const char *op, int inputs, int outputs,
                           const char *const *names, struct lk_onnx_node *made)
{
    void *memory;
    const size_t bytes = (size_t)(inputs + outputs) * sizeof *names;
    LK_TRY(lk_arena_allocate(l->arena, bytes, &memory));
    memcpy(memory, names, bytes);
    const char **kept = memory;
    *made = (struct lk_onnx_node){.name = l->node->name,
                                  .op = op,
                                  .domain = "",
                                  .inputs = kept,
                                  .outputs = kept + inputs,
                                  .input_count = inputs,
                                  .output_count = outputs};
    return LK_OK;
}

/* --- what the loop gave ------------------------------------------------------------------- */

/* A Squeeze of one axis, said as the file's operators do. */
static enum lk_status add_squeeze(struct lk_loop *l, const char *from,
                                  const struct lk_onnx_tensor *axis, const char *to,
                                  struct lk_onnx_node *made)
{
    void *memory;
    if (l->file->of->operators >= 13)
        return lk_loop_add(l, "Squeeze", 2, 1, (const char *[]){from, axis->name, to}, made);
    LK_TRY(lk_arena_allocate(l->arena, sizeof(struct lk_onnx_attribute), &memory));
    struct lk_onnx_attribute *axes = memory;
    *axes = (struct lk_onnx_attribute){
        .name = "axes", .kind = LK_ONNX_INTEGERS, .integers = axis->data, .count = 1};
    LK_TRY(lk_loop_add(l, "Squeeze", 1, 1, (const char *[]){from, to}, made));
    made->attributes = axes;
    made->attribute_count = 1;
    return LK_OK;
}

/* The outputs of all steps, of what the operator makes, l->raw. Where a mask is one of lengths,
 * the output before stays behind a sample's last step, and a loop that goes back has all steps
 * in its own order. */
static enum lk_status give_steps(struct lk_loop *l, const char *y,
                                 const struct lk_onnx_tensor *second,
                                 struct lk_onnx_node *nodes, int *count)
{
    const char *all = l->node->outputs[l->node->output_count - 1];
    const bool is_same = !l->tokens || (!l->turned && l->masked == LK_LOOP_ZEROES);
    l->raw = all;
    if (!is_same || !*all)
        LK_TRY(lk_loop_make_name(l, "steps", &l->raw));
    LK_TRY(add_squeeze(l, y, second, l->raw, &nodes[(*count)++]));
    if (is_same || !*all)
        return LK_OK;
    if (l->turned)
        return lk_loop_add(l, "ReverseSequence", 2, 1, (const char *[]){l->raw, l->turned, all},
                           &nodes[(*count)++]);
    return lk_loop_add(l, "Where", 3, 1, (const char *[]){l->mask, l->raw, l->last, all},
                       &nodes[(*count)++]);
}

enum lk_status lk_loop_give(struct lk_loop *l, const char *const y[3],
                            const struct lk_onnx_tensor *numbers, struct lk_onnx_node *nodes,
                            int *count)
{
    const struct lk_onnx_tensor *first = &numbers[0], *second = &numbers[1];
    const int carried[] = {l->state, l->cell, l->previous};
    const bool is_h = l->masked == LK_LOOP_KEEPS || l->turned;
    l->last = y[1];
    LK_TRY(give_steps(l, y[0], second, nodes, count));
    for (int i = 0; i < 3; i++) {
        const char *to = carried[i] < 0 ? "" : l->node->outputs[carried[i] - 2];
        struct lk_onnx_node *node = &nodes[*count];
        if (!*to)
            continue;
        ++*count;
        if (i < 2 || is_h)
            LK_TRY(add_squeeze(l, y[i == 1 ? 2 : 1], first, to, node));
        else
            LK_TRY(lk_loop_add(l, "Gather", 2, 1, (const char *[]){l->raw, numbers[2].name, to},
                               node));
    }
    return LK_OK;
}

/* --- nodes that read it ------------------------------------------------------------------- */

/* The loop whose outputs of all steps a name has, perhaps turned to and fro; NULL: none. */
static struct lk_loop *find_loop(struct lk_loop *loops, int count,
                                 const struct lk_loop_graph *file, const char *name)
{
    bool is_odd;
    const char *root = count > 0 ? lk_loop_find_root(file, name, &is_odd) : name;
    for (int i = 0; i < count && !is_odd; i++)
        if (loops[i].tokens &&
            strcmp(loops[i].node->outputs[loops[i].node->output_count - 1], root) == 0)
            return &loops[i];
    return NULL;
}

/* Whether a Slice takes the last of so many time steps. */
static bool takes_last(const struct lk_loop_graph *file, const struct lk_onnx_node *node,
                       int64_t steps)
{
    const struct lk_onnx_tensor *ends;
    if (!lk_loop_takes(node, "Slice", 4) || node->input_count > 4)
        return false;
    ends = lk_loop_find_constant(file, node->inputs[2]);
    return ends && ends->count == 1 && lk_onnx_integer(ends, 0) >= steps &&
           lk_loop_is_number(lk_loop_find_constant(file, node->inputs[1]), -1) &&
           lk_loop_is_number(lk_loop_find_constant(file, node->inputs[3]), 0);
}

enum lk_status lk_loop_read(struct lk_loop *loops, int count, const struct lk_loop_graph *file,
                            struct lk_onnx_node *node)
{
    const bool is_slice = lk_loop_takes(node, "Slice", 4);
    struct lk_loop *l = is_slice || lk_loop_takes(node, "ReverseSequence", 2)
                            ? find_loop(loops, count, file, node->inputs[0])
                            : NULL;
    const char *from = NULL;
    if (l && is_slice && (l->masked == LK_LOOP_KEEPS || l->turned) &&
        takes_last(file, node, l->steps))
        from = l->last;
    if (l && !is_slice && l->turned && lk_loop_turns(file, node, l->steps))
        from = l->raw;
    return from ? lk_loop_add(l, "Identity", 1, 1, (const char *[]){from, node->outputs[0]},
                              node)
                : LK_OK;
}

void lk_loop_read_steps(struct lk_loop *loops, int count, struct lk_loop *l)
{
    const struct lk_loop *before = l->tokens ? find_loop(loops, count, l->file, l->x) : NULL;
    if (before && !before->turned && before->tokens == l->tokens)
        l->x = before->raw;
}
