/* What importers of other programs' models share: the folder that they make, the names and
 * lines of a model text's entries. Floor 6. Knows no program and no format; which importer
 * reads a file is told by its first byte alone. */
#ifndef LK_MODEL_IMPORT_IMPORT_H
#define LK_MODEL_IMPORT_IMPORT_H

#include "base/text.h"
#include "io/safetensors.h"
#include "model/model.h"
#include <lockstep/import.h>

enum { LK_IMPORT_NAME = 64, LK_IMPORT_BASE = 48 };

/* An input as the file has it. */
struct lk_import_port {
    const char *name;
    bool is_bytes; /* uint8 */
    bool is_last;  /* an image [h, w, c] */
};

/* What an importer makes of a file, before anything is written. {0} is empty. */
struct lk_imported {
    const char *source; /* the program, as metadata: "keras" */
    struct lk_arena arena;
    struct lk_text text; /* model.yaml */
    struct lk_model *model;
    struct lk_safetensor *tensors; /* [tensor_count], in the arena */
    int tensor_count, layers;
    bool has_weights; /* false: the file has a model alone */
    /* Of ONNX, in the model's order, the texts in the arena. */
    struct lk_import_port inputs[LK_MOST_INPUTS];
    const char *outputs[LK_MOST_OUTPUTS];
};

/* The tensor of that name; NULL: there is none. */
const struct lk_safetensor *lk_imported_find(const struct lk_imported *made, const char *name);

/* Importers, each in a room of its own: all of `made` but its layers is set on success; what is
 * set else is released as well. fails: as lk_import() */
LK_MUST_CHECK enum lk_status lk_keras_make(const char *file,
                                           const struct lk_import_options *options,
                                           struct lk_imported *made);
LK_MUST_CHECK enum lk_status lk_onnx_make(const char *file,
                                          const struct lk_import_options *options,
                                          struct lk_imported *made);

/* --- entry.c ----------------------------------------------------------------------------- */

/* What may be a name of ours, made of theirs: letters, digits, '_', '-' and '/' stay, other
 * bytes become '_'. It begins with a letter or '_', so that YAML takes it for a text, and has
 * at most 37 characters. Returns its length. */
size_t lk_import_clean(const char *theirs, char base[LK_IMPORT_BASE]);

/* base and suffix, with a number where another node than `own` has that name. */
void lk_import_choose_name(const struct lk_graph *graph, const struct lk_node *own,
                           const char *base, const char *suffix, char name[LK_IMPORT_NAME]);

/* An entry of `layers:`; texts that are NULL are left out. */
struct lk_import_entry {
    const char *name, *op;
    const char *options; /* as lk_graph_add() takes them, all values without quotes */
    const char *activation, *weights;
    bool is_frozen;
    int count; /* of what it reads */
    const char *const *from;
};

/* Appends the entry's line; `before`: the name of the entry above it, NULL: there is none. */
void lk_import_write_entry(struct lk_text *text, const struct lk_import_entry *entry,
                           const char *before);

#endif
