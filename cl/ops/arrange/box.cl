/* Copies the box `from` into a box of `to`, along four axes of rows of LANES numbers.
 *
 *   box  to[i0 + at_0, ..., i3 + at_3] = from[i0 + shift_0, ..., i3 + shift_3], or value where
 *        `from` has no such number, for i1 < count_1, i2 < count_2, i3 < count_3
 *
 * from: stored [from_0][from_1][from_2][from_3][LANES]; to: likewise, without to_0, which is
 * not needed. A line is all i3, in `pieces` that are `piece` long. Group id 0: a piece of
 * `each` lines of all `lines`, the pieces of a line side by side. Work-items: PARTS. -D:
 * STREAM: `to` is too large for caches.
 */
#include "lib/hints.cl"
#include "lib/real.cl"

#include "lib/put.cl"
#include "ops/args.h"
#if STREAM
#define MOVE(p, q) STREAM_STORE(p, *(q))
#else
#define MOVE(p, q) (*(p) = *(q))
#endif

KERNEL void box(__global const S *restrict from, __global S *restrict to, real value,
                struct lk_box_lines a)
{
    const int group = get_group_id(0);
    const int start = group % a.pieces * a.piece, end = min(start + a.piece, a.count_3);
    const int first = group / a.pieces * a.each, last = min(first + a.each, a.lines);
    for (int line = first; line < last; line++) {
        const int i2 = line % a.count_2, i01 = line / a.count_2;
        const int i1 = i01 % a.count_1, i0 = i01 / a.count_1;
        const int j0 = i0 + a.shift_0, j1 = i1 + a.shift_1, j2 = i2 + a.shift_2;
        const bool is_there =
            j0 >= 0 && j0 < a.from_0 && j1 >= 0 && j1 < a.from_1 && j2 >= 0 && j2 < a.from_2;
        const int here = is_there ? clamp(-a.shift_3, start, end) : end;
        const int gone = is_there ? clamp(a.from_3 - a.shift_3, here, end) : end;
        const long x = (((long)j0 * a.from_1 + j1) * a.from_2 + j2) * a.from_3 + a.shift_3;
        const long y =
            (((long)(i0 + a.at_0) * a.to_1 + i1 + a.at_1) * a.to_2 + i2 + a.at_2) * a.to_3 +
            a.at_3;
        for (int i3 = start; i3 < here; i3++)
            PUT(to + (y + i3) * PARTS + PART, (V)value);
        for (int i3 = here; i3 < gone; i3++)
            MOVE(to + (y + i3) * PARTS + PART, from + (x + i3) * PARTS + PART);
        for (int i3 = gone; i3 < end; i3++)
            PUT(to + (y + i3) * PARTS + PART, (V)value);
    }
}
