/* Structs that kernels of operations take by value. Floor 4. Private to src/ops. C and OpenCL C
 * read it. The kernels' texts in cl/ops say what the numbers mean. */
#ifndef LK_OPS_ARGS_H
#define LK_OPS_ARGS_H

#include "device/args.h"

struct lk_pool {
    lk_int height, width, out_h, out_w; /* of x; of y */
    lk_int before_h, before_w;
    lk_int each;
};

#endif
