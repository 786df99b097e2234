/* Elementwise kernels over one long array. -D: ITEMS: work-items of a group, GROUP: vectors
 * that a group handles, its work-items taking neighbouring ones in turn. Needs lib/real.cl. */
#define UPDATE_KERNEL __kernel WIDE __attribute__((reqd_work_group_size(ITEMS, 1, 1)))

#define FOR_EACH(i, vectors)                                                                   \
    for (int i = (int)get_group_id(0) * GROUP + (int)get_local_id(0),                          \
             i##_end = min((int)(get_group_id(0) + 1) * GROUP, vectors);                       \
         i < i##_end; i += ITEMS)
