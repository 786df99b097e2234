/* Keeps the factors of parameters in a table on the device, and computes the norm of a
 * gradient in an order that does not depend on how the gradient is cut into pieces, and the sum
 * of penalties in the same order. */
#include "optim/adjust.h"

#include "base/fail.h"
#include "tensor/elementwise.h"
#include "tensor/tensor.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* BLOCK of cl/lib/update.cl; sums of the norm have so many operands, too. */
enum { BLOCK = LK_FACTOR_BLOCK, COLUMNS = 32, FOLD_GROUP = 16, MOST_LEVELS = 6 };
enum { FACTOR_RATE, FACTOR_DECAY, FACTOR_L1, FACTOR_L2, FACTOR_COLUMNS };

struct lk_adjustment {
    struct lk_device *device;
    size_t real_bytes;
    int vector, items;
    int64_t count, blocks;
    int64_t all; /* parameters whose sums are made: of a group more than `count` */
    struct lk_param_placement *placements; /* where its own are among them */
    int placement_count;
    struct lk_clip clip;
    struct lk_buffer *factors; /* real [FACTOR_COLUMNS][blocks]; NULL: none changes a thing */

    /* Sums of squares and of penalties: of each block, then of BLOCK of those, up to one. */
    struct lk_kernel *fold, *fold_rows, *decide; /* NULL: not wanted */
    struct lk_kernel *penalty_fold, *penalty_put;
    struct lk_buffer *sums, *penalties, *norm;
    int64_t level_first[MOST_LEVELS], level_count[MOST_LEVELS];
    int levels;
};

/* --- factors ----------------------------------------------------------------------------- */

static enum lk_status check_factors(const struct lk_optimizer_config *config)
{
    for (int i = 0; i < config->factor_count; i++) {
        const struct lk_param_factors *f = &config->factors[i];
        if (f->first < 0 || f->first % BLOCK || f->count < 1 ||
            f->first > config->count - f->count)
            return lk_fail(LK_E_ARGUMENT, "factors of %lld parameters from %lld on, of %lld",
                           (long long)f->count, (long long)f->first, (long long)config->count);
        if (!(f->rate >= 0 && f->rate < INFINITY && f->decay >= 0 && f->decay < INFINITY))
            return lk_fail(LK_E_ARGUMENT, "factors %g and %g: expected numbers of at least 0",
                           f->rate, f->decay);
        if (!(f->l1 >= 0 && f->l1 < INFINITY && f->l2 >= 0 && f->l2 < INFINITY))
            return lk_fail(LK_E_ARGUMENT, "penalties %g and %g: expected numbers of at least 0",
                           f->l1, f->l2);
    }
    return LK_OK;
}

static void fill(const struct lk_adjustment *a, const struct lk_optimizer_config *config,
                 void *table)
{
    const bool is_f64 = a->real_bytes == 8;
    for (int64_t i = 0; i < FACTOR_COLUMNS * a->blocks; i++) {
        const int neutral = i / a->blocks < FACTOR_L1; /* factors, then what is added */
        is_f64 ? (void)(((double *)table)[i] = neutral)
               : (void)(((float *)table)[i] = (float)neutral);
    }
    for (int i = 0; i < config->factor_count; i++) {
        const struct lk_param_factors *f = &config->factors[i];
        const double values[FACTOR_COLUMNS] = {f->rate, f->decay, f->l1, f->l2};
        const int64_t end = lk_divide_up(f->first + f->count, BLOCK);
        for (int64_t b = f->first / BLOCK; b < end; b++)
            for (int column = 0; column < FACTOR_COLUMNS; column++) {
                const int64_t at = column * a->blocks + b;
                if (is_f64)
                    ((double *)table)[at] = values[column];
                else
                    ((float *)table)[at] = (float)values[column];
            }
    }
}

static enum lk_status make_factors(struct lk_adjustment *a,
                                   const struct lk_optimizer_config *config)
{
    const size_t bytes = FACTOR_COLUMNS * (size_t)a->blocks * a->real_bytes;
    if (config->factor_count == 0)
        return LK_OK;
    LK_TRY(check_factors(config));
    void *table = malloc(bytes);
    if (!table)
        return lk_fail_memory("factors of parameters", bytes);
    fill(a, config, table);
    enum lk_status status = lk_buffer_create(a->device, bytes, &a->factors);
    if (status == LK_OK)
        status = lk_buffer_write(a->factors, 0, bytes, table);
    free(table);
    return status;
}

/* --- the norm ---------------------------------------------------------------------------- */

static enum lk_status take_placements(struct lk_adjustment *a,
                                      const struct lk_optimizer_config *config)
{
    const struct lk_param_placement own = {.count = config->count};
    const bool is_part = config->all > 0;
    const int count = is_part ? config->placement_count : 1;
    const size_t bytes = (size_t)count * sizeof own;
    a->placements = malloc(bytes + 1);
    if (!a->placements)
        return lk_fail_memory("places of parameters", bytes);
    if (count > 0)
        memcpy(a->placements, is_part ? config->placements : &own, bytes);
    a->placement_count = count;
    a->all = is_part ? config->all : config->count;
    return LK_OK;
}

/* Each level's sums are padded with zeros to whole blocks, which the next level adds. */
static enum lk_status make_sums(struct lk_adjustment *a)
{
    int64_t room = 0;
    for (int64_t count = a->all; a->levels == 0 || count > 1; a->levels++) {
        count = lk_divide_up(count, BLOCK);
        a->level_first[a->levels] = room;
        a->level_count[a->levels] = count;
        room += lk_divide_up(count, BLOCK) * BLOCK;
    }
    const size_t bytes = (size_t)room * a->real_bytes;
    if (a->penalty_fold) {
        LK_TRY(lk_buffer_create(a->device, bytes, &a->penalties));
        LK_TRY(lk_buffer_enqueue_fill(a->penalties, 0));
    }
    if (!a->decide)
        return LK_OK;
    LK_TRY(lk_buffer_create(a->device, bytes, &a->sums));
    LK_TRY(lk_buffer_enqueue_fill(a->sums, 0));
    LK_TRY(lk_buffer_create(a->device, a->real_bytes, &a->norm));
    return lk_buffer_enqueue_fill(a->norm, 0);
}

static bool has_penalties(const struct lk_optimizer_config *config)
{
    bool has_any = config->penalizes;
    for (int i = 0; i < config->factor_count; i++)
        has_any |= config->factors[i].l1 > 0 || config->factors[i].l2 > 0;
    return has_any;
}

static enum lk_status make_kernel(struct lk_adjustment *a, const char *name,
                                  struct lk_kernel **kernel)
{
    char options[64];
    const struct lk_kernel_spec spec = {.source = "optim/norm",
                                        .name = name,
                                        .options = options,
                                        .real_bytes = (int)a->real_bytes};
    snprintf(options, sizeof options, "-DITEMS=%d -DGROUP=%d", a->items, FOLD_GROUP);
    return lk_kernel_create(a->device, &spec, kernel);
}

static enum lk_status make_kernels(struct lk_adjustment *a,
                                   const struct lk_optimizer_config *config)
{
    const bool has_norm = a->clip.norm > 0;
    if (!has_norm && !has_penalties(config))
        return LK_OK;
    LK_TRY(make_kernel(a, "norm_fold", &a->fold));
    if (has_norm) {
        LK_TRY(make_kernel(a, "norm_fold_rows", &a->fold_rows));
        LK_TRY(make_kernel(a, "norm_decide", &a->decide));
    }
    if (has_penalties(config)) {
        LK_TRY(make_kernel(a, "penalty_fold", &a->penalty_fold));
        LK_TRY(make_kernel(a, "penalty_put", &a->penalty_put));
    }
    return make_sums(a);
}

static struct lk_grid fold_grid(const struct lk_adjustment *a, int64_t blocks)
{
    return (struct lk_grid){{lk_divide_up(blocks, FOLD_GROUP), 1, 1}, a->items};
}

/* Adds blocks of x: of a gradient, whose squares go to the norm's sums, or of the sums y one
 * level below. */
static enum lk_status fold(struct lk_adjustment *a, const struct lk_buffer *x, int64_t x_first,
                           int64_t count, struct lk_buffer *y, int64_t y_first)
{
    const int64_t blocks = lk_divide_up(count, BLOCK);
    return LK_ENQUEUE(a->fold, fold_grid(a, blocks), LK_BUF(x), LK_INT(x_first / a->vector),
                      LK_INT(lk_divide_up(count, a->vector)), LK_INT(x != y), LK_BUF(y),
                      LK_INT(y_first), LK_INT(blocks),
                      LK_LOCAL(a->items * a->vector * (int64_t)a->real_bytes));
}

/* Adds the sums of blocks up to one; returns where that lies. */
static enum lk_status fold_levels(struct lk_adjustment *a, struct lk_buffer *sums, int64_t *at)
{
    for (int level = 1; level < a->levels; level++)
        LK_TRY(fold(a, sums, a->level_first[level - 1], a->level_count[level - 1], sums,
                    a->level_first[level]));
    *at = a->level_first[a->levels - 1];
    return LK_OK;
}

bool lk_adjustment_has_norm(const struct lk_adjustment *adjustment)
{
    return adjustment && adjustment->decide;
}

enum lk_status lk_adjustment_enqueue_piece(struct lk_adjustment *adjustment,
                                           const struct lk_buffer *g, int64_t first,
                                           int64_t count)
{
    if (!lk_adjustment_has_norm(adjustment) || first >= adjustment->count)
        return LK_OK;
    if (first % BLOCK)
        return lk_fail(LK_E_ARGUMENT,
                       "the norm of a gradient from element %lld on: expected a multiple of %d",
                       (long long)first, BLOCK);
    const int64_t stop = lk_least(first + count, adjustment->count);
    for (int i = 0; i < adjustment->placement_count; i++) {
        const struct lk_param_placement *p = &adjustment->placements[i];
        const int64_t begin = p->first > first ? p->first : first;
        const int64_t end = lk_least(p->first + p->count, stop);
        if (begin < end)
            LK_TRY(fold(adjustment, g, begin - first, end - begin, adjustment->sums,
                        (p->at + begin - p->first) / BLOCK));
    }
    return LK_OK;
}

/* Where the sum of an own element's block lies among all. */
static int64_t block_of(const struct lk_adjustment *a, int64_t element)
{
    for (int i = 0; i < a->placement_count; i++) {
        const struct lk_param_placement *p = &a->placements[i];
        if (element >= p->first && element < p->first + p->count)
            return (p->at + element - p->first) / BLOCK;
    }
    return element / BLOCK;
}

enum lk_status lk_adjustment_enqueue_rows(struct lk_adjustment *adjustment,
                                          const struct lk_row_sums *sums, bool clears)
{
    const struct lk_adjustment *a = adjustment;
    if (!lk_adjustment_has_norm(a))
        return LK_OK;
    return LK_ENQUEUE(a->fold_rows, fold_grid(a, sums->all), LK_BUF(sums->x),
                      LK_BUF(sums->numbers), LK_BUF(sums->slots), LK_INT(sums->rows),
                      LK_INT(sums->units / a->vector), LK_INT(sums->all), LK_INT(clears),
                      LK_BUF(a->sums), LK_INT(block_of(a, sums->first)),
                      LK_LOCAL(a->items * a->vector * (int64_t)a->real_bytes));
}

enum lk_status lk_adjustment_enqueue_norm(struct lk_adjustment *adjustment, double scale,
                                          const struct lk_buffer *scaling)
{
    struct lk_adjustment *a = adjustment;
    const struct lk_grid one = {{1, 1, 1}, 1};
    int64_t at = 0;
    if (!lk_adjustment_has_norm(a))
        return LK_OK;
    LK_TRY(fold_levels(a, a->sums, &at));
    return LK_ENQUEUE(a->decide, one, LK_BUF(a->sums), LK_INT(at), LK_BUF(a->norm),
                      LK_REAL(scale), LK_BUF(scaling), LK_REAL(a->clip.norm));
}

/* --- penalties --------------------------------------------------------------------------- */

enum lk_status lk_adjustment_enqueue_penalty(struct lk_adjustment *adjustment,
                                             const struct lk_buffer *w)
{
    const struct lk_adjustment *a = adjustment;
    if (!a || !a->penalty_fold)
        return LK_OK;
    if (!a->factors) /* none of its own has a penalty */
        return lk_buffer_enqueue_fill(a->penalties, 0);
    for (int i = 0; i < a->placement_count; i++) {
        const struct lk_param_placement *p = &a->placements[i];
        const int64_t end = lk_divide_up(lk_least(p->first + p->count, a->count), BLOCK);
        LK_TRY(LK_ENQUEUE(a->penalty_fold, fold_grid(a, end - p->first / BLOCK), LK_BUF(w),
                          LK_INT(lk_divide_up(a->count, a->vector)), LK_BUF(a->factors),
                          LK_INT(a->blocks), LK_INT(p->first / BLOCK), LK_INT(end),
                          LK_INT((p->at - p->first) / BLOCK), LK_BUF(a->penalties),
                          LK_LOCAL(a->items * a->vector * (int64_t)a->real_bytes)));
    }
    return LK_OK;
}

enum lk_status lk_adjustment_enqueue_penalties(struct lk_adjustment *adjustment, bool counts,
                                               struct lk_buffer *y, int64_t at)
{
    struct lk_adjustment *a = adjustment;
    const struct lk_grid one = {{1, 1, 1}, 1};
    int64_t from = 0;
    if (!a || !a->penalty_fold)
        return LK_OK;
    if (counts)
        LK_TRY(fold_levels(a, a->penalties, &from));
    return LK_ENQUEUE(a->penalty_put, one, LK_BUF(a->penalties), LK_INT(from), LK_INT(counts),
                      LK_BUF(y), LK_INT(at));
}

/* --- groups ------------------------------------------------------------------------------ */

static struct lk_buffer *sums_of(const struct lk_adjustment *a, enum lk_block_sums which)
{
    return !a ? NULL : which == LK_SUMS_OF_PENALTIES ? a->penalties : a->sums;
}

size_t lk_adjustment_sum_bytes(const struct lk_adjustment *adjustment, enum lk_block_sums which)
{
    return sums_of(adjustment, which)
               ? (size_t)adjustment->level_count[0] * adjustment->real_bytes
               : 0;
}

enum lk_status lk_adjustment_read_sums(const struct lk_adjustment *adjustment,
                                       enum lk_block_sums which, void *all)
{
    const struct lk_adjustment *a = adjustment;
    for (int i = 0; i < a->placement_count; i++) {
        const struct lk_param_placement *p = &a->placements[i];
        const size_t at = (size_t)(p->at / BLOCK) * a->real_bytes;
        LK_TRY(lk_buffer_read(sums_of(a, which), at, (size_t)(p->count / BLOCK) * a->real_bytes,
                              (char *)all + at));
    }
    return LK_OK;
}

enum lk_status lk_adjustment_write_sums(struct lk_adjustment *adjustment,
                                        enum lk_block_sums which, const void *all)
{
    return lk_buffer_write(sums_of(adjustment, which), 0,
                           lk_adjustment_sum_bytes(adjustment, which), all);
}

/* --- all of it --------------------------------------------------------------------------- */

void lk_adjustment_args(const struct lk_adjustment *adjustment,
                        struct lk_arg args[LK_ADJUSTMENT_ARGS])
{
    const struct lk_adjustment *a = adjustment;
    const double most = a->clip.value > 0 ? a->clip.value : INFINITY;
    args[0] = (struct lk_arg)LK_BUF(a->factors);
    args[1] = (struct lk_arg)LK_INT(a->blocks);
    args[2] = (struct lk_arg)LK_BUF(a->norm);
    args[3] = (struct lk_arg)LK_REAL(most);
}

static int choose_items(const struct lk_device_info *info)
{
    int items = info->device_class == LK_CLASS_GPU ? COLUMNS / info->vector : 1;
    while ((size_t)items > info->group_items)
        items /= 2;
    return items;
}

static enum lk_status create(struct lk_adjustment *a, const struct lk_optimizer_config *config)
{
    LK_TRY(take_placements(a, config));
    LK_TRY(make_factors(a, config));
    return make_kernels(a, config);
}

enum lk_status lk_adjustment_create(const struct lk_optimizer_config *config,
                                    struct lk_adjustment **adjustment)
{
    const struct lk_clip clip = config->clip;
    const struct lk_device_info *info = lk_device_info(config->device);
    if (!(clip.value >= 0 && clip.value < INFINITY && clip.norm >= 0 && clip.norm < INFINITY))
        return lk_fail(LK_E_ARGUMENT,
                       "gradients clipped by value %g and norm %g: expected numbers of at "
                       "least 0",
                       clip.value, clip.norm);
    if (config->factor_count == 0 && clip.value == 0 && clip.norm == 0 && !config->penalizes)
        return LK_OK;
    struct lk_adjustment *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("adjusted updates", sizeof *made);
    *made = (struct lk_adjustment){.device = config->device,
                                   .real_bytes = config->real == LK_F64 ? 8 : 4,
                                   .vector = info->vector,
                                   .items = choose_items(info),
                                   .count = config->count,
                                   .blocks = lk_divide_up(config->count, BLOCK),
                                   .clip = clip};
    const enum lk_status status = create(made, config);
    if (status != LK_OK) {
        lk_adjustment_destroy(made);
        return status;
    }
    *adjustment = made;
    return LK_OK;
}

void lk_adjustment_destroy(struct lk_adjustment *adjustment)
{
    if (!adjustment)
        return;
    lk_kernel_destroy(adjustment->fold);
    lk_kernel_destroy(adjustment->fold_rows);
    lk_kernel_destroy(adjustment->decide);
    lk_kernel_destroy(adjustment->penalty_fold);
    lk_kernel_destroy(adjustment->penalty_put);
    lk_buffer_destroy(adjustment->factors);
    lk_buffer_destroy(adjustment->sums);
    lk_buffer_destroy(adjustment->penalties);
    lk_buffer_destroy(adjustment->norm);
    free(adjustment->placements);
    free(adjustment);
}
