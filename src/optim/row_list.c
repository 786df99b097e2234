/* Adds up the rows of a table's gradient that came as a list. */
#include "optim/row_list.h"

#include "base/fail.h"
#include "tensor/elementwise.h"
#include "tensor/row_list.h"
#include "tensor/tensor.h"
#include <stdio.h>
#include <stdlib.h>

/* Work-items of a GPU's group; numbers that a group adds up at least. */
enum { GPU_ITEMS = 64, GROUP_NUMBERS = 1 << 12 };

struct lk_row_list {
    struct lk_param_rows table;
    int64_t all, sorted; /* places of all shards; the power of two that holds them */
    size_t real_bytes;
    int items;
    bool has_slots;
    struct lk_kernel *keys, *sort, *sum, *clear;
    struct lk_buffer *key, *sums, *numbers, *slots; /* slots: int [rows + LK_PAD] */
};

/* Numbers of places and of rows are kept in halves of 64 bits, and travel as reals. */
static enum lk_status check_table(const struct lk_param_rows *table)
{
    const int64_t rows = table->count / table->units;
    if (table->places >= 1 && table->shards >= 1 && !(table->shards & (table->shards - 1)) &&
        table->places <= INT32_MAX / 2 / table->shards && rows < LK_MOST_LISTED_ROWS &&
        table->units % LK_LISTED_UNITS == 0)
        return LK_OK;
    return lk_fail(
        LK_E_ARGUMENT, "a list for %lld rows of %lld: %lld places in each of %d shards",
        (long long)rows, (long long)table->units, (long long)table->places, table->shards);
}

static enum lk_status create_kernels(struct lk_row_list *list, struct lk_device *device)
{
    char options[64];
    struct lk_kernel_spec spec = {.source = "optim/row_list",
                                  .name = "row_list_keys",
                                  .options = options,
                                  .real_bytes = (int)list->real_bytes};
    int levels = 0;
    while (1 << levels < list->table.shards)
        levels++;
    snprintf(options, sizeof options, "-DITEMS=%d -DLEVELS=%d", list->items, levels);
    LK_TRY(lk_kernel_create(device, &spec, &list->keys));
    spec.name = "row_list_sort";
    LK_TRY(lk_kernel_create(device, &spec, &list->sort));
    spec.name = "row_list_sum";
    LK_TRY(lk_kernel_create(device, &spec, &list->sum));
    spec.name = "row_list_clear";
    return list->has_slots ? lk_kernel_create(device, &spec, &list->clear) : LK_OK;
}

static enum lk_status create(struct lk_row_list *list, struct lk_device *device)
{
    const struct lk_device_info *info = lk_device_info(device);
    LK_TRY(check_table(&list->table));
    list->items = info->device_class == LK_CLASS_GPU ? GPU_ITEMS : 1;
    while ((size_t)list->items > info->group_items)
        list->items /= 2;
    list->all = list->table.places * list->table.shards;
    list->sorted = 1;
    while (list->sorted < list->all)
        list->sorted *= 2;
    LK_TRY(create_kernels(list, device));
    const int64_t reals = lk_elementwise_padded(list->all * list->table.units);
    const int64_t keys = list->items == 1 ? 2 * list->sorted : list->sorted;
    LK_TRY(lk_buffer_create(device, (size_t)keys * sizeof(uint64_t), &list->key));
    LK_TRY(lk_buffer_create(device, (size_t)(list->all + LK_PAD) * sizeof(int32_t),
                            &list->numbers));
    LK_TRY(lk_buffer_create(device, (size_t)reals * list->real_bytes, &list->sums));
    LK_TRY(lk_buffer_enqueue_fill(list->sums, 0));
    if (!list->has_slots)
        return LK_OK;
    const int64_t rows = list->table.count / list->table.units;
    LK_TRY(lk_buffer_create(device, (size_t)(rows + LK_PAD) * sizeof(int32_t), &list->slots));
    return lk_buffer_enqueue_fill(list->slots, 0xff); /* -1 */
}

enum lk_status lk_row_list_create(struct lk_device *device, enum lk_dtype real,
                                  const struct lk_param_rows *table, bool slots,
                                  struct lk_row_list **list)
{
    struct lk_row_list *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a list of rows", sizeof *made);
    *made = (struct lk_row_list){
        .table = *table, .real_bytes = lk_dtype_bytes(real), .has_slots = slots};
    const enum lk_status status = create(made, device);
    if (status != LK_OK) {
        lk_row_list_destroy(made);
        return status;
    }
    *list = made;
    return LK_OK;
}

void lk_row_list_destroy(struct lk_row_list *list)
{
    if (!list)
        return;
    lk_kernel_destroy(list->keys);
    lk_kernel_destroy(list->sort);
    lk_kernel_destroy(list->sum);
    lk_kernel_destroy(list->clear);
    lk_buffer_destroy(list->key);
    lk_buffer_destroy(list->numbers);
    lk_buffer_destroy(list->slots);
    lk_buffer_destroy(list->sums);
    free(list);
}

enum lk_status lk_row_list_enqueue(struct lk_row_list *list, const struct lk_buffer *g)
{
    const struct lk_param_rows *t = &list->table;
    const int64_t stride = lk_row_list_stride(t->places, t->units),
                  each = lk_divide_up(GROUP_NUMBERS, t->units);
    const struct lk_grid keys = {{lk_divide_up(list->sorted, list->items), 1, 1}, list->items},
                         one = {{1, 1, 1}, list->items},
                         sums = {{lk_divide_up(list->all + LK_PAD, each), 1, 1}, list->items};
    if (lk_buffer_bytes(g) < (size_t)(stride * t->shards) * list->real_bytes)
        return lk_fail(LK_E_ARGUMENT, "a list of rows has %zu bytes, expected %lld reals",
                       lk_buffer_bytes(g), (long long)(stride * t->shards));
    LK_TRY(LK_ENQUEUE(list->keys, keys, LK_BUF(g), LK_BUF(list->key), LK_INT(t->places),
                      LK_INT(t->units), LK_INT(stride), LK_INT(t->count / t->units),
                      LK_INT(list->all), LK_INT(list->sorted)));
    LK_TRY(LK_ENQUEUE(list->sort, one, LK_BUF(list->key), LK_INT(list->sorted)));
    return LK_ENQUEUE(list->sum, sums, LK_BUF(g), LK_BUF(list->key), LK_BUF(list->sums),
                      LK_BUF(list->numbers), LK_BUF(list->slots), LK_INT(t->places),
                      LK_INT(t->units), LK_INT(stride), LK_INT(list->all), LK_INT(LK_PAD),
                      LK_INT(each));
}

enum lk_status lk_row_list_finish(struct lk_row_list *list)
{
    const struct lk_grid grid = {{lk_divide_up(list->all, list->items), 1, 1}, list->items};
    if (!list->has_slots)
        return LK_OK;
    return LK_ENQUEUE(list->clear, grid, LK_BUF(list->numbers), LK_BUF(list->slots),
                      LK_INT(list->all));
}

const struct lk_buffer *lk_row_list_sums(const struct lk_row_list *list)
{
    return list->sums;
}

const struct lk_buffer *lk_row_list_numbers(const struct lk_row_list *list)
{
    return list->numbers;
}

const struct lk_buffer *lk_row_list_slots(const struct lk_row_list *list)
{
    return list->slots;
}

int64_t lk_row_list_rows(const struct lk_row_list *list)
{
    return list->all;
}
