/* Reads the inputs of a model text: names, types, shapes, and what is done to their numbers. */
#include "base/fail.h"
#include "model/text/reading.h"
#include <string.h>

struct input_options {
    int64_t shape[LK_MOST_AXES];
    int type;
    double scale, shift;
    bool length; /* how many time steps are valid comes with each sample */
};

enum { TYPE_BY_SHAPE, TYPE_UINT8, TYPE_FLOAT32, TYPE_INT32 };
static const char *const types[] = {"by shape", "uint8", "float32", "int32", NULL};

#define REAL(name_, standard_)                                                                 \
    {                                                                                          \
        .name = #name_, .kind = LK_OPTION_REAL,                                                \
        .offset = offsetof(struct input_options, name_), .min = -1e30, .max = 1e30,            \
        .standard = (standard_)                                                                \
    }

static const struct lk_option input_table[] = {
    {.name = "type",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct input_options, type),
     .standard = "by shape",
     .choices = types},
    REAL(scale, "0"), /* 0: the type's own */
    REAL(shift, "0"),
    {.name = "length",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct input_options, length),
     .standard = "false"},
    {0},
};

static enum lk_status read_shape(const struct lk_reading *reading, const struct lk_yaml *value,
                                 struct lk_shape *shape)
{
    char text[256];
    if (value->kind != LK_YAML_LIST || value->count > LK_MOST_AXES)
        return lk_yaml_fail(value,
                            "a shape, [height, width, channels] of an image or up to %d other "
                            "lengths, expected, found %s of %d",
                            LK_MOST_AXES, lk_yaml_found(value, text, sizeof text),
                            value->count);
    const struct lk_option row = {.name = "shape",
                                  .kind = LK_OPTION_INT,
                                  .count = value->count,
                                  .min = 1,
                                  .max = 1 << 24};
    const struct lk_option table[] = {row, {0}};
    shape->rank = value->count;
    if (value->count == 0)
        return LK_OK;
    LK_TRY(lk_layer_value(reading, value, text, sizeof text));
    return lk_yaml_at(value, lk_option_set(table, shape->dim, "shape", text));
}

static enum lk_status read_options(const struct lk_reading *reading,
                                   const struct lk_yaml *value, struct lk_shape *shape,
                                   struct input_options *options)
{
    static const char *const keys[] = {"shape", "type", "scale", "shift", "length", NULL};
    char text[256];
    if (value->kind != LK_YAML_MAP)
        return read_shape(reading, value, shape);
    LK_TRY(lk_yaml_check_keys(value, keys));
    if (!lk_yaml_find(value, "shape"))
        return lk_yaml_fail(value, "an input without 'shape'");
    for (const struct lk_yaml *entry = value->first; entry; entry = entry->next) {
        if (strcmp(entry->key, "shape") == 0) {
            LK_TRY(read_shape(reading, entry, shape));
            continue;
        }
        LK_TRY(lk_layer_value(reading, entry, text, sizeof text));
        LK_TRY(lk_yaml_at(entry, lk_option_set(input_table, options, entry->key, text)));
    }
    return LK_OK;
}

/* Three lengths are an image, whose channels come last in the text and first in the graph;
 * other shapes are numbers. */
static struct lk_input describe(const char *name, const struct lk_shape *shape,
                                const struct input_options *o)
{
    const bool is_image =
        o->type == TYPE_UINT8 || (o->type == TYPE_BY_SHAPE && shape->rank == 3);
    struct lk_input made = {.name = name,
                            .dtype = is_image                ? LK_U8
                                     : o->type == TYPE_INT32 ? LK_I32
                                                             : LK_F32,
                            .shape = *shape,
                            .scale = o->scale != 0 ? o->scale
                                     : is_image    ? 1.0 / 255
                                                   : 1,
                            .shift = o->shift,
                            .takes_numbers = true};
    if (is_image)
        made.shape = (struct lk_shape){3, {shape->dim[2], shape->dim[0], shape->dim[1]}};
    return made;
}

static enum lk_status read_input(struct lk_reading *reading, const char *name,
                                 const struct lk_yaml *value)
{
    struct lk_model *model = reading->model;
    struct input_options options;
    struct lk_shape shape = {0};
    lk_options_default(input_table, &options);
    LK_TRY(read_options(reading, value, &shape, &options));
    if (model->input_count + (options.length ? 2 : 1) > LK_MOST_INPUTS)
        return lk_yaml_fail(value, "more than %d inputs%s", LK_MOST_INPUTS,
                            options.length ? ": the length of a sequence is one, too" : "");
    if (options.type == TYPE_UINT8 && shape.rank != 3)
        return lk_yaml_fail(value, "uint8 is for images, of [height, width, channels]");
    const struct lk_input input = describe(name              ? name
                                           : shape.rank == 3 ? "image"
                                                             : "numbers",
                                           &shape, &options);
    struct lk_node **node = &model->inputs[model->input_count];
    LK_TRY(lk_yaml_at(value, lk_graph_add_input(model->graph, &input, node)));
    model->input_count++;
    if (!options.length)
        return LK_OK;
    LK_TRY(lk_yaml_at(value, lk_graph_add_length(node[0], &node[1])));
    model->input_count++;
    return LK_OK;
}

/* {shape: [4], type: float32}: the one input itself, and no map of names. */
static bool is_description(const struct lk_yaml *inputs)
{
    const struct lk_yaml *shape = lk_yaml_find(inputs, "shape");
    return shape && shape->kind == LK_YAML_LIST &&
           (inputs->count == 1 || lk_yaml_find(inputs, "type") ||
            lk_yaml_find(inputs, "scale") || lk_yaml_find(inputs, "shift") ||
            lk_yaml_find(inputs, "length"));
}

enum lk_status lk_inputs_read(struct lk_reading *reading, const struct lk_yaml *root)
{
    const struct lk_yaml *inputs = lk_yaml_find(root, "input");
    if (!inputs)
        return lk_yaml_fail(root, "'input: [height, width, channels]' is missing");
    if (inputs->kind != LK_YAML_MAP || is_description(inputs))
        return read_input(reading, NULL, inputs);
    if (inputs->count == 0)
        return lk_yaml_fail(inputs, "'input' names no input");
    for (const struct lk_yaml *entry = inputs->first; entry; entry = entry->next)
        LK_TRY(read_input(reading, entry->key, entry));
    return LK_OK;
}
