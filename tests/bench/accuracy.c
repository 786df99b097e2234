/* Every algorithm of convolutions is as near to double as its bound says, in both classes; one
 * that is not would be seen. */
#include "device/rig.h"
#include <lockstep/accuracy.h>

enum { MOST = 64 };

struct seen {
    int count;
    char names[MOST][32]; /* "winograd4 forward" */
    double errors[MOST];
};

static void note(void *context, const struct lk_accuracy *a)
{
    struct seen *seen = context;
    assert_true(seen->count < MOST);
    snprintf(seen->names[seen->count], sizeof seen->names[0], "%s %s", a->algorithm, a->pass);
    seen->errors[seen->count++] = a->error;
    /* no algorithm is exact on random numbers: an error of 0 would be a comparison with itself
     */
    if (!(a->error > 1e-9 && a->error <= a->allowed))
        fail_msg("%s, %s, %s: an error of %g, allowed is %g", a->shape, a->algorithm, a->pass,
                 a->error, a->allowed);
}

static bool has(const struct seen *seen, const char *name)
{
    for (int i = 0; i < seen->count; i++)
        if (strcmp(seen->names[i], name) == 0)
            return true;
    return false;
}

static void measure(const char *class, const char *const *expected, int count)
{
    struct seen seen = {0};
    struct lk_device *of_class;
    int failures = -1;
    setenv("LOCKSTEP_CLASS", class, 1);
    const enum lk_status status = lk_device_open(NULL, 0, &of_class);
    unsetenv("LOCKSTEP_CLASS");
    assert_int_equal(status, LK_OK);
    assert_ok(lk_accuracy_measure(of_class, note, &seen, &failures));
    assert_int_equal(failures, 0);
    for (int i = 0; i < count; i++)
        if (!has(&seen, expected[i]))
            fail_msg("class %s has no %s", class, expected[i]);
    assert_int_equal(lk_device_bytes(of_class), 0);
    lk_device_close(of_class);
}

static void vectors(void **state)
{
    static const char *const expected[] = {"direct gather forward",
                                           "direct gather dgrad",
                                           "direct turned wgrad",
                                           "direct staged wgrad",
                                           "direct pointwise dgrad",
                                           "winograd2 fused forward",
                                           "winograd4 fused dgrad",
                                           "fft forward",
                                           "fft wgrad",
                                           "clblast dgrad"};
    (void)state;
    measure("cpu", expected, LK_COUNT(expected));
}

static void lanes(void **state)
{
    static const char *const expected[] = {"gemm forward", "gemm dgrad",  "gemm wgrad",
                                           "fft dgrad",    "fft forward", "clblast wgrad"};
    (void)state;
    measure("gpu", expected, LK_COUNT(expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(lanes),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
