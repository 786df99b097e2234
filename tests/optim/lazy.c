/* Lazy updates of tables of rows, on both kernel classes, in float and in double: to the bit a
 * step of all parameters after which the rows without a gradient are put back, and Adam against
 * its formula in double. */
#include "device/rig.h"
#include "optim/optimizer.h"

#include <math.h>

enum { COUNT = 900, PADDED = 928, STEPS = 5, TABLES = 3, PARTS = 3, MOST_ARRAYS = 4 };

/* Rows that are shorter than a vector, that lie in two, and that fill whole ones. */
static const struct lk_param_rows tables[TABLES] = {
    {128, 240, 12, 0, 0}, {512, 256, 32, 0, 0}, {768, 45, 3, 0, 0}};
static const struct lk_update parts[PARTS] = {
    {.first = 512, .count = COUNT - 512}, {.first = 128, .count = 384}, {.count = 128}};

static const struct kind {
    const char *name, *options;
    double clip_norm, ema;
} kinds[] = {{"adam", "lr=0.05", 0, 0},
             {"adamw", "lr=0.05 weight_decay=0.2", 3, 0.9},
             {"sgd", "lr=0.05", 0, 0},
             {"sgd", "lr=0.05 momentum=0.9 weight_decay=0.1 nesterov=true", 0, 0.9},
             {"rmsprop", "lr=0.01 centered=true momentum=0.9", 5, 0}};

/* The table that a parameter is in, and its row; NULL: in none. */
static const struct lk_param_rows *table_of(int i, int *row)
{
    for (int t = 0; t < TABLES; t++)
        if (i >= tables[t].first && i < tables[t].first + tables[t].count) {
            *row = (int)((i - tables[t].first) / tables[t].units);
            return &tables[t];
        }
    return NULL;
}

/* Touched rows change from step to step; row 7 never is one, though it has minus zeros. */
static bool is_touched(int i, int step)
{
    int row = 0;
    const struct lk_param_rows *table = table_of(i, &row);
    return !table || (row != 7 && (row * 5 + step) % 3 == 0);
}

/* What pads a table, and stays 0. */
static bool is_padding(int i)
{
    return (i >= 368 && i < 384) || (i >= 813 && i < 896) || i >= COUNT;
}

/* Row 2 has one number alone, which is too small for a device that flushes such to zero. */
static double gradient_of(int i, int step)
{
    int row = 0;
    const struct lk_param_rows *table = table_of(i, &row);
    if (is_padding(i))
        return 0;
    if (!is_touched(i, step))
        return row == 7 ? -0.0 : 0;
    if (table && row == 2)
        return (i - table->first) % table->units == 1 ? 1e-40 : 0;
    return (double)((i * 37 + step * step * 101 + i * step * 13) % 257 - 120) / 128;
}

static double weight_of(int i)
{
    return is_padding(i) ? 0 : (double)((i * 53 + 17) % 257 - 128) / 128;
}

struct reals {
    double f64[PADDED];
    float f32[PADDED];
};

static void write_reals(struct lk_buffer *buffer, int64_t first, enum lk_dtype real,
                        struct reals *r)
{
    for (int i = 0; i < PADDED; i++)
        r->f32[i] = (float)r->f64[i];
    if (real == LK_F64)
        assert_ok(lk_buffer_write(buffer, (size_t)first * 8, sizeof r->f64, r->f64));
    else
        assert_ok(lk_buffer_write(buffer, (size_t)first * 4, sizeof r->f32, r->f32));
}

static void read_reals(struct lk_buffer *buffer, int64_t first, enum lk_dtype real,
                       struct reals *r)
{
    if (real == LK_F64) {
        assert_ok(lk_buffer_read(buffer, (size_t)first * 8, sizeof r->f64, r->f64));
        return;
    }
    assert_ok(lk_buffer_read(buffer, (size_t)first * 4, sizeof r->f32, r->f32));
    for (int i = 0; i < PADDED; i++)
        r->f64[i] = (double)r->f32[i];
}

/* An optimizer with its weights and all that it keeps, as of the host. */
struct bench {
    enum lk_dtype real;
    struct lk_optimizer *optimizer;
    struct lk_buffer *w, *g;
    struct reals weights, state[MOST_ARRAYS], gradient;
};

static void bench_open(struct bench *b, struct lk_device *device, enum lk_dtype real,
                       const struct kind *kind, bool lazy)
{
    char options[256];
    const size_t bytes = PADDED * (real == LK_F64 ? sizeof(double) : sizeof(float));
    const struct lk_param_factors factors = {512, 256, 0.5, 2, 0, 0};
    snprintf(options, sizeof options, "%s lazy=%s", kind->options, lazy ? "true" : "false");
    const struct lk_optimizer_config config = {.device = device,
                                               .real = real,
                                               .kind = kind->name,
                                               .options = options,
                                               .count = COUNT,
                                               .factors = &factors,
                                               .factor_count = kind->ema > 0,
                                               .rows = tables,
                                               .row_count = TABLES,
                                               .clip = {0, kind->clip_norm},
                                               .ema = kind->ema};
    memset(b, 0, sizeof *b);
    b->real = real;
    assert_ok(lk_optimizer_create(&config, &b->optimizer));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, bytes, &b->w));
    assert_ok(lk_buffer_create(device, bytes, &b->g));
    for (int i = 0; i < PADDED; i++)
        b->weights.f64[i] = weight_of(i);
    write_reals(b->w, 0, real, &b->weights);
}

static void bench_close(struct bench *b)
{
    lk_buffer_destroy(b->w);
    lk_buffer_destroy(b->g);
    lk_optimizer_destroy(b->optimizer);
}

static void read_all(struct bench *b)
{
    const struct lk_optimizer_info *info = lk_optimizer_info(b->optimizer);
    read_reals(b->w, 0, b->real, &b->weights);
    for (int a = 0; a < info->arrays; a++)
        read_reals(info->state, a * info->stride, b->real, &b->state[a]);
}

static void put_gradient(struct bench *b, int64_t first, int step)
{
    memset(&b->gradient, 0, sizeof b->gradient);
    for (int i = (int)first; i < COUNT; i++)
        b->gradient.f64[i - first] = 4 * gradient_of(i, step);
    write_reals(b->g, 0, b->real, &b->gradient);
}

static void step_whole(struct bench *b, int step)
{
    put_gradient(b, 0, step);
    assert_ok(lk_optimizer_enqueue(b->optimizer, b->w, b->g, 0.25,
                                   lk_optimizer_rate(b->optimizer), step));
}

/* As a device does that shares a batch with others: bucket by bucket, the last one first. */
static void step_in_parts(struct bench *b, int step)
{
    for (int i = 0; i < PARTS; i++) {
        put_gradient(b, parts[i].first, step);
        assert_ok(
            lk_optimizer_enqueue_check(b->optimizer, b->g, parts[i].first, parts[i].count));
    }
    assert_ok(lk_optimizer_enqueue_decision(b->optimizer, 0.25));
    for (int i = 0; i < PARTS; i++) {
        struct lk_update update = parts[i];
        update.scale = 0.25;
        update.lr = lk_optimizer_rate(b->optimizer);
        update.step = step;
        put_gradient(b, parts[i].first, step);
        assert_ok(lk_optimizer_enqueue_part(b->optimizer, b->w, b->g, &update));
    }
}

static bool is_average(const struct lk_optimizer_info *info, int array)
{
    return strcmp(info->array_names[array], LK_EMA_ARRAY) == 0;
}

/* A step of all parameters, then the rows without gradient as they were. Their average of
 * weights goes on: it is put together from the weights that stand still. */
static void step_and_put_back(struct bench *b, int step)
{
    static struct bench before;
    const struct lk_optimizer_info *info = lk_optimizer_info(b->optimizer);
    read_all(b);
    before = *b;
    step_whole(b, step);
    read_all(b);
    for (int i = 0; i < COUNT; i++) {
        if (is_touched(i, step))
            continue;
        b->weights.f64[i] = before.weights.f64[i];
        for (int a = 0; a < info->arrays; a++)
            if (!is_average(info, a))
                b->state[a].f64[i] = before.state[a].f64[i];
    }
    write_reals(b->w, 0, b->real, &b->weights);
    for (int a = 0; a < info->arrays; a++)
        if (!is_average(info, a))
            write_reals(info->state, a * info->stride, b->real, &b->state[a]);
}

static void compare(struct bench *lazy, struct bench *dense, const struct kind *kind, int step)
{
    const struct lk_optimizer_info *info = lk_optimizer_info(lazy->optimizer);
    read_all(lazy);
    read_all(dense);
    for (int i = 0; i < COUNT; i++) {
        if (lazy->weights.f64[i] != dense->weights.f64[i])
            fail_msg("%s '%s', weight %d after %d steps: %.17g, expected %.17g", kind->name,
                     kind->options, i, step, lazy->weights.f64[i], dense->weights.f64[i]);
        for (int a = 0; a < info->arrays; a++)
            if (!is_average(info, a) && lazy->state[a].f64[i] != dense->state[a].f64[i])
                fail_msg("%s '%s', %s %d after %d steps: %.17g, expected %.17g", kind->name,
                         kind->options, info->array_names[a], i, step, lazy->state[a].f64[i],
                         dense->state[a].f64[i]);
    }
}

/* One comparison: the same steps lazily and densely. */
static void compare_steps(struct lk_device *device, enum lk_dtype real, const struct kind *kind,
                          bool in_parts)
{
    static struct bench lazy, dense;
    bench_open(&lazy, device, real, kind, true);
    bench_open(&dense, device, real, kind, false);
    for (int step = 1; step <= STEPS; step++) {
        (in_parts ? step_in_parts : step_whole)(&lazy, step);
        step_and_put_back(&dense, step);
        compare(&lazy, &dense, kind, step);
    }
    bench_close(&lazy);
    bench_close(&dense);
}

static void leaves_rows_without_gradient(void **state)
{
    (void)state;
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        for (enum lk_dtype real = LK_F32; real <= LK_F64; real++)
            for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
                for (int in_parts = 0; in_parts < 2; in_parts++)
                    if (real == LK_F32 || lk_device_info(device)->has_fp64)
                        compare_steps(device, real, &kinds[k], in_parts);
        lk_device_close(device);
    }
}

/* The rows that a step touches, as TensorFlow's LazyAdam; the correction of the moments counts
 * all steps. */
static void adam_in_double(double w[COUNT], double m[COUNT], double v[COUNT], int step)
{
    const double lr = 0.05, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
    for (int i = 0; i < COUNT; i++) {
        const double g = gradient_of(i, step);
        if (!is_touched(i, step))
            continue;
        m[i] = beta_1 * m[i] + (1 - beta_1) * g;
        v[i] = beta_2 * v[i] + (1 - beta_2) * g * g;
        w[i] -= lr * (m[i] / (1 - pow(beta_1, step))) /
                (sqrt(v[i] / (1 - pow(beta_2, step))) + epsilon);
    }
}

static void equals_lazy_adam(void **state)
{
    (void)state;
    static double w[COUNT], m[COUNT], v[COUNT];
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        static struct bench b;
        bench_open(&b, device, LK_F32, &kinds[0], true);
        for (int i = 0; i < COUNT; i++) {
            w[i] = weight_of(i);
            m[i] = v[i] = 0;
        }
        for (int step = 1; step <= STEPS; step++) {
            adam_in_double(w, m, v, step);
            step_whole(&b, step);
        }
        read_all(&b);
        for (int i = 0; i < COUNT; i++)
            if (!(fabs(b.weights.f64[i] - w[i]) <= 2e-5))
                fail_msg("weight %d: %.9g, expected %.9g", i, b.weights.f64[i], w[i]);
        bench_close(&b);
        lk_device_close(device);
    }
}

static void refuses(void **state)
{
    (void)state;
    struct lk_device *device = open_class("cpu");
    static const struct lk_param_rows wrong[] = {
        {64, 12, 12, 0, 0},   {128, 13, 12, 0, 0}, {128, 12, 0, 0, 0},      {896, 12, 12, 0, 0},
        {-128, 12, 12, 0, 0}, {0, 0, 1, 0, 0},     {0, 128, 16, -1, 2},     {0, 128, 16, 4, 3},
        {0, 128, 16, 4, 0},   {0, 120, 12, 4, 2},  {0, 128, 16, 1 << 30, 2}};
    static struct bench b;
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
        struct lk_optimizer *optimizer = NULL;
        const struct lk_optimizer_config config = {.device = device,
                                                   .real = LK_F32,
                                                   .kind = "adam",
                                                   .options = "lazy=true",
                                                   .count = COUNT,
                                                   .rows = &wrong[k],
                                                   .row_count = 1};
        assert_int_equal(lk_optimizer_create(&config, &optimizer), LK_E_ARGUMENT);
        assert_non_null(strstr(lk_error_text(), "rows of"));
        lk_error_clear();
    }
    bench_open(&b, device, LK_F32, &kinds[0], true);
    const struct lk_update cut = {.first = 0, .count = 256, .scale = 1, .lr = 1, .step = 1};
    assert_int_equal(lk_optimizer_enqueue_part(b.optimizer, b.w, b.g, &cut), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "elements 0 to 255 cuts a table"));
    lk_error_clear();
    bench_close(&b);
    lk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_rows_without_gradient),
        cmocka_unit_test(equals_lazy_adam),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
