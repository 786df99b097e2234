/* Data sets with a name of their own, whose files can be downloaded. Floor 4. */
#ifndef LK_DATA_SOURCES_NAMED_SETS_H
#define LK_DATA_SOURCES_NAMED_SETS_H

#include "data/sources/source.h"

/* A data set with a name of its own: which source reads its folder, what its classes are called
 * and where its files come from. The tables end with an empty row. */
struct lk_named_set_file {
    const char *name, *sha256;
    int64_t bytes;
};

struct lk_named_set {
    const char *name;
    const char *url; /* https, ends in '/' */
    const struct lk_source *source;
    const char *const *class_names;
    int shape[3]; /* height, width, channels */
    const struct lk_named_set_file *files;
};

extern const struct lk_named_set lk_named_sets[];

/* Finds the folder of a known data set: $LOCKSTEP_DATA/NAME, else $LOCKSTEP_CACHE/data/NAME
 * with its files, downloading those that are missing. $LOCKSTEP_DATA_URL replaces the place it
 * downloads from ($LOCKSTEP_DATA_URL/NAME/FILE; http is then allowed to 127.0.0.1). The caller
 * frees `folder`. fails: LK_E_IO, LK_E_DATA (wrong bytes), LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_named_set_folder(const struct lk_named_set *known,
                                                 char **folder);

#endif
