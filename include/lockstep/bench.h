/* Throughput beside a device's measured peaks; kernels tested with known answers. Floor 9. */
#ifndef LOCKSTEP_BENCH_H
#define LOCKSTEP_BENCH_H

#include <lockstep/device.h>
#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the device reaches at best: fp32 multiply-adds held in registers, which count 2; the
 * faster of copy and triad over arrays larger than caches, bytes read plus written. */
struct lk_peaks {
    double fma_gflops, bandwidth_gbs;
};

/* Measures both for about `seconds` each (0: 0.3) and keeps the best. Waits.
 * fails: LK_E_BUILD, LK_E_DEVICE, LK_E_DEVICE_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_peaks_measure(struct lk_device *device, double seconds,
                                                     struct lk_peaks *peaks);

/* What a launch of a kernel costs that does nothing, in microseconds, medians. */
struct lk_launch_times {
    double enqueue_us;    /* of the host, until the call returns */
    double launch_us;     /* from one kernel to the next in a long row of them */
    double round_trip_us; /* enqueue one and wait for it */
};

/* Waits. fails: as lk_peaks_measure() */
LK_API LK_MUST_CHECK enum lk_status lk_launch_measure(struct lk_device *device,
                                                      struct lk_launch_times *times);

/* Zero: as usual. */
struct lk_bench_options {
    int64_t batch;    /* samples; usual: what each set or model is known for */
    double seconds;   /* that an operation (0.4) or model (6) is measured for, about */
    const char *math; /* algorithms that may run: "strict", "normal", "fast"; usual: normal */
    const char *precision, *tiles;      /* of models: as settings; usual: float, auto */
    const struct lk_settings *settings; /* to open a model with; NULL: none */
};

/* One pass of one operation. `percent_of_peak` is of the multiply-add rate, or of the bandwidth
 * where `memory_bound`: the one of `peaks` that was measured next to it, the other one is 0.
 * The text lives during the call of the handler. */
struct lk_bench_kernel {
    const char *set;       /* "convnet" */
    const char *op, *pass; /* "conv2d"; "forward", "dgrad" (data) or "wgrad" (weights) */
    const char *shape;     /* "[1, 28, 28] filters=32 kernel=3 | n 512" */
    const char *algorithm; /* "winograd4", "direct 8x3": with its blocking, where tuned */
    bool is_reference;     /* a library beside ours, the product alone: "clblast" */
    bool memory_bound;     /* no sums over channels: relu, pooling, depthwise convolution */
    double flops, bytes;   /* flops: of direct sums in the forward pass, a multiply-add counts
                            * 2; bytes: what the pass has to read and write once */
    double ms, gflops, gbs, percent_of_peak;
    double host_us;  /* of the host, to enqueue it */
    double build_ms; /* to prepare it, kernels included that no cache holds */
    struct lk_peaks peaks;
    int done, count; /* measurements so far, in all */
};

/* Times the operations of a set (NULL: all sets), fp32, random data, and hands over each figure
 * as it comes. Algorithms are those that tuning found, else the ones taken by rule. A handler
 * that returns false ends it. options: NULL: as usual. fails: LK_E_ARGUMENT (unknown set or
 * math), LK_E_DEVICE, LK_E_DEVICE_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_bench_kernels(
    struct lk_device *device, const char *set, const struct lk_bench_options *options,
    bool (*handler)(void *context, const struct lk_bench_kernel *kernel), void *context);

/* Names of the sets of operations, "convnet"; NULL past the last. */
LK_API const char *lk_bench_set(int index);

/* Training steps of a model with Adam, on random images that wait in host memory. */
struct lk_bench_model {
    const char *name;
    int64_t batch;
    int steps;                     /* that were timed */
    double samples_per_s, step_ms; /* medians */
    double build_s;                /* from opening the model to the end of its first step */
    double host_percent;           /* of a step: the host was busy, not waiting */
    double loss;                   /* of the last step */
    size_t peak_bytes;             /* of device memory, the model's own */
    size_t resident_bytes;         /* most memory of the process (getrusage) */
};

/* Trains at least 10 steps: on a slow device they decide how long. options: NULL: as usual.
 * Kernels that a cache of earlier runs holds are not built again: build_s is a cold start only
 * where the caches are empty. fails: LK_E_MODEL (unknown name), as training
 * does */
LK_API LK_MUST_CHECK enum lk_status lk_bench_model(struct lk_device *device, const char *name,
                                                   const struct lk_bench_options *options,
                                                   struct lk_bench_model *result);

/* Whether it can be timed. fails: LK_E_MODEL, with the nearest name */
LK_API LK_MUST_CHECK enum lk_status lk_bench_model_check(const char *name);

/* Names of the models it knows, and their usual batch; NULL, 0 past the last. */
LK_API const char *lk_bench_model_name(int index);
LK_API int64_t lk_bench_model_batch(int index);
/* Likewise of models that are timed only where they are asked for. */
LK_API const char *lk_bench_other_model_name(int index);
LK_API int64_t lk_bench_other_model_batch(int index);

/* Averaging in host memory: gradients of several replicas added along the tree over shards, on
 * all cores. Rates are medians of rounds taken in turn, 1e9 bytes a second, bytes read plus
 * written. */
struct lk_bench_averaging {
    int replicas, threads;
    size_t bytes;       /* of one replica's gradients */
    double ms, gbs;     /* of the sum */
    double checked_gbs; /* with checksums and the search for infinities, in the same pass */
    double read_gbs; /* as many threads adding up the words of the same arrays: reads alone */
    double copy_gbs; /* as many threads copying one array, written past the caches */
    double percent_of_bandwidth; /* gbs, of the larger of the two */
};

/* bytes: of one replica's gradients, 0: 100 MB; it takes five times as much memory. Waits.
 * fails: LK_E_ARGUMENT, LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_bench_averaging(int64_t bytes,
                                                       struct lk_bench_averaging *result);

/* What a step's time goes to. */
enum lk_scale_limit {
    LK_SCALE_COMPUTE,
    LK_SCALE_LINK,     /* between devices and their host */
    LK_SCALE_ADDITION, /* on the host */
    LK_SCALE_NETWORK,  /* between hosts */
    LK_SCALE_UPDATE,
    LK_SCALE_FIXED,   /* the host, once a step */
    LK_SCALE_READING, /* samples, beside all else: what the step is longer for it */
    LK_SCALE_SHARDS,  /* devices idle for want of shards: no time of its own */
    LK_SCALE_LIMITS,
};

/* "compute", "too few shards" */
LK_API const char *lk_scale_limit_name(enum lk_scale_limit limit);

struct lk_scale_options {
    const char *model;  /* zoo name or model file */
    const int *devices; /* [count], of all hosts together: 1 to 256 each, the ones to predict */
    int count;
    int64_t batch, each; /* of all devices together; or, where that is 0, of each */
    int shards;          /* a power of two up to 256; 0: as training chooses */
    double link_gbs;     /* of each device, either way; 0: as the host copies memory */
    int hosts;           /* devices are spread evenly over them */
    double net_gbs;      /* between hosts, where there are several */
    const struct lk_settings *settings; /* of the model and the data that is read; or NULL */
};

/* A step on so many devices like the one that was measured. */
struct lk_scale_row {
    int devices, shards;
    int64_t batch;
    double step_ms, samples_per_s;
    double percent; /* efficiency: of `devices` times the rate of one device alone */
    enum lk_scale_limit limit;
    double ms[LK_SCALE_LIMITS]; /* what the step's longest chain consists of */
    double noise; /* of percent: it moves so with the middle half of the times measured */
};

/* What all rows rest on, beside the device's times. */
struct lk_scale_report {
    double link_gbs, add_gbs;  /* measured where it was not given; the host's addition */
    double bytes;              /* of all gradients */
    int buckets;               /* that they travel in */
    double reading_ms;         /* time of a core for reading a sample; 0: none is read */
    struct lk_scale_row *rows; /* [count], the caller's */
    struct lk_scale_row alone; /* one device, with which efficiency is compared */
};

/* Measures the device, and reading if the settings name data, and predicts synchronous training
 * on more devices, from a simulation of the step. Waits. fails: LK_E_ARGUMENT for options that
 * are out of range; as training does */
LK_API LK_MUST_CHECK enum lk_status lk_bench_scale(struct lk_device *device,
                                                   const struct lk_scale_options *options,
                                                   struct lk_scale_report *report);

/* A kernel against its known answer; the text lives during the call of the handler. */
struct lk_selftest {
    const char *name; /* "conv2d forward 3x3 stride 2" */
    bool ok;
    const char *detail; /* what was expected and what was found; "" where all is well */
    int done, count;    /* tests so far, in all */
};

/* Runs every operation, optimizer and sum on inputs whose results are known, and hands over
 * each verdict. A kernel that fails, or does not build, is a verdict; the others still run.
 * fails: LK_E_DEVICE where the device no longer answers, LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status
lk_selftest_run(struct lk_device *device,
                void (*handler)(void *context, const struct lk_selftest *test), void *context,
                int *failures);

#ifdef __cplusplus
}
#endif
#endif
