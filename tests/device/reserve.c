/* Memory that is brought in ahead: buffers in it are as others are, whatever lay there before.
 */
#include "device/expect.h"
#include "rig.h"

enum { MIB = 1 << 20 };

/* Every number of the buffer is `want`. */
static void expect_all(const struct lk_buffer *buffer, uint8_t want)
{
    const size_t bytes = lk_buffer_bytes(buffer);
    uint8_t *got = malloc(bytes);
    assert_non_null(got);
    assert_ok(lk_buffer_read(buffer, 0, bytes, got));
    if (got[0] != want || memcmp(got, got + 1, bytes - 1) != 0)
        fail_msg("a buffer of %zu bytes is not %d everywhere", bytes, want);
    free(got);
}

static struct lk_buffer *zeros(struct lk_device *on, size_t bytes)
{
    struct lk_buffer *made = NULL;
    assert_ok(lk_buffer_create_zeros(on, bytes, &made));
    assert_int_equal(lk_buffer_bytes(made), bytes);
    expect_all(made, 0);
    return made;
}

/* Its memory was another's, lies beside another's, or is none of the reserve. */
static void are_zero_as_others_are(void **state)
{
    struct lk_device *opened = NULL;
    (void)state;
    assert_ok(lk_device_open(NULL, 0, &opened));
    lk_device_expect(opened, (size_t)130 * MIB);
    lk_device_expect(opened, (size_t)500 * MIB); /* the first counts */
    for (int round = 0; round < 3; round++) {
        static const int sizes[] = {3 * MIB, 20 * MIB + 100, 100, 60 * MIB, 70 * MIB};
        struct lk_buffer *made[LK_COUNT(sizes)];
        for (int i = 0; i < LK_COUNT(sizes); i++) {
            made[i] = zeros(opened, (size_t)sizes[(i + round) % LK_COUNT(sizes)]);
            assert_ok(lk_buffer_enqueue_fill(made[i], (uint8_t)(i + 1)));
        }
        for (int i = 0; i < LK_COUNT(sizes); i++)
            expect_all(made[i], (uint8_t)(i + 1));
        lk_buffer_destroy(made[1]); /* a hole, and what fills it */
        made[1] = zeros(opened, MIB);
        assert_ok(lk_buffer_enqueue_fill(made[1], 9));
        for (int i = 0; i < LK_COUNT(sizes); i++)
            expect_all(made[i], i == 1 ? 9 : (uint8_t)(i + 1));
        for (int i = 0; i < LK_COUNT(sizes); i++)
            lk_buffer_destroy(made[i]);
    }
    assert_int_equal(lk_device_bytes(opened), 0);
    lk_device_close(opened);
}

/* The device's end does not wait for the thread. */
static void ends_while_memory_comes(void **state)
{
    struct lk_device *opened = NULL;
    struct lk_buffer *view = NULL;
    (void)state;
    assert_ok(lk_device_open(NULL, 0, &opened));
    lk_device_expect(opened, (size_t)256 * MIB);
    struct lk_buffer *whole = zeros(opened, 4 * MIB);
    assert_ok(lk_buffer_view(whole, 2 * MIB, MIB, &view));
    assert_ok(lk_buffer_enqueue_fill(whole, 5));
    expect_all(view, 5);
    lk_buffer_destroy(view);
    lk_buffer_destroy(whole);
    lk_device_close(opened);
}

/* Nothing is set aside beyond the device's memory; buffers are refused as ever. */
static void respects_the_limit(void **state)
{
    struct lk_device *opened = NULL;
    struct lk_buffer *made = NULL;
    (void)state;
    assert_ok(lk_device_open(NULL, 0, &opened));
    lk_device_limit_memory(opened, (size_t)140 * MIB);
    lk_device_expect(opened, (size_t)200 * MIB);
    lk_device_expect(opened, (size_t)140 * MIB);
    struct lk_buffer *most = zeros(opened, (size_t)139 * MIB);
    assert_fails(lk_buffer_create(opened, 2 * MIB, &made), LK_E_DEVICE_MEMORY, "allocated");
    lk_buffer_destroy(most);
    lk_device_close(opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_zero_as_others_are),
        cmocka_unit_test(ends_while_memory_comes),
        cmocka_unit_test(respects_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
