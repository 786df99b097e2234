/* TFRecord files: every record, plain and packed; a tail that was cut off; damage is refused.
 */
#include "io/records/tfrecord.h"

#include "records.h"
#include <lockstep/status.h>
#include <zlib.h>

enum { COUNT = 60, LIMIT = 1 << 20 };

static struct bytes file;

/* "abc", two bytes more than that, and so on; the first is empty. */
static size_t record_bytes(int i)
{
    return i == 0 ? 0 : (size_t)(3 + 17 * i);
}

static void fill_record(int i, uint8_t *record)
{
    for (size_t k = 0; k < record_bytes(i); k++)
        record[k] = (uint8_t)(i * 31 + (int)k);
}

static void make_file(void)
{
    uint8_t record[2000];
    file.used = 0;
    for (int i = 0; i < COUNT; i++) {
        fill_record(i, record);
        put_record(&file, record, record_bytes(i));
    }
}

static void refused(int status, int code, const char *said)
{
    assert_refused(status, code, lk_error_text(), said);
    lk_error_clear();
}

static struct lk_tfrecord *open_file(const char *name, const void *data, size_t bytes)
{
    struct lk_tfrecord *opened = NULL;
    scratch_put(scratch_path(name), data, bytes);
    if (lk_tfrecord_open(scratch_path(name), LIMIT, &opened) != LK_OK)
        fail_msg("%s", lk_error_text());
    return opened;
}

static void expect_records(const struct lk_tfrecord *opened, int64_t count)
{
    uint8_t want[2000];
    assert_int_equal(lk_tfrecord_count(opened), count);
    for (int64_t i = count - 1; i >= 0; i--) {
        void *data;
        size_t bytes;
        assert_int_equal(lk_tfrecord_read(opened, i, &data, &bytes), LK_OK);
        assert_int_equal(bytes, record_bytes((int)i));
        fill_record((int)i, want);
        assert_memory_equal(data, want, bytes);
        free(data);
    }
}

/* framing: of zlib's deflateInit2(). */
static size_t pack(const void *data, size_t bytes, int framing, uint8_t *packed, size_t room)
{
    z_stream z = {.next_in = (Bytef *)data,
                  .avail_in = (uInt)bytes,
                  .next_out = packed,
                  .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, framing, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static void reads_every_record(void **state)
{
    (void)state;
    static uint8_t packed[1 << 16];
    make_file();
    static const int framings[] = {0, 15 + 16, 15};
    for (int i = 0; i < 3; i++) {
        const size_t n = framings[i]
                             ? pack(file.data, file.used, framings[i], packed, sizeof packed)
                             : file.used;
        struct lk_tfrecord *opened =
            open_file("a.tfrecord", framings[i] ? packed : file.data, n);
        expect_records(opened, COUNT);
        assert_int_equal(lk_tfrecord_tail(opened), 0);
        lk_tfrecord_close(opened);
    }
    struct lk_tfrecord *empty = open_file("b.tfrecord", "", 0);
    assert_int_equal(lk_tfrecord_count(empty), 0);
    lk_tfrecord_close(empty);
}

static void add_up(void *context, const void *data, size_t bytes)
{
    size_t *sums = context;
    sums[0]++;
    for (size_t i = 0; i < bytes; i++)
        sums[1] += ((const uint8_t *)data)[i];
}

/* All but those that are damaged, small ones and ones larger than a piece that is read at once.
 */
static void sees_every_record(void **state)
{
    (void)state;
    static uint8_t big[600000];
    uint8_t record[2000];
    size_t sums[2] = {0}, wanted = 0;
    make_file();
    for (int i = 0; i < COUNT; i++) {
        fill_record(i, record);
        for (size_t k = 0; k < record_bytes(i); k++)
            wanted += record[k];
    }
    struct lk_tfrecord *opened = open_file("s.tfrecord", file.data, file.used);
    assert_int_equal(lk_tfrecord_each(opened, add_up, sums), LK_OK);
    assert_int_equal(sums[0], COUNT);
    assert_int_equal(sums[1], wanted);
    lk_tfrecord_close(opened);
    file.data[16 + 12 + 1] ^= 4; /* in record 1 */
    FILE *out = fopen(scratch_path("t.tfrecord"), "wb");
    assert_int_equal(fwrite(file.data, 1, file.used, out), file.used);
    memset(big, 1, sizeof big);
    for (int i = 0; i < 3; i++) { /* two that are read alone, and small ones round them */
        file.used = 0;
        put_little(&file, sizeof big, 8);
        put_little(&file, lk_crc32c_masked(file.data, 8), 4);
        fwrite(file.data, 1, 12, out);
        fwrite(big, 1, sizeof big, out);
        file.used = 0;
        put_little(&file, lk_crc32c_masked(big, sizeof big), 4);
        put_record(&file, "ab", 2);
        fwrite(file.data, 1, file.used, out);
    }
    fclose(out);
    sums[0] = sums[1] = 0;
    fill_record(1, record);
    for (size_t k = 0; k < record_bytes(1); k++)
        wanted -= record[k];
    assert_int_equal(lk_tfrecord_open(scratch_path("t.tfrecord"), 1, &opened), LK_OK);
    assert_int_equal(lk_tfrecord_each(opened, add_up, sums), LK_OK);
    assert_int_equal(sums[0], COUNT - 1 + 6);
    assert_int_equal(sums[1], wanted + 3 * sizeof big + 3 * ('a' + 'b'));
    lk_tfrecord_close(opened);
}

static void finds_large_records(void **state)
{
    (void)state;
    static uint8_t large[40000];
    file.used = 0;
    put_record(&file, large, sizeof large);
    put_record(&file, "abc", 3);
    put_record(&file, large, 20000);
    struct lk_tfrecord *opened = open_file("l.tfrecord", file.data, file.used);
    void *data;
    size_t bytes;
    assert_int_equal(lk_tfrecord_count(opened), 3);
    assert_int_equal(lk_tfrecord_read(opened, 1, &data, &bytes), LK_OK);
    assert_int_equal(bytes, 3);
    assert_memory_equal(data, "abc", 3);
    free(data);
    lk_tfrecord_close(opened);
}

/* Cut anywhere the whole records before are there, and what is left over is counted. */
static void says_what_was_cut_off(void **state)
{
    (void)state;
    make_file();
    for (size_t bytes = 1; bytes < file.used; bytes += 7) {
        struct lk_tfrecord *opened = open_file("c.tfrecord", file.data, bytes);
        int64_t count = 0, end = 0;
        while (end + (int64_t)record_bytes((int)count) + 16 <= (int64_t)bytes)
            end += (int64_t)record_bytes((int)count++) + 16;
        expect_records(opened, count);
        assert_int_equal(lk_tfrecord_tail(opened), (int64_t)bytes - end);
        lk_tfrecord_close(opened);
    }
}

static void refuses_damage(void **state)
{
    (void)state;
    struct lk_tfrecord *opened = NULL;
    void *data = NULL;
    size_t bytes = 0;
    make_file();
    file.data[16] ^= 1; /* the length of record 1, which begins behind an empty one */
    scratch_put(scratch_path("d.tfrecord"), file.data, file.used);
    refused(lk_tfrecord_open(scratch_path("d.tfrecord"), LIMIT, &opened), LK_E_DATA,
            "record 1, at byte 16");
    file.data[16] ^= 1;
    file.data[16 + 12 + 5] ^= 1; /* a byte of record 1 */
    opened = open_file("e.tfrecord", file.data, file.used);
    refused(lk_tfrecord_read(opened, 1, &data, &bytes), LK_E_DATA, "record 1 has another");
    assert_int_equal(lk_tfrecord_read(opened, 2, &data, &bytes), LK_OK);
    free(data);
    scratch_put(scratch_path("e.tfrecord"), file.data, 40); /* it shrinks meanwhile */
    refused(lk_tfrecord_read(opened, 9, &data, &bytes), LK_E_DATA, "become shorter");
    remove(scratch_path("e.tfrecord"));
    refused(lk_tfrecord_read(opened, 0, &data, &bytes), LK_E_IO, "e.tfrecord");
    lk_tfrecord_close(opened);
    scratch_put(scratch_path("f.tfrecord"), "this is text, not records", 25);
    opened = NULL;
    refused(lk_tfrecord_open(scratch_path("f.tfrecord"), LIMIT, &opened), LK_E_DATA,
            "no TFRecord file");
    refused(lk_tfrecord_open(scratch_path("none"), LIMIT, &opened), LK_E_IO, "none");
    refused(lk_tfrecord_open(scratch, LIMIT, &opened), LK_E_IO, "not a file");
    assert_null(opened);
}

static void limits_what_it_inflates(void **state)
{
    (void)state;
    static uint8_t packed[1 << 16];
    struct lk_tfrecord *opened = NULL;
    make_file();
    const size_t n = pack(file.data, file.used, 15 + 16, packed, sizeof packed);
    scratch_put(scratch_path("g.gz"), packed, n);
    refused(lk_tfrecord_open(scratch_path("g.gz"), file.used - 1, &opened), LK_E_DATA,
            "more than the expected");
    packed[n / 2] ^= 16;
    scratch_put(scratch_path("h.gz"), packed, n);
    refused(lk_tfrecord_open(scratch_path("h.gz"), LIMIT, &opened), LK_E_DATA, "h.gz'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_record), cmocka_unit_test(finds_large_records),
        cmocka_unit_test(sees_every_record),  cmocka_unit_test(says_what_was_cut_off),
        cmocka_unit_test(refuses_damage),     cmocka_unit_test(limits_what_it_inflates),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
