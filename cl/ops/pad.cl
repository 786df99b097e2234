/* An image in a border of its own pixels, mirrored at its edges, which are not repeated.
 *
 *   reflect_forward   y[i, j] = x[mirror(i - before_h), mirror(j - before_w)]
 *   reflect_backward  dx[i, j] = the sum of dy of all pixels that are copies of it: up to three
 *                     rows by three columns, from the top and from the left
 *
 * x, dx: stored [tiles][c][height][width][LANES]; y, dy: [tiles][c][out_h][out_w][LANES].
 * Borders are narrower than the image. Group ids: 0: `each` rows of what is written; 1: plane
 * c; 2: tile. Work-items: PARTS.
 */
#include "lib/real.cl"
#include "ops/args.h"

#define FIRST_ROW ((int)get_group_id(0) * a.each)
#define PLANE ((size_t)get_group_id(2) * get_num_groups(1) + get_group_id(1))

/* Brings a place outside 0 .. count - 1 inside. */
INLINE int mirror(int place, int count)
{
    const int inside = abs(place);
    return inside < count ? inside : 2 * (count - 1) - inside;
}

/* The copies of pixel i of `count`, in an axis of `out` pixels that has `before` in front. */
struct copies {
    int first, own, last; /* -1: there is none */
};

INLINE struct copies find_copies(int i, int count, int before, int out)
{
    const int first = before - i, last = before + 2 * (count - 1) - i;
    return (struct copies){i > 0 ? max(first, -1) : -1, before + i,
                           i < count - 1 && last < out ? last : -1};
}

KERNEL void reflect_forward(__global const S *restrict x, __global S *restrict y,
                            struct lk_pool a)
{
    x += PLANE * a.height * a.width * PARTS + PART;
    y += PLANE * a.out_h * a.out_w * PARTS + PART;
    for (int h = FIRST_ROW; h < min(FIRST_ROW + a.each, a.out_h); h++) {
        __global const S *from = x + (size_t)mirror(h - a.before_h, a.height) * a.width * PARTS;
        for (int w = 0; w < a.out_w; w++)
            y[((size_t)h * a.out_w + w) * PARTS] =
                from[mirror(w - a.before_w, a.width) * PARTS];
    }
}

/* The sum over copies of a column, in row `row` of dy. */
INLINE V sum_row(__global const S *dy, int row, struct copies columns, int width)
{
    dy += (size_t)row * width * PARTS;
    V sum = LOAD(dy + columns.own * PARTS);
    if (columns.first >= 0)
        sum += LOAD(dy + columns.first * PARTS);
    if (columns.last >= 0)
        sum += LOAD(dy + columns.last * PARTS);
    return sum;
}

KERNEL void reflect_backward(__global const S *restrict dy, __global S *restrict dx,
                             struct lk_pool a)
{
    dx += PLANE * a.height * a.width * PARTS + PART;
    dy += PLANE * a.out_h * a.out_w * PARTS + PART;
    for (int h = FIRST_ROW; h < min(FIRST_ROW + a.each, a.height); h++) {
        const struct copies rows = find_copies(h, a.height, a.before_h, a.out_h);
        for (int w = 0; w < a.width; w++) {
            const struct copies columns = find_copies(w, a.width, a.before_w, a.out_w);
            V sum = sum_row(dy, rows.own, columns, a.out_w);
            if (rows.first >= 0)
                sum += sum_row(dy, rows.first, columns, a.out_w);
            if (rows.last >= 0)
                sum += sum_row(dy, rows.last, columns, a.out_w);
            STORE(dx + ((size_t)h * a.width + w) * PARTS, sum);
        }
    }
}
