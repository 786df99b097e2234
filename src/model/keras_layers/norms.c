/* Keras's layers that normalize. */
#include "model/keras/layers.h"

#include "base/fail.h"
#include "base/number.h"
#include <string.h>

struct norm {
    bool center, scale;
    char epsilon[40];
};

static enum lk_status read_norm(const struct lk_keras_draft *draft, double standard,
                                struct norm *norm)
{
    double epsilon;
    LK_TRY(lk_keras_bool(draft, "center", true, &norm->center));
    LK_TRY(lk_keras_bool(draft, "scale", true, &norm->scale));
    LK_TRY(lk_keras_real(draft, "epsilon", standard, &epsilon));
    lk_number_print(epsilon, norm->epsilon, sizeof norm->epsilon);
    return LK_OK;
}

static enum lk_status check_last_axis(const struct lk_keras_draft *draft,
                                      const struct lk_keras_tensor *x)
{
    const int rank = x->node->shapes.y.rank;
    int64_t axis;
    LK_TRY(lk_keras_axis(draft, rank, &axis));
    return axis == rank
               ? LK_OK
               : lk_keras_fail(draft, "'axis' is %lld, expected the last", (long long)axis);
}

/* Where Keras has no gamma or beta ours are 1 and 0. */
static enum lk_status batch_norm(struct lk_keras_draft *draft, int count,
                                 const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    struct norm norm;
    double momentum;
    char text[40];
    const char *options;
    int number = 0;
    (void)count;
    LK_TRY(check_last_axis(draft, x));
    LK_TRY(read_norm(draft, 0.001, &norm));
    LK_TRY(lk_keras_real(draft, "momentum", 0.99, &momentum));
    lk_number_print(momentum, text, sizeof text);
    LK_TRY(lk_keras_text(draft, &options, "momentum=%s epsilon=%s%s%s", text, norm.epsilon,
                         norm.center ? "" : " center=false", norm.scale ? "" : " scale=false"));
    LK_TRY(lk_keras_add(draft, &(struct lk_keras_entry){.op = "batch_norm", .options = options},
                        1, x, made));
    const struct lk_keras_array arrays[] = {
        {.param = "gamma", .word = norm.scale ? "gamma" : NULL, .value = 1},
        {.param = "beta", .word = norm.center ? "beta" : NULL},
        {.param = "moving_mean", .word = "moving_mean"},
        {.param = "moving_variance", .word = "moving_variance"},
    };
    for (int i = 0; i < LK_COUNT(arrays); i++) {
        struct lk_keras_array array = arrays[i];
        array.number = number;
        number += array.word != NULL;
        LK_TRY(lk_keras_pair_array(draft, made, &array));
    }
    return LK_OK;
}

/* gamma and beta of an entry, as far as the layer has them. */
static enum lk_status pair_scale(struct lk_keras_draft *draft, const struct norm *norm,
                                 const struct lk_keras_tensor *made)
{
    if (norm->scale)
        LK_TRY(lk_keras_pair_array(
            draft, made,
            &(struct lk_keras_array){.param = "gamma", .word = "gamma", .number = 0}));
    return norm->center ? lk_keras_pair_array(draft, made,
                                              &(struct lk_keras_array){.param = "beta",
                                                                       .word = "beta",
                                                                       .number = norm->scale})
                        : LK_OK;
}

/* Over the channels, or over all axes of the sample. */
static enum lk_status layer_norm(struct lk_keras_draft *draft, int count,
                                 const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    json_t *axis = json_object_get(draft->layer->config, "axis");
    const int rank = x->node->shapes.y.rank;
    const bool is_all = rank > 1 && json_array_size(axis) == (size_t)rank;
    struct norm norm;
    const char *options;
    (void)count;
    for (int i = 0; is_all && i < rank; i++)
        if (json_integer_value(json_array_get(axis, (size_t)i)) != i + 1)
            return lk_keras_fail(draft, "'axis' is expected to be the last or all in order");
    if (!is_all)
        LK_TRY(check_last_axis(draft, x));
    LK_TRY(read_norm(draft, 0.001, &norm));
    LK_TRY(lk_keras_text(draft, &options, "%sepsilon=%s%s%s", is_all ? "axis=all " : "",
                         norm.epsilon, norm.center ? "" : " center=false",
                         norm.scale ? "" : " scale=false"));
    LK_TRY(lk_keras_add(draft, &(struct lk_keras_entry){.op = "layer_norm", .options = options},
                        1, x, made));
    return pair_scale(draft, &norm, made);
}

static enum lk_status group_norm(struct lk_keras_draft *draft, int count,
                                 const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    struct norm norm;
    const char *options;
    int64_t groups;
    (void)count;
    LK_TRY(check_last_axis(draft, x));
    if (x->image.rank || x->is_joined)
        return lk_keras_fail(draft, "groups of a flattened image's numbers would differ");
    LK_TRY(read_norm(draft, 0.001, &norm));
    LK_TRY(lk_keras_int(draft, "groups", 32, &groups));
    if (groups == -1)
        groups = x->node->shapes.y.dim[0];
    LK_TRY(lk_keras_text(draft, &options, "groups=%lld epsilon=%s%s%s", (long long)groups,
                         norm.epsilon, norm.center ? "" : " center=false",
                         norm.scale ? "" : " scale=false"));
    LK_TRY(lk_keras_add(draft, &(struct lk_keras_entry){.op = "group_norm", .options = options},
                        1, x, made));
    return pair_scale(draft, &norm, made);
}

/* Takes an array from the configuration, if that has it: a number for each channel, or one. */
static enum lk_status take_numbers(struct lk_keras_draft *draft,
                                   const struct lk_keras_tensor *x, const char *key,
                                   struct lk_keras_array *array)
{
    const struct lk_shape *y = &x->node->shapes.y;
    json_t *list = json_object_get(draft->layer->config, key);
    const int64_t channels = y->dim[y->rank == 2 ? 1 : 0];
    if (!list || json_is_null(list))
        return LK_OK;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_number(json_array_get(list, i)))
            return lk_keras_fail(draft, "'%s' has something else than numbers", key);
    if (!json_is_number(list) && (int64_t)json_array_size(list) != channels)
        return lk_keras_fail(draft, "'%s' is expected to have %lld numbers", key,
                             (long long)channels);
    if (!draft->has_arrays)
        return lk_keras_fail(draft, "its numbers are weights here, which a file that has the "
                                    "model alone cannot give");
    array->word = NULL;
    array->value = json_number_value(list);
    array->values = json_is_array(list) ? list : NULL;
    return LK_OK;
}

/* What a batch_norm adds to a variance where the layer there adds nothing. */
#define FIXED_EPSILON 1e-12

/* Adds numbers for each channel that are not trained: a frozen batch_norm. */
static enum lk_status add_fixed(struct lk_keras_draft *draft,
                                const struct lk_keras_array *arrays, int count,
                                const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    char epsilon[40];
    const char *options;
    lk_number_print(FIXED_EPSILON, epsilon, sizeof epsilon);
    LK_TRY(lk_keras_text(draft, &options, "epsilon=%s", epsilon));
    const struct lk_keras_entry entry = {
        .op = "batch_norm", .options = options, .is_frozen = true};
    LK_TRY(lk_keras_add(draft, &entry, 1, x, made));
    for (int i = 0; i < count; i++)
        LK_TRY(lk_keras_pair_array(draft, made, &arrays[i]));
    return LK_OK;
}

/* (x - mean) / max(sqrt(variance), 1e-7), with the numbers of the layer or what adapt() has
 * found. */
static enum lk_status normalization(struct lk_keras_draft *draft, int count,
                                    const struct lk_keras_tensor *x,
                                    struct lk_keras_tensor *made)
{
    struct lk_keras_array arrays[] = {
        {.param = "gamma", .value = 1},
        {.param = "beta"},
        {.param = "moving_mean", .word = "mean", .number = 0},
        {.param = "moving_variance",
         .word = "variance",
         .number = 1,
         .least = 1e-14,
         .epsilon = FIXED_EPSILON},
    };
    bool invert;
    (void)count;
    LK_TRY(check_last_axis(draft, x));
    LK_TRY(lk_keras_bool(draft, "invert", false, &invert));
    if (invert)
        return lk_keras_fail(draft, "'invert' is not supported");
    LK_TRY(take_numbers(draft, x, "mean", &arrays[2]));
    LK_TRY(take_numbers(draft, x, "variance", &arrays[3]));
    return add_fixed(draft, arrays, LK_COUNT(arrays), x, made);
}

/* scale x + offset, with a scale of each channel. */
enum lk_status lk_keras_rescale_channels(struct lk_keras_draft *draft,
                                         const struct lk_keras_tensor *x,
                                         struct lk_keras_tensor *made)
{
    struct lk_keras_array arrays[] = {{.param = "gamma"},
                                      {.param = "beta"},
                                      {.param = "moving_mean"},
                                      {.param = "moving_variance", .value = 1}};
    LK_TRY(take_numbers(draft, x, "scale", &arrays[0]));
    if (json_is_array(json_object_get(draft->layer->config, "offset")))
        LK_TRY(take_numbers(draft, x, "offset", &arrays[1]));
    else
        LK_TRY(lk_keras_real(draft, "offset", 0, &arrays[1].value));
    return add_fixed(draft, arrays, LK_COUNT(arrays), x, made);
}

const struct lk_keras_class lk_keras_norm_classes[] = {
    {"BatchNormalization", batch_norm, 1,
     LK_KERAS_OPTIONS("axis", "momentum", "epsilon", "center", "scale", "renorm_momentum")},
    {"LayerNormalization", layer_norm, 1,
     LK_KERAS_OPTIONS("axis", "epsilon", "center", "scale")},
    {"GroupNormalization", group_norm, 1,
     LK_KERAS_OPTIONS("groups", "axis", "epsilon", "center", "scale")},
    {"Normalization", normalization, 1, LK_KERAS_OPTIONS("axis", "invert", "mean", "variance")},
    {0},
};
