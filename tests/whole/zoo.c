/* One training step of a zoo model against PyTorch, in double: the loss and the gradients of
 * all parameters. zoo.py has recorded them and tells how numbers are drawn. */
#include "device/device.h"
#include "graph/replica.h"
#include "model/naming/names.h"
#include "ok.h"
#include "skip.h"
#include "tensor/tensor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 4, CLASSES = 10 };
#define TOLERANCE 1e-6

static const struct network {
    const char *name, *naming; /* whose names the record has */
    int64_t size;
    const char *parameters;
} networks[] = {
    {"densenet121", "torchvision", 64, ""},
    {"efficientnet-b0", "torchvision", 64, ""},
    {"inception-v3", "torchvision", 91, ""},
    {"mobilenet-v2", "torchvision", 64, ""},
    {"mobilenet-v3-large", "torchvision", 64, ""},
    {"resnet18", "torchvision", 64, ""},
    {"resnet50", "torchvision", 64, ""},
    {"squeezenet", "torchvision", 64, ""},
    {"vgg16", "torchvision", 32, ""},
    {"vgg19", "torchvision", 32, ""},
    {"xception", "pytorch", 64, ""},
    {"amoebanet-d", "pytorch", 64, "cells=6 filters=64"},
};

static const char *asked, *records; /* the model, and the folder of the records */

/* --- numbers --------------------------------------------------------------------------- */

static uint32_t seed_of(const char *before, const char *name)
{
    uint32_t seed = 2166136261u;
    for (; *before; before++)
        seed = (seed ^ (uint8_t)*before) * 16777619u;
    for (; *name; name++)
        seed = (seed ^ (uint8_t)*name) * 16777619u;
    return seed;
}

static uint32_t draw(uint32_t seed, int64_t index)
{
    uint32_t x = (uint32_t)index * 2654435761u + seed;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

static double fraction(uint32_t seed, int64_t index)
{
    return (draw(seed, index) >> 8) / 16777216.0;
}

/* Element `index` of a parameter in PyTorch's layout, `rows` of them a filter or unit. */
static double initial(const struct lk_param *param, uint32_t seed, int64_t index, int64_t rows)
{
    const double u = fraction(seed, index);
    if (rows > 0)
        return (u * 2 - 1) * sqrt(6.0 / (double)rows);
    return param->spec.init == LK_INIT_ONES ? 0.5 + u : (u - 0.5) * 0.2;
}

/* --- the model ------------------------------------------------------------------------- */

/* The network with all dropout of rate 0. */
static struct lk_model *open_model(const struct network *network)
{
    static const char rate[] = "dropout: {rate: 0.";
    struct lk_model *opened = NULL, *model = NULL;
    ASSERT_OK(lk_model_open(network->name,
                            &(struct lk_model_shape){.height = network->size,
                                                     .width = network->size,
                                                     .classes = CLASSES,
                                                     .parameters = network->parameters},
                            &opened));
    char *text = strdup(lk_model_text(opened));
    for (char *at = text; (at = strstr(at, rate)) != NULL;) {
        at += sizeof rate - 1;
        *at = '0';
    }
    ASSERT_OK(lk_model_read(text, strlen(text), network->name, &model));
    free(text);
    lk_model_destroy(opened);
    return model;
}

static void fill(struct lk_replica *replica, const struct lk_model *model,
                 const struct lk_node *labels, int64_t size)
{
    uint8_t *images = lk_replica_slot(replica, lk_model_input(model, 0), 0);
    int32_t *classes = lk_replica_slot(replica, labels, 0);
    const uint32_t of_images = seed_of("", "images"), of_labels = seed_of("", "labels");
    for (int64_t i = 0; i < BATCH * size * size * 3; i++)
        images[i] = (uint8_t)(draw(of_images, i) >> 24);
    for (int i = 0; i < BATCH; i++)
        classes[i] = (int32_t)((draw(of_labels, i) >> 8) % CLASSES);
}

/* A parameter as PyTorch knows it. */
struct known {
    const struct lk_param *param;
    const char *name;
    struct lk_layout layout;
    double *own, *theirs; /* room for its elements in either layout */
};

static void find(const struct lk_replica *replica, int index, struct lk_namings *namings,
                 const struct lk_naming *naming, struct known *known)
{
    known->param = lk_replica_param(replica, index);
    int p = 0;
    while (p < namings->params && strcmp(namings->param[p].name, known->param->name) != 0)
        p++;
    assert_true(p < namings->params);
    known->name = naming->names[p][0];
    ASSERT_OK(lk_layout_describe(namings->param[p].node, namings->param[p].index,
                                 naming->layout, &namings->arena, &known->layout));
    known->own = calloc((size_t)known->param->count, sizeof(double));
    known->theirs = calloc((size_t)known->param->count, sizeof(double));
    assert_true(known->own && known->theirs);
}

static void forget(struct known *known)
{
    free(known->own);
    free(known->theirs);
}

static void set_weights(struct lk_replica *replica, struct lk_namings *namings,
                        const struct lk_naming *naming)
{
    for (int i = 0; lk_replica_param(replica, i); i++) {
        struct known known;
        find(replica, i, namings, naming, &known);
        const uint32_t seed = seed_of("", known.name);
        const int64_t rows =
            known.layout.rank > 1 ? known.param->count / known.layout.shape[0] : 0;
        for (int64_t e = 0; e < known.param->count; e++)
            known.theirs[e] = initial(known.param, seed, e, rows);
        lk_layout_take(&known.layout, sizeof(double), known.theirs, known.own);
        ASSERT_OK(lk_replica_write_param(replica, i, known.own));
        forget(&known);
    }
}

/* --- what PyTorch has found ------------------------------------------------------------ */

struct line {
    char name[128];
    double first, second;
};

struct record {
    struct line lines[1000];
    int count;
};

static void read_record(const char *name, struct record *record)
{
    char path[512];
    struct line *line = record->lines;
    snprintf(path, sizeof path, "%s/%s.txt", records, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (record->count < 1000 && fscanf(file, "%127s %lf", line->name, &line->first) == 2) {
        if (record->count > 0) /* the loss stands alone */
            assert_int_equal(fscanf(file, "%lf", &line->second), 1);
        record->count++;
        line++;
    }
    fclose(file);
    assert_string_equal(record->lines[0].name, "loss");
}

static void check_loss(const struct lk_replica *replica, double expected)
{
    double values[BATCH * 2], sum = 0;
    struct lk_shape shape;
    const struct lk_buffer *y = lk_replica_output(replica, 0, &shape);
    ASSERT_OK(lk_tiled_read(y, lk_replica_tiling(replica), &shape, LK_F64, BATCH, values));
    for (int i = 0; i < BATCH; i++)
        sum += values[2 * i];
    if (!(fabs(sum / BATCH - expected) <= TOLERANCE * expected))
        fail_msg("loss %.13g, PyTorch has %.13g", sum / BATCH, expected);
}

/* Gradients that are zero but for rounding, of biases before a normalization, have no digits
 * of their own: they are compared with those of all parameters. */
static double check_gradient(const struct known *known, const struct record *record,
                             double whole)
{
    const uint32_t seed = seed_of("side of ", known->name);
    double squares = 0, product = 0;
    int i = 1;
    while (i < record->count && strcmp(record->lines[i].name, known->name) != 0)
        i++;
    if (i == record->count)
        fail_msg("PyTorch has no parameter %s", known->name);
    const struct line *line = &record->lines[i];
    for (int64_t e = 0; e < known->param->count; e++) {
        const double g = known->theirs[e] / BATCH;
        squares += g * g;
        product += g * (fraction(seed, e) * 2 - 1);
    }
    const double size = fmax(line->first, 1e-6 * whole);
    const double error =
        fmax(fabs(sqrt(squares) - line->first), fabs(product - line->second)) / size;
    if (!(error <= TOLERANCE))
        fail_msg("%s: gradient has length %.10g and product %.10g; PyTorch %.10g and %.10g",
                 known->name, sqrt(squares), product, line->first, line->second);
    return error;
}

static void check_gradients(struct lk_replica *replica, struct lk_namings *namings,
                            const struct lk_naming *naming, const struct record *record)
{
    const size_t bytes = lk_buffer_bytes(lk_replica_gradients(replica));
    double *gradients = malloc(bytes), whole = 0, worst = 0;
    int found = 0;
    assert_non_null(gradients);
    for (int i = 1; i < record->count; i++)
        whole += record->lines[i].first * record->lines[i].first;
    ASSERT_OK(lk_buffer_read(lk_replica_gradients(replica), 0, bytes, gradients));
    for (int i = 0; lk_replica_param(replica, i); i++) {
        struct known known;
        if (lk_replica_param(replica, i)->spec.is_tracked)
            continue;
        find(replica, i, namings, naming, &known);
        lk_layout_give(&known.layout, sizeof(double), gradients + known.param->offset,
                       known.theirs);
        worst = fmax(worst, check_gradient(&known, record, sqrt(whole)));
        forget(&known);
        found++;
    }
    free(gradients);
    assert_int_equal(found, record->count - 1);
    print_message("# %d gradients, largest relative difference %.2g\n", found, worst);
}

static void step(const struct network *network, struct lk_device *device)
{
    static struct record record;
    struct lk_namings namings = {0};
    struct lk_replica *replica = NULL;
    struct lk_node *labels, *loss;
    struct lk_model *model = open_model(network);
    ASSERT_OK(lk_namings_make(model, &namings));
    const struct lk_naming *naming = lk_namings_find(&namings, network->naming);
    assert_non_null(naming);
    read_record(network->name, &record);
    ASSERT_OK(lk_model_add_loss(model, &labels, &loss));
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {loss},
                                             .batch = BATCH,
                                             .shards = 1,
                                             .real = LK_F64,
                                             .training = true};
    ASSERT_OK(lk_replica_create(&config, &replica));
    ASSERT_OK(lk_replica_build(replica));
    ASSERT_OK(lk_replica_init_weights(replica, 1)); /* moving averages */
    set_weights(replica, &namings, naming);
    fill(replica, model, labels, network->size);
    ASSERT_OK(lk_replica_load(replica, 0, BATCH));
    ASSERT_OK(lk_replica_forward(replica, 1));
    check_loss(replica, record.lines[0].first);
    ASSERT_OK(lk_replica_backward(replica));
    check_gradients(replica, &namings, naming, &record);
    lk_replica_destroy(replica);
    lk_namings_clear(&namings);
    lk_model_destroy(model);
}

static void matches_pytorch(void **state)
{
    const struct network *network = networks;
    struct lk_device *device = NULL;
    (void)state;
    for (int left = sizeof networks / sizeof *networks; strcmp(network->name, asked) != 0;)
        if (--left == 0)
            fail_msg("%s has no record", asked);
        else
            network++;
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    if (!lk_device_info(device)->has_fp64) {
        lk_device_close(device);
        SKIP_TEST("the device has no double precision");
    }
    step(network, device);
    lk_device_close(device);
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(matches_pytorch)};
    asked = count > 1 ? words[1] : "resnet18";
    records = count > 2 ? words[2] : "tests/whole/zoo";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
