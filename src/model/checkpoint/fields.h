/* The metadata of a checkpoint: fields of struct lk_checkpoint. Floor 6. Private to
 * src/model/checkpoint. */
#ifndef LK_MODEL_CHECKPOINT_FIELDS_H
#define LK_MODEL_CHECKPOINT_FIELDS_H

#include "model/checkpoint/checkpoint.h"

#define LK_CHECKPOINT_FORMAT "lockstep-checkpoint-2"
/* Had no checksum of the header; read all the same. */
#define LK_CHECKPOINT_FORMAT_1 "lockstep-checkpoint-1"

struct lk_checkpoint_field {
    const char *key;
    size_t offset;
    bool is_newer; /* old files lack it, and are read all the same */
};

enum { LK_CHECKPOINT_TEXTS = 19, LK_CHECKPOINT_NUMBERS = 14 };
extern const struct lk_checkpoint_field lk_checkpoint_texts[LK_CHECKPOINT_TEXTS];
extern const struct lk_checkpoint_field lk_checkpoint_numbers[LK_CHECKPOINT_NUMBERS];

/* Where a text, or a number, is kept. */
const char **lk_checkpoint_text(const struct lk_checkpoint_field *field,
                                struct lk_checkpoint *about);
int64_t *lk_checkpoint_number(const struct lk_checkpoint_field *field,
                              struct lk_checkpoint *about);

#endif
