/* What other programs call the weights of zoo models: compared with what torchvision and Keras
 * wrote down themselves (names/record.py). */
#include "model/foreign/names.h"

#include "rig.h"

#include <stdlib.h>

static const char *records; /* the folder of names/record.py */

/* A line of a record: "features.0.weight 64 3 3 3". */
struct line {
    char name[128];
    int rank;
    int64_t shape[8];
};

static bool read_line(FILE *file, struct line *line)
{
    char text[256], *rest = text;
    if (!fgets(text, sizeof text, file))
        return false;
    *line = (struct line){.rank = -1};
    for (char *word; (word = strtok_r(rest, " \n", &rest)) != NULL; line->rank++)
        if (line->rank < 0)
            snprintf(line->name, sizeof line->name, "%s", word);
        else
            line->shape[line->rank] = strtoll(word, NULL, 10);
    return true;
}

static bool is_spelled(const struct lk_naming *naming, int p, const char *name)
{
    for (int i = 0; i < LK_MOST_SPELLINGS; i++)
        if (naming->names[p][i] && strcmp(naming->names[p][i], name) == 0)
            return true;
    return false;
}

/* All lines of the record are parameters of the model, with their shapes; in their order, where
 * the naming says what that is. All but `others` of the model's are there. */
static void check(const char *zoo, const char *title, int others)
{
    char path[512];
    struct lk_model *model = NULL;
    struct lk_namings namings = {0};
    struct line line;
    struct lk_arena arena = {0};
    int count = 0;
    snprintf(path, sizeof path, "%s/%s.%s.txt", records, zoo, title);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(lk_model_open(zoo, NULL, &model), LK_OK);
    if (lk_namings_make(model, &namings) != LK_OK)
        fail_msg("%s: %s", zoo, lk_error_text());
    const struct lk_naming *naming = lk_namings_find(&namings, title);
    assert_non_null(naming);
    for (; read_line(file, &line); count++) {
        struct lk_layout layout;
        int p = 0;
        while (p < namings.params && !is_spelled(naming, p, line.name))
            p++;
        if (p == namings.params)
            fail_msg("%s: no parameter is called %s", path, line.name);
        assert_int_equal(lk_layout_describe(namings.param[p].node, namings.param[p].index,
                                            naming->layout, &arena, &layout),
                         LK_OK);
        if (!lk_layout_fits(&layout, line.rank, line.shape))
            fail_msg("%s: %s has another shape", path, line.name);
        if (naming->layout == LK_LAYOUT_KERAS && naming->order[count] != p)
            fail_msg("%s: %s is not number %d", path, line.name, count);
    }
    assert_int_equal(count, namings.params - others);
    fclose(file);
    lk_arena_clear(&arena);
    lk_namings_clear(&namings);
    lk_model_destroy(model);
}

static void test_torchvision(void **state)
{
    (void)state;
    static const char *const whole[] = {"densenet121",        "efficientnet-b0", "inception-v3",
                                        "mobilenet-v2",       "resnet18",        "resnet50",
                                        "mobilenet-v3-large", "squeezenet",      "vgg19"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        check(whole[i], "torchvision", 0);
    check("vgg16", "torchvision", 2); /* whose classifier is another one */
}

static void test_keras(void **state)
{
    (void)state;
    check("densenet121", "keras", 0);
    check("mobilenet-v2", "keras", 0);
    check("vgg19", "keras", 0);
    check("xception", "keras", 0);
    check("vgg16", "keras", 2);
}

/* Every table of names belongs to a model, and each of its rows to one of its layers: no two
 * parameters have one name, and no zoo model has a table that cannot be read. */
static void test_names_differ(void **state)
{
    (void)state;
    for (int i = 0; lk_model_zoo(i); i++) {
        struct lk_model *model = NULL;
        struct lk_namings namings = {0};
        assert_int_equal(lk_model_open(lk_model_zoo(i), NULL, &model), LK_OK);
        if (lk_namings_make(model, &namings) != LK_OK)
            fail_msg("%s: %s", lk_model_zoo(i), lk_error_text());
        for (int n = 0; n < namings.count; n++)
            for (int p = 0; p < namings.params; p++)
                for (int q = 0; q < p; q++)
                    if (strcmp(namings.list[n].names[p][0], namings.list[n].names[q][0]) == 0)
                        fail_msg("%s, %s: %s is there twice", lk_model_zoo(i),
                                 namings.list[n].title, namings.list[n].names[p][0]);
        lk_namings_clear(&namings);
        lk_model_destroy(model);
    }
}

/* Layers of a class are counted as Keras 3 does; both convolutions of a separable one are one
 * layer there. */
static void test_counted(void **state)
{
    (void)state;
    struct lk_model *model = NULL;
    struct lk_namings namings = {0};
    assert_int_equal(lk_model_open("xception", NULL, &model), LK_OK);
    assert_int_equal(lk_namings_make(model, &namings), LK_OK);
    const struct lk_naming *naming = lk_namings_find(&namings, "keras-3");
    static const char *const expected[][2] = {
        {"conv1.weight", "layers/conv2d/vars/0"},
        {"conv2.weight", "layers/conv2d_1/vars/0"},
        {"conv2_norm.moving_variance", "layers/batch_normalization_1/vars/3"},
        {"block1_1_deep.weight", "layers/separable_conv2d/vars/0"},
        {"block1_1_wide.weight", "layers/separable_conv2d/vars/1"},
        {"block1_2_wide.weight", "layers/separable_conv2d_1/vars/1"},
        {"block1_skip.weight", "layers/conv2d_2/vars/0"},
        {"conv4_wide.weight", "layers/separable_conv2d_33/vars/1"},
        {"dense_1.bias", "layers/dense/vars/1"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int p = 0;
        while (p < namings.params && strcmp(namings.param[p].name, expected[i][0]) != 0)
            p++;
        assert_true(p < namings.params);
        assert_string_equal(naming->names[p][0], expected[i][1]);
    }
    lk_namings_clear(&namings);
    lk_model_destroy(model);
}

int main(int count, char **text)
{
    records = count > 1 ? text[1] : "tests/model/names";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchvision),
        cmocka_unit_test(test_keras),
        cmocka_unit_test(test_names_differ),
        cmocka_unit_test(test_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
