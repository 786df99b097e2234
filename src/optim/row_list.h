/* Adds up the rows of a list (tensor/row_list.h). Floor 4. Private to this room. */
#ifndef LK_OPTIM_ROW_LIST_H
#define LK_OPTIM_ROW_LIST_H

#include "device/device.h"
#include "optim/config.h"

struct lk_row_list;

/* For a table with places; `slots`: with numbers the other way round. Kernels can run after
 * lk_device_build(). fails: LK_E_ARGUMENT, LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_row_list_create(struct lk_device *device, enum lk_dtype real,
                                                const struct lk_param_rows *table, bool slots,
                                                struct lk_row_list **list);
void lk_row_list_destroy(struct lk_row_list *list);

/* Adds up the rows of a list: the same sums, bit for bit, as those of a gradient as large as
 * the table. They hold until the next call. Enqueues. fails: LK_E_ARGUMENT too short a list */
LK_MUST_CHECK enum lk_status lk_row_list_enqueue(struct lk_row_list *list,
                                                 const struct lk_buffer *g);

/* To be called once the sums were used, before the next. Enqueues. */
LK_MUST_CHECK enum lk_status lk_row_list_finish(struct lk_row_list *list);

/* The sums, reals [rows][units], and which row of the table each is: int [rows + LK_PAD], -1:
 * none. Where places share a row, one of theirs is it and the others are none. Slots: which
 * sum each row of the table has, -1: none; NULL without them. */
const struct lk_buffer *lk_row_list_sums(const struct lk_row_list *list);
const struct lk_buffer *lk_row_list_numbers(const struct lk_row_list *list);
const struct lk_buffer *lk_row_list_slots(const struct lk_row_list *list);
int64_t lk_row_list_rows(const struct lk_row_list *list);

#endif
