/* The option `activation` of operations into which a relu can be fused. Floor 4. Private to
 * src/ops. */
#ifndef LK_OPS_ACTIVATION_H
#define LK_OPS_ACTIVATION_H

#include "base/option.h"
#include <stdbool.h>
#include <stddef.h>

enum { LK_NO_ACTIVATION, LK_RELU };

extern const char *const lk_activations[];

/* The row of a table of options over a struct, in which `member` is an int for it. */
#define LK_ACTIVATION_OPTION(type, member)                                                     \
    {                                                                                          \
        .name = "activation", .kind = LK_OPTION_CHOICE, .offset = offsetof(type, member),      \
        .standard = "none", .choices = lk_activations,                                         \
        .help = "function applied to the outputs"                                              \
    }

/* Fuses the operation `next` if it is a relu and none is fused yet. Returns whether it did. */
bool lk_activation_absorb(int *activation, const char *next);

#endif
