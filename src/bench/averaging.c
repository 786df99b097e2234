/* Times the averaging of gradients in host memory beside plain reading and copying. */
#include "bench/timing.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/parallel.h"
#include "device/device.h"
#include "mirror/reduce.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { REPLICAS = 4, ROUNDS = 15, MOST_THREADS = 256, READ_BLOCK = 16 << 10 };

static const int64_t USUAL_BYTES = 100000000;

/* A plain sum of words that reads all arrays once, as the measure of reading. Its threads take
 * blocks as the reducer's do, so that a busy core slows both in the same way. */
struct reading {
    const uint32_t *arrays[REPLICAS];
    int64_t count; /* words of each */
    atomic_llong next;
    atomic_uint total; /* used, so that the compiler cannot leave out the reading */
};

static uint32_t sum_words(const uint32_t *words, int64_t count)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += words[i];
    return sum;
}

static void *read_blocks(void *context)
{
    struct reading *r = context;
    uint32_t total = 0;
    int64_t at;
    while ((at = atomic_fetch_add(&r->next, READ_BLOCK)) < r->count)
        for (int k = 0; k < REPLICAS; k++)
            total += sum_words(r->arrays[k] + at,
                               r->count - at < READ_BLOCK ? r->count - at : READ_BLOCK);
    atomic_fetch_add(&r->total, total);
    return NULL;
}

static void read_all(struct reading *reading, int threads)
{
    pthread_t others[MOST_THREADS];
    int started = 0;
    atomic_store(&reading->next, 0);
    while (started < threads - 1 &&
           pthread_create(&others[started], NULL, read_blocks, reading) == 0)
        started++;
    read_blocks(reading);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
}

struct arrays {
    float *gradients[REPLICAS], *sum;
    struct lk_reducer *reducer;
};

static enum lk_status make_arrays(struct arrays *arrays, size_t bytes, int threads)
{
    for (int k = 0; k <= REPLICAS; k++) {
        float *made = malloc(bytes);
        if (!made)
            return lk_fail_memory("gradients to average", bytes);
        for (size_t i = 0; i < bytes / sizeof *made; i++)
            made[i] = (float)(i % 1000) * 0.001f;
        *(k < REPLICAS ? &arrays->gradients[k] : &arrays->sum) = made;
    }
    return lk_reducer_create(threads, &arrays->reducer);
}

static void clear_arrays(struct arrays *arrays)
{
    lk_reducer_destroy(arrays->reducer);
    for (int k = 0; k < REPLICAS; k++)
        free(arrays->gradients[k]);
    free(arrays->sum);
}

/* Times adding the first `replicas` arrays (with one: copying it), in 1e9 bytes a second. */
static enum lk_status time_sum(const struct arrays *arrays, size_t bytes, int replicas,
                               bool is_checked, double *gbs)
{
    struct lk_term terms[REPLICAS];
    uint32_t checksums[REPLICAS];
    void *copy = arrays->sum;
    for (int k = 0; k < replicas; k++)
        terms[k] = (struct lk_term){{k, 1}, arrays->gradients[k]};
    struct lk_reduction_result sum = {
        .subtree = {0, replicas}, .copies = &copy, .copy_count = 1};
    const struct lk_reduction_job job = {.dtype = LK_F32,
                                         .count = (int64_t)(bytes / sizeof(float)),
                                         .terms = terms,
                                         .term_count = replicas,
                                         .sums = &sum,
                                         .sum_count = 1,
                                         .checksums = is_checked ? checksums : NULL};
    const double start = lk_seconds();
    LK_TRY(lk_reducer_sum(arrays->reducer, &job));
    *gbs = 1e-9 * (double)bytes * (replicas + 1) / (lk_seconds() - start);
    return LK_OK;
}

static double time_read(const struct arrays *arrays, size_t bytes, int threads)
{
    struct reading reading = {.count = (int64_t)(bytes / sizeof(uint32_t))};
    for (int k = 0; k < REPLICAS; k++)
        reading.arrays[k] = (const void *)arrays->gradients[k];
    const double start = lk_seconds();
    read_all(&reading, threads);
    return 1e-9 * (double)bytes * REPLICAS / (lk_seconds() - start);
}

static enum lk_status measure(const struct arrays *arrays, struct lk_bench_averaging *r)
{
    double sum[ROUNDS], checked[ROUNDS], read[ROUNDS], copy[ROUNDS];
    for (int i = -1; i < ROUNDS; i++) { /* the first round, which is slower, does not count */
        const int at = i < 0 ? 0 : i;
        read[at] = time_read(arrays, r->bytes, r->threads);
        LK_TRY(time_sum(arrays, r->bytes, REPLICAS, false, &sum[at]));
        LK_TRY(time_sum(arrays, r->bytes, 1, false, &copy[at]));
        LK_TRY(time_sum(arrays, r->bytes, REPLICAS, true, &checked[at]));
    }
    r->gbs = lk_median(sum, ROUNDS);
    r->checked_gbs = lk_median(checked, ROUNDS);
    r->read_gbs = lk_median(read, ROUNDS);
    r->copy_gbs = lk_median(copy, ROUNDS);
    r->ms = 1e-6 * (double)r->bytes * (REPLICAS + 1) / r->gbs;
    r->percent_of_bandwidth =
        100 * r->gbs / (r->read_gbs > r->copy_gbs ? r->read_gbs : r->copy_gbs);
    return LK_OK;
}

enum lk_status lk_bench_averaging(int64_t bytes, struct lk_bench_averaging *result)
{
    struct lk_bench_averaging found = {.replicas = REPLICAS,
                                       .threads = lk_parallel_cores(MOST_THREADS)};
    struct arrays arrays = {0};
    if (bytes < 0 || bytes > PTRDIFF_MAX / (REPLICAS + 1))
        return lk_fail(LK_E_ARGUMENT, "averaging: %lld bytes of gradients", (long long)bytes);
    found.bytes = (size_t)(bytes ? bytes : USUAL_BYTES) / sizeof(float) * sizeof(float);
    enum lk_status status = make_arrays(&arrays, found.bytes, found.threads);
    if (status == LK_OK)
        status = measure(&arrays, &found);
    clear_arrays(&arrays);
    if (status == LK_OK)
        *result = found;
    return status;
}
