/* TFRecord files, plain and packed; the input is a file. */
#include "io/records/tfrecord.h"
#include "files.h"
#include "fuzz.h"

static void see(void *context, const void *data, size_t bytes)
{
    (void)context;
    for (size_t i = 0; i < bytes; i++)
        (void)((const volatile uint8_t *)data)[i]; /* all of it is there */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct lk_tfrecord *file;
    if (lk_tfrecord_open(fuzz_put("a.tfrecord", data, bytes), 1 << 18, &file) == LK_OK) {
        const int64_t count = lk_tfrecord_count(file);
        if (lk_tfrecord_tail(file) < 0)
            abort();
        for (int64_t i = 0; i < count && i < 100; i++) {
            void *record;
            size_t length;
            if (lk_tfrecord_read(file, i, &record, &length) == LK_OK)
                free(record);
            lk_error_clear();
        }
        if (lk_tfrecord_each(file, see, NULL) != LK_OK)
            abort();
        lk_tfrecord_close(file);
    }
    lk_error_clear();
    return 0;
}
