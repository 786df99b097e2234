/* The graph of a model as TensorBoard draws it: what the model's text names, without losses. */
#include "graph/nodes/node.h"
#include "io/records/event_write.h"
#include "train/callbacks/tensorboard.h"
#include <ctype.h>
#include <string.h>

enum { NAME = 80, OPTIONS = 1024 };

/* The name with what TensorBoard takes in names. */
static void print_name(const struct lk_node *node, char name[NAME])
{
    int used = 0;
    if (!isalnum((unsigned char)*node->name))
        name[used++] = '.';
    for (const char *at = node->name; *at && used < NAME - 1; at++)
        name[used++] = isalnum((unsigned char)*at) || strchr("_./-", *at) ? *at : '_';
    name[used] = '\0';
}

static void add_node(struct lk_summary *graph, const struct lk_node *node)
{
    char name[NAME], read[LK_MOST_INPUTS][NAME], options[OPTIONS] = "";
    const char *inputs[LK_MOST_INPUTS];
    for (int i = 0; i < node->inputs; i++) {
        print_name(node->input_nodes[i], read[i]);
        inputs[i] = read[i];
    }
    print_name(node, name);
    if (node->op && node->op->options &&
        !lk_options_print(node->op->options, node->options, false, options, sizeof options))
        *options = '\0';
    const struct lk_drawn_node drawn = {
        .name = name,
        .kind = node->op ? node->op->name : "input",
        .device = node->device ? node->device : "",
        .options = options,
        .inputs = inputs,
        .input_count = node->inputs,
        .shape = node->shapes.y.dim,
        .rank = node->shapes.y.rank,
    };
    lk_summary_add_node(graph, &drawn);
}

void lk_summary_add_model(struct lk_summary *graph, const struct lk_model *model)
{
    for (int i = 0; i < model->node_count && i < model->graph->count; i++)
        add_node(graph, model->graph->nodes[i]);
}
