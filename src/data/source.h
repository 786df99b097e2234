/* What a kind of data set is: how SPEC's "kind:text" is opened and read. Floor 3.
 * A new kind is one file that defines a const struct lk_source, and one row of the table. */
#ifndef LK_DATA_SOURCE_H
#define LK_DATA_SOURCE_H

#include <lockstep/data.h>

struct lk_source {
    const char *kind;  /* what stands before the colon */
    const char *usage; /* for messages: "idx:DIR" */

    /* Opens one part of what `text` (behind the colon) names and fills `info`; a name and class
     * names that a known data set has put there stay. `state` is the source's own.
     * fails: see lk_data_open() */
    enum lk_status (*open)(const char *text, enum lk_data_part part, struct lk_data_info *info,
                           void **state);
    void (*close)(void *state);

    /* Reads sample `index`, which lies in the set: [h, w, c]. Any thread; allocates nothing. */
    enum lk_status (*read)(const void *state, int64_t index, uint8_t *sample, int32_t *label);
};

extern const struct lk_source lk_source_idx, lk_source_synthetic;

/* A data set with a name of its own: which source reads its folder, what its classes are called
 * and where its files come from. The tables end with an empty row. */
struct lk_known_file {
    const char *name, *sha256;
    int64_t bytes;
};

struct lk_known {
    const char *name;
    const char *url; /* https, ends in '/' */
    const struct lk_source *source;
    const char *const *class_names;
    const struct lk_known_file *files;
};

extern const struct lk_known lk_known_data[];

/* Finds the folder of a known data set: $LOCKSTEP_DATA/NAME, else $LOCKSTEP_CACHE/data/NAME
 * with its files, downloading those that are missing. $LOCKSTEP_DATA_URL replaces the place it
 * downloads from ($LOCKSTEP_DATA_URL/NAME/FILE; http is then allowed to 127.0.0.1). The caller
 * frees `folder`. fails: LK_E_IO, LK_E_DATA (wrong bytes), LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_known_folder(const struct lk_known *known, char **folder);

#endif
