/* Winograd's algorithm over plane tiles, forward and for data gradients, a strip of rows of
 * Winograd tiles at a time. See cl/products/planes/winograd.cl. */
#include "products/planes/planes.h"

#include "base/fail.h"
#include <stdio.h>

enum {
    MOST_VECTORS = 3,     /* and its vectors */
    GROUPS = 16,          /* work-groups that there are at least, if there can be */
    STRIP_REALS = 1 << 21 /* of transformed inputs and outputs that stay in the caches */
};

/* Positions that have as many images each: see cl/products/planes/positions.cl. */
struct section {
    int64_t first, count, images; /* positions before it, of it; of each */
    int64_t packed;               /* where its weights lie in what is packed */
};

struct winograd {
    struct lk_product_shape shape;
    int64_t tile, stride;
    struct section sections[3];
    int section_count;
    struct lk_planes in, out; /* in: as rows of Winograd tiles read it; out: in_* are y's */
    struct lk_plane_images images;
    struct lk_plane_winograd g;
    bool turned; /* of a data gradient: packed in the workspace, from there on */
    int64_t first;
    int64_t down, positions;
    int64_t strip;                       /* rows of Winograd tiles */
    int64_t block, y_first;              /* y_first: of y before the pool, in the workspace */
    int64_t channels_each, filters_each; /* of a work-group */
    struct lk_kernel *pack, *inputs, *products, *outputs, *pool;
};

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    const int64_t stride = s->axis[0].stride;
    for (int i = 0; i < 2; i++)
        if (s->axis[i].taps != 3 || s->axis[i].stride != stride || s->axis[i].gap != 1)
            return false;
    return setup->tiling.planes && !s->is_matrix && s->groups == 1 &&
           (stride == 1 || (stride == 2 && job->pass == LK_PASS_FORWARD));
}

static int64_t side_of(int64_t tile, int64_t stride)
{
    return stride == 1 ? tile + 2 : tile + 1;
}

/* Products of a channel and a filter: positions times images. */
static int64_t products_of(int64_t tile, int64_t stride)
{
    const int64_t along = stride == 1 ? tile + 2 : 2 * tile + 1;
    return along * along;
}

/* Weights that few vectors share cost as much as two of these: the time to fetch them; a lone
 * vector costs a quarter. Products at 0.8 of the peak; transforms at 6 vectors of multiply-adds
 * a position. */
static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape of = lk_planes_turned(job), *s = &of;
    const int64_t tile = job->product->tile, stride = s->axis[0].stride;
    const int64_t lanes = setup->tiling.lanes, side = side_of(tile, stride);
    const int64_t down = lk_divide_up(s->axis[0].all_out, tile);
    const int64_t across = lk_divide_up(s->axis[1].all_out, tile);
    const bool has_lone = lk_plane_lone(setup, lk_plane_block(setup), down * across) > 0;
    const double vectors = (double)lk_divide_up(down * across, lanes) - (has_lone ? 0.75 : 0.0);
    const double products =
        (double)(products_of(tile, stride) * s->channels * s->filters) / 0.8;
    const double transforms = 6 * (double)(side * side * down * lk_divide_up(across, lanes) *
                                           (stride * stride * s->channels + s->filters));
    return (double)lanes * (products * (vectors > 2 ? vectors : 2) + transforms);
}

/* Strips of whole vectors of y. */
static void cut(const struct lk_product_setup *setup, struct winograd *w)
{
    const int64_t tile = w->tile, lanes = setup->tiling.lanes;
    const int64_t whole = lk_divide_up(lanes, tile);
    const int64_t row = w->g.across * (products_of(tile, w->stride) * w->shape.channels +
                                       w->positions * w->shape.filters);
    const int64_t rows = STRIP_REALS / row / whole * whole;
    w->strip = lk_least(w->down, rows > 0 ? rows : whole);
    w->g.width = lk_divide_up((w->g.across + lanes) * tile + lanes, lanes) * lanes;
    w->g.v_plane = (lk_divide_up(w->strip * w->g.across, lanes) + 1) * lanes;
    w->in.rows = w->strip * tile + side_of(tile, w->stride) - tile;
    w->in.copy =
        lk_divide_up(w->in.phases * w->in.rows * w->in.out_w + 2 * lanes, lanes) * lanes;
    w->channels_each = lk_divide_up(w->shape.channels, lk_least(w->shape.channels, GROUPS));
    w->filters_each = lk_divide_up(w->shape.filters, lk_least(w->shape.filters, GROUPS));
}

/* Reals of scratch of a work-group. */
static int64_t scratch_of(const struct winograd *w, int64_t lanes)
{
    const int64_t in = w->stride * w->in.copy + w->g.width + w->tile * lanes;
    const int64_t rows = w->strip * w->tile;
    const int64_t out = (rows + 1) * w->g.width + rows * w->out.in_w + 2 * lanes;
    return lk_divide_up(in > out ? in : out, lanes) * lanes;
}

static void describe_sections(struct winograd *w)
{
    const int64_t t = w->tile;
    w->positions = side_of(t, w->stride) * side_of(t, w->stride);
    const struct section one = {.count = w->positions, .images = 1};
    const struct section of[3] = {{.count = t * t, .images = 4},
                                  {.first = t * t, .count = 2 * t, .images = 2},
                                  {.first = t * t + 2 * t, .count = 1, .images = 1}};
    const int64_t filters = lk_divide_up(w->shape.filters, w->block) * w->block;
    w->section_count = w->stride == 1 ? 1 : 3;
    w->g.shift = 0;
    for (int i = 0; i < w->section_count; i++) {
        w->sections[i] = w->stride == 1 ? one : of[i];
        w->sections[i].packed = w->g.shift;
        w->g.shift +=
            filters * w->sections[i].count * (w->sections[i].images * w->shape.channels + 1);
    }
}

static void describe(const struct lk_product_setup *setup, struct winograd *w)
{
    const struct lk_product_shape *s = &w->shape;
    w->stride = s->axis[0].stride;
    w->block = lk_plane_block(setup);
    w->in = lk_planes_of(&setup->tiling, s->axis);
    w->out = w->in;
    w->out.in_h = w->in.out_h;
    w->out.in_w = w->in.out_w;
    w->out.in_vectors = w->in.out_vectors;
    describe_sections(w);
    w->down = lk_divide_up(w->out.in_h, w->tile);
    w->g.across = lk_divide_up(w->out.in_w, w->tile);
    w->in.out_w = w->g.across * w->tile + side_of(w->tile, w->stride) - w->tile;
    w->in.phases = w->stride;
    cut(setup, w);
    w->g.scratch_each = scratch_of(w, setup->tiling.lanes);
}

/* An odd number of vectors, `count` reals at least. */
static int64_t apart(int64_t count, int64_t lanes)
{
    return (lk_divide_up(count, lanes) | 1) * lanes;
}

/* Places of what is in the workspace from `first` on; returns where it ends. */
static int64_t place(const struct lk_product_setup *setup, int64_t first, struct winograd *w)
{
    const struct lk_product_shape *s = &w->shape;
    const int64_t samples = setup->tiling.tiles, lanes = setup->tiling.lanes;
    const int64_t m_plane = w->g.v_plane - lanes;
    w->g.v_position = apart(w->stride * w->stride * s->channels * w->g.v_plane, lanes);
    w->g.m_position = apart(s->filters * m_plane, lanes);
    w->g.v_first = first;
    w->g.m_first = first + samples * w->positions * w->g.v_position;
    w->g.scratch = w->g.m_first + samples * w->positions * w->g.m_position + lanes;
    w->y_first = w->g.scratch + samples * GROUPS * w->g.scratch_each;
    return w->y_first + (s->pool ? samples * s->filters * w->out.in_vectors * lanes : 0);
}

/* 1 or 4 where the last vector of a strip of so many rows has no more Winograd tiles, else 0.
 */
static int lone(const struct lk_product_setup *setup, const struct winograd *w, int64_t rows)
{
    return lk_plane_lone(setup, w->block, rows * w->g.across);
}

static enum lk_status prepare_kernels(const struct lk_product_setup *setup, struct winograd *w)
{
    static const char source[] = "products/planes/winograd";
    static const char packs[] = "products/planes/winograd_pack";
    static const char direct[] = "products/planes/convolve";
    static const char one[] = "-DTAPS_Y=1 -DTAPS_X=1 -DGAP_Y=1 -DGAP_X=1";
    const struct lk_product_shape *s = &w->shape;
    const int few = lone(setup, w, w->down % w->strip), many = lone(setup, w, w->strip);
    const int stride = (int)w->stride, block = (int)w->block;
    char end[LK_FINISH_BYTES], text[256];
    lk_finish_print(s, true, end);
    snprintf(text, sizeof text, "-DTILE=%d -DSTRIDE_Y=%d -DFILTERS=%d -DNORM=%d -DTURNED=%d",
             (int)w->tile, stride, block, s->norm, w->turned);
    LK_TRY(lk_product_kernel(setup, packs, "planes_winograd_pack", text, &w->pack));
    snprintf(text, sizeof text, "%s -DTILE=%d -DSTRIDE_Y=%d -DSTRIDE_X=%d %s", one,
             (int)w->tile, stride, stride, end);
    LK_TRY(lk_product_kernel(setup, source, "planes_winograd_inputs", text, &w->inputs));
    LK_TRY(lk_product_kernel(setup, source, "planes_winograd_outputs", text, &w->outputs));
    snprintf(text, sizeof text,
             "%s -DSTRIDE_Y=1 -DSTRIDE_X=1 -DFILTERS=%d -DLONE=%d -DRELU=0 -DADDS=0", one,
             block, many > few ? many : few);
    LK_TRY(lk_product_kernel(setup, direct, "planes_convolve", text, &w->products));
    snprintf(text, sizeof text, "%s -DSTRIDE_Y=1 -DSTRIDE_X=1 -DFILTERS=%d -DLONE=0 %s", one,
             block, end);
    return s->pool ? lk_product_kernel(setup, direct, "planes_pool", text, &w->pool) : LK_OK;
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct winograd), state));
    struct winograd *w = *state;
    w->shape = lk_planes_turned(job);
    w->tile = job->product->tile;
    describe(setup, w);
    LK_TRY(lk_plane_images_prepare(setup, job, &w->images));
    lk_planes_place_weights(job,
                            w->g.shift + lk_divide_up(w->shape.filters, w->block) * w->block,
                            &w->turned, &w->first);
    job->count = place(setup, job->first + job->count, w) - job->first;
    return prepare_kernels(setup, w);
}

static enum lk_status enqueue_pack(const struct winograd *w, const struct lk_product_run *run)
{
    const struct lk_product_shape *s = &w->shape;
    const struct lk_grid grid = {{lk_divide_up(s->filters, w->block), 1, 1}, 1};
    return LK_ENQUEUE(w->pack, grid, LK_BUF(run->w), LK_BUF(w->turned ? NULL : run->bias),
                      LK_BUF(run->norm[LK_NORM_GAMMA]), LK_BUF(run->norm[LK_NORM_BETA]),
                      LK_BUF(run->norm[LK_NORM_MEAN]), LK_BUF(run->norm[LK_NORM_VARIANCE]),
                      LK_REAL(s->epsilon), LK_PLANE_WEIGHTS(w, run), LK_INT(s->channels),
                      LK_INT(s->filters));
}

/* m of v: the positions of a section are groups of a convolution with one tap. */
static enum lk_status enqueue_section(const struct lk_product_setup *setup,
                                      const struct winograd *w, const struct section *section,
                                      int64_t rows, const struct lk_product_run *run)
{
    const int64_t channels = section->images * w->shape.channels;
    const int64_t blocks = lk_divide_up(w->shape.filters, w->block);
    const int64_t vectors = lk_divide_up(rows * w->g.across, setup->tiling.lanes);
    const int64_t of_vector = channels * setup->tiling.lanes;
    const int64_t cached = (1 << 16) / of_vector / MOST_VECTORS * MOST_VECTORS;
    const int64_t each = cached > 0 ? cached : MOST_VECTORS;
    const int64_t adds = lk_least(vectors, each) * channels * w->block;
    const int64_t before = setup->tiling.tiles * section->first;
    const struct lk_plane_product p = {.groups = section->count,
                                       .channels = channels,
                                       .filters = w->shape.filters,
                                       .x_plane = w->g.v_plane,
                                       .x_group = w->g.v_position,
                                       .y_group = w->g.m_position,
                                       .out_vectors = vectors,
                                       .is_lone = lone(setup, w, rows) > 0,
                                       .vectors_each = each,
                                       .blocks_each = lk_plane_blocks_each(blocks, adds)};
    const struct lk_grid grid = {{lk_divide_up(blocks, p.blocks_each), lk_plane_runs(&p),
                                  setup->tiling.tiles * section->count},
                                 1};
    return LK_ENQUEUE(w->products, grid, LK_BUF(run->workspace),
                      LK_INT(w->g.v_first + before * w->g.v_position),
                      LK_BUF(w->turned ? run->workspace : run->packed),
                      LK_INT(w->first + section->packed), LK_BUF(NULL), LK_BUF(run->workspace),
                      LK_INT(w->g.m_first + before * w->g.m_position), LK_STRUCT(&p));
}

/* Rows of Winograd tiles from `first` on. */
static enum lk_status enqueue_strip(const struct lk_product_setup *setup,
                                    const struct winograd *w, int64_t first,
                                    const struct lk_product_run *run)
{
    const struct lk_product_shape *s = &w->shape;
    const int64_t lanes = setup->tiling.lanes, samples = setup->tiling.tiles;
    struct lk_plane_winograd g = w->g;
    struct lk_planes in = w->in;
    g.first = first;
    g.rows = lk_least(w->strip, w->down - first);
    g.m_plane = lk_divide_up(g.rows * g.across, lanes) * lanes;
    in.pad_y -= first * w->tile * w->stride;
    const struct lk_grid ins = {{lk_divide_up(s->channels, w->channels_each), samples, 1}, 1};
    const struct lk_grid outs = {{lk_divide_up(s->filters, w->filters_each), samples, 1}, 1};
    const struct lk_plane_source x = lk_plane_images_source(&w->images, run);
    struct lk_buffer *const y = w->turned ? run->dx : run->y;
    LK_TRY(LK_ENQUEUE(w->inputs, ins, LK_BUF(x.buffer), LK_INT(x.first), LK_BUF(run->workspace),
                      LK_STRUCT(&in), LK_STRUCT(&g), LK_INT(s->channels),
                      LK_INT(w->channels_each)));
    for (int i = 0; i < w->section_count; i++)
        LK_TRY(enqueue_section(setup, w, &w->sections[i], g.rows, run));
    return LK_ENQUEUE(w->outputs, outs, LK_BUF(run->workspace), LK_PLANE_WEIGHTS(w, run),
                      LK_BUF(run->more), LK_BUF(s->pool ? run->workspace : y),
                      LK_INT(s->pool ? w->y_first : 0), LK_STRUCT(&w->out), LK_STRUCT(&g),
                      LK_INT(s->filters), LK_INT(w->filters_each));
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    struct winograd *w = state;
    if (run->weights_are_new || w->turned)
        LK_TRY(enqueue_pack(w, run));
    for (int64_t first = 0; first < w->down; first += w->strip)
        LK_TRY(enqueue_strip(setup, w, first, run));
    return w->pool ? lk_planes_enqueue_pool(setup, w->pool, &w->out, w->shape.filters,
                                            w->y_first, run)
                   : LK_OK;
}

const struct lk_product_verbs lk_planes_winograd = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};
