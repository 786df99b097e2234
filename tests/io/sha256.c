/* SHA-256: published answers, pieces, files. source: FIPS 180-4 examples, NIST CAVP */
#include "io/sha256.h"

#include "scratch.h"

static const char *const empty =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const char *const million_a =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

static void known_answers(void **state)
{
    (void)state;
    char text[LK_SHA256_TEXT];
    assert_int_equal(lk_sha256_of("", 0, text), LK_OK);
    assert_string_equal(text, empty);
    assert_int_equal(lk_sha256_of("abc", 3, text), LK_OK);
    assert_string_equal(text,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void pieces_and_files(void **state)
{
    (void)state;
    char *a = malloc(1000000), text[LK_SHA256_TEXT];
    memset(a, 'a', 1000000);
    struct lk_sha256 sum;
    assert_int_equal(lk_sha256_init(&sum), LK_OK);
    for (size_t done = 0, step = 1; done < 1000000; done += step, step = step * 3 + 1) {
        if (step > 1000000 - done)
            step = 1000000 - done;
        lk_sha256_add(&sum, a + done, step);
    }
    lk_sha256_finish(&sum, text);
    lk_sha256_clear(&sum);
    assert_string_equal(text, million_a);
    scratch_put(scratch_path("a"), a, 1000000);
    free(a);
    memset(text, 0, sizeof text);
    assert_int_equal(lk_sha256_of_file(scratch_path("a"), text), LK_OK);
    assert_string_equal(text, million_a);
    assert_int_equal(lk_sha256_of_file(scratch_path("absent"), text), LK_E_IO);
    assert_refused(LK_E_IO, LK_E_IO, lk_error_text(), "absent");
    lk_error_clear();
    assert_int_equal(lk_sha256_of_file(scratch, text), LK_E_IO);
    lk_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(pieces_and_files),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
