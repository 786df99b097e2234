/* Files that grow: behind what was there, whole entries, and a disk that takes none for a
 * while. */
#include "io/journal.h"

#include "base/log.h"
#include "io/file.h"
#include "scratch.h"
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int warned;

static void count_warning(void *context, enum lk_log_level level, const char *message)
{
    (void)context;
    warned += level == LK_LOG_WARNING && strstr(message, "grow.txt") != NULL;
    errno = ENOTTY; /* as writing to a pipe does */
}

static void ok(enum lk_status status)
{
    if (status != LK_OK)
        fail_msg("%s: %s", lk_status_text(status), lk_error_text());
}

static void expect(const char *path, const char *text)
{
    void *data = NULL;
    size_t bytes = 0;
    ok(lk_file_read(path, 1 << 20, &data, &bytes));
    assert_string_equal((char *)data, text);
    free(data);
}

static void grows_behind_what_was_there(void **state)
{
    (void)state;
    struct lk_journal *journal = NULL;
    const char *path = scratch_path("old.txt");
    scratch_put(path, "one\ntwo\nthr", 11);
    ok(lk_journal_open(path, 8, LK_JOURNAL_LINES, &journal));
    assert_int_equal((int)lk_journal_bytes(journal), 8);
    fputs("three\n", lk_journal_stream(journal));
    assert_int_equal((int)lk_journal_bytes(journal), 14);
    expect(path, "one\ntwo\n");
    ok(lk_journal_write(journal));
    expect(path, "one\ntwo\nthree\n");
    fputs("four\n", lk_journal_stream(journal));
    ok(lk_journal_sync(journal));
    lk_journal_close(journal);
    expect(path, "one\ntwo\nthree\nfour\n");
    ok(lk_journal_open(path, 100, LK_JOURNAL_LINES,
                       &journal)); /* shorter than it was said to be */
    assert_int_equal((int)lk_journal_bytes(journal), 19);
    lk_journal_close(journal);
    ok(lk_journal_open(path, -1, LK_JOURNAL_LINES, &journal));
    assert_int_equal((int)lk_journal_bytes(journal), 19);
    lk_journal_close(journal);
    lk_journal_close(NULL);
}

static void is_written_again_where_it_was_removed(void **state)
{
    (void)state;
    struct lk_journal *journal = NULL;
    const char *path = scratch_path("grow.txt");
    ok(lk_journal_open(path, 0, LK_JOURNAL_LINES, &journal));
    fputs("one\n", lk_journal_stream(journal));
    ok(lk_journal_write(journal));
    warned = 0;
    lk_log_set(count_warning, NULL);
    lk_journal_find(journal, path);
    assert_int_equal(warned, 0);
    unlink(path);
    fputs("two\n", lk_journal_stream(journal));
    ok(lk_journal_write(journal));
    lk_journal_find(journal, path);
    assert_int_equal(warned, 1);
    expect(path, "one\ntwo\n");
    fputs("three\n", lk_journal_stream(journal));
    ok(lk_journal_write(journal));
    ok(lk_journal_sync(journal));
    expect(path, "one\ntwo\nthree\n");

    unlink(path); /* somebody's own file is in its place: said once */
    scratch_put(path, "mine", 4);
    fputs("four\n", lk_journal_stream(journal));
    ok(lk_journal_write(journal));
    lk_journal_find(journal, path);
    lk_journal_find(journal, path);
    assert_int_equal(warned, 2);
    expect(path, "mine");
    unlink(path);
    lk_journal_find(journal, path);
    lk_log_set(NULL, NULL);
    lk_journal_close(journal);
    expect(path, "one\ntwo\nthree\nfour\n");
    unlink(path);
}

static void grows_from_where_it_was_cut(void **state)
{
    (void)state;
    struct lk_journal *journal = NULL;
    const char *path = scratch_path("grow.txt");
    ok(lk_journal_open(path, 0, LK_JOURNAL_LINES, &journal));
    fputs("one\ntwo\n", lk_journal_stream(journal));
    ok(lk_journal_write(journal));
    fputs("three\n", lk_journal_stream(journal));
    warned = 0;
    lk_log_set(count_warning, NULL);
    lk_journal_find_end(journal);
    assert_int_equal(warned, 0);
    assert_int_equal(truncate(path, 4), 0);
    lk_journal_find_end(journal);
    lk_journal_find_end(journal);
    assert_int_equal(warned, 1);
    assert_int_equal((int)lk_journal_bytes(journal), 10);
    assert_int_equal(truncate(path, 3), 0);
    unlink(path); /* and removed: what it had is written */
    lk_journal_find(journal, path);
    assert_int_equal(warned, 3);
    lk_log_set(NULL, NULL);
    lk_journal_close(journal);
    expect(path, "three\n"); /* no line is torn */
    unlink(path);
}

/* A record of `count` bytes: its length, and checksums that nobody reads here. */
static void put_record(FILE *stream, int count)
{
    for (int i = 0; i < 12 + count + 4; i++)
        putc(i ? 0 : count, stream);
}

static void cuts_torn_records(void **state)
{
    (void)state;
    struct lk_journal *journal = NULL;
    const char *path = scratch_path("grow.txt");
    ok(lk_journal_open(path, 0, LK_JOURNAL_RECORDS, &journal));
    put_record(lk_journal_stream(journal), 100);
    put_record(lk_journal_stream(journal), 0);
    put_record(lk_journal_stream(journal), 50);
    ok(lk_journal_write(journal));
    assert_int_equal((int)lk_journal_bytes(journal), 116 + 16 + 66);
    assert_int_equal(truncate(path, 197), 0);
    lk_journal_find_end(journal);
    assert_int_equal((int)lk_journal_bytes(journal), 116 + 16);
    put_record(lk_journal_stream(journal), 7);
    lk_journal_close(journal);
    for (int64_t bytes = 155; bytes >= 131; bytes -= 12) {
        static const int whole[] = {155, 132, 116};
        assert_int_equal(truncate(path, bytes), 0);
        ok(lk_journal_open(path, 1000, LK_JOURNAL_RECORDS, &journal));
        assert_int_equal((int)lk_journal_bytes(journal), whole[(155 - bytes) / 12]);
        lk_journal_close(journal);
    }
    scratch_put(path, "\377\377\377\377\377\377\377\377and more behind it", 26);
    ok(lk_journal_open(path, -1, LK_JOURNAL_RECORDS, &journal));
    assert_int_equal((int)lk_journal_bytes(journal), 0);
    lk_journal_close(journal);
    unlink(path);
}

static void follows_where_folders_go(void **state)
{
    (void)state;
    struct lk_journal *journal = NULL;
    char folder[256], path[300], other[300];
    snprintf(folder, sizeof folder, "%s", scratch_path("logs"));
    snprintf(path, sizeof path, "%s/grow.txt", folder);
    snprintf(other, sizeof other, "%s/grow.txt.1", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    ok(lk_journal_open(path, 0, LK_JOURNAL_LINES, &journal));
    fputs("one\n", lk_journal_stream(journal));
    ok(lk_journal_write(journal));
    warned = 0;
    lk_log_set(count_warning, NULL);
    assert_int_equal(rename(path, other), 0); /* renamed: the name is the file's that grows */
    lk_journal_find(journal, path);
    expect(path, "one\n");
    unlink(path);
    unlink(other);
    assert_int_equal(rmdir(folder), 0); /* its folder too */
    lk_journal_find(journal, path);
    fputs("two\n", lk_journal_stream(journal));
    ok(lk_journal_write(journal));
    assert_int_equal(warned, 2);
    lk_log_set(NULL, NULL);
    lk_journal_close(journal);
    expect(path, "one\ntwo\n");
    unlink(path);
    rmdir(folder);
}

static void refuses_what_is_no_file(void **state)
{
    (void)state;
    struct lk_journal *journal = NULL;
    assert_refused((int)lk_journal_open(scratch, 0, LK_JOURNAL_LINES, &journal), LK_E_IO,
                   lk_error_text(), scratch);
    lk_error_clear();
    assert_refused((int)lk_journal_open("/dev/null", 0, LK_JOURNAL_LINES, &journal), LK_E_IO,
                   lk_error_text(), "/dev/null");
    lk_error_clear();
    assert_null(journal);
}

/* As a full disk: a file may have ten bytes, then more. */
static void allow(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void waits_for_room(void **state)
{
    (void)state;
    struct lk_journal *journal = NULL;
    const char *path = scratch_path("grow.txt");
    signal(SIGXFSZ, SIG_IGN);
    lk_log_set(count_warning, NULL);
    warned = 0;
    ok(lk_journal_open(path, 0, LK_JOURNAL_LINES, &journal));
    allow(10);
    fputs("first\n", lk_journal_stream(journal));
    ok(lk_journal_try(journal));
    for (int i = 0; i < 3; i++) {
        fputs("second\n", lk_journal_stream(journal));
        ok(lk_journal_try(journal));
        expect(path, "first\n"); /* nothing of it, though four bytes had room */
        assert_int_equal((int)lk_journal_bytes(journal), 6 + 7 * (i + 1));
    }
    assert_int_equal(warned, 1);
    assert_refused((int)lk_journal_write(journal), LK_E_IO, lk_error_text(), "grow.txt");
    lk_error_clear();
    allow(RLIM_INFINITY);
    ok(lk_journal_try(journal));
    expect(path, "first\nsecond\nsecond\nsecond\n");
    allow(10);
    fputs("third\n", lk_journal_stream(journal));
    ok(lk_journal_try(journal));
    assert_int_equal(warned, 2); /* it had gone well meanwhile */
    allow(RLIM_INFINITY);
    lk_journal_close(journal);
    expect(path, "first\nsecond\nsecond\nsecond\nthird\n");
    lk_log_set(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_behind_what_was_there),
        cmocka_unit_test(is_written_again_where_it_was_removed),
        cmocka_unit_test(grows_from_where_it_was_cut),
        cmocka_unit_test(cuts_torn_records),
        cmocka_unit_test(follows_where_folders_go),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(waits_for_room),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
