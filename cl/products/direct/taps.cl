/* Taps of a convolution along a row. Needs lib/real.cl.
 * -D: STRIDE_X GAP_X PAD_X IN_W: output column j reads columns j*STRIDE_X + s*GAP_X - PAD_X. */

/* Whether tap s of output column j reads a column of the image. */
INLINE bool inside(int j, int s)
{
    const int column = j * STRIDE_X + s * GAP_X - PAD_X;
    return column >= 0 && column < IN_W;
}
