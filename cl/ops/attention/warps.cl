/* Work-groups of several warps, PARTS work-items each, which share a batch tile: PART is the
 * lane, WARP the warp. Needs lib/real.cl, and comes right behind it. -D: WARPS. */
#undef PART
#define PART ((int)get_local_id(0) % PARTS)
#define WARP ((int)get_local_id(0) / PARTS)
#define GROUP_KERNEL __kernel __attribute__((reqd_work_group_size(WARPS * PARTS, 1, 1)))
#define TOGETHER barrier(CLK_LOCAL_MEM_FENCE)
