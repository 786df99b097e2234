/* Factors of parameters, clipping and averages of weights against PyTorch in double, on both
 * kernel classes, in float and in double; gradients in one piece and in several. */
#include "device/rig.h"
#include "optim/optimizer.h"

#include <math.h>

#include "adjusted.h"

enum { PADDED = 320, PARTS_OF_MANY = 3 };

static const struct lk_update parts[PARTS_OF_MANY] = {
    {.first = 256, .count = MANY - 256}, {.first = 128, .count = 128}, {.count = 128}};

static double weight_of(int i)
{
    return (double)((i * 53 + 17) % 257 - 128) / 128;
}

static double gradient_of(int i, int step)
{
    return (double)((i * 37 + step * step * 101 + i * step * 13) % 257 - 120) / 128;
}

struct reals {
    double f64[PADDED];
    float f32[PADDED];
};

static void write_reals(struct lk_buffer *buffer, enum lk_dtype real, struct reals *r)
{
    for (int i = 0; i < PADDED; i++)
        r->f32[i] = (float)r->f64[i];
    if (real == LK_F64)
        assert_ok(lk_buffer_write(buffer, 0, sizeof r->f64, r->f64));
    else
        assert_ok(lk_buffer_write(buffer, 0, sizeof r->f32, r->f32));
}

static void read_reals(struct lk_buffer *buffer, size_t first, enum lk_dtype real,
                       struct reals *r)
{
    if (real == LK_F64) {
        assert_ok(lk_buffer_read(buffer, first * sizeof(double), sizeof r->f64, r->f64));
        return;
    }
    assert_ok(lk_buffer_read(buffer, first * sizeof(float), sizeof r->f32, r->f32));
    for (int i = 0; i < PADDED; i++)
        r->f64[i] = (double)r->f32[i];
}

struct bench {
    enum lk_dtype real;
    struct lk_optimizer *optimizer;
    struct lk_buffer *w, *g[PARTS_OF_MANY];
    struct reals host;
};

static void bench_open(struct bench *b, struct lk_device *device, enum lk_dtype real,
                       const struct adjusted *golden)
{
    struct lk_param_factors factors[PARTS_OF_MANY];
    const size_t bytes = PADDED * (real == LK_F64 ? sizeof(double) : sizeof(float));
    int count = 0;
    for (int i = 0; i < PARTS_OF_MANY; i++) {
        const double *of = golden->factors[i];
        if (of[0] != 1 || of[1] != 1)
            factors[count++] = (struct lk_param_factors){.first = i * 128,
                                                         .count = i < 2 ? 128 : MANY - 256,
                                                         .rate = of[0],
                                                         .decay = of[1]};
    }
    const struct lk_optimizer_config config = {.device = device,
                                               .real = real,
                                               .kind = golden->kind,
                                               .options = golden->options,
                                               .count = MANY,
                                               .factors = factors,
                                               .factor_count = count,
                                               .clip = {golden->clip_value, golden->clip_norm},
                                               .ema = golden->ema};
    *b = (struct bench){.real = real};
    assert_ok(lk_optimizer_create(&config, &b->optimizer));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, bytes, &b->w));
    for (int i = 0; i < PARTS_OF_MANY; i++)
        assert_ok(lk_buffer_create(device, bytes, &b->g[i]));
    for (int i = 0; i < MANY; i++)
        b->host.f64[i] = weight_of(i);
    write_reals(b->w, real, &b->host);
}

static void bench_close(struct bench *b)
{
    lk_buffer_destroy(b->w);
    for (int i = 0; i < PARTS_OF_MANY; i++)
        lk_buffer_destroy(b->g[i]);
    lk_optimizer_destroy(b->optimizer);
}

/* The gradient from element `first` on, four times too large; later ones are scaled by a
 * quarter. */
static void put_gradient(struct bench *b, struct lk_buffer *g, int first, int count, int step)
{
    memset(&b->host, 0, sizeof b->host);
    for (int i = 0; i < count; i++)
        b->host.f64[i] = 4 * gradient_of(first + i, step);
    write_reals(g, b->real, &b->host);
}

static void step_whole(struct bench *b, double lr, int step)
{
    put_gradient(b, b->g[0], 0, MANY, step);
    assert_ok(lk_optimizer_enqueue(b->optimizer, b->w, b->g[0], 0.25, lr, step));
}

/* As a device does that shares a batch with others: bucket by bucket, the last one first. */
static void step_in_parts(struct bench *b, double lr, int step)
{
    for (int i = 0; i < PARTS_OF_MANY; i++) {
        put_gradient(b, b->g[i], (int)parts[i].first, (int)parts[i].count, step);
        assert_ok(
            lk_optimizer_enqueue_check(b->optimizer, b->g[i], parts[i].first, parts[i].count));
    }
    assert_ok(lk_optimizer_enqueue_decision(b->optimizer, 0.25));
    for (int i = 0; i < PARTS_OF_MANY; i++) {
        struct lk_update update = parts[i];
        update.scale = 0.25;
        update.lr = lr;
        update.step = step;
        assert_ok(lk_optimizer_enqueue_part(b->optimizer, b->w, b->g[i], &update));
    }
}

static void bench_step(struct bench *b, bool in_parts, int step)
{
    const double lr = lk_optimizer_rate(b->optimizer) * (double)(200 - step) / 200;
    (in_parts ? step_in_parts : step_whole)(b, lr, step);
}

static void compare(const struct bench *b, const struct adjusted *golden, const char *what,
                    const double *wanted, int shown)
{
    const double tolerance = b->real == LK_F64 ? 1e-13 : 3e-5;
    for (int i = 0; i < SHOWN_OF_MANY; i++)
        if (!(fabs(b->host.f64[shown_of_many[i]] - wanted[i]) <= tolerance))
            fail_msg("%s '%s' clip %g %g ema %g: %s %d after %d steps: %.17g, expected %.17g",
                     golden->kind, golden->options, golden->clip_value, golden->clip_norm,
                     golden->ema, what, shown_of_many[i], shown_steps[shown],
                     b->host.f64[shown_of_many[i]], wanted[i]);
}

static void expect(struct bench *b, const struct adjusted *golden, int shown)
{
    const struct lk_optimizer_info *info = lk_optimizer_info(b->optimizer);
    read_reals(b->w, 0, b->real, &b->host);
    compare(b, golden, "weight", golden->w[shown], shown);
    if (!(golden->ema > 0))
        return;
    assert_string_equal(info->array_names[info->arrays - 1], LK_EMA_ARRAY);
    read_reals(info->state, (size_t)(info->stride * (info->arrays - 1)), b->real, &b->host);
    compare(b, golden, "average", golden->w[shown] + SHOWN_OF_MANY, shown);
}

static void equals_pytorch(void **state)
{
    (void)state;
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        for (enum lk_dtype real = LK_F32; real <= LK_F64; real++)
            for (size_t k = 0; k < sizeof adjusted / sizeof adjusted[0]; k++) {
                struct bench b;
                if (real == LK_F64 && !lk_device_info(device)->has_fp64)
                    continue;
                bench_open(&b, device, real, &adjusted[k]);
                for (int step = 1, shown = 0; step <= STEPS; step++) {
                    bench_step(&b, k % 2, step);
                    if (step == shown_steps[shown])
                        expect(&b, &adjusted[k], shown++);
                }
                bench_close(&b);
            }
        lk_device_close(device);
    }
}

/* The weights after ten steps. */
static void outcome(const char *class, const struct adjusted *golden, bool in_parts, void *to)
{
    struct lk_device *device = open_class(class);
    struct bench b;
    bench_open(&b, device, LK_F32, golden);
    for (int step = 1; step <= 10; step++)
        bench_step(&b, in_parts, step);
    assert_ok(lk_buffer_read(b.w, 0, PADDED * sizeof(float), to));
    bench_close(&b);
    lk_device_close(device);
}

/* However the gradient is cut, and whichever way work-items are laid out. */
static void gives_the_same_bits(void **state)
{
    (void)state;
    float first[PADDED], again[PADDED];
    for (size_t k = 0; k < sizeof adjusted / sizeof adjusted[0]; k++) {
        outcome("cpu", &adjusted[k], false, first);
        outcome("cpu", &adjusted[k], true, again);
        assert_memory_equal(first, again, sizeof first);
        outcome("gpu", &adjusted[k], false, again);
        assert_memory_equal(first, again, sizeof first);
        outcome("gpu", &adjusted[k], true, again);
        assert_memory_equal(first, again, sizeof first);
    }
}

/* Limits that nothing reaches, and factors of 1, change no bit. */
static void leaves_small_gradients_alone(void **state)
{
    (void)state;
    static const char *const options[][2] = {
        {"sgd", "momentum=0.9 weight_decay=0.03"}, {"adamw", ""}, {"rmsprop", ""}};
    for (int k = 0; k < 3; k++) {
        struct adjusted plain = {.kind = options[k][0], .options = options[k][1]};
        float first[PADDED], again[PADDED];
        for (int i = 0; i < PARTS_OF_MANY; i++)
            plain.factors[i][0] = plain.factors[i][1] = 1;
        outcome("cpu", &plain, false, first);
        plain.clip_norm = 1000;
        plain.clip_value = 50;
        plain.factors[2][1] = k == 2 ? 7 : 1; /* RMSprop has no decay */
        outcome("cpu", &plain, false, again);
        assert_memory_equal(first, again, sizeof first);
    }
}

/* A gradient that is no number stays none, so that divergence is seen. */
static void lets_no_number_pass(void **state)
{
    (void)state;
    static const double clips[][2] = {{0.5, 0}, {0, 0.5}};
    for (int k = 0; k < 4; k++) {
        struct lk_device *device = open_class(classes[k / 2]);
        struct adjusted golden = {.kind = "sgd", .options = ""};
        struct bench b;
        for (int i = 0; i < PARTS_OF_MANY; i++)
            golden.factors[i][0] = golden.factors[i][1] = 1;
        golden.clip_value = clips[k % 2][0];
        golden.clip_norm = clips[k % 2][1];
        bench_open(&b, device, LK_F32, &golden);
        b.host.f64[7] = NAN;
        write_reals(b.g[0], LK_F32, &b.host);
        assert_ok(lk_optimizer_enqueue(b.optimizer, b.w, b.g[0], 1, 1, 1));
        read_reals(b.w, 0, LK_F32, &b.host);
        assert_true(isnan(b.host.f64[7]));
        bench_close(&b);
        lk_device_close(device);
    }
}

/* The gradient of l1 sum |w| + l2 sum w^2 is added where a range asks for it, once, whatever
 * the gradient was clipped to. */
static void adds_penalties(void **state)
{
    (void)state;
    enum { OFTEN = 3 };
    const double rate = 0.25, l1 = 0.125, l2 = 0.5, most = 0.0625;
    const struct lk_param_factors factors = {
        .first = 128, .count = 128, .rate = 1, .decay = 1, .l1 = l1, .l2 = l2};
    for (int k = 0; k < 2; k++) {
        struct lk_device *device = open_class(classes[k]);
        struct adjusted golden = {.kind = "sgd", .options = ""};
        struct bench b;
        for (int i = 0; i < PARTS_OF_MANY; i++)
            golden.factors[i][0] = golden.factors[i][1] = 1;
        bench_open(&b, device, LK_F64, &golden);
        lk_optimizer_destroy(b.optimizer);
        const struct lk_optimizer_config config = {.device = device,
                                                   .real = LK_F64,
                                                   .kind = "sgd",
                                                   .count = MANY,
                                                   .factors = &factors,
                                                   .factor_count = 1,
                                                   .clip = {.value = most}};
        assert_ok(lk_optimizer_create(&config, &b.optimizer));
        assert_ok(lk_device_build(device));
        for (int step = 1; step <= OFTEN; step++)
            step_whole(&b, rate, step);
        read_reals(b.w, 0, LK_F64, &b.host);
        for (int i = 0; i < MANY; i++) {
            double w = weight_of(i);
            for (int step = 1; step <= OFTEN; step++) {
                const double g = fmax(-most, fmin(most, gradient_of(i, step)));
                const double sign = w > 0 ? 1 : w < 0 ? -1 : 0;
                w -= rate * (g + (i / 128 == 1 ? l1 * sign + 2 * l2 * w : 0));
            }
            assert_true(fabs(b.host.f64[i] - w) < 1e-12);
        }
        bench_close(&b);
        lk_device_close(device);
    }
}

/* The norm of so many numbers that it takes several rounds of sums. */
static void adds_many(void **state)
{
    (void)state;
    enum { COUNT = 128 * 128 * 2 + 128 + 5, ROOM = COUNT + 27 };
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        const struct lk_optimizer_config config = {.device = device,
                                                   .real = LK_F32,
                                                   .kind = "sgd",
                                                   .count = COUNT,
                                                   .clip = {.norm = 1}};
        struct lk_optimizer *optimizer = NULL;
        struct lk_buffer *w = NULL, *g = NULL;
        float *numbers = calloc(ROOM, sizeof *numbers);
        double sum = 0;
        assert_ok(lk_optimizer_create(&config, &optimizer));
        assert_ok(lk_device_build(device));
        assert_ok(lk_buffer_create(device, ROOM * sizeof *numbers, &w));
        assert_ok(lk_buffer_create(device, ROOM * sizeof *numbers, &g));
        assert_ok(lk_buffer_write(w, 0, ROOM * sizeof *numbers, numbers));
        for (int i = 0; i < COUNT; i++) {
            numbers[i] = (float)gradient_of(i % 1000, i / 1000);
            sum += (double)numbers[i] * (double)numbers[i];
        }
        const double expected = -(double)numbers[COUNT - 1] / (sqrt(sum) + 1e-6);
        assert_ok(lk_buffer_write(g, 0, ROOM * sizeof *numbers, numbers));
        assert_ok(lk_optimizer_enqueue(optimizer, w, g, 1, 1, 1));
        assert_ok(lk_buffer_read(w, 0, ROOM * sizeof *numbers, numbers));
        assert_true(fabs((double)numbers[COUNT - 1] / expected - 1) < 1e-6);
        free(numbers);
        lk_buffer_destroy(w);
        lk_buffer_destroy(g);
        lk_optimizer_destroy(optimizer);
        lk_device_close(device);
    }
}

static void swaps_weights_and_averages(void **state)
{
    (void)state;
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        const struct adjusted *golden = &adjusted[1];
        const struct lk_optimizer_info *info;
        struct bench b;
        bench_open(&b, device, LK_F32, golden);
        for (int step = 1; step <= STEPS; step++)
            bench_step(&b, false, step);
        assert_ok(lk_optimizer_enqueue_swap(b.optimizer, b.w));
        read_reals(b.w, 0, LK_F32, &b.host);
        compare(&b, golden, "average", golden->w[SHOWN - 1] + SHOWN_OF_MANY, SHOWN - 1);
        info = lk_optimizer_info(b.optimizer);
        read_reals(info->state, (size_t)(info->stride * (info->arrays - 1)), LK_F32, &b.host);
        compare(&b, golden, "weight", golden->w[SHOWN - 1], SHOWN - 1);
        assert_ok(lk_optimizer_enqueue_swap(b.optimizer, b.w));
        expect(&b, golden, SHOWN - 1);
        bench_close(&b);
        lk_device_close(device);
    }
}

static void refuses(void **state)
{
    (void)state;
    struct lk_device *device = open_class("cpu");
    const struct {
        struct lk_param_factors factors;
        struct lk_clip clip;
        double ema;
        const char *said;
    } cases[] = {
        {{64, 1, 1, 1, 0, 0}, {0, 0}, 0, "factors of 1 parameters from 64 on, of 300"},
        {{256, 45, 1, 1, 0, 0}, {0, 0}, 0, "factors of 45 parameters from 256 on, of 300"},
        {{0, 1, -1, 1, 0, 0}, {0, 0}, 0, "factors -1 and 1: expected numbers of at least 0"},
        {{0, 1, 1, NAN, 0, 0}, {0, 0}, 0, "factors 1 and nan"},
        {{0, 1, 1, 1, 0, -1}, {0, 0}, 0, "penalties 0 and -1"},
        {{0, 1, 1, 1, 0, 0}, {-1, 0}, 0, "clipped by value -1 and norm 0"},
        {{0, 1, 1, 1, 0, 0}, {0, INFINITY}, 0, "clipped by value 0 and norm inf"},
        {{0, 1, 1, 1, 0, 0}, {0, 0}, 1, "an average of weights that keeps 1: expected 0 to 1"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct lk_optimizer *optimizer = NULL;
        const struct lk_optimizer_config config = {.device = device,
                                                   .real = LK_F32,
                                                   .kind = "sgd",
                                                   .count = MANY,
                                                   .factors = &cases[k].factors,
                                                   .factor_count = 1,
                                                   .clip = cases[k].clip,
                                                   .ema = cases[k].ema};
        lk_error_clear();
        assert_int_equal(lk_optimizer_create(&config, &optimizer), LK_E_ARGUMENT);
        if (!strstr(lk_error_text(), cases[k].said))
            fail_msg("'%s' does not say '%s'", lk_error_text(), cases[k].said);
    }
    lk_error_clear();
    lk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gives_the_same_bits),
        cmocka_unit_test(leaves_small_gradients_alone),
        cmocka_unit_test(lets_no_number_pass),
        cmocka_unit_test(adds_penalties),
        cmocka_unit_test(adds_many),
        cmocka_unit_test(swaps_weights_and_averages),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
