/* Recognizes a relu that can be fused into the operation before it. */
#include "ops/activation.h"

#include <string.h>

const char *const lk_activations[] = {"none", "relu", NULL};

bool lk_activation_absorb(int *activation, const char *next)
{
    if (*activation != LK_NO_ACTIVATION || strcmp(next, "relu") != 0)
        return false;
    *activation = LK_RELU;
    return true;
}
