/* csv files: the input is one, and names images that are not there; then it is a table of
 * numbers. */
#include "fields.h"
#include "files.h"
#include "fuzz.h"
#include <lockstep/data.h>

static void read_table(const char *path, const char *options)
{
    char spec[300];
    struct lk_data *set;
    snprintf(spec, sizeof spec, "csv:%s,max_bad=90%%,%s", path, options);
    if (lk_data_open(spec, LK_DATA_TRAIN, &set) == LK_OK) {
        fuzz_read_fields(set);
        lk_data_close(set);
    }
    lk_error_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char spec[200];
    struct lk_data *set;
    const char *path = fuzz_put("a.csv", data, bytes);
    snprintf(spec, sizeof spec, "csv:%s,size=4x4,channels=1", path);
    if (lk_data_open(spec, LK_DATA_TRAIN, &set) == LK_OK) {
        if (lk_data_info(set)->count < 1 || lk_data_info(set)->classes < 1)
            abort();
        lk_data_close(set);
    }
    lk_error_clear();
    read_table(path, "fields=*,label=c");
    read_table(path, "fields=a+b,size:b,label=c,label_type=class");
    read_table(path, "fields=a,label=b+c");
    return 0;
}
