/* Device memory, pinned memory, timestamps: what goes in comes out, and nothing outside. */
#include "base/clock.h"
#include "device/staging.h"
#include "rig.h"
#include "skip.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static void expect_bytes(const struct lk_buffer *buffer, const uint8_t *want, size_t bytes)
{
    uint8_t got[4096];
    assert_true(bytes <= sizeof got);
    assert_ok(lk_buffer_read(buffer, 0, bytes, got));
    assert_memory_equal(got, want, bytes);
}

static void write_numbers(struct lk_buffer *buffer, uint8_t *want, size_t bytes, int step)
{
    for (size_t i = 0; i < bytes; i++)
        want[i] = (uint8_t)(i * (size_t)step + 1);
    assert_ok(lk_buffer_write(buffer, 0, bytes, want));
}

static void writes_and_reads(void **state)
{
    (void)state;
    struct lk_buffer *buffer = NULL;
    uint8_t want[1000], part[] = {9, 8, 7};
    assert_ok(lk_buffer_create(device, sizeof want, &buffer));
    assert_int_equal(lk_buffer_bytes(buffer), sizeof want);
    write_numbers(buffer, want, sizeof want, 7);
    assert_ok(lk_buffer_write(buffer, 997, 3, part));
    memcpy(want + 997, part, 3);
    expect_bytes(buffer, want, sizeof want);
    assert_ok(lk_buffer_read(buffer, 996, 3, part));
    assert_memory_equal(part, want + 996, 3);
    assert_ok(lk_buffer_write(buffer, 1000, 0, NULL));
    assert_ok(lk_buffer_read(buffer, 1000, 0, NULL));
    lk_buffer_destroy(buffer);
    lk_buffer_destroy(NULL);
}

static void refuses_ranges(void **state)
{
    (void)state;
    struct lk_buffer *small = NULL, *large = NULL;
    uint8_t bytes[128] = {0};
    static const size_t ranges[][2] = {
        {0, 65}, {64, 1}, {65, 0}, {1, 64}, {1, SIZE_MAX}, {SIZE_MAX, 1}, {SIZE_MAX, SIZE_MAX}};
    assert_ok(lk_buffer_create(device, 64, &small));
    assert_ok(lk_buffer_create(device, 128, &large));
    for (int i = 0; i < LK_COUNT(ranges); i++) {
        assert_fails(lk_buffer_write(small, ranges[i][0], ranges[i][1], bytes), LK_E_ARGUMENT,
                     "of a buffer of 64");
        assert_fails(lk_buffer_read(small, ranges[i][0], ranges[i][1], bytes), LK_E_ARGUMENT,
                     "of a buffer of 64");
    }
    assert_fails(lk_buffer_enqueue_copy(large, small, 65), LK_E_ARGUMENT, "buffer of 64");
    assert_fails(lk_buffer_enqueue_copy(small, large, 65), LK_E_ARGUMENT, "buffer of 64");
    lk_buffer_destroy(small);
    lk_buffer_destroy(large);
}

static void fills_and_copies(void **state)
{
    (void)state;
    struct lk_buffer *from = NULL, *to = NULL;
    uint8_t want[300];
    assert_ok(lk_buffer_create(device, 300, &from));
    assert_ok(lk_buffer_create(device, 300, &to));
    write_numbers(from, want, 300, 3);
    assert_ok(lk_buffer_enqueue_fill(to, 0xa5));
    assert_ok(lk_buffer_enqueue_copy(from, to, 250));
    assert_ok(lk_buffer_enqueue_copy(from, to, 0));
    memset(want + 250, 0xa5, 50);
    expect_bytes(to, want, 300);
    lk_buffer_destroy(from);
    lk_buffer_destroy(to);
}

/* Two threads share a large fill: it comes behind what was enqueued before, and before what
 * follows, in both of its halves. */
static void fills_large_ones_in_order(void **state)
{
    (void)state;
    const size_t bytes = ((size_t)64 << 20) + 13,
                 at[] = {0, bytes / 2 - 1, bytes / 2, bytes - 1};
    struct lk_buffer *large = NULL, *copy = NULL;
    assert_ok(lk_buffer_create(device, bytes, &large));
    assert_ok(lk_buffer_create(device, bytes, &copy));
    for (int round = 1; round <= 3; round++) {
        assert_ok(lk_buffer_enqueue_fill(large, (uint8_t)round));
        assert_ok(lk_buffer_enqueue_copy(large, copy, bytes));
        assert_ok(lk_buffer_enqueue_fill(large, 0xff));
        for (int i = 0; i < LK_COUNT(at); i++) {
            uint8_t filled = 0, copied = 0;
            assert_ok(lk_buffer_read(large, at[i], 1, &filled));
            assert_ok(lk_buffer_read(copy, at[i], 1, &copied));
            assert_int_equal(filled, 0xff);
            assert_int_equal(copied, round);
        }
    }
    lk_buffer_destroy(copy);
    lk_buffer_destroy(large);
}

static void views(void **state)
{
    (void)state;
    const size_t align = lk_device_info(device)->align_bytes;
    struct lk_buffer *whole = NULL, *view = NULL, *none = NULL;
    uint8_t want[2048], *middle = want + align;
    assert_true(3 * align <= sizeof want);
    assert_ok(lk_buffer_create(device, 3 * align, &whole));
    write_numbers(whole, want, 3 * align, 5);
    assert_ok(lk_buffer_view(whole, align, align - 1, &view));
    assert_int_equal(lk_buffer_bytes(view), align - 1);
    expect_bytes(view, middle, align - 1);
    assert_ok(lk_buffer_enqueue_fill(view, 0));
    memset(middle, 0, align - 1);
    expect_bytes(whole, want, 3 * align);
    assert_fails(lk_buffer_write(view, 0, align, want), LK_E_ARGUMENT, "of a buffer of");
    assert_fails(lk_buffer_view(whole, 4, 4, &none), LK_E_ARGUMENT, "a multiple of");
    assert_fails(lk_buffer_view(whole, 2 * align, align + 1, &none), LK_E_ARGUMENT,
                 "of a buffer of");
    assert_fails(lk_buffer_view(whole, 4 * align, 1, &none), LK_E_ARGUMENT, "of a buffer of");
    assert_null(none);
    struct lk_buffer *wide = NULL, *inner = NULL;
    assert_ok(lk_buffer_view(whole, align, 2 * align, &wide));
    assert_ok(lk_buffer_view(wide, align, 7, &inner));
    expect_bytes(inner, want + 2 * align, 7);
    assert_fails(lk_buffer_view(inner, 0, 8, &none), LK_E_ARGUMENT, "of a buffer of 7");
    lk_buffer_destroy(wide); /* its parts need the whole alone */
    expect_bytes(inner, want + 2 * align, 7);
    lk_buffer_destroy(inner);
    lk_buffer_destroy(view);
    expect_bytes(whole, want, 3 * align); /* the view's end is not the buffer's */
    lk_buffer_destroy(whole);
}

/* Views of the same bytes, views that go in any order, and a buffer that goes before them. */
static void views_share_regions(void **state)
{
    (void)state;
    const size_t align = lk_device_info(device)->align_bytes;
    struct lk_buffer *whole = NULL, *view[4] = {NULL}, *again = NULL;
    uint8_t want[2048];
    assert_true(3 * align <= sizeof want);
    assert_ok(lk_buffer_create(device, 3 * align, &whole));
    write_numbers(whole, want, 3 * align, 11);
    assert_ok(lk_buffer_view(whole, 0, 2 * align, &view[0]));
    assert_ok(lk_buffer_view(whole, align, align, &view[1]));
    assert_ok(lk_buffer_view(whole, align, align, &view[2]));
    assert_ok(lk_buffer_view(whole, align, 2 * align, &view[3]));
    lk_buffer_destroy(view[1]); /* its bytes have another view */
    expect_bytes(view[2], want + align, align);
    lk_buffer_destroy(view[0]); /* waits for those above it, and is wanted again */
    assert_ok(lk_buffer_view(whole, 0, 2 * align, &again));
    expect_bytes(again, want, 2 * align);
    lk_buffer_destroy(whole);
    expect_bytes(again, want, 2 * align);
    lk_buffer_destroy(view[2]);
    expect_bytes(view[3], want + align, 2 * align);
    lk_buffer_destroy(again);
    lk_buffer_destroy(view[3]);
}

static void counts_bytes(void **state)
{
    (void)state;
    struct lk_device *own = NULL;
    struct lk_buffer *a = NULL, *b = NULL, *view = NULL;
    assert_ok(lk_device_open(NULL, 0, &own));
    assert_ok(lk_buffer_create(own, 1 << 20, &a));
    assert_ok(lk_buffer_view(a, 0, 1 << 10, &view));
    assert_ok(lk_buffer_create(own, 1 << 19, &b));
    assert_int_equal(lk_device_bytes(own), (1 << 20) + (1 << 19));
    lk_buffer_destroy(view);
    lk_buffer_destroy(a);
    assert_int_equal(lk_device_bytes(own), 1 << 19);
    assert_int_equal(lk_device_peak_bytes(own), (1 << 20) + (1 << 19));
    lk_buffer_destroy(b);
    assert_int_equal(lk_device_bytes(own), 0);
    lk_device_close(own);
}

static void stages(void **state)
{
    (void)state;
    struct lk_staging *in = NULL, *out = NULL;
    struct lk_buffer *buffer = NULL;
    assert_ok(lk_staging_create(device, 4096, &in));
    assert_ok(lk_staging_create(device, 4096, &out));
    assert_ok(lk_buffer_create(device, 4096, &buffer));
    uint8_t *sent = lk_staging_memory(in), *came = lk_staging_memory(out);
    assert_ok(lk_staging_wait(in)); /* nothing on its way */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4096; i++) {
            sent[i] = (uint8_t)(i * 3 + round);
            came[i] = 0x5a;
        }
        assert_ok(lk_staging_enqueue_write(in, buffer, 4096));
        assert_ok(lk_staging_enqueue_read(out, buffer, 4000));
        assert_ok(lk_staging_wait(in));
        assert_ok(lk_staging_wait(out));
        assert_memory_equal(came, sent, 4000);
        assert_int_equal(came[4000], 0x5a);
    }
    assert_fails(lk_staging_enqueue_write(in, buffer, 4097), LK_E_ARGUMENT, "4097 bytes");
    assert_fails(lk_staging_enqueue_read(out, buffer, 4097), LK_E_ARGUMENT, "4097 bytes");
    assert_ok(lk_staging_enqueue_write(in, buffer, 4096));
    lk_staging_destroy(in); /* waits for what is on its way */
    lk_staging_destroy(out);
    lk_staging_destroy(NULL);
    lk_buffer_destroy(buffer);
}

/* What is enqueued behind a copy changes the buffer, and not what was copied. */
static void copies_in_passing(void **state)
{
    (void)state;
    enum { LARGE = 1 << 22 };
    struct lk_staging *copy = NULL, *small = NULL;
    struct lk_buffer *buffer = NULL;
    assert_ok(lk_staging_create(device, LARGE, &copy));
    assert_ok(lk_staging_create(device, LARGE - 1, &small));
    assert_ok(lk_buffer_create(device, LARGE, &buffer));
    assert_ok(lk_staging_enqueue_barrier(copy)); /* nothing on its way */
    const uint8_t *came = lk_staging_memory(copy);
    for (int round = 0; round < 8; round++) {
        assert_ok(lk_buffer_enqueue_fill(buffer, (uint8_t)(2 * round)));
        assert_ok(lk_staging_enqueue_copy(copy, buffer));
        assert_ok(lk_staging_enqueue_barrier(copy));
        assert_ok(lk_buffer_enqueue_fill(buffer, (uint8_t)(2 * round + 1)));
        assert_ok(lk_staging_wait(copy));
        int64_t wrong = 0;
        for (int i = 0; i < LARGE; i++)
            wrong += came[i] != 2 * round;
        assert_int_equal(wrong, 0);
    }
    assert_fails(lk_staging_enqueue_copy(small, buffer), LK_E_ARGUMENT, "4194304 bytes");
    lk_staging_destroy(small);
    lk_staging_destroy(copy);
    lk_buffer_destroy(buffer);
}

static void marks_time(void **state)
{
    (void)state;
    struct lk_timestamp *before = NULL, *after = NULL;
    struct lk_buffer *buffer = NULL;
    const double start = lk_seconds();
    assert_ok(lk_timestamp_create(device, &before));
    assert_ok(lk_timestamp_create(device, &after));
    assert_ok(lk_buffer_create(device, 32 << 20, &buffer));
    assert_true(lk_timestamp_seconds(before) == -1); /* nowhere yet */
    for (int round = 0; round < 2; round++) {
        assert_ok(lk_timestamp_enqueue(before));
        assert_ok(lk_buffer_enqueue_fill(buffer, (uint8_t)round));
        assert_ok(lk_timestamp_enqueue(after));
        assert_ok(lk_device_finish(device));
        const double took = lk_timestamp_seconds(after) - lk_timestamp_seconds(before);
        assert_true(lk_timestamp_seconds(before) > 0 && took > 0);
        assert_true(took <= lk_seconds() - start);
    }
    lk_timestamp_destroy(before);
    lk_timestamp_destroy(after);
    lk_timestamp_destroy(NULL);
    lk_buffer_destroy(buffer);
}

static void refuses_more_than_the_device_allows(void **state)
{
    (void)state;
    struct lk_buffer *none = NULL;
    const size_t most = lk_device_info(device)->allocation_bytes;
    const size_t before = lk_device_bytes(device);
    assert_fails(lk_buffer_create(device, most + 1, &none), LK_E_DEVICE_MEMORY, "allows");
    assert_fails(lk_buffer_create(device, SIZE_MAX, &none), LK_E_DEVICE_MEMORY, "allows");
    assert_null(none);
    assert_int_equal(lk_device_bytes(device), before);
}

/* One buffer after the other, until memory is out. */
static int fill_memory(void)
{
    struct lk_device *own = NULL;
    struct lk_buffer *buffers[64] = {NULL};
    if (lk_device_open("cpu", 0, &own) != LK_OK)
        return 2;
    const size_t bytes = lk_device_info(own)->allocation_bytes / 2;
    int count = 0;
    enum lk_status status = LK_OK;
    while (count < 64 && (status = lk_buffer_create(own, bytes, &buffers[count])) == LK_OK)
        count++;
    int wrong = judge(status, LK_E_DEVICE_MEMORY, "allocated");
    wrong += lk_device_bytes(own) != (size_t)count * bytes;
    for (int i = 0; i < count; i++)
        lk_buffer_destroy(buffers[i]);
    wrong += lk_device_bytes(own) != 0;
    lk_error_clear();
    wrong += lk_buffer_create(own, bytes, &buffers[0]) != LK_OK; /* it goes on working */
    lk_buffer_destroy(buffers[0]);
    lk_device_close(own);
    return wrong;
}

static void survives_the_end_of_memory(void **state)
{
    (void)state;
    if (!strstr(lk_device_info(device)->platform, "Portable Computing Language"))
        SKIP_TEST("only PoCL can be told to have little memory");
    assert_int_equal(run_child("fill_memory", "POCL_MEMORY_LIMIT", "1"), 0);
}

static atomic_bool has_returned;

static void *finish(void *abandoned)
{
    (void)!lk_device_finish(abandoned);
    atomic_store(&has_returned, true);
    return NULL;
}

/* Whoever calls an abandoned device stays there; another device on the same hardware works. */
static void keeps_who_calls_an_abandoned_device(void **state)
{
    struct lk_device *abandoned = NULL;
    const struct timespec moment = {.tv_nsec = 50000000};
    pthread_t thread;
    (void)state;
    assert_ok(lk_device_open(NULL, 0, &abandoned));
    assert_ok(lk_device_finish(abandoned));
    lk_device_abandon(abandoned);
    assert_int_equal(pthread_create(&thread, NULL, finish, abandoned), 0);
    nanosleep(&moment, NULL);
    assert_false(atomic_load(&has_returned));
    assert_ok(lk_device_finish(device));
}

int main(int count, char **text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_and_reads),
        cmocka_unit_test(refuses_ranges),
        cmocka_unit_test(fills_and_copies),
        cmocka_unit_test(fills_large_ones_in_order),
        cmocka_unit_test(views),
        cmocka_unit_test(views_share_regions),
        cmocka_unit_test(counts_bytes),
        cmocka_unit_test(stages),
        cmocka_unit_test(copies_in_passing),
        cmocka_unit_test(marks_time),
        cmocka_unit_test(refuses_more_than_the_device_allows),
        cmocka_unit_test(survives_the_end_of_memory),
        cmocka_unit_test(keeps_who_calls_an_abandoned_device),
    };
    if (count == 2 && strcmp(text[1], "fill_memory") == 0)
        return fill_memory();
    return cmocka_run_group_tests(tests, open_device, close_device);
}
