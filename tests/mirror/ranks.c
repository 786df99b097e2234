/* What a rank does in the tests of ranks.py: `ranks sums` and so on. Fails with a line on
 * stderr.
 */
#include "mirror/world.h"

#include "base/fail.h"
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct lk_world *world;
static struct lk_reducer *reducer;

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition))                                                                      \
            fail(__LINE__, #condition);                                                        \
    } while (0)

static void fail(int line, const char *what)
{
    fprintf(stderr, "rank %d, line %d: %s: '%s'\n", world ? lk_world_rank(world) : -1, line,
            what, lk_error_text());
    exit(1);
}

static void pause_ms(double ms)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e6 * ms)}, NULL);
}

static void *take(size_t bytes)
{
    void *memory = malloc(bytes);
    CHECK(memory);
    return memory;
}

/* Values of many sizes, so that every order of additions gives other bits. */
static double value(enum lk_dtype real, int shard, int64_t i)
{
    uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15 + (uint64_t)shard * 0xbf58476d1ce4e5b9 + 1;
    x = (x ^ (x >> 31)) * 0x94d049bb133111eb;
    const double v = (double)(int64_t)(x ^ (x >> 29)) * (double)(1 << (x >> 5) % 16);
    return real == LK_F32 ? (float)v : v;
}

/* Adding floats in double and rounding once is the float addition. */
static double tree(enum lk_dtype real, int first, int count, int64_t i)
{
    if (count == 1)
        return value(real, first, i);
    const double sum =
        tree(real, first, count / 2, i) + tree(real, first + count / 2, count / 2, i);
    return real == LK_F32 ? (float)sum : sum;
}

static double get(enum lk_dtype real, const void *reals, int64_t i)
{
    return real == LK_F64 ? ((const double *)reals)[i] : (double)((const float *)reals)[i];
}

static void put(enum lk_dtype real, void *reals, int64_t i, double x)
{
    if (real == LK_F64)
        ((double *)reals)[i] = x;
    else
        ((float *)reals)[i] = (float)x;
}

/* How the ranks share shards in what follows. */
enum { EQUALLY, UNEVENLY, ALL_TO_LAST };
static int sharing = EQUALLY;

/* Every rank's shards. Unevenly: some have none. */
static void share_shards(int shards, int runs[LK_MOST_SHARDS])
{
    const int size = lk_world_size(world);
    int left = shards;
    for (int i = 0; i < size; i++) {
        const int even = (i + 1) * shards / size - i * shards / size;
        const int odd = i % 2 ? 0 : (shards * (i + 3) / 7 + 1) % (left + 1);
        runs[i] = i == size - 1         ? left
                  : sharing == EQUALLY  ? even
                  : sharing == UNEVENLY ? odd
                                        : 0;
        left -= runs[i];
    }
}

/* A bucket as a rank has it; `salt` makes its values its own. */
struct bucket {
    enum lk_dtype real;
    int64_t count, salt;
    int term_count;
    struct lk_term terms[LK_MOST_SUBTREES];
    void *values[LK_MOST_SUBTREES], *result;
};

static void make(struct bucket *bucket, int shards)
{
    struct lk_subtree subtrees[LK_MOST_SUBTREES];
    int runs[LK_MOST_SHARDS], first = 0;
    share_shards(shards, runs);
    for (int i = 0; i < lk_world_rank(world); i++)
        first += runs[i];
    bucket->term_count = lk_subtrees_of(first, runs[lk_world_rank(world)], subtrees);
    for (int t = 0; t < bucket->term_count; t++) {
        bucket->values[t] = take((size_t)bucket->count * 8);
        bucket->terms[t] = (struct lk_term){subtrees[t], bucket->values[t]};
        for (int64_t i = 0; i < bucket->count; i++)
            put(bucket->real, bucket->values[t], i,
                tree(bucket->real, subtrees[t].first, subtrees[t].count, i + bucket->salt));
    }
    bucket->result = take((size_t)bucket->count * 8 + 8);
    memset(bucket->result, 0x5a, (size_t)bucket->count * 8 + 8);
}

static void check(struct bucket *bucket, int shards)
{
    const size_t size = bucket->real == LK_F64 ? 8 : 4;
    for (int64_t i = 0; i < bucket->count; i++)
        CHECK(get(bucket->real, bucket->result, i) ==
              tree(bucket->real, 0, shards, i + bucket->salt));
    CHECK(((char *)bucket->result)[(size_t)bucket->count * size] == 0x5a);
}

static void clear(struct bucket *bucket)
{
    for (int t = 0; t < bucket->term_count; t++)
        free(bucket->values[t]);
    free(bucket->result);
}

static void plan(enum lk_dtype real, int shards, int buckets, const int64_t *counts)
{
    int runs[LK_MOST_SHARDS];
    share_shards(shards, runs);
    CHECK(lk_world_plan(world, &(struct lk_world_plan){.shards = shards,
                                                       .runs = runs,
                                                       .real = real,
                                                       .buckets = buckets,
                                                       .counts = counts,
                                                       .reducer = reducer}) == LK_OK);
}

static void check_sum(enum lk_dtype real, int shards, int64_t count)
{
    struct bucket bucket = {.real = real, .count = count};
    plan(real, shards, 1, &count);
    make(&bucket, shards);
    for (int times = 0; times < 2; times++) {
        CHECK(lk_world_sum_begin(world, 0, bucket.terms, bucket.result) == LK_OK);
        CHECK(lk_world_sum_end(world, 0) == LK_OK);
        check(&bucket, shards);
    }
    clear(&bucket);
}

static void sums(void)
{
    for (enum lk_dtype real = LK_F32; real <= LK_F64; real++)
        for (int shards = 1; shards <= LK_MOST_SHARDS; shards *= 2)
            for (sharing = EQUALLY; sharing <= ALL_TO_LAST; sharing++) {
                static const int64_t counts[] = {1, 31, 32, 127, 128, 129, 4097};
                for (int i = 0; i < 7; i++)
                    check_sum(real, shards, counts[i]);
                if (shards <= 8)
                    check_sum(real, shards, 1000003);
            }
}

/* Several sums on their way, ended in another order on every rank, after other work. */
static void several(void)
{
    enum { BUCKETS = 5, SHARDS = 16 };
    static const int64_t counts[BUCKETS] = {200000, 2, 70000, 1, 300001};
    struct bucket bucket[BUCKETS];
    plan(LK_F32, SHARDS, BUCKETS, counts);
    for (int i = 0; i < BUCKETS; i++) {
        bucket[i] = (struct bucket){.real = LK_F32, .count = counts[i], .salt = 1000 * i};
        make(&bucket[i], SHARDS);
    }
    for (int times = 0; times < 20; times++) {
        for (int i = 0; i < BUCKETS; i++) {
            memset(bucket[i].result, 0, (size_t)counts[i] * 4);
            CHECK(lk_world_sum_begin(world, i, bucket[i].terms, bucket[i].result) == LK_OK);
            pause_ms(0.3 * lk_world_rank(world));
            CHECK(lk_world_sum_advance(world) == LK_OK);
        }
        for (int i = 0; i < BUCKETS; i++) {
            const int which = (i + times + lk_world_rank(world)) % BUCKETS;
            CHECK(lk_world_sum_end(world, which) == LK_OK);
        }
    }
    for (int i = 0; i < BUCKETS; i++) {
        check(&bucket[i], SHARDS);
        clear(&bucket[i]);
    }
}

static void check_any_order(enum lk_dtype real)
{
    const int64_t count = 100003;
    struct bucket bucket = {.real = real, .count = count};
    int runs[LK_MOST_SHARDS];
    share_shards(8, runs);
    CHECK(lk_world_plan(world, &(struct lk_world_plan){.shards = 8,
                                                       .runs = runs,
                                                       .real = real,
                                                       .buckets = 1,
                                                       .counts = &count,
                                                       .in_any_order = true,
                                                       .reducer = reducer}) == LK_OK);
    make(&bucket, 8);
    CHECK(lk_world_sum_begin(world, 0, bucket.terms, bucket.result) == LK_OK);
    CHECK(lk_world_sum_end(world, 0) == LK_OK);
    for (int64_t i = 0; i < count; i++) {
        double most = 0;
        for (int s = 0; s < 8; s++)
            most += fabs(value(real, s, i));
        CHECK(fabs(get(real, bucket.result, i) - tree(real, 0, 8, i)) <=
              most * (real == LK_F32 ? 1e-6 : 1e-15));
    }
    clear(&bucket);
}

static void in_any_order(void)
{
    for (enum lk_dtype real = LK_F32; real <= LK_F64; real++)
        for (sharing = EQUALLY; sharing <= ALL_TO_LAST; sharing++)
            check_any_order(real);
}

static void add(void)
{
    const int size = lk_world_size(world);
    double values[3] = {1, lk_world_rank(world), 1e300};
    CHECK(lk_world_all_reduce(world, 2, values) == LK_OK);
    CHECK(values[0] == size && values[1] == size * (size - 1) / 2 && values[2] == 1e300);
    CHECK(lk_world_all_reduce(world, LK_MOST_ADDED + 1, values) == LK_E_ARGUMENT);
    lk_error_clear();
}

static void share(void)
{
    const size_t bytes = 70000001; /* more than one message takes */
    unsigned char *memory = take(bytes);
    for (size_t i = 0; i < bytes; i++)
        memory[i] = lk_world_rank(world) == 0 ? (unsigned char)(i * 7 + i / 256) : 0;
    CHECK(lk_world_broadcast(world, bytes, memory) == LK_OK);
    for (size_t i = 0; i < bytes; i++)
        CHECK(memory[i] == (unsigned char)(i * 7 + i / 256));
    CHECK(lk_world_broadcast(world, 0, memory) == LK_OK);
    CHECK(lk_world_barrier(world, LK_OK) == LK_OK);
    free(memory);
}

static void refused(enum lk_status status, const char *said)
{
    CHECK(status == LK_E_ARGUMENT);
    if (!strstr(lk_error_text(), said))
        fail(__LINE__, said);
    lk_error_clear();
}

static void refusals(void)
{
    static const int64_t counts[] = {32, 0};
    int runs[LK_MOST_SHARDS];
    struct lk_world_plan plan = {.shards = 8,
                                 .runs = runs,
                                 .real = LK_F32,
                                 .buckets = 1,
                                 .counts = counts,
                                 .reducer = reducer};
    const struct lk_term term = {{1, 1}, counts};
    char result[128];
    refused(lk_world_sum_begin(world, 0, &term, result), "not planned");
    refused(lk_world_sum_end(world, 0), "not planned");
    share_shards(7, runs);
    refused(lk_world_plan(world, &plan), "do not add up to 8 shards");
    runs[0] -= 9;
    refused(lk_world_plan(world, &plan), "do not add up to 8 shards");
    share_shards(12, runs);
    plan.shards = 12;
    refused(lk_world_plan(world, &plan), "expected a power of two");
    share_shards(512, runs);
    plan.shards = 512;
    refused(lk_world_plan(world, &plan), "at most 256");
    share_shards(8, runs);
    plan.shards = 8;
    plan.real = LK_U8;
    refused(lk_world_plan(world, &plan), "float32 or float64");
    plan.real = LK_F32;
    plan.buckets = 2;
    refused(lk_world_plan(world, &plan), "a bucket of 0 values");
    plan.buckets = 100000;
    refused(lk_world_plan(world, &plan), "100000 buckets");
    plan.buckets = 1;
    CHECK(lk_world_plan(world, &plan) == LK_OK);
    refused(lk_world_sum_begin(world, 1, &term, result), "bucket 1");
    refused(lk_world_sum_begin(world, 0, &term, result), "is of 1 shards from 1, expected");
}

/* The last rank has another text, which all ranks print. */
static void equal(void)
{
    const bool is_last = lk_world_rank(world) == lk_world_size(world) - 1;
    char text[64];
    CHECK(lk_world_check_equal(world, "versions", "0.1.0") == LK_OK);
    CHECK(lk_world_check_equal(world, "versions", "") == LK_OK);
    snprintf(text, sizeof text, "seed: 1\nlr: %s\nrun: out\n", is_last ? "0.25" : "0.5");
    const enum lk_status status = lk_world_check_equal(world, "settings", text);
    fprintf(stderr, "[%s: %s]\n", lk_status_text(status), lk_error_text());
}

/* Rank 1 fails while the others wait for its terms; all say why. */
static void fails(void)
{
    const int64_t count = 1000000;
    struct bucket bucket = {.real = LK_F64, .count = count};
    plan(LK_F64, 8, 1, &count);
    make(&bucket, 8);
    pause_ms(lk_world_rank(world) == 1 ? 200 : 0);
    enum lk_status status = lk_world_sum_begin(world, 0, bucket.terms, bucket.result);
    CHECK(status == LK_OK);
    if (lk_world_rank(world) == 1)
        status = lk_world_fail(world, lk_fail(LK_E_DEVICE, "device 3 is lost"));
    else
        status = lk_world_sum_end(world, 0);
    fprintf(stderr, "[%s: %s]\n", lk_status_text(status), lk_error_text());
    CHECK(lk_world_sum_end(world, 0) == status);
    CHECK(lk_world_barrier(world, LK_OK) == status);
    CHECK(lk_world_fail(world, status) == status); /* the bucket stays until the world's end */
}

/* The last rank does not agree the second time, and the others learn it in their agreement. */
static void disagrees(void)
{
    enum lk_status status = LK_OK;
    CHECK(lk_world_barrier(world, status) == LK_OK);
    pause_ms(200); /* a failure reaches others as soon as it can */
    if (lk_world_rank(world) == lk_world_size(world) - 1)
        status = lk_fail(LK_E_DATA, "no labels in 'train'");
    status = lk_world_barrier(world, status);
    fprintf(stderr, "[%s: %s]\n", lk_status_text(status), lk_error_text());
}

/* Adds until rank 1 is killed and the job with it. */
static void killed(void)
{
    const int64_t count = 300000;
    struct bucket bucket = {.real = LK_F32, .count = count};
    plan(LK_F32, 8, 1, &count);
    make(&bucket, 8);
    for (int i = 0;; i++) {
        if (i == 20 && lk_world_rank(world) == 1)
            raise(SIGKILL);
        CHECK(lk_world_sum_begin(world, 0, bucket.terms, bucket.result) == LK_OK);
        CHECK(lk_world_sum_end(world, 0) == LK_OK);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } commands[] = {{"sums", sums},         {"several", several},
                    {"share", share},       {"add", add},
                    {"refusals", refusals}, {"equal", equal},
                    {"fails", fails},       {"disagrees", disagrees},
                    {"killed", killed},     {"any-order", in_any_order}};
    const enum lk_status status = lk_world_open(&world);
    if (status != LK_OK) {
        fprintf(stderr, "%s: %s\n", lk_status_text(status), lk_error_text());
        return 1;
    }
    CHECK(lk_reducer_create(2, &reducer) == LK_OK);
    for (int i = 0; argc == 2 && i < LK_COUNT(commands); i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        commands[i].run();
        printf("%s: rank %d of %d\n", argv[1], lk_world_rank(world), lk_world_size(world));
        lk_world_close(world);
        lk_reducer_destroy(reducer);
        return 0;
    }
    return 2;
}
