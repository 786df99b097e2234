/* fashion-mnist by name: looked up, else downloaded and checked. Where LOCKSTEP_DATA is set,
 * the real files are served from there. */
#include "server.h"

#include "io/file.h"
#include "skip.h"

#include <lockstep/data.h>

static char *real; /* LOCKSTEP_DATA as it was set; NULL: not set */
static const char *const files[] = {
    "fashion-mnist/train-images-idx3-ubyte.gz", "fashion-mnist/train-labels-idx1-ubyte.gz",
    "fashion-mnist/t10k-images-idx3-ubyte.gz", "fashion-mnist/t10k-labels-idx1-ubyte.gz"};

static void refused(int status, int code, const char *said)
{
    assert_refused(status, code, lk_error_text(), said);
    lk_error_clear();
}

static int prepare(void **state)
{
    const char *set = getenv("LOCKSTEP_DATA");
    real = set && *set ? strdup(set) : NULL;
    return scratch_make(state);
}

static int finish(void **state)
{
    free(real);
    return scratch_remove(state);
}

static int begin(void **state)
{
    (void)state;
    unsetenv("LOCKSTEP_DATA");
    setenv("LOCKSTEP_CACHE", scratch_path("cache"), 1);
    setenv("LOCKSTEP_DATA_URL", "http://127.0.0.1:1/ok", 1); /* nobody answers there */
    scratch_delete(scratch);
    return mkdir(scratch, 0700);
}

static void serve(struct server *server, const char *folder, const char *word)
{
    char url[128];
    server_start(server, folder);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", server->port, word);
    setenv("LOCKSTEP_DATA_URL", url, 1);
}

static void expect_fashion(enum lk_data_part part, int64_t count, int32_t first_label)
{
    struct lk_data *data = NULL;
    if (lk_data_open("fashion-mnist", part, &data) != LK_OK)
        fail_msg("%s", lk_error_text());
    const struct lk_data_info *info = lk_data_info(data);
    assert_string_equal(info->name, "fashion-mnist");
    assert_int_equal(info->count, count);
    assert_int_equal(info->classes, 10);
    assert_int_equal(info->height, 28);
    assert_int_equal(info->width, 28);
    assert_string_equal(info->class_names[9], "Ankle boot");
    uint8_t sample[28 * 28];
    int32_t label = -1;
    assert_int_equal(lk_data_read(data, (int64_t[]){0}, 1, sample, &label), LK_OK);
    assert_int_equal(label, first_label);
    lk_data_close(data);
}

static void downloads_into_the_cache(void **state)
{
    (void)state;
    if (!real)
        SKIP_TEST("needs the real files in $LOCKSTEP_DATA/fashion-mnist");
    struct server server;
    serve(&server, real, "ok");
    expect_fashion(LK_DATA_TRAIN, 60000, 9);
    assert_true(server_look(&server));
    assert_int_equal(server.requests, 4);
    expect_fashion(LK_DATA_TEST, 10000, 9);
    assert_false(server_look(&server)); /* from the cache */
    assert_int_equal(scratch_entries(scratch_path("cache/data/fashion-mnist")), 4);
    unlink(scratch_path("cache/data/fashion-mnist/t10k-labels-idx1-ubyte.gz"));
    expect_fashion(LK_DATA_TEST, 10000, 9);
    assert_true(server_look(&server));
    assert_int_equal(server.requests, 1); /* only what was missing */
    server_stop(&server);
}

static void prefers_the_data_folder(void **state)
{
    (void)state;
    if (!real)
        SKIP_TEST("needs the real files in $LOCKSTEP_DATA/fashion-mnist");
    setenv("LOCKSTEP_DATA", real, 1);
    expect_fashion(LK_DATA_TRAIN, 60000, 9);
    assert_false(lk_folder_exists(scratch_path("cache")));
}

static void finds_a_small_set_in_the_data_folder(void **state)
{
    (void)state;
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 12};
    static const uint8_t images[18] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 5, 6};
    mkdir(scratch_path("fashion-mnist"), 0700);
    setenv("LOCKSTEP_DATA", scratch, 1);
    struct lk_data *data = NULL;
    refused(lk_data_open("fashion-mnist", LK_DATA_TRAIN, &data), LK_E_IO,
            "there is no train-labels-idx1-ubyte");
    scratch_put(scratch_path("fashion-mnist/train-images-idx3-ubyte"), images, sizeof images);
    scratch_put(scratch_path("fashion-mnist/train-labels-idx1-ubyte"), labels, sizeof labels);
    refused(lk_data_open("fashion-mnist", LK_DATA_TRAIN, &data), LK_E_DATA,
            "labels of 0..9 are expected, found 12");
    assert_null(data);
}

/* Whatever a server sends, only the real bytes get into the cache. */
static void refuses_wrong_bytes(void **state)
{
    (void)state;
    struct lk_data *data = NULL;
    struct server server;
    mkdir(scratch_path("fashion-mnist"), 0700);
    for (int i = 0; i < 4; i++)
        scratch_put(scratch_path(files[i]), "made up", 7);
    serve(&server, scratch, "ok");
    refused(lk_data_open("fashion-mnist", LK_DATA_TRAIN, &data), LK_E_DATA,
            "fashion-mnist: 'http://127.0.0.1:");
    assert_int_equal(scratch_entries(scratch_path("cache/data/fashion-mnist")), 0);
    server_stop(&server);
    if (!real)
        return;
    serve(&server, real, "wrong");
    refused(lk_data_open("fashion-mnist", LK_DATA_TRAIN, &data), LK_E_DATA,
            "expected is sha256");
    assert_int_equal(scratch_entries(scratch_path("cache/data/fashion-mnist")), 0);
    server_stop(&server);
    assert_null(data);
}

static char message[512];

static void keep_message(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    (void)level;
    snprintf(message, sizeof message, "%s", text);
}

static void refuses_other_places(void **state)
{
    (void)state;
    struct lk_data *data = NULL;
    setenv("LOCKSTEP_DATA_URL", "http://example.org", 1);
    refused(lk_data_open("fashion-mnist", LK_DATA_TRAIN, &data), LK_E_ARGUMENT,
            "begins with https://");
    struct server server;
    serve(&server, scratch, "ok"); /* has no such file */
    lk_log_set(keep_message, NULL);
    refused(lk_data_open("fashion-mnist", LK_DATA_TRAIN, &data), LK_E_IO, "404");
    refused(lk_data_open("fashion-mnist", LK_DATA_TRAIN, &data), LK_E_IO,
            "put its files into $LOCKSTEP_DATA/fashion-mnist, or take synthetic:digits");
    server_stop(&server);
    lk_log_set(NULL, NULL);
    assert_non_null(strstr(message, "train-labels-idx1-ubyte.gz (30 kB)"));
    unsetenv("LOCKSTEP_CACHE");
    unsetenv("HOME");
    refused(lk_data_open("fashion-mnist", LK_DATA_TRAIN, &data), LK_E_IO, "nor HOME is set");
    assert_null(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(downloads_into_the_cache, begin),
        cmocka_unit_test_setup(prefers_the_data_folder, begin),
        cmocka_unit_test_setup(finds_a_small_set_in_the_data_folder, begin),
        cmocka_unit_test_setup(refuses_wrong_bytes, begin),
        cmocka_unit_test_setup(refuses_other_places, begin),
    };
    return cmocka_run_group_tests(tests, prepare, finish);
}
