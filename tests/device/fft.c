/* Transforms against the plain sum in double, there and back. */
#include "device/library/fft.h"
#include "rig.h"

#include <math.h>

/* Any values will do; these have no symmetry. */
static double pixel(int64_t i)
{
    return (double)((i * 7919 + i * i % 131) % 257) / 128.0 - 1.0;
}

static void put(void *to, int real_bytes, int64_t i, double value)
{
    if (real_bytes == 8)
        ((double *)to)[i] = value;
    else
        ((float *)to)[i] = (float)value;
}

static double get(const void *from, int real_bytes, int64_t i)
{
    return real_bytes == 8 ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

static double spectrum_error(const void *spectrum, int real_bytes, int h, int w, int batch)
{
    const double turn = 2 * 3.14159265358979323846;
    double worst = 0;
    for (int b = 0; b < batch; b++)
        for (int u = 0; u < h; u++)
            for (int v = 0; v < w / 2 + 1; v++) {
                double re = 0, im = 0;
                for (int i = 0; i < h * w; i++) {
                    const double angle =
                        turn * ((double)u * (i / w) / h + (double)v * (i % w) / w);
                    re += pixel((int64_t)b * h * w + i) * cos(angle);
                    im -= pixel((int64_t)b * h * w + i) * sin(angle);
                }
                const int64_t at = 2 * (((int64_t)b * h + u) * (w / 2 + 1) + v);
                worst = fmax(worst, fabs(get(spectrum, real_bytes, at) - re));
                worst = fmax(worst, fabs(get(spectrum, real_bytes, at + 1) - im));
            }
    return worst;
}

static void check_size(struct lk_device *device, int real_bytes, int h, int w, int batch)
{
    struct lk_fft *fft = NULL;
    struct lk_buffer *image = NULL, *spectrum = NULL;
    const double tolerance = (real_bytes == 8 ? 1e-12 : 1e-5) * h * w;
    assert_ok(lk_fft_create(device, real_bytes, h, w, batch, &fft));
    const size_t image_bytes = (size_t)(lk_fft_image_count(fft) * real_bytes);
    const size_t spectrum_bytes = (size_t)(lk_fft_spectrum_count(fft) * real_bytes);
    char *values = malloc(image_bytes), *found = malloc(spectrum_bytes);
    assert_ok(lk_buffer_create(device, image_bytes, &image));
    assert_ok(lk_buffer_create(device, spectrum_bytes, &spectrum));
    for (int64_t i = 0; i < lk_fft_image_count(fft); i++)
        put(values, real_bytes, i, pixel(i));
    assert_ok(lk_buffer_write(image, 0, image_bytes, values));
    assert_ok(lk_fft_enqueue_forward(fft, image, spectrum));
    assert_ok(lk_buffer_read(spectrum, 0, spectrum_bytes, found));
    assert_true(spectrum_error(found, real_bytes, h, w, batch) <= tolerance);
    assert_ok(lk_buffer_enqueue_fill(image, 0xff));
    assert_ok(lk_fft_enqueue_inverse(fft, spectrum, image));
    assert_ok(lk_buffer_read(image, 0, image_bytes, values));
    for (int64_t i = 0; i < lk_fft_image_count(fft); i++)
        assert_true(fabs(get(values, real_bytes, i) - pixel(i)) <= tolerance);
    assert_fails(lk_fft_enqueue_forward(fft, image, image), LK_E_ARGUMENT, "in a buffer of");
    free(values);
    free(found);
    lk_buffer_destroy(image);
    lk_buffer_destroy(spectrum);
    lk_fft_destroy(fft);
}

static void transforms_there_and_back(void **state)
{
    (void)state;
    struct lk_device *device = NULL;
    assert_ok(lk_device_open(NULL, 0, &device));
    check_size(device, 4, 12, 14, 3);
    if (lk_device_info(device)->has_fp64)
        check_size(device, 8, 8, 15, 1);
    lk_device_close(device);
}

static void refuses_sizes(void **state)
{
    (void)state;
    struct lk_device *device = NULL;
    struct lk_fft *fft = NULL;
    assert_ok(lk_device_open(NULL, 0, &device));
    assert_fails(lk_fft_create(device, 4, 17, 16, 1, &fft), LK_E_ARGUMENT, "17x16");
    assert_fails(lk_fft_create(device, 4, 16, 0, 1, &fft), LK_E_ARGUMENT, "16x0");
    assert_fails(lk_fft_create(device, 4, 8192, 16, 1, &fft), LK_E_ARGUMENT, "4096");
    assert_null(fft);
    lk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms_there_and_back),
        cmocka_unit_test(refuses_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
