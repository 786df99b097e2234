/* Images and labels into batch tiles by the device, against plain C, in both kernel classes. */
#include "device/rig.h"
#include "tensor/tensor.h"

enum { GUARD = 64 }; /* bytes behind each buffer that must stay as they were */

struct trial {
    int64_t batch, samples;
    int shards;
    struct lk_shape shape; /* [c, h, w] */
};

static uint8_t pixel(int64_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

/* What lane `lane` of tile `tile` holds: the number of a sample; -1: none. */
static int64_t sample_at(const struct lk_tiling *t, int64_t samples, int64_t tile, int lane)
{
    const int64_t number = tile % t->shard_tiles * t->lanes + lane;
    const int64_t n = tile / t->shard_tiles * t->shard_samples + number;
    return number < t->shard_samples && n < samples ? n : -1;
}

/* A trial's images with their records, as the host hands them over. */
struct images {
    struct lk_transform transform;
    struct lk_transform_params *draws; /* [batch]; at the start of `memory` */
    uint8_t *memory, *pixels;          /* [samples][h][w][c] */
    size_t bytes, records;
};

static double clamped(double x)
{
    return x < 0 ? 0 : x > 255 ? 255 : x;
}

static double grey(const double *p, int channels)
{
    return channels == 3 ? 0.2989 * p[0] + 0.587 * p[1] + 0.114 * p[2] : p[0];
}

/* Stages first..end-1 of a transform, on all pixels of a sample in turn. source: torchvision's
 * functional adjust_brightness, adjust_contrast, adjust_saturation, times 255 */
static void apply_stages(const struct images *images, const struct lk_transform_params *draw,
                         int64_t pixels, double *sample)
{
    const int channels = images->transform.channels;
    for (int s = 0; s < LK_COLOUR_STAGES && images->transform.stages[s] != LK_COLOUR_NONE;
         s++) {
        const enum lk_colour_stage stage = images->transform.stages[s];
        const double f = draw->factors[s];
        double mean = 0;
        for (int64_t i = 0; i < pixels; i++)
            mean += grey(sample + i * channels, channels) / (double)pixels;
        for (int64_t i = 0; i < pixels; i++) {
            double *p = sample + i * channels;
            const double to = stage == LK_COLOUR_BRIGHTNESS ? 0
                              : stage == LK_COLOUR_CONTRAST ? mean
                                                            : grey(p, channels);
            for (int c = 0; c < channels; c++)
                p[c] = clamped(f * p[c] + (1 - f) * to);
        }
    }
}

/* What sample n must become: [h][w][c]. The caller frees it. */
static double *expected_sample(const struct trial *trial, const struct images *images,
                               int64_t n)
{
    const int64_t c_count = trial->shape.dim[0], h_count = trial->shape.dim[1];
    const int64_t w_count = trial->shape.dim[2], count = c_count * h_count * w_count;
    double *sample = malloc((size_t)count * sizeof *sample);
    assert_non_null(sample);
    const struct lk_transform_params none = {{0}, 0};
    const struct lk_transform_params *draw = images->records ? &images->draws[n] : &none;
    const int mirror = (int)draw->mirror;
    for (int64_t y = 0; y < h_count; y++)
        for (int64_t x = 0; x < w_count; x++)
            for (int64_t c = 0; c < c_count; c++) {
                const int64_t x0 = mirror & LK_FLIP_LEFT_RIGHT ? w_count - 1 - x : x;
                const int64_t y0 = mirror & LK_FLIP_UP_DOWN ? h_count - 1 - y : y;
                sample[(y * w_count + x) * c_count + c] =
                    images->pixels[((n * h_count + y0) * w_count + x0) * c_count + c];
            }
    apply_stages(images, draw, h_count * w_count, sample);
    return sample;
}

/* Compares the tensor with sample * scale + shift, rounded once or twice: a device may fuse. */
static void compare_images(const struct trial *trial, const struct lk_tiling *t,
                           enum lk_dtype real, const void *got, const struct images *images)
{
    const int64_t c_count = trial->shape.dim[0],
                  plane = lk_shape_count(&trial->shape) / c_count;
    const struct lk_transform *transform = &images->transform;
    double slack = transform->stages[0] != LK_COLOUR_NONE ? 1e-6 : 3e-7;
    slack = real == LK_F64 ? (transform->stages[0] != LK_COLOUR_NONE ? 1e-13 : 1e-15) : slack;
    for (int64_t tile = 0; tile < t->tiles; tile++)
        for (int lane = 0; lane < t->lanes; lane++) {
            const int64_t n = sample_at(t, trial->samples, tile, lane);
            double *sample = n < 0 ? NULL : expected_sample(trial, images, n);
            for (int64_t e = 0; e < c_count * plane; e++) {
                const int64_t c = e / plane, from = transform->reverses ? c_count - 1 - c : c,
                              at = (tile * c_count * plane + e) * t->lanes + lane;
                const double is = real == LK_F64 ? ((const double *)got)[at]
                                                 : (double)((const float *)got)[at];
                const double want = n < 0 ? 0
                                          : sample[e % plane * c_count + from] *
                                                    transform->scale[c < 4 ? c : 3] +
                                                transform->shift[c < 4 ? c : 3];
                if (!(is - want <= (n < 0 ? 0 : slack) && want - is <= (n < 0 ? 0 : slack)))
                    fail_msg("tile %lld, element %lld, lane %d: %.17g, must be %.17g",
                             (long long)tile, (long long)e, lane, is, want);
            }
            free(sample);
        }
}

/* Every factor from 0 to 2 and every mirroring, by the number of the sample. */
static struct images make_images(const struct trial *trial,
                                 const struct lk_transform *transform)
{
    struct images images = {.transform = *transform};
    const size_t pixels = (size_t)(trial->samples * lk_shape_count(&trial->shape));
    images.records =
        lk_transform_has_params(transform) ? (size_t)trial->batch * sizeof *images.draws : 0;
    images.bytes = images.records + pixels;
    images.memory = calloc(1, images.bytes);
    assert_non_null(images.memory);
    images.draws = (struct lk_transform_params *)(void *)images.memory;
    images.pixels = images.memory + images.records;
    for (int64_t n = 0; images.records && n < trial->samples; n++)
        images.draws[n] = (struct lk_transform_params){
            {(float)(n % 5) / 2, (float)(n % 7) / 3, (float)(n % 9) / 4},
            transform->flips ? (float)(n % 4) : 0};
    for (size_t i = 0; i < pixels; i++)
        images.pixels[i] = pixel((int64_t)i);
    return images;
}

/* The tensor that the device makes, of `out` bytes; the caller frees it. */
static uint8_t *load_images(struct lk_device *device, const struct trial *trial,
                            enum lk_dtype real, const struct images *images, size_t out)
{
    const struct lk_tiling t =
        lk_tiling_make(lk_device_info(device), trial->batch, trial->shards);
    uint8_t *got = malloc(out + GUARD);
    struct lk_buffer *from = NULL, *y = NULL;
    struct lk_loader *loader = NULL;
    struct lk_transform transform = images->transform;
    assert_non_null(got);
    assert_ok(lk_loader_create(device, &t, real, &transform, &loader));
    assert_ok(lk_loader_allocate(loader, trial->shape.dim[1]));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, images->bytes, &from));
    assert_ok(lk_buffer_create(device, out + GUARD, &y));
    assert_ok(lk_buffer_write(from, 0, images->bytes, images->memory));
    assert_ok(lk_buffer_enqueue_fill(y, 0xee));
    const struct lk_image_batch batch = {.buffer = from,
                                         .pixels_at = (int64_t)images->records,
                                         .samples = trial->samples,
                                         .scale = transform.scale[0],
                                         .shift = transform.shift[0]};
    assert_ok(lk_loader_enqueue_images(loader, &batch, &trial->shape, y));
    assert_ok(lk_buffer_read(y, 0, out + GUARD, got));
    for (size_t i = out; i < out + GUARD; i++)
        assert_int_equal(got[i], 0xee);
    lk_loader_destroy(loader);
    lk_buffer_destroy(from);
    lk_buffer_destroy(y);
    return got;
}

static void check_images(struct lk_device *device, const struct trial *trial,
                         enum lk_dtype real, const struct lk_transform *transform)
{
    const struct lk_tiling t =
        lk_tiling_make(lk_device_info(device), trial->batch, trial->shards);
    const struct images images = make_images(trial, transform);
    uint8_t *got =
        load_images(device, trial, real, &images, lk_tiled_bytes(&t, &trial->shape, real));
    compare_images(trial, &t, real, got, &images);
    free(got);
    free(images.memory);
}

/* Bytes `host` of so many numbers a sample, through the loader; behind what it may write the
 * buffer is filled with 0xee. */
static void *load_elements(struct lk_device *device, const struct trial *trial,
                           const struct lk_shape *shape, bool are_numbers, const void *host,
                           size_t out)
{
    const struct lk_tiling t =
        lk_tiling_make(lk_device_info(device), trial->batch, trial->shards);
    const size_t in = (size_t)(trial->samples * lk_shape_count(shape)) * 4;
    struct lk_number_batch numbers = {.samples = trial->samples, .scale = 0.5, .shift = -1};
    struct lk_buffer *from = NULL, *y = NULL;
    struct lk_loader *loader = NULL;
    void *got = malloc(out);
    assert_non_null(got);
    assert_ok(lk_loader_create(device, &t, LK_F32, NULL, &loader));
    if (are_numbers)
        assert_ok(lk_loader_add_numbers(loader));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, in, &from));
    assert_ok(lk_buffer_create(device, out, &y));
    assert_ok(lk_buffer_write(from, 0, in, host));
    assert_ok(lk_buffer_enqueue_fill(y, 0xee));
    numbers.buffer = from;
    if (are_numbers)
        assert_ok(lk_loader_enqueue_numbers(loader, &numbers, shape, y));
    else
        assert_ok(lk_loader_enqueue_integers(loader, from, trial->samples, shape, y));
    assert_ok(lk_buffer_read(y, 0, out, got));
    lk_loader_destroy(loader);
    lk_buffer_destroy(from);
    lk_buffer_destroy(y);
    return got;
}

/* Integers and numbers of 1, 5 and 150 elements: less than a run of a work-group, and more. */
static void check_elements(struct lk_device *device, const struct trial *trial)
{
    static const struct lk_shape shapes[] = {{0}, {1, {5}}, {2, {10, 15}}};
    static int32_t integers[512 * 150];
    static float numbers[512 * 150];
    const struct lk_tiling t =
        lk_tiling_make(lk_device_info(device), trial->batch, trial->shards);
    for (int i = 0; i < 512 * 150; i++) {
        integers[i] = i * 7 % 1000 - 3;
        numbers[i] = (float)(i * 7 % 1000) - 0.25F;
    }
    for (int s = 0; s < 3; s++) {
        const int64_t each = lk_shape_count(&shapes[s]), count = t.tiles * each * t.lanes;
        const size_t out = (size_t)(count + GUARD) * 4;
        int32_t *got = load_elements(device, trial, &shapes[s], false, integers, out);
        float *real = load_elements(device, trial, &shapes[s], true, numbers, out);
        for (int64_t i = 0; i < count; i++) {
            const int64_t tile = i / t.lanes / each, e = i / t.lanes % each;
            const int64_t n = sample_at(&t, trial->samples, tile, (int)(i % t.lanes));
            assert_int_equal(got[i], n < 0 ? -1 : integers[n * each + e]);
            assert_true(real[i] == (n < 0 ? 0 : numbers[n * each + e] * 0.5F - 1));
        }
        for (int64_t i = count; i < count + GUARD; i++) {
            assert_int_equal((uint32_t)got[i], 0xeeeeeeeeu);
            assert_memory_equal(&real[i], &got[i], 4);
        }
        free(got);
        free(real);
    }
}

/* Labels -2 to 6 of 5 classes: those that are none have zeros, as lanes without a sample. */
static void check_one_hot(struct lk_device *device, const struct trial *trial)
{
    enum { CLASSES = 5 };
    static float got[8 * 512 * CLASSES + GUARD];
    const struct lk_tiling t =
        lk_tiling_make(lk_device_info(device), trial->batch, trial->shards);
    const struct lk_shape shape = {1, {CLASSES}};
    const int64_t count = t.tiles * CLASSES * t.lanes;
    const size_t out = (size_t)(count + GUARD) * sizeof *got;
    int32_t host[512];
    struct lk_label_batch labels = {.samples = trial->samples, .on = 0.875, .off = 0.03125};
    struct lk_buffer *from = NULL, *y = NULL;
    struct lk_loader *loader = NULL;
    for (int i = 0; i < trial->samples; i++)
        host[i] = i * 7 % 9 - 2;
    assert_ok(lk_loader_create(device, &t, LK_F32, NULL, &loader));
    assert_ok(lk_loader_add_one_hot(loader));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, (size_t)trial->samples * sizeof *host, &from));
    assert_ok(lk_buffer_create(device, out, &y));
    assert_ok(lk_buffer_write(from, 0, (size_t)trial->samples * sizeof *host, host));
    assert_ok(lk_buffer_enqueue_fill(y, 0x55));
    labels.buffer = from;
    assert_ok(lk_loader_enqueue_one_hot(loader, &labels, &shape, y));
    assert_ok(lk_buffer_read(y, 0, out, got));
    for (int64_t i = 0; i < count; i++) {
        const int64_t tile = i / t.lanes / CLASSES, k = i / t.lanes % CLASSES;
        const int64_t n = sample_at(&t, trial->samples, tile, (int)(i % t.lanes));
        const bool is_class = n >= 0 && host[n] >= 0 && host[n] < CLASSES;
        assert_true(got[i] == (!is_class ? 0 : host[n] == k ? 0.875F : 0.03125F));
    }
    for (int64_t i = count; i < count + GUARD; i++)
        assert_memory_equal(&got[i], "UUUU", 4);
    lk_loader_destroy(loader);
    lk_buffer_destroy(from);
    lk_buffer_destroy(y);
}

static const struct trial trials[] = {
    {512, 512, 1, {3, {1, 28, 28}}}, {511, 511, 2, {3, {1, 3, 5}}},
    {512, 300, 8, {3, {3, 2, 7}}},   {17, 17, 1, {3, {3, 5, 3}}},
    {17, 1, 2, {3, {1, 1, 1}}},      {17, 9, 8, {3, {3, 1, 33}}},
    {1, 1, 1, {3, {3, 7, 1}}},       {1, 1, 8, {3, {4, 3, 2}}},
    {64, 33, 2, {3, {2, 31, 17}}},
};

#define NORMALIZES                                                                             \
    .normalizes = true, .scale = {0.004, 0.005, 0.003, 0.002}, .shift = {-0.5, 0.25, 0, 1}

static const struct lk_transform looks[] = {
    {NORMALIZES},
    {NORMALIZES, .flips = true},
    {NORMALIZES, .reverses = true},
    {NORMALIZES, .stages = {LK_COLOUR_BRIGHTNESS}},
    {NORMALIZES, .stages = {LK_COLOUR_CONTRAST}},
    {NORMALIZES, .stages = {LK_COLOUR_SATURATION}},
    {NORMALIZES, .flips = true,
     .stages = {LK_COLOUR_BRIGHTNESS, LK_COLOUR_CONTRAST, LK_COLOUR_SATURATION}},
    {NORMALIZES, .stages = {LK_COLOUR_SATURATION, LK_COLOUR_BRIGHTNESS, LK_COLOUR_CONTRAST}},
    {NORMALIZES, .flips = true,
     .stages = {LK_COLOUR_CONTRAST, LK_COLOUR_SATURATION, LK_COLOUR_BRIGHTNESS}},
    {NORMALIZES, .flips = true, .reverses = true,
     .stages = {LK_COLOUR_CONTRAST, LK_COLOUR_SATURATION, LK_COLOUR_BRIGHTNESS}},
};

static const struct trial look_trials[] = {
    {37, 33, 2, {3, {3, 5, 7}}}, {17, 1, 1, {3, {3, 1, 1}}}, {16, 16, 4, {3, {1, 9, 4}}}};

static void check_class(const char *device_class, const char *vector)
{
    struct lk_device *device = NULL;
    setenv("LOCKSTEP_CLASS", device_class, 1);
    setenv("LOCKSTEP_VECTOR", vector, 1);
    assert_ok(lk_device_open(NULL, 0, &device));
    for (int i = 0; i < LK_COUNT(trials); i++) {
        const double shift = trials[i].shards > 1 ? -0.5 : 0, by = 1.0 / 255;
        const struct lk_transform plain = {.scale = {by, by, by, by},
                                           .shift = {shift, shift, shift, shift}};
        check_images(device, &trials[i], LK_F32, &plain);
        if (lk_device_info(device)->has_fp64)
            check_images(device, &trials[i], LK_F64, &plain);
        check_elements(device, &trials[i]);
        check_one_hot(device, &trials[i]);
    }
    for (int i = 0; i < LK_COUNT(looks); i++)
        for (int j = 0; j < LK_COUNT(look_trials); j++) {
            const bool is_all = looks[i].stages[2] != LK_COLOUR_NONE;
            struct lk_transform transform = looks[i];
            transform.channels = (int)look_trials[j].shape.dim[0];
            if (is_all || atoi(vector) == 16) /* else a program for each takes long */
                check_images(device, &look_trials[j], LK_F32, &transform);
            if (is_all && lk_device_info(device)->has_fp64)
                check_images(device, &look_trials[j], LK_F64, &transform);
        }
    lk_device_close(device);
    unsetenv("LOCKSTEP_CLASS");
    unsetenv("LOCKSTEP_VECTOR");
}

static void loads_on_cpus(void **state)
{
    (void)state;
    check_class("cpu", "16");
    check_class("cpu", "8");
    check_class("cpu", "4");
}

/* Whatever kind of device makes it, whatever lies beside it: a sample has the same bits. */
static void looks_the_same_everywhere(void **state)
{
    (void)state;
    static const char *const classes[][2] = {{"cpu", "16"}, {"cpu", "4"}, {"gpu", "16"}};
    const struct trial trial = look_trials[0];
    float *first = NULL;
    for (int i = 0; i < LK_COUNT(classes); i++) {
        struct lk_device *device = NULL;
        setenv("LOCKSTEP_CLASS", classes[i][0], 1);
        setenv("LOCKSTEP_VECTOR", classes[i][1], 1);
        assert_ok(lk_device_open(NULL, 0, &device));
        struct lk_transform transform = looks[6];
        transform.channels = 3;
        const struct lk_tiling t =
            lk_tiling_make(lk_device_info(device), trial.batch, trial.shards);
        const int64_t count = lk_shape_count(&trial.shape);
        const struct images images = make_images(&trial, &transform);
        float *got = (float *)(void *)load_images(device, &trial, LK_F32, &images,
                                                  lk_tiled_bytes(&t, &trial.shape, LK_F32));
        float *by_sample = calloc((size_t)(trial.samples * count), sizeof *by_sample);
        assert_non_null(by_sample);
        for (int64_t tile = 0; tile < t.tiles; tile++)
            for (int lane = 0; lane < t.lanes; lane++) {
                const int64_t n = sample_at(&t, trial.samples, tile, lane);
                for (int64_t e = 0; n >= 0 && e < count; e++)
                    by_sample[n * count + e] = got[(tile * count + e) * t.lanes + lane];
            }
        if (first)
            assert_memory_equal(first, by_sample,
                                (size_t)(trial.samples * count) * sizeof *first);
        free(got);
        free(images.memory);
        lk_device_close(device);
        if (first)
            free(by_sample);
        else
            first = by_sample;
    }
    free(first);
    unsetenv("LOCKSTEP_CLASS");
    unsetenv("LOCKSTEP_VECTOR");
}

static void loads_on_gpus(void **state)
{
    (void)state;
    check_class("gpu", "16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_on_cpus),
        cmocka_unit_test(loads_on_gpus),
        cmocka_unit_test(looks_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
