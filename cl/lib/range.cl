/* For a kernel of a chain (lib/real.cl) that takes many groups at once: its arguments end in
 * RANGE_ARGS, and it computes GROUP_RANGE groups, whose ids in dimension 0 follow on
 * GROUP_ID(0). Launched by itself it is called for one.
 */
#ifdef CHAINED
#define RANGE_ARGS GROUP_ARGS
#define GROUP_RANGE group_of[3]
#else
#define RANGE_ARGS
#define GROUP_RANGE 1
#endif
