/* Winograd weight gradient: rounds and launches. See cl/products/winograd/weights.cl. */
#include "products/winograd/winograd.h"

#include "base/fail.h"
#include <stdio.h>

enum {
    BLOCK = 8,    /* as in the kernel */
    CHANNELS = 8, /* likewise */
    PAD = 4,      /* likewise */
    CACHED_BYTES = 16 << 20,
    MOST_BYTES = 96 << 20, /* of terms */
};

struct weights {
    struct lk_product_shape shape;
    int64_t tile, squares;         /* squares: of a batch tile */
    int source;                    /* as enum lk_gradient */
    struct lk_product_block block; /* channels x vectors of filters */
    int64_t panels;
    int64_t shards, room;                 /* of a round: shards, tiles of each */
    int64_t v_first, z_first, m_first;    /* in the workspace */
    int64_t v_stride, z_stride, m_stride; /* of a shard, in vectors */
    struct lk_kernel *terms, *products, *finish;
};

/* Terms stay in the caches, or sums are so many that going over them costs more than that. */
static void choose_round(const struct lk_product_setup *setup, struct weights *w)
{
    const struct lk_product_shape *s = &w->shape;
    const struct lk_tiling *t = &setup->tiling;
    const int64_t vector = t->vector * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t positions = (w->tile + 2) * (w->tile + 2), all = t->shard_tiles * w->squares;
    const int64_t filters = w->panels * w->block.columns * t->vector;
    const int64_t term = positions * (s->channels + filters) * vector;
    const int64_t sums = positions * s->channels * filters * (vector / t->vector);
    const int64_t room =
        lk_least(2 * sums > CACHED_BYTES ? 2 * sums : CACHED_BYTES, MOST_BYTES);
    const int64_t blocks = lk_divide_up(all, BLOCK);
    const int64_t most = room / (term * BLOCK) > 1 ? room / (term * BLOCK) : 1;
    w->room = lk_divide_up(blocks, lk_divide_up(blocks, most)) * BLOCK;
    w->shards = 1;
    if (w->room >= all)
        w->shards = lk_least(t->shards, room / (term * w->room + sums));
    if (w->shards < 1)
        w->shards = 1;
    w->v_stride = positions * (s->channels * w->room + PAD);
    w->z_stride = positions * (filters * w->room + PAD);
    w->m_stride = positions * s->channels * filters / t->vector;
}

static void choose_register_block(const struct lk_product_setup *setup, struct weights *w)
{
    const int64_t vectors = lk_divide_up(w->shape.filters, setup->tiling.vector);
    const bool wide = (size_t)setup->tiling.vector * lk_dtype_bytes(setup->real) == 64;
    w->block.columns = (int)lk_least(vectors, wide ? 4 : 2);
    w->block.rows = wide && w->block.columns <= 2 ? 8 : 4;
    w->panels = lk_divide_up(vectors, w->block.columns);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    char text[96];
    const int64_t tile = job->product->tile;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct weights), state));
    struct weights *w = *state;
    const int vector = setup->tiling.vector;
    w->shape = *job->shape;
    w->tile = tile;
    w->source = (int)job->gradient;
    w->squares =
        lk_divide_up(w->shape.axis[0].out, tile) * lk_divide_up(w->shape.axis[1].out, tile);
    choose_register_block(setup, w);
    choose_round(setup, w);
    w->v_first = job->first;
    w->z_first = w->v_first + w->shards * w->v_stride * vector;
    w->m_first = w->z_first + w->shards * w->z_stride * vector;
    job->count = w->m_first - job->first + w->shards * w->m_stride * vector;
    snprintf(text, sizeof text, "-DTILE=%d -DSOURCE=%d -DROWS=%d -DCOLUMNS=%d", (int)tile,
             w->source, w->block.rows, w->block.columns);
    const char *source = "products/winograd/weights";
    LK_TRY(lk_product_kernel(setup, source, "conv2d_winograd_terms", text, &w->terms));
    LK_TRY(lk_product_kernel(setup, source, "conv2d_winograd_products", text, &w->products));
    return lk_product_kernel(setup, source, "conv2d_winograd_finish", text, &w->finish);
}

/* Tiles [q0, q1) of `shards` shards from shard0 on. */
struct round {
    int64_t shard0, shards, q0, q1;
};

static enum lk_status enqueue_round(const struct lk_product_setup *setup,
                                    const struct weights *w, const struct lk_product_run *run,
                                    struct round r)
{
    const int64_t channels = w->shape.channels;
    const struct lk_geometry geometry = lk_geometry_of(w->shape.axis);
    const struct lk_winograd_terms args = {.shard0 = r.shard0,
                                           .shard_tiles = setup->tiling.shard_tiles,
                                           .q0 = r.q0,
                                           .q1 = r.q1,
                                           .room = w->room,
                                           .channels = channels,
                                           .filters = w->shape.filters};
    const int items = lk_product_items(setup);
    const struct lk_grid terms = {
        {lk_divide_up(channels, CHANNELS) + w->panels * w->block.columns,
         lk_divide_up(r.q1 - r.q0, BLOCK), r.shards},
        items};
    const struct lk_grid products = {{w->panels, (w->tile + 2) * (w->tile + 2), r.shards},
                                     items};
    const size_t stage = lk_winograd_stage_bytes(setup, w->tile);
    LK_TRY(LK_ENQUEUE(w->terms, terms, LK_BUF(run->x), LK_BUF(run->dz), LK_INT(run->dz_first),
                      LK_BUF(w->source == LK_GRADIENT_MASKED ? run->y : NULL),
                      LK_BUF(w->source == LK_GRADIENT_POOLED ? run->at : NULL),
                      LK_BUF(run->workspace), LK_INT(w->v_first), LK_INT(w->v_stride),
                      LK_INT(w->z_first), LK_INT(w->z_stride), LK_STRUCT(&args),
                      LK_STRUCT(&geometry), LK_LOCAL(stage)));
    return LK_ENQUEUE(w->products, products, LK_BUF(run->workspace), LK_INT(w->v_first),
                      LK_INT(w->v_stride), LK_INT(w->z_first), LK_INT(w->z_stride),
                      LK_BUF(run->workspace), LK_INT(w->m_first), LK_INT(w->m_stride),
                      LK_INT(w->room), LK_INT(r.q1 - r.q0), LK_INT(r.q0 == 0),
                      LK_INT(channels));
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct weights *w = state;
    const struct lk_tiling *t = &setup->tiling;
    const int64_t all = t->shard_tiles * w->squares;
    for (int64_t first = 0; first < t->shards; first += w->shards) {
        const int64_t shards = lk_least(w->shards, t->shards - first);
        for (int64_t q = 0; q < all; q += w->room)
            LK_TRY(enqueue_round(setup, w, run,
                                 (struct round){first, shards, q, lk_least(q + w->room, all)}));
        const struct lk_grid grid = {{w->shape.channels, shards, 1}, lk_product_items(setup)};
        LK_TRY(LK_ENQUEUE(w->finish, grid, LK_BUF(run->workspace), LK_INT(w->m_first),
                          LK_INT(w->m_stride), LK_BUF(run->dw), LK_INT(run->dw_stride),
                          LK_INT(first), LK_INT(w->shape.channels), LK_INT(w->shape.filters)));
    }
    return LK_OK;
}

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return setup->tiling.vector > 1 && lk_winograd_fits(setup, job);
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const double products = (double)(job->shape->channels * job->shape->filters);
    return lk_winograd_cost(setup, job, products, 78, 7);
}

const struct lk_product_verbs lk_winograd_weights = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};
