/* tf.train.Example records as writers differ: packed or not, in pieces, in any order, damaged.
 */
#include "io/records/example.h"

#include "records.h"
#include <lockstep/status.h>

static struct bytes example, list;

static struct lk_example_bytes whole(void)
{
    return (struct lk_example_bytes){example.data, example.used};
}

static struct lk_example_list find(const char *key)
{
    struct lk_example_list found;
    if (lk_example_find(whole(), key, &found) != LK_OK)
        fail_msg("%s", lk_error_text());
    return found;
}

static void finds_lists(void **state)
{
    (void)state;
    struct lk_example_bytes value;
    struct lk_example_list found;
    int64_t number = 0;
    example.used = 0;
    put_bytes_feature(&example, "image/encoded", "pixels", 6);
    put_int_feature(&example, "image/class/label", 7);
    put_int_feature(&example, "least", INT64_MIN);
    found = find("image/encoded");
    assert_true(lk_example_bytes_at(&found, 0, &value));
    assert_int_equal(value.bytes, 6);
    assert_memory_equal(value.data, "pixels", 6);
    assert_false(lk_example_bytes_at(&found, 1, &value));
    assert_false(lk_example_int_at(&found, 0, &number));
    found = find("image/class/label");
    assert_true(lk_example_int_at(&found, 0, &number));
    assert_int_equal(number, 7);
    assert_false(lk_example_int_at(&found, 1, &number));
    assert_false(lk_example_bytes_at(&found, 0, &value));
    found = find("least");
    assert_true(lk_example_int_at(&found, 0, &number));
    assert_true(number == INT64_MIN);
    assert_int_equal(find("image").kind, LK_EXAMPLE_NONE);
}

static void takes_numbers_packed_or_not(void **state)
{
    (void)state;
    static struct bytes packed;
    struct lk_example_list found;
    float value;
    int64_t number;
    example.used = list.used = packed.used = 0;
    put_varint(&packed, 300);
    put_varint(&packed, (uint64_t)-1);
    put_field(&list, 1, packed.data, packed.used);
    put_varint(&list, 1 << 3); /* a field of its own */
    put_varint(&list, 5);
    put_feature(&example, "ints", 3, &list);
    static const float floats[] = {1.5F, -2, 1e30F};
    list.used = 0;
    put_field(&list, 1, floats, 8);
    put_varint(&list, 1 << 3 | 5);
    put(&list, &floats[2], 4);
    put_feature(&example, "floats", 2, &list);
    found = find("ints");
    static const int64_t numbers[] = {300, -1, 5};
    for (int i = 0; i < 3; i++) {
        assert_true(lk_example_int_at(&found, i, &number));
        assert_int_equal(number, numbers[i]);
    }
    assert_false(lk_example_int_at(&found, 3, &number));
    found = find("floats");
    for (int i = 0; i < 3; i++) {
        assert_true(lk_example_float_at(&found, i, &value));
        assert_true(value == floats[i]);
    }
    assert_false(lk_example_float_at(&found, 3, &value));
    assert_false(lk_example_float_at(&found, -1, &value));
}

/* Fields of later versions are passed over; the last of two entries counts. */
static void passes_over_what_it_does_not_know(void **state)
{
    (void)state;
    struct lk_example_list found;
    int64_t number;
    example.used = 0;
    put_field(&example, 9, "unknown", 7);
    put_varint(&example, 12 << 3);
    put_varint(&example, 99);
    put_varint(&example, 13 << 3 | 1);
    put_little(&example, 1, 8);
    put_int_feature(&example, "label", 1);
    put_int_feature(&example, "label", 2);
    found = find("label");
    assert_true(lk_example_int_at(&found, 0, &number));
    assert_int_equal(number, 2);
}

static void names_the_keys(void **state)
{
    (void)state;
    char text[64], cut[19];
    example.used = 0;
    put_int_feature(&example, "label", 1);
    put_bytes_feature(&example, "image", "x", 1);
    lk_example_print_keys(whole(), text, sizeof text);
    assert_string_equal(text, "'label', 'image'");
    lk_example_print_keys(whole(), cut, sizeof cut);
    assert_string_equal(cut, "'label'...");
}

/* Every prefix of a record and every changed bit: found, absent or refused, and never a read
 * outside the record, which ends where its allocation does. */
static void survives_damage(void **state)
{
    (void)state;
    example.used = 0;
    put_int_feature(&example, "label", 70000);
    put_bytes_feature(&example, "image", "some bytes", 10);
    int refused = 0;
    for (size_t i = 0; i < 9 * example.used; i++) {
        const size_t bytes = i < example.used ? i : example.used;
        uint8_t *copy = malloc(bytes + 1);
        memcpy(copy + 1, example.data, bytes);
        if (i >= example.used)
            copy[1 + (i - bytes) / 8] ^= (uint8_t)(1 << (i - bytes) % 8);
        struct lk_example_list found;
        struct lk_example_bytes value;
        int64_t number;
        char keys[30];
        const struct lk_example_bytes record = {copy + 1, bytes};
        if (lk_example_find(record, "image", &found) != LK_OK) {
            refused++;
            lk_error_clear();
        } else if (lk_example_bytes_at(&found, 0, &value)) {
            assert_in_range(value.data - copy, 1, (long)bytes);
            assert_in_range(value.bytes, 0, bytes);
        }
        if (lk_example_find(record, "label", &found) == LK_OK)
            (void)lk_example_int_at(&found, 0, &number);
        lk_error_clear();
        lk_example_print_keys(record, keys, sizeof keys);
        free(copy);
    }
    assert_true(refused > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_lists),
        cmocka_unit_test(takes_numbers_packed_or_not),
        cmocka_unit_test(passes_over_what_it_does_not_know),
        cmocka_unit_test(names_the_keys),
        cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
