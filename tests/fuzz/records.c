/* A data set of records: the input is two Examples, behind the length of the first. They are
 * read as images, then as numbers. */
#include "fields.h"
#include "files.h"
#include "fuzz.h"
#include "io/records/tfrecord_write.h"
#include <lockstep/data.h>

enum { MOST = 8192, SIDE = 4 };

static size_t put_record(uint8_t *to, const uint8_t *data, size_t bytes)
{
    struct lk_tfrecord_frame seal;
    lk_tfrecord_frame(data, bytes, &seal);
    memcpy(to, seal.header, sizeof seal.header);
    memcpy(to + sizeof seal.header, data, bytes);
    memcpy(to + sizeof seal.header + bytes, seal.footer, sizeof seal.footer);
    return sizeof seal.header + bytes + sizeof seal.footer;
}

/* A label that was read is a class, whatever was broken. */
static void read_all(const struct lk_data *set)
{
    const struct lk_data_info *info = lk_data_info(set);
    uint8_t sample[SIDE * SIDE * 3];
    int32_t label;
    for (int64_t i = 0; i < info->count; i++) {
        if (lk_data_read(set, &i, 1, sample, &label) == LK_OK &&
            (label < 0 || label >= info->classes))
            abort();
        lk_error_clear();
    }
    for (int k = 0; info->class_names && k < info->classes; k++)
        if (!*info->class_names[k])
            abort();
}

static void read_numbers(const char *path, const char *options)
{
    char spec[300];
    struct lk_data *set;
    snprintf(spec, sizeof spec, "tfrecord:%s,max_bad=100%%,%s", path, options);
    if (lk_data_open(spec, LK_DATA_TRAIN, &set) == LK_OK) {
        fuzz_read_fields(set);
        lk_data_close(set);
    }
    lk_error_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t file[MOST + 64];
    static const struct lk_data_options wanted = {
        .height = SIDE, .width = SIDE, .channels = 3, .max_bad = "100%"};
    char spec[200];
    struct lk_data *set;
    if (bytes < 1 || bytes > MOST)
        return 0;
    const size_t rest = bytes - 1, first = data[0] < rest ? data[0] : rest;
    size_t used = put_record(file, data + 1, first);
    if (rest > first)
        used += put_record(file + used, data + 1 + first, rest - first);
    const char *path = fuzz_put("a.tfrecord", file, used);
    snprintf(spec, sizeof spec, "tfrecord:%s", path);
    if (lk_data_open_as(spec, LK_DATA_TRAIN, &wanted, &set) == LK_OK) {
        read_all(set);
        lk_data_close(set);
    }
    lk_error_clear();
    read_numbers(path, "fields=reals,tokens:ints,label=image/class/label");
    read_numbers(path, "fields=ints,label=name,offset=-1");
    read_numbers(path, "fields=reals+ints,label=ints,label_type=number");
    read_numbers(path, "image=image/encoded,size=4x4,channels=3,fields=reals,label=name");
    return 0;
}
