/* tf.train.Example records. Byte 0 says how long a key to look for follows. */
#include "io/records/example.h"
#include "fuzz.h"
#include <lockstep/status.h>
#include <stdlib.h>
#include <string.h>

static void expect_inside(struct lk_example_bytes part, struct lk_example_bytes whole)
{
    if (part.bytes > 0 &&
        (part.data < whole.data || part.data + part.bytes > whole.data + whole.bytes))
        abort();
}

/* All items at once are as many as there are one by one, and the same ones. */
static void read_all(const struct lk_example_list *list)
{
    enum { MOST = 4 };
    int64_t ints[MOST], number;
    float reals[MOST], real;
    const int64_t int_count = lk_example_ints(list, ints, MOST);
    const int64_t real_count = lk_example_floats(list, reals, MOST);
    for (int64_t i = 0; i < MOST && i < int_count; i++)
        if (!lk_example_int_at(list, i, &number) || number != ints[i])
            abort();
    for (int64_t i = 0; i < MOST && i < real_count; i++)
        if (!lk_example_float_at(list, i, &real) || memcmp(&real, &reals[i], sizeof real) != 0)
            abort();
    if (lk_example_ints(list, NULL, 0) != int_count ||
        lk_example_floats(list, NULL, 0) != real_count ||
        (int_count >= 0 && lk_example_int_at(list, int_count, &number)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char key[256] = "", keys[64];
    if (bytes == 0)
        return 0;
    const size_t length = data[0] < bytes - 1 ? data[0] : bytes - 1;
    memcpy(key, data + 1, length);
    const struct lk_example_bytes record = {data + 1 + length, bytes - 1 - length};
    struct lk_example_list list;
    struct lk_example_bytes value;
    int64_t number;
    float real;
    if (lk_example_find(record, key, &list) == LK_OK) {
        read_all(&list);
        for (int64_t i = 0; i < 5; i++) {
            if (lk_example_bytes_at(&list, i, &value))
                expect_inside(value, record);
            (void)lk_example_int_at(&list, i, &number);
            (void)lk_example_float_at(&list, i, &real);
        }
    }
    lk_example_print_keys(record, keys, sizeof keys);
    if (strlen(keys) >= sizeof keys)
        abort();
    lk_error_clear();
    return 0;
}
