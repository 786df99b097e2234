/* Weights of a Winograd convolution on CPUs, transformed:
 *
 *   u[p][b][n][i] = (G w G')[p] of output channel b*ROWS + i and input channel n, p of
 *                   POSITIONS; 0 where there is no such output channel
 *   w: element (n, r, s, k) at w_first + n*in_stride + r*row_stride + s*column_stride +
 *      k*out_stride
 *
 * Group ids: 0: b. -D: TILE; ROWS.
 */
#include "lib/hints.cl"
#include "lib/real.cl"
#include "products/winograd/args.h"
#include "lib/winograd.cl"

#define ROW (VECTOR / ROWS) /* input channels that a vector of weights holds */

struct weights {
    __global const real *w;
    int ins, outs, in_stride, row_stride, column_stride, out_stride;
};

/* Of ROWS output channels and ROW input channels. */
INLINE V gather_taps(__global const real *w, int in_stride, int out_stride, int ins, int outs)
{
    real t[VECTOR];
    UNROLL for (int m = 0; m < ROW; m++)
        UNROLL for (int i = 0; i < ROWS; i++)
            t[m * ROWS + i] = m < ins && i < outs ? w[m * in_stride + i * out_stride] : (real)0;
    return *(const V *)t;
}

/* Tap (r, s) of output channels from k on and input channels from n on. */
INLINE V taps(const struct weights *from, int n, int k, int r, int s)
{
    __global const real *w = from->w + n * from->in_stride + r * from->row_stride +
                             s * from->column_stride + k * from->out_stride;
    const bool whole = n + ROW <= from->ins && k + ROWS <= from->outs;
    if (whole && from->out_stride == 1)
        return gather_taps(w, from->in_stride, 1, ROW, ROWS);
    if (whole && from->in_stride == 1)
        return gather_taps(w, 1, from->out_stride, ROW, ROWS);
    return gather_taps(w, from->in_stride, from->out_stride, from->ins - n, from->outs - k);
}

BODY void pack_group(__global const real *restrict w, int w_first, __global real *restrict u,
                     int u_first, int ins, int outs, int in_stride, int row_stride,
                     int column_stride, int out_stride, int group_0, int groups_0)
{
    const struct weights from = {w + w_first, ins, outs, in_stride, row_stride, column_stride,
                                 out_stride};
    const size_t stride = (size_t)groups_0 * ins * ROWS;
    u += u_first + (size_t)group_0 * ins * ROWS;
    for (int n = 0; n < ins; n += ROW) {
        V t[SIDE][3];
        UNROLL for (int s = 0; s < 3; s++) {
            V column[SIDE];
#define W(r) taps(&from, n, group_0 * ROWS, r, s)
            WINOGRAD_G(column, W);
#undef W
            UNROLL for (int i = 0; i < SIDE; i++)
                t[i][s] = column[i];
        }
        UNROLL for (int i = 0; i < SIDE; i++) {
            V row[SIDE];
#define W(s) t[i][s]
            WINOGRAD_G(row, W);
#undef W
            UNROLL for (int j = 0; j < SIDE; j++) {
                __global real *to = u + (i * SIDE + j) * stride + (size_t)n * ROWS;
                if (ins % ROW == 0)
                    STREAM_STORE((__global V *)to, row[j]);
                else
                    for (int l = 0; l < (ins - n) * ROWS; l++)
                        to[l] = ((const real *)&row[j])[l];
            }
        }
    }
}

KERNEL void conv2d_winograd_pack(__global const real *restrict w, int w_first,
                                 __global real *restrict u, int u_first,
                                 struct lk_winograd_from of)
{
    pack_group(w, w_first, u, u_first, of.ins, of.outs, of.in_stride, of.row_stride,
               of.column_stride, of.out_stride, get_group_id(0), get_num_groups(0));
}
