/* Keras's layers that are not of images alone: dense, shapes, joining, functions of one number;
 * and finding a layer's class. */
#include "model/keras/layers.h"

#include "base/fail.h"
#include "base/number.h"
#include <math.h>
#include <string.h>

/* An image whose numbers lie the same way channels first and channels last. */
static bool lies_as_in_keras(const struct lk_shape *shape)
{
    return shape->rank != 3 || shape->dim[0] == 1 || shape->dim[1] * shape->dim[2] == 1;
}

static bool has_order(const struct lk_keras_tensor *x)
{
    return x->image.rank != 0 || x->is_joined;
}

static bool same_order(const struct lk_keras_tensor *a, const struct lk_keras_tensor *b)
{
    return a->image.rank == b->image.rank && !a->is_joined && !b->is_joined &&
           (a->image.rank == 0 || lk_shape_equal(&a->image, &b->image));
}

/* --- dense ------------------------------------------------------------------------------- */

enum lk_status lk_keras_pair_kernel(struct lk_keras_draft *draft,
                                    const struct lk_keras_tensor *weighted, const char *word,
                                    int first, bool bias)
{
    LK_TRY(lk_keras_pair_array(
        draft, weighted,
        &(struct lk_keras_array){.param = "weight", .word = word, .number = first}));
    return bias ? lk_keras_pair_array(draft, weighted,
                                      &(struct lk_keras_array){
                                          .param = "bias", .word = "bias", .number = first + 1})
                : LK_OK;
}

/* On an image Keras's layer is a convolution of 1x1. */
static enum lk_status dense(struct lk_keras_draft *draft, int count,
                            const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    int64_t units;
    bool bias;
    const char *options;
    struct lk_keras_tensor weighted;
    const bool is_image = x->node->shapes.y.rank == 3;
    (void)count;
    LK_TRY(lk_keras_int(draft, "units", 0, &units));
    LK_TRY(lk_keras_bool(draft, "use_bias", true, &bias));
    LK_TRY(lk_keras_text(draft, &options, "%s=%lld%s%s", is_image ? "filters" : "units",
                         (long long)units, is_image ? " kernel=1" : "",
                         bias ? "" : " bias=false"));
    const struct lk_keras_tensor plain = {
        .node = x->node, .name = x->name, .masked_by = x->masked_by};
    const struct lk_keras_entry entry = {.op = is_image ? "conv2d" : "dense",
                                         .options = options};
    LK_TRY(lk_keras_add_activated(draft, &entry, &plain, &weighted, made));
    return lk_keras_pair_kernel(draft, &weighted, "kernel", 0, bias);
}

/* --- shapes ------------------------------------------------------------------------------ */

static enum lk_status flatten(struct lk_keras_draft *draft, int count,
                              const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    const struct lk_shape *from = &x->node->shapes.y;
    (void)count;
    *made = *x;
    if (from->rank == 1)
        return LK_OK;
    LK_TRY(lk_keras_add(draft, &(struct lk_keras_entry){.op = "flatten", .options = ""}, 1, x,
                        made));
    if (!lies_as_in_keras(from))
        made->image = *from;
    return LK_OK;
}

/* The shape that the layer asks for, as our graph has it. */
static enum lk_status read_target(const struct lk_keras_draft *draft, int64_t elements,
                                  struct lk_shape *to)
{
    json_t *list = json_object_get(draft->layer->config, "target_shape");
    const size_t axes = json_array_size(list);
    int64_t dim[3] = {1, 1, 1}, given = 1;
    int open = -1;
    if (axes < 1 || axes > 3)
        return lk_keras_fail(draft, "'target_shape' has %zu axes, expected 1 to 3", axes);
    for (int i = 0; i < (int)axes; i++) {
        const int64_t length = json_integer_value(json_array_get(list, (size_t)i));
        if (length < -1 || length == 0 || length > 1 << 24 || (length == -1 && open >= 0))
            return lk_keras_fail(draft, "'target_shape' is no list of lengths");
        open = length == -1 ? i : open;
        dim[i] = length == -1 ? 1 : length;
        given = given > elements ? given : given * dim[i];
    }
    if (open >= 0)
        dim[open] = elements / given;
    *to = axes == 3 ? (struct lk_shape){3, {dim[2], dim[0], dim[1]}}
                    : (struct lk_shape){(int)axes, {dim[0], dim[1]}};
    return LK_OK;
}

/* Whether all that is between a dense layer, or a vector that lies as an image does, and `x` is
 * read by nobody else: then the dense layer's units can be put into the order of the image. */
static bool can_be_reordered(const struct lk_graph *graph, const struct lk_node *x)
{
    for (; x->op && x->shapes.y.rank == 1; x = x->input_nodes[0]) {
        int readers = 0;
        for (int i = x->index + 1; i < graph->count; i++)
            for (int j = 0; j < graph->nodes[i]->inputs; j++)
                readers += graph->nodes[i]->input_nodes[j] == x;
        if (readers > 1)
            return false;
        if (strcmp(x->op->name, "dense") == 0)
            return true;
        if (x->inputs != 1 || !lk_shape_equal(&x->shapes.y, &x->input_nodes[0]->shapes.y) ||
            strcmp(x->op->name, "group_norm") == 0)
            return false;
    }
    return false;
}

static enum lk_status reshape(struct lk_keras_draft *draft, int count,
                              const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    const struct lk_shape *from = &x->node->shapes.y;
    struct lk_shape to;
    const char *options;
    char shape[64];
    (void)count;
    LK_TRY(read_target(draft, lk_shape_count(from), &to));
    lk_shape_print(&to, shape, sizeof shape);
    LK_TRY(lk_keras_text(draft, &options, "shape=%s", shape));
    const bool makes_image = !lies_as_in_keras(&to), reads_image = !lies_as_in_keras(from);
    const bool keeps = from->rank == 3 && lk_shape_equal(from, &to);
    if (reads_image && !keeps && to.rank != 1)
        return lk_keras_fail(draft, "an image's numbers would change their order");
    if (x->is_joined || (x->image.rank && to.rank != 1 && !lk_shape_equal(&x->image, &to)))
        return lk_keras_fail(draft, "it reads a flattened image, whose numbers would change "
                                    "their order");
    const struct lk_node *reads = x->node;
    LK_TRY(lk_keras_add(draft, &(struct lk_keras_entry){.op = "reshape", .options = options}, 1,
                        x, made));
    if (reads_image && to.rank == 1)
        made->image = *from;
    else if (to.rank != 1)
        made->image = (struct lk_shape){0};
    if (makes_image && !reads_image && !x->image.rank && !can_be_reordered(draft->graph, reads))
        return lk_keras_fail(draft, "it makes an image of a vector that no dense layer alone "
                                    "makes; the order of its numbers differs from Keras's");
    return LK_OK;
}

/* --- joining ----------------------------------------------------------------------------- */

/* Adds or multiplies inputs; more than our operations take are joined in turn. */
static enum lk_status fold(struct lk_keras_draft *draft, const char *op, const char *options,
                           int most, int count, const struct lk_keras_tensor *x,
                           struct lk_keras_tensor *made)
{
    struct lk_keras_tensor some[LK_MOST_INPUTS] = {x[0]};
    int done = 1;
    do {
        int taken = 1;
        while (taken < most && done < count)
            some[taken++] = x[done++];
        const struct lk_keras_entry entry = {
            .op = op, .options = options, .suffix = done < count ? "_part" : NULL};
        LK_TRY(lk_keras_add(draft, &entry, taken, some, made));
        some[0] = *made;
    } while (done < count);
    return LK_OK;
}

/* The inputs must lie in one order, as they are taken number by number. */
static enum lk_status combine(struct lk_keras_draft *draft, const char *op, int most, int count,
                              const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    if (count < 2 || !isnan(draft->number))
        return lk_keras_fail(draft, "it joins at least two inputs, found %d", count);
    for (int i = 0; i < count; i++) {
        if (!same_order(&x[0], &x[i]))
            return lk_keras_fail(draft, "it joins a flattened image with numbers that lie in "
                                        "another order");
        if (x[0].node->shapes.y.rank == 3 && x[i].node->shapes.y.rank != 3)
            return lk_keras_fail(draft, "it joins an image with a vector");
    }
    return fold(draft, op, "", most, count, x, made);
}

/* A tensor and a number, as Keras 3 writes x + 3 or 0.5 x: scale x + shift. */
static enum lk_status with_a_number(struct lk_keras_draft *draft, double scale, double shift,
                                    const struct lk_keras_tensor *x,
                                    struct lk_keras_tensor *made)
{
    char first[40], second[40];
    const char *options;
    lk_number_print(scale, first, sizeof first);
    lk_number_print(shift, second, sizeof second);
    LK_TRY(lk_keras_text(draft, &options, "scale=%s shift=%s", first, second));
    return lk_keras_add(draft, &(struct lk_keras_entry){.op = "rescale", .options = options}, 1,
                        x, made);
}

static enum lk_status add(struct lk_keras_draft *draft, int count,
                          const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    if (count == 1 && !isnan(draft->number))
        return with_a_number(draft, 1, draft->number, x, made);
    return combine(draft, "add", LK_MOST_INPUTS, count, x, made);
}

static enum lk_status multiply(struct lk_keras_draft *draft, int count,
                               const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    if (count == 1 && !isnan(draft->number))
        return with_a_number(draft, draft->number, 0, x, made);
    return combine(draft, "multiply", 2, count, x, made);
}

/* Two inputs, or one and a number. */
static enum lk_status subtract(struct lk_keras_draft *draft, int count,
                               const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    struct lk_keras_tensor both[2] = {x[0]};
    if (count == 1 && !isnan(draft->number))
        return draft->begins_with_number ? with_a_number(draft, -1, draft->number, x, made)
                                         : with_a_number(draft, 1, -draft->number, x, made);
    if (count != 2)
        return lk_keras_fail(draft, "it takes one input from another, found %d", count);
    const struct lk_keras_entry negative = {
        .op = "rescale", .options = "scale=-1", .suffix = "_negative"};
    LK_TRY(lk_keras_add(draft, &negative, 1, &x[1], &both[1]));
    return combine(draft, "add", 2, 2, both, made);
}

static enum lk_status divide(struct lk_keras_draft *draft, int count,
                             const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    if (count != 1 || isnan(draft->number) || draft->begins_with_number || draft->number == 0)
        return lk_keras_fail(draft, "it divides by something else than a number");
    return with_a_number(draft, 1 / draft->number, 0, x, made);
}

static enum lk_status concatenate(struct lk_keras_draft *draft, int count,
                                  const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    static const char *const axes[3][3] = {{"c"}, {"t", "c"}, {"h", "w", "c"}};
    const int rank = x[0].node->shapes.y.rank;
    const char *options;
    bool is_joined = false;
    int64_t axis;
    if (count < 2 || rank < 1 || rank > 3)
        return lk_keras_fail(draft, "it joins at least two inputs, found %d", count);
    LK_TRY(lk_keras_axis(draft, rank, &axis));
    for (int i = 0; i < count; i++)
        is_joined |= has_order(&x[i]);
    LK_TRY(lk_keras_text(draft, &options, "axis=%s", axes[rank - 1][axis - 1]));
    LK_TRY(fold(draft, "concat", options, LK_MOST_INPUTS, count, x, made));
    made->image = (struct lk_shape){0};
    made->is_joined = is_joined;
    return LK_OK;
}

/* --- functions of one number ------------------------------------------------------------- */

static enum lk_status simple(struct lk_keras_draft *draft, const char *op, const char *options,
                             const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    return lk_keras_add(draft, &(struct lk_keras_entry){.op = op, .options = options}, 1, x,
                        made);
}

static enum lk_status with_number(struct lk_keras_draft *draft, const char *op,
                                  const char *option, double number,
                                  const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    char text[40];
    const char *options;
    lk_number_print(number, text, sizeof text);
    LK_TRY(lk_keras_text(draft, &options, "%s=%s", option, text));
    return simple(draft, op, options, x, made);
}

static enum lk_status activation(struct lk_keras_draft *draft, int count,
                                 const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    const char *op, *options;
    (void)count;
    LK_TRY(lk_keras_activation(draft, "activation", &op, &options));
    *made = *x;
    return *op ? simple(draft, op, options, x, made) : LK_OK;
}

static enum lk_status relu(struct lk_keras_draft *draft, int count,
                           const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    double most, slope, threshold;
    char first[40], second[40];
    const char *options;
    (void)count;
    LK_TRY(lk_keras_real(draft, "max_value", -1, &most));
    LK_TRY(lk_keras_real(draft, "negative_slope", 0, &slope));
    LK_TRY(lk_keras_real(draft, "threshold", 0, &threshold));
    if (threshold != 0)
        return lk_keras_fail(draft, "'threshold' is %g, only 0 is supported", threshold);
    if (most < 0 && slope != 0)
        return with_number(draft, "leaky_relu", "alpha", slope, x, made);
    if (most < 0 || (most == 6 && slope == 0))
        return simple(draft, most == 6 ? "relu6" : "relu", "", x, made);
    lk_number_print(slope, first, sizeof first);
    lk_number_print(most, second, sizeof second);
    LK_TRY(lk_keras_text(draft, &options, "slope=%s max=%s", first, second));
    return simple(draft, "clipped_relu", options, x, made);
}

static enum lk_status leaky_relu(struct lk_keras_draft *draft, int count,
                                 const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    double slope;
    (void)count;
    LK_TRY(lk_keras_real(draft, "alpha", 0.3, &slope));
    LK_TRY(lk_keras_real(draft, "negative_slope", slope, &slope));
    return with_number(draft, "leaky_relu", "alpha", slope, x, made);
}

static enum lk_status elu(struct lk_keras_draft *draft, int count,
                          const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    double alpha;
    (void)count;
    LK_TRY(lk_keras_real(draft, "alpha", 1, &alpha));
    return with_number(draft, "elu", "alpha", alpha, x, made);
}

static enum lk_status softmax(struct lk_keras_draft *draft, int count,
                              const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    int64_t axis;
    (void)count;
    LK_TRY(lk_keras_axis(draft, x->node->shapes.y.rank, &axis));
    if (axis != x->node->shapes.y.rank)
        return lk_keras_fail(draft, "'axis' is %lld, expected the last", (long long)axis);
    return simple(draft, "softmax", "", x, made);
}

/* One slope for a channel where rows and columns share them, else one for each number. */
static enum lk_status prelu(struct lk_keras_draft *draft, int count,
                            const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    json_t *shared = json_object_get(draft->layer->config, "shared_axes");
    const size_t axes = json_array_size(shared);
    const bool by_channel = x->node->shapes.y.rank == 3 && axes == 2 &&
                            json_integer_value(json_array_get(shared, 0)) == 1 &&
                            json_integer_value(json_array_get(shared, 1)) == 2;
    const bool is_image = x->node->shapes.y.rank == 3;
    (void)count;
    if ((axes > 0 && !by_channel) || (axes == 0 && is_image))
        return lk_keras_fail(draft, "'shared_axes' is expected to be [1, 2] for images, none "
                                    "for vectors");
    LK_TRY(simple(draft, "prelu", by_channel ? "slopes=channels" : "slopes=elements", x, made));
    return lk_keras_pair_array(
        draft, made, &(struct lk_keras_array){.param = "slope", .word = "alpha", .number = 0});
}

/* What 'noise_shape' has dropped together, [batch, 1, 1, channels]: an axis of length 1 as a
 * whole, others each by itself. */
static enum lk_status find_per(struct lk_keras_draft *draft, const struct lk_shape *y,
                               const char **per)
{
    json_t *noise = json_object_get(draft->layer->config, "noise_shape");
    const size_t rank = (size_t)y->rank;
    const int64_t axes[3][3] = {
        {y->dim[0]}, {y->dim[0], y->dim[1]}, {y->dim[1], y->dim[2], y->dim[0]}};
    bool is_whole[4] = {false};
    *per = "";
    if (!noise || json_is_null(noise))
        return LK_OK;
    bool is_known = rank >= 1 && rank <= 3 && json_array_size(noise) == rank + 1 &&
                    json_is_null(json_array_get(noise, 0));
    for (size_t i = 1; i <= rank && is_known; i++) {
        json_t *axis = json_array_get(noise, i);
        is_whole[i] = json_is_integer(axis) && json_integer_value(axis) == 1;
        is_known = is_whole[i] || json_is_null(axis) ||
                   (json_is_integer(axis) && json_integer_value(axis) == axes[rank - 1][i - 1]);
        is_known &= i < 2 || i == rank || is_whole[i] == is_whole[i - 1];
    }
    if (!is_known || (rank > 1 && is_whole[rank] && !is_whole[1]))
        return lk_keras_fail(draft, "'noise_shape' is expected to drop each number by itself, "
                                    "whole channels or whole samples");
    if (is_whole[1])
        *per = is_whole[rank] ? " per=sample" : " per=channel";
    return LK_OK;
}

/* per: what is dropped together, as an option behind others; "": nothing. */
static enum lk_status add_dropout(struct lk_keras_draft *draft, const char *per,
                                  const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    const char *options;
    double rate;
    char text[40];
    LK_TRY(lk_keras_real(draft, "rate", 0.5, &rate));
    lk_number_print(rate, text, sizeof text);
    LK_TRY(lk_keras_text(draft, &options, "rate=%s%s", text, per));
    return simple(draft, "dropout", options, x, made);
}

static enum lk_status dropout(struct lk_keras_draft *draft, int count,
                              const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    const char *per;
    (void)count;
    LK_TRY(find_per(draft, &x->node->shapes.y, &per));
    if (*per && has_order(x))
        return lk_keras_fail(draft, "it drops parts of a flattened image");
    return add_dropout(draft, per, x, made);
}

/* Whole channels of an image, or of a sequence. */
static enum lk_status spatial_dropout(struct lk_keras_draft *draft, int count,
                                      const struct lk_keras_tensor *x,
                                      struct lk_keras_tensor *made)
{
    const int rank = strstr(draft->layer->class, "2D") ? 3 : 2;
    (void)count;
    if (x->node->shapes.y.rank != rank)
        return lk_keras_fail(draft, rank == 3 ? "it drops channels of images"
                                              : "it drops channels of sequences");
    return add_dropout(draft, " per=channel", x, made);
}

static enum lk_status rescaling(struct lk_keras_draft *draft, int count,
                                const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    double scale, offset;
    (void)count;
    if (json_is_array(json_object_get(draft->layer->config, "scale")))
        return lk_keras_rescale_channels(draft, x, made);
    LK_TRY(lk_keras_real(draft, "scale", 1, &scale));
    LK_TRY(lk_keras_real(draft, "offset", 0, &offset));
    return with_a_number(draft, scale, offset, x, made);
}

const struct lk_keras_class lk_keras_classes[] = {
    {"Dense", dense, 1, LK_KERAS_OPTIONS("units", "use_bias", "activation")},
    {"Flatten", flatten, 1, LK_KERAS_OPTIONS(NULL)},
    {"Reshape", reshape, 1, LK_KERAS_OPTIONS("target_shape")},
    {"Add", add, LK_KERAS_MOST_INPUTS, LK_KERAS_OPTIONS(NULL)},
    {"Subtract", subtract, 2, LK_KERAS_OPTIONS(NULL)},
    {"Multiply", multiply, LK_KERAS_MOST_INPUTS, LK_KERAS_OPTIONS(NULL)},
    {"TrueDivide", divide, 2, LK_KERAS_OPTIONS(NULL)},
    {"Divide", divide, 2, LK_KERAS_OPTIONS(NULL)},
    {"Concatenate", concatenate, LK_KERAS_MOST_INPUTS, LK_KERAS_OPTIONS("axis")},
    {"Activation", activation, 1, LK_KERAS_OPTIONS("activation")},
    {"ReLU", relu, 1, LK_KERAS_OPTIONS("max_value", "negative_slope", "threshold")},
    {"LeakyReLU", leaky_relu, 1, LK_KERAS_OPTIONS("alpha", "negative_slope")},
    {"ELU", elu, 1, LK_KERAS_OPTIONS("alpha")},
    {"PReLU", prelu, 1, LK_KERAS_OPTIONS("shared_axes")},
    {"Softmax", softmax, 1, LK_KERAS_OPTIONS("axis")},
    {"Dropout", dropout, 1, LK_KERAS_OPTIONS("rate", "seed", "noise_shape")},
    {"SpatialDropout1D", spatial_dropout, 1, LK_KERAS_OPTIONS("rate", "seed")},
    {"SpatialDropout2D", spatial_dropout, 1, LK_KERAS_OPTIONS("rate", "seed")},
    {"Rescaling", rescaling, 1, LK_KERAS_OPTIONS("scale", "offset")},
    {0},
};

/* --- finding a class --------------------------------------------------------------------- */

static const struct lk_keras_class *find_class(const char *name)
{
    static const struct lk_keras_class *const tables[] = {
        lk_keras_image_classes, lk_keras_classes, lk_keras_norm_classes, lk_keras_text_classes};
    for (int t = 0; t < LK_COUNT(tables); t++)
        for (const struct lk_keras_class *row = tables[t]; row->name; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

enum lk_status lk_keras_call(struct lk_keras_draft *draft, int count,
                             const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    const struct lk_keras_class *class = find_class(draft->layer->class);
    if (!class)
        return lk_keras_fail(draft, "layers of class '%.60s' are not supported",
                             draft->layer->class);
    if (count < 1 || count > class->most_inputs)
        return lk_keras_fail(draft, "it reads %d inputs, at most %d are expected", count,
                             class->most_inputs);
    LK_TRY(lk_keras_check_known(draft, class->options));
    return class->convert(draft, count, x, made);
}
