/* The stages of a pipeline: their names, options and order, and what each says of it. Floor 4.
 * Knows no text of several stages. */
#ifndef LK_DATA_STAGES_TABLE_H
#define LK_DATA_STAGES_TABLE_H

#include "base/option.h"
#include "data/stages/pipeline.h"

/* Options of all stages; each has some of them. */
struct lk_stage_values {
    char size[32], where[512], to[16], mean[128], deviation[128], order[8];
    double number;
    int64_t padding, batch, count, threads;
    int choice;
    bool flag;
};

/* Stages stand in the order of their places; those of LK_STAGE_COLOUR in any order among
 * themselves, of other places one. LK_STAGE_SHUFFLE is anywhere before LK_STAGE_BATCH, and one
 * of LK_STAGE_CROP may stand before LK_STAGE_RESIZE too. */
enum {
    LK_STAGE_SHUFFLE = -1,
    LK_STAGE_DECODE = 2,
    LK_STAGE_RESIZE = 4,
    LK_STAGE_CROP = 7,
    LK_STAGE_COLOUR = 9,
    LK_STAGE_LABELS = 12,
    LK_STAGE_BATCH = 13
};

struct lk_stage {
    const char *name;
    int place;
    bool is_for_training;
    const struct lk_option *options; /* the first may stand without its name; NULL: take_text */
    enum lk_status (*take)(const struct lk_stage_values *, struct lk_pipeline *);
    enum lk_status (*take_text)(const char *text, struct lk_pipeline *);
};

extern const struct lk_stage lk_stages[]; /* the last has no name */
extern const char lk_stages_text[];       /* the order, for messages */
/* Appends a change of colours to the pipeline, which has fewer than LK_COLOUR_STAGES of them.
 */
void lk_pipeline_add_colour(struct lk_pipeline *pipeline, enum lk_colour_stage stage,
                            double amount);

extern const char *const lk_flip_names[], *const lk_decode_names[];

#endif
