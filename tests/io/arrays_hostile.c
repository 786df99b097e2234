/* Malformed and hostile files of weights: every cut, damaged bytes, pickles, archives and HDF5
 * files that were made to do harm. Each is refused with what was expected, soon and in little
 * memory. */
#include "io/arrays/arrays.h"

#include "io/file.h"
#include "io/gzip.h"
#include "scratch.h"

#include <time.h>

static const char *folder;

/* In seconds. Loaded machines and sanitizers are slow: what is meant is 0.1. */
static const double most_time = 2;

static unsigned char *read_weights(const char *name, size_t *bytes)
{
    char path[1024];
    void *data;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (lk_file_read(path, 1 << 20, &data, bytes) != LK_OK)
        fail_msg("%s", lk_error_text());
    return data;
}

static bool read_all(const struct lk_arrays *file)
{
    for (int i = 0; i < file->count; i++) {
        const struct lk_array *array = &file->arrays[i];
        double *values = malloc((size_t)array->count * sizeof *values + 1);
        assert_non_null(values);
        const enum lk_status status = lk_arrays_read(file, array, LK_SAFETENSOR_F64, values);
        free(values);
        if (status != LK_OK)
            return false;
    }
    return true;
}

/* Opens what is at `path` and reads it all; the failure's text stays. */
static enum lk_status try_file(const char *path)
{
    struct lk_arrays *file;
    struct timespec before, after;
    lk_error_clear();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    enum lk_status status = lk_arrays_open(path, &file);
    if (status == LK_OK) {
        status = read_all(file) ? LK_OK : LK_E_DATA;
        lk_arrays_close(file);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const double spent = (double)(after.tv_sec - before.tv_sec) +
                         1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    if (spent > most_time)
        fail_msg("%s took %g s: %s", path, spent, lk_error_text());
    if (status != LK_OK && !strstr(lk_error_text(), "'"))
        fail_msg("'%s' names no file", lk_error_text());
    return status;
}

static void refused(const void *data, size_t bytes, enum lk_status code, const char *said)
{
    scratch_put(scratch_path("bad"), data, bytes);
    const enum lk_status status = try_file(scratch_path("bad"));
    assert_refused((int)status, (int)code, lk_error_text(), said);
    if (!strstr(lk_error_text(), scratch_path("bad")))
        fail_msg("'%s' does not name the file", lk_error_text());
    lk_error_clear();
}

static void refuses_every_cut(void **state)
{
    (void)state;
    static const char *const names[] = {"stream.pt", "newer_archive.pt"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes;
        unsigned char *data = read_weights(names[i], &bytes);
        const char *path = scratch_path("cut");
        scratch_put(path, data, bytes);
        assert_int_equal(try_file(path), LK_OK);
        for (size_t left = bytes; left-- > 0;) {
            assert_int_equal(truncate(path, (off_t)left), 0);
            if (try_file(path) == LK_OK)
                fail_msg("%s cut at %zu of %zu was read", names[i], left, bytes);
        }
        free(data);
    }
}

/* HDF5 files say where they end: one that is cut is refused at once, one that says the new end
 * only where something is missing. */
static void refuses_every_cut_of_hdf5(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = read_weights("bfloat16.weights.h5", &bytes);
    const char *path = scratch_path("cut");
    uint64_t last = bytes;
    for (size_t left = bytes; left-- > 96;) {
        const uint64_t end = left % 4 ? bytes : left;
        memcpy(data + 40, &end, sizeof end);
        remove(path); /* file systems are slow to replace what is in a file */
        scratch_put(path, data, left);
        if (try_file(path) != LK_OK)
            continue;
        assert_int_equal(end, left);
        last = left;
    }
    free(data);
    /* behind its last array there are only some bytes that nothing uses */
    assert_true(last > bytes / 2);
}

static uint32_t draw(uint32_t below)
{
    static uint32_t seed = 1;
    seed = seed * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)seed * below >> 32);
}

static void survives_damage(void **state)
{
    (void)state;
    static const char *const names[] = {"stream.pt",  "stream4.pt",          "archive.pt",
                                        "layers.h5",  "bfloat16.weights.h5", "types.h5",
                                        "model.keras"};
    int opened = 0, refusals = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes;
        unsigned char *data = read_weights(names[i], &bytes);
        for (int round = 0; round < 500; round++) {
            const size_t at = draw((uint32_t)bytes);
            const unsigned char kept = data[at];
            data[at] = draw(2) ? (unsigned char)(kept ^ 1u << draw(8)) : 0xff;
            remove(scratch_path("damaged"));
            scratch_put(scratch_path("damaged"), data, bytes);
            *(try_file(scratch_path("damaged")) == LK_OK ? &opened : &refusals) += 1;
            data[at] = kept;
        }
        free(data);
    }
    assert_true(opened > 100);
    assert_true(refusals > 100);
}

#define MAGIC "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define VERSION "\x80\2M\xe9\3."
#define STREAM MAGIC VERSION "\x80\2}."
#define STORAGE "((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\4tQ"
#define TENSOR "ctorch._utils\n_rebuild_tensor_v2\n" STORAGE
#define REST "\x89}tR" /* needs no gradient, has no hooks */
#define KEYS ".\x80\2]X\1\0\0\0000a.\4\0\0\0\0\0\0\0\0\0\0\0\1\1\1\1\2\2\2\2\3\3\3\3"

struct bytes_case {
    const char *data;
    size_t bytes;
    int code;
    const char *said;
};
#define CASE(text, code, said)                                                                 \
    {                                                                                          \
        text, sizeof text - 1, code, said                                                      \
    }

static void refuses_pickles(void **state)
{
    (void)state;
    static const struct bytes_case cases[] = {
        CASE("\x80\2K\1.", LK_E_UNSUPPORTED, "without the number that PyTorch's"),
        CASE(MAGIC "\x80\2K\1.", LK_E_UNSUPPORTED, "expected version 1001"),
        CASE(MAGIC VERSION "\x80\2K\1.", LK_E_DATA, "a dictionary that describes the system"),
        CASE(MAGIC VERSION "\x80\2}X\x0d\0\0\0little_endian\x89s.", LK_E_UNSUPPORTED,
             "big-endian"),
        CASE(STREAM "\x80\2cos\nsystem\nX\4\0\0\0true\x85R.", LK_E_UNSUPPORTED,
             "byte 27: it names 'os system', which weights do not need"),
        CASE(STREAM "\x80\4\x8c\2os\x8c\6system\x93.", LK_E_UNSUPPORTED, "names 'os system'"),
        CASE(STREAM "\x80\2c__builtin__\neval\n.", LK_E_UNSUPPORTED, "'__builtin__ eval'"),
        CASE(STREAM "\x80\2ctorch\nload\n.", LK_E_UNSUPPORTED, "names 'torch load'"),
        CASE(STREAM "\x80\2(i__builtin__\neval\n.", LK_E_UNSUPPORTED, "0x69 (INST) is not"),
        CASE(STREAM "\x80\2}\x81.", LK_E_UNSUPPORTED, "0x81 (NEWOBJ) is not read"),
        CASE(STREAM "\x80\2\xee.", LK_E_UNSUPPORTED, "0xee (unknown) is not read"),
        CASE(STREAM "\x80\x07}.", LK_E_DATA, "protocol 7"),
        CASE(STREAM "\x80\2R.", LK_E_DATA, "opcode 0x52 needs a value"),
        CASE(STREAM "\x80\2t.", LK_E_DATA, "opcode 0x74 needs a mark"),
        CASE(STREAM "\x80\2(.", LK_E_DATA, "needs a value on the stack"),
        CASE(STREAM "\x80\2(K\1\x86.", LK_E_DATA, "a mark within a tuple"),
        CASE(STREAM "\x80\2}}.", LK_E_DATA, "1 values are left on the stack"),
        CASE(STREAM "\x80\2h\5.", LK_E_DATA, "memo 5 was never set"),
        CASE(STREAM "\x80\2}r\xff\xff\xff\xff.", LK_E_DATA, "memo 4294967295; at most"),
        CASE(STREAM "\x80\2X\xff\xff\xff\xffx", LK_E_DATA, "4294967295 bytes; 1 are left"),
        CASE(STREAM "\x80\4\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", LK_E_DATA, "bytes; 1 are"),
        CASE(STREAM "\x80\2K\1K\2s.", LK_E_DATA, "there is no dictionary to add to"),
        CASE(STREAM "\x80\2}(K\1u.", LK_E_DATA, "a dictionary's key without its value"),
        CASE(STREAM "\x80\2]K\1\x85R.", LK_E_DATA, "a call of what is no global"),
        CASE(STREAM "\x80\2K\1}b.", LK_E_DATA, "attributes for what has none"),
        CASE(STREAM "\x80\2}", LK_E_DATA, "it is cut: expected an opcode"),
        CASE(STREAM "\x80\2cos", LK_E_DATA, "a name without its end"),
        CASE(STREAM "\x80\2].\x80\2].", LK_E_UNSUPPORTED, "expected a dictionary of tensors"),
        CASE(STREAM "\x80\2}q\0X\1\0\0\0ah\0s.\x80\2].", LK_E_DATA,
             "dictionary 'a' is within itself"),
        CASE(STREAM "\x80\2}X\3\0\0\0a\0bK\1s.\x80\2].", LK_E_DATA, "a byte 0 in it"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(cases[i].data, cases[i].bytes, cases[i].code, cases[i].said);
}

static void refuses_tensors(void **state)
{
    (void)state;
    static const char good[] =
        STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\0K\4\x85K\1\x85" REST "s" KEYS;
    static const struct bytes_case cases[] = {
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\0K\5\x85K\1\x85" REST "s" KEYS, LK_E_DATA,
             "tensor 'w' reaches beyond its storage of 4 elements: 5 from element 0"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\3K\2\x85K\1\x85" REST "s" KEYS, LK_E_DATA,
             "2 from element 3"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "J\xff\xff\xff\xffK\2\x85K\1\x85" REST "s" KEYS,
             LK_E_DATA, "the offset of a tensor is -1"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR
                    "K\0\x8a\x08\0\0\0\0\0\0\0\x40\x85\x8a\x08\0\0\0\0\0\0\0\x40\x85" REST
                    "s" KEYS,
             LK_E_DATA, "reaches beyond"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\0\x8a\x08\0\0\0\0\0\0\0\x40\x85K\0\x85" REST
                    "s" KEYS,
             LK_E_DATA, "product of the shape is too large"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\0J\0\0\1\0\x85K\0\x85" REST "s" KEYS,
             LK_E_DATA, "shape and type give 262144 bytes; it has 16"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\0K\4\x85)" REST "s" KEYS, LK_E_DATA,
             "1 axes and 0 strides"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\0]K\1\x85" REST "s" KEYS, LK_E_DATA,
             "the shape of a tensor is missing or of another kind"),
        CASE(STREAM "\x80\2}(X\1\0\0\0w" TENSOR "K\0K\4\x85K\1\x85" REST "X\1\0\0\0w" TENSOR
                    "K\0K\4\x85K\1\x85" REST "u" KEYS,
             LK_E_DATA, "two arrays have the name 'w'"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\0K\4\x85K\1\x85" REST "s.\x80\2].", LK_E_DATA,
             "its storage '0' is missing"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\0K\4\x85K\1\x85" REST
                    "s.\x80\2]X\1\0\0\0001a.",
             LK_E_DATA, "key 0 of the list of storages is of no tensor"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\0K\4\x85K\1\x85" REST
                    "s.\x80\2]X\1\0\0\0000a.\5\0\0\0\0\0\0\0",
             LK_E_DATA, "a storage of 5 elements; expected 4"),
        CASE(STREAM "\x80\2}X\1\0\0\0w" TENSOR "K\0K\4\x85K\1\x85" REST
                    "s.\x80\2]X\1\0\0\0000a.\4\0\0\0\0\0\0\0abc",
             LK_E_DATA, "expected 16 bytes of a storage"),
        CASE(STREAM "\x80\2}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"
                    "ctorch\nSize\nX\1\0\0\0000X\3\0\0\0cpuK\4tQK\0K\4\x85K\1\x85" REST
                    "s" KEYS,
             LK_E_UNSUPPORTED, "torch Size is no type of storage"),
    };
    scratch_put(scratch_path("good"), good, sizeof good - 1);
    assert_int_equal(try_file(scratch_path("good")), LK_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(cases[i].data, cases[i].bytes, cases[i].code, cases[i].said);
}

/* A file that is put together piece by piece. */
struct made {
    char *bytes;
    size_t used, room;
};

static void put(struct made *made, const void *data, size_t bytes)
{
    if (made->used + bytes > made->room) {
        made->room = 2 * (made->used + bytes);
        made->bytes = realloc(made->bytes, made->room);
        assert_non_null(made->bytes);
    }
    memcpy(made->bytes + made->used, data, bytes);
    made->used += bytes;
}

#define PUT(made, text) put(made, text, sizeof text - 1)

static void refuse_made(struct made *made, int code, const char *said)
{
    refused(made->bytes, made->used, code, said);
    free(made->bytes);
    *made = (struct made){0};
}

static void refuses_bombs(void **state)
{
    (void)state;
    struct made made = {0};
    /* dictionaries, each with the one before it twice: 2^28 ways through them */
    PUT(&made, STREAM "\x80\2}K\1}q\0s");
    for (int i = 0; i < 28; i++) {
        const char step[] = {'K', (char)i, '}', '(',     'K', 1,   'h',           (char)i,
                             'K', 2,       'h', (char)i, 'u', 'q', (char)(i + 1), 's'};
        put(&made, step, sizeof step);
    }
    PUT(&made, ".\x80\2].");
    refuse_made(&made, LK_E_DATA, "dictionaries with more than 65536 entries");
    PUT(&made, STREAM "\x80\2");
    for (int i = 0; i < 100000; i++)
        PUT(&made, "}K\1");
    PUT(&made, "}");
    for (int i = 0; i < 100000; i++)
        PUT(&made, "s");
    PUT(&made, ".\x80\2].");
    refuse_made(&made, LK_E_DATA, "dictionaries within dictionaries, more than 32 deep");
    PUT(&made, STREAM "\x80\2(");
    for (int i = 0; i < 1000000; i++)
        PUT(&made, "}}");
    refuse_made(&made, LK_E_DATA, "a stack of more than 1048576 values");
    PUT(&made, STREAM "\x80\2](");
    for (int i = 0; i < 2000000; i++)
        PUT(&made, "}}ae(");
    refuse_made(&made, LK_E_DATA, "there is no list to add to");
    PUT(&made, STREAM "\x80\2]");
    for (int i = 0; i < 2500000; i++)
        PUT(&made, "}a");
    refuse_made(&made, LK_E_DATA, "more than 40 MB of values");
}

struct entry {
    const char *name;
    const void *data;
    uint32_t bytes;  /* as they lie */
    uint32_t length; /* unpacked; 0: stored as it is */
    uint32_t crc;    /* 0: the right one of a stored entry */
};

static void put_number(struct made *made, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        put(made, &(char){(char)(number >> 8 * i)}, 1);
}

static void put_head(struct made *made, const struct entry *entry)
{
    const uint32_t crc = entry->crc ? entry->crc : lk_crc32(entry->data, entry->bytes);
    put_number(made, 20, 2);
    put_number(made, 0, 2);
    put_number(made, entry->length ? 8 : 0, 2);
    put_number(made, 0x21 << 16, 4);
    put_number(made, crc, 4);
    put_number(made, entry->bytes, 4);
    put_number(made, entry->length ? entry->length : entry->bytes, 4);
    put_number(made, strlen(entry->name), 2);
    put_number(made, 0, 2);
}

/* Ends an archive whose directory is said to have so many entries more than it has. */
static void put_archive(struct made *made, const struct entry *entries, size_t count, int more)
{
    size_t offsets[8];
    for (size_t i = 0; i < count; i++) {
        offsets[i] = made->used;
        PUT(made, "PK\3\4");
        put_head(made, &entries[i]);
        put(made, entries[i].name, strlen(entries[i].name));
        put(made, entries[i].data, entries[i].bytes);
    }
    const size_t directory = made->used;
    for (size_t i = 0; i < count; i++) {
        PUT(made, "PK\1\2\24\0");
        put_head(made, &entries[i]);
        put_number(made, 0, 10);
        put_number(made, offsets[i], 4);
        put(made, entries[i].name, strlen(entries[i].name));
    }
    const size_t bytes = made->used - directory;
    PUT(made, "PK\5\6\0\0\0\0");
    put_number(made, count + (size_t)more, 2);
    put_number(made, count + (size_t)more, 2);
    put_number(made, bytes + (more ? 1 << 24 : 0), 4);
    put_number(made, directory, 4);
    put_number(made, 0, 2);
}

#define TEXT(text) text, sizeof text - 1, 0, 0
#define VALUES "\x80\2}X\1\0\0\0w" TENSOR "K\0K\4\x85K\1\x85" REST "s."

static void refuses_archives(void **state)
{
    (void)state;
    static const char numbers[16] = "0123456789abcde";
    static const struct {
        struct entry entries[4];
        int code;
        const char *said;
    } cases[] = {
        {{{"readme", TEXT("x")}}, LK_E_DATA, "without the 'data.pkl' of PyTorch's files or"},
        {{{"m/data.pkl", TEXT(VALUES)}, {"m/byteorder", TEXT("big")}},
         LK_E_UNSUPPORTED,
         "'byteorder' says"},
        {{{"m/data.pkl", TEXT(VALUES)}}, LK_E_DATA, "expected 'data/0' in the archive"},
        {{{"m/data.pkl", TEXT(VALUES)}, {"m/data/0", numbers, 15, 0, 0}},
         LK_E_DATA,
         "'data/0' of the archive has 15 bytes; expected 16"},
        {{{"m/data.pkl", TEXT(VALUES)}, {"m/data/0", numbers, 16, 0, 1}}, LK_E_DATA, "damaged"},
        {{{"m/data.pkl", TEXT(VALUES)}, {"m/data/0", numbers, 16, 99, 0}},
         LK_E_UNSUPPORTED,
         "expected it to be stored"},
        {{{"m/data.pkl", "x", 1, 1u << 31, 0}}, LK_E_DATA, "at most 8388608 are allowed"},
        {{{"m/data.pkl", "xxxx", 4, 99, 0}}, LK_E_DATA, "'m/data.pkl' of the archive"},
        {{{"../data.pkl", TEXT("\x80\2cos\nsystem\n.")}}, LK_E_UNSUPPORTED, "'os system'"},
        {{{"model.weights.h5", TEXT("x")}}, LK_E_DATA, "'model.weights.h5': HDF5, byte 0"},
        {{{"model.weights.h5", "x", 1, 9, 0}}, LK_E_UNSUPPORTED, "expected it to be stored"},
        {{{"model.weights.h5", TEXT("x")}, {"metadata.json", TEXT("{")}},
         LK_E_DATA,
         "'metadata.json' of the archive"},
        {{{"model.weights.h5", TEXT("x")}, {"config.json", TEXT("{\0}")}},
         LK_E_DATA,
         "'config.json' of the archive has a byte 0 in it"},
    };
    struct made made = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t count = 0;
        while (count < 4 && cases[i].entries[count].name)
            count++;
        put_archive(&made, cases[i].entries, count, 0);
        refuse_made(&made, cases[i].code, cases[i].said);
    }
    const struct entry two[] = {{"m/data.pkl", TEXT(VALUES)}, {"m/data/0", numbers, 16, 0, 0}};
    put_archive(&made, two, 2, 0);
    scratch_put(scratch_path("good"), made.bytes, made.used);
    assert_int_equal(try_file(scratch_path("good")), LK_OK);
    made.used = 0;
    put_archive(&made, two, 2, 60000);
    refuse_made(&made, LK_E_DATA, "a zip directory of 60002 entries in");
    PUT(&made, "PK\3\4 and nothing else");
    refuse_made(&made, LK_E_DATA, "a zip archive without its end: it is cut");
}

static void patch(const char *name, size_t at, const char *with, size_t bytes, int code,
                  const char *said)
{
    size_t length;
    unsigned char *data = read_weights(name, &length);
    assert_true(at + bytes <= length);
    memcpy(data + at, with, bytes);
    refused(data, length, code, said);
    free(data);
}

static void refuses_hdf5(void **state)
{
    (void)state;
    static const struct {
        const char *name, *said;
        int code;
    } files[] = {
        {"packed.h5", "'a/packed' is compressed, which is not read", LK_E_UNSUPPORTED},
        {"chunks.h5", "'chunks' is stored in chunks, which is not read", LK_E_UNSUPPORTED},
        {"soft.h5", "'soft' is a link to a name, which is not read", LK_E_UNSUPPORTED},
        {"external.h5", "'x' has its elements in other files", LK_E_UNSUPPORTED},
        {"link.h5", "newer format", LK_E_UNSUPPORTED},
        {"latest.h5", "HDF5 with a superblock of version", LK_E_UNSUPPORTED},
        {"ordered.h5", "'g' is of the newer format", LK_E_UNSUPPORTED},
        {"unwritten.h5", "'x' was made but never written", LK_E_UNSUPPORTED},
        {"words.h5", "'x' has elements that are no numbers", LK_E_UNSUPPORTED},
        {"loop.h5", "are they within themselves?", LK_E_DATA},
    };
    static const char far[] = "\0\0\0\0\0\0\0\x40", nowhere[] = "\xff\xff\xff\xff\xff\xff\xff";
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t bytes;
        char path[64];
        snprintf(path, sizeof path, "refused/%s", files[i].name);
        unsigned char *data = read_weights(path, &bytes);
        refused(data, bytes, files[i].code, files[i].said);
        free(data);
    }
    patch("layers.h5", 13, "\4", 1, LK_E_UNSUPPORTED, "addresses that are not of 8 bytes");
    patch("layers.h5", 40, far, 8, LK_E_DATA, "bytes is cut at");
    patch("layers.h5", 48, far, 8, LK_E_UNSUPPORTED, "spread over several files");
    patch("layers.h5", 64, far, 8, LK_E_DATA, "expected an object of 16 bytes; the file ends");
    patch("layers.h5", 64, nowhere, 8, LK_E_DATA, "expected an object of 16 bytes");
    patch("layers.h5", 64, "\0\0\0\0\0\0\0", 8, LK_E_DATA, "an object header of version 1");
    patch("layers.h5", 96 + 8, "\xff\xff\xff\x7f", 4, LK_E_DATA,
          "a header of 2147483647 bytes");
    patch("layers.h5", 16, "\xff\xff", 2, LK_E_DATA, "symbols");
    patch("layers.h5", 18, "\xff\xff", 2, LK_E_DATA, "a tree's node");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_pickles),   cmocka_unit_test(refuses_tensors),
        cmocka_unit_test(refuses_bombs),     cmocka_unit_test(refuses_archives),
        cmocka_unit_test(refuses_hdf5),      cmocka_unit_test(survives_damage),
        cmocka_unit_test(refuses_every_cut), cmocka_unit_test(refuses_every_cut_of_hdf5),
    };
    if (argc != 2)
        return 2;
    folder = argv[1];
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
