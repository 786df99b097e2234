/* Every optimizer against PyTorch in double, on both kernel classes, in float and in double. */
#include "optim/optimizer.h"
#include "device/rig.h"

#include <math.h>

#include "golden.h"

enum { SENTINELS = 32 };

/* The formulas of golden.py; exact in float. */
static double weight_of(int64_t i)
{
    return (double)((i * 53 + 17) % 257 - 128) / 128;
}

static double gradient_of(int64_t i, int64_t step)
{
    return (double)((i * 37 + step * step * 101 + i * step * 13) % 257 - 120) / 128;
}

static double get(const void *reals, enum lk_dtype real, int64_t i)
{
    return real == LK_F64 ? ((const double *)reals)[i] : (double)((const float *)reals)[i];
}

static void set(void *reals, enum lk_dtype real, int64_t i, double x)
{
    if (real == LK_F64)
        ((double *)reals)[i] = x;
    else
        ((float *)reals)[i] = (float)x;
}

/* One optimizer at work on `count` weights, the golden ones over and over. */
struct bench {
    struct lk_device *device;
    enum lk_dtype real;
    int64_t count, padded;
    size_t bytes; /* of w and g: padded reals and sentinels behind them */
    struct lk_optimizer *optimizer;
    struct lk_buffer *w, *g;
    void *host;
};

static void bench_open(struct bench *b, struct lk_device *device, enum lk_dtype real,
                       const struct golden *golden, int64_t count)
{
    const size_t size = real == LK_F64 ? 8 : 4;
    *b = (struct bench){.device = device, .real = real, .count = count};
    b->padded = (count + 31) / 32 * 32;
    b->bytes = (size_t)(b->padded + SENTINELS) * size;
    b->host = calloc(1, b->bytes);
    const struct lk_optimizer_config config = {.device = device,
                                               .real = real,
                                               .kind = golden->kind,
                                               .options = golden->options,
                                               .count = count};
    assert_ok(lk_optimizer_create(&config, &b->optimizer));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, b->bytes, &b->w));
    assert_ok(lk_buffer_create(device, b->bytes, &b->g));
    for (int64_t i = 0; i < count; i++)
        set(b->host, real, i, weight_of(i % ELEMENTS));
    for (int i = 0; i < SENTINELS; i++)
        set(b->host, real, b->padded + i, 77);
    assert_ok(lk_buffer_write(b->w, 0, b->bytes, b->host));
}

static void bench_close(struct bench *b)
{
    lk_buffer_destroy(b->w);
    lk_buffer_destroy(b->g);
    lk_optimizer_destroy(b->optimizer);
    free(b->host);
}

/* Gradients are four times too large, and scaled by a quarter. */
static void bench_step(struct bench *b, int64_t step)
{
    const double lr = lk_optimizer_rate(b->optimizer) * (double)(200 - step) / 200;
    memset(b->host, 0, b->bytes);
    for (int64_t i = 0; i < b->count; i++)
        set(b->host, b->real, i, 4 * gradient_of(i % ELEMENTS, step));
    assert_ok(lk_buffer_write(b->g, 0, b->bytes, b->host));
    assert_ok(lk_optimizer_enqueue(b->optimizer, b->w, b->g, 0.25, lr, step));
}

static void expect(struct bench *b, const struct golden *golden, int shown)
{
    const double tolerance = b->real == LK_F64 ? 1e-13 : 2e-5;
    assert_ok(lk_buffer_read(b->w, 0, b->bytes, b->host));
    for (int64_t i = 0; i < b->count; i++) {
        const double w = get(b->host, b->real, i), wanted = golden->w[shown][i % ELEMENTS];
        if (!(fabs(w - wanted) <= tolerance))
            fail_msg("%s '%s', %lld of %lld after %d steps: %.17g, expected %.17g",
                     golden->kind, golden->options, (long long)i, (long long)b->count,
                     shown_steps[shown], w, wanted);
    }
    for (int64_t i = b->count; i < b->padded; i++)
        assert_true(get(b->host, b->real, i) == 0);
    for (int i = 0; i < SENTINELS; i++)
        assert_true(get(b->host, b->real, b->padded + i) == 77);
}

static void equals_pytorch(void **state)
{
    (void)state;
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        for (enum lk_dtype real = LK_F32; real <= LK_F64; real++)
            for (size_t k = 0; k < sizeof goldens / sizeof goldens[0]; k++) {
                struct bench b;
                if (real == LK_F64 && !lk_device_info(device)->has_fp64)
                    continue;
                bench_open(&b, device, real, &goldens[k], k % 2 ? 37 : 5001);
                for (int step = 1, shown = 0; step <= STEPS; step++) {
                    bench_step(&b, step);
                    if (step == shown_steps[shown])
                        expect(&b, &goldens[k], shown++);
                }
                bench_close(&b);
            }
        lk_device_close(device);
    }
}

static void handles_every_count(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 15, 31, 32, 33, 127, 4095, 4096, 4097};
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
            struct bench b;
            const struct golden *golden = &goldens[n % (sizeof goldens / sizeof goldens[0])];
            bench_open(&b, device, LK_F32, golden, counts[n]);
            bench_step(&b, 1);
            expect(&b, golden, 0);
            bench_close(&b);
        }
        lk_device_close(device);
    }
}

/* The bytes of weights and state after ten steps. */
static char *outcome(const char *class, enum lk_dtype real, const struct golden *golden,
                     size_t *bytes)
{
    struct lk_device *device = open_class(class);
    struct bench b;
    bench_open(&b, device, real, golden, 1001);
    for (int step = 1; step <= 10; step++)
        bench_step(&b, step);
    const struct lk_optimizer_info *info = lk_optimizer_info(b.optimizer);
    const size_t state_bytes = (size_t)(info->arrays * info->stride) * (real == LK_F64 ? 8 : 4);
    *bytes = b.bytes + state_bytes;
    char *out = malloc(*bytes);
    assert_ok(lk_buffer_read(b.w, 0, b.bytes, out));
    assert_ok(lk_buffer_read(info->state, 0, state_bytes, out + b.bytes));
    bench_close(&b);
    lk_device_close(device);
    return out;
}

/* Updates are elementwise and contraction is off: one device gives the same bits whichever way
 * its work-items are laid out. */
static void gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof goldens / sizeof goldens[0]; k++) {
        size_t bytes, more;
        char *first = outcome("cpu", LK_F32, &goldens[k], &bytes);
        char *again = outcome("cpu", LK_F32, &goldens[k], &more);
        assert_int_equal(bytes, more);
        assert_memory_equal(first, again, bytes);
        free(again);
        again = outcome("gpu", LK_F32, &goldens[k], &more);
        assert_int_equal(bytes, more);
        assert_memory_equal(first, again, bytes);
        free(first);
        free(again);
    }
}

/* A run that is cut after 50 steps and goes on from a copy of its state. */
static void goes_on_from_a_checkpoint(void **state)
{
    (void)state;
    struct lk_device *device = open_class("cpu");
    for (size_t k = 0; k < sizeof goldens / sizeof goldens[0]; k++) {
        struct bench a, b;
        char text[512];
        bench_open(&a, device, LK_F32, &goldens[k], 37);
        for (int step = 1; step <= 50; step++)
            bench_step(&a, step);
        const struct lk_optimizer_info *info = lk_optimizer_info(a.optimizer);
        assert_true(
            lk_options_print(info->kind->options, info->options, true, text, sizeof text));
        const struct golden same = {.kind = info->kind->name, .options = text};
        bench_open(&b, device, LK_F32, &same, 37);
        assert_ok(lk_buffer_enqueue_copy(a.w, b.w, a.bytes));
        assert_ok(lk_buffer_enqueue_copy(info->state, lk_optimizer_info(b.optimizer)->state,
                                         lk_buffer_bytes(info->state)));
        for (int step = 51; step <= STEPS; step++)
            bench_step(&b, step);
        expect(&b, &goldens[k], SHOWN - 1);
        bench_close(&a);
        bench_close(&b);
    }
    lk_device_close(device);
}

static void names_its_state(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *options, *names;
    } cases[] = {
        {"sgd", "", ""},
        {"sgd", "momentum=0.9", "m"},
        {"rmsprop", NULL, "v"},
        {"rmsprop", "centered=true momentum=0.1", "vam"},
        {"rmsprop", "momentum=0.1", "vm"},
        {"adam", "", "mv"},
        {"adamw", "", "mv"},
    };
    struct lk_device *device = open_class("cpu");
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct lk_optimizer *optimizer;
        const struct lk_optimizer_config config = {.device = device,
                                                   .real = LK_F32,
                                                   .kind = cases[k].kind,
                                                   .options = cases[k].options,
                                                   .count = 33};
        assert_ok(lk_optimizer_create(&config, &optimizer));
        const struct lk_optimizer_info *info = lk_optimizer_info(optimizer);
        assert_int_equal(info->arrays, strlen(cases[k].names));
        assert_int_equal(info->stride, 64);
        assert_true(lk_buffer_bytes(info->state) >= (size_t)info->arrays * 64 * 4);
        assert_null(info->scaling);
        for (int i = 0; i < info->arrays; i++)
            assert_int_equal(info->array_names[i][0], cases[k].names[i]);
        lk_optimizer_destroy(optimizer);
    }
    lk_device_close(device);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *options, *said;
        int64_t count;
        enum lk_dtype real;
    } cases[] = {
        {"adamm", "", "unknown optimizer 'adamm'; did you mean 'adam'?", 1, LK_F32},
        {"lbfgs", "", "unknown optimizer 'lbfgs'", 1, LK_F32},
        {"adam", "beta1=0.9",
         "optimizer 'adam': unknown option 'beta1'; did you mean 'beta_1'?", 1, LK_F32},
        {"adam", "beta_1=1", "not in 0..0.9999999", 1, LK_F32},
        {"adam", "epsilon=0", "'epsilon': 0 is not in", 1, LK_F32},
        {"sgd", "lr=-1", "'lr': -1 is not in", 1, LK_F32},
        {"sgd", "", "-1 parameters", -1, LK_F32},
        {"sgd", "", "expected 0..", INT64_MAX, LK_F32},
        {"sgd", "", "float32 or float64", 1, LK_I32},
    };
    struct lk_device *device = open_class("cpu");
    struct lk_optimizer *optimizer = NULL;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        lk_error_clear();
        const struct lk_optimizer_config config = {.device = device,
                                                   .real = cases[k].real,
                                                   .kind = cases[k].kind,
                                                   .options = cases[k].options,
                                                   .count = cases[k].count};
        assert_int_equal(lk_optimizer_create(&config, &optimizer), LK_E_ARGUMENT);
        if (!strstr(lk_error_text(), cases[k].said))
            fail_msg("'%s' '%s' gave '%s'", cases[k].kind, cases[k].options, lk_error_text());
        assert_null(optimizer);
    }
    lk_error_clear();
    lk_device_close(device);
}

static void refuses_to_update(void **state)
{
    (void)state;
    struct lk_device *device = open_class("cpu");
    struct bench b;
    struct lk_buffer *small;
    bench_open(&b, device, LK_F32, &goldens[0], 33);
    assert_ok(lk_buffer_create(device, 63 * 4, &small));
    assert_int_equal(lk_optimizer_enqueue(b.optimizer, small, b.g, 1, 1, 1), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "252 bytes"));
    assert_int_equal(lk_optimizer_enqueue(b.optimizer, b.w, small, 1, 1, 1), LK_E_ARGUMENT);
    lk_error_clear();
    assert_int_equal(lk_optimizer_enqueue(b.optimizer, b.w, b.g, 1, 1, 0), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "the first is 1"));
    lk_error_clear();
    lk_buffer_destroy(small);
    bench_close(&b);
    lk_device_close(device);
}

/* Tracked elements fall by their gradient whatever the rate, others as if there were none; in
 * whole, and in parts that begin on either side. */
static void subtracts_from_what_is_tracked(void **state)
{
    (void)state;
    enum { COUNT = 64, TRACKED = 37, ALL = 128 };
    static const struct lk_update parts[] = {
        {.first = 0, .count = 32}, {.first = 32, .count = 64}, {.first = 96, .count = 5}};
    for (int k = 0; k < 4; k++) {
        struct lk_device *device = open_class(k % 2 ? "gpu" : "cpu");
        struct lk_optimizer *optimizer = NULL;
        struct lk_buffer *w, *g;
        float weights[ALL] = {0}, gradient[ALL] = {0};
        for (int i = 0; i < COUNT + TRACKED; i++) {
            weights[i] = (float)(i % 13);
            gradient[i] = (float)(i % 7 - 3);
        }
        const struct lk_optimizer_config config = {
            .device = device, .real = LK_F32, .kind = "sgd", .count = COUNT};
        assert_ok(lk_optimizer_create(&config, &optimizer));
        assert_ok(lk_optimizer_track(optimizer, device, TRACKED));
        assert_int_equal(lk_optimizer_track(optimizer, device, TRACKED), LK_E_ARGUMENT);
        lk_error_clear();
        assert_ok(lk_device_build(device));
        assert_ok(lk_buffer_create(device, sizeof weights, &w));
        assert_ok(lk_buffer_create(device, sizeof gradient, &g));
        assert_ok(lk_buffer_write(w, 0, sizeof weights, weights));
        for (int i = 0; i < (k < 2 ? 1 : 3); i++) {
            struct lk_update part = parts[i];
            part.scale = 0.5;
            part.lr = 2;
            part.step = 1;
            assert_ok(lk_buffer_write(g, 0, sizeof(float) * (size_t)(ALL - part.first),
                                      gradient + part.first));
            if (k < 2)
                assert_ok(lk_optimizer_enqueue(optimizer, w, g, 0.5, 2, 1));
            else
                assert_ok(lk_optimizer_enqueue_part(optimizer, w, g, &part));
        }
        assert_ok(lk_buffer_read(w, 0, sizeof weights, weights));
        for (int i = 0; i < ALL; i++) {
            const float rate = i < COUNT ? 1.0f : 0.5f;
            const float before = i < COUNT + TRACKED ? (float)(i % 13) : 0;
            assert_true(weights[i] == before - rate * gradient[i]);
        }
        lk_buffer_destroy(w);
        lk_buffer_destroy(g);
        lk_optimizer_destroy(optimizer);
        lk_device_close(device);
    }
}

static void powers(void **state)
{
    (void)state;
    assert_true(lk_optimizer_power(0.999, 0) == 1);
    assert_true(lk_optimizer_power(0.5, 60) == 0x1p-60);
    assert_true(lk_optimizer_power(3, 13) == 1594323);
    assert_true(lk_optimizer_power(0.9, INT64_MAX) == 0);
    for (int i = 1; i < 20000; i += 7)
        assert_true(fabs(lk_optimizer_power(0.999, i) / pow(0.999, i) - 1) < 1e-11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(handles_every_count),
        cmocka_unit_test(gives_the_same_bits),
        cmocka_unit_test(goes_on_from_a_checkpoint),
        cmocka_unit_test(names_its_state),
        cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_to_update),
        cmocka_unit_test(subtracts_from_what_is_tracked),
        cmocka_unit_test(powers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
