/* What a model wants of images: their size and channels, and how their values are prepared,
 * which weights of others may decide. */
#include "train/evaluation/images.h"

#include "base/fail.h"
#include "base/log.h"
#include "data/stages/normalize.h"
#include "model/foreign/weights.h"

const struct lk_node *lk_model_images(const struct lk_model *model)
{
    for (int i = 0; i < model->input_count; i++)
        if (model->inputs[i]->input.dtype == LK_U8)
            return model->inputs[i];
    return NULL;
}

const struct lk_node *lk_model_tokens(const struct lk_model *model)
{
    for (int i = 0; i < model->input_count; i++)
        if (model->inputs[i]->input.dtype == LK_I32 && model->inputs[i]->input.shape.rank == 1)
            return model->inputs[i];
    return NULL;
}

struct lk_data_options lk_data_wanted(const struct lk_model *model,
                                      const struct lk_pipeline *pipeline)
{
    const struct lk_node *images = lk_model_images(model);
    const struct lk_node *tokens = lk_model_tokens(model);
    const int length = tokens ? (int)tokens->input.shape.dim[0] : 0;
    if (!images)
        return (struct lk_data_options){.length = length, .words = model->vocabulary > 0};
    const struct lk_shape x = images->shapes.y;
    const int *size = pipeline->resize;
    return (struct lk_data_options){.height = size[0] ? size[0] : (int)x.dim[1],
                                    .width = size[0] ? size[1] : (int)x.dim[2],
                                    .channels = (int)x.dim[0],
                                    .decode = pipeline->decodes_full ? "full" : NULL,
                                    .part_height = pipeline->first_crop[0],
                                    .part_width = pipeline->first_crop[1],
                                    .parts_by_chance = pipeline->first_crop_by_chance,
                                    .length = length,
                                    .words = model->vocabulary > 0};
}

enum lk_status lk_model_transform(const struct lk_model *model,
                                  const struct lk_pipeline *pipeline,
                                  struct lk_transform *transform)
{
    const struct lk_node *images = lk_model_images(model);
    const struct lk_shape x = images ? images->shapes.y : (struct lk_shape){3, {1, 1, 1}};
    const int *crop = pipeline->crop;
    if (crop[0] && (x.dim[1] != crop[0] || x.dim[2] != crop[1]))
        return lk_fail(LK_E_ARGUMENT,
                       "the pipeline crops to %dx%d, the model takes images of %lldx%lld",
                       crop[0], crop[1], (long long)x.dim[1], (long long)x.dim[2]);
    return lk_pipeline_transform(pipeline, (int)x.dim[0], transform);
}

void lk_model_warn_of_images(const struct lk_model *model, const struct lk_pipeline *pipeline,
                             const char *whose, const struct lk_foreign_weights *weights)
{
    const struct lk_foreign_images how = lk_foreign_images(weights);
    const struct lk_node *images = lk_model_images(model);
    if (!images)
        return;
    const struct lk_input_range input = {.scale = images->input.scale,
                                         .shift = images->input.shift,
                                         .channels = (int)images->shapes.y.dim[0]};
    if (how.pipeline)
        lk_normalize_warn_unlike(whose, how.pipeline, pipeline, &input);
    else if (how.preset)
        lk_normalize_warn(whose, how.preset, pipeline, &input);
}

/* The values that every image has where no text says anything else. */
static bool has_standard_scale(const struct lk_input *input)
{
    return input->scale == 1.0 / 255 && input->shift == 0;
}

/* A run of ours tells by its pipeline what its images were, the names of a file by a preset. */
static bool adopt(const struct lk_foreign_images *how, int channels,
                  struct lk_pipeline *pipeline)
{
    return how->pipeline ? lk_normalize_adopt_from(how->pipeline, channels, pipeline)
                         : how->preset && lk_normalize_adopt(how->preset, channels, pipeline);
}

static void take_numbers(const struct lk_foreign_images *how, const char *whose,
                         struct lk_pipeline *pipeline, struct lk_pipeline *other)
{
    if (!lk_standardize_adopt_from(how->pipeline, pipeline))
        return;
    if (other)
        (void)lk_standardize_adopt_from(how->pipeline, other);
    lk_log(LK_LOG_INFO, "numbers are standardized as in '%s'", whose);
}

void lk_model_take_images(const struct lk_model *model, const char *whose,
                          const struct lk_foreign_weights *weights,
                          struct lk_pipeline *pipeline, struct lk_pipeline *other)
{
    const struct lk_foreign_images how = lk_foreign_images(weights);
    const struct lk_node *images = lk_model_images(model);
    take_numbers(&how, whose, pipeline, other);
    if (!images || pipeline->values || (other && other->values) ||
        !has_standard_scale(&images->input))
        return;
    const int channels = (int)images->shapes.y.dim[0];
    struct lk_pipeline taken = {0};
    char text[LK_PIPELINE_TEXT];
    if (!adopt(&how, channels, &taken) || !adopt(&how, channels, pipeline) ||
        (other && !adopt(&how, channels, other)))
        return;
    if (!how.pipeline)
        lk_log(LK_LOG_INFO, "images are normalized as the weights expect: %s", how.preset);
    else if (lk_pipeline_print(&taken, text, sizeof text))
        lk_log(LK_LOG_INFO, "images are normalized as in '%s': %s", whose, text);
}
