/* safetensors files against the Python package: each side reads what the other wrote. Skipped
 * where $LOCKSTEP_TEST_PYTHON (python3) has no safetensors and numpy. */
#include "io/safetensors.h"

#include "scratch.h"

#include <lockstep/status.h>

static const char *python;

static int run(const char *program, const char *path)
{
    char command[2048];
    snprintf(command, sizeof command, "%s -c '%s' '%s'", python, program, path);
    return system(command);
}

static void check(enum lk_status status)
{
    if (status != LK_OK)
        fail_msg("%s", lk_error_text());
}

static void python_reads_ours(void **state)
{
    (void)state;
    static const double doubles[] = {1.5, -2};
    static const float floats[] = {1, 2, 3};
    static const uint8_t bytes[] = {7, 8, 9};
    static const struct lk_safetensor arrays[] = {
        {.name = "a", .type = LK_SAFETENSOR_F64, .rank = 1, .shape = {2}, .data = doubles},
        {.name = "b", .type = LK_SAFETENSOR_F32, .rank = 2, .shape = {1, 3}, .data = floats},
        {.name = "c/\xc3\xa4",
         .type = LK_SAFETENSOR_U8,
         .rank = 1,
         .shape = {3},
         .data = bytes},
        {.name = "empty", .type = LK_SAFETENSOR_U8, .rank = 2, .shape = {0, 4}},
    };
    static const struct lk_safetensors_text metadata[] = {{"step", "12"}, {"text", "a\n\"b\""}};
    check(lk_safetensors_write(scratch_path("ours"), arrays, 4, metadata, 2));
    assert_int_equal(
        run("import sys, safetensors\n"
            "with safetensors.safe_open(sys.argv[1], \"np\") as f:\n"
            "    assert f.metadata() == {\"step\": \"12\", \"text\": \"a\\n\\\"b\\\"\"}\n"
            "    assert sorted(f.keys()) == [\"a\", \"b\", \"c/\\u00e4\", \"empty\"]\n"
            "    assert f.get_tensor(\"a\").tolist() == [1.5, -2]\n"
            "    assert f.get_tensor(\"b\").tolist() == [[1, 2, 3]]\n"
            "    assert f.get_tensor(\"c/\\u00e4\").tolist() == [7, 8, 9]\n"
            "    assert f.get_tensor(\"empty\").shape == (0, 4)\n",
            scratch_path("ours")),
        0);
}

static void ours_reads_pythons(void **state)
{
    (void)state;
    struct lk_safetensors *file;
    float x[6];
    int64_t y;
    assert_int_equal(run("import sys, numpy, safetensors.numpy as s\n"
                         "x = numpy.arange(6, dtype=\"float32\").reshape(2, 3)\n"
                         "y = numpy.array([-1], dtype=\"int64\")\n"
                         "s.save_file({\"x\": x, \"y\": y}, sys.argv[1], {\"k\": \"v\"})\n",
                         scratch_path("theirs")),
                     0);
    check(lk_safetensors_open(scratch_path("theirs"), &file));
    assert_int_equal(file->count, 2);
    assert_string_equal(lk_safetensors_text(file, "k"), "v");
    const struct lk_safetensor *found = lk_safetensors_find(file, "x");
    assert_int_equal(found->type, LK_SAFETENSOR_F32);
    assert_int_equal(found->rank, 2);
    assert_int_equal(found->shape[1], 3);
    check(lk_safetensors_read(file, found, x));
    check(lk_safetensors_read(file, lk_safetensors_find(file, "y"), &y));
    for (int i = 0; i < 6; i++)
        assert_true(x[i] == (float)i);
    assert_int_equal(y, -1);
    lk_safetensors_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_reads_ours),
        cmocka_unit_test(ours_reads_pythons),
    };
    python = getenv("LOCKSTEP_TEST_PYTHON");
    if (!python)
        python = "python3";
    if (run("import importlib.util as u, sys\n"
            "sys.exit(not (u.find_spec(\"numpy\") and u.find_spec(\"safetensors\")))",
            "") != 0) {
        printf("1..0 # SKIP %s has no safetensors and numpy\n", python);
        return 0;
    }
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
