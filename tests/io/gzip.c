/* Gzip: whole, several members, limits, and every kind of damage. */
#include "io/gzip.h"

#include "scratch.h"

#include <zlib.h>

enum { PLAIN = 200000, ROOM = 300000 };
static unsigned char plain[PLAIN], packed[ROOM];

static void refused(int status, int code, const char *said)
{
    assert_refused(status, code, lk_error_text(), said);
    lk_error_clear();
}

/* Text that deflate can halve, so that all its kinds of codes occur. */
static size_t pack(const void *data, size_t bytes, unsigned char *out, size_t room)
{
    z_stream z = {.next_in = (void *)data,
                  .avail_in = (uInt)bytes,
                  .next_out = out,
                  .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&z), Z_OK);
    return room - z.avail_out;
}

static int prepare(void **state)
{
    unsigned x = 1;
    for (int i = 0; i < PLAIN; i++) {
        x = x * 1664525u + 1013904223u;
        plain[i] = (unsigned char)(x >> 28 << (i >> 12 & 3));
    }
    return scratch_make(state);
}

static void expect(const void *in, size_t in_bytes, size_t limit, size_t want)
{
    void *data = NULL;
    size_t bytes = 0;
    assert_int_equal(lk_gzip_inflate(in, in_bytes, limit, &data, &bytes), LK_OK);
    assert_int_equal(bytes, want);
    assert_memory_equal(data, plain, want);
    free(data);
}

static void inflates(void **state)
{
    (void)state;
    size_t n = pack(plain, PLAIN, packed, ROOM);
    expect(packed, n, PLAIN, PLAIN);
    expect(packed, n, 10 * PLAIN, PLAIN);
    const size_t half = pack(plain, 50001, packed, ROOM);
    n = half + pack(plain + 50001, PLAIN - 50001, packed + half, ROOM - half);
    expect(packed, n, PLAIN, PLAIN);
    n = half + pack(plain, 0, packed + half, ROOM - half); /* an empty last member */
    expect(packed, n, 50001, 50001);
    n = pack(plain, 0, packed, ROOM);
    expect(packed, n, 0, 0);
}

static void reads_a_file(void **state)
{
    (void)state;
    scratch_put(scratch_path("f.gz"), packed, pack(plain, PLAIN, packed, ROOM));
    void *data = NULL;
    size_t bytes = 0;
    assert_int_equal(lk_gzip_read(scratch_path("f.gz"), PLAIN, &data, &bytes), LK_OK);
    assert_int_equal(bytes, PLAIN);
    assert_memory_equal(data, plain, PLAIN);
    free(data);
    refused(lk_gzip_read(scratch_path("g.gz"), PLAIN, &data, &bytes), LK_E_IO, "g.gz");
    refused(lk_gzip_read(scratch_path("f.gz"), 99, &data, &bytes), LK_E_DATA, "f.gz'");
}

static void refuses(void **state)
{
    (void)state;
    void *data = NULL;
    size_t bytes = 0;
    const size_t n = pack(plain, PLAIN, packed, ROOM);
    refused(lk_gzip_inflate(packed, n, PLAIN - 1, &data, &bytes), LK_E_DATA,
            "more than the expected 199999 bytes");
    refused(lk_gzip_inflate(packed, n, 0, &data, &bytes), LK_E_DATA, "expected 0 bytes");
    refused(lk_gzip_inflate("hello", 5, 99, &data, &bytes), LK_E_DATA, "incorrect header");
    refused(lk_gzip_inflate(packed, 0, 99, &data, &bytes), LK_E_DATA, "cut short");
    packed[n] = 'x';
    refused(lk_gzip_inflate(packed, n + 1, PLAIN, &data, &bytes), LK_E_DATA,
            "1 bytes of something else");
    packed[n - 6] ^= 1; /* the checksum */
    refused(lk_gzip_inflate(packed, n, PLAIN, &data, &bytes), LK_E_DATA,
            "incorrect data check");
    packed[n - 6] ^= 1;
    packed[n - 1] = 0xff; /* the size: a hint that must not make it allocate 4 GB */
    refused(lk_gzip_inflate(packed, n, 1 << 30, &data, &bytes), LK_E_DATA,
            "incorrect length check");
    assert_null(data);
    assert_int_equal(bytes, 0);
}

/* Cut anywhere or with any byte changed: refused, or (bytes nobody checks, such as the time in
 * the header) inflated to the same data; never anything else. */
static void survives_damage(void **state)
{
    (void)state;
    static unsigned char damaged[ROOM];
    const size_t n = pack(plain, 3000, packed, ROOM);
    for (size_t i = 0; i < n; i++) {
        void *data;
        size_t bytes;
        refused(lk_gzip_inflate(packed, i, PLAIN, &data, &bytes), LK_E_DATA, "cut short");
        for (unsigned flip = 1; flip < 256; flip <<= 1) {
            memcpy(damaged, packed, n);
            damaged[i] ^= (unsigned char)flip;
            if (lk_gzip_inflate(damaged, n, PLAIN, &data, &bytes) == LK_OK) {
                assert_int_equal(bytes, 3000);
                assert_memory_equal(data, plain, 3000);
                free(data);
            } else {
                lk_error_clear();
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inflates),
        cmocka_unit_test(reads_a_file),
        cmocka_unit_test(refuses),
        cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, prepare, scratch_remove);
}
