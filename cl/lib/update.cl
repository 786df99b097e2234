/* Elementwise kernels over one long array. -D: ITEMS: work-items of a group, GROUP: vectors
 * that a group handles, its work-items taking neighbouring ones in turn. Needs lib/real.cl. */
#define UPDATE_KERNEL __kernel WIDE __attribute__((reqd_work_group_size(ITEMS, 1, 1)))

#define FOR_EACH(i, vectors)                                                                   \
    for (int i = (int)get_group_id(0) * GROUP + (int)get_local_id(0),                          \
             i##_end = min((int)(get_group_id(0) + 1) * GROUP, vectors);                       \
         i < i##_end; i += ITEMS)

/* Numbers in `scaling`, where the loss is scaled (null: it is not): the scale of the next
 * step's loss; 1 / the scale of these gradients, or 0: there is no update; an int: whether some
 * gradient of the step was not finite; steps since the scale changed; steps that made no
 * update. */
#define SCALING_SCALE 0
#define SCALING_INVERSE 1
#define SCALING_FOUND 2
#define SCALING_GOOD 3
#define SCALING_SKIPPED 4

#define IS_SKIPPED(scaling) ((scaling) && (scaling)[SCALING_INVERSE] == 0)
#define UNSCALED(scale, scaling) ((scaling) ? (scale) * (scaling)[SCALING_INVERSE] : (scale))
