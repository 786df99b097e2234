/* Samples of a data set that cannot be read: counted, named and replaced, as many as may be.
 * Floor 4. Knows no source: whoever reads samples says which of them fail. */
#ifndef LK_DATA_SOURCES_BROKEN_H
#define LK_DATA_SOURCES_BROKEN_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

struct lk_broken;

struct lk_broken_config {
    const char *name;    /* of the data set, as long as this lives */
    int64_t count;       /* samples */
    const char *max_bad; /* how many may be broken: "1%" of them, "3" */
    int64_t lost;        /* samples that are broken beside these */
    bool takes_files;    /* a sample whose file cannot be opened is broken, too */
};

/* Whether a text says how many samples may be broken. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_broken_check_most(const char *max_bad);

/* fails: LK_E_ARGUMENT max_bad; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_broken_create(const struct lk_broken_config *config,
                                              struct lk_broken **broken);
void lk_broken_destroy(struct lk_broken *broken);

/* Calls `read` for the sample; where it fails with LK_E_DATA, the sample is noted as broken,
 * and the next ones in the set are tried in its place. Any thread. fails: LK_E_DATA more are
 * broken than may be; as `read` with any other code */
LK_MUST_CHECK enum lk_status
lk_broken_read(struct lk_broken *broken, int64_t index,
               enum lk_status (*read)(void *context, int64_t index), void *context);

/* Whether a sample was found to be broken; samples found so; those lost beside them. */
bool lk_broken_has(const struct lk_broken *broken, int64_t index);
int64_t lk_broken_count(const struct lk_broken *broken);
int64_t lk_broken_lost(const struct lk_broken *broken);

/* How many of `count` samples may be broken, the whole set's or a part of it. */
int64_t lk_broken_most(const struct lk_broken *broken, int64_t count);

/* Marks a sample as broken that another reader has found so; nothing is logged. */
void lk_broken_mark(struct lk_broken *broken, int64_t index);

/* fails: LK_E_DATA more are marked than may be */
LK_MUST_CHECK enum lk_status lk_broken_check(const struct lk_broken *broken);

#endif
