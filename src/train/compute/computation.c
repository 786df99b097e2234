/* Computes the values of a model's entries on arrays: opens the model with its weights, makes a
 * replica for what is asked, and converts samples between their order and the graph's. */
#include <lockstep/compute.h>

#include "base/fail.h"
#include "base/transpose.h"
#include "data/stages/pipeline.h"
#include "graph/replica.h"
#include "io/file.h"
#include "model/checkpoint/bundle.h"
#include "model/checkpoint/checkpoint.h"
#include "model/foreign/weights.h"
#include "model/model.h"
#include "train/evaluation/images.h"
#include <lockstep/settings.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STANDARD_BATCH = 16, PATH_BYTES = 1024 };

struct value {
    const char *name;
    struct lk_node *node;
    int64_t elements; /* of a sample */
};

struct lk_computation {
    struct lk_model *model;
    struct lk_input inputs[LK_MOST_INPUTS]; /* as the text has them */
    struct value values[LK_MOST_VALUES];
    int value_count;
    struct lk_checkpoint_file *checkpoint; /* NULL: the weights are elsewhere */
    char weights[PATH_BYTES];              /* a file with them; "": none */
    bool is_own_file;                      /* which stands beside the model */
    uint64_t seed;
    struct lk_pipeline pipeline; /* of a run: what evaluation does to samples */
    struct lk_transform transform;
    struct lk_standardize standardize;
    struct lk_device *device;
    struct lk_choices *choices;
    struct lk_replica *replica; /* NULL: not made yet */
    int64_t batch;
    float *staged; /* [batch][elements of the largest value] */
    atomic_bool stop;
};

/* --- opening --------------------------------------------------------------------------- */

static enum lk_status read_run(struct lk_computation *c)
{
    const struct lk_checkpoint *about = lk_checkpoint_metadata(c->checkpoint);
    LK_TRY(
        lk_model_read(about->model_text, strlen(about->model_text), about->model, &c->model));
    if (about->eval_pipeline)
        LK_TRY(lk_pipeline_parse(about->eval_pipeline, false, &c->pipeline));
    LK_TRY(lk_model_transform(c->model, &c->pipeline, &c->transform));
    return lk_choices_open(about->choices, "its algorithms", &c->choices);
}

static enum lk_status open_run(struct lk_computation *c, const char *path)
{
    char found[PATH_BYTES];
    LK_TRY(lk_checkpoint_find(path, found, sizeof found));
    LK_TRY(lk_checkpoint_open(found, &c->checkpoint));
    return read_run(c);
}

/* A folder with a model text and its weights. */
static enum lk_status open_folder(struct lk_computation *c, const char *text)
{
    const int folder = (int)(strrchr(text, '/') - text);
    snprintf(c->weights, sizeof c->weights, "%.*s/weights.safetensors", folder, text);
    c->is_own_file = lk_file_exists(c->weights);
    if (!c->is_own_file)
        c->weights[0] = '\0';
    return lk_model_open(text, NULL, &c->model);
}

/* Safetensors files begin with the length of a header, whose first byte is a brace. */
static bool is_checkpoint(const char *path)
{
    uint8_t bytes[9] = {0};
    FILE *file = fopen(path, "rb");
    const bool is_read = file && fread(bytes, sizeof bytes, 1, file) == 1;
    if (file)
        fclose(file);
    return is_read && bytes[8] == '{' && bytes[5] == 0 && bytes[6] == 0 && bytes[7] == 0;
}

static enum lk_status open_model(struct lk_computation *c, const char *path,
                                 const struct lk_settings *settings)
{
    char text[PATH_BYTES - 32];
    if ((size_t)snprintf(text, sizeof text, "%s/model.yaml", path) >= sizeof text)
        return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(path));
    const bool is_plain =
        !lk_folder_exists(path) && !(lk_file_exists(path) && is_checkpoint(path));
    if (is_plain)
        return settings ? lk_settings_open_model(settings, &c->model)
                        : lk_model_open(path, NULL, &c->model);
    if (settings)
        return lk_fail(LK_E_ARGUMENT,
                       "'%s' has the model that it was made with; settings are for models of "
                       "the zoo and model files",
                       path);
    if (lk_folder_exists(path))
        return lk_file_exists(text) && !lk_bundle_is_there(path) ? open_folder(c, text)
                                                                 : open_run(c, path);
    return open_run(c, path);
}

/* --- which values ---------------------------------------------------------------------- */

static enum lk_status add_value(struct lk_computation *c, const char *name,
                                struct lk_node *node)
{
    for (int i = 0; i < c->value_count; i++)
        if (strcmp(c->values[i].name, name) == 0) {
            if (c->values[i].node == node)
                return LK_OK;
            return lk_fail(LK_E_ARGUMENT,
                           "'%s' is both an output and another entry; ask for "
                           "'%s', which the output is",
                           name, c->values[i].node->name);
        }
    if (c->value_count == LK_MOST_VALUES)
        return lk_fail(LK_E_ARGUMENT, "more than %d values at once", LK_MOST_VALUES);
    c->values[c->value_count++] = (struct value){name, node, lk_shape_count(&node->shapes.y)};
    return LK_OK;
}

static enum lk_status list_values(struct lk_computation *c,
                                  const struct lk_computation_options *options)
{
    for (int i = 0; i < c->model->output_count; i++)
        LK_TRY(add_value(c, c->model->outputs[i].said, c->model->outputs[i].node));
    for (int i = 0; i < options->tap_count; i++) {
        struct lk_node *node = NULL;
        bool is_output = false;
        for (int j = 0; j < c->model->output_count; j++)
            is_output |= strcmp(c->model->outputs[j].said, options->taps[i]) == 0;
        if (is_output && lk_model_find(c->model, options->taps[i], &node) != LK_OK) {
            lk_error_clear();
            continue;
        }
        LK_TRY(lk_model_find(c->model, options->taps[i], &node));
        const char *name = NULL;
        LK_TRY(lk_arena_text(&c->model->arena, options->taps[i], &name));
        LK_TRY(add_value(c, name, node));
    }
    return LK_OK;
}

/* --- standardize ----------------------------------------------------------------------- */

static enum lk_status bind_standardize(struct lk_computation *c)
{
    struct lk_field inputs[LK_MOST_INPUTS];
    int count = 0;
    if (!c->pipeline.standardizes)
        return LK_OK;
    while (lk_computation_input(c, count, &inputs[count]))
        count++;
    return lk_standardize_open(c->pipeline.standardize, inputs, count, &c->standardize);
}

static enum lk_status open_all(struct lk_computation *c, const char *model,
                               const struct lk_computation_options *options)
{
    enum lk_math math = LK_MATH_STRICT; /* who compares wants that more than speed */
    if (options->math)
        LK_TRY(lk_math_find(options->math, &math));
    c->seed = options->seed;
    c->batch = options->batch > 0 ? options->batch : STANDARD_BATCH;
    LK_TRY(open_model(c, model, options->settings));
    if (options->weights && (size_t)snprintf(c->weights, sizeof c->weights, "%s",
                                             options->weights) >= sizeof c->weights)
        return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(options->weights));
    for (int i = 0; i < c->model->input_count; i++)
        c->inputs[i] = c->model->inputs[i]->input;
    LK_TRY(list_values(c, options));
    LK_TRY(bind_standardize(c));
    if (!c->choices)
        LK_TRY(lk_choices_create(math, &c->choices));
    return lk_device_open(options->device, 0, &c->device);
}

enum lk_status lk_computation_open(const char *model,
                                   const struct lk_computation_options *options,
                                   struct lk_computation **computation)
{
    static const struct lk_computation_options none;
    struct lk_computation *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a computation", sizeof *made);
    const enum lk_status status = open_all(made, model, options ? options : &none);
    if (status != LK_OK) {
        lk_computation_close(made);
        return status;
    }
    *computation = made;
    return LK_OK;
}

void lk_computation_close(struct lk_computation *computation)
{
    if (!computation)
        return;
    lk_replica_destroy(computation->replica);
    lk_choices_destroy(computation->choices);
    lk_device_close(computation->device);
    lk_checkpoint_close(computation->checkpoint);
    lk_model_destroy(computation->model);
    free(computation->staged);
    free(computation);
}

void lk_computation_stop(struct lk_computation *computation)
{
    atomic_store(&computation->stop, true);
}

bool lk_computation_is_stopped(const struct lk_computation *computation)
{
    return atomic_load(&computation->stop);
}

/* --- what goes in and comes out -------------------------------------------------------- */

static bool is_image(const struct lk_input *input)
{
    return input->dtype == LK_U8;
}

/* Three lengths of an activation are channels, height, width; arrays have channels last. */
static struct lk_shape array_shape(const struct lk_shape *s)
{
    return s->rank == 3 ? (struct lk_shape){3, {s->dim[1], s->dim[2], s->dim[0]}} : *s;
}

bool lk_computation_input(const struct lk_computation *computation, int index,
                          struct lk_field *input)
{
    const struct lk_node *node = lk_model_input(computation->model, index);
    if (!node)
        return false;
    const struct lk_input *own = &computation->inputs[index];
    *input = (struct lk_field){.name = node->name,
                               .dtype = own->dtype,
                               .shape = is_image(own) ? array_shape(&own->shape) : own->shape,
                               .role = LK_FIELD_INPUT,
                               .length = -1};
    return true;
}

bool lk_computation_value(const struct lk_computation *computation, int index,
                          struct lk_field *value)
{
    if (index < 0 || index >= computation->value_count)
        return false;
    const struct value *found = &computation->values[index];
    *value = (struct lk_field){.name = found->name,
                               .dtype = LK_F32,
                               .shape = array_shape(&found->node->shapes.y),
                               .role = LK_FIELD_INPUT,
                               .length = -1};
    return true;
}

/* --- the replica ----------------------------------------------------------------------- */

/* A file that was asked for may lack the last layer, as those of pretrained bodies do; it then
 * has first weights. */
static enum lk_status set_weights(struct lk_computation *c)
{
    if (c->checkpoint && !*c->weights)
        return lk_checkpoint_read_average(c->checkpoint, c->replica);
    LK_TRY(lk_replica_init_weights(c->replica, c->seed));
    const struct lk_foreign_options options = {
        .weights = c->weights, .may_lack_head = !c->is_own_file, .real = LK_F32};
    return *c->weights ? lk_foreign_load(c->model, &options, c->replica) : LK_OK;
}

static enum lk_status make_replica(struct lk_computation *c)
{
    struct lk_replica_config config = {.device = c->device,
                                       .batch = c->batch,
                                       .shards = 1,
                                       .transform = &c->transform,
                                       .real = LK_F32,
                                       .few_samples = c->batch <= LK_FEW_SAMPLES,
                                       .choices = c->choices};
    int64_t most = 1;
    for (int i = 0; i < c->value_count; i++) {
        config.outputs[i] = c->values[i].node;
        most = c->values[i].elements > most ? c->values[i].elements : most;
    }
    free(c->staged);
    c->staged = malloc((size_t)c->batch * (size_t)most * sizeof *c->staged);
    if (!c->staged)
        return lk_fail_memory("values", (size_t)c->batch * (size_t)most * sizeof *c->staged);
    LK_TRY(lk_replica_create(&config, &c->replica));
    c->batch = lk_replica_batch(c->replica);
    enum lk_status status = lk_replica_build(c->replica);
    if (status == LK_OK)
        status = set_weights(c);
    if (status != LK_OK) {
        lk_replica_destroy(c->replica);
        c->replica = NULL;
    }
    return status;
}

/* Where memory is too small for the batch, half of it is tried. */
static enum lk_status make_fitting_replica(struct lk_computation *c)
{
    enum lk_status status;
    while ((status = make_replica(c)) == LK_E_DEVICE_MEMORY && c->batch > 1) {
        lk_error_clear();
        c->batch = (c->batch + 1) / 2;
    }
    return status;
}

/* An image that comes as other numbers than uint8 becomes an input of numbers, which are what
 * its readers read. Types that differ from those before need another replica. */
static enum lk_status take_types(struct lk_computation *c, int64_t count,
                                 const struct lk_computation_array *inputs)
{
    bool is_same = c->replica != NULL;
    for (int i = 0; i < c->model->input_count; i++) {
        struct lk_input *used = &c->model->inputs[i]->input;
        struct lk_input wanted = c->inputs[i];
        if (wanted.dtype == LK_I32 && inputs[i].dtype == LK_F32)
            return lk_fail(LK_E_ARGUMENT, "input '%s' takes whole numbers, not floats",
                           wanted.name);
        if (is_image(&wanted) && inputs[i].dtype != LK_U8) {
            wanted.dtype = LK_F32;
            wanted.scale = 1;
            wanted.shift = 0;
            wanted.takes_numbers = true;
        }
        is_same &= used->dtype == wanted.dtype;
        *used = wanted;
    }
    if (is_same)
        return LK_OK;
    lk_replica_destroy(c->replica);
    c->replica = NULL;
    if (c->batch > STANDARD_BATCH && c->batch > count) /* no memory for what never comes */
        c->batch = count > STANDARD_BATCH ? count : STANDARD_BATCH;
    return make_fitting_replica(c);
}

/* --- running --------------------------------------------------------------------------- */

static float number_at(const struct lk_computation_array *array, int64_t i)
{
    return array->dtype == LK_U8    ? (float)((const uint8_t *)array->data)[i]
           : array->dtype == LK_I32 ? (float)((const int32_t *)array->data)[i]
                                    : ((const float *)array->data)[i];
}

/* Writes samples first to first + count - 1 of an array into the slot of its input. */
static void fill_slot(const struct lk_input *own, const struct lk_input *used,
                      const struct lk_computation_array *array, const int64_t range[2],
                      void *slot)
{
    const int64_t elements = lk_shape_count(&own->shape);
    const int64_t begin = range[0] * elements, count = range[1] * elements;
    const int64_t pixels = is_image(own) ? own->shape.dim[1] * own->shape.dim[2] : 1;
    const int64_t channels = is_image(own) ? own->shape.dim[0] : elements;
    if (used->dtype == LK_U8) {
        memcpy(slot, (const uint8_t *)array->data + begin, (size_t)count);
        return;
    }
    if (used->dtype == LK_I32) {
        for (int64_t i = 0; i < count; i++)
            ((int32_t *)slot)[i] = array->dtype == LK_U8
                                       ? ((const uint8_t *)array->data)[begin + i]
                                       : ((const int32_t *)array->data)[begin + i];
        return;
    }
    float *to = slot;
    for (int64_t n = 0; n < range[1]; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < pixels; p++)
                *to++ = number_at(array, begin + n * elements + p * channels + c);
}

static void fill_slots(struct lk_computation *c, const struct lk_computation_array *inputs,
                       const int64_t range[2])
{
    void *slots[LK_MOST_FIELDS] = {NULL};
    for (int i = 0; i < c->model->input_count; i++) {
        const struct lk_node *node = c->model->inputs[i];
        slots[i] = lk_replica_slot(c->replica, node, 0);
        if (slots[i])
            fill_slot(&c->inputs[i], &node->input, &inputs[i], range, slots[i]);
    }
    lk_standardize_apply(&c->standardize, range[1], slots);
}

/* Copies values [count][c][h][w] to [count][h][w][c]. */
static void put_channels_last(const float *from, const struct lk_shape *shape, int64_t count,
                              float *to)
{
    const int64_t channels = shape->dim[0], pixels = shape->dim[1] * shape->dim[2];
    for (int64_t n = 0; n < count; n++)
        lk_transpose(from + n * channels * pixels, channels, pixels,
                     to + n * channels * pixels);
}

static enum lk_status read_value(struct lk_computation *c, int index, int64_t count, float *to)
{
    const struct lk_node *node = c->values[index].node;
    const struct lk_shape *shape = &node->shapes.y;
    const bool is_whole = !node->op && node->input.dtype == LK_I32;
    struct lk_shape of_buffer;
    const struct lk_buffer *y = lk_replica_output(c->replica, index, &of_buffer);
    float *read = shape->rank == 3 ? c->staged : to;
    LK_TRY(lk_tiled_read(y, lk_replica_tiling(c->replica), shape, is_whole ? LK_I32 : LK_F32,
                         count, read));
    if (is_whole)
        for (int64_t i = 0; i < count * c->values[index].elements; i++) {
            int32_t number;
            memcpy(&number, &read[i], sizeof number);
            read[i] = (float)number;
        }
    if (shape->rank == 3)
        put_channels_last(read, shape, count, to);
    return LK_OK;
}

enum lk_status lk_computation_run(struct lk_computation *computation, int64_t count,
                                  const struct lk_computation_array *inputs, float *const *to)
{
    struct lk_computation *c = computation;
    LK_TRY(take_types(c, count, inputs));
    for (int64_t i = 0; i < count; i += c->batch) {
        const int64_t range[2] = {i, lk_least(c->batch, count - i)};
        fill_slots(c, inputs, range);
        LK_TRY(lk_replica_load(c->replica, 0, range[1]));
        LK_TRY(lk_replica_forward(c->replica, 0));
        for (int v = 0; v < c->value_count; v++)
            LK_TRY(read_value(c, v, range[1], to[v] + i * c->values[v].elements));
        LK_TRY(lk_replica_wait_slot(c->replica, 0));
    }
    return LK_OK;
}
