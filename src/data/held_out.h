/* Holding samples of a training part out for validation: "folder:DIR,val=0.2". Floor 4. Knows
 * no source but by its verbs. */
#ifndef LK_DATA_HELD_OUT_H
#define LK_DATA_HELD_OUT_H

#include "data/sources/source.h"

/* Cuts ",val=0.2" or ",val=20%" out of a SPEC; share 0: it is not there.
 * fails: LK_E_ARGUMENT a share that is not between 0 and 1 */
LK_MUST_CHECK enum lk_status lk_held_out_parse(char *spec, double *share);

/* Says that a SPEC, without its val=, names a folder with a validation part of its own, which
 * val= leaves aside. */
void lk_held_out_tell(const char *spec);

/* An open source, and what it has told of itself. */
struct lk_open_source {
    const struct lk_source *source;
    void *state;
    struct lk_data_info *info;
};

/* The field that says of which class a sample is; -1: none does. */
int lk_open_source_class_field(const struct lk_open_source *opened);

/* The class of a sample by that field; -1: it has none, or cannot be read. */
int64_t lk_open_source_class(const struct lk_open_source *opened, int field, int64_t index);

/* Leaves of an open source that share of each class which is held out, or all but that; what is
 * left keeps its order. The same samples are held out whenever the same set is opened. The
 * source that takes the old one's place closes it; after a failure the old one is still there.
 * fails: LK_E_DATA nothing would be left, as reading labels does; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_held_out_take(struct lk_open_source *opened, double share,
                                              bool is_held_out);

#endif
