/* Lazy updates: of the rows of a table those alone that a step has touched. Floor 4. Private to
 * this room; cl/lib/update.cl has what kernels do with it.
 *
 * A row is touched where its gradient, summed over the whole batch, is not 0 throughout. This
 * is read off the sum, which is the same on every device, so no bit depends on who computes. */
#ifndef LK_OPTIM_ROWS_H
#define LK_OPTIM_ROWS_H

#include "optim/optimizer.h"

struct lk_lazy_rows;

enum { LK_LAZY_ROWS_ARGS = 4 }; /* arguments of an update's kernel, its last */

/* Takes the configuration's tables; *rows stays NULL where it has none. Without `lazy` all rows
 * are updated; these are tables then whose gradients are lists. Kernels can run after
 * lk_device_build(). fails: LK_E_ARGUMENT for tables that are none, LK_E_MEMORY,
 * LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_lazy_rows_create(const struct lk_optimizer_config *config,
                                                 bool lazy, struct lk_lazy_rows **rows);
void lk_lazy_rows_destroy(struct lk_lazy_rows *rows);

/* How many elements from `first` on, but before `end`, one launch updates: *table says of which
 * table, NULL: of none. fails: LK_E_ARGUMENT where a table is in the range in part */
LK_MUST_CHECK enum lk_status lk_lazy_rows_next(const struct lk_lazy_rows *rows, int64_t first,
                                               int64_t end, int64_t *count,
                                               const struct lk_param_rows **table);

/* The gradient of a table, of `count` elements from element `from` of g on. */
struct lk_row_gradient {
    const struct lk_buffer *g;
    int64_t from, count;
};

/* The sums of a list: reals [all][units]; which row of the table each is and which sum each of
 * its rows has (optim/row_list.h). The table begins at element `first` of the parameters. */
struct lk_row_sums {
    const struct lk_buffer *x, *numbers, *slots;
    int64_t first, rows, units, all;
};

/* Adds up the list of the table that begins at element `first` before its update, which then
 * does not do it. Enqueues. fails: LK_E_ARGUMENT where no such table has a list */
LK_MUST_CHECK enum lk_status lk_lazy_rows_enqueue_sums(struct lk_lazy_rows *rows,
                                                       const struct lk_buffer *g, int64_t first,
                                                       struct lk_row_sums *sums);

/* Those of table number `index` that were added up and not yet used for an update; false: there
 * are none. *index becomes that of the next. */
bool lk_lazy_rows_sums(const struct lk_lazy_rows *rows, int *index, struct lk_row_sums *sums);

/* Marks the touched rows of a table by its gradient, which begins at element `from` of g; holds
 * until the next call. Of a list makes sums of rows first, where they are not there, and
 * *gradient these. Enqueues. */
LK_MUST_CHECK enum lk_status lk_lazy_rows_enqueue(struct lk_lazy_rows *rows,
                                                  const struct lk_param_rows *table,
                                                  struct lk_row_gradient *gradient);

/* To be called once a table was updated. Enqueues. */
LK_MUST_CHECK enum lk_status lk_lazy_rows_finish(struct lk_lazy_rows *rows,
                                                 const struct lk_param_rows *table);

/* What kernels are compiled with: " -DLAZY=1". */
const char *lk_lazy_rows_define(const struct lk_lazy_rows *rows);

/* The further arguments of an update's kernel; from: in vectors. */
void lk_lazy_rows_args(const struct lk_lazy_rows *rows, const struct lk_param_rows *table,
                       int64_t from, struct lk_arg args[LK_LAZY_ROWS_ARGS]);

#endif
