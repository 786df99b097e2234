/* Archives of Keras; the input is a file. */
#include "arrays.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_arrays(data, bytes);
    return 0;
}
