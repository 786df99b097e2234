/* Compares how images are prepared with how they were when a model's weights were trained. */
#include "train/evaluation/images.h"

#include "data/stages/normalize.h"

void lk_images_compare(const struct lk_model *model, const struct lk_foreign_weights *weights,
                       const char *whose, const struct lk_pipeline *pipeline)
{
    const char *preset = lk_foreign_images(weights);
    for (int i = 0; preset && i < model->input_count; i++) {
        const struct lk_node *node = model->inputs[i];
        const struct lk_input_range range = {.scale = node->input.scale,
                                             .shift = node->input.shift,
                                             .channels = (int)node->shapes.y.dim[0]};
        if (node->input.dtype == LK_U8)
            lk_normalize_warn(whose, preset, pipeline, &range);
    }
}
