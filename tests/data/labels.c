/* Labels as a model wants them: classes renumbered, values outside of what is taken refused. */
#include "data/data.h"
#include "npy.h"
#include "tables.h"

static const char *const names[] = {"ant", "bee", "cow", "dog"};

/* The data has the classes bee and dog of four. */
static void classes_are_renumbered(void **state)
{
    (void)state;
    put_text("some.csv", "x,kind\n1,dog\n2,bee\n3,dog\n");
    struct lk_data *data =
        open_part(spec_of("csv", "some.csv", ",fields=x,label=kind"), LK_DATA_TRAIN);
    expect_ints(data, 1, 0, (int32_t[]){1}, 1);
    assert_int_equal(lk_data_info(data)->classes, 2);
    assert_int_equal(lk_data_map_classes(data, 1, (int32_t[]){1, 3}, names, 4), LK_OK);
    assert_int_equal(lk_data_info(data)->classes, 4);
    assert_string_equal(lk_data_info(data)->class_names[0], "ant");
    assert_string_equal(lk_data_info(data)->fields[1].class_names[3], "dog");
    expect_ints(data, 1, 0, (int32_t[]){3}, 1);
    expect_ints(data, 1, 1, (int32_t[]){1}, 1);
    lk_data_close(data);
}

/* A class for each step; masked steps stay masked. */
static void steps_are_renumbered(void **state)
{
    (void)state;
    static const int32_t steps[4] = {1, -1, 0, 1};
    static const float number = 2;
    char spec[1100];
    put_npy("y.npy", "<i4", "(1, 4)", steps, sizeof steps);
    put_npy("x.npy", "<f4", "(1, 1)", &number, sizeof number);
    snprintf(spec, sizeof spec, "npy:%s,%s", scratch_path("x.npy"), scratch_path("y.npy"));
    struct lk_data *data = open_part(spec, LK_DATA_TRAIN);
    assert_int_equal(lk_data_map_classes(data, 1, (int32_t[]){2, 3}, names, 4), LK_OK);
    expect_ints(data, 1, 0, (int32_t[]){3, -1, 2, 3}, 4);
    lk_data_close(data);
}

static void values_have_limits(void **state)
{
    (void)state;
    put_text("values.csv", "x,y\n1,0\n2,0.5\n3,1\n4,1.25\n");
    struct lk_data *data = open_part(
        spec_of("csv", "values.csv", ",fields=x,label=y,label_type=number"), LK_DATA_TRAIN);
    assert_int_equal(lk_data_limit_labels(data, 1, 0, 2, "this"), LK_OK);
    assert_refused(lk_data_limit_labels(data, 1, 0, 1, "that"), LK_E_DATA, lk_error_text(),
                   "label 'label' of sample 3 is 1.25; that takes 0..1");
    lk_error_clear();
    expect_floats(data, 1, 2, (float[]){1}, 1);
    float value;
    void *to[LK_MOST_FIELDS] = {NULL, &value};
    assert_refused(lk_data_read_fields(data, (int64_t[]){3}, 1, to), LK_E_DATA, lk_error_text(),
                   "sample 3 is 1.25");
    lk_error_clear();
    lk_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_renumbered),
        cmocka_unit_test(steps_are_renumbered),
        cmocka_unit_test(values_have_limits),
    };
    return cmocka_run_group_tests_name("labels", tests, scratch_make, scratch_remove);
}
