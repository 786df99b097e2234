/* Samples two by two: "text:DIR,pairs=20000". Floor 4. Knows no source but by its verbs. */
#ifndef LK_DATA_PAIRED_H
#define LK_DATA_PAIRED_H

#include "data/held_out.h"
#include "data/sources/broken.h"

/* Cuts ",pairs=20000" out of a SPEC; count 0: it is not there.
 * fails: LK_E_ARGUMENT no whole number from 1 to 10^9 */
LK_MUST_CHECK enum lk_status lk_paired_parse(char *spec, int64_t *count);

/* Puts pairs of an open source's samples in its place: `count` of a training part, a sixth as
 * many of another one. Their fields are a and b, which are the tokens of two samples, or their
 * only input, the lengths of these, and label: 1 where both are of one class, as in each second
 * pair. Which samples they are is always the same. Those that are broken, and those that are
 * alone in their class, are left out. broken: of a source whose samples can be; NULL: of
 * others. fails: LK_E_ARGUMENT no single input, no class; LK_E_DATA fewer than two classes;
 * LK_E_MEMORY
 */
LK_MUST_CHECK enum lk_status lk_paired_take(struct lk_open_source *opened, int64_t count,
                                            struct lk_broken *broken);

#endif
