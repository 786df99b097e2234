/* Labelled lines. */
#include "files.h"
#include "fuzz.h"
#include <lockstep/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    enum { LENGTH = 9 };
    char spec[200];
    struct lk_data *set;
    snprintf(spec, sizeof spec, "text:%s,length=%d", fuzz_put("a.txt", data, bytes), LENGTH);
    if (lk_data_open(spec, LK_DATA_TRAIN, &set) == LK_OK) {
        const struct lk_data_info *info = lk_data_info(set);
        if (info->count < 1 || info->height != 1 || info->width != LENGTH)
            abort();
        for (int64_t i = 0; i < info->count; i++) {
            uint8_t sample[LENGTH];
            int32_t label = -1;
            if (lk_data_read(set, &i, 1, sample, &label) != LK_OK || label < 0 ||
                label >= info->classes || sample[0] == 0)
                abort();
        }
        lk_data_close(set);
    }
    lk_error_clear();
    return 0;
}
