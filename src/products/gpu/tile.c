/* Shipped tiles. The shares are those of multiply-adds in the main loop, by the vendors' own
 * compilers: see tools/gpu_static. */
#include "products/gpu/tile.h"
#include "products/gpu/units.h"

#include <stdio.h>
#include <string.h>

static const struct shipped {
    struct lk_gpu_tile tile;
    double share;
} shipped[] = {
    {{128, 128, 8, {8, 8}}, 0.87}, {{64, 128, 8, {8, 8}}, 0.86}, {{128, 64, 8, {8, 8}}, 0.86},
    {{64, 64, 16, {4, 4}}, 0.75},  {{32, 32, 8, {4, 4}}, 0.65},
};
enum { LARGE, HALF, TALL, SMALL, TINY, SHIPPED };

/* Which of them a vendor's devices have, as sets of bits: Intel's have registers for 4x4 sums
 * only, and what is not known gets what runs everywhere, and may be tuned. With slices of 16,
 * AMD's compilers run out of registers. */
enum { SMALLER = 1 << SMALL | 1 << TINY, ALL = 1 << LARGE | 1 << HALF | 1 << TALL | SMALLER };
static const struct vendor {
    const char *name;
    unsigned tiles;
} vendors[] = {
    {"NVIDIA", ALL},
    {"Advanced Micro Devices", ALL},
    {"Intel", SMALLER},
    {"", 1 << TINY},
};

static unsigned tiles_of(const struct lk_device_info *info)
{
    int i = 0;
    while (!strstr(info->vendor, vendors[i].name))
        i++;
    return vendors[i].tiles;
}

int lk_gpu_tile_items(const struct lk_gpu_tile *t)
{
    return t->rows / t->block.rows * (t->columns / t->block.columns);
}

/* Two slices of both operands. Rows that a weight gradient or a warp reads are four numbers
 * longer. What emulates matrix units also keeps a product of each warp there. */
static size_t local_bytes(const struct lk_product_setup *setup, const struct lk_gpu_product *p,
                          const struct lk_gpu_tile *t)
{
    const int longer = p->use == LK_GPU_WEIGHTS || p->matrix ? 8 : 0;
    const int row = t->rows + t->columns + longer;
    const int exchange = p->matrix == LK_GPU_MATRIX_EMULATED ? lk_gpu_tile_items(t) * 6 : 0;
    return (size_t)(2 * t->depth * row + exchange) * lk_dtype_bytes(setup->real);
}

static bool fits(const struct lk_product_setup *setup, const struct lk_gpu_product *p,
                 const struct lk_gpu_tile *t)
{
    const struct lk_device_info *info = lk_device_info(setup->device);
    const int multiple = p->use == LK_GPU_WEIGHTS ? t->depth : 4;
    const bool fits_warps = t->block.rows == 8 && t->block.columns == 8;
    return setup->tiling.vector == 1 && setup->tiling.lanes % multiple == 0 &&
           (fits_warps || !p->matrix) && (size_t)lk_gpu_tile_items(t) <= info->group_items &&
           local_bytes(setup, p, t) <= info->local_bytes;
}

/* Every compute unit does blocks one after another, as many at a time as 512 work-items do. */
static double seconds(const struct lk_product_setup *setup, const struct lk_gpu_product *p,
                      const struct shipped *s)
{
    const struct lk_gpu_tile *t = &s->tile;
    const int64_t blocks =
        lk_divide_up(p->rows, t->rows) * lk_divide_up(p->columns, t->columns) * p->count;
    const int at_a_time = lk_device_info(setup->device)->compute_units *
                          (512 / lk_gpu_tile_items(t) ? 512 / lk_gpu_tile_items(t) : 1);
    const double area = (double)(t->rows * t->columns) / s->share * 512;
    return (double)lk_divide_up(blocks, at_a_time) * area / lk_gpu_tile_items(t);
}

static double excess(const struct lk_product_setup *setup, const struct lk_gpu_product *p,
                     const struct shipped *s)
{
    const struct lk_gpu_tile *t = &s->tile;
    const double rows = (double)(lk_divide_up(p->rows, t->rows) * t->rows);
    const double columns = (double)(lk_divide_up(p->columns, t->columns) * t->columns);
    const double sums = (double)(t->block.rows * t->block.columns);
    return rows / (double)p->rows * (columns / (double)p->columns) * shipped[LARGE].share /
           s->share * lk_product_idleness(setup, rows * columns * (double)p->count / sums);
}

static void print_name(const struct lk_gpu_tile *t, char text[LK_GPU_TILE_BYTES])
{
    snprintf(text, LK_GPU_TILE_BYTES, "%dx%dx%d", t->rows, t->columns, t->depth);
}

bool lk_gpu_tile_name(const struct lk_product_setup *setup,
                      const struct lk_gpu_product *product, int index,
                      char text[LK_GPU_TILE_BYTES])
{
    for (int i = 0; i < SHIPPED; i++)
        if (fits(setup, product, &shipped[i].tile) && index-- == 0) {
            print_name(&shipped[i].tile, text);
            return true;
        }
    return false;
}

double lk_gpu_tile_excess(const struct lk_product_setup *setup,
                          const struct lk_gpu_product *product)
{
    const unsigned tiles = product->matrix ? ALL : tiles_of(lk_device_info(setup->device));
    double least = 0;
    for (int i = 0; i < SHIPPED; i++) {
        const double found = excess(setup, product, &shipped[i]);
        if ((tiles & 1u << i) && fits(setup, product, &shipped[i].tile) &&
            (least == 0 || found < least))
            least = found;
    }
    return least;
}

bool lk_gpu_tile_choose(const struct lk_product_setup *setup,
                        const struct lk_gpu_product *product, const char *wanted,
                        struct lk_gpu_tile *tile)
{
    const unsigned tiles = product->matrix ? ALL : tiles_of(lk_device_info(setup->device));
    const struct shipped *best = NULL;
    for (int i = 0; i < SHIPPED; i++) {
        const struct shipped *s = &shipped[i];
        char name[LK_GPU_TILE_BYTES];
        print_name(&s->tile, name);
        if (!fits(setup, product, &s->tile))
            continue;
        if (strcmp(wanted, name) == 0) {
            *tile = s->tile;
            return true;
        }
        if ((tiles & 1u << i) &&
            (!best || seconds(setup, product, s) < seconds(setup, product, best)))
            best = s;
    }
    if (best)
        *tile = best->tile;
    return best != NULL;
}

void lk_gpu_tile_print(const struct lk_gpu_tile *t, int matrix, char *text, size_t bytes)
{
    char units[16] = "";
    if (matrix)
        snprintf(units, sizeof units, " -DMATRIX=%d", matrix);
    snprintf(text, bytes, " -DBM=%d -DBN=%d -DBK=%d -DROWS=%d -DCOLUMNS=%d%s", t->rows,
             t->columns, t->depth, t->block.rows, t->block.columns, units);
}
