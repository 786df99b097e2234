/* Finds which rows of a table have a gradient, so that a lazy optimizer updates these alone. */
#include "optim/rows.h"

#include "base/fail.h"
#include "optim/row_list.h"
#include "tensor/elementwise.h"
#include "tensor/tensor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words that a work-group reads at least; work-items of a GPU that share a row. */
enum { GROUP_WORDS = 1 << 14, GPU_ITEMS = 32 };

struct lk_lazy_rows {
    struct lk_param_rows *tables; /* in the order of `first`, apart from each other */
    int count, items;
    bool is_lazy;
    struct lk_row_list **lists; /* [count]; NULL: the table's gradient is no list */
    bool *is_summed;            /* [count]: the list's sums are those of the next update */
    struct lk_kernel *mark;
    struct lk_buffer *touched; /* int [most rows of a table + LK_PAD]: the last of these are 0,
                                * for numbers of a vector that lie behind a table */
};

static enum lk_status check_tables(const struct lk_optimizer_config *config)
{
    int64_t end = 0;
    for (int i = 0; i < config->row_count; i++) {
        const struct lk_param_rows *r = &config->rows[i];
        if (r->first < end || r->first % LK_FACTOR_BLOCK || r->places < 0 || r->units < 1 ||
            r->count < 1 || r->count % r->units || r->first > config->count - r->count)
            return lk_fail(LK_E_ARGUMENT,
                           "rows of %lld in %lld parameters from %lld on, of %lld",
                           (long long)r->units, (long long)r->count, (long long)r->first,
                           (long long)config->count);
        end = r->first + r->count;
    }
    return LK_OK;
}

static enum lk_status create(struct lk_lazy_rows *rows,
                             const struct lk_optimizer_config *config)
{
    char options[64];
    const struct lk_device_info *info = lk_device_info(config->device);
    const struct lk_kernel_spec spec = {.source = "optim/rows",
                                        .name = "rows_mark",
                                        .options = options,
                                        .real_bytes = config->real == LK_F64 ? 8 : 4};
    const bool has_slots = !rows->is_lazy || config->clip.norm > 0;
    int64_t most = 0;
    for (int i = 0; i < rows->count; i++) {
        const struct lk_param_rows *t = &rows->tables[i];
        if (t->places)
            LK_TRY(lk_row_list_create(config->device, config->real, t, has_slots,
                                      &rows->lists[i]));
        const int64_t here = t->places ? t->places * t->shards : t->count / t->units;
        most = here > most ? here : most;
    }
    rows->items = info->device_class == LK_CLASS_GPU ? GPU_ITEMS : 1;
    while ((size_t)rows->items > info->group_items)
        rows->items /= 2;
    snprintf(options, sizeof options, "-DITEMS=%d", rows->items);
    LK_TRY(lk_kernel_create(config->device, &spec, &rows->mark));
    return lk_buffer_create(config->device, (size_t)(most + LK_PAD) * sizeof(int32_t),
                            &rows->touched);
}

enum lk_status lk_lazy_rows_create(const struct lk_optimizer_config *config, bool lazy,
                                   struct lk_lazy_rows **rows)
{
    const size_t bytes = (size_t)config->row_count * sizeof *config->rows;
    int lists_wanted = 0;
    for (int i = 0; i < config->row_count; i++)
        lists_wanted += config->rows[i].places > 0;
    if (config->row_count == 0 || (!lazy && lists_wanted == 0))
        return LK_OK;
    LK_TRY(check_tables(config));
    struct lk_lazy_rows *made = calloc(1, sizeof *made);
    struct lk_param_rows *tables = malloc(bytes);
    struct lk_row_list **lists = calloc((size_t)config->row_count, sizeof *lists);
    bool *is_summed = calloc((size_t)config->row_count, sizeof *is_summed);
    if (!made || !tables || !lists || !is_summed) {
        free(made);
        free(tables);
        free(lists);
        free(is_summed);
        return lk_fail_memory("lazy updates", bytes);
    }
    memcpy(tables, config->rows, bytes);
    *made = (struct lk_lazy_rows){.tables = tables,
                                  .lists = lists,
                                  .is_summed = is_summed,
                                  .count = config->row_count,
                                  .is_lazy = lazy};
    const enum lk_status status = create(made, config);
    if (status != LK_OK) {
        lk_lazy_rows_destroy(made);
        return status;
    }
    *rows = made;
    return LK_OK;
}

void lk_lazy_rows_destroy(struct lk_lazy_rows *rows)
{
    if (!rows)
        return;
    lk_kernel_destroy(rows->mark);
    lk_buffer_destroy(rows->touched);
    for (int i = 0; i < rows->count; i++)
        lk_row_list_destroy(rows->lists[i]);
    free(rows->lists);
    free(rows->is_summed);
    free(rows->tables);
    free(rows);
}

enum lk_status lk_lazy_rows_next(const struct lk_lazy_rows *rows, int64_t first, int64_t end,
                                 int64_t *count, const struct lk_param_rows **table)
{
    for (int i = 0; i < rows->count; i++) {
        const struct lk_param_rows *t = &rows->tables[i];
        if (t->first + t->count <= first)
            continue;
        if (t->first >= end)
            break;
        if (t->first < first || t->first + t->count > end)
            return lk_fail(LK_E_ARGUMENT, "an update of elements %lld to %lld cuts a table",
                           (long long)first, (long long)end - 1);
        /* numbers that pad a table to a whole vector are 0 and stay it */
        *count = t->first > first ? t->first - first
                                  : lk_least(lk_elementwise_padded(t->count), end - first);
        *table = t->first > first ? NULL : t;
        return LK_OK;
    }
    *count = end - first;
    *table = NULL;
    return LK_OK;
}

/* Adds up the rows of a list, which then stand for its gradient. */
static enum lk_status sum_list(struct lk_lazy_rows *rows, int index,
                               struct lk_row_gradient *gradient)
{
    struct lk_row_list *list = rows->lists[index];
    if (gradient->from != 0)
        return lk_fail(LK_E_ARGUMENT, "a list of rows from element %lld of a gradient on",
                       (long long)gradient->from);
    if (!rows->is_summed[index])
        LK_TRY(lk_row_list_enqueue(list, gradient->g));
    rows->is_summed[index] = false;
    gradient->g = lk_row_list_sums(list);
    return LK_OK;
}

bool lk_lazy_rows_sums(const struct lk_lazy_rows *rows, int *index, struct lk_row_sums *sums)
{
    while (rows && *index < rows->count && !rows->is_summed[*index])
        ++*index;
    if (!rows || *index >= rows->count)
        return false;
    const struct lk_param_rows *table = &rows->tables[*index];
    const struct lk_row_list *list = rows->lists[(*index)++];
    *sums = (struct lk_row_sums){.x = lk_row_list_sums(list),
                                 .numbers = lk_row_list_numbers(list),
                                 .slots = lk_row_list_slots(list),
                                 .first = table->first,
                                 .rows = table->count / table->units,
                                 .units = table->units,
                                 .all = lk_row_list_rows(list)};
    return true;
}

enum lk_status lk_lazy_rows_enqueue_sums(struct lk_lazy_rows *rows, const struct lk_buffer *g,
                                         int64_t first, struct lk_row_sums *sums)
{
    int i = 0;
    while (rows && i < rows->count && (rows->tables[i].first != first || !rows->lists[i]))
        i++;
    if (!rows || i == rows->count)
        return lk_fail(LK_E_ARGUMENT, "no table of rows begins at element %lld",
                       (long long)first);
    LK_TRY(lk_row_list_enqueue(rows->lists[i], g));
    rows->is_summed[i] = true;
    (void)lk_lazy_rows_sums(rows, &i, sums);
    return LK_OK;
}

enum lk_status lk_lazy_rows_enqueue(struct lk_lazy_rows *rows,
                                    const struct lk_param_rows *table,
                                    struct lk_row_gradient *gradient)
{
    struct lk_row_list *list = rows->lists[table - rows->tables];
    if (list)
        LK_TRY(sum_list(rows, (int)(table - rows->tables), gradient));
    if (!rows->is_lazy)
        return LK_OK;
    const int64_t count = list ? lk_row_list_rows(list) : table->count / table->units;
    if (list) /* only its rows are updated, not all of the table */
        gradient->count = count * table->units;
    const int64_t each = lk_divide_up(GROUP_WORDS, table->units);
    const struct lk_grid grid = {{lk_divide_up(count + LK_PAD, each), 1, 1}, rows->items};
    return LK_ENQUEUE(rows->mark, grid, LK_BUF(gradient->g), LK_INT(gradient->from),
                      LK_INT(table->units), LK_INT(count), LK_INT(LK_PAD),
                      LK_BUF(rows->touched), LK_INT(each));
}

enum lk_status lk_lazy_rows_finish(struct lk_lazy_rows *rows, const struct lk_param_rows *table)
{
    struct lk_row_list *list = rows->lists[table - rows->tables];
    return list ? lk_row_list_finish(list) : LK_OK;
}

const char *lk_lazy_rows_define(const struct lk_lazy_rows *rows)
{
    return rows->is_lazy ? " -DLAZY=1" : " -DLAZY=2";
}

void lk_lazy_rows_args(const struct lk_lazy_rows *rows, const struct lk_param_rows *table,
                       int64_t from, struct lk_arg args[LK_LAZY_ROWS_ARGS])
{
    const struct lk_row_list *list = table ? rows->lists[table - rows->tables] : NULL;
    args[0] = (struct lk_arg)LK_INT(from);
    args[1] = (struct lk_arg)LK_INT(table && (rows->is_lazy || list) ? table->units : 0);
    args[2] = (struct lk_arg)LK_BUF(rows->touched);
    args[3] = (struct lk_arg)LK_BUF(!list           ? NULL
                                    : rows->is_lazy ? lk_row_list_numbers(list)
                                                    : lk_row_list_slots(list));
}
