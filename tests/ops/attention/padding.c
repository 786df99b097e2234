/* Attention of sequences that are padded further, and on devices with less local memory or
 * smaller work-groups: the same bits. What stands behind a length is no number. */
#include "device/rig.h"

#include "../../scratch.h"
#include "base/random.h"
#include "ops/attention/attention.h"
#include "ops/probe/probe.h"

#include <math.h>

enum { SAMPLES = 9, WIDTH = 12, QUERIES = 21, MOST_STEPS = 80, ROW = 3 * WIDTH };

/* Keys of up to `valid` steps, in sequences of `steps`; queries are the same or others. */
struct problem {
    const char *options;
    bool is_self;
    int valid, steps;
};

/* Input or gradient i: 0: queries, or all three; 1: keys and values. */
struct arrays {
    float x[2][SAMPLES * MOST_STEPS * ROW], y[SAMPLES * MOST_STEPS * WIDTH];
};

static int length_of(const struct problem *p, int sample)
{
    return sample * p->valid / (SAMPLES - 1);
}

static int steps_of(const struct problem *p, int input)
{
    return p->is_self || input == 1 ? p->steps : QUERIES;
}

static int row_of(const struct problem *p, int input)
{
    return p->is_self ? 3 * WIDTH : input == 1 ? 2 * WIDTH : WIDTH;
}

/* The same for a sample's time step however many there are. */
static void make_numbers(const struct problem *p, int steps, int row, bool has_lengths,
                         uint32_t stream, float *values)
{
    for (int s = 0; s < SAMPLES; s++)
        for (int t = 0; t < steps; t++)
            for (int c = 0; c < row; c++) {
                const uint64_t place = (uint64_t)((s * MOST_STEPS + t) * ROW + c);
                const uint32_t bits = lk_random(1, LK_RANDOM_DATA, stream, place).v[0];
                *values++ = has_lengths && t >= length_of(p, s)
                                ? NAN
                                : (float)lk_random_unit(bits) * 4 - 2;
            }
}

static struct lk_buffer *writable(const struct lk_buffer *buffer)
{
    return (struct lk_buffer *)(uintptr_t)buffer;
}

static void write_inputs(const struct problem *p, struct lk_probe *probe)
{
    static float values[SAMPLES * MOST_STEPS * ROW];
    const struct lk_tiling *t = &probe->setup.tiling;
    const struct lk_op_run *run = &probe->runs[0];
    const struct lk_op_shapes *shapes = &probe->setup.shapes;
    const int length = shapes->inputs - 1;
    int32_t lengths[SAMPLES];
    for (int i = 0; i < length; i++) {
        make_numbers(p, steps_of(p, i), row_of(p, i), steps_of(p, i) == p->steps, (uint32_t)i,
                     values);
        assert_ok(
            lk_tiled_write(writable(run->x[i]), t, &shapes->x[i], LK_F32, SAMPLES, values));
    }
    for (int s = 0; s < SAMPLES; s++)
        lengths[s] = length_of(p, s);
    assert_ok(lk_tiled_write(writable(run->x[length]), t, &shapes->x[length], LK_I32, SAMPLES,
                             lengths));
    make_numbers(p, steps_of(p, 0), WIDTH, p->is_self, 9, values);
    assert_ok(lk_tiled_write(writable(run->dy), t, &shapes->y, LK_F32, SAMPLES, values));
}

static void read_numbers(const struct lk_probe *probe, const struct lk_buffer *from,
                         const struct lk_shape *shape, float *to)
{
    assert_ok(lk_tiled_read(from, &probe->setup.tiling, shape, LK_F32, SAMPLES, to));
}

/* A GPU's are those of work-groups of several warps. */
static void check_kernels(const struct lk_probe *probe)
{
    const struct lk_attention_kernels *k = probe->setup.state;
    const int lanes = probe->setup.tiling.lanes;
    if (probe->setup.tiling.vector == 1)
        assert_true(k->forward.split.items > lanes && k->queries.split.items > lanes &&
                    k->keys.split.items > lanes);
}

static void run_all(struct lk_device *on, const struct problem *p, struct arrays *found)
{
    struct lk_probe probe = {0};
    struct lk_probe_config config = {.device = on,
                                     .op = "attention",
                                     .options = p->options,
                                     .inputs = p->is_self ? 2 : 3,
                                     .batch = SAMPLES,
                                     .shards = 1,
                                     .training = true,
                                     .dx = true,
                                     .seed = 3};
    const int length = config.inputs - 1;
    for (int i = 0; i < length; i++)
        config.x[i] = (struct lk_shape){2, {steps_of(p, i), row_of(p, i)}};
    config.x_dtype[length] = LK_I32;
    assert_ok(lk_probe_open(&probe, &config));
    check_kernels(&probe);
    assert_ok(lk_device_build(on));
    assert_ok(lk_probe_allocate(&probe, 1, true));
    write_inputs(p, &probe);
    assert_ok(lk_probe_forward(&probe, 0));
    assert_ok(lk_probe_backward(&probe, 0));
    read_numbers(&probe, probe.runs[0].y, &probe.setup.shapes.y, found->y);
    for (int i = 0; i < length; i++)
        read_numbers(&probe, probe.runs[0].dx[i], &probe.setup.shapes.x[i], found->x[i]);
    lk_probe_close(&probe);
}

/* Numbers [samples][steps][row]: those of steps that both have are the same, further ones 0. */
static void compare(const char *what, const float *a, int a_steps, const float *b, int b_steps,
                    int row)
{
    for (int s = 0; s < SAMPLES; s++)
        for (int i = 0; i < b_steps * row; i++) {
            const float expected = i < a_steps * row ? a[s * a_steps * row + i] : 0;
            const float got = b[s * b_steps * row + i];
            if (memcmp(&expected, &got, sizeof got) != 0)
                fail_msg("%s: sample %d, step %d, number %d is %.9g, expected %.9g", what, s,
                         i / row, i % row, (double)got, (double)expected);
        }
}

static void compare_all(const struct problem *p, const struct arrays *a,
                        const struct problem *q, const struct arrays *b)
{
    compare("y", a->y, steps_of(p, 0), b->y, steps_of(q, 0), WIDTH);
    for (int i = 0; i < (p->is_self ? 1 : 2); i++)
        compare(i ? "dx 1" : "dx 0", a->x[i], steps_of(p, i), b->x[i], steps_of(q, i),
                row_of(p, i));
}

static const struct problem problems[] = {
    {"heads=2", true, 12, 12},
    {"heads=2 causal=true dropout=0.25", true, 37, 37},
    {"heads=2 dropout=0.25", false, 18, 18},
    {"heads=3", false, 45, 46},
};

static void test_padding(void **state)
{
    static struct arrays some, more;
    (void)state;
    for (int c = 0; c < 2; c++) {
        struct lk_device *on = open_class(classes[c]);
        for (int i = 0; i < LK_COUNT(problems); i++) {
            struct problem padded = problems[i];
            run_all(on, &problems[i], &some);
            for (padded.steps++; padded.steps <= MOST_STEPS; padded.steps += 34) {
                run_all(on, &padded, &more);
                compare_all(&problems[i], &some, &padded, &more);
            }
        }
        lk_device_close(on);
    }
}

/* What blocks of queries and keys follow from. */
static void test_devices(void **state)
{
    static const struct limits {
        size_t local_bytes, group_items;
        int compute_units;
    } limits[] = {{32 << 10, 256, 1},
                  {40 << 10, 256, 1000},
                  {48 << 10, 128, 1},
                  {20 << 10, 128, 1},
                  {10 << 10, 256, 1000}};
    static struct arrays some, other;
    (void)state;
    struct lk_device *on = open_class("gpu");
    struct lk_device_info *info = (struct lk_device_info *)(uintptr_t)lk_device_info(on);
    const struct lk_device_info real = *info;
    for (int i = 0; i < LK_COUNT(problems); i++) {
        run_all(on, &problems[i], &some);
        for (int l = 0; l < LK_COUNT(limits); l++) {
            info->local_bytes = limits[l].local_bytes;
            info->group_items = limits[l].group_items;
            info->compute_units = limits[l].compute_units;
            run_all(on, &problems[i], &other);
            compare_all(&problems[i], &some, &problems[i], &other);
            *info = real;
        }
    }
    lk_device_close(on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_padding),
                                       cmocka_unit_test(test_devices)};
    return cmocka_run_group_tests_name("ops/attention/padding", tests, scratch_make,
                                       scratch_remove);
}
