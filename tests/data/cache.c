/* Kept samples: what a file gives back is what was put into it, or nothing. */
#include "data/images/cache.h"
#include "data/kept.h"
#include "png.h"
#include <errno.h>
#include <lockstep/data.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { COUNT = 100, BYTES = 77 };

static int warnings;
static char warned[4096];

static void keep_warning(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    if (level != LK_LOG_WARNING)
        return;
    warnings++;
    snprintf(warned, sizeof warned, "%s", text);
}

static atomic_int reads;

static enum lk_status read_sample(void *context, int64_t index, uint8_t *sample, int32_t *label)
{
    const int *change = context;
    atomic_fetch_add(&reads, 1);
    for (int i = 0; i < BYTES; i++)
        sample[i] = (uint8_t)(index * 31 + i * 7 + *change);
    *label = (int32_t)(index % 9 + *change);
    return LK_OK;
}

static bool is_bad(void *context, int64_t index)
{
    (void)context;
    return index % 10 == 3;
}

static int change;

static struct lk_cache_samples samples(char digit)
{
    struct lk_cache_samples s = {.name = "set",
                                 .count = COUNT,
                                 .bytes = BYTES,
                                 .context = &change,
                                 .read = read_sample,
                                 .is_bad = is_bad};
    memset(s.sum, digit, LK_SHA256_TEXT - 1);
    atomic_store(&reads, 0);
    return s;
}

static struct lk_cache *open_file(const char *path, char digit)
{
    struct lk_cache *cache = NULL;
    const struct lk_cache_samples s = samples(digit);
    if (lk_cache_open_file(path, &s, &cache) != LK_OK)
        fail_msg("%s", lk_error_text());
    return cache;
}

static void expect_all(struct lk_cache *cache)
{
    uint8_t sample[BYTES], wanted[BYTES];
    assert_non_null(cache);
    const int before = atomic_load(&reads);
    for (int64_t i = 0; i < COUNT; i++) {
        int32_t label = -1, wanted_label;
        assert_true(lk_cache_find(cache, i, sample, &label));
        (void)!read_sample(&change, i, wanted, &wanted_label);
        assert_memory_equal(sample, wanted, BYTES);
        assert_int_equal(label, wanted_label);
        assert_int_equal(lk_cache_is_bad(cache, i), i % 10 == 3);
    }
    atomic_store(&reads, before);
}

static void keeps_in_memory(void **state)
{
    (void)state;
    struct lk_cache *cache = NULL;
    const struct lk_cache_samples s = samples('a');
    uint8_t sample[BYTES], found[BYTES];
    int32_t label = 0;
    assert_int_equal(lk_cache_open_memory(&s, &cache), LK_OK);
    for (int64_t i = 0; i < COUNT; i += 2) {
        assert_false(lk_cache_find(cache, i, found, &label));
        (void)!read_sample(&change, i, sample, &label);
        lk_cache_put(cache, i, sample, label);
        int32_t again = -1;
        assert_true(lk_cache_find(cache, i, found, &again));
        assert_memory_equal(found, sample, BYTES);
        assert_int_equal(again, label);
    }
    assert_false(lk_cache_find(cache, 1, found, &label));
    lk_cache_close(cache);
}

static void keeps_in_a_file(void **state)
{
    (void)state;
    const char *path = scratch_path("a.cache");
    struct lk_cache *cache = open_file(path, 'a');
    assert_int_equal(atomic_load(&reads), COUNT);
    expect_all(cache);
    lk_cache_close(cache);
    cache = open_file(path, 'a');
    assert_int_equal(atomic_load(&reads), 0);
    expect_all(cache);
    lk_cache_close(cache);
    change = 1; /* other samples, told by the sum */
    cache = open_file(path, 'b');
    assert_int_equal(atomic_load(&reads), COUNT);
    expect_all(cache);
    lk_cache_close(cache);
    change = 0;
    remove(path);
}

/* The file as it is; the caller frees it. */
static uint8_t *whole(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*bytes);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, file), *bytes);
    fclose(file);
    return data;
}

/* A byte that is another one, anywhere: the file is made anew, or that sample is not there. */
static void never_gives_what_was_not_put(void **state)
{
    (void)state;
    const char *path = scratch_path("b.cache");
    size_t bytes;
    lk_cache_close(open_file(path, 'a'));
    uint8_t *data = whole(path, &bytes);
    int remade = 0, missed = 0;
    for (size_t at = 8; at < bytes; at += at < 200 || at > bytes - 100 ? 1 : 37) {
        data[at] ^= 0x10;
        scratch_put(path, data, bytes);
        data[at] ^= 0x10;
        struct lk_cache *cache = open_file(path, 'a');
        if (atomic_load(&reads) > 0) {
            assert_int_equal(atomic_load(&reads), COUNT);
            remade++;
            expect_all(cache);
        } else {
            uint8_t sample[BYTES], wanted[BYTES];
            int32_t label, wanted_label;
            int found = 0;
            for (int64_t i = 0; i < COUNT; i++) {
                if (!lk_cache_find(cache, i, sample, &label))
                    continue;
                found++;
                (void)!read_sample(&change, i, wanted, &wanted_label);
                assert_memory_equal(sample, wanted, BYTES);
                assert_int_equal(label, wanted_label);
            }
            assert_int_equal(found, COUNT - 1);
            missed++;
        }
        lk_cache_close(cache);
    }
    assert_true(remade > 100 && missed > 100);
    for (size_t length = 8; length < bytes; length += 97) {
        scratch_put(path, data, length);
        struct lk_cache *cache = open_file(path, 'a');
        assert_int_equal(atomic_load(&reads), COUNT);
        expect_all(cache);
        lk_cache_close(cache);
    }
    free(data);
    remove(path);
}

static void leaves_other_files_alone(void **state)
{
    (void)state;
    static const char *const others[] = {"", "LKCACH", "a letter to my aunt"};
    const char *path = scratch_path("letter.txt");
    for (int i = 0; i < 3; i++) {
        const struct lk_cache_samples s = samples('a');
        struct lk_cache *cache = NULL;
        scratch_put(path, others[i], strlen(others[i]));
        assert_refused(lk_cache_open_file(path, &s, &cache), LK_E_DATA, lk_error_text(),
                       "letter.txt' is no cache of samples");
        lk_error_clear();
        size_t bytes;
        uint8_t *data = whole(path, &bytes);
        assert_int_equal(bytes, strlen(others[i]));
        assert_memory_equal(data, others[i], bytes);
        free(data);
    }
    remove(path);
}

/* As on a disk that is full after `most` bytes. */
static void goes_on_without_room(void **state)
{
    (void)state;
    const char *path = scratch_path("full.cache");
    struct rlimit before, little;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    for (rlim_t most = 0; most < COUNT * BYTES; most += 2000) {
        little = (struct rlimit){most, before.rlim_max};
        warnings = 0;
        setrlimit(RLIMIT_FSIZE, &little);
        struct lk_cache *cache = open_file(path, 'a');
        setrlimit(RLIMIT_FSIZE, &before);
        assert_null(cache);
        assert_int_equal(warnings, 1);
        assert_non_null(strstr(warned, "samples are not kept in"));
        assert_int_equal(access(path, F_OK), -1);
    }
    DIR *folder = opendir(scratch);
    for (struct dirent *entry; (entry = readdir(folder));)
        assert_null(strstr(entry->d_name, "full.cache"));
    closedir(folder);
    warnings = 0;
    assert_null(open_file(scratch_path("no/folder/x.cache"), 'a'));
    assert_int_equal(warnings, 1);
}

/* Several processes make and read one file at once. */
static void is_shared(void **state)
{
    (void)state;
    enum { PROCESSES = 4 };
    const char *path = scratch_path("shared.cache");
    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            bool is_right = true;
            for (int round = 0; round < 5 && is_right; round++) {
                struct lk_cache *cache = NULL;
                const struct lk_cache_samples s = samples('a');
                uint8_t sample[BYTES], wanted[BYTES];
                int32_t label, wanted_label;
                is_right = lk_cache_open_file(path, &s, &cache) == LK_OK && cache;
                for (int64_t i = 0; i < COUNT && is_right; i++) {
                    (void)!read_sample(&change, i, wanted, &wanted_label);
                    is_right = lk_cache_find(cache, i, sample, &label) &&
                               memcmp(sample, wanted, BYTES) == 0 && label == wanted_label;
                }
                lk_cache_close(cache);
            }
            _exit(is_right ? 0 : 1);
        }
    for (int p = 0; p < PROCESSES; p++) {
        int status = -1;
        wait(&status);
        assert_int_equal(status, 0);
    }
    struct lk_cache *cache = open_file(path, 'a');
    assert_int_equal(atomic_load(&reads), 0);
    expect_all(cache);
    lk_cache_close(cache);
    remove(path);
}

static struct lk_data *open_folder(const char *cache, const char *max_bad)
{
    static char spec[1024];
    struct lk_data *data = NULL;
    snprintf(spec, sizeof spec, "folder:%s,cache=%s,max_bad=%s", scratch_path("set"),
             scratch_path(cache), max_bad);
    return lk_data_open_as(spec, LK_DATA_TRAIN, NULL, &data) == LK_OK ? data : NULL;
}

static void put_red(const char *name, uint8_t red)
{
    png_put(name, 8, 12, (uint8_t[]){red, 100, 50});
}

static void expect_red(const struct lk_data *data, int64_t index, int red)
{
    uint8_t pixels[8 * 12 * 3];
    int32_t label;
    assert_int_equal(lk_data_read(data, &index, 1, pixels, &label), LK_OK);
    assert_int_equal(pixels[0], red);
    assert_int_equal(label, index / 2);
}

static void keeps_images(void **state)
{
    (void)state;
    static const char *const names[] = {"set/a/0.png", "set/a/1.png", "set/b/2.png",
                                        "set/b/3.png"};
    for (int i = 0; i < 4; i++)
        put_red(names[i], (uint8_t)(10 * i));
    struct lk_data *data = open_folder("i.cache", "0");
    assert_non_null(data);
    for (int i = 0; i < 4; i++)
        expect_red(data, i, 10 * i);
    for (int i = 0; i < 4; i++)
        remove(scratch_path(names[i]));
    for (int i = 0; i < 4; i++) /* from the file, though the images are gone */
        expect_red(data, i, 10 * i);
    lk_data_close(data);
    for (int i = 0; i < 4; i++)
        put_red(names[i], (uint8_t)(10 * i + 1));
    data = open_folder("i.cache", "0");
    assert_non_null(data);
    for (int i = 0; i < 4; i++) /* the images are others now */
        expect_red(data, i, 10 * i + 1);
    lk_data_close(data);
}

/* A file of features that cannot be written is told with the first of them that was lost, not
 * when hours of computing are over. */
static void tells_a_full_disk_at_once(void **state)
{
    (void)state;
    enum { NUMBERS = 1000, ROOM = 8000 };
    static const float record[NUMBERS];
    const struct lk_kept_config config = {
        .name = "set",
        .path = scratch_path("full.feats"),
        .count = COUNT,
        .field_count = 1,
        .fields = {{.name = "x", .dtype = LK_F32, .shape = {1, {NUMBERS}}, .length = -1}}};
    struct rlimit before, little;
    struct lk_kept *kept = NULL;
    bool is_there = true;
    assert_int_equal(lk_kept_open(&config, &kept, &is_there), LK_OK);
    assert_false(is_there);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    little = (struct rlimit){ROOM, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &little);
    const enum lk_status first = lk_kept_put(kept, 0, (const uint8_t *)record);
    const enum lk_status later = lk_kept_put(kept, COUNT - 1, (const uint8_t *)record);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(first, LK_OK);
    assert_int_equal(later, LK_E_IO);
    assert_non_null(strstr(lk_error_text(), "full.feats"));
    lk_error_clear();
    assert_int_equal(lk_kept_put(kept, 1, (const uint8_t *)record), LK_E_IO);
    lk_error_clear();
    assert_int_equal(lk_kept_finish(kept), LK_E_IO);
    lk_error_clear();
    lk_kept_close(kept);
    assert_int_not_equal(access(scratch_path("full.feats"), F_OK), 0);
}

/* A broken image is broken in the file too. */
static void counts_broken_images(void **state)
{
    (void)state;
    put_red("set/a/0.png", 1);
    put_red("set/a/1.png", 2);
    put_red("set/b/3.png", 3);
    scratch_put(scratch_path("set/b/2.png"), "junk", 4);
    for (int round = 0; round < 2; round++) {
        struct lk_data *data = open_folder("j.cache", "1");
        assert_non_null(data);
        assert_int_equal(lk_data_bad(data), 1);
        expect_red(data, 2, 3);
        lk_data_close(data);
    }
    assert_null(open_folder("j.cache", "0"));
    assert_non_null(strstr(lk_error_text(), "1 of 4 samples are broken"));
    lk_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_in_memory),
        cmocka_unit_test(keeps_in_a_file),
        cmocka_unit_test(never_gives_what_was_not_put),
        cmocka_unit_test(leaves_other_files_alone),
        cmocka_unit_test(goes_on_without_room),
        cmocka_unit_test(tells_a_full_disk_at_once),
        cmocka_unit_test(is_shared),
        cmocka_unit_test(keeps_images),
        cmocka_unit_test(counts_broken_images),
    };
    lk_log_set(keep_warning, NULL);
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
