/* Convolution of large kernels by Fourier transforms, one batch tile after the other: products
 * of spectra take as many multiplications for a kernel of 64x64 as for one of 3x3. Transforms
 * are clFFT's; what is between them is in cl/products/library/fft.cl.
 *
 * Sums run over channels, or samples and tiles, in ascending order; an error grows with the
 * logarithm of the image's size and stays near that of direct sums. */
#include "products/library/args.h"
#include "products/library/library.h"

#include "base/fail.h"
#include "device/library/fft.h"
#include "products/kernel/geometry.h"
#include <math.h>
#include <stdio.h>

enum { IMAGES, X, DZ, W, AREAS }; /* of the workspace: images, and three kinds of spectra */

static const double PRODUCT_SHARE = 0.1,
                    TRANSFORM_SHARE = 0.006; /* of the peak that is reached */
enum { LEAST_TAPS = 5, MOST_REALS = 1 << 27, EACH = 512, USUAL_TILES = 8 };

struct fft {
    enum lk_pass pass;
    struct lk_product_shape shape;
    int64_t side[2], bins, image; /* of an image; its bins; its reals */
    int64_t first[AREAS], count[AREAS];
    struct lk_fft *of_x, *of_dz,
        *of_w; /* images of channels, of filters, of pairs; y is as dz */
    struct lk_kernel *spread_x, *spread_dz, *spread_w, *product, *gather, *gather_w;
    const struct lk_buffer *whole; /* the workspace that the views are of */
    struct lk_buffer *views[AREAS];
};

/* The next length of no prime factor above 13. */
static int64_t next_length(int64_t least)
{
    static const int factors[] = {2, 3, 5, 7, 11, 13};
    for (int64_t n = least;; n++) {
        int64_t rest = n;
        for (int i = 0; i < LK_COUNT(factors); i++)
            while (rest % factors[i] == 0)
                rest /= factors[i];
        if (rest == 1)
            return n;
    }
}

static void measure(const struct lk_product_shape *s, int lanes, struct fft *fft)
{
    for (int i = 0; i < 2; i++)
        fft->side[i] = next_length(s->axis[i].out + s->axis[i].taps - 1);
    fft->bins = fft->side[0] * (fft->side[1] / 2 + 1);
    fft->image = fft->side[0] * fft->side[1];
    const int64_t spectra[] = {0, s->channels * lanes, s->filters * lanes,
                               s->channels * s->filters};
    int64_t most = 0;
    for (int i = X; i < AREAS; i++) {
        fft->count[i] = 2 * fft->bins * spectra[i];
        most = spectra[i] > most ? spectra[i] : most;
    }
    fft->count[IMAGES] = fft->image * most;
}

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    struct fft fft;
    if (setup->stores_half || s->groups != 1 || s->pool || !lk_fft_is_possible(setup->device) ||
        s->axis[0].taps * s->axis[1].taps < LEAST_TAPS * LEAST_TAPS)
        return false;
    for (int i = 0; i < 2; i++)
        if (s->axis[i].stride != 1 || s->axis[i].gap != 1 || s->axis[i].in > 2048 ||
            s->axis[i].pad >= s->axis[i].taps)
            return false;
    if ((double)s->channels * (double)s->filters * 16384 > MOST_REALS * 64.0)
        return false;
    measure(s, setup->tiling.lanes, &fft);
    for (int i = 0; i < AREAS; i++)
        if (fft.count[i] > MOST_REALS)
            return false;
    return true;
}

/* Reals of a whole spectrum stay far below what 32 bits count. */
static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    const int lanes = setup->tiling.lanes;
    struct fft fft;
    measure(s, lanes, &fft);
    const double pairs = (double)(s->channels * s->filters);
    const double each = 1.25 * (double)fft.image * log2((double)fft.image);
    const double images = (double)(s->channels + s->filters) + pairs / (lanes * USUAL_TILES);
    return 4 * pairs * (double)fft.bins / PRODUCT_SHARE + images * each / TRANSFORM_SHARE;
}

/* --- preparing --------------------------------------------------------------------------- */

static enum lk_status make(const struct lk_product_setup *setup, const struct fft *fft,
                           const char *name, const int64_t in[2], const int64_t at[2],
                           const int64_t from[2], struct lk_kernel **kernel)
{
    char geometry[LK_GEOMETRY_BYTES], text[512];
    const int height = (int)in[0], width = (int)in[1];
    const struct lk_geometry numbers = {
        .in_h = height, .in_w = width, .out_h = height, .out_w = width};
    lk_geometry_print(&numbers, LK_GEOMETRY_PLANES, geometry);
    snprintf(text, sizeof text,
             "%s -DSIDE_H=%d -DSIDE_W=%d -DAT_Y=%d -DAT_X=%d -DFROM_Y=%d -DFROM_X=%d", geometry,
             (int)fft->side[0], (int)fft->side[1], (int)at[0], (int)at[1], (int)from[0],
             (int)from[1]);
    return lk_product_kernel(setup, "products/library/fft", name, text, kernel);
}

static enum lk_status make_kernels(const struct lk_product_setup *setup, struct fft *fft)
{
    const struct lk_product_axis *a = fft->shape.axis;
    const int64_t in[] = {a[0].in, a[1].in}, out[] = {a[0].out, a[1].out};
    const int64_t taps[] = {a[0].taps, a[1].taps}, pad[] = {a[0].pad, a[1].pad}, none[2] = {0};
    if (fft->pass != LK_PASS_DATA)
        LK_TRY(make(setup, fft, "fft_spread", in, pad, none, &fft->spread_x));
    if (fft->pass != LK_PASS_FORWARD)
        LK_TRY(make(setup, fft, "fft_spread", out, none, none, &fft->spread_dz));
    if (fft->pass != LK_PASS_WEIGHTS)
        LK_TRY(make(setup, fft, "fft_spread_weights", taps, none, none, &fft->spread_w));
    LK_TRY(make(setup, fft, "fft_product", none, none, none, &fft->product));
    if (fft->pass == LK_PASS_FORWARD)
        return make(setup, fft, "fft_gather", out, none, none, &fft->gather);
    if (fft->pass == LK_PASS_DATA)
        return make(setup, fft, "fft_gather", in, none, pad, &fft->gather);
    return make(setup, fft, "fft_gather_weights", taps, none, none, &fft->gather_w);
}

static enum lk_status make_transforms(const struct lk_product_setup *setup, struct fft *fft)
{
    const int real = (int)lk_dtype_bytes(setup->real), lanes = setup->tiling.lanes;
    const int64_t c = fft->shape.channels, k = fft->shape.filters;
    LK_TRY(
        lk_fft_create(setup->device, real, fft->side[0], fft->side[1], c * lanes, &fft->of_x));
    LK_TRY(
        lk_fft_create(setup->device, real, fft->side[0], fft->side[1], k * lanes, &fft->of_dz));
    return lk_fft_create(setup->device, real, fft->side[0], fft->side[1], c * k, &fft->of_w);
}

static void drop_views(struct fft *fft)
{
    for (int i = 0; i < AREAS; i++) {
        lk_buffer_destroy(fft->views[i]);
        fft->views[i] = NULL;
    }
    fft->whole = NULL;
}

static void release(void *state)
{
    struct fft *fft = state;
    lk_fft_destroy(fft->of_x);
    lk_fft_destroy(fft->of_dz);
    lk_fft_destroy(fft->of_w);
    drop_views(fft);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    const int64_t align =
        (int64_t)(lk_device_info(setup->device)->align_bytes / lk_dtype_bytes(setup->real));
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct fft), state));
    LK_TRY(lk_arena_keep(setup->arena, release, *state));
    struct fft *fft = *state;
    fft->pass = job->pass;
    fft->shape = *job->shape;
    measure(job->shape, setup->tiling.lanes, fft);
    int64_t first = lk_divide_up(job->first, align) * align;
    for (int i = 0; i < AREAS; i++) {
        fft->first[i] = first;
        first += lk_divide_up(fft->count[i], align) * align;
    }
    job->count = first - job->first;
    LK_TRY(make_kernels(setup, fft));
    return make_transforms(setup, fft);
}

/* --- running ----------------------------------------------------------------------------- */

/* clFFT takes buffers from their beginning. A replica's workspace stays the same, so this is
 * done at its first use. */
static enum lk_status view_workspace(const struct lk_product_setup *setup, struct fft *fft,
                                     struct lk_buffer *workspace)
{
    const size_t real = lk_dtype_bytes(setup->real);
    if (fft->whole == workspace)
        return LK_OK;
    drop_views(fft);
    for (int i = 0; i < AREAS; i++)
        LK_TRY(lk_buffer_view(workspace, (size_t)fft->first[i] * real,
                              (size_t)fft->count[i] * real, &fft->views[i]));
    fft->whole = workspace;
    return LK_OK;
}

static enum lk_status spread(const struct lk_product_setup *setup, struct fft *fft,
                             struct lk_kernel *kernel, const struct lk_buffer *from,
                             int64_t from_first, int64_t tile)
{
    const bool is_x = kernel == fft->spread_x;
    const int64_t channels = is_x ? fft->shape.channels : fft->shape.filters;
    const struct lk_grid grid = {{fft->side[0], channels, 1}, lk_product_items(setup)};
    LK_TRY(LK_ENQUEUE(kernel, grid, LK_BUF(from), LK_INT(from_first), LK_INT(tile),
                      LK_INT(channels), LK_BUF(fft->views[IMAGES]), LK_INT(0)));
    return lk_fft_enqueue_forward(is_x ? fft->of_x : fft->of_dz, fft->views[IMAGES],
                                  fft->views[is_x ? X : DZ]);
}

static enum lk_status spread_weights(const struct lk_product_setup *setup, struct fft *fft,
                                     const struct lk_buffer *w)
{
    const struct lk_grid grid = {{fft->side[0], fft->shape.channels, 1},
                                 lk_product_items(setup)};
    LK_TRY(LK_ENQUEUE(fft->spread_w, grid, LK_BUF(w), LK_INT(fft->shape.filters),
                      LK_BUF(fft->views[IMAGES]), LK_INT(0)));
    return lk_fft_enqueue_forward(fft->of_w, fft->views[IMAGES], fft->views[W]);
}

/* to[p, q] (+)= sum over m of a[p, m] b[m, q]. */
struct product {
    int a, b, to; /* areas */
    struct lk_fft_product of;
};

static enum lk_status enqueue_product(const struct lk_product_setup *setup,
                                      const struct fft *fft, const struct lk_buffer *workspace,
                                      const struct product *p)
{
    const struct lk_grid grid = {{lk_divide_up(p->of.columns, 4), lk_divide_up(p->of.rows, 4),
                                  lk_divide_up(fft->bins, p->of.each)},
                                 lk_product_items(setup)};
    return LK_ENQUEUE(fft->product, grid, LK_BUF(workspace), LK_INT(fft->first[p->a]),
                      LK_INT(fft->first[p->b]), LK_INT(fft->first[p->to]), LK_STRUCT(&p->of));
}

/* Forward and data gradient: images of a tile, times weights, back. */
static enum lk_status enqueue_tile(const struct lk_product_setup *setup, struct fft *fft,
                                   const struct lk_product_run *run, int64_t tile)
{
    const bool forward = fft->pass == LK_PASS_FORWARD;
    const int64_t c = fft->shape.channels, k = fft->shape.filters, lanes = setup->tiling.lanes;
    const int64_t outs = forward ? k : c, height = fft->shape.axis[0].out;
    const double least = forward && fft->shape.relu ? 0 : -INFINITY;
    const struct product product = {.a = forward ? X : DZ,
                                    .b = W,
                                    .to = forward ? DZ : X,
                                    .of = {.a_p = 1,
                                           .a_m = lanes,
                                           .b_m = forward ? k : 1,
                                           .b_q = forward ? 1 : k,
                                           .to_p = 1,
                                           .to_q = lanes,
                                           .depth = forward ? c : k,
                                           .rows = lanes,
                                           .columns = outs,
                                           .each = EACH,
                                           .conjugate = forward}};
    LK_TRY(spread(setup, fft, forward ? fft->spread_x : fft->spread_dz,
                  forward ? run->x : run->dz, forward ? 0 : run->dz_first, tile));
    LK_TRY(enqueue_product(setup, fft, run->workspace, &product));
    LK_TRY(lk_fft_enqueue_inverse(forward ? fft->of_dz : fft->of_x, fft->views[product.to],
                                  fft->views[IMAGES]));
    const struct lk_grid grid = {{forward ? height : fft->shape.axis[0].in, outs, 1},
                                 lk_product_items(setup)};
    return LK_ENQUEUE(fft->gather, grid, LK_BUF(fft->views[IMAGES]), LK_INT(0),
                      LK_BUF(forward ? run->bias : NULL), LK_REAL(least), LK_INT(tile),
                      LK_INT(outs), LK_BUF(forward ? run->y : run->dx));
}

static enum lk_status enqueue_shard(const struct lk_product_setup *setup, struct fft *fft,
                                    const struct lk_product_run *run, int64_t shard)
{
    const int64_t c = fft->shape.channels, k = fft->shape.filters, lanes = setup->tiling.lanes;
    for (int64_t i = 0; i < setup->tiling.shard_tiles; i++) {
        const int64_t tile = shard * setup->tiling.shard_tiles + i;
        LK_TRY(spread(setup, fft, fft->spread_x, run->x, 0, tile));
        LK_TRY(spread(setup, fft, fft->spread_dz, run->dz, run->dz_first, tile));
        const struct product product = {.a = X,
                                        .b = DZ,
                                        .to = W,
                                        .of = {.a_p = lanes,
                                               .a_m = 1,
                                               .b_m = 1,
                                               .b_q = lanes,
                                               .to_p = k,
                                               .to_q = 1,
                                               .depth = lanes,
                                               .rows = c,
                                               .columns = k,
                                               .each = EACH,
                                               .conjugate = true,
                                               .adds = i > 0}};
        LK_TRY(enqueue_product(setup, fft, run->workspace, &product));
    }
    LK_TRY(lk_fft_enqueue_inverse(fft->of_w, fft->views[W], fft->views[IMAGES]));
    const struct lk_grid grid = {{fft->shape.axis[0].taps, c, 1}, lk_product_items(setup)};
    return LK_ENQUEUE(fft->gather_w, grid, LK_BUF(fft->views[IMAGES]), LK_INT(0), LK_INT(k),
                      LK_BUF(run->dw), LK_INT(shard * run->dw_stride));
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    struct fft *fft = state;
    LK_TRY(view_workspace(setup, fft, run->workspace));
    if (fft->pass == LK_PASS_WEIGHTS) {
        for (int64_t i = 0; i < setup->tiling.shards; i++)
            LK_TRY(enqueue_shard(setup, fft, run, i));
        return LK_OK;
    }
    LK_TRY(spread_weights(setup, fft, run->w));
    for (int64_t i = 0; i < setup->tiling.tiles; i++)
        LK_TRY(enqueue_tile(setup, fft, run, i));
    return LK_OK;
}

const struct lk_product_verbs lk_library_fft = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};
