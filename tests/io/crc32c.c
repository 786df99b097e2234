/* CRC-32C has the known answers of RFC 3720, B.4, and of TFRecord files. */
#include "io/crc32c.h"

#include "scratch.h"

static void has_known_answers(void **state)
{
    (void)state;
    uint8_t bytes[32];
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(lk_crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 255, sizeof bytes);
    assert_int_equal(lk_crc32c(bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(lk_crc32c(bytes, 32), 0x46dd794e);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(31 - i);
    assert_int_equal(lk_crc32c(bytes, 32), 0x113fdb5c);
    assert_int_equal(lk_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(lk_crc32c("", 0), 0);
    /* a record of three bytes: 3 as 64 bits, its checksum, "abc", its checksum */
    assert_int_equal(lk_crc32c_masked("\3\0\0\0\0\0\0\0", 8), 0x0e4999b0);
    assert_int_equal(lk_crc32c_masked("abc", 3), 0x21f1576e);
}

/* Bit by bit, on every alignment and length round the slices. */
static void is_the_same_bit_by_bit(void **state)
{
    (void)state;
    uint8_t bytes[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (int from = 0; from < 9; from++)
        for (int count = 0; count < 50; count++) {
            uint32_t crc = UINT32_MAX;
            for (int i = 0; i < 8 * count; i++) {
                const uint32_t bit = bytes[from + i / 8] >> i % 8 & 1;
                crc = crc >> 1 ^ ((crc ^ bit) & 1 ? 0x82f63b78 : 0);
            }
            assert_int_equal(lk_crc32c(bytes + from, (size_t)count), ~crc);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_known_answers),
        cmocka_unit_test(is_the_same_bit_by_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
