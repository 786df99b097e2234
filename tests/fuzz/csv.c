/* csv files: the input is one, and names images that are not there. */
#include "files.h"
#include "fuzz.h"
#include <lockstep/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char spec[200];
    struct lk_data *set;
    snprintf(spec, sizeof spec, "csv:%s,size=4x4,channels=1", fuzz_put("a.csv", data, bytes));
    if (lk_data_open(spec, LK_DATA_TRAIN, &set) == LK_OK) {
        if (lk_data_info(set)->count < 1 || lk_data_info(set)->classes < 1)
            abort();
        lk_data_close(set);
    }
    lk_error_clear();
    return 0;
}
