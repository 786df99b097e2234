/* Chains: launches that run as one compute what they compute one by one, also when numbers,
 * sizes and memory change, and what cannot be chained keeps its place among them. */
#include "device/chain.h"
#include "device/opencl.h"
#include "rig.h"
#include <math.h>

enum { CHANNELS = 37, SAMPLES = 3, STEPS = 150, ROUNDS = 6 };

struct work {
    struct lk_device *device;
    struct lk_chain *chain;
    struct lk_kernel *numbers, *sums;
    struct lk_buffer *whole, *x, *y;
    int64_t count;
};

static struct lk_kernel *announce(struct lk_device *on, const char *source, const char *name)
{
    struct lk_kernel *kernel = NULL;
    const struct lk_kernel_spec spec = {.source = source, .name = name, .real_bytes = 4};
    assert_ok(lk_kernel_create(on, &spec, &kernel));
    return kernel;
}

/* x and y: images of a vector of pixels each, whose planes are as they come from the host. */
static struct work begin(const char *devices)
{
    struct work w = {0};
    assert_ok(lk_device_open(devices, 0, &w.device));
    w.numbers = announce(w.device, "tensor/planes", "planes_numbers");
    w.sums = announce(w.device, "graph/accumulate", "accumulate");
    assert_ok(lk_device_build(w.device));
    w.count = (int64_t)SAMPLES * CHANNELS * lk_device_info(w.device)->vector;
    const size_t bytes = (size_t)w.count * sizeof(float);
    const size_t room = (bytes + 4095) / 4096 * 4096;
    assert_ok(lk_buffer_create(w.device, 2 * room, &w.whole));
    assert_ok(lk_buffer_view(w.whole, 0, bytes, &w.x));
    assert_ok(lk_buffer_view(w.whole, room, bytes, &w.y));
    assert_ok(lk_chain_create(w.device, &w.chain));
    return w;
}

static void end(struct work *w)
{
    assert_ok(lk_device_finish(w->device));
    lk_chain_destroy(w->chain);
    lk_kernel_destroy(w->numbers);
    lk_kernel_destroy(w->sums);
    lk_buffer_destroy(w->x);
    lk_buffer_destroy(w->y);
    lk_buffer_destroy(w->whole);
    lk_device_close(w->device);
}

/* to = from * scale + 1 of `samples` samples, zeros of the others. */
static void enqueue(const struct work *w, struct lk_buffer *from, struct lk_buffer *to,
                    float scale, int samples)
{
    const struct lk_grid grid = {{CHANNELS, SAMPLES, 1}, 1};
    assert_ok(LK_ENQUEUE(w->numbers, grid, LK_BUF(from), LK_BUF(to),
                         LK_INT(lk_device_info(w->device)->vector), LK_INT(samples),
                         LK_REAL(scale), LK_REAL(1)));
}

/* The first and the last sample's numbers are all of these. */
static void expect(const struct work *w, const struct lk_buffer *buffer, float first,
                   float last)
{
    float *got = malloc((size_t)w->count * sizeof *got);
    assert_non_null(got);
    assert_ok(lk_buffer_read(buffer, 0, (size_t)w->count * sizeof *got, got));
    for (int64_t i = 0; i < w->count / SAMPLES; i++) {
        if (got[i] != first || got[w->count - 1 - i] != last)
            fail_msg("%lld: %g and %g, expected %g and %g", (long long)i, (double)got[i],
                     (double)got[w->count - 1 - i], (double)first, (double)last);
    }
    free(got);
}

/* Each step reads all that the one before has written. */
static void compute(const char *devices)
{
    struct work w = begin(devices);
    if (!w.device->is_pocl)
        skip();
    assert_non_null(w.chain);
    for (int round = 0; round < ROUNDS; round++) {
        const float scale = round < 4 ? 0.5f : -0.25f;
        const int samples = round < 5 ? SAMPLES : SAMPLES - 1;
        float x = 0;
        assert_ok(lk_buffer_enqueue_fill(w.x, 0));
        assert_ok(lk_chain_begin(w.chain));
        for (int i = 0; i < STEPS; i++, x = x * scale + 1)
            enqueue(&w, i % 2 ? w.y : w.x, i % 2 ? w.x : w.y, scale, samples);
        assert_ok(lk_chain_end(w.chain));
        expect(&w, w.x, x, samples < SAMPLES ? 0 : x);
    }
    end(&w);
}

static void steps_follow_one_another(void **state)
{
    (void)state;
    compute(NULL);
}

/* A part of a CPU that has one core: groups that wait would wait for ever. */
static void one_core_is_enough(void **state)
{
    char spec[16];
    (void)state;
    assert_int_equal(open_device(state), 0);
    snprintf(spec, sizeof spec, "0/%d", lk_device_info(device)->compute_units);
    close_device(state);
    compute(spec);
}

/* Fills, copies, and a kernel that is no function of a chain: y = 1; y += x; x = y. */
static void others_keep_their_place(void **state)
{
    struct work w = begin(NULL);
    (void)state;
    const struct lk_device_info *info = lk_device_info(w.device);
    const struct lk_grid rows = {{1, 1, 1}, info->lanes / info->vector};
    const int64_t count = w.count / info->lanes;
    for (int round = 0; round < ROUNDS; round++) {
        assert_ok(lk_buffer_enqueue_fill(w.x, 0));
        assert_ok(lk_chain_begin(w.chain));
        for (int i = 0; i < 3; i++) {
            enqueue(&w, w.x, w.y, 0, SAMPLES);
            assert_ok(LK_ENQUEUE(w.sums, rows, LK_BUF(w.x), LK_BUF(w.y), LK_INT(count),
                                 LK_INT(count)));
            assert_ok(lk_buffer_enqueue_copy(w.y, w.x, (size_t)w.count * sizeof(float)));
        }
        enqueue(&w, w.x, w.y, 2, SAMPLES);
        assert_ok(lk_chain_end(w.chain));
        expect(&w, w.x, 3, 3);
        expect(&w, w.y, 7, 7);
    }
    end(&w);
}

/* Sums of products with weights that go through local memory, beside a step that takes none. */
static void local_memory_is_there(void **state)
{
    enum { UNITS = 8, DEPTH = 20 };
    struct lk_kernel *product = NULL;
    struct work w = begin(NULL);
    (void)state;
    const int lanes = lk_device_info(w.device)->lanes;
    const int vector = lk_device_info(w.device)->vector;
    const struct lk_kernel_spec spec = {
        .source = "products/matrix/matrix",
        .name = "dense_product",
        .options = "-DFORWARD=1 -DBIAS=0 -DROWS=4 -DCOLUMNS=1 -DPIECES=1 -DDEPTH=8 -DPACK=1",
        .real_bytes = 4,
        .lanes = lanes};
    const struct lk_grid grid = {{UNITS / 4, 1, 1}, lanes / vector};
    float weights[DEPTH * UNITS];
    for (int i = 0; i < DEPTH * UNITS; i++)
        weights[i] = 0.25f;
    struct lk_buffer *by = NULL, *sums = NULL;
    assert_ok(lk_kernel_create(w.device, &spec, &product));
    assert_ok(lk_device_build(w.device));
    assert_ok(lk_buffer_create(w.device, sizeof weights, &by));
    assert_ok(lk_buffer_create_zeros(w.device, (size_t)(UNITS * lanes) * 4, &sums));
    assert_ok(lk_buffer_write(by, 0, sizeof weights, weights));
    for (int round = 0; round < ROUNDS; round++) {
        float got = 0;
        assert_ok(lk_buffer_enqueue_fill(w.x, 0));
        assert_ok(lk_chain_begin(w.chain));
        enqueue(&w, w.x, w.y, 0, SAMPLES);
        assert_ok(LK_ENQUEUE(product, grid, LK_BUF(by), LK_BUF(NULL), LK_BUF(w.y), LK_BUF(sums),
                             LK_BUF(NULL), LK_INT(0), LK_REAL(-INFINITY), LK_INT(UNITS),
                             LK_INT(DEPTH), LK_INT(1), LK_INT(1),
                             LK_LOCAL(4 * 8 * sizeof(float))));
        assert_ok(lk_chain_end(w.chain));
        for (int i = 0; i < UNITS * lanes; i++) {
            assert_ok(lk_buffer_read(sums, (size_t)i * 4, 4, &got));
            assert_float_equal(got, 0.25f * DEPTH, 0);
        }
        assert_ok(lk_buffer_enqueue_fill(sums, 0));
    }
    lk_buffer_destroy(by);
    lk_buffer_destroy(sums);
    lk_kernel_destroy(product);
    end(&w);
}

/* More pieces than a chain has, and memory of their own: the rest is launched by itself. */
static void limits_are_no_failures(void **state)
{
    enum { MANY = 30 };
    struct work w = begin(NULL);
    struct lk_buffer *each[MANY];
    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_ok(lk_buffer_create(w.device, (size_t)w.count * sizeof(float), &each[i]));
    for (int round = 0; round < ROUNDS; round++) {
        assert_ok(lk_buffer_enqueue_fill(each[0], 0));
        assert_ok(lk_chain_begin(w.chain));
        for (int i = 1; i < MANY; i++) {
            enqueue(&w, each[i - 1], each[i], 1, SAMPLES);
            if (i % 2)
                assert_ok(lk_buffer_enqueue_fill(w.x, 0));
        }
        assert_ok(lk_chain_end(w.chain));
        expect(&w, each[MANY - 1], MANY - 1, MANY - 1);
    }
    for (int i = 0; i < MANY; i++)
        lk_buffer_destroy(each[i]);
    end(&w);
}

/* Work-items of a GPU's kernels share local memory, which the chain's do not have. */
static void gpus_have_none(void **state)
{
    struct lk_chain *chain = NULL;
    (void)state;
    struct lk_device *gpu = open_class("gpu");
    unsetenv("LOCKSTEP_CLASS");
    assert_ok(lk_chain_create(gpu, &chain));
    assert_null(chain);
    assert_ok(lk_chain_begin(chain));
    assert_ok(lk_chain_end(chain));
    lk_chain_destroy(chain);
    lk_device_close(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_one_another), cmocka_unit_test(one_core_is_enough),
        cmocka_unit_test(others_keep_their_place),  cmocka_unit_test(limits_are_no_failures),
        cmocka_unit_test(local_memory_is_there),    cmocka_unit_test(gpus_have_none),
    };
    return cmocka_run_group_tests_name("device_chain", tests, NULL, NULL);
}
