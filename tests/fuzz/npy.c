/* Two .npy files, samples and labels: two bytes of length, the labels, the samples. */
#include "fields.h"
#include "files.h"
#include "fuzz.h"
#include <lockstep/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char spec[300];
    struct lk_data *set;
    if (bytes < 2)
        return 0;
    size_t labels = (size_t)data[0] | (size_t)data[1] << 8;
    labels = labels < bytes - 2 ? labels : bytes - 2;
    const char *y = fuzz_put("y.npy", data + 2, labels);
    snprintf(spec, sizeof spec, "npy:%s,%s",
             fuzz_put("x.npy", data + 2 + labels, bytes - 2 - labels), y);
    if (lk_data_open(spec, LK_DATA_TRAIN, &set) == LK_OK) {
        fuzz_read_fields(set);
        lk_data_close(set);
    }
    lk_error_clear();
    return 0;
}
