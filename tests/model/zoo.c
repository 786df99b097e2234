/* Models by name: shapes and sizes of the zoo, other shapes, files, memory. */
#include "../scratch.h"
#include "io/sha256.h"
#include "model/yaml/yaml.h"
#include "tensor/tensor.h"
#include <lockstep/model.h>
#include <math.h>

static struct lk_model *open_model(const char *name, const struct lk_model_shape *shape)
{
    struct lk_model *model = NULL;
    lk_error_clear();
    if (lk_model_open(name, shape, &model) != LK_OK)
        fail_msg("%s gave '%s'", name, lk_error_text());
    return model;
}

/* Elements of all parameters, or of those that are trained. */
static int64_t parameters(struct lk_model *model, bool trainable)
{
    int64_t count = 0;
    const struct lk_node *node;
    for (int i = 0; (node = lk_graph_node(lk_model_graph(model), i)) != NULL; i++)
        count += trainable ? lk_node_info(node).trained : lk_node_info(node).parameters;
    return count;
}

static int64_t classes(const struct lk_model *model)
{
    const struct lk_shape shape = lk_node_info(lk_model_output(model)).shape;
    assert_true(shape.rank == 1 || shape.rank == 2);
    return shape.dim[shape.rank - 1];
}

/* Counts as Keras's summary() gives them for the same layers, trainable ones and moving
 * averages. The trainable ones are those of torchvision 0.29 where it has the model: resnet50
 * has no biases in its convolutions, and inception-v3 has here no second classifier (3,326,696
 * parameters) but the gammas that Keras leaves out. amoebanet-d: 82 millions in table 1 of
 * GPipe's paper. gpt-small and transformer-encoder: the sums of their matrices, biases, gammas
 * and betas. */
static void has_known_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t parameters, trainable, classes;
    } cases[] = {
        {"amoebanet-d", 81505540 + 168116, 81505540, 1000},
        {"densenet121", 8062504, 7978856, 1000},
        {"efficientnet-b0", 5288548 + 42016, 5288548, 1000},
        {"fashion-convnet", 93322, 93322, 10},
        {"gpt-small", 10942464, 10942464, 256},
        {"inception-v3", 23851784 + 17216, 27161264 - 3326696, 1000},
        {"mlp", 1863690, 1863690, 10},
        {"mobilenet-v2", 3538984, 3504872, 1000},
        {"mobilenet-v3-large", 5483032 + 24400, 5483032, 1000},
        {"resnet18", 11689512 + 9600, 11689512, 1000},
        {"resnet50", 25557032 + 53120, 25557032, 1000},
        {"squeezenet", 1248424, 1248424, 1000},
        {"text-bilstm", 2824710, 2824710, 6},
        {"text-cnn", 2715706, 2715706, 6},
        {"text-gru", 2659846, 2659846, 6},
        {"text-lstm", 2692358, 2692358, 6},
        {"transformer-encoder", 8281094, 8281094, 6},
        {"two-branch", 82176 + 129, 82176 + 129, 1},
        {"two-branch-text", 2617729, 2617729, 1},
        {"vgg16", 14714688 + 25088 * 4 + 4, 14714688 + 25088 * 4 + 4, 4},
        {"vgg16tail", 14714688 + 25088 * 4 + 4, 3 * 2359808 + 25088 * 4 + 4, 4},
        {"vgg19", 143667240, 143667240, 1000},
        {"xception", 22910480, 22855952, 1000},
    };
    int i = 0;
    for (; lk_model_zoo(i); i++) {
        struct lk_model *model = open_model(lk_model_zoo(i), NULL);
        assert_string_equal(lk_model_zoo(i), cases[i].name);
        assert_string_equal(lk_model_name(model), cases[i].name);
        assert_int_equal(parameters(model, false), cases[i].parameters);
        assert_int_equal(parameters(model, true), cases[i].trainable);
        assert_int_equal(classes(model), cases[i].classes);
        struct lk_node *labels = NULL, *loss = NULL;
        assert_int_equal(lk_model_add_loss(model, &labels, &loss), LK_OK);
        lk_model_destroy(model);
    }
    assert_int_equal(i, sizeof cases / sizeof cases[0]);
    assert_null(lk_model_zoo(i + 1));
    assert_null(lk_model_zoo(-1));
}

static void assert_dims(const struct lk_model *model, const char *name, int64_t c, int64_t h,
                        int64_t w)
{
    const struct lk_node *node =
        name ? lk_graph_find(lk_model_graph((struct lk_model *)model), name)
             : lk_model_input(model, 0);
    assert_non_null(node);
    const struct lk_shape shape = lk_node_info(node).shape;
    assert_int_equal(shape.dim[0], c);
    assert_int_equal(shape.dim[1], h);
    assert_int_equal(shape.dim[2], w);
}

/* Each published model stands without its head too, with a layer for other classes in its
 * place: so many features go into it. */
static void takes_another_head(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t published, features;
    } cases[] = {
        {"amoebanet-d", 1000 * 3329, 3328}, {"densenet121", 1025000, 1024},
        {"efficientnet-b0", 1281000, 1280}, {"inception-v3", 2049000, 2048},
        {"mobilenet-v2", 1281000, 1280},    {"mobilenet-v3-large", 2511080, 960},
        {"resnet18", 513000, 512},          {"resnet50", 2049000, 2048},
        {"squeezenet", 513000, 512},        {"vgg16", 123642856, 25088},
        {"vgg19", 123642856, 25088},        {"xception", 2049000, 2048},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_model *whole = open_model(
            cases[i].name, &(struct lk_model_shape){.classes = 1000, .parameters = "top=true"});
        struct lk_model *other = open_model(
            cases[i].name, &(struct lk_model_shape){.classes = 6, .parameters = "top=false"});
        assert_int_equal(classes(other), 6);
        assert_int_equal(parameters(other, false) - (cases[i].features + 1) * 6,
                         parameters(whole, false) - cases[i].published);
        if (strcmp(cases[i].name, "vgg16") == 0)
            assert_int_equal(parameters(whole, true), 138357544);
        lk_model_destroy(whole);
        lk_model_destroy(other);
    }
}

/* They stand in the text that is kept. */
static void takes_parameters(void **state)
{
    (void)state;
    struct lk_model *model = open_model(
        "amoebanet-d", &(struct lk_model_shape){.parameters = " cells=3  filters=64 "});
    assert_non_null(lk_graph_find(lk_model_graph(model), "cell7"));
    assert_null(lk_graph_find(lk_model_graph(model), "cell8"));
    assert_dims(model, "cell3", 4 * 64, 28, 28);
    const char *text = lk_model_text(model);
    assert_non_null(strstr(text, "{top: true, cells: 3, filters: 64}"));
    lk_model_destroy(model);
    assert_true(lk_model_has_parameter("vgg16", "top"));
    assert_false(lk_model_has_parameter("vgg16", "cells"));
    assert_false(lk_model_has_parameter("vgg16tail", "top"));
    assert_false(lk_model_has_parameter("/nowhere", "top"));
}

static void leaves_blocks_out(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double rate;
    } paths[] = {{"block2_2_path", 0.2 * 2 / 16}, {"block6_4_path", 0.2 * 14 / 16}};
    struct lk_model *plain = open_model("efficientnet-b0", NULL);
    struct lk_model *model = open_model(
        "efficientnet-b0", &(struct lk_model_shape){.parameters = "droppath=20"});
    assert_int_equal(parameters(model, false), parameters(plain, false));
    assert_null(lk_graph_find(lk_model_graph(model), "block6_1_path")); /* no sum */
    for (int i = 0; i < (int)(sizeof paths / sizeof *paths); i++) {
        char options[128];
        const struct lk_node *node = lk_graph_find(lk_model_graph(model), paths[i].name);
        assert_non_null(node);
        assert_null(lk_graph_find(lk_model_graph(plain), paths[i].name));
        lk_node_options(node, options, sizeof options);
        assert_non_null(strstr(options, "per=sample"));
        assert_true(fabs(strtod(strstr(options, "rate=") + 5, NULL) - paths[i].rate) < 1e-9);
    }
    lk_model_destroy(plain);
    lk_model_destroy(model);
}

/* One node in a line: all that makes a graph what it is, as text. */
static void add_node(struct lk_sha256 *sum, const struct lk_node *node)
{
    char text[1024], options[512], shape[80];
    const struct lk_node_info info = lk_node_info(node);
    lk_node_options(node, options, sizeof options);
    lk_shape_print(&info.shape, shape, sizeof shape);
    int used = snprintf(text, sizeof text, "%s %s {%s} %s %lld%s of", info.name, info.op,
                        options, shape, (long long)info.parameters,
                        info.parameters && !info.is_trainable ? " frozen" : "");
    for (int i = 0; i < info.inputs; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %s",
                         lk_node_info(lk_node_input(node, i)).name);
    assert_true(used < (int)sizeof text - 1);
    strcat(text, "\n");
    lk_sha256_add(sum, text, strlen(text));
}

/* The graphs are those that the texts made when they were written without blocks: names, order,
 * options, shapes, parameters and connections of every node. */
static void makes_the_same_graphs(void **state)
{
    (void)state;
    static const struct {
        const char *name, *sum;
    } cases[] = {
        {"fashion-convnet", "6c052579a449a4f4e9cd201999737b4852b0e0fee0b13ed2039482b118e5f144"},
        {"mlp", "7a7a785fb19908a713ff8f157ed24aff2e765f2c10d3bbdca70456953cb23b8c"},
        {"mobilenet-v2", "12f5f72064c4c648d41e141687355f191782b3bb84b9c855c4bba66c25ffd43f"},
        {"resnet50", "8876d489a76338c6b9b84226bf229b51479e6921f3ad8dc5083f0cd2f0c1a8a8"},
        {"vgg16", "f682e19d43780d9e950d02e61e98a81c6dede276f80b75dbb25b40737f4f0c28"},
        {"vgg16tail", "a87d0b4c848ed55f065290017a1a56e872c489a4acb2c6ebb2b2945f6e941b22"},
        {"xception", "8cf40ba0c6a09a1be59ddbd2fae763a8c50cb48a51fb3596c07885fd6b09c455"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_model *model = open_model(cases[i].name, NULL);
        struct lk_sha256 sum = {0};
        char found[LK_SHA256_TEXT];
        const struct lk_node *node;
        assert_int_equal(lk_sha256_init(&sum), LK_OK);
        for (int n = 0; (node = lk_graph_node(lk_model_graph(model), n)) != NULL; n++)
            add_node(&sum, node);
        lk_sha256_finish(&sum, found);
        lk_sha256_clear(&sum);
        if (strcmp(found, cases[i].sum) != 0)
            fail_msg("%s is another graph: %s", cases[i].name, found);
        lk_model_destroy(model);
    }
}

static void infers_shapes(void **state)
{
    (void)state;
    struct lk_model *model = open_model("fashion-convnet", NULL);
    assert_dims(model, "conv2d_1", 32, 26, 26);
    assert_dims(model, "max_pool_1", 32, 13, 13);
    assert_dims(model, "conv2d_2", 64, 11, 11);
    assert_dims(model, "max_pool_2", 64, 5, 5);
    assert_dims(model, "conv2d_3", 64, 3, 3);
    lk_model_destroy(model);
    model = open_model("vgg16tail", NULL);
    assert_dims(model, "block1_conv2", 64, 224, 224);
    assert_dims(model, "block5_pool", 512, 7, 7);
    assert_false(
        lk_node_info(lk_graph_find(lk_model_graph(model), "block4_conv3")).is_trainable);
    assert_true(
        lk_node_info(lk_graph_find(lk_model_graph(model), "block5_conv1")).is_trainable);
    lk_model_destroy(model);
    model = open_model("resnet50", NULL);
    assert_dims(model, "pool1", 64, 56, 56);
    assert_dims(model, "block2_3", 256, 56, 56);
    assert_dims(model, "block5_3", 2048, 7, 7);
    lk_model_destroy(model);
    model = open_model("mobilenet-v2", NULL);
    assert_dims(model, "block17_narrow_norm", 320, 7, 7);
    lk_model_destroy(model);
    model = open_model("xception", NULL);
    assert_dims(model, "block4", 728, 19, 19);
    assert_dims(model, "conv4_norm", 2048, 10, 10);
    lk_model_destroy(model);
}

/* The text that a changed model keeps gives the changed model. */
static void takes_another_shape(void **state)
{
    (void)state;
    struct lk_model *model = open_model(
        "vgg16tail", &(struct lk_model_shape){.height = 96, .width = 64, .classes = 6});
    assert_dims(model, NULL, 3, 96, 64);
    assert_int_equal(classes(model), 6);
    const char *text = lk_model_text(model);
    struct lk_model *again = NULL;
    assert_int_equal(lk_model_read(text, strlen(text), "again", &again), LK_OK);
    assert_dims(again, NULL, 3, 96, 64);
    assert_int_equal(classes(again), 6);
    assert_string_equal(lk_model_name(again), "vgg16tail");
    assert_string_equal(lk_model_text(again), text);
    lk_model_destroy(again);
    lk_model_destroy(model);
    model = open_model("mlp", &(struct lk_model_shape){0});
    assert_dims(model, NULL, 1, 28, 28);
    lk_model_destroy(model);
}

static void assert_lengths(const struct lk_model *model, int64_t first, int64_t second)
{
    assert_int_equal(lk_node_info(lk_model_input(model, 0)).shape.dim[0], first);
    assert_int_equal(lk_node_info(lk_model_input(model, 2)).shape.dim[0], second);
}

/* Words stand in shapes of inputs too, and both texts of a pair have one length. */
static void branches_take_their_shape(void **state)
{
    static const char text[] = "input: {a: {shape: [9], type: int32, length: true}, "
                               "b: {shape: [4], type: int32, length: true}}\nlayers:\n"
                               "  - {name: x, from: a, embedding: {vocabulary: 5, units: 3}}\n"
                               "  - {name: y, from: b, embedding: {vocabulary: 5, units: 3}}\n"
                               "  - {from: x, global_max_pool1d: }\noutput: [x, y]\n";
    (void)state;
    struct lk_model *model = open_model("two-branch", NULL);
    const struct lk_shape shape = lk_node_info(lk_model_input(model, 1)).shape;
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.dim[0], 140);
    assert_int_equal(shape.dim[1], 256);
    lk_model_destroy(model);
    model = open_model("two-branch", &(struct lk_model_shape){
                                         .parameters = "timesteps=7 width=5 units=3 hidden=4"});
    assert_int_equal(lk_node_info(lk_model_input(model, 0)).shape.dim[0], 7);
    assert_int_equal(parameters(model, true), 4 * 3 * (5 + 3 + 1) + (6 * 4 + 4) + 5);
    lk_model_destroy(model);
    model = open_model("two-branch-text", &(struct lk_model_shape){.length = 12});
    assert_lengths(model, 12, 12);
    lk_model_destroy(model);
    scratch_put(scratch_path("ends.yaml"), text, sizeof text - 1);
    model = open_model(scratch_path("ends.yaml"), &(struct lk_model_shape){.length = 6});
    assert_lengths(model, 6, 4);
    lk_model_destroy(model);
}

static void opens_files(void **state)
{
    (void)state;
    static const char text[] = "classes: 4 # four\ninput:\n  - 8\n  - 8\n  - 1\nlayers:\n"
                               "  - flatten\n  - dense: {units: $classes}\n  - softmax\n";
    scratch_put(scratch_path("small.yaml"), text, sizeof text - 1);
    struct lk_model *model = open_model(scratch_path("small.yaml"), NULL);
    assert_string_equal(lk_model_name(model), "small");
    assert_string_equal(lk_model_text(model), text);
    lk_model_destroy(model);
    model = open_model(scratch_path("small.yaml"),
                       &(struct lk_model_shape){.channels = 3, .classes = 9});
    assert_string_equal(lk_model_text(model),
                        "classes: 9 # four\ninput:\n  [8, 8, 3]\nlayers:\n"
                        "  - flatten\n  - dense: {units: $classes}\n  - softmax\n");
    assert_int_equal(parameters(model, false), 8 * 8 * 3 * 9 + 9);
    lk_model_destroy(model);
}

static void check_refused(const char *name, const struct lk_model_shape *shape, int code,
                          const char *said)
{
    struct lk_model *model = NULL;
    lk_error_clear();
    assert_refused((int)lk_model_open(name, shape, &model), code, lk_error_text(), said);
    assert_null(model);
    lk_error_clear();
}

static void refuses(void **state)
{
    (void)state;
    const struct lk_model_shape shape = {.height = 32, .classes = 5};
    check_refused("fashion-convent", NULL, LK_E_MODEL,
                  "no model 'fashion-convent': no file, and none of the zoo (amoebanet-d, "
                  "densenet121, efficientnet-b0, fashion-convnet, gpt-small, "
                  "inception-v3, mlp, mobilenet-v2, mobilenet-v3-large, resnet18, resnet50, "
                  "squeezenet, text-bilstm, text-cnn, text-gru, text-lstm, "
                  "transformer-encoder, two-branch, two-branch-text, vgg16, vgg16tail, vgg19, "
                  "xception); did you mean 'fashion-convnet'?");
    check_refused("vgg16", &(struct lk_model_shape){.parameters = "tob=true"}, LK_E_MODEL,
                  "vgg16.yaml:7: the model has no parameter 'tob'; did you mean 'top'?");
    check_refused("vgg16tail", &(struct lk_model_shape){.parameters = "top=true"}, LK_E_MODEL,
                  "the model has no parameter 'top'");
    check_refused("vgg16", &(struct lk_model_shape){.parameters = "top=a,b:c"}, LK_E_MODEL,
                  "parameter 'top': a word or a number expected, found 'a,b:c'");
    check_refused("vgg16", &(struct lk_model_shape){.parameters = "top"}, LK_E_ARGUMENT,
                  "parameters 'top': NAME=VALUE expected");
    check_refused("/nowhere/x.yaml", NULL, LK_E_MODEL, "no file, and none of the zoo");
    check_refused("fashion-convnet", &(struct lk_model_shape){.width = 4}, LK_E_MODEL,
                  "fashion-convnet.yaml:8: conv2d_2: ");
    static const char fixed[] = "input: [8, 8, 1]\nlayers: [flatten]\n";
    scratch_put(scratch_path("fixed.yaml"), fixed, sizeof fixed - 1);
    check_refused(scratch_path("fixed.yaml"), &shape, LK_E_MODEL,
                  "fixed.yaml:1: 5 classes are asked for, but the text has no 'classes:'");
    static const char two[] = "input: {a: [8, 8, 1]}\nlayers: [flatten]\nclasses: 3\n";
    scratch_put(scratch_path("two.yaml"), two, sizeof two - 1);
    check_refused(scratch_path("two.yaml"), &shape, LK_E_MODEL,
                  "two.yaml:1: only 'input: [height, width, channels]'");
    scratch_put(scratch_path("zero.yaml"), "input: \0\n", 9);
    check_refused(scratch_path("zero.yaml"), NULL, LK_E_MODEL, "zero.yaml: no text");
}

static void plans_memory(void **state)
{
    (void)state;
    struct lk_device *device = NULL;
    struct lk_memory small = {0}, large = {0}, alone = {0}, mixed = {0};
    assert_int_equal(lk_device_open(NULL, 0, &device), LK_OK);
    struct lk_model *model = open_model("fashion-convnet", NULL);
    assert_int_equal(lk_model_memory(model, device, 256, 4, LK_MEMORY_TRAINING, &small), LK_OK);
    assert_int_equal(lk_model_memory(model, device, 512, 0, LK_MEMORY_TRAINING, &large), LK_OK);
    assert_int_equal(lk_model_memory(model, device, 512, 0, LK_MEMORY_PREDICTING, &alone),
                     LK_OK);
    assert_int_equal(lk_model_memory(model, device, 512, 0, LK_MEMORY_TRAINING_MIXED, &mixed),
                     LK_OK);
    assert_true(small.weights >= 93322 * 4 && small.weights < 93322 * 4 + 16 * 512);
    assert_true(small.gradients >= 4 * 93322 * 4);
    assert_int_equal(large.weights, small.weights);
    assert_int_equal(large.gradients, 2 * small.gradients); /* 8 shards */
    assert_int_equal(large.inputs, 2 * small.inputs);
    assert_true(large.activations > small.activations);
    assert_true(alone.activations < large.activations);
    assert_int_equal(alone.gradients, 0);
    assert_int_equal(small.total, small.weights + small.gradients + small.activations +
                                      small.inputs + small.optimizer);
    assert_int_equal(alone.optimizer, 0);
    assert_int_equal(mixed.weights, large.weights); /* floats, as gradients of weights are */
    assert_int_equal(mixed.gradients, large.gradients);
    assert_true(mixed.activations > 0 && mixed.activations < large.activations * 2 / 3);
    struct lk_model *words = open_model("text-lstm", NULL);
    assert_int_equal(lk_model_memory(words, device, 64, 2, LK_MEMORY_TRAINING, &small), LK_OK);
    assert_true(small.weights > 20000 * 128 * 4); /* of which a batch reads at most 4096 rows */
    assert_true(small.gradients < small.weights / 2);
    assert_true(small.optimizer < small.weights * 5 / 2);
    lk_model_destroy(words);
    assert_int_equal(lk_device_bytes(device), 0);
    assert_int_equal(lk_model_memory(model, device, 1 << 30, 0, LK_MEMORY_TRAINING, &small),
                     LK_E_DEVICE_MEMORY);
    lk_error_clear();
    lk_model_destroy(model);
    lk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_known_sizes),
        cmocka_unit_test(makes_the_same_graphs),
        cmocka_unit_test(takes_another_head),
        cmocka_unit_test(takes_parameters),
        cmocka_unit_test(leaves_blocks_out),
        cmocka_unit_test(infers_shapes),
        cmocka_unit_test(branches_take_their_shape),
        cmocka_unit_test(takes_another_shape),
        cmocka_unit_test(opens_files),
        cmocka_unit_test(refuses),
        cmocka_unit_test(plans_memory),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
