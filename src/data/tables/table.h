/* What sources of columns have in common: the options of a SPEC, and labels. Floor 4. Knows no
 * file. */
#ifndef LK_DATA_TABLES_TABLE_H
#define LK_DATA_TABLES_TABLE_H

#include "base/option.h"
#include "data/tables/words.h"
#include "data/text/texts.h"

#include <stdbool.h>
#include <stdint.h>

enum lk_label_type { LK_LABEL_AUTO, LK_LABEL_CLASS, LK_LABEL_NUMBER };

/* What stands behind the commas of a SPEC with fields=; empty: not said. */
struct lk_table_options {
    char fields[8192], label[1024]; /* see groups.h */
    int label_type;                 /* enum lk_label_type */
    char classes[512];              /* a file of names, one a line in the order of labels */
    char max_bad[16];
    char part[64];
    int64_t offset;   /* added to labels that are whole numbers */
    char texts[1024]; /* columns of texts, see groups.h */
    struct lk_text_options text;
};

extern const struct lk_option lk_csv_field_options[], lk_tfrecord_field_options[];

/* What the values of a label are. */
enum lk_label_kind {
    LK_LABELS_NUMBERS, /* f32 */
    LK_LABELS_COUNTED, /* classes that are whole numbers */
    LK_LABELS_NAMED,   /* classes that are words */
};

/* A label's values, as they have been seen. {.most = -1}: none yet. */
struct lk_labels {
    enum lk_label_kind kind;
    struct lk_class_words words; /* NAMED */
    bool has_given;              /* the words are those of the option `classes` */
    bool has_words, has_fractions;
    int64_t most; /* among whole numbers */
};

/* Notes a value: of a word, or a number. */
void lk_labels_see(struct lk_labels *labels, const char *word);
void lk_labels_see_number(struct lk_labels *labels, double number);

/* Decides what they are, by what was seen and what is wanted; reads the names of classes. */
LK_MUST_CHECK enum lk_status lk_labels_decide(struct lk_labels *labels,
                                              enum lk_label_type wanted, const char *classes);

/* The class of a word, or of a number. fails: LK_E_DATA it is none */
LK_MUST_CHECK enum lk_status lk_labels_find(const struct lk_labels *labels, const char *word,
                                            int32_t *label);
LK_MUST_CHECK enum lk_status lk_labels_find_number(const struct lk_labels *labels,
                                                   int64_t number, int32_t *label);

/* How many classes there are; 0: they are numbers. */
int64_t lk_labels_classes(const struct lk_labels *labels);
void lk_labels_clear(struct lk_labels *labels);

/* Notes why a line of a file is broken; *entry is -1 - its number among `faults`. After very
 * many messages the last one serves for all further lines. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_table_add_fault(struct lk_names *faults, const char *path,
                                                int64_t line, const char *why, int64_t *entry);

/* A finite number that fits float, with nothing behind it but blanks. */
bool lk_table_number(const char *text, double *number);

/* Whether a number is a whole one that a class may be. */
bool lk_table_is_class(double number);

#endif
