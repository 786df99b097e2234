/* Products by the matrix units of a GPU, in place of those of gemm.cl: a warp of 32
 * work-items does 64 x 32 results, 8 x 8 of them a work-item. Factors are rounded to tf32, 10
 * bits behind the point; their products are exact and summed as floats, in an order that is
 * the unit's. -D MATRIX: 1: NVIDIA's units, by PTX; 2: what they compute, by local memory.
 *
 * D[16][8] += A[16][8] B[8][8]. Of these, work-item l of the warp has, g = l / 4, t = l % 4,
 *   a: A[g][t], A[g + 8][t], A[g][t + 4], A[g + 8][t + 4];  b: B[t][g], B[t + 4][g]
 *   d: D[g][2 t], D[g][2 t + 1], D[g + 8][2 t], D[g + 8][2 t + 1]
 * source: PTX ISA, matrix fragments for mma.m16n8k8 with tf32
 *
 * Which results are rows and columns of D is free, and so is which products are A's columns
 * and B's rows. Here row g + 8 h of product i is row (2 i + h) / 4 * 32 + 4 g + (2 i + h) % 4
 * of the warp, column c of product j its column 4 c + j, and t + 4 h row 2 t + h of the slices:
 * so all is read in Qs, no two from one bank, and a work-item's results are Qs.
 */
#if BM % 64 || BN % 32 || BK % 8 || ROWS != 8 || COLUMNS != 8 || REAL_BYTES != 4
#error "block sizes do not fit warps"
#endif
#define WARP ((int)get_local_id(0) / 32)
#define WARP_G ((int)get_local_id(0) % 32 / 4)
#define WARP_T ((int)get_local_id(0) % 4)
#define WARP_ROW (WARP / (BN / 32) * 8)
#define WARP_COLUMN (WARP % (BN / 32) * 4)

#define ROW_QUAD(row, i) ((row) / 8 * 16 + (row) % 8 + (i) * 8)
#define COLUMN_QUAD(column, j) ((column) * 2 + (j))

INLINE int my_row(void)
{
    return WARP_ROW + WARP_G;
}

INLINE int my_column(void)
{
    return WARP_COLUMN + WARP_T;
}

INLINE int my_left(void)
{
    return 2 * WARP_T * A_PITCH + ROW_QUAD(my_row(), 0);
}

INLINE int my_right(void)
{
    return 2 * WARP_T * B_PITCH + COLUMN_QUAD(WARP_COLUMN, 0) + WARP_G;
}

#if MATRIX == 1
#if !defined(__NV_CL_C_VERSION) && !defined(__NVPTX__)
#error "PTX is for NVIDIA's compiler"
#endif
#define EXCHANGE 0 /* Qs of local memory */

INLINE float round_factor(float v)
{
    uint rounded;
    __asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(v));
    return as_float(rounded);
}

INLINE void multiply(float d[4], const float a[4], const float b[2], __local float *unused)
{
    __asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                   "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                   : "r"(as_uint(a[0])), "r"(as_uint(a[1])), "r"(as_uint(a[2])),
                     "r"(as_uint(a[3])), "r"(as_uint(b[0])), "r"(as_uint(b[1])));
}
#else
#define OF_B (16 * 8)
#define OF_WARP (OF_B + 8 * 8)
#define EXCHANGE (GROUP / 32 * OF_WARP / 4)

INLINE float round_factor(float v)
{
    return isnan(v) ? v : as_float((as_uint(v) + 0x1000) & 0xffffe000);
}

INLINE void multiply(float d[4], const float a[4], const float b[2], __local float *exchange)
{
    __local float *x = exchange + WARP * OF_WARP;
    const int g = WARP_G, t = WARP_T;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = 0; n < 4; n++)
        x[(g + n % 2 * 8) * 8 + t + n / 2 * 4] = a[n];
    for (int n = 0; n < 2; n++)
        x[OF_B + (t + n * 4) * 8 + g] = b[n];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = 0; n < 4; n++)
        for (int k = 0; k < 8; k++)
            d[n] += x[(g + n / 2 * 8) * 8 + k] * x[OF_B + k * 8 + 2 * t + n % 2];
}
#endif

INLINE Q factors(Q v)
{
    return (Q)(round_factor(v.x), round_factor(v.y), round_factor(v.z), round_factor(v.w));
}

#define MULTIPLY(at)                                                                           \
    {                                                                                          \
        const float b[2] = {right[0].at, right[1].at};                                         \
        float d[4] = {low[0].at, low[1].at, high[0].at, high[1].at};                           \
        multiply(d, a, b, exchange);                                                           \
        low[0].at = d[0];                                                                      \
        low[1].at = d[1];                                                                      \
        high[0].at = d[2];                                                                     \
        high[1].at = d[3];                                                                     \
    }

/* As in gemm.cl. */
INLINE void add_slice(__local const Q *a_slice, __local const Q *b_slice, Q acc[2][2][4],
                      __local Q *exchange_space)
{
    __local float *exchange = (__local float *)exchange_space;
    UNROLL for (int e = 0; e < BK; e += 8) {
        Q left[2][2], right[2];
        UNROLL for (int h = 0; h < 2; h++) {
            UNROLL for (int i = 0; i < 2; i++)
                left[h][i] = a_slice[(e + h) * A_PITCH + i * 8];
            right[h] = b_slice[(e + h) * B_PITCH];
        }
        UNROLL for (int i = 0; i < 4; i++) {
            const int q = i / 2, m = i % 2 * 2;
            const float a[4] = {ELEMENT(left[0][q], m), ELEMENT(left[0][q], m + 1),
                                ELEMENT(left[1][q], m), ELEMENT(left[1][q], m + 1)};
            Q low[2] = {acc[q][0][m], acc[q][1][m]};
            Q high[2] = {acc[q][0][m + 1], acc[q][1][m + 1]};
            MULTIPLY(x)
            MULTIPLY(y)
            MULTIPLY(z)
            MULTIPLY(w)
            UNROLL for (int j = 0; j < 2; j++) {
                acc[q][j][m] = low[j];
                acc[q][j][m + 1] = high[j];
            }
        }
    }
}
