/* What other programs call the weights of zoo models: compared with what torchvision and Keras
 * wrote down themselves (names/record.py). */
#include "model/foreign/judge.h"

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
        if (name && naming->names[p][i] && strcmp(naming->names[p][i], name) == 0)
            return true;
    return false;
}

/* All lines of the record are parameters of the model, with their shapes; in their order, where
 * the naming says what that is. All but `others` of the
 * model's are there. */
static void check(const char *zoo, const char *title, const char *parameters, int others)
{
    char path[512];
    struct lk_model *model = NULL;
    struct lk_namings namings = {0};
    struct line line;
    struct lk_arena arena = {0};
    int count = 0, place = 0;
    snprintf(path, sizeof path, "%s/%s.%s.txt", records, zoo, title);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(
        lk_model_open(zoo, &(struct lk_model_shape){.parameters = parameters}, &model), LK_OK);
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
        while (place < namings.params && !naming->names[naming->order[place]][0])
            place++;
        if (naming->layout == LK_LAYOUT_KERAS && naming->order[place] != p)
            fail_msg("%s: %s is not number %d", path, line.name, count);
        place++;
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
        check(whole[i], "torchvision", "", 0);
    check("vgg16", "torchvision", "", 2); /* whose classifier is another one */
}

static void test_keras(void **state)
{
    (void)state;
    check("densenet121", "keras", "", 0);
    check("efficientnet-b0", "keras", "keras=true", 0);
    check("inception-v3", "keras", "keras=true", 94); /* which has no gamma */
    check("mobilenet-v2", "keras", "keras=true", 0);
    check("mobilenet-v3-large", "keras", "keras=true", 0);
    check("resnet50", "keras", "keras=true", 0);
    check("vgg19", "keras", "", 0);
    check("xception", "keras", "", 0);
    check("vgg16", "keras", "", 2);
}

/* Whether the parameter lies behind another one in an array that holds both. */
static bool has_room_of_its_own(const struct lk_namings *namings, int n, int p)
{
    struct lk_arena arena = {0};
    struct lk_layout layout;
    assert_int_equal(lk_layout_describe(namings->param[p].node, namings->param[p].index,
                                        namings->list[n].layout, &arena, &layout),
                     LK_OK);
    lk_arena_clear(&arena);
    return layout.first > 0;
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
                    if (is_spelled(&namings.list[n], p, namings.list[n].names[q][0]) &&
                        !has_room_of_its_own(&namings, n, p))
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

/* --- files that have more, or less, than the model ------------------------------------------
 */

enum { MOST_ARRAYS = 700 };

/* A file with the arrays of a record, and before the tenth of them `other`. */
struct fake {
    struct lk_arrays file;
    struct lk_array arrays[MOST_ARRAYS];
    char names[MOST_ARRAYS][128];
};

static void add_array(struct fake *fake, const struct line *line)
{
    const int i = fake->file.count++;
    assert_true(i < MOST_ARRAYS);
    snprintf(fake->names[i], sizeof fake->names[i], "%s", line->name);
    fake->arrays[i] = (struct lk_array){.name = fake->names[i], .rank = line->rank};
    memcpy(fake->arrays[i].shape, line->shape, sizeof fake->arrays[i].shape);
}

static void make_file(const char *record, const char *other, struct fake *fake)
{
    char path[512];
    struct line line;
    *fake = (struct fake){.file.format = LK_ARRAYS_TORCH, .file.arrays = fake->arrays};
    snprintf(path, sizeof path, "%s/%s.txt", records, record);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (read_line(file, &line)) {
        const struct line more = {.rank = 1, .shape = {3}};
        if (fake->file.count == 10 && other) {
            add_array(fake, &more);
            snprintf(fake->names[10], sizeof fake->names[10], "%s", other);
        }
        add_array(fake, &line);
    }
    fclose(file);
}

static void keep_all(void *context, enum lk_log_level level, const char *text)
{
    const size_t used = strlen(warnings);
    (void)context;
    (void)level;
    snprintf(warnings + used, sizeof warnings - used, "%s\n", text);
}

/* Judges a record with one more array, "": none, as weights of a zoo model. What is said or
 * refused is in `warnings` then; initial: parameters that the file is not to have. */
static enum lk_status judge(const char *zoo, const char *parameters, const char *record,
                            const char *other, int *initial)
{
    static struct fake fake;
    struct lk_model *model = NULL;
    struct lk_namings namings = {0};
    struct lk_pairing pairing;
    make_file(record, other, &fake);
    assert_int_equal(
        lk_model_open(zoo, &(struct lk_model_shape){.parameters = parameters}, &model), LK_OK);
    assert_int_equal(lk_namings_make(model, &namings), LK_OK);
    assert_int_equal(lk_pair(&fake.file, &namings, LK_PAIR_BY_NAME, &pairing), LK_OK);
    *initial = 0;
    for (int p = 0; p < namings.params; p++)
        *initial += pairing.pair[p].is_initial;
    warnings[0] = '\0';
    lk_log_set(keep_all, NULL);
    const struct lk_judgement judgement = {.path = "w",
                                           .model = zoo,
                                           .file = &fake.file,
                                           .namings = &namings,
                                           .pairing = &pairing};
    const enum lk_status status = lk_judge(&judgement);
    lk_log_set(NULL, NULL);
    if (status != LK_OK)
        snprintf(warnings, sizeof warnings, "%s", lk_error_text());
    lk_error_clear();
    lk_namings_clear(&namings);
    lk_model_destroy(model);
    return status;
}

static void assert_said(const char *text)
{
    if (!strstr(warnings, text))
        fail_msg("'%s' is not in '%s'", text, warnings);
}

/* What another program's network has and ours does not need is said in one line; anything else
 * is refused. */
static void test_left_out(void **state)
{
    int initial;
    (void)state;
    assert_int_equal(
        judge("inception-v3", "", "inception-v3.torchvision", "AuxLogits.fc.bias", &initial),
        LK_OK);
    assert_said("left out, as the model has no use for it: AuxLogits (the second classifier, "
                "which only training uses), 1 arrays\n");
    assert_int_equal(
        judge("inception-v3", "", "inception-v3.torchvision", "AuxLogitsX.fc.bias", &initial),
        LK_E_SHAPE);
    assert_said("the model has no 'AuxLogitsX.fc.bias' [3]");
    assert_int_equal(judge("efficientnet-b0", "keras=true", "efficientnet-b0.keras",
                           "normalization/mean", &initial),
                     LK_OK);
    assert_said("normalization (how Keras's network prepares images");
    assert_int_equal(initial, 0);
}

/* A parameter that layers of another program do not have is not missing from its files. */
static void test_lacking(void **state)
{
    int initial;
    (void)state;
    assert_int_equal(judge("inception-v3", "keras=true", "inception-v3.keras", NULL, &initial),
                     LK_OK);
    assert_int_equal(initial, 94);
    assert_said("378 of 378 parameters, by the names of keras\n");
    assert_null(strstr(warnings, "--set"));
}

/* Weights of a network that parameters of the model would make. */
static void test_another_network(void **state)
{
    int initial;
    (void)state;
    assert_int_equal(judge("mobilenet-v2", "", "mobilenet-v2.keras", NULL, &initial), LK_OK);
    assert_said("this model pads all sides and has 1e-5; --set keras=true makes the network of "
                "these weights\n");
    assert_int_equal(judge("mobilenet-v2", "keras=true", "mobilenet-v2.keras", NULL, &initial),
                     LK_OK);
    assert_null(strstr(warnings, "--set"));
    assert_int_equal(
        judge("mobilenet-v2", "keras=true", "mobilenet-v2.torchvision", NULL, &initial), LK_OK);
    assert_said("--set keras=false makes the network of these weights\n");
}

int main(int count, char **text)
{
    records = count > 1 ? text[1] : "tests/model/names";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchvision),     cmocka_unit_test(test_keras),
        cmocka_unit_test(test_names_differ),    cmocka_unit_test(test_counted),
        cmocka_unit_test(test_left_out),        cmocka_unit_test(test_lacking),
        cmocka_unit_test(test_another_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
