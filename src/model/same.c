/* Compares two models by their graphs, whatever words their texts use. */
#include "base/fail.h"
#include "graph/node.h"
#include "model/model.h"
#include <string.h>

enum { OPTIONS_BYTES = 4096 };

static bool is_same_input(const struct lk_input *a, const struct lk_input *b)
{
    return a->dtype == b->dtype && lk_shape_equal(&a->shape, &b->shape) &&
           a->scale == b->scale && a->shift == b->shift && a->takes_numbers == b->takes_numbers;
}

static bool is_same_operation(const struct lk_node *a, const struct lk_node *b)
{
    char of_a[OPTIONS_BYTES], of_b[OPTIONS_BYTES];
    bool is_same = a->op == b->op && a->inputs == b->inputs &&
                   lk_options_print(a->op->options, a->options, true, of_a, sizeof of_a) &&
                   lk_options_print(b->op->options, b->options, true, of_b, sizeof of_b) &&
                   strcmp(of_a, of_b) == 0;
    for (int i = 0; is_same && i < a->inputs; i++)
        is_same = a->input_nodes[i]->index == b->input_nodes[i]->index;
    if (lk_node_owner(a)->index != lk_node_owner(b)->index)
        return false;
    /* it makes no difference whether a node without parameters is frozen */
    return is_same && (a->shapes.params == 0 || a->is_trainable == b->is_trainable);
}

static bool is_same_node(const struct lk_node *a, const struct lk_node *b)
{
    if (strcmp(a->name, b->name) != 0 || (a->op == NULL) != (b->op == NULL))
        return false;
    return a->op ? is_same_operation(a, b) : is_same_input(&a->input, &b->input);
}

/* What is trained for. Metrics change nothing of what is learnt, and may differ. */
static bool is_same_loss(const struct lk_model_output *a, const struct lk_model_output *b)
{
    return a->loss.kind == b->loss.kind && a->weight == b->weight &&
           a->shape.form == b->shape.form &&
           (!a->loss.kind || strcmp(a->loss.options, b->loss.options) == 0);
}

/* Compares the nodes of the texts alone: labels and a loss may have been added to either graph
 * since. */
static bool is_same_graph(const struct lk_model *a, const struct lk_model *b)
{
    bool is_same = a->node_count == b->node_count && a->output_count == b->output_count &&
                   a->says_loss == b->says_loss;
    for (int i = 0; is_same && i < a->output_count; i++)
        is_same = a->outputs[i].node->index == b->outputs[i].node->index &&
                  strcmp(a->outputs[i].name, b->outputs[i].name) == 0 &&
                  (!a->says_loss || is_same_loss(&a->outputs[i], &b->outputs[i]));
    for (int i = 0; is_same && i < a->node_count; i++)
        is_same = is_same_node(a->graph->nodes[i], b->graph->nodes[i]);
    return is_same;
}

enum lk_status lk_model_compare(const struct lk_model *model, const char *text, bool *is_same)
{
    struct lk_model *other = NULL;
    if (strcmp(model->text, text) == 0) {
        *is_same = true;
        return LK_OK;
    }
    LK_TRY(lk_model_read(text, strlen(text), "the model compared with", &other));
    *is_same = is_same_graph(model, other);
    lk_model_destroy(other);
    return LK_OK;
}
