/* Pipelines: texts into stages in their order, chance that repeats, what the host shows. */
#include "data/stages/pipeline.h"
#include "data/batches/batches.h"
#include "data/stages/normalize.h"
#include "data/stages/transform.h"

#include "scratch.h"
#include <lockstep/data.h>
#include <math.h>

static struct lk_pipeline parse(const char *text, bool is_training)
{
    struct lk_pipeline p;
    if (lk_pipeline_parse(text, is_training, &p) != LK_OK)
        fail_msg("'%s': %s", text, lk_error_text());
    return p;
}

static void reads_what_it_prints(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"", ""},
        {"  flip both", "flip axis=both"},
        {"crop", ""},
        {"crop padding=4", "crop padding=4"},
        {"resize [7, 9] | shuffle | batch 4", "resize size=7x9"},
        {"crop 7x9 padding=4|flip axis=vertical",
         "crop size=7x9 padding=4 | flip axis=vertical"},
        {"resize 110x99 | rotate 7.5 | center_crop 96x96",
         "resize size=110x99 | rotate degrees=7.5 | center_crop size=96x96"},
        {"saturation 1 | brightness 0.5 | contrast 0.25",
         "saturation amount=1 | brightness amount=0.5 | contrast amount=0.25"},
        {"normalize -1..1", "normalize scale=0.00392156862745098 mean=[0.5] std=[0.5]"},
        {"normalize scale=1 mean=[1, 2,3] std=4",
         "normalize scale=1 mean=[1, 2, 3] std=[4, 4, 4]"},
        {"normalize keras-tf", "normalize scale=0.00392156862745098 mean=[0.5] std=[0.5]"},
        {"normalize torchvision", "normalize scale=0.00392156862745098 "
                                  "mean=[0.485, 0.456, 0.406] std=[0.229, 0.224, 0.225]"},
        {"normalize to=keras-caffe",
         "normalize scale=1 mean=[103.939, 116.779, 123.68] std=[1, 1, 1] order=bgr"},
        {"normalize order=bgr",
         "normalize scale=0.00392156862745098 mean=[0] std=[1] order=bgr"},
        {"normalize order=rgb scale=1", "normalize scale=1 mean=[0] std=[1]"},
        {"normalize=torchvision flip=both",
         "flip axis=both | normalize scale=0.00392156862745098 mean=[0.485, 0.456, 0.406] "
         "std=[0.229, 0.224, 0.225]"},
        {"list | read | decode | resize 9x9 | sparse", "resize size=9x9"},
        {"list|shuffle|read|decode full|crop 20x30|resize 9x9|crop 7x7 padding=1|one_hot 0.1",
         "decode jpeg=full | crop size=20x30 | resize size=9x9 | crop size=7x7 padding=1 | "
         "one_hot smoothing=0.1"},
        {"center_crop 20x20 | resize | flip both",
         "center_crop size=20x20 | resize | flip axis=both"},
        {"one_hot", "one_hot smoothing=0"},
        {"flip=horizontal padding=4 rotate=10",
         "rotate degrees=10 | crop padding=4 | flip axis=horizontal"},
        {"saturation=.5 contrast=0 brightness=0.25",
         "brightness amount=0.25 | saturation amount=0.5"},
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        char printed[1024], again[1024];
        const struct lk_pipeline p = parse(texts[i][0], true);
        lk_pipeline_print(&p, printed, sizeof printed);
        assert_string_equal(printed, texts[i][1]);
        const struct lk_pipeline q = parse(printed, true);
        lk_pipeline_print(&q, again, sizeof again);
        assert_string_equal(again, printed);
    }
}

static void refuses(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"flop", "did you mean 'flip'?"},
        {"flip horizontal | crop", "stage 'crop' cannot stand behind 'flip'"},
        {"crop 4x4 | center_crop 4x4", "'center_crop' cannot stand behind 'crop'"},
        {"normalize | brightness 1", "'brightness' cannot stand behind 'normalize'"},
        {"brightness 1 | contrast 1 | brightness 1", "'brightness' is there twice"},
        {"flip", "stage 'flip': option 'axis' is missing"},
        {"flip sideways", "none of none, horizontal"},
        {"rotate 181", "181"},
        {"crop 4", "expected height x width"},
        {"| flip both", "expected a stage on each side"},
        {"flip both | | rotate 4", "expected a stage on each side"},
        {"normalize to=0..2", "none of 0..1, -1..1"},
        {"normalize std=0", "above 0"},
        {"normalize order=gbr", "option 'order': 'gbr' is none of rgb, bgr"},
        {"normalize keras-caffe mean=3",
         "'keras-caffe' has its own scale, mean, std and order"},
        {"normalize torchvision scale=1", "'torchvision' has its own scale"},
        {"normalize keras-tf order=bgr", "'keras-tf' has its own scale"},
        {"normalize=vgg", "none of 0..1, -1..1, torchvision, keras-tf, keras-caffe"},
        {"normalize mean=[1, 2] std=[1, 2, 3]", "2 values of mean and 3 of std"},
        {"normalize mean=[1, x]", "not a number for each channel"},
        {"flop=1", "augment: unknown option 'flop'; did you mean 'flip'?"},
        {"brightness=11", "11"},
        {"batch 4 | shuffle", "'shuffle' cannot stand behind 'batch'"},
        {"crop 4x4 padding=1 | resize 9x9", "a crop before it pads nothing, this one by 1"},
        {"crop | resize 9x9", "a crop before it has a size"},
        {"rotate 5 | crop 4x4 | resize 9x9", "'resize' cannot stand behind 'crop'"},
        {"cache memory | crop 4x4 | resize 9x9", "'resize' cannot stand behind 'crop'"},
        {"crop 4x4 | resize 9x9 | resize 9x9", "'resize' is there twice"},
        {"crop 4x4 | resize 9x9 | crop 2x2 | crop 2x2", "'crop' is there twice"},
        {"read | list", "'list' cannot stand behind 'read'"},
        {"list 5", "takes no options, found '5'"},
        {"decode half", "none of scaled, full"},
        {"one_hot | sparse", "'sparse' cannot stand behind 'one_hot'"},
        {"one_hot 1.5", "1.5"},
        {"batch", "'size' is missing"},
        {"repeat 0", "0 is not in 1.."},
    };
    struct lk_pipeline p;
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        assert_int_equal(lk_pipeline_parse(cases[i][0], true, &p), LK_E_ARGUMENT);
        if (!strstr(lk_error_text(), cases[i][1]))
            fail_msg("'%s': expected '%s' in '%s'", cases[i][0], cases[i][1], lk_error_text());
        lk_error_clear();
    }
    assert_int_equal(lk_pipeline_parse("crop 4x4", false, &p), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "is for training"));
    lk_error_clear();
}

static void takes_what_is_of_batches(void **state)
{
    (void)state;
    struct lk_pipeline p =
        parse("shuffle no|batch 8 drop_remainder=true | repeat 3 | prefetch 6 threads=2", true);
    assert_true(p.says_shuffle && !p.shuffles && p.says_batch && p.drops_remainder);
    assert_int_equal(p.batch, 8);
    assert_int_equal(p.epochs, 3);
    assert_int_equal(p.prefetch, 6);
    assert_int_equal(p.threads, 2);
    p = parse("shuffle | prefetch", true);
    assert_true(p.shuffles && !p.says_batch && p.says_threads);
    assert_int_equal(p.threads, -1);
}

static void evaluates_without_chance(void **state)
{
    (void)state;
    char text[1024];
    const struct lk_pipeline training =
        parse("resize 9x9 | rotate 5 | crop 7x8 padding=2 | flip both | contrast 1 | "
              "normalize -1..1",
              true);
    const struct lk_pipeline p = lk_pipeline_evaluation(&training);
    lk_pipeline_print(&p, text, sizeof text);
    assert_string_equal(text, "resize size=9x9 | center_crop size=7x8 | normalize "
                              "scale=0.00392156862745098 mean=[0.5] std=[0.5]");
    const struct lk_pipeline again = parse(text, false);
    assert_false(again.crops_by_chance);
    const struct lk_pipeline crops =
        parse("decode full | crop 20x30 | resize 9x9 | crop 7x8 | one_hot 0.5", true);
    assert_true(crops.first_crop_by_chance && crops.crops_by_chance);
    const struct lk_pipeline middle = lk_pipeline_evaluation(&crops);
    assert_false(middle.first_crop_by_chance || middle.crops_by_chance);
    lk_pipeline_print(&middle, text, sizeof text);
    assert_string_equal(
        text,
        "decode jpeg=full | center_crop size=20x30 | resize size=9x9 | center_crop size=7x8");
}

static void normalizes(void **state)
{
    (void)state;
    struct lk_transform look;
    struct lk_pipeline p = parse("normalize mean=[0.5, 0.25, 0] std=[0.5, 2, 1]", true);
    assert_int_equal(lk_pipeline_transform(&p, 3, &look), LK_OK);
    assert_true(look.normalizes && !lk_transform_has_params(&look));
    const double mean[] = {0.5, 0.25, 0}, deviation[] = {0.5, 2, 1};
    for (int c = 0; c < 3; c++)
        for (int x = 0; x < 256; x += 51)
            assert_true(fabs(x * look.scale[c] + look.shift[c] -
                             (x / 255.0 - mean[c]) / deviation[c]) < 1e-12);
    assert_int_equal(lk_pipeline_transform(&p, 1, &look), LK_E_ARGUMENT);
    lk_error_clear();
    p = parse("normalize -1..1", true);
    assert_int_equal(lk_pipeline_transform(&p, 4, &look), LK_OK);
    assert_true(fabs(look.shift[3] + 1) < 1e-12);
    assert_true(fabs(255 * look.scale[3] + look.shift[3] - 1) < 1e-12);
    p = parse("contrast 1", true);
    assert_int_equal(lk_pipeline_transform(&p, 4, &look), LK_E_ARGUMENT);
    lk_error_clear();
}

/* What the presets' own libraries make of a pixel (12, 200, 255) and of (0, 77, 131):
 * keras.applications.imagenet_utils.preprocess_input() of Keras 3, and the transforms of
 * torchvision.transforms._presets.ImageClassification. */
static void prepares_as_others_do(void **state)
{
    (void)state;
    static const double pixels[2][3] = {{12, 200, 255}, {0, 77, 131}};
    static const struct {
        const char *text;
        double wanted[2][3];
    } presets[] = {
        {"normalize keras-caffe",
         {{151.061005, 83.2210007, -111.68}, {27.060997, -39.7789993, -123.68}}},
        {"normalize keras-tf",
         {{-0.905882359, 0.568627477, 1}, {-1, -0.396078408, 0.0274510384}}},
        {"normalize torchvision",
         {{-1.91240692, 1.46568632, 2.6400001}, {-2.11790395, -0.687674999, 0.47878015}}},
    };
    for (int i = 0; i < 3; i++) {
        struct lk_transform look;
        struct lk_normalization told;
        const struct lk_pipeline p = parse(presets[i].text, true);
        assert_int_equal(lk_pipeline_transform(&p, 3, &look), LK_OK);
        assert_int_equal(lk_pipeline_normalization(presets[i].text, 3, &told), LK_OK);
        assert_true(told.normalizes && told.is_reversed == look.reverses);
        for (int n = 0; n < 2; n++)
            for (int c = 0; c < 3; c++) {
                const double x = pixels[n][look.reverses ? 2 - c : c];
                const double y = x * look.scale[c] + look.shift[c];
                assert_true(y == x * told.scale[c] + told.shift[c]);
                if (!(fabs(y - presets[i].wanted[n][c]) < 2e-5 * fmax(1, fabs(y) / 10)))
                    fail_msg("%s: %.9g, must be %.9g", presets[i].text, y,
                             presets[i].wanted[n][c]);
            }
    }
    struct lk_normalization told;
    assert_int_equal(lk_pipeline_normalization("flip both", 3, &told), LK_OK);
    assert_false(told.normalizes);
    assert_int_equal(lk_pipeline_normalization("normalize order=bgr", 1, &told), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "order=bgr is for images of 3 channels"));
    lk_error_clear();
    assert_int_equal(lk_pipeline_normalization("normalize torchvision", 1, &told),
                     LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "images have 1; --set input=[H,W,3]"));
    lk_error_clear();
}

static char warned[512];

static void keep_warning(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    if (level == LK_LOG_WARNING)
        snprintf(warned, sizeof warned, "%s", text);
}

/* Plain differences are told, small ones are not. */
static void warns_of_other_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *preset, *text;
        double scale;
        const char *said; /* NULL: nothing */
    } cases[] = {
        {"torchvision", "normalize torchvision", 1 / 255.0, NULL},
        {"torchvision", "flip both | normalize mean=[0.5, 0.45, 0.4] std=0.25", 1, NULL},
        {"torchvision", "", 1 / 255.0, "here they are 0 to 1, red first"},
        {"torchvision", "", 1, "here they are 0 to 255, red first"},
        {"torchvision", "normalize -1..1", 1, "here they are -1 to 1"},
        {"torchvision", "normalize torchvision", 1, NULL},
        {"torchvision",
         "normalize order=bgr mean=[0.485, 0.456, 0.406] std=[0.229, 0.224, 0.225]", 1,
         "blue first; --augment 'normalize=torchvision'"},
        {"keras-tf", "normalize -1..1", 1, NULL},
        {"keras-tf", "normalize", 1, "values -1 to 1, red first; here they are 0 to 1"},
        {"keras-caffe", "normalize order=bgr scale=1 mean=[104, 117, 123]", 1, NULL},
        {"keras-caffe", "normalize scale=1 mean=[104, 117, 123]", 1, "here they are -123 to"},
        {"keras-caffe", "normalize order=bgr scale=1", 1, "here they are 0 to 255, blue first"},
        {"of no kind", "", 1, NULL},
        {"0..1", "", 1, NULL},
    };
    lk_log_set(keep_warning, NULL);
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        const struct lk_pipeline p = parse(cases[i].text, true);
        struct lk_input_range input = {.scale = cases[i].scale, .channels = 3};
        warned[0] = '\0';
        assert_int_equal(lk_normalize_warn("weights.pt", cases[i].preset, &p, &input),
                         cases[i].said != NULL);
        if (cases[i].said ? !strstr(warned, cases[i].said) : *warned)
            fail_msg("%s, '%s': '%s'", cases[i].preset, cases[i].text, warned);
        input.channels = 1;
        assert_false(p.values <= 1 && !p.reverses &&
                     lk_normalize_warn("weights.pt", cases[i].preset, &p, &input));
    }
    const struct lk_input_range rgb = {.scale = 1 / 255.0, .channels = 3};
    const struct lk_pipeline none = parse("", true);
    warned[0] = '\0';
    assert_false(lk_normalize_warn_unlike("run", "flip both", &none, &rgb));
    assert_false(lk_normalize_warn_unlike("run", "normalize 0..1", &none, &rgb));
    assert_false(lk_normalize_warn_unlike("run", "of no kind", &none, &rgb));
    assert_string_equal(warned, "");
    assert_true(lk_normalize_warn_unlike("run", "normalize order=bgr", &none, &rgb));
    assert_non_null(strstr(warned, "0 to 1, blue first; here they are 0 to 1, red first"));
    lk_log_set(NULL, NULL);
}

/* Factors fill their ranges evenly, and the same sample has the same ones. */
static void draws_by_chance(void **state)
{
    (void)state;
    enum { DRAWS = 8000, PARTS = 10 };
    int often[LK_COLOUR_STAGES][PARTS] = {0}, flips[4] = {0}, same = 0;
    const struct lk_pipeline p = parse("flip both | brightness 0.5 | contrast 2", true);
    const double least[] = {0.5, 0, 1}, most[] = {1.5, 3, 1};
    for (int i = 0; i < DRAWS; i++) {
        const struct lk_transform_params draw =
            lk_pipeline_transform_params(&p, 7, i / 100, i % 100);
        const struct lk_transform_params again =
            lk_pipeline_transform_params(&p, 7, i / 100, i % 100);
        const struct lk_transform_params next =
            lk_pipeline_transform_params(&p, 7, i / 100 + 1, i % 100);
        assert_memory_equal(&draw, &again, sizeof draw);
        same += draw.factors[0] == next.factors[0];
        flips[(int)draw.mirror]++;
        for (int s = 0; s < 2; s++) {
            const double at = (draw.factors[s] - least[s]) / (most[s] - least[s]);
            assert_true(at >= 0 && at <= 1);
            often[s][at < 1 ? (int)(at * PARTS) : PARTS - 1]++;
        }
        assert_true(draw.factors[2] == 1);
    }
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < PARTS; k++)
            assert_in_range(often[s][k], 660, 940); /* 800: five deviations */
    for (int k = 0; k < 4; k++)
        assert_in_range(flips[k], 1800, 2200);
    assert_int_equal(same, 0);
}

/* Whoever asks, in whatever pieces: a sample's record is that of its number in the set. */
static void batches_draw_by_sample(void **state)
{
    (void)state;
    enum { COUNT = 50, SIZE = 16 };
    struct lk_data *data;
    struct lk_batches *batches;
    int64_t order[COUNT];
    const char *text = "flip horizontal | saturation 1 | brightness 0.3";
    const struct lk_pipeline p = parse(text, true);
    const struct lk_batches_options options = {
        .size = SIZE, .seed = 9, .shuffle = true, .pipeline = text};
    assert_int_equal(lk_data_open("synthetic:digits,count=50", LK_DATA_TRAIN, &data), LK_OK);
    assert_int_equal(lk_batches_create(data, &options, &batches), LK_OK);
    for (int64_t batch = 0; batch < 9; batch++) {
        const struct lk_batches_position at = lk_batches_position(batches, batch);
        const int64_t size = lk_batches_size(batches, batch);
        struct lk_transform_params draws[SIZE];
        assert_int_equal(lk_batches_transform_params(batches, batch, 0, 1, draws), LK_OK);
        assert_int_equal(lk_batches_transform_params(batches, batch, 1, size - 1, draws + 1),
                         LK_OK);
        lk_data_order(9, at.epoch, COUNT, order);
        for (int64_t i = 0; i < size; i++) {
            const struct lk_transform_params is =
                lk_pipeline_transform_params(&p, 9, at.epoch, order[at.index + i]);
            assert_memory_equal(&draws[i], &is, sizeof is);
        }
    }
    struct lk_transform_params draw;
    assert_int_equal(lk_batches_transform_params(batches, 3, SIZE, 1, &draw), LK_E_ARGUMENT);
    lk_error_clear();
    lk_batches_destroy(batches);
    lk_data_close(data);
}

static void shows_on_the_host(void **state)
{
    (void)state;
    const uint8_t from[2][3][3] = {{{10, 20, 30}, {40, 50, 60}, {70, 80, 90}},
                                   {{100, 110, 120}, {130, 140, 150}, {160, 170, 180}}};
    uint8_t to[2][3][3];
    struct lk_transform look = {.flips = true, .channels = 3};
    struct lk_transform_params draw = {{1, 1, 1}, LK_FLIP_LEFT_RIGHT | LK_FLIP_UP_DOWN};
    memcpy(to, from, sizeof to);
    lk_transform_apply(&look, &draw, 2, 3, &to[0][0][0]);
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 3; x++)
            assert_memory_equal(to[y][x], from[1 - y][2 - x], 3);
    look = (struct lk_transform){.stages = {LK_COLOUR_BRIGHTNESS, LK_COLOUR_SATURATION},
                                 .channels = 3};
    draw = (struct lk_transform_params){{2, 0, 1}, 0}; /* twice as bright, then grey */
    memcpy(to, from, sizeof to);
    lk_transform_apply(&look, &draw, 2, 3, &to[0][0][0]);
    for (int c = 0; c < 3; c++) {
        assert_int_equal(to[0][0][c], 36); /* 0.2989 * 20 + 0.587 * 40 + 0.114 * 60 */
        assert_int_equal(to[1][1][c], 255);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_prints),
        cmocka_unit_test(refuses),
        cmocka_unit_test(takes_what_is_of_batches),
        cmocka_unit_test(evaluates_without_chance),
        cmocka_unit_test(normalizes),
        cmocka_unit_test(prepares_as_others_do),
        cmocka_unit_test(warns_of_other_ranges),
        cmocka_unit_test(draws_by_chance),
        cmocka_unit_test(batches_draw_by_sample),
        cmocka_unit_test(shows_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
