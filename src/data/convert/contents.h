/* What a shard of records holds, as it was written and as it is read back. Floor 4. */
#ifndef LK_DATA_CONVERT_CONTENTS_H
#define LK_DATA_CONVERT_CONTENTS_H

#include "data/convert/convert.h"

struct lk_shard_contents {
    int64_t records;
    uint32_t sum;    /* over the checksums of its records */
    int64_t *counts; /* [classes] */
};

void lk_shard_contents_clear(struct lk_shard_contents *contents, int classes);
void lk_shard_contents_add(struct lk_shard_contents *contents, int label, const void *data,
                           size_t bytes);

/* Reads all of a file. fails: LK_E_DATA a record that is not as it was written; LK_E_IO */
LK_MUST_CHECK enum lk_status lk_shard_contents_read(const struct lk_conversion *c,
                                                    const char *path,
                                                    struct lk_shard_contents *contents);

#endif
