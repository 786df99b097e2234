/* Gzip and zlib streams. */
#include "io/gzip.h"
#include "fuzz.h"
#include <stdlib.h>

enum { LIMIT = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    for (int i = 0; i < 2; i++) {
        void *inflated = NULL;
        size_t found = 0;
        const enum lk_status status =
            (i ? lk_zlib_inflate : lk_gzip_inflate)(data, bytes, LIMIT, &inflated, &found);
        if (status == LK_OK ? found > LIMIT : inflated != NULL)
            abort();
        free(inflated);
        lk_error_clear();
    }
    return 0;
}
