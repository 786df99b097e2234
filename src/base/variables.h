/* Variables of the environment that take a word or a number. Floor 0. */
#ifndef LK_BASE_VARIABLES_H
#define LK_BASE_VARIABLES_H

#include <lockstep/status.h>

/* Whether LOCKSTEP_MATRIX, _SHARED, _SUBGROUPS, _BUILD_THREADS, _PROGRAM_CACHE and _WIDE, where
 * they are set, have values that are known: they are read deep inside, where nothing can be
 * refused any more. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_variables_check(void);

#endif
