/* Compares two models by their graphs, whatever words their texts use, and says what is the
 * first thing that differs. */
#include "base/fail.h"
#include "graph/nodes/node.h"
#include "model/model.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { OPTIONS_BYTES = 4096 };

/* What was found; `here` is the model that was asked about, `there` the one of the text. */
struct comparison {
    const struct lk_model *here, *there;
    char *text;
    size_t bytes;
};

/* Says what differs; false. */
__attribute__((format(printf, 2, 3))) static bool differs(struct comparison *c,
                                                          const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(c->text, c->bytes, format, values);
    va_end(values);
    return false;
}

static bool is_same_input(struct comparison *c, const struct lk_node *here,
                          const struct lk_node *there)
{
    const struct lk_input *a = &here->input, *b = &there->input;
    char of_a[96], of_b[96];
    lk_shape_print_hwc(&a->shape, of_a, sizeof of_a);
    lk_shape_print_hwc(&b->shape, of_b, sizeof of_b);
    if (a->dtype != b->dtype || strcmp(of_a, of_b) != 0)
        return differs(c, "input '%s' is %s %s here, %s %s there", here->name,
                       lk_dtype_name(a->dtype), of_a, lk_dtype_name(b->dtype), of_b);
    if (a->scale != b->scale || a->shift != b->shift)
        return differs(c, "input '%s' has scale %g and shift %g here, %g and %g there",
                       here->name, a->scale, a->shift, b->scale, b->shift);
    return a->takes_numbers == b->takes_numbers ||
           differs(c, "input '%s' takes numbers in one of them only", here->name);
}

/* The first option that is another one; NULL: all are the same. */
static const struct lk_option *find_option(const struct lk_node *a, const struct lk_node *b,
                                           char of_a[OPTIONS_BYTES], char of_b[OPTIONS_BYTES])
{
    for (const struct lk_option *row = a->op->options; row && row->kind != LK_OPTION_END;
         row++) {
        lk_option_print(row, a->options, of_a, OPTIONS_BYTES);
        lk_option_print(row, b->options, of_b, OPTIONS_BYTES);
        if (strcmp(of_a, of_b) != 0)
            return row;
    }
    return NULL;
}

static bool is_same_operation(struct comparison *c, const struct lk_node *a,
                              const struct lk_node *b)
{
    char of_a[OPTIONS_BYTES], of_b[OPTIONS_BYTES];
    if (a->op != b->op)
        return differs(c, "layer '%s' is %s here, %s there", a->name, a->op->name, b->op->name);
    const struct lk_option *row = find_option(a, b, of_a, of_b);
    if (row)
        return differs(c, "layer '%s' has %s %s here, %s there", a->name, row->name, of_a,
                       of_b);
    if (a->inputs != b->inputs)
        return differs(c, "layer '%s' reads %d others here, %d there", a->name, a->inputs,
                       b->inputs);
    for (int i = 0; i < a->inputs; i++)
        if (a->input_nodes[i]->index != b->input_nodes[i]->index)
            return differs(c, "layer '%s' reads '%s' here, '%s' there", a->name,
                           a->input_nodes[i]->name, b->input_nodes[i]->name);
    if (lk_node_owner(a)->index != lk_node_owner(b)->index)
        return differs(c, "layer '%s' has the weights of '%s' here, of '%s' there", a->name,
                       lk_node_owner(a)->name, lk_node_owner(b)->name);
    if (a->shapes.params > 0 && lk_node_owner(a)->lr_scale != lk_node_owner(b)->lr_scale)
        return differs(c, "layer '%s' has lr_scale %g here, %g there", a->name,
                       lk_node_owner(a)->lr_scale, lk_node_owner(b)->lr_scale);
    if (lk_node_owner(a)->l1 != lk_node_owner(b)->l1 ||
        lk_node_owner(a)->l2 != lk_node_owner(b)->l2)
        return differs(c, "layer '%s' has penalties l1 %g, l2 %g here, %g, %g there", a->name,
                       lk_node_owner(a)->l1, lk_node_owner(a)->l2, lk_node_owner(b)->l1,
                       lk_node_owner(b)->l2);
    /* It makes no difference whether a node without parameters is frozen. */
    return a->shapes.params == 0 || a->is_trainable == b->is_trainable ||
           differs(c, "layer '%s' is frozen %s", a->name,
                   a->is_trainable ? "there, not here" : "here, not there");
}

static bool is_same_node(struct comparison *c, const struct lk_node *a, const struct lk_node *b)
{
    if (strcmp(a->name, b->name) != 0)
        return differs(c, "layer %d is '%s' here, '%s' there", a->index, a->name, b->name);
    if ((a->op == NULL) != (b->op == NULL))
        return differs(c, "'%s' is an input in one of them, a layer in the other", a->name);
    return a->op ? is_same_operation(c, a, b) : is_same_input(c, a, b);
}

static const char *loss_name(const struct lk_model_output *output)
{
    return output->loss.kind ? output->loss.kind->name : "none";
}

/* What is trained for. Metrics change nothing of what is learnt, and may differ. */
static bool is_same_loss(struct comparison *c, const struct lk_model_output *a,
                         const struct lk_model_output *b)
{
    const char *of_a = a->loss.kind ? a->loss.options : "";
    const char *of_b = b->loss.kind ? b->loss.options : "";
    if (a->loss.kind == b->loss.kind && a->weight == b->weight &&
        a->shape.form == b->shape.form && strcmp(of_a, of_b) == 0)
        return true;
    return differs(c,
                   "output '%s' is trained for loss %s %swith weight %g here, %s %swith weight "
                   "%g there",
                   a->name, loss_name(a), of_a, a->weight, loss_name(b), of_b, b->weight);
}

static bool is_same_output(struct comparison *c, int i)
{
    const struct lk_model_output *a = &c->here->outputs[i], *b = &c->there->outputs[i];
    if (a->node->index != b->node->index || strcmp(a->name, b->name) != 0)
        return differs(c, "output %d is '%s' of layer '%s' here, '%s' of layer '%s' there",
                       i + 1, a->name, a->node->name, b->name, b->node->name);
    return !c->here->says_loss || is_same_loss(c, a, b);
}

/* Compares the nodes of the texts alone: labels and a loss may have been added to either graph
 * since. Of graphs of different lengths the first node that is another one is told. */
static bool is_same_graph(struct comparison *c)
{
    const struct lk_model *a = c->here, *b = c->there;
    const int count = a->node_count < b->node_count ? a->node_count : b->node_count;
    for (int i = 0; i < count; i++)
        if (!is_same_node(c, a->graph->nodes[i], b->graph->nodes[i]))
            return false;
    if (a->node_count != b->node_count)
        return differs(c, "%d layers and inputs here, %d there", a->node_count, b->node_count);
    if (a->output_count != b->output_count)
        return differs(c, "%d outputs here, %d there", a->output_count, b->output_count);
    if (a->says_loss != b->says_loss)
        return differs(c, "the text here says %s loss, the one there does%s",
                       a->says_loss ? "a" : "no", a->says_loss ? " not" : "");
    for (int i = 0; i < a->output_count; i++)
        if (!is_same_output(c, i))
            return false;
    return true;
}

enum lk_status lk_model_differ(const struct lk_model *model, const char *text, char *what,
                               size_t bytes)
{
    struct lk_model *other = NULL;
    if (strcmp(model->text, text) != 0)
        LK_TRY(lk_model_read(text, strlen(text), "the model compared with", &other));
    what[0] = '\0';
    struct comparison c = {.here = model, .there = other, .text = what, .bytes = bytes};
    if (other)
        (void)is_same_graph(&c);
    lk_model_destroy(other);
    return LK_OK;
}

enum lk_status lk_model_compare(const struct lk_model *model, const char *text, bool *is_same)
{
    char what[256];
    LK_TRY(lk_model_differ(model, text, what, sizeof what));
    *is_same = !*what;
    return LK_OK;
}
