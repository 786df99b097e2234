/* Sums and products of two tensors of one shape, and of planes with a number for each.
 *
 *   add_two             to = a + b             to may be a
 *   multiply_two        to = a * b
 *   add_backward        a = dy, b = dy         either may be NULL
 *   add_planes          to = x + v             v of the plane; to may be x
 *   multiply_planes     to = x * v
 *   add_planes_backward       dv = the sum of dy over the plane
 *   multiply_planes_backward  dx = dy * v, dv = the sum of dy * x over the plane; either may be
 *                             NULL
 *
 * Tensors: stored [rows][LANES]; in planes [planes][pixels][LANES], v, dv: [planes][LANES].
 * Group ids: 0: `each` rows, or pixels of a plane; 1: plane c; 2: tile. Sums are over whole
 * planes, `width` pixels at a time. Work-items: PARTS of a row. -D: STREAM: what is written in
 * y's shape is too large for caches.
 */
#include "lib/hints.cl"
#include "lib/real.cl"

#include "lib/put.cl"

KERNEL void add_two(__global const S *a, __global const S *b, __global S *to, int rows,
                    int each)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        PUT(to + at, LOAD(a + at) + LOAD(b + at));
    }
}

KERNEL void multiply_two(__global const S *a, __global const S *b, __global S *to, int rows,
                         int each)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        PUT(to + at, LOAD(a + at) * LOAD(b + at));
    }
}

KERNEL void add_backward(__global const S *restrict dy, __global S *restrict a,
                         __global S *restrict b, int rows, int each)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        const V v = LOAD(dy + at);
        if (a)
            PUT(a + at, v);
        if (b)
            PUT(b + at, v);
    }
}

#define PLANE ((size_t)get_group_id(2) * get_num_groups(1) + get_group_id(1))

KERNEL void add_planes(__global const S *x, __global const S *restrict v, __global S *to,
                       int pixels, int each)
{
    const int first = get_group_id(0) * each, last = min(pixels, first + each);
    const V summand = LOAD(v + PLANE * PARTS + PART);
    for (int pixel = first; pixel < last; pixel++) {
        const size_t at = (PLANE * pixels + pixel) * PARTS + PART;
        PUT(to + at, LOAD(x + at) + summand);
    }
}

KERNEL void multiply_planes(__global const S *x, __global const S *restrict v, __global S *to,
                            int pixels, int each)
{
    const int first = get_group_id(0) * each, last = min(pixels, first + each);
    const V factor = LOAD(v + PLANE * PARTS + PART);
    for (int pixel = first; pixel < last; pixel++) {
        const size_t at = (PLANE * pixels + pixel) * PARTS + PART;
        PUT(to + at, LOAD(x + at) * factor);
    }
}

KERNEL void add_planes_backward(__global const S *restrict dy, __global S *restrict dv,
                                int pixels, int width)
{
    dy += PLANE * pixels * PARTS + PART;
    V sum = 0;
    for (int row = 0; row < pixels; row += width) {
        V part = 0;
        for (int pixel = row; pixel < row + width; pixel++)
            part += LOAD(dy + (size_t)pixel * PARTS);
        sum += part;
    }
    STORE(dv + PLANE * PARTS + PART, sum);
}

KERNEL void multiply_planes_backward(__global const S *restrict dy,
                                     __global const S *restrict x, __global const S *restrict v,
                                     __global S *restrict dx, __global S *restrict dv,
                                     int pixels, int width)
{
    const V factor = LOAD(v + PLANE * PARTS + PART);
    dy += PLANE * pixels * PARTS + PART;
    x += PLANE * pixels * PARTS + PART;
    V sum = 0;
    for (int row = 0; row < pixels; row += width) {
        V part = 0;
        for (int pixel = row; pixel < row + width; pixel++) {
            const V gradient = LOAD(dy + (size_t)pixel * PARTS);
            if (dv)
                part += gradient * LOAD(x + (size_t)pixel * PARTS);
            if (dx)
                PUT(dx + (PLANE * pixels + pixel) * PARTS + PART, gradient * factor);
        }
        sum += part;
    }
    if (dv)
        STORE(dv + PLANE * PARTS + PART, sum);
}
