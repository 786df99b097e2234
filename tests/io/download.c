/* Downloads from a server that cuts, lies, forgets ranges and is busy. */
#include "io/download.h"

#include "io/file.h"
#include "io/sha256.h"
#include "server.h"

#include <lockstep/status.h>
#include <sys/resource.h>

enum { BYTES = 300000 };
static char content[BYTES], sum[LK_SHA256_TEXT], url[128], path[128], part[128];
static struct server server;

static void refused(int status, int code, const char *said)
{
    assert_refused(status, code, lk_error_text(), said);
    lk_error_clear();
}

static int prepare(void **state)
{
    if (scratch_make(state))
        return -1;
    for (int i = 0; i < BYTES; i++)
        content[i] = (char)((unsigned)i * 7919u >> 5);
    scratch_put(scratch_path("file"), content, BYTES);
    snprintf(path, sizeof path, "%s", scratch_path("got"));
    snprintf(part, sizeof part, "%s", scratch_path("got.part"));
    return lk_sha256_of(content, BYTES, sum) == LK_OK ? 0 : -1;
}

/* Each test has a fresh server and no files but `file`. */
static int begin(void **state)
{
    (void)state;
    server_start(&server, scratch);
    unlink(path);
    unlink(part);
    return 0;
}

static int end(void **state)
{
    (void)state;
    server_stop(&server);
    return 0;
}

static struct lk_download ask(const char *word)
{
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s/file", server.port, word);
    return (struct lk_download){.url = url,
                                .path = path,
                                .sha256 = sum,
                                .limit = BYTES + 5,
                                .allow_http = true,
                                .wait_ms = 1};
}

static void expect_file(void)
{
    void *data = NULL;
    size_t bytes = 0;
    assert_int_equal(lk_file_read(path, BYTES, &data, &bytes), LK_OK);
    assert_int_equal(bytes, BYTES);
    assert_memory_equal(data, content, BYTES);
    free(data);
    assert_false(lk_file_exists(part));
}

static void expect_downloaded(const struct lk_download *asked, int requests)
{
    const enum lk_status status = lk_download(asked);
    if (status != LK_OK)
        fail_msg("%s", lk_error_text());
    expect_file();
    server_look(&server);
    assert_int_equal(server.requests, requests);
}

static bool watch(void *context, int64_t done, int64_t total)
{
    int64_t *seen = context;
    assert_true(done >= seen[0]);
    seen[0] = done;
    if (total > 0)
        seen[1] = total;
    return true;
}

static void downloads_once(void **state)
{
    (void)state;
    int64_t seen[2] = {0, 0};
    struct lk_download asked = ask("ok");
    asked.progress = watch;
    asked.context = seen;
    expect_downloaded(&asked, 1);
    assert_int_equal(seen[0], BYTES);
    assert_int_equal(seen[1], BYTES);
    expect_downloaded(&asked, 0); /* in place already */
}

static void goes_on_where_it_was_cut(void **state)
{
    (void)state;
    struct lk_download asked = ask("cut"); /* 300000, 150000, ..., 1171, 585 bytes left */
    expect_downloaded(&asked, 10);
    assert_int_equal(server.first, 0);
    assert_in_range(server.last, BYTES - 1000, BYTES - 1);
}

static void goes_on_with_an_earlier_call(void **state)
{
    (void)state;
    scratch_put(part, content, 100000);
    struct lk_download asked = ask("ok");
    expect_downloaded(&asked, 1);
    assert_int_equal(server.first, 100000);
    unlink(path);
    scratch_put(part, content, BYTES); /* whole, but not yet moved into place */
    expect_downloaded(&asked, 1);
    assert_int_equal(server.first, BYTES);
}

static void starts_again_where_the_part_is_useless(void **state)
{
    (void)state;
    static char other[BYTES + 9];
    struct lk_download asked = ask("ok");
    scratch_put(part, other, 100000);
    expect_downloaded(&asked, 2);
    assert_int_equal(server.first, 100000);
    assert_int_equal(server.last, 0);
    unlink(path);
    scratch_put(part, other, BYTES + 9); /* more than the limit */
    expect_downloaded(&asked, 1);
    assert_int_equal(server.first, 0);
    unlink(path);
    scratch_put(part, content, 100000);
    asked = ask("norange");
    expect_downloaded(&asked, 2);
}

static void is_patient_with_a_busy_server(void **state)
{
    (void)state;
    struct lk_download asked = ask("busy");
    expect_downloaded(&asked, 3);
}

static void gives_up(void **state)
{
    (void)state;
    struct lk_download asked = ask("half"); /* cuts, and knows no ranges */
    refused(lk_download(&asked), LK_E_IO, "/half/file");
    server_look(&server);
    assert_in_range(server.requests, 2, 6);
    asked = ask("none");
    strcat(url, "-absent");
    refused(lk_download(&asked), LK_E_IO, "404");
    server_look(&server);
    assert_int_equal(server.requests, 1);
    asked = ask("away");
    refused(lk_download(&asked), LK_E_IO, "http");
    server_look(&server);
    assert_int_equal(server.requests, 1);
    server_stop(&server);
    unlink(part);
    asked = ask("ok");
    refused(lk_download(&asked), LK_E_IO, "onnect");
    assert_false(lk_file_exists(part));
    server_start(&server, scratch);
}

static void refuses_wrong_bytes(void **state)
{
    (void)state;
    struct lk_download asked = ask("wrong");
    const enum lk_status status = lk_download(&asked);
    assert_non_null(strstr(lk_error_text(), sum));
    refused(status, LK_E_DATA, "300000 bytes of sha256 ");
    assert_false(lk_file_exists(path));
    assert_false(lk_file_exists(part));
    asked = ask("endless");
    refused(lk_download(&asked), LK_E_DATA, "more than the expected 300005 bytes");
    asked = ask("ok");
    asked.limit = 1000;
    refused(lk_download(&asked), LK_E_DATA, "more than the expected 1000 bytes");
    assert_false(lk_file_exists(path));
    assert_false(lk_file_exists(part));
}

static void refuses_other_addresses(void **state)
{
    (void)state;
    static const char *const addresses[] = {
        "http://localhost.example/f", "http://127.0.0.1.example/f", "http://127.0.0.12/f",
        "file:///etc/passwd",         "ftp://127.0.0.1/f",          "",
    };
    struct lk_download asked = ask("ok");
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        asked.url = addresses[i];
        refused(lk_download(&asked), LK_E_ARGUMENT, "begins with https://");
    }
    asked = ask("ok");
    asked.allow_http = false;
    refused(lk_download(&asked), LK_E_ARGUMENT, "begins with https://");
    assert_false(server_look(&server));
    assert_false(lk_file_exists(part));
}

static bool stop_at_first_bytes(void *context, int64_t done, int64_t total)
{
    (void)context;
    (void)total;
    return done == 0;
}

static void keeps_what_it_has(void **state)
{
    (void)state;
    struct lk_download asked = ask("ok");
    asked.progress = stop_at_first_bytes;
    refused(lk_download(&asked), LK_E_INTERRUPTED, "was stopped");
    assert_true(lk_file_exists(part));
    assert_false(lk_file_exists(path));
    server_look(&server);
    unlink(part);

    struct rlimit before, tight; /* stands for a full disk */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = 100000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    asked = ask("ok");
    const enum lk_status status = lk_download(&asked);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    refused(status, LK_E_IO, "got.part': File too large");
    server_look(&server);
    expect_downloaded(&asked, 1);
    assert_int_equal(server.first, 100000);
}

/* Of several processes one downloads; the others wait and find the file in place. */
static void shares_between_processes(void **state)
{
    (void)state;
    enum { PROCESSES = 4 };
    pid_t children[PROCESSES];
    struct lk_download asked = ask("cut");
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit((int)lk_download(&asked));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, LK_OK);
    }
    expect_file();
    server_look(&server);
    assert_int_equal(server.requests, 10);
}

int main(void)
{
#define SERVED(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        SERVED(downloads_once),
        SERVED(goes_on_where_it_was_cut),
        SERVED(goes_on_with_an_earlier_call),
        SERVED(starts_again_where_the_part_is_useless),
        SERVED(is_patient_with_a_busy_server),
        SERVED(gives_up),
        SERVED(refuses_wrong_bytes),
        SERVED(refuses_other_addresses),
        SERVED(keeps_what_it_has),
        SERVED(shares_between_processes),
    };
    return cmocka_run_group_tests(tests, prepare, scratch_remove);
}
