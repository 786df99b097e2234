/* A csv file with columns of numbers, of texts and of labels, while it is read. Floor 4.
 * Private to this room. */
#ifndef LK_DATA_TABLES_CSV_H
#define LK_DATA_TABLES_CSV_H

#include "data/sources/source.h"
#include "data/tables/groups.h"
#include "data/tables/table.h"
#include "data/tables/text_columns.h"

/* A field of the table: its columns are csv.columns[first..first+count-1]. */
struct lk_csv_origin {
    int first, count;
    bool is_class;
    int text;  /* its number among columns of texts; -1: it is none */
    size_t at; /* where its numbers, or its class, begin in a row */
    struct lk_labels labels;
};

struct lk_csv {
    char path[LK_SOURCE_PATH], name[64];
    enum lk_data_part found;
    struct lk_table_options options;
    struct lk_groups groups;
    struct lk_text_columns texts;
    char text_name[8]; /* of the only one, where the SPEC gives no name */
    struct lk_csv_origin origins[LK_MOST_FIELDS];
    struct lk_field fields[LK_MOST_FIELDS];
    struct lk_names header;
    int *columns;                /* [of all origins] numbers of columns */
    const char **names;          /* [of all origins] of columns */
    bool *has_number, *has_word; /* [header.count] whether a cell of the column is one */
    char *text;                  /* of the file, while it is read */
    char **cells;                /* [header.count + 1] of a line */
    int64_t count, room;
    int64_t *rows;          /* [count]: the number of a row of `values`; below 0: the line is
                             * broken, -1 - number of its entry in `faults` */
    struct lk_names faults; /* why lines are broken */
    float *values;          /* [rows that are whole][width], classes as int32 */
    int64_t whole, values_room;
    size_t width;
};

/* Calls `see` with the cells of each line behind the header; below 0: a quote does not end. */
LK_MUST_CHECK enum lk_status lk_csv_see_rows(struct lk_csv *csv,
                                             enum lk_status (*see)(struct lk_csv *csv,
                                                                   int64_t line, int cells));

/* Checks a line: why it is no sample, in `why`; "": its inputs are all numbers or texts. */
void lk_csv_check_inputs(const struct lk_csv *csv, int cells, char why[512]);

/* Classes and kinds of labels by the values of this file. */
LK_MUST_CHECK enum lk_status lk_csv_find_labels(struct lk_csv *csv);

#endif
