/* Files: read with a limit, replace or leave alone, make folders. */
#include "io/file.h"

#include "base/fail.h"
#include "scratch.h"

#include <lockstep/status.h>
#include <signal.h>
#include <sys/resource.h>

static void refused(int status, int code, const char *said)
{
    assert_refused(status, code, lk_error_text(), said);
    lk_error_clear();
}

static void expect_content(const char *path, const char *text)
{
    void *data;
    size_t bytes;
    assert_int_equal(lk_file_read(path, 1000, &data, &bytes), LK_OK);
    assert_int_equal(bytes, strlen(text));
    assert_string_equal(data, text);
    free(data);
}

static void writes_and_reads_back(void **state)
{
    (void)state;
    assert_int_equal(lk_folder_make(scratch_path("a")), LK_OK);
    const char *path = scratch_path("a/file");
    assert_false(lk_file_exists(path));
    assert_int_equal(lk_file_write(path, "old", 3), LK_OK);
    expect_content(path, "old");
    const struct lk_file_piece parts[] = {{"ne", 2}, {NULL, 0}, {"west", 4}};
    assert_int_equal(lk_file_write_pieces(path, parts, 3), LK_OK);
    expect_content(path, "newest");
    assert_int_equal(lk_file_write(path, NULL, 0), LK_OK);
    expect_content(path, "");
    assert_true(lk_file_exists(path));
    assert_false(lk_folder_exists(path));
    assert_int_equal(scratch_entries(scratch_path("a")), 1);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_not_equal(about.st_mode & 0444, 0);
}

static void refuses_to_read(void **state)
{
    (void)state;
    void *data = NULL;
    size_t bytes = 7;
    scratch_put(scratch_path("ten"), "0123456789", 10);
    refused(lk_file_read(scratch_path("ten"), 9, &data, &bytes), LK_E_DATA,
            "has 10 bytes; at most 9");
    refused(lk_file_read(scratch_path("absent"), 9, &data, &bytes), LK_E_IO,
            "No such file or directory");
    refused(lk_file_read(scratch, 9, &data, &bytes), LK_E_IO, "it is a folder");
    assert_int_equal(mkfifo(scratch_path("pipe"), 0600), 0);
    refused(lk_file_read(scratch_path("pipe"), 9, &data, &bytes), LK_E_IO, "a pipe");
    assert_null(data);
    assert_int_equal(bytes, 7);
    assert_int_equal(lk_file_read(scratch_path("ten"), 10, &data, &bytes), LK_OK);
    free(data);
}

/* A write that hits the file size limit fails as on a full disk: part of the bytes are taken.
 */
static enum lk_status write_on_full_disk(enum lk_status (*write)(const char *, const void *,
                                                                 size_t),
                                         const char *path)
{
    static char large[300000];
    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = 100000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const enum lk_status status = write(path, large, sizeof large);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    return status;
}

static void full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    assert_int_equal(lk_folder_make(scratch_path("full")), LK_OK);
    const char *path = scratch_path("full/file");
    assert_int_equal(lk_file_write(path, "old", 3), LK_OK);
    const enum lk_status status = write_on_full_disk(lk_file_write, path);
    assert_non_null(strstr(lk_error_text(), path));
    refused(status, LK_E_IO, "File too large");
    expect_content(path, "old");
    assert_int_equal(scratch_entries(scratch_path("full")), 1);
}

static void what_is_no_file_stays(void **state)
{
    (void)state;
    struct stat about;
    const char *pipe = scratch_path("a pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    refused(lk_file_write(pipe, "new", 3), LK_E_IO, "it is a device or a pipe, not a file");
    assert_int_equal(stat(pipe, &about), 0);
    assert_true(S_ISFIFO(about.st_mode));
}

static void asks_beforehand(void **state)
{
    (void)state;
    assert_int_equal(lk_folder_make(scratch_path("asked")), LK_OK);
    const char *path = scratch_path("asked/file");
    assert_int_equal(lk_file_check(path), LK_OK);
    assert_int_equal(scratch_entries(scratch_path("asked")), 0);
    assert_int_equal(lk_file_write(path, "old", 3), LK_OK);
    assert_int_equal(lk_file_check(path), LK_OK);
    expect_content(path, "old");
    assert_int_equal(scratch_entries(scratch_path("asked")), 1);
    refused(lk_file_check(scratch_path("asked/file/below")), LK_E_IO, "asked/file/below");
    refused(lk_file_check(scratch_path("asked")), LK_E_IO, "it is a folder");
    refused(lk_file_check(""), LK_E_IO, "whose name is empty");
}

static enum lk_status write_draft(const char *path, const void *data, size_t bytes)
{
    struct lk_file_draft *draft;
    LK_TRY(lk_file_draft_open(path, &draft));
    for (size_t i = 0; i < bytes; i++)
        fputc(((const char *)data)[i], lk_file_draft_stream(draft));
    return lk_file_draft_commit(draft);
}

static void drafts(void **state)
{
    (void)state;
    struct lk_file_draft *draft = NULL;
    assert_int_equal(lk_folder_make(scratch_path("drafts")), LK_OK);
    const char *path = scratch_path("drafts/file");
    assert_int_equal(write_draft(path, "first", 5), LK_OK);
    expect_content(path, "first");
    assert_int_equal(lk_file_draft_open(path, &draft), LK_OK);
    fprintf(lk_file_draft_stream(draft), "sec");
    expect_content(path, "first");
    fprintf(lk_file_draft_stream(draft), "ond");
    assert_int_equal(lk_file_draft_commit(draft), LK_OK);
    expect_content(path, "second");
    assert_int_equal(lk_file_draft_open(path, &draft), LK_OK);
    fprintf(lk_file_draft_stream(draft), "third");
    lk_file_draft_discard(draft);
    lk_file_draft_discard(NULL);
    expect_content(path, "second");
    refused(write_on_full_disk(write_draft, path), LK_E_IO, "File too large");
    expect_content(path, "second");
    assert_int_equal(scratch_entries(scratch_path("drafts")), 1);
    draft = NULL;
    refused(lk_file_draft_open(scratch_path("drafts"), &draft), LK_E_IO, "it is a folder");
    refused(lk_file_draft_open("/dev/null", &draft), LK_E_IO, "a device");
    refused(lk_file_draft_open(scratch_path("no/where"), &draft), LK_E_IO, "No such file");
    assert_null(draft);
}

static void refuses_to_write(void **state)
{
    (void)state;
    refused(lk_file_write(scratch_path("nowhere/file"), "x", 1), LK_E_IO, "No such file");
    assert_int_equal(lk_folder_make(scratch_path("taken")), LK_OK);
    assert_int_equal(lk_folder_make(scratch_path("taken/name")), LK_OK);
    refused(lk_file_write(scratch_path("taken/name"), "x", 1), LK_E_IO, "it is a folder");
    assert_int_equal(scratch_entries(scratch_path("taken")), 1);
}

static void makes_folders(void **state)
{
    (void)state;
    assert_int_equal(lk_folder_make(scratch_path("x//y/z/")), LK_OK);
    assert_true(lk_folder_exists(scratch_path("x/y/z")));
    assert_int_equal(lk_folder_make(scratch_path("x/y/z")), LK_OK);
    assert_int_equal(lk_folder_make("/"), LK_OK);
    scratch_put(scratch_path("x/file"), "", 0);
    refused(lk_folder_make(scratch_path("x/file")), LK_E_IO, "File exists");
    refused(lk_folder_make(scratch_path("x/file/below")), LK_E_IO, "x/file");
    refused(lk_folder_make(""), LK_E_IO, "No such file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_and_reads_back),
        cmocka_unit_test(refuses_to_read),
        cmocka_unit_test(full_disk_leaves_the_old_file),
        cmocka_unit_test(what_is_no_file_stays),
        cmocka_unit_test(asks_beforehand),
        cmocka_unit_test(drafts),
        cmocka_unit_test(refuses_to_write),
        cmocka_unit_test(makes_folders),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
