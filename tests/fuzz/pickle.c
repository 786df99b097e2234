/* Pickles, one or more of them behind one another. */
#include "io/arrays/pickle.h"
#include "fuzz.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct lk_pickle pickle = {0};
    size_t at = 0;
    while (at < bytes) {
        const size_t before = at;
        if (lk_pickle_read(data, bytes, &at, &pickle) != LK_OK) {
            if (!lk_error_text()[0])
                abort();
            break;
        }
        if (!pickle.root || at <= before || at > bytes)
            abort();
    }
    lk_pickle_clear(&pickle);
    lk_error_clear();
    return 0;
}
