/* The stage normalize: y = (x scale - mean) / deviation of each channel, in the order of
 * channels that a model wants. Presets have the numbers that published weights were trained
 * with. Floor 4. Knows no file of weights. */
#ifndef LK_DATA_STAGES_NORMALIZE_H
#define LK_DATA_STAGES_NORMALIZE_H

#include "data/stages/table.h"

/* Reads the options of normalize. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_normalize_take(const struct lk_stage_values *values,
                                               struct lk_pipeline *pipeline);

/* How an input of images gets its values: y = x scale + shift, x in 0..255. */
struct lk_input_range {
    double scale, shift; /* the input's own, where the pipeline has no normalize */
    int channels;
};

/* Gives a pipeline that normalizes nothing a preset of published weights, or what another
 * pipeline has of it. False, and nothing is changed: an unknown preset, a text that normalizes
 * nothing, numbers for other channels. */
bool lk_normalize_adopt(const char *preset, int channels, struct lk_pipeline *pipeline);
bool lk_normalize_adopt_from(const char *text, int channels, struct lk_pipeline *pipeline);

/* Gives a pipeline that standardizes nothing what another one, `text` or NULL, has of it. */
bool lk_standardize_adopt_from(const char *text, struct lk_pipeline *pipeline);

/* Says as a warning that images reach a model otherwise than its weights want it: `preset` is
 * what the weights were trained with ("torchvision", "keras-tf", "keras-caffe"), `whose` what
 * they are, such as "vgg16.pth". Small differences, such as a mean of one's own data, are none.
 * Returns whether it has warned; never for an unknown preset. */
bool lk_normalize_warn(const char *whose, const char *preset,
                       const struct lk_pipeline *pipeline, const struct lk_input_range *input);

/* The same of weights that were evaluated with a pipeline of ours. */
bool lk_normalize_warn_unlike(const char *whose, const char *theirs,
                              const struct lk_pipeline *pipeline,
                              const struct lk_input_range *input);

#endif
