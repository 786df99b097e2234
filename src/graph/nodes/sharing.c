/* Nodes that use the parameters of another one. */
#include "base/fail.h"
#include "graph/nodes/node.h"
#include <string.h>

/* Operations of one kind have parameters of one kind, and so have some that take a table. */
static bool can_share(const struct lk_node *node, const struct lk_node *owner)
{
    return node->op && owner->op &&
           (node->op == owner->op || (node->op->shares_rows && owner->shapes.params > 0 &&
                                      owner->shapes.param[0].is_rows));
}

static enum lk_status check_nodes(const struct lk_node *node, const struct lk_node *owner)
{
    if (!node || !owner || node->graph != owner->graph)
        return lk_fail(LK_E_ARGUMENT, "weights are shared by two nodes of one graph");
    if (node == owner)
        return lk_fail(LK_E_ARGUMENT, "'%s' cannot have its own weights of itself", node->name);
    if (!can_share(node, owner))
        return lk_fail(LK_E_ARGUMENT,
                       "'%s' is %s, '%s', whose weights it is to have, is %s; the same "
                       "operation is expected",
                       node->name, node->op ? node->op->name : "an input", owner->name,
                       owner->op ? owner->op->name : "an input");
    if (owner->index > node->index)
        return lk_fail(LK_E_ARGUMENT,
                       "'%s' cannot have the weights of '%s', which stands behind it",
                       node->name, owner->name);
    if (owner->weights_of)
        return lk_fail(LK_E_ARGUMENT,
                       "'%s' has itself the weights of '%s': '%s' can have them of that one",
                       owner->name, owner->weights_of->name, node->name);
    for (int i = 0; i < node->graph->count; i++)
        if (node->graph->nodes[i]->weights_of == node)
            return lk_fail(LK_E_ARGUMENT,
                           "'%s' has the weights of '%s', which cannot have those of '%s' then",
                           node->graph->nodes[i]->name, node->name, owner->name);
    return LK_OK;
}

/* Options leave parameters out, so those of one number and shape may still be others. */
static enum lk_status check_parameter(const struct lk_node *node, const struct lk_node *owner,
                                      int i)
{
    const struct lk_param_spec *a = &node->shapes.param[i], *b = &owner->shapes.param[i];
    char of_a[96], of_b[96];
    if (strcmp(a->name, b->name) != 0)
        return lk_fail(LK_E_SHAPE,
                       "'%s' has '%s' where '%s' has '%s'; to be shared they must be the same",
                       node->name, a->name, owner->name, b->name);
    if (a->is_tracked)
        return lk_fail(LK_E_UNSUPPORTED,
                       "'%s' has moving averages ('%s'), which are not shared", owner->name,
                       a->name);
    if (lk_shape_equal(&a->shape, &b->shape))
        return LK_OK;
    lk_shape_print(&a->shape, of_a, sizeof of_a);
    lk_shape_print(&b->shape, of_b, sizeof of_b);
    return lk_fail(LK_E_SHAPE,
                   "'%s.%s' is %s, '%s.%s' is %s; to be shared they must be the same",
                   node->name, a->name, of_a, owner->name, b->name, of_b);
}

static enum lk_status check_parameters(const struct lk_node *node, const struct lk_node *owner)
{
    const struct lk_op_shapes *a = &node->shapes, *b = &owner->shapes;
    if (b->params == 0)
        return lk_fail(LK_E_ARGUMENT, "'%s' has no weights that could be shared", owner->name);
    if (a->params != b->params)
        return lk_fail(LK_E_SHAPE, "'%s' has %d parameters, '%s' has %d; the same is expected",
                       node->name, a->params, owner->name, b->params);
    for (int i = 0; i < a->params; i++)
        LK_TRY(check_parameter(node, owner, i));
    return LK_OK;
}

enum lk_status lk_node_share_weights(struct lk_node *node, struct lk_node *owner)
{
    LK_TRY(check_nodes(node, owner));
    LK_TRY(check_parameters(node, owner));
    node->weights_of = owner;
    return LK_OK;
}
