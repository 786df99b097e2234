/* How far Winograd's sums are from exact ones: the largest error of many results, over the root
 * of the mean square of exact results. It is printed, and must stay below a bound. */
#include "base/fail.h"
#include "ops/probe/probe.h"
#include "products/kernel/choice.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 16, C = 256, K = 64, H = 13, POINTS = 1000 };
enum { FORWARD, DATA, WEIGHTS };

struct numbers {
    float *x, *w, *dy; /* [N][C][H][H], [C][3][3][K], [N][K][H][H] */
    uint32_t seed;
};

static void ok(enum lk_status status)
{
    if (status != LK_OK)
        fail_msg("%s", lk_error_text());
}

static uint32_t draw(struct numbers *m)
{
    m->seed = m->seed * 1664525 + 1013904223;
    return m->seed >> 8;
}

static float *draw_all(struct numbers *m, int64_t count)
{
    float *made = malloc((size_t)count * sizeof *made);
    assert_non_null(made);
    for (int64_t i = 0; i < count; i++)
        made[i] = (float)draw(m) * 0x1p-23f - 1;
    return made;
}

static double x_at(const struct numbers *m, int n, int c, int i, int j)
{
    return i < 0 || j < 0 || i >= H || j >= H ? 0 : m->x[((n * C + c) * H + i) * H + j];
}

static double dy_at(const struct numbers *m, int n, int k, int i, int j)
{
    return i < 0 || j < 0 || i >= H || j >= H ? 0 : m->dy[((n * K + k) * H + i) * H + j];
}

static double w_at(const struct numbers *m, int c, int r, int s, int k)
{
    return m->w[((c * 3 + r) * 3 + s) * K + k];
}

/* Result number `at` of a pass, in double. */
static double exact(const struct numbers *m, int pass, int at)
{
    double sum = 0;
    const int j = at % H, i = at / H % H, plane = at / (H * H);
    if (pass == FORWARD)
        for (int e = 0; e < C * 9; e++)
            sum += w_at(m, e / 9, e / 3 % 3, e % 3, plane % K) *
                   x_at(m, plane / K, e / 9, i + e / 3 % 3 - 1, j + e % 3 - 1);
    else if (pass == DATA)
        for (int e = 0; e < K * 9; e++)
            sum += w_at(m, plane % C, e / 3 % 3, e % 3, e / 9) *
                   dy_at(m, plane / C, e / 9, i - e / 3 % 3 + 1, j - e % 3 + 1);
    else
        for (int e = 0; e < N * H * H; e++)
            sum += dy_at(m, e / (H * H), at % K, e / H % H, e % H) *
                   x_at(m, e / (H * H), at / K / 9, e / H % H + at / K / 3 % 3 - 1,
                        e % H + at / K % 3 - 1);
    return sum;
}

/* Results of a pass as the device has them, in host order. */
static float *run(struct lk_probe *p, const struct numbers *m, int pass, int64_t *count)
{
    const struct lk_op_run *r = &p->runs[0];
    const struct lk_tiling *t = &p->setup.tiling;
    const struct lk_shape *x = &p->setup.shapes.x[0], *y = &p->setup.shapes.y;
    const int64_t counts[] = {N * K * H * H, N * C * H * H, C * 9 * K};
    float *made = malloc((size_t)counts[pass] * sizeof *made);
    assert_non_null(made);
    ok(lk_tiled_write((struct lk_buffer *)r->x[0], t, x, LK_F32, N, m->x));
    ok(lk_buffer_write((struct lk_buffer *)r->w[0], 0, C * 9 * K * sizeof(float), m->w));
    ok(lk_tiled_write((struct lk_buffer *)r->dy, t, y, LK_F32, N, m->dy));
    ok(pass == FORWARD ? lk_probe_forward(p, 0) : lk_probe_backward(p, 0));
    if (pass == FORWARD)
        ok(lk_tiled_read(r->y, t, y, LK_F32, N, made));
    else if (pass == DATA)
        ok(lk_tiled_read(r->dx[0], t, x, LK_F32, N, made));
    else
        ok(lk_buffer_read(r->dw[0], 0, (size_t)counts[pass] * sizeof *made, made));
    *count = counts[pass];
    return made;
}

struct taken {
    const char *name; /* of a family */
    bool is;
};

static void look(void *context, const char *key, const char *text)
{
    struct taken *taken = context;
    (void)key;
    taken->is |= lk_candidate_is_kin(text, taken->name);
}

static void check(struct lk_device *device, struct numbers *m, const char *algorithm, int pass,
                  double bound)
{
    static const char *const names[] = {"forward", "data", "weights"};
    struct taken taken = {.name = algorithm};
    struct lk_probe_config config = {.device = device,
                                     .op = "conv2d",
                                     .inputs = 1,
                                     .options = "filters=64 padding=same bias=false",
                                     .x = {{3, {C, H, H}}},
                                     .batch = N,
                                     .shards = 1,
                                     .training = true,
                                     .dx = pass == DATA,
                                     .dw = pass == WEIGHTS};
    struct lk_probe probe;
    ok(lk_choices_create(LK_MATH_NORMAL, &config.choices));
    ok(lk_choices_prefer(config.choices, algorithm));
    ok(lk_probe_open(&probe, &config));
    lk_choices_each(config.choices, look, &taken);
    assert_true(taken.is);
    ok(lk_device_build(device));
    ok(lk_probe_allocate(&probe, 1, true));
    int64_t count;
    float *got = run(&probe, m, pass, &count);
    double worst = 0, squares = 0;
    for (int n = 0; n < POINTS; n++) {
        const int at = (int)(draw(m) % count);
        const double want = exact(m, pass, at), error = fabs(got[at] - want);
        worst = error > worst ? error : worst;
        squares += want * want;
    }
    const double off = worst / sqrt(squares / POINTS);
    print_message("# %s, %s: %.1e of the RMS, allowed %.0e\n", algorithm, names[pass], off,
                  bound);
    assert_true(off < bound);
    free(got);
    lk_probe_close(&probe);
    lk_choices_destroy(config.choices);
}

static void check_class(const char *name)
{
    static const struct {
        const char *algorithm;
        double bound;
    } cases[] = {{"winograd2", 1e-5}, {"winograd4", 1e-4}};
    struct numbers m = {.seed = 1};
    struct lk_device *device;
    setenv("LOCKSTEP_CLASS", name, 1);
    ok(lk_device_open(NULL, 0, &device));
    m.x = draw_all(&m, (int64_t)N * C * H * H);
    m.w = draw_all(&m, C * 9 * K);
    m.dy = draw_all(&m, (int64_t)N * K * H * H);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int pass = FORWARD; pass <= WEIGHTS; pass++)
            check(device, &m, cases[i].algorithm, pass, cases[i].bound);
    free(m.x);
    free(m.w);
    free(m.dy);
    lk_device_close(device);
}

static void cpu_kernels_are_near_exact_sums(void **state)
{
    (void)state;
    check_class("cpu");
}

static void gpu_kernels_are_near_exact_sums(void **state)
{
    (void)state;
    check_class("gpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_kernels_are_near_exact_sums),
        cmocka_unit_test(gpu_kernels_are_near_exact_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
