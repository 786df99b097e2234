/* Which sources the library was built from. Floor 0. */
#ifndef LK_BASE_BUILD_H
#define LK_BASE_BUILD_H

/* Changes with any of them; made by tools/build_hash.py. Two builds of one version that differ
 * in it may order sums, or choose among algorithms, differently. */
extern const char lk_build[];

#endif
