/* The metadata of a checkpoint, fields of struct lk_checkpoint; an open file. Floor 6. Private
 * to src/model/checkpoint. */
#ifndef LK_MODEL_CHECKPOINT_FIELDS_H
#define LK_MODEL_CHECKPOINT_FIELDS_H

#include "base/arena.h"
#include "io/safetensors.h"
#include "model/checkpoint/checkpoint.h"

#define LK_CHECKPOINT_FORMAT "lockstep-checkpoint-2"
/* Had no checksum of the header; read all the same. */
#define LK_CHECKPOINT_FORMAT_1 "lockstep-checkpoint-1"

struct lk_checkpoint_file {
    char path[1024];
    struct lk_safetensors *tensors;
    struct lk_arena texts; /* those that were escaped */
    struct lk_checkpoint about;
};

struct lk_checkpoint_field {
    const char *key;
    size_t offset;
    bool is_newer; /* old files lack it, and are read all the same */
};

enum { LK_CHECKPOINT_TEXTS = 19, LK_CHECKPOINT_NUMBERS = 16 };
extern const struct lk_checkpoint_field lk_checkpoint_texts[LK_CHECKPOINT_TEXTS];
extern const struct lk_checkpoint_field lk_checkpoint_numbers[LK_CHECKPOINT_NUMBERS];

/* And format, state_sha256, the header's own sum. */
enum { LK_CHECKPOINT_ENTRIES = LK_CHECKPOINT_TEXTS + LK_CHECKPOINT_NUMBERS + 3 };

/* The metadata of a checkpoint, and the texts that it points to; whoever has it clears
 * `escaped`. */
struct lk_checkpoint_metadata {
    struct lk_safetensors_text entries[LK_CHECKPOINT_ENTRIES];
    char numbers[LK_CHECKPOINT_NUMBERS][24];
    char optimizer_options[1024], parameters[LK_SHA256_TEXT], state[LK_SHA256_TEXT];
    struct lk_arena escaped;
};

/* Sets the entries to what `from` says, and to metadata->state; texts of both are borrowed.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status
lk_checkpoint_fill_metadata(const struct lk_checkpoint *from,
                            struct lk_checkpoint_metadata *metadata);

/* Where a text, or a number, is kept. */
const char **lk_checkpoint_text(const struct lk_checkpoint_field *field,
                                struct lk_checkpoint *about);
int64_t *lk_checkpoint_number(const struct lk_checkpoint_field *field,
                              struct lk_checkpoint *about);

#endif
