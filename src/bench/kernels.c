/* Times single operations. Every run of a measurement works on another copy of the activations,
 * so that caches hold no more of them than they would while training. */
#include "base/fail.h"
#include "base/log.h"
#include "base/random.h"
#include "bench/cases.h"
#include "bench/peaks.h"
#include "bench/probe.h"
#include "bench/timing.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEASUREMENTS = 5,
    COPIES_BYTES = 256 << 20, /* of activations that runs take turns with */
    BLOCK = 1 << 20,          /* random numbers, repeated where a tensor is longer */
    MOST_SETS = 8,
};

static const double MEASUREMENT = 0.05, PEAK = 0.015; /* seconds */

enum pass { FORWARD, DGRAD, WGRAD, PASSES };
static const char *const pass_names[] = {"forward", "dgrad", "wgrad"};

struct bench {
    struct lk_device *device;
    struct lk_meter *meter;
    float *random; /* [BLOCK] in (-1, 1), none 0 */
    bool (*handler)(void *context, const struct lk_bench_kernel *kernel);
    void *context;
    bool stopped;
    int done, count;
};

/* --- sets and passes ------------------------------------------------------------------- */

const char *lk_bench_set(int index)
{
    const char *last = "";
    for (const struct lk_bench_case *c = lk_bench_cases; c->set; c++) {
        if (strcmp(last, c->set) != 0 && index-- == 0)
            return c->set;
        last = c->set;
    }
    return NULL;
}

static const char *set_name(const void *context, int index)
{
    (void)context;
    return lk_bench_set(index);
}

static bool is_in(const struct lk_bench_case *c, const char *set)
{
    return !set || strcmp(c->set, set) == 0;
}

/* Only these two have weights; the others move memory. */
static bool is_product(const struct lk_bench_case *c)
{
    return strcmp(c->op, "conv2d") == 0 || strcmp(c->op, "dense") == 0;
}

static bool has_pass(const struct lk_bench_case *c, enum pass pass)
{
    return pass == FORWARD || (pass == DGRAD && !c->is_first) ||
           (pass == WGRAD && is_product(c));
}

/* --- time ------------------------------------------------------------------------------ */

static enum lk_status run(struct lk_probe *probe, enum pass pass, int64_t runs, double *seconds)
{
    const double start = lk_seconds();
    for (int64_t i = 0; i < runs; i++) {
        const int copy = (int)(i % probe->copies);
        LK_TRY(pass == FORWARD ? lk_probe_forward(probe, copy)
                               : lk_probe_backward(probe, copy));
    }
    LK_TRY(lk_device_finish(probe->setup.device));
    *seconds = lk_seconds() - start;
    return LK_OK;
}

/* Runs of a measurement, so that it lasts long enough. */
static enum lk_status choose_runs(struct lk_probe *probe, enum pass pass, int64_t *runs)
{
    double took;
    LK_TRY(run(probe, pass, 1, &took)); /* some drivers compile here */
    int64_t count = 1;
    LK_TRY(run(probe, pass, count, &took));
    while (took < MEASUREMENT / 2) {
        count *= 2;
        LK_TRY(run(probe, pass, count, &took));
    }
    *runs = took < MEASUREMENT ? 2 * count : count;
    return LK_OK;
}

static enum lk_status measure_peak(struct bench *bench, bool memory, double *peak)
{
    return memory ? lk_meter_bandwidth(bench->meter, PEAK, peak)
                  : lk_meter_fma(bench->meter, PEAK, peak);
}

/* The medians of the operation's time and of the peak, taken in turns. */
static enum lk_status measure(struct bench *bench, struct lk_probe *probe, enum pass pass,
                              struct lk_bench_kernel *result)
{
    double took[MEASUREMENTS], peaks[MEASUREMENTS];
    int64_t runs;
    LK_TRY(choose_runs(probe, pass, &runs));
    for (int i = 0; i < MEASUREMENTS; i++) {
        LK_TRY(measure_peak(bench, result->memory_bound, &peaks[i]));
        LK_TRY(run(probe, pass, runs, &took[i]));
    }
    const double seconds = lk_median(took, MEASUREMENTS) / (double)runs;
    const double peak = lk_median(peaks, MEASUREMENTS);
    const double flops = probe->setup.shapes.flops * (double)probe->batch;
    const double bytes = lk_probe_bytes(probe, pass != FORWARD);
    double *rate = result->memory_bound ? &result->gbs : &result->gflops;
    *rate = (result->memory_bound ? bytes : flops) / seconds * 1e-9;
    *(result->memory_bound ? &result->peaks.bandwidth_gbs : &result->peaks.fma_gflops) = peak;
    result->percent_of_peak = 100 * *rate / peak;
    result->ms = 1e3 * seconds;
    return LK_OK;
}

/* --- data ------------------------------------------------------------------------------ */

static enum lk_status fill(const struct bench *bench, const struct lk_buffer *buffer)
{
    const size_t bytes = buffer ? lk_buffer_bytes(buffer) : 0, block = BLOCK * sizeof(float);
    for (size_t at = 0; at < bytes; at += block)
        LK_TRY(lk_buffer_write((struct lk_buffer *)buffer, at,
                               bytes - at < block ? bytes - at : block, bench->random));
    return LK_OK;
}

static enum lk_status copy(const struct lk_buffer *from, const struct lk_buffer *to)
{
    return lk_buffer_enqueue_copy(from, (struct lk_buffer *)to, lk_buffer_bytes(from));
}

/* Random inputs; what backward keeps of a forward pass is there for every copy. */
static enum lk_status fill_probe(const struct bench *bench, struct lk_probe *probe)
{
    const struct lk_op_run *first = &probe->runs[0];
    for (int j = 0; j < probe->setup.shapes.params; j++)
        LK_TRY(fill(bench, first->w[j]));
    for (int i = 0; i < probe->setup.shapes.inputs; i++)
        LK_TRY(fill(bench, first->x[i]));
    LK_TRY(fill(bench, first->dy));
    for (int n = 1; n < probe->copies; n++) {
        for (int i = 0; i < probe->setup.shapes.inputs; i++)
            LK_TRY(copy(first->x[i], probe->runs[n].x[i]));
        if (first->dy)
            LK_TRY(copy(first->dy, probe->runs[n].dy));
    }
    for (int n = 0; n < probe->copies; n++)
        LK_TRY(lk_probe_forward(probe, n));
    return lk_device_finish(bench->device);
}

/* --- one case -------------------------------------------------------------------------- */

static void describe(const struct lk_bench_case *c, char *text, size_t bytes)
{
    char shape[64];
    lk_shape_print(&c->x, shape, sizeof shape);
    snprintf(text, bytes, "%s%s%s%s%s%s%s, n %d", shape, *c->options ? " " : "", c->options,
             c->absorbed ? " + " : "", c->absorbed ? c->absorbed : "", c->absorbed ? " " : "",
             c->absorbed ? c->absorbed_options : "", c->batch);
}

static struct lk_probe_config config_of(const struct bench *bench,
                                        const struct lk_bench_case *c, enum pass pass)
{
    struct lk_probe_config config = {
        .device = bench->device,
        .op = c->op,
        .options = c->options,
        .absorbed = c->absorbed,
        .absorbed_options = c->absorbed_options,
        .inputs = c->inputs ? c->inputs : 1,
        .batch = c->batch,
        .shards = 1,
        .training = true,
        .dx = pass != WGRAD,
        .dw = pass != DGRAD,
    };
    for (int i = 0; i < config.inputs; i++)
        config.x[i] = c->x;
    return config;
}

static enum lk_status time_pass(struct bench *bench, const struct lk_bench_case *c,
                                enum pass pass)
{
    char shape[256];
    struct lk_probe probe;
    const struct lk_probe_config config = config_of(bench, c, pass);
    struct lk_bench_kernel result = {.set = c->set,
                                     .op = c->op,
                                     .pass = pass_names[pass],
                                     .shape = shape,
                                     .algorithm = "direct",
                                     .memory_bound = !is_product(c),
                                     .done = ++bench->done,
                                     .count = bench->count};
    enum lk_status status;
    describe(c, shape, sizeof shape);
    LK_TRY_OUT(lk_probe_open(&probe, &config));
    LK_TRY_OUT(lk_device_build(bench->device));
    LK_TRY_OUT(lk_probe_allocate(&probe, COPIES_BYTES, pass != FORWARD));
    LK_TRY_OUT(fill_probe(bench, &probe));
    LK_TRY_OUT(measure(bench, &probe, pass, &result));
    bench->stopped = !bench->handler(bench->context, &result);
out:
    lk_probe_close(&probe);
    if (status == LK_E_DEVICE_MEMORY || status == LK_E_UNSUPPORTED) {
        lk_log(LK_LOG_WARNING, "%s %s left out: %s", c->op, shape, lk_error_text());
        lk_error_clear();
        return LK_OK;
    }
    return status;
}

static float *draw_random(void)
{
    float *random = malloc(BLOCK * sizeof *random);
    for (int i = 0; random && i < BLOCK; i += 4) {
        const struct lk_random4 r = lk_random(1, LK_RANDOM_DATA, 0, (uint64_t)i);
        for (int j = 0; j < 4; j++)
            random[i + j] = (float)(2 * lk_random_unit(r.v[j] | 1) - 1 + 1e-9);
    }
    return random;
}

static enum lk_status time_all(struct bench *bench, const char *set)
{
    bench->random = draw_random();
    if (!bench->random)
        return lk_fail_memory("random numbers", BLOCK * sizeof *bench->random);
    LK_TRY(lk_meter_create(bench->device, &bench->meter));
    for (const struct lk_bench_case *c = lk_bench_cases; c->set; c++)
        for (int pass = 0; pass < PASSES && !bench->stopped; pass++)
            if (is_in(c, set) && has_pass(c, (enum pass)pass))
                LK_TRY(time_pass(bench, c, (enum pass)pass));
    return LK_OK;
}

enum lk_status lk_bench_kernels(struct lk_device *device, const char *set,
                                bool (*handler)(void *context,
                                                const struct lk_bench_kernel *kernel),
                                void *context)
{
    struct bench bench = {.device = device, .handler = handler, .context = context};
    for (const struct lk_bench_case *c = lk_bench_cases; c->set; c++)
        for (int pass = 0; pass < PASSES; pass++)
            bench.count += is_in(c, set) && has_pass(c, (enum pass)pass);
    if (bench.count == 0) {
        const char *near = lk_nearest_name(set, set_name, NULL);
        return lk_fail(LK_E_ARGUMENT, "unknown set of operations '%s'%s%s%s", set,
                       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    const enum lk_status status = time_all(&bench, set);
    lk_meter_destroy(bench.meter);
    free(bench.random);
    return status;
}
