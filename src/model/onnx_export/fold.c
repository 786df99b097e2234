/* Folds batch norms into the convolutions before them: with moving averages a norm is a factor
 * and a number to add for each channel, which weights and bias can have. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include <math.h>
#include <string.h>

static bool is_output(const struct lk_onnx_export *e, const struct lk_node *node)
{
    const struct lk_model *model = e->stored.model;
    for (int i = 0; i < model->output_count; i++)
        if (model->outputs[i].node == node)
            return true;
    return false;
}

const struct lk_node *lk_onnx_find_norm(const struct lk_onnx_export *e,
                                        const struct lk_node *node)
{
    const struct lk_graph *graph = e->stored.model->graph;
    const struct lk_node *reader = NULL;
    if (!e->folds || !node->op || strcmp(node->op->name, "conv2d") != 0 || node->weights_of ||
        is_output(e, node) ||
        !lk_option_is(node->op->options, node->options, "activation", "none"))
        return NULL;
    for (int i = 0; i < graph->count; i++)
        for (int j = 0; j < graph->nodes[i]->inputs; j++)
            if (graph->nodes[i]->input_nodes[j] == node) {
                if (reader)
                    return NULL;
                reader = graph->nodes[i];
            }
    return reader && strcmp(reader->op->name, "batch_norm") == 0 ? reader : NULL;
}

/* y = (x - mean) factor + beta, factor = gamma / sqrt(variance + epsilon). */
enum lk_status lk_onnx_take_norm(struct lk_onnx_export *e)
{
    const int64_t channels = e->node->shapes.y.dim[0];
    const double epsilon = lk_onnx_option_real(e, "epsilon");
    const float *gamma, *beta, *mean, *variance;
    LK_TRY(lk_onnx_take_param(e, "gamma", &gamma));
    LK_TRY(lk_onnx_take_param(e, "beta", &beta));
    LK_TRY(lk_onnx_take_param(e, "moving_mean", &mean));
    LK_TRY(lk_onnx_take_param(e, "moving_variance", &variance));
    LK_TRY(lk_onnx_take(e, (size_t)channels, sizeof *e->factors, &e->factors));
    LK_TRY(lk_onnx_take(e, (size_t)channels, sizeof *e->shifts, &e->shifts));
    for (int64_t c = 0; c < channels; c++) {
        e->factors[c] = (gamma ? gamma[c] : 1.0) / sqrt(variance[c] + epsilon);
        e->shifts[c] = (beta ? beta[c] : 0.0) - mean[c] * e->factors[c];
    }
    return LK_OK;
}

enum lk_status lk_onnx_emit_folded_bias(struct lk_onnx_export *e, const char **name)
{
    const int64_t channels = e->node->shapes.y.dim[0];
    const float *bias;
    float *made;
    LK_TRY(lk_onnx_take_param(e, "bias", &bias));
    LK_TRY(lk_onnx_take(e, (size_t)channels, sizeof *made, &made));
    for (int64_t c = 0; c < channels; c++)
        made[c] = (float)((bias ? bias[c] : 0.0) * e->factors[c] + e->shifts[c]);
    return lk_onnx_emit_floats(e, "folded_bias", 1, &channels, made, name);
}
