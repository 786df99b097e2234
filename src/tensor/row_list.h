/* Row lists: the gradient of a table of which a batch reads few rows, not as an array as large
 * as the table, which would be 0 almost everywhere, but as what each place (a time step of a
 * sample) adds to the row that it read. Floor 2. Knows no device.
 *
 * Of each shard: reals [places][units], then [places]: the number of the row plus 1, or 0 where
 * a place reads none. A list of a batch has all of its shards one after the other. A device
 * leaves those of others 0, so lists are added over devices like any gradient, and no number
 * changes by that. The rows are added up at last (optim/row_list.h). */
#ifndef LK_TENSOR_ROW_LIST_H
#define LK_TENSOR_ROW_LIST_H

#include <stdint.h>

/* Row numbers are whole floats, and a row is whole vectors of any device. */
enum { LK_MOST_LISTED_ROWS = 1 << 24, LK_LISTED_UNITS = 16 };

/* Reals from one shard to the next. */
int64_t lk_row_list_stride(int64_t places, int64_t units);

#endif
