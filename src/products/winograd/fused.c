/* Winograd convolution of the CPU class in one kernel: forward and data gradient. See
 * cl/products/winograd/fused.cl. */
#include "products/winograd/winograd.h"

#include "base/fail.h"
#include "products/kernel/finish.h"
#include <stdio.h>

/* Of the kernel: Winograd tiles that are transformed together, the register block. */
struct block {
    int each, rows, columns;
};

struct winograd {
    struct lk_winograd_geometry g;
    struct block block;
    bool stream;            /* outputs are written past the caches */
    bool finishes;          /* more than a relu or a pool comes behind the sums */
    int64_t squares, chunk; /* Winograd tiles: of a plane; of the kernel's chunks */
    int64_t groups;         /* that share out all chunks and blocks of output channels */
    int64_t weights_first, scratch_first; /* in the workspace; weights that are kept, packed */
    bool keeps;                           /* them from run to run */
    struct lk_kernel *pack, *convolve;
};

enum { CACHED_BYTES = 12 << 20 /* larger outputs do not stay in the caches */ };

static void transpose(struct lk_winograd_geometry *g, const struct lk_product_shape *s)
{
    g->transposed = !g->forward && lk_winograd_is_transposed(s, g->tile);
    if (!g->transposed)
        return;
    g->row_stride = -g->row_stride;
    g->column_stride = -g->column_stride;
    g->w_first = 0;
    for (int i = 0; i < 2; i++)
        g->pad[i] = s->axis[i].pad;
}

/* Four tiles together, unless there are so few that fewer of others' places stay empty: of
 * vectors of 64 bytes 3 x 8, 2 x 8 or 1 x 16 sums fill as many registers. Rows are no more than
 * a vector of packed weights holds. Changes no bit. */
static struct block choose_block(const struct lk_product_setup *setup, int64_t tiles)
{
    static const double CLEARLY_FEWER = 0.9;
    const size_t bytes = (size_t)setup->tiling.vector * lk_dtype_bytes(setup->real);
    const bool is_wide = bytes == 64;
    struct block block = {4, 4, is_wide ? 4 : 2};
    int64_t places = lk_divide_up(tiles, block.each) * block.each;
    for (int each = 3; each > 0; each--) {
        const int64_t needed = lk_divide_up(tiles, each) * each;
        if ((double)needed > CLEARLY_FEWER * (double)places || (each == 3 && !is_wide))
            continue;
        const int rows = is_wide ? (each > 1 ? 8 : 16) : (each > 1 ? 4 : 8);
        block = (struct block){each, (int)lk_least(rows, setup->tiling.vector), each};
        places = needed;
    }
    return block;
}

/* How many parts all work can be cut into. */
static int64_t count_parts(const struct winograd *w, int64_t tiles)
{
    return lk_divide_up(tiles * w->squares, w->chunk) * lk_divide_up(w->g.outs, w->block.rows);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct winograd), state));
    struct winograd *w = *state;
    const int64_t tile = job->product->tile;
    char text[128 + LK_FINISH_BYTES], end[LK_FINISH_BYTES] = "";
    const int64_t positions = (tile + 2) * (tile + 2);
    const struct lk_tiling *t = &setup->tiling;
    lk_winograd_describe(job, tile, &w->g);
    transpose(&w->g, job->shape);
    w->squares = lk_winograd_squares(w->g.transposed ? w->g.in : w->g.out, tile);
    w->block = choose_block(setup, t->tiles * w->squares);
    const struct block *b = &w->block;
    for (w->chunk = b->each; w->g.transposed && w->chunk % w->squares != 0;)
        w->chunk += b->each;
    w->groups =
        lk_least(lk_device_info(setup->device)->compute_units, count_parts(w, t->tiles));
    const int64_t outs = lk_divide_up(w->g.outs, b->rows) * b->rows;
    const int64_t weights = (positions * outs * w->g.ins + 15) / 16 * 16;
    w->keeps = job->weights_stay;
    w->weights_first = w->keeps ? job->packed_first : job->first;
    w->scratch_first = job->first + (w->keeps ? 0 : weights);
    job->packed = w->keeps ? weights : 0;
    const int64_t overlaps = w->g.transposed ? w->g.outs * w->g.out[0] * w->g.out[1] : 0;
    job->count =
        w->scratch_first - job->first +
        w->groups * (positions * (b->each * (w->g.ins + outs) + 8) + overlaps) * t->vector;
    const double y = (double)(t->tiles * t->lanes) *
                     (double)(w->g.outs * w->g.out[0] * w->g.out[1]) *
                     (double)lk_dtype_bytes(lk_product_stored(setup));
    w->stream = y > CACHED_BYTES;
    snprintf(text, sizeof text, "-DTILE=%d -DROWS=%d", (int)tile, b->rows);
    LK_TRY(lk_product_kernel(setup, "products/winograd/pack", "conv2d_winograd_pack", text,
                             &w->pack));
    w->finishes = w->g.forward && lk_has_finish(job->shape);
    if (w->finishes)
        lk_finish_print(job->shape, false, end);
    snprintf(text, sizeof text,
             "-DTILE=%d -DEACH=%d -DROWS=%d -DCOLUMNS=%d -DPOOL=%d -DSOURCE=%d -DTRANSPOSED=%d "
             "%s%s",
             (int)tile, b->each, b->rows, b->columns, w->g.pool, w->g.source, w->g.transposed,
             end, w->g.is_gated ? "-DGATED=1" : "");
    return lk_product_kernel(setup, "products/winograd/fused", "conv2d_winograd", text,
                             &w->convolve);
}

static enum lk_status enqueue_pack(const struct lk_product_setup *setup,
                                   const struct winograd *w, const struct lk_product_run *run)
{
    const struct lk_grid grid = {{lk_divide_up(w->g.outs, w->block.rows), 1, 1},
                                 lk_product_items(setup)};
    const struct lk_winograd_from from = lk_winograd_from(&w->g);
    if (w->keeps && !run->weights_are_new)
        return LK_OK;
    return LK_ENQUEUE(w->pack, grid, LK_BUF(run->w), LK_INT(w->g.w_first),
                      LK_BUF(w->keeps ? run->packed : run->workspace), LK_INT(w->weights_first),
                      LK_STRUCT(&from));
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct winograd *w = state;
    const int64_t parts = count_parts(w, setup->tiling.tiles);
    const struct lk_grid grid = {{lk_least(w->groups, parts), 1, 1}, lk_product_items(setup)};
    const struct lk_geometry geometry = lk_winograd_numbers(&w->g);
    const struct lk_winograd_whole args = {.tiles = setup->tiling.tiles,
                                           .ins = w->g.ins,
                                           .outs = w->g.outs,
                                           .relu = w->g.relu && !w->finishes,
                                           .chunk = w->chunk,
                                           .stream = w->stream};
    LK_TRY(enqueue_pack(setup, w, run));
    return LK_ENQUEUE(
        w->convolve, grid, LK_BUF(w->g.forward ? run->x : run->dz),
        LK_INT(w->g.forward ? 0 : run->dz_first),
        LK_BUF(w->g.source == LK_GRADIENT_MASKED ? run->y : NULL),
        LK_BUF(w->g.source == LK_GRADIENT_POOLED ? run->at : NULL),
        LK_BUF(w->keeps ? run->packed : run->workspace), LK_INT(w->weights_first),
        LK_BUF(w->g.forward ? run->bias : NULL), LK_BUF(w->g.forward ? run->y : run->dx),
        LK_BUF(w->g.forward ? run->at : NULL), LK_BUF(w->g.is_gated ? run->x : run->more),
        LK_BUF(run->norms), LK_BUF(run->workspace), LK_INT(w->scratch_first), LK_STRUCT(&args),
        LK_STRUCT(&geometry));
}

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return setup->tiling.vector > 1 && lk_winograd_fits(setup, job);
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const double products = (double)(job->shape->channels * job->shape->filters);
    return lk_winograd_cost(setup, job, products, 16, 3.5);
}

const struct lk_product_verbs lk_winograd_fused = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};
