/* A work-group of the GPU class sums a block of BM x BN results, each work-item
 * ROWS x COLUMNS of them: slices of BK products a result come through local memory, two slices
 * in turns, one read while the other is filled. Needs lib/real.cl.
 * -D: BM BN BK ROWS COLUMNS. Which are chosen changes no sum's order. PAD: unused Qs in a row.
 * MATRIX, where matrix units are to do it: see matrix.cl. */

typedef PASTE(REAL, 4) Q;
/* A Q at p, a pointer to S in global memory. Halves come and go four at a time: vload_half4
 * would have to do with memory that is aligned for one. */
#if defined(STORED_BYTES) && STORED_BYTES == 2
INLINE Q load_quad(__global const ushort4 *p)
{
    const ushort4 stored = *p;
    return vload_half4(0, (const half *)&stored);
}

INLINE void store_quad(__global ushort4 *p, Q v)
{
    ushort4 stored;
    vstore_half4(v, 0, (half *)&stored);
    *p = stored;
}
#define LOAD_QUAD(p) load_quad((__global const ushort4 *)(p))
#define STORE_QUAD(p, v) store_quad((__global ushort4 *)(p), v)
#else
#define LOAD_QUAD(p) (*(__global const Q *)(p))
#define STORE_QUAD(p, v) (*(__global Q *)(p) = (v))
#endif
#define ELEMENT(q, i) ((i) == 0 ? (q).x : (i) == 1 ? (q).y : (i) == 2 ? (q).z : (q).w)

#define GROUP ((BM / ROWS) * (BN / COLUMNS))
#define A_QUADS (BM / 4) /* Qs in a row of the left slice, BM results of one product */
#define B_QUADS (BN / 4)
#define A_ROWS (GROUP / A_QUADS) /* rows of the left slice that the group brings at a time */
#define B_ROWS (GROUP / B_QUADS)
#define A_TURNS (BK / A_ROWS)
#define B_TURNS (BK / B_ROWS)
#define A_PITCH (A_QUADS + PAD)
#define B_PITCH (B_QUADS + PAD)
#define SLICE (BK * (A_PITCH + B_PITCH))

#if GROUP % A_QUADS || GROUP % B_QUADS || BK % A_ROWS || BK % B_ROWS || LANES % 4
#error "block sizes do not fit together"
#endif
#if (BN / COLUMNS) % 8 || (BM / ROWS) % 4
#error "work-items are laid out in patches of 4 x 8"
#endif

/* With 128 registers two groups share a compute unit. */
#if defined(__AMDGCN__) && REAL_BYTES == 4
#define GROUP_KERNEL                                                                           \
    __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1), amdgpu_num_vgpr(128)))
#else
#define GROUP_KERNEL __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#endif

/* AMD's compiler would start every read of local memory at once and run out of registers. */
#ifdef __AMDGCN__
#define IN_ORDER __asm volatile("" ::: "memory")
#else
#define IN_ORDER
#endif

/* NVIDIA's assembler would put off the loads of the next slice until half of the products are
 * done, which may be too late for its memory. It takes no load past a barrier, but where
 * `restrict` tells that nobody writes there. Numbers that are on their way take registers: of
 * larger groups there could be but one on a compute unit. */
#if (defined(__NV_CL_C_VERSION) || defined(__NVPTX__)) && GROUP <= 128
#define OPERAND
#define STARTED barrier(CLK_LOCAL_MEM_FENCE)
#else
#define OPERAND restrict
#define STARTED
#endif

/* Where two products are one instruction, either half of a pair of registers may be the factor
 * of both. Of a Q's last number the compiler knows that only when it does not see the Q. */
#if defined(__gfx90a__) || defined(__gfx942__)
#define APART(pair) __asm("" : "+v"(pair))
#else
#define APART(pair)
#endif

/* A work-item's results: rows 4 ROW_QUAD(my_row(), i) + m, m < 4, i < ROWS/4, in Qs of columns
 * COLUMN_QUAD(my_column(), j), j < COLUMNS/4. Its first Q of either slice: my_left(),
 * my_right(). */
#ifdef MATRIX
#include "products/gpu/matrix.cl"
#else
#define EXCHANGE 0
#define ROW_QUAD(row, i) ((i) * (BM / ROWS) + (row))
#define COLUMN_QUAD(column, j) ((j) * (BN / COLUMNS) + (column))

/* In patches of 4 x 8, neighbouring work-items read 4 + 8 Qs: no bank of local memory is asked
 * twice. */
INLINE int my_row(void)
{
    const int id = get_local_id(0);
    return id / 8 % 4 + id / (4 * (BN / COLUMNS)) * 4;
}

INLINE int my_column(void)
{
    const int id = get_local_id(0);
    return id % 8 + id / 32 % (BN / COLUMNS / 8) * 8;
}

INLINE int my_left(void)
{
    return my_row();
}

INLINE int my_right(void)
{
    return my_column();
}

/* What of a number enters products. */
INLINE Q factors(Q v)
{
    return v;
}

INLINE void add_quad(Q acc[4], Q left, Q right)
{
    PASTE(REAL, 2) high = left.hi;
    APART(high);
    acc[0] = FMA(left.xxxx, right, acc[0]);
    acc[1] = FMA(left.yyyy, right, acc[1]);
    acc[2] = FMA(high.xxxx, right, acc[2]);
    acc[3] = FMA(high.yyyy, right, acc[3]);
}

/* acc[i][j][m] += the products of a slice, from the work-item's first Qs on. exchange:
 * EXCHANGE Qs of local memory. */
INLINE void add_slice(__local const Q *a, __local const Q *b, Q acc[ROWS / 4][COLUMNS / 4][4],
                      __local Q *exchange)
{
    UNROLL for (int e = 0; e < BK; e++) {
        IN_ORDER;
        Q right[COLUMNS / 4];
        UNROLL for (int j = 0; j < COLUMNS / 4; j++)
            right[j] = b[e * B_PITCH + COLUMN_QUAD(0, j)];
        UNROLL for (int i = 0; i < ROWS / 4; i++) {
            const Q left = a[e * A_PITCH + ROW_QUAD(0, i)];
            UNROLL for (int j = 0; j < COLUMNS / 4; j++)
                add_quad(acc[i][j], left, right[j]);
        }
    }
}
#endif

/* The Q that lies `offset` bytes behind p, which is the same for the whole group. */
INLINE Q fetch(__global const real *p, int offset)
{
    return *(__global const Q *)((__global const char *)p + offset);
}

/* The same of what is stored. */
INLINE Q fetch_stored(__global const S *p, int offset)
{
    return LOAD_QUAD((__global const S *)((__global const char *)p + offset));
}
