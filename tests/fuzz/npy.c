/* Two .npy files, images and labels: two bytes of length, the labels, the images. */
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
        const struct lk_data_info *info = lk_data_info(set);
        uint8_t *sample =
            malloc((size_t)info->height * (size_t)info->width * (size_t)info->channels);
        for (int64_t i = 0; i < info->count && i < 20; i++) {
            int32_t label = -1;
            if (!sample || lk_data_read(set, &i, 1, sample, &label) != LK_OK || label < 0 ||
                label >= info->classes)
                abort();
        }
        free(sample);
        lk_data_close(set);
    }
    lk_error_clear();
    return 0;
}
