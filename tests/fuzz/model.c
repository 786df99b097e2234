/* Model text: what is read can be read again to the same graph, whose parts are all sound. */
#include "fuzz.h"
#include <lockstep/model.h>
#include <stdlib.h>

static void keep_quiet(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    (void)level;
    (void)text;
}

static void check_node(struct lk_graph *graph, int index)
{
    const struct lk_node *node = lk_graph_node(graph, index);
    const struct lk_node_info info = lk_node_info(node);
    char options[512];
    lk_node_options(node, options, sizeof options);
    if (lk_graph_find(graph, info.name) != node || info.parameters < 0 ||
        info.trained > info.parameters)
        abort();
    for (int i = 0; i < info.inputs; i++) /* inputs come before their readers */
        for (int j = index; lk_graph_node(graph, j); j++)
            if (lk_node_input(node, i) == lk_graph_node(graph, j))
                abort();
    const struct lk_node *owner =
        info.weights_of ? lk_graph_find(graph, info.weights_of) : NULL;
    if (info.weights_of && (!owner || info.parameters != 0 || lk_node_info(owner).weights_of))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct lk_model *model = NULL;
    bool is_same = false;
    lk_log_set(keep_quiet, NULL);
    if (lk_model_read((const char *)data, bytes, "m.yaml", &model) == LK_OK) {
        for (int i = 0; lk_graph_node(lk_model_graph(model), i) && i < 100; i++)
            check_node(lk_model_graph(model), i);
        struct lk_model *again = NULL;
        const char *text = lk_model_text(model);
        size_t length = 0;
        while (text[length])
            length++;
        if (lk_model_read(text, length, "again.yaml", &again) != LK_OK ||
            lk_model_compare(again, text, &is_same) != LK_OK || !is_same ||
            !lk_model_output(model))
            abort();
        lk_model_destroy(again);
        lk_model_destroy(model);
    }
    lk_error_clear();
    return 0;
}
