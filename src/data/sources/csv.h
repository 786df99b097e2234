/* Lines of comma-separated cells. Floor 4. Knows no column. source: RFC 4180, without line
 * breaks in "" */
#ifndef LK_DATA_SOURCES_CSV_H
#define LK_DATA_SOURCES_CSV_H

#include <lockstep/status.h>

/* Takes the next cell of a line, which is changed, out of its quotes; `rest` is behind its
 * comma, or NULL where it was the last. fails: LK_E_DATA a quote that does not end */
LK_MUST_CHECK enum lk_status lk_csv_take(char **rest, char **cell);

#endif
