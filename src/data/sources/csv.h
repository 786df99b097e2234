/* Rows of comma-separated cells. Floor 4. Knows no column. source: RFC 4180 */
#ifndef LK_DATA_SOURCES_CSV_H
#define LK_DATA_SOURCES_CSV_H

#include <lockstep/status.h>

/* Takes the next cell of a line out of its quotes, in place; `rest` then points behind its
 * comma, or is NULL after the last cell. fails: LK_E_DATA a quote that does not end */
LK_MUST_CHECK enum lk_status lk_csv_take(char **rest, char **cell);

/* The end of a row of cells: its line break, or the end of the text. A line break in "" belongs
 * to the cell. Where a quote does not end as it should, the row is the rest of its line. */
const char *lk_csv_row_end(const char *row);

#endif
