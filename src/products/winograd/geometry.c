/* What all kernels of Winograd's algorithm have in common: where it can be, what it costs, and
 * the geometry of its tiles. */
#include "products/gpu/tile.h"
#include "products/winograd/winograd.h"

/* MOST_TAPS: channels x filters, a few more for whole blocks, that 32-bit offsets reach. */
enum { MORE = 4, MOST_TAPS = 1 << 24 };

struct lk_geometry lk_winograd_numbers(const struct lk_winograd_geometry *g)
{
    return (struct lk_geometry){.taps_y = 3,
                                .taps_x = 3,
                                .stride_y = 1,
                                .stride_x = 1,
                                .gap_y = 1,
                                .gap_x = 1,
                                .pad_y = g->pad[0],
                                .pad_x = g->pad[1],
                                .in_h = g->in[0],
                                .in_w = g->in[1],
                                .out_h = g->out[0],
                                .out_w = g->out[1]};
}

struct lk_winograd_from lk_winograd_from(const struct lk_winograd_geometry *g)
{
    return (struct lk_winograd_from){.ins = g->ins,
                                     .outs = g->outs,
                                     .in_stride = g->in_stride,
                                     .row_stride = g->row_stride,
                                     .column_stride = g->column_stride,
                                     .out_stride = g->out_stride};
}

int64_t lk_winograd_squares(const int64_t plane[2], int64_t tile)
{
    return lk_divide_up(plane[0], tile) * lk_divide_up(plane[1], tile);
}

/* Whether a data gradient is computed as the transpose of the forward pass, with tiles over dz,
 * and not as a convolution of dz with rotated taps, with tiles over dx. Without padding dz is
 * smaller than dx, so there are fewer tiles. On large planes the difference is small, and
 * overlapping tiles no longer stay in the caches: at least a quarter of the tiles must be
 * saved. Not where a pool drops outputs, since the tiles over the rest may not reach the last
 * inputs. */
bool lk_winograd_is_transposed(const struct lk_product_shape *s, int64_t tile)
{
    int64_t in[2], out[2];
    for (int i = 0; i < 2; i++) {
        const struct lk_product_axis *axis = &s->axis[i];
        in[i] = axis->in;
        out[i] = axis->out;
        if (lk_divide_up(axis->out, tile) * tile + 2 - axis->pad < axis->in)
            return false;
    }
    return 4 * lk_winograd_squares(out, tile) <= 3 * lk_winograd_squares(in, tile);
}

void lk_winograd_describe(const struct lk_product_job *job, int64_t tile,
                          struct lk_winograd_geometry *g)
{
    const struct lk_product_shape *s = job->shape;
    const int64_t column = s->filters, row = 3 * column, channel = 3 * row;
    g->tile = tile;
    g->forward = job->pass == LK_PASS_FORWARD;
    for (int i = 0; i < 2; i++) {
        const struct lk_product_axis *axis = &s->axis[i];
        g->in[i] = g->forward ? axis->in : axis->out;
        g->out[i] = g->forward ? axis->out : axis->in;
        g->pad[i] = g->forward ? axis->pad : 2 - axis->pad;
    }
    g->ins = g->forward ? s->channels : s->filters;
    g->outs = g->forward ? s->filters : s->channels;
    g->in_stride = g->forward ? channel : 1;
    g->out_stride = g->forward ? 1 : channel;
    g->row_stride = g->forward ? row : -row;
    g->column_stride = g->forward ? column : -column;
    g->w_first = g->forward ? 0 : 2 * row + 2 * column;
    g->relu = g->forward && s->relu;
    g->source = g->forward ? LK_GRADIENT_PLAIN : (int)job->gradient;
    g->pool = g->forward && s->pool;
    g->is_gated = job->is_gated;
}

size_t lk_winograd_stage_bytes(const struct lk_product_setup *setup, int64_t tile)
{
    const int vector = setup->tiling.vector;
    return (size_t)(tile * tile * vector * vector) * lk_dtype_bytes(setup->real);
}

static bool fits_local(const struct lk_product_setup *setup, enum lk_pass pass, int64_t tile)
{
    return pass != LK_PASS_WEIGHTS || setup->tiling.vector == 1 ||
           lk_winograd_stage_bytes(setup, tile) <= lk_device_info(setup->device)->local_bytes;
}

bool lk_winograd_fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    const struct lk_gpu_product any = {
        job->pass == LK_PASS_WEIGHTS ? LK_GPU_WEIGHTS : LK_GPU_GATHER, 64, 64, 1, 0};
    struct lk_gpu_tile tile;
    for (int i = 0; i < 2; i++)
        if (s->axis[i].taps != 3 || s->axis[i].stride != 1 || s->axis[i].gap != 1)
            return false;
    return s->groups == 1 && fits_local(setup, job->pass, job->product->tile) &&
           (double)(s->channels + MORE) * (double)(s->filters + MORE) <= MOST_TAPS &&
           (setup->tiling.vector > 1 || lk_gpu_tile_choose(setup, &any, "", &tile));
}

/* Winograd tiles of a sample. */
static double count_squares(const struct lk_product_setup *setup,
                            const struct lk_product_job *job)
{
    const struct lk_product_axis *y = &job->shape->axis[0], *x = &job->shape->axis[1];
    const int64_t tile = job->product->tile;
    const int64_t in[] = {y->in, x->in}, out[] = {y->out, x->out};
    const bool are_turned =
        setup->tiling.vector == 1 || !lk_winograd_is_transposed(job->shape, tile);
    return (double)lk_winograd_squares(job->pass == LK_PASS_DATA && are_turned ? in : out,
                                       tile);
}

double lk_winograd_cost(const struct lk_product_setup *setup, const struct lk_product_job *job,
                        double products, double each, double shared)
{
    const int tile = job->product->tile;
    const double channels = (double)(job->shape->channels + job->shape->filters);
    return (double)((tile + 2) * (tile + 2)) *
           (count_squares(setup, job) * (products / 0.8 + each * channels) +
            shared * products / (double)setup->tiling.shard_tiles);
}
