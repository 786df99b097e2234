/* Sums in host memory against a plain walk of the tree over shards, bit for bit. */
#include "mirror/reduce.h"

#include "base/random.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_ok(call) assert_int_equal(call, LK_OK)
#define assert_refused(call, text)                                                             \
    do {                                                                                       \
        assert_int_equal(call, LK_E_ARGUMENT);                                                 \
        assert_non_null(strstr(lk_error_text(), text));                                        \
        lk_error_clear();                                                                      \
    } while (0)

enum { GUARD = 64, FILL = 0x5a };

static uint64_t drawn;

static uint32_t draw(uint32_t below)
{
    return lk_random(7, LK_RANDOM_DATA, 1, drawn++).v[0] % below;
}

static size_t size_of(enum lk_dtype dtype)
{
    return dtype == LK_F64 ? sizeof(double) : sizeof(float);
}

/* Values of many sizes, so that every order of additions gives other bits. */
static void *random_values(enum lk_dtype dtype, int64_t count)
{
    char *values = malloc((size_t)count * size_of(dtype) + 1);
    for (int64_t i = 0; i < count; i++) {
        const struct lk_random4 r = lk_random(5, LK_RANDOM_DATA, 0, drawn++);
        const double size = (double)(1 << r.v[1] % 16);
        const double value = ((double)r.v[0] - 0x1p31 + r.v[2] * 0x1p-32) * size;
        if (dtype == LK_F64)
            ((double *)(void *)values)[i] = value;
        else
            ((float *)(void *)values)[i] = (float)value;
    }
    return values;
}

/* The sum over `shards` values, `stride` apart: nothing but the tree's definition. */
static float tree_f32(const float *x, int64_t stride, int shards)
{
    if (shards == 1)
        return *x;
    return tree_f32(x, stride, shards / 2) +
           tree_f32(x + stride * (shards / 2), stride, shards / 2);
}

static double tree_f64(const double *x, int64_t stride, int shards)
{
    if (shards == 1)
        return *x;
    return tree_f64(x, stride, shards / 2) +
           tree_f64(x + stride * (shards / 2), stride, shards / 2);
}

static void *sum_of(enum lk_dtype dtype, const void *shards, int64_t count, struct lk_subtree s)
{
    void *sum = malloc((size_t)count * size_of(dtype) + 1);
    for (int64_t i = 0; i < count; i++)
        if (dtype == LK_F64)
            ((double *)sum)[i] =
                tree_f64((const double *)shards + s.first * count + i, count, s.count);
        else
            ((float *)sum)[i] =
                tree_f32((const float *)shards + s.first * count + i, count, s.count);
    return sum;
}

static uint32_t checksum_of(const void *values, size_t bytes)
{
    uint32_t sum = 0, word;
    for (size_t i = 0; i < bytes / 4; i++) {
        memcpy(&word, (const char *)values + 4 * i, 4);
        sum += word * (2 * (uint32_t)i + 1);
    }
    return sum;
}

/* --- jobs ------------------------------------------------------------------------------- */

/* Shards of a job cut into terms, with sums, copies and what they must become. */
struct trial {
    enum lk_dtype dtype;
    int64_t count;
    void *shards; /* [LK_MOST_SHARDS][count] */
    struct lk_term terms[LK_MOST_SHARDS];
    int term_count;
    struct lk_reduction_result sums[LK_MOST_SHARDS];
    void *copies[LK_MOST_SHARDS][LK_MOST_COPIES];
    char *memory[LK_MOST_SHARDS][LK_MOST_COPIES]; /* copies with guards */
    uint32_t checksums[LK_MOST_SHARDS];
    struct lk_reduction_job job;
};

static struct trial *trial_create(enum lk_dtype dtype, int64_t count)
{
    struct trial *t = calloc(1, sizeof *t);
    t->dtype = dtype;
    t->count = count;
    t->shards = random_values(dtype, count * LK_MOST_SHARDS);
    return t;
}

static void add_term(struct trial *t, struct lk_subtree s)
{
    t->terms[t->term_count++] = (struct lk_term){s, sum_of(t->dtype, t->shards, t->count, s)};
}

/* Adds the subtree, in one term or cut at random. */
static void add_cut(struct trial *t, struct lk_subtree s, uint32_t percent)
{
    if (s.count == 1 || draw(100) >= percent) {
        add_term(t, s);
        return;
    }
    const int half = s.count / 2;
    add_cut(t, (struct lk_subtree){s.first, half}, percent);
    add_cut(t, (struct lk_subtree){s.first + half, half}, percent);
}

static void add_run(struct trial *t, int first, int count, uint32_t percent)
{
    struct lk_subtree s[LK_MOST_SUBTREES];
    const int subtrees = lk_subtrees_of(first, count, s);
    for (int i = 0; i < subtrees; i++)
        add_cut(t, s[i], percent);
}

/* `most` copies at most; shift: bytes past 16-byte alignment, where a real has no more. */
static void make_job(struct trial *t, int most, size_t shift)
{
    struct lk_subtree subtrees[LK_MOST_SHARDS];
    const int sums = lk_terms_join(t->terms, t->term_count, subtrees);
    const size_t bytes = (size_t)t->count * size_of(t->dtype);
    for (int i = 0; i < sums; i++) {
        const int copies = 1 + (int)draw((uint32_t)most);
        for (int c = 0; c < copies; c++) {
            t->memory[i][c] = malloc(bytes + 3 * GUARD);
            memset(t->memory[i][c], FILL, bytes + 3 * GUARD);
            t->copies[i][c] = t->memory[i][c] + GUARD + (c % 2 ? shift : 0);
        }
        t->sums[i] = (struct lk_reduction_result){
            .subtree = subtrees[i], .copies = t->copies[i], .copy_count = copies};
    }
    t->job = (struct lk_reduction_job){.dtype = t->dtype,
                                       .count = t->count,
                                       .terms = t->terms,
                                       .term_count = t->term_count,
                                       .sums = t->sums,
                                       .sum_count = sums};
}

static void check_guards(const char *memory, const char *copy, size_t bytes)
{
    for (const char *p = memory; p < copy; p++)
        assert_int_equal(*p, FILL);
    for (const char *p = copy + bytes; p < memory + bytes + 3 * GUARD; p++)
        assert_int_equal(*p, FILL);
}

static void check_results(const struct trial *t)
{
    const size_t bytes = (size_t)t->count * size_of(t->dtype);
    for (int i = 0; i < t->job.sum_count; i++) {
        void *expected = sum_of(t->dtype, t->shards, t->count, t->sums[i].subtree);
        for (int c = 0; c < t->sums[i].copy_count; c++) {
            assert_memory_equal(t->copies[i][c], expected, bytes);
            check_guards(t->memory[i][c], t->copies[i][c], bytes);
        }
        if (t->job.checksums) {
            assert_int_equal(t->sums[i].checksum, checksum_of(expected, bytes));
            assert_true(t->sums[i].is_finite);
        }
        free(expected);
    }
    for (int k = 0; t->job.checksums && k < t->term_count; k++)
        assert_int_equal(t->checksums[k], checksum_of(t->terms[k].values, bytes));
}

static void trial_destroy(struct trial *t)
{
    for (int k = 0; k < t->term_count; k++)
        free((void *)t->terms[k].values);
    for (int i = 0; i < t->job.sum_count; i++)
        for (int c = 0; c < t->sums[i].copy_count; c++)
            free(t->memory[i][c]);
    free(t->shards);
    free(t);
}

/* Without checks, then with them. */
static void run_trial(struct trial *t, struct lk_reducer *reducer)
{
    assert_ok(lk_reducer_sum(reducer, &t->job));
    check_results(t);
    t->job.checksums = t->checksums;
    assert_ok(lk_reducer_sum(reducer, &t->job));
    check_results(t);
}

static const enum lk_dtype dtypes[] = {LK_F32, LK_F64};

/* --- tests ------------------------------------------------------------------------------ */

/* Runs of shards at random places, some with a gap, cut at random. */
static void test_random_cuts(void **state)
{
    struct lk_reducer *reducer;
    (void)state;
    assert_ok(lk_reducer_create(3, &reducer));
    for (int n = 0; n < 160; n++) {
        const int longest = 1 << (2 + draw(7));
        const int first = (int)draw(LK_MOST_SHARDS);
        const int room = LK_MOST_SHARDS - first;
        const int count = 1 + (int)draw((uint32_t)(room < longest ? room : longest));
        const int next = first + count + 1 + (int)draw(8);
        struct trial *t = trial_create(dtypes[n % 2], 1 + draw(150));
        const uint32_t percent = draw(101);
        add_run(t, first, count, percent);
        if (n % 3 == 0 && next < LK_MOST_SHARDS)
            add_run(t, next, 1 + (int)draw((uint32_t)(LK_MOST_SHARDS - next)), percent);
        make_job(t, 3, n % 5 == 0 ? 8 : 0);
        run_trial(t, reducer);
        trial_destroy(t);
    }
    lk_reducer_destroy(reducer);
}

/* The whole tree in every power of two, each shard a term of its own, and in one term. */
static void test_whole_trees(void **state)
{
    struct lk_reducer *reducer;
    (void)state;
    assert_ok(lk_reducer_create(1, &reducer));
    for (int shards = 1; shards <= LK_MOST_SHARDS; shards *= 2)
        for (int n = 0; n < 4; n++) {
            struct trial *t = trial_create(dtypes[n % 2], 37);
            add_run(t, 0, shards, n < 2 ? 100 : 0);
            assert_int_equal(t->term_count, n < 2 ? shards : 1);
            make_job(t, 2, 4 * size_of(LK_F32) / 2);
            assert_int_equal(t->job.sum_count, 1);
            run_trial(t, reducer);
            trial_destroy(t);
        }
    lk_reducer_destroy(reducer);
}

/* Counts round granules and blocks, on more threads than there are blocks; the last ones are
 * streamed. */
static void test_counts(void **state)
{
    static const int64_t counts[] = {0,  1,   2,   3,    15,    16,    17,    31,
                                     33, 127, 128, 4097, 16384, 16385, 40001, 70003};
    struct lk_reducer *reducer;
    (void)state;
    assert_ok(lk_reducer_create(6, &reducer));
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        for (int n = 0; n < 2; n++) {
            struct trial *t = trial_create(dtypes[n], counts[k]);
            add_term(t, (struct lk_subtree){0, 2});
            add_term(t, (struct lk_subtree){2, 1});
            add_term(t, (struct lk_subtree){4, 2});
            make_job(t, counts[k] > 20000 ? 1 : 4, size_of(dtypes[n]));
            run_trial(t, reducer);
            trial_destroy(t);
        }
    lk_reducer_destroy(reducer);
}

static void test_streamed_copies(void **state)
{
    struct lk_reducer *reducer;
    (void)state;
    assert_ok(lk_reducer_create(2, &reducer));
    for (int n = 0; n < 2; n++) {
        struct trial *t = trial_create(dtypes[n], 20011);
        add_run(t, 0, 4, 100);
        make_job(t, 1, 0);
        const size_t bytes = (size_t)t->count * size_of(dtypes[n]);
        for (int c = 1; c < LK_MOST_COPIES; c++) { /* every third one cannot be streamed */
            t->memory[0][c] = malloc(bytes + 3 * GUARD);
            memset(t->memory[0][c], FILL, bytes + 3 * GUARD);
            t->copies[0][c] = t->memory[0][c] + GUARD + (c % 3 ? 0 : size_of(dtypes[n]));
        }
        t->sums[0].copy_count = LK_MOST_COPIES;
        run_trial(t, reducer);
        trial_destroy(t);
    }
    lk_reducer_destroy(reducer);
}

/* A reducer, and a job of all terms of 8 shards with one copy. */
static struct trial *begin_whole(struct lk_reducer **reducer)
{
    assert_ok(lk_reducer_create(2, reducer));
    struct trial *t = trial_create(LK_F32, 50021);
    add_run(t, 0, 8, 100);
    make_job(t, 1, 0);
    return t;
}

/* Terms whose sum nobody wants are looked at nevertheless, and stay as they are. */
static void test_looked_at(void **state)
{
    struct lk_reducer *reducer;
    (void)state;
    struct trial *t = begin_whole(&reducer);
    t->job.checksums = t->checksums;
    t->sums[0].copy_count = 0;
    assert_ok(lk_reducer_sum(reducer, &t->job));
    check_results(t);
    t->sums[0].copy_count = 1; /* what trial_destroy() has to free */
    trial_destroy(t);
    lk_reducer_destroy(reducer);
}

/* A sum may be written over a term that it is made of. */
static void test_in_place(void **state)
{
    struct lk_reducer *reducer;
    (void)state;
    struct trial *t = begin_whole(&reducer);
    void *into[] = {(void *)t->terms[0].values, (void *)t->terms[5].values};
    void *expected = sum_of(LK_F32, t->shards, t->count, (struct lk_subtree){0, 8});
    t->sums[0].copies = into;
    t->sums[0].copy_count = 2;
    assert_ok(lk_reducer_sum(reducer, &t->job));
    for (int c = 0; c < 2; c++)
        assert_memory_equal(into[c], expected, (size_t)t->count * sizeof(float));
    t->sums[0].copy_count = 1; /* what trial_destroy() has to free */
    free(expected);
    trial_destroy(t);
    lk_reducer_destroy(reducer);
}

static void put(struct trial *t, void *values, int64_t i, double value)
{
    if (t->dtype == LK_F64)
        ((double *)values)[i] = value;
    else
        ((float *)values)[i] = (float)value;
}

/* One odd value at every place of a granule and of what is left behind the last one. */
static void test_finite(void **state)
{
    const double odd[] = {INFINITY, -INFINITY, NAN};
    struct lk_reducer *reducer;
    (void)state;
    assert_ok(lk_reducer_create(2, &reducer));
    for (int n = 0; n < 2; n++) {
        struct trial *t = trial_create(dtypes[n], 45);
        add_run(t, 0, 2, 100);
        add_term(t, (struct lk_subtree){2, 1}); /* another sum, always finite */
        make_job(t, 1, 0);
        t->job.checksums = t->checksums;
        for (int64_t i = 0; i < t->count; i++) {
            void *values = (void *)t->terms[i % 2].values;
            put(t, values, i, odd[i % 3]);
            assert_ok(lk_reducer_sum(reducer, &t->job));
            assert_false(t->sums[0].is_finite);
            assert_true(t->sums[1].is_finite);
            put(t, values, i, 1e30);
            assert_ok(lk_reducer_sum(reducer, &t->job));
            assert_true(t->sums[0].is_finite);
        }
        if (dtypes[n] == LK_F32) { /* finite terms, infinite sum */
            put(t, (void *)t->terms[0].values, 7, 3e38);
            put(t, (void *)t->terms[1].values, 7, 3e38);
            assert_ok(lk_reducer_sum(reducer, &t->job));
            assert_false(t->sums[0].is_finite);
        }
        trial_destroy(t);
    }
    lk_reducer_destroy(reducer);
}

/* Jobs in quick succession: every thread may be late for one and early for the next. */
static void test_many_jobs(void **state)
{
    struct lk_reducer *reducer;
    (void)state;
    assert_ok(lk_reducer_create(5, &reducer));
    struct trial *small = trial_create(LK_F32, 60), *large = trial_create(LK_F32, 50000);
    add_run(small, 0, 16, 100);
    add_run(large, 3, 3, 100);
    make_job(small, 1, 0);
    make_job(large, 1, 0);
    large->job.checksums = large->checksums;
    for (int n = 0; n < 400; n++) {
        struct trial *t = n % 3 ? large : small;
        for (int i = 0; i < t->job.sum_count; i++)
            memset(t->copies[i][0], FILL, (size_t)t->count * sizeof(float));
        assert_ok(lk_reducer_sum(reducer, &t->job));
        if (n % 20 < 2)
            check_results(t);
    }
    trial_destroy(small);
    trial_destroy(large);
    lk_reducer_destroy(reducer);
}

static void test_refused_terms(void **state)
{
    static const struct {
        struct lk_subtree a, b;
        const char *text;
    } cases[] = {
        {{0, 2}, {1, 1}, "begins with shard 1; expected 2"},
        {{0, 1}, {0, 1}, "begins with shard 0; expected 1"},
        {{2, 1}, {1, 1}, "begins with shard 1; expected 3"},
        {{0, 1}, {1, 2}, "no subtree"},
        {{0, 1}, {3, 3}, "no subtree"},
        {{0, 1}, {4, 0}, "no subtree"},
        {{-1, 1}, {4, 1}, "no subtree"},
        {{0, 1}, {256, 1}, "no subtree"},
        {{0, 1}, {512, 256}, "no subtree"},
        {{0, 1}, {0, 1 << 30}, "no subtree"},
    };
    struct lk_reducer *reducer;
    (void)state;
    assert_ok(lk_reducer_create(1, &reducer));
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        float x[2] = {1, 2}, y = 5;
        void *copy = &y;
        struct lk_term terms[] = {{cases[k].a, &x[0]}, {cases[k].b, &x[1]}};
        struct lk_reduction_result sum = {.subtree = {0, 2}, .copies = &copy, .copy_count = 1};
        const struct lk_reduction_job job = {.dtype = LK_F32,
                                             .count = 1,
                                             .terms = terms,
                                             .term_count = 2,
                                             .sums = &sum,
                                             .sum_count = 1};
        assert_refused(lk_reducer_sum(reducer, &job), cases[k].text);
        assert_true(y == 5);
    }
    lk_reducer_destroy(reducer);
}

static void test_refused_jobs(void **state)
{
    struct lk_reducer *reducer;
    (void)state;
    assert_ok(lk_reducer_create(1, &reducer));
    float x[2] = {1, 2}, y = 5;
    void *copies[LK_MOST_COPIES + 1] = {&y};
    struct lk_term terms[] = {{{0, 1}, &x[0]}, {{1, 1}, &x[1]}};
    struct lk_reduction_result sum = {.subtree = {0, 2}, .copies = copies, .copy_count = 1};
    struct lk_reduction_job job = {.dtype = LK_F32,
                                   .count = 1,
                                   .terms = terms,
                                   .term_count = 2,
                                   .sums = &sum,
                                   .sum_count = 1};
#define REFUSED(field, wrong, right, text)                                                     \
    do {                                                                                       \
        field = wrong;                                                                         \
        assert_refused(lk_reducer_sum(reducer, &job), text);                                   \
        field = right;                                                                         \
        assert_true(y == 5);                                                                   \
    } while (0)
    REFUSED(job.dtype, LK_I32, LK_F32, "float32");
    REFUSED(job.count, -1, 1, "-1 values");
    REFUSED(job.count, INT64_MAX, 1, "values");
    REFUSED(job.term_count, 0, 2, "0 terms");
    REFUSED(job.term_count, LK_MOST_SHARDS + 1, 2, "257 terms");
    REFUSED(job.sum_count, 2, 1, "2 sums; the terms give 1");
    REFUSED(sum.subtree.count, 1, 2, "the terms give 2 from 0");
    REFUSED(sum.copy_count, -1, 1, "-1 copies");
    REFUSED(sum.copy_count, LK_MOST_COPIES + 1, 1, "65 copies");
    REFUSED(sum.copy_count, 2, 1, "has no memory");
    REFUSED(terms[1].values, NULL, &x[1], "no values");
#undef REFUSED
    assert_ok(lk_reducer_sum(reducer, &job));
    assert_true(y == 3);
    lk_reducer_destroy(reducer);
    assert_refused(lk_reducer_create(0, &reducer), "0 threads");
    assert_refused(lk_reducer_create(257, &reducer), "257 threads");
    lk_reducer_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_cuts), cmocka_unit_test(test_whole_trees),
        cmocka_unit_test(test_counts),      cmocka_unit_test(test_streamed_copies),
        cmocka_unit_test(test_in_place),    cmocka_unit_test(test_finite),
        cmocka_unit_test(test_many_jobs),   cmocka_unit_test(test_refused_terms),
        cmocka_unit_test(test_looked_at),   cmocka_unit_test(test_refused_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
