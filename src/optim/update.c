/* A step of an optimizer: what is decided about it, then its kernels' launches. */
#include "base/fail.h"
#include "optim/internal.h"
#include "tensor/tensor.h"

bool lk_optimizer_decides(const struct lk_optimizer *optimizer)
{
    return optimizer->scaling || lk_adjustment_has_norm(optimizer->adjustment);
}

enum lk_status lk_optimizer_enqueue_check(struct lk_optimizer *optimizer,
                                          const struct lk_buffer *g, int64_t first,
                                          int64_t count)
{
    if (optimizer->scaling)
        LK_TRY(lk_scaling_enqueue_check(optimizer->scaling, g, count));
    return lk_adjustment_enqueue_piece(optimizer->adjustment, g, first, count);
}

enum lk_status lk_optimizer_enqueue_check_list(struct lk_optimizer *optimizer,
                                               const struct lk_buffer *g, int64_t first,
                                               int64_t reals)
{
    struct lk_row_sums sums;
    if (optimizer->scaling)
        LK_TRY(lk_scaling_enqueue_check(optimizer->scaling, g, reals));
    if (!lk_adjustment_has_norm(optimizer->adjustment))
        return LK_OK;
    LK_TRY(lk_lazy_rows_enqueue_sums(optimizer->rows, g, first, &sums));
    return lk_adjustment_enqueue_rows(optimizer->adjustment, &sums, false);
}

enum lk_status lk_optimizer_enqueue_decision(struct lk_optimizer *optimizer, double scale)
{
    struct lk_row_sums sums;
    if (optimizer->scaling)
        LK_TRY(lk_scaling_enqueue_decision(optimizer->scaling));
    LK_TRY(lk_adjustment_enqueue_norm(optimizer->adjustment, scale, optimizer->info.scaling));
    for (int i = 0; lk_lazy_rows_sums(optimizer->rows, &i, &sums);)
        LK_TRY(lk_adjustment_enqueue_rows(optimizer->adjustment, &sums, true));
    return LK_OK;
}

enum lk_status lk_optimizer_enqueue_penalties(struct lk_optimizer *optimizer,
                                              const struct lk_buffer *w, bool counts,
                                              struct lk_buffer *y, int64_t at)
{
    if (counts)
        LK_TRY(lk_adjustment_enqueue_penalty(optimizer->adjustment, w));
    return lk_adjustment_enqueue_penalties(optimizer->adjustment, counts, y, at);
}

enum lk_status lk_optimizer_enqueue_swap(struct lk_optimizer *optimizer, struct lk_buffer *w)
{
    const bool has_any = optimizer->average && optimizer->info.count > 0;
    return has_any ? lk_average_enqueue_swap(optimizer->average, w) : LK_OK;
}

static enum lk_status check_update(const struct lk_optimizer *optimizer,
                                   const struct lk_buffer *w, const struct lk_buffer *g,
                                   const struct lk_update *update)
{
    const struct lk_optimizer_info *info = &optimizer->info;
    const int64_t count = info->count + optimizer->tracked;
    const size_t whole = (size_t)lk_elementwise_padded(count) * optimizer->real_bytes;
    const size_t part =
        update->is_list ? 0 /* optim/row_list.c looks at it */
                        : (size_t)lk_elementwise_padded(update->count) * optimizer->real_bytes;
    if (update->step < 1)
        return lk_fail(LK_E_ARGUMENT, "optimizer '%s': step %lld; the first is 1",
                       info->kind->name, (long long)update->step);
    if (update->first < 0 || update->first % LK_PAD || update->count < 1 ||
        update->count > count - update->first)
        return lk_fail(LK_E_ARGUMENT, "optimizer '%s': %lld elements from %lld on, of %lld",
                       info->kind->name, (long long)update->count, (long long)update->first,
                       (long long)count);
    if (lk_buffer_bytes(w) < whole || lk_buffer_bytes(g) < part)
        return lk_fail(LK_E_ARGUMENT,
                       "optimizer '%s': parameters have %zu bytes, gradients %zu; expected %zu "
                       "and %zu",
                       info->kind->name, lk_buffer_bytes(w), lk_buffer_bytes(g), whole, part);
    return LK_OK;
}

/* Launches the kernel for a part of an update. rows NULL: it is no table whose rows may stand
 * still. */
static enum lk_status launch(struct lk_optimizer *optimizer, struct lk_buffer *w,
                             const struct lk_row_gradient *gradient,
                             const struct lk_update *part, const struct lk_param_rows *rows)
{
    const struct lk_optimizer_info *info = &optimizer->info;
    const struct lk_elementwise *e = &optimizer->elementwise;
    double numbers[LK_MOST_NUMBERS];
    int count = 8 + info->kind->numbers(info->options, part->lr, part->step, numbers);
    struct lk_arg args[8 + LK_MOST_NUMBERS + LK_ADJUSTMENT_ARGS + LK_LAZY_ROWS_ARGS] = {
        LK_BUF(w),
        LK_BUF(gradient->g),
        LK_BUF(info->state),
        LK_INT(part->first / e->vector),
        LK_INT(lk_elementwise_vectors(e, gradient->count)),
        LK_INT(info->stride / e->vector),
        LK_REAL(part->scale),
        LK_BUF(info->scaling)};
    for (int i = 8; i < count; i++)
        args[i] = (struct lk_arg)LK_REAL(numbers[i - 8]);
    if (optimizer->adjustment) {
        lk_adjustment_args(optimizer->adjustment, args + count);
        count += LK_ADJUSTMENT_ARGS;
    }
    if (optimizer->rows) {
        lk_lazy_rows_args(optimizer->rows, rows, gradient->from / e->vector, args + count);
        count += LK_LAZY_ROWS_ARGS;
    }
    return lk_kernel_enqueue(optimizer->kernel, lk_elementwise_grid(e, gradient->count), args,
                             count);
}

/* Tables of rows and what lies between them, one after the other. */
static enum lk_status enqueue_lazy(struct lk_optimizer *optimizer, struct lk_buffer *w,
                                   const struct lk_buffer *g, const struct lk_update *update)
{
    const int64_t end = update->first + update->count;
    struct lk_update part = *update;
    while (part.first < end) {
        const struct lk_param_rows *rows;
        LK_TRY(lk_lazy_rows_next(optimizer->rows, part.first, end, &part.count, &rows));
        struct lk_row_gradient gradient = {g, part.first - update->first, part.count};
        if (rows)
            LK_TRY(lk_lazy_rows_enqueue(optimizer->rows, rows, &gradient));
        LK_TRY(launch(optimizer, w, &gradient, &part, rows));
        if (rows)
            LK_TRY(lk_lazy_rows_finish(optimizer->rows, rows));
        part.first += part.count;
    }
    return LK_OK;
}

static enum lk_status enqueue_moved(struct lk_optimizer *optimizer, struct lk_buffer *w,
                                    const struct lk_buffer *g, const struct lk_update *update)
{
    const struct lk_row_gradient whole = {g, 0, update->count};
    LK_TRY(optimizer->rows ? enqueue_lazy(optimizer, w, g, update)
                           : launch(optimizer, w, &whole, update, NULL));
    return optimizer->average ? lk_average_enqueue(optimizer->average, w, update->first,
                                                   update->count, update->step)
                              : LK_OK;
}

enum lk_status lk_optimizer_enqueue_part(struct lk_optimizer *optimizer, struct lk_buffer *w,
                                         const struct lk_buffer *g,
                                         const struct lk_update *update)
{
    const struct lk_elementwise *e = &optimizer->elementwise;
    const int64_t left = optimizer->info.count - update->first;
    struct lk_update moved = *update;
    LK_TRY(check_update(optimizer, w, g, update));
    moved.count = left < 0 ? 0 : lk_least(left, update->count);
    const int64_t tracked = update->count - moved.count;
    if (moved.count > 0)
        LK_TRY(enqueue_moved(optimizer, w, g, &moved));
    if (tracked == 0)
        return LK_OK;
    return LK_ENQUEUE(optimizer->track, lk_elementwise_grid(e, tracked), LK_BUF(w),
                      LK_INT((update->first + moved.count) / e->vector), LK_BUF(g),
                      LK_INT(moved.count / e->vector),
                      LK_INT(lk_elementwise_vectors(e, tracked)), LK_REAL(update->scale),
                      LK_BUF(optimizer->info.scaling));
}

enum lk_status lk_optimizer_enqueue(struct lk_optimizer *optimizer, struct lk_buffer *w,
                                    const struct lk_buffer *g, double scale, double lr,
                                    int64_t step)
{
    const struct lk_update all = {.count = optimizer->info.count + optimizer->tracked,
                                  .scale = scale,
                                  .lr = lr,
                                  .step = step};
    LK_TRY(lk_optimizer_enqueue_check(optimizer, g, 0, all.count));
    LK_TRY(lk_optimizer_enqueue_decision(optimizer, scale));
    return lk_optimizer_enqueue_part(optimizer, w, g, &all);
}
