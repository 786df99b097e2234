/* Reads normalize, knows the presets of published weights, and compares a pipeline with them.
 */
#include "data/stages/normalize.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/number.h"

#include <lockstep/data.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct preset {
    const char *name;
    double scale;
    const char *mean, *deviation; /* of the channels in the order that the model gets them */
    bool is_for_weights, reverses;
};

/* source: keras/src/applications/imagenet_utils.py, modes "tf" and "caffe";
 * torchvision/transforms/_presets.py, ImageClassification */
static const struct preset presets[] = {
    {.name = "0..1", .scale = 1 / 255.0},
    {.name = "-1..1", .scale = 1 / 255.0, .mean = "0.5", .deviation = "0.5"},
    {.name = "torchvision",
     .scale = 1 / 255.0,
     .mean = "0.485, 0.456, 0.406",
     .deviation = "0.229, 0.224, 0.225",
     .is_for_weights = true},
    {.name = "keras-tf",
     .scale = 1 / 255.0,
     .mean = "0.5",
     .deviation = "0.5",
     .is_for_weights = true},
    {.name = "keras-caffe",
     .scale = 1,
     .mean = "103.939, 116.779, 123.68",
     .is_for_weights = true,
     .reverses = true},
    {0},
};

/* NULL: there is none of this name. */
static const struct preset *find_preset(const char *name)
{
    for (const struct preset *p = presets; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

static const char * or (const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

/* "[0.5, 0.4, 0.3]" or "0.5". */
static enum lk_status read_numbers(const char *name, const char *text,
                                   double numbers[LK_TRANSFORM_CHANNELS], int *count)
{
    const char *at = text + strspn(text, " [");
    *count = 0;
    while (*count < LK_TRANSFORM_CHANNELS && *at && *at != ']') {
        char *end;
        numbers[*count] = lk_number_read(at, &end);
        if (end == at || !(numbers[*count] >= -1e30 && numbers[*count] <= 1e30))
            break;
        ++*count;
        at = end + strspn(end, " ,");
    }
    if (*count > 0 && !at[strspn(at, " ]")])
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "option '%s': '%s' is not a number for each channel", name,
                   text);
}

/* What the options say, each that is missing as the preset has it. */
static enum lk_status take_preset(const struct preset *preset, const struct lk_stage_values *v,
                                  struct lk_pipeline *p)
{
    const bool has_numbers = *v->mean || *v->deviation || v->number != 1 / 255.0;
    if (preset && preset->is_for_weights && (has_numbers || *v->order))
        return lk_fail(
            LK_E_ARGUMENT,
            "'%s' has its own scale, mean, std and order; leave out either it or these",
            preset->name);
    if (*v->order && strcmp(v->order, "rgb") != 0 && strcmp(v->order, "bgr") != 0)
        return lk_fail(LK_E_ARGUMENT, "option 'order': '%s' is none of rgb, bgr", v->order);
    const bool is_whole = preset && preset->mean;
    const char *mean = is_whole ? preset->mean : or (v->mean, "0");
    const char *deviation = is_whole ? or (preset->deviation, "1") : or (v->deviation, "1");
    int means = 0, deviations = 0;
    LK_TRY(read_numbers("mean", mean, p->mean, &means));
    LK_TRY(read_numbers("std", deviation, p->deviation, &deviations));
    p->values = means > deviations ? means : deviations;
    p->scale = preset && preset->is_for_weights ? preset->scale : v->number;
    p->reverses = (preset && preset->reverses) || strcmp(v->order, "bgr") == 0;
    if ((means != p->values && means != 1) || (deviations != p->values && deviations != 1))
        return lk_fail(LK_E_ARGUMENT, "%d values of mean and %d of std", means, deviations);
    for (int i = 1; i < p->values; i++) {
        p->mean[i] = p->mean[means == 1 ? 0 : i];
        p->deviation[i] = p->deviation[deviations == 1 ? 0 : i];
    }
    return LK_OK;
}

enum lk_status lk_normalize_take(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    const struct preset *preset = find_preset(v->to);
    if (*v->to && !preset)
        return lk_fail(LK_E_ARGUMENT,
                       "option 'to': '%s' is none of 0..1, -1..1, torchvision, keras-tf, "
                       "keras-caffe",
                       v->to);
    LK_TRY(take_preset(preset, v, p));
    for (int i = 0; i < p->values; i++)
        if (!(p->deviation[i] > 0))
            return lk_fail(LK_E_ARGUMENT, "option 'std': expected numbers above 0");
    return LK_OK;
}

enum lk_status lk_pipeline_transform(const struct lk_pipeline *p, int channels,
                                     struct lk_transform *transform)
{
    struct lk_transform made = {.flips = p->flip != LK_FLIP_NONE, .channels = channels};
    if (p->colours[0] != LK_COLOUR_NONE && channels != 1 && channels != 3)
        return lk_fail(LK_E_ARGUMENT,
                       "brightness, contrast and saturation are for images of 1 or 3 channels, "
                       "these have %d",
                       channels);
    if (p->values > 1 && p->values != channels)
        return lk_fail(
            LK_E_ARGUMENT,
            "normalize has values for %d channels, images have %d; --set input=[H,W,%d] "
            "reads them with as many",
            p->values, channels, p->values);
    if (p->reverses && channels != 3)
        return lk_fail(LK_E_ARGUMENT,
                       "normalize order=bgr is for images of 3 channels, these have %d",
                       channels);
    for (int i = 0; i < LK_COLOUR_STAGES; i++)
        made.stages[i] = p->colours[i];
    made.normalizes = p->values > 0;
    made.reverses = p->reverses;
    for (int i = 0; i < LK_TRANSFORM_CHANNELS && made.normalizes; i++) {
        const int from = i < p->values ? i : 0;
        made.scale[i] = p->scale / p->deviation[from];
        made.shift[i] = -p->mean[from] / p->deviation[from];
    }
    *transform = made;
    return LK_OK;
}

enum lk_status lk_pipeline_normalization(const char *text, int channels,
                                         struct lk_normalization *normalization)
{
    struct lk_pipeline p;
    struct lk_transform transform = {0};
    LK_TRY(lk_pipeline_parse(text, true, &p));
    LK_TRY(lk_pipeline_transform(&p, channels, &transform));
    struct lk_normalization made = {.normalizes = transform.normalizes,
                                    .is_reversed = transform.reverses};
    for (int i = 0; i < LK_TRANSFORM_CHANNELS; i++) {
        made.scale[i] = transform.scale[i];
        made.shift[i] = transform.shift[i] + 0.0; /* not -0 */
    }
    *normalization = made;
    return LK_OK;
}

static bool adopt(const struct lk_pipeline *from, int channels, struct lk_pipeline *pipeline)
{
    struct lk_transform transform;
    struct lk_pipeline made = *pipeline;
    made.values = from->values;
    made.scale = from->scale;
    made.reverses = from->reverses;
    memcpy(made.mean, from->mean, sizeof made.mean);
    memcpy(made.deviation, from->deviation, sizeof made.deviation);
    if (from->values == 0 || lk_pipeline_transform(&made, channels, &transform) != LK_OK) {
        lk_error_clear();
        return false;
    }
    *pipeline = made;
    return true;
}

bool lk_normalize_adopt(const char *preset, int channels, struct lk_pipeline *pipeline)
{
    const struct preset *known = find_preset(preset);
    const struct lk_stage_values values = {.number = 1 / 255.0};
    struct lk_pipeline wanted = {0};
    if (known && known->is_for_weights && take_preset(known, &values, &wanted) == LK_OK)
        return adopt(&wanted, channels, pipeline);
    lk_error_clear();
    return false;
}

bool lk_normalize_adopt_from(const char *text, int channels, struct lk_pipeline *pipeline)
{
    struct lk_pipeline from = {0};
    if (lk_pipeline_parse(text, false, &from) == LK_OK)
        return adopt(&from, channels, pipeline);
    lk_error_clear();
    return false;
}

bool lk_standardize_adopt_from(const char *text, struct lk_pipeline *pipeline)
{
    struct lk_pipeline from = {0};
    const bool has = text && lk_pipeline_parse(text, false, &from) == LK_OK &&
                     from.standardizes && !pipeline->standardizes;
    lk_error_clear();
    if (!has)
        return false;
    pipeline->standardizes = true;
    memcpy(pipeline->standardize, from.standardize, sizeof pipeline->standardize);
    return true;
}

/* The lowest and the highest value that images have, of all channels. */
static void find_range(const struct lk_transform *transform, int channels, double range[2])
{
    range[0] = INFINITY;
    range[1] = -INFINITY;
    for (int i = 0; i < channels && i < LK_TRANSFORM_CHANNELS; i++) {
        const double ends[] = {transform->shift[i],
                               255 * transform->scale[i] + transform->shift[i]};
        range[0] = fmin(range[0], fmin(ends[0], ends[1])) + 0.0; /* not -0 */
        range[1] = fmax(range[1], fmax(ends[0], ends[1]));
    }
}

/* By the width of the range or by its middle. */
static bool differ(const double a[2], const double b[2])
{
    const double ratio = (a[1] - a[0]) / (b[1] - b[0]);
    const double off = fabs(a[0] + a[1] - b[0] - b[1]) / 2;
    return !(ratio > 1 / 1.5 && ratio < 1.5) || off > (b[1] - b[0]) / 4;
}

/* What a pipeline makes of images of 3 channels, with the input's own where it has nothing. */
static bool find_transform(const struct lk_pipeline *pipeline,
                           const struct lk_input_range *input, struct lk_transform *transform)
{
    if (input->channels != 3 || lk_pipeline_transform(pipeline, 3, transform) != LK_OK)
        return false;
    for (int i = 0; i < LK_TRANSFORM_CHANNELS && !transform->normalizes; i++) {
        transform->scale[i] = input->scale;
        transform->shift[i] = input->shift;
    }
    return true;
}

/* `how` is what prepares images as the weights want them. */
static bool warn(const char *whose, const char *how, const struct lk_transform *there,
                 const struct lk_transform *here)
{
    double is[2], wants[2];
    find_range(here, 3, is);
    find_range(there, 3, wants);
    if (here->reverses == there->reverses && !differ(is, wants))
        return false;
    lk_log(LK_LOG_WARNING,
           "weights such as those of '%s' are trained on images with values %.4g to %.4g, %s "
           "first; here they are %.4g to %.4g, %s first; %s prepares them so",
           whose, wants[0], wants[1], there->reverses ? "blue" : "red", is[0], is[1],
           here->reverses ? "blue" : "red", how);
    return true;
}

bool lk_normalize_warn(const char *whose, const char *preset,
                       const struct lk_pipeline *pipeline, const struct lk_input_range *input)
{
    const struct preset *known = find_preset(preset);
    const struct lk_stage_values values = {.number = 1 / 255.0};
    struct lk_pipeline wanted = {0};
    struct lk_transform here = {0}, there = {0};
    char how[96];
    if (!known || !known->is_for_weights || take_preset(known, &values, &wanted) != LK_OK ||
        !find_transform(&wanted, input, &there) || !find_transform(pipeline, input, &here))
        return false;
    snprintf(how, sizeof how, "--augment 'normalize=%s', or this stage of the pipeline,",
             preset);
    return warn(whose, how, &there, &here);
}

bool lk_normalize_warn_unlike(const char *whose, const char *theirs,
                              const struct lk_pipeline *pipeline,
                              const struct lk_input_range *input)
{
    struct lk_pipeline wanted = {0};
    struct lk_transform here = {0}, there = {0};
    char how[320];
    if (lk_pipeline_parse(theirs, false, &wanted) != LK_OK) {
        lk_error_clear();
        return false;
    }
    if (!find_transform(&wanted, input, &there) || !find_transform(pipeline, input, &here))
        return false;
    snprintf(how, sizeof how, "what their pipeline '%.200s' has of it", theirs);
    return warn(whose, how, &there, &here);
}
