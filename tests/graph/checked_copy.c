/* Copies with checksums: the numbers arrive as they were, and one changed bit is seen, by the
 * host or by the receiver, wherever it changes. */
#include "graph/crossing/checked_copy.h"

#include "base/random.h"
#include "device/rig.h"

static uint32_t checksum(const uint32_t *x, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += x[i] * (2 * (uint32_t)i + 1);
    return sum;
}

static uint32_t *numbers(size_t count)
{
    uint32_t *x = malloc(count * sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = lk_random(3, LK_RANDOM_DATA, 0, i).v[0];
    return x;
}

/* What is sent and how; `flipped`: the word that changes on the way, -1: none. */
struct way {
    struct lk_checked_copy *copy;
    struct lk_buffer *from, *to;
    size_t bytes;
    uint32_t *out, *in; /* on the host, with the checksum */
};

static void begin(struct way *way, struct lk_device *device, size_t count)
{
    uint32_t *x = numbers(count);
    *way = (struct way){.bytes = count * sizeof *x};
    way->out = malloc(lk_checked_bytes(way->bytes));
    way->in = malloc(lk_checked_bytes(way->bytes));
    assert_ok(lk_checked_copy_create(device, 5, &way->copy));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, way->bytes, &way->from));
    assert_ok(lk_buffer_create(device, lk_checked_bytes(way->bytes), &way->to));
    assert_ok(lk_buffer_write(way->from, 0, way->bytes, x));
    assert_ok(lk_checked_copy_begin(way->copy));
    assert_ok(lk_checked_copy_send(way->copy, way->from, way->to, way->bytes));
    assert_ok(lk_buffer_read(way->to, 0, lk_checked_bytes(way->bytes), way->out));
    assert_memory_equal(way->out, x, way->bytes);
    assert_int_equal(way->out[(way->bytes + 63) / 64 * 16], checksum(x, count));
    free(x);
}

static void end(struct way *way)
{
    lk_checked_copy_destroy(way->copy);
    lk_buffer_destroy(way->from);
    lk_buffer_destroy(way->to);
    free(way->out);
    free(way->in);
}

/* The first slot that something arrived wrong in. */
static int receive(struct way *way, int slot)
{
    int found = -2;
    uint32_t *x = malloc(way->bytes);
    assert_ok(lk_buffer_write(way->to, 0, lk_checked_bytes(way->bytes), way->in));
    assert_ok(lk_checked_copy_begin(way->copy));
    assert_ok(lk_checked_copy_receive(way->copy, way->to, way->from, way->bytes, slot));
    assert_ok(lk_checked_copy_end(way->copy));
    assert_ok(lk_checked_copy_wait(way->copy, &found));
    assert_ok(lk_buffer_read(way->from, 0, way->bytes, x));
    assert_memory_equal(x, way->in, way->bytes);
    free(x);
    return found;
}

static void check(struct lk_device *device, size_t count)
{
    struct way way;
    begin(&way, device, count);
    assert_true(lk_checked_copy_move(way.out, way.in, way.bytes));
    assert_memory_equal(way.in, way.out, way.bytes);
    assert_int_equal(receive(&way, 3), -1);
    const size_t words[] = {0, count / 2, count - 1, (way.bytes + 63) / 64 * 16};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        way.out[words[i]] ^= 1U << 30;
        assert_false(lk_checked_copy_move(way.out, way.in, way.bytes));
        way.out[words[i]] ^= 1U << 30;
        assert_true(lk_checked_copy_move(way.out, way.in, way.bytes));
        way.in[words[i]] ^= 1U << 7;
        assert_int_equal(receive(&way, (int)i), (int)i);
        way.in[words[i]] ^= 1U << 7;
        assert_int_equal(receive(&way, 4), -1);
    }
    end(&way);
}

static void copies(void **state)
{
    static const size_t counts[] = {1, 15, 16, 17, 1000, 8192, 16385, 3000001};
    (void)state;
    for (int class = 0; class < 2; class ++) {
        struct lk_device *opened = open_class(classes[class]);
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            check(opened, counts[i]);
        lk_device_close(opened);
    }
}

static void refuses(void **state)
{
    (void)state;
    struct lk_device *opened = open_class("cpu");
    struct way way;
    begin(&way, opened, 32);
    assert_fails(lk_checked_copy_send(way.copy, way.from, way.to, 126), LK_E_ARGUMENT,
                 "a multiple of 4");
    assert_fails(lk_checked_copy_send(way.copy, way.from, way.from, 128), LK_E_ARGUMENT,
                 "room for a checksum");
    assert_fails(lk_checked_copy_receive(way.copy, way.to, way.from, 192, 0), LK_E_ARGUMENT,
                 "192 bytes to cross, of 128");
    end(&way);
    lk_device_close(opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies), cmocka_unit_test(refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
