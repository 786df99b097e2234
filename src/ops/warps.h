/* Work-groups of several warps, for operations that divide the work of a batch tile. Floor 4.
 */
#ifndef LK_OPS_WARPS_H
#define LK_OPS_WARPS_H

#include "ops/op.h"

/* How many times lk_op_items() a work-group may have: on a GPU 8, or 4, 2, 1 where it has no
 * room for more; 1 on a CPU. */
int lk_op_warps(const struct lk_op_setup *setup);

#endif
