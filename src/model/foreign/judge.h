/* What does not fit between a file's arrays and a model's parameters: whether the weights may
 * be taken all the same, and what is said of it. Floor 6. Private to this room. */
#ifndef LK_MODEL_FOREIGN_JUDGE_H
#define LK_MODEL_FOREIGN_JUDGE_H

#include "model/foreign/pair.h"

struct lk_judgement {
    const char *path, *model;
    const struct lk_arrays *file;
    const struct lk_namings *namings;
    const struct lk_pairing *pairing;
    bool skips_mismatch; /* what does not fit stays as it was */
    bool may_lack_head;  /* trained parameters behind the last one that the file has may be
                          * missing as a whole, unless the file has an array of such a shape */
};

/* Decides, and says how the file's names were read and what is left over on either side.
 * Parameters are taken from the file where pair[p].fits. fails: LK_E_SHAPE naming what is
 * missing, too many or has another shape, with both; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_judge(const struct lk_judgement *judgement);

#endif
