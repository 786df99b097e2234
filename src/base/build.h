/* Which sources the library was built from. Floor 0. */
#ifndef LK_BASE_BUILD_H
#define LK_BASE_BUILD_H

/* A hash over all source files, made by tools/build_hash.py. Two builds of the same version
 * with different hashes may add in another order or choose other algorithms, so bits may
 * differ. */
extern const char lk_build[];

#endif
