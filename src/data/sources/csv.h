/* Lines of comma-separated cells. Floor 4. Knows no column. source: RFC 4180, without line
 * breaks in "" */
#ifndef LK_DATA_SOURCES_CSV_H
#define LK_DATA_SOURCES_CSV_H

#include <lockstep/status.h>

/* Takes the next cell of a line out of its quotes, in place; `rest` then points behind its
 * comma, or is NULL after the last cell. fails: LK_E_DATA a quote that does not end */
LK_MUST_CHECK enum lk_status lk_csv_take(char **rest, char **cell);

#endif
