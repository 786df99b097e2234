/* Philox4x32-10 by the library Random123, as a function without state. */
#include "base/random.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

struct lk_random4 lk_random(uint64_t seed, enum lk_random_purpose purpose, uint32_t stream,
                            uint64_t index)
{
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    const philox4x32_ctr_t counter = {
        {(uint32_t)purpose, stream, (uint32_t)index, (uint32_t)(index >> 32)}};
    const philox4x32_ctr_t r = philox4x32(counter, key);
    return (struct lk_random4){{r.v[0], r.v[1], r.v[2], r.v[3]}};
}

double lk_random_unit(uint32_t bits)
{
    return bits * 0x1p-32;
}
