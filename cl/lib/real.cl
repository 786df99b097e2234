/* The number types of every kernel. -D: REAL (float, double), REAL_BYTES, LANES: samples in a
 * batch tile, VECTOR: of these, how many one work-item holds, STORED_BYTES.
 *
 * V is VECTOR reals: a vector in one work-item (CPU class) or a single real (GPU class). A tile
 * row of LANES samples is PARTS values V, and a work-group has PARTS work-items, one each: an
 * array [..][LANES] of reals is an array [..][PARTS] of V, read at [.. * PARTS + PART].
 */
#pragma OPENCL FP_CONTRACT OFF
#if REAL_BYTES == 8
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
typedef REAL real;
/* A real constant with a fraction: 0.5 alone is a double, which not every device has. */
#if REAL_BYTES == 8
#define NUMBER(x) (x)
#else
#define NUMBER(x) PASTE(x, f)
#endif
#if VECTOR == 1
typedef real V;
typedef int I;
typedef uchar B;
#define TO_B(x) convert_uchar(x)
#define TO_I(x) convert_int(x)
#else
typedef PASTE(REAL, VECTOR) V;
#if REAL_BYTES == 8
typedef PASTE(long, VECTOR) I; /* what comparing two V gives */
#define TO_I(x) PASTE(convert_long, VECTOR)(x)
#else
typedef PASTE(int, VECTOR) I;
#define TO_I(x) PASTE(convert_int, VECTOR)(x)
#endif
typedef PASTE(uchar, VECTOR) B;
#define TO_B(x) PASTE(convert_uchar, VECTOR)(x)
#endif
/* The bits of floats as an I, and back. */
#if VECTOR == 1
#define BITS(x) as_int(x)
#define OF_BITS(x) as_float(x)
#else
#define BITS(x) PASTE(as_int, VECTOR)(x)
#define OF_BITS(x) PASTE(as_float, VECTOR)(x)
#endif

/* How activations and their gradients are stored: as reals, or (STORED_BYTES 2) as halves. An
 * array of S has as many elements as one of V. p points to an S in global memory, to a `stored`
 * for a single lane. Stores round to nearest even, which is the default: asking for it makes
 * libclc use 90 instructions instead of one. */
#if defined(STORED_BYTES) && STORED_BYTES == 2
typedef ushort stored;
#define LOAD_LANE(p) vload_half(0, (__global const half *)(p))
#if VECTOR == 1
typedef ushort S;
#define LOAD(p) vload_half(0, (__global const half *)(p))
#define STORE(p, v) vstore_half(v, 0, (__global half *)(p))
#else
typedef PASTE(ushort, VECTOR) S;
#define LOAD(p) PASTE(vload_half, VECTOR)(0, (__global const half *)(p))
#define STORE(p, v) PASTE(vstore_half, VECTOR)(v, 0, (__global half *)(p))
#endif
#else
typedef real stored;
#define LOAD_LANE(p) (*(p))
typedef V S;
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#endif

/* VECTOR reals in a row, from any real on. PoCL makes four instructions of a vload16. */
#if VECTOR > 1 && defined(__has_attribute)
#if __has_attribute(aligned)
typedef __attribute__((aligned(REAL_BYTES))) V anywhere;
#define ROW_LOAD(p) (*(__global const anywhere *)(p))
#define ROW_STORE(p, v) (*(__global anywhere *)(p) = (v))
#endif
#endif
#ifndef ROW_LOAD
#if VECTOR > 1
#define ROW_LOAD(p) PASTE(vload, VECTOR)(0, p)
#define ROW_STORE(p, v) PASTE(vstore, VECTOR)(v, 0, p)
#else
#define ROW_LOAD(p) (*(p))
#define ROW_STORE(p, v) (*(p) = (v))
#endif
#endif

#define PARTS (LANES / VECTOR)
#if PARTS == 1
#define PART 0
#else
#define PART ((int)get_local_id(0))
#endif

#define UNROLL _Pragma("unroll")
/* For loops that gain nothing from unrolling, which then takes long to compile. */
#define ROLLED _Pragma("unroll 1")
#define INLINE static inline __attribute__((always_inline))
/* Asks LLVM to use the CPU's widest registers. */
#if defined(__has_attribute) && VECTOR > 1
#if __has_attribute(min_vector_width)
#define WIDE __attribute__((min_vector_width(512)))
#endif
#endif
#ifndef WIDE
#define WIDE
#endif
/* Keeps Intel's compiler for CPUs from vectorizing over work-items, which hold vectors already;
 * it dies of that in a BODY. */
#if defined(__has_attribute) && VECTOR > 1
#if __has_attribute(intel_vec_len_hint)
#define NOT_SPREAD __attribute__((intel_vec_len_hint(1)))
#endif
#endif
#ifndef NOT_SPREAD
#define NOT_SPREAD
#endif
/* The body of a long kernel, called with its group's ids. PoCL makes three copies of a kernel
 * and of everything inlined in it that asks for ids. A body that is not inlined and asks for
 * none is compiled once, in a third of the time. Local memory has to be an argument of the
 * kernel: an array declared in it would become one that all groups share. */
#if defined(__has_attribute) && VECTOR > 1
#if __has_attribute(noinline)
#define BODY static WIDE __attribute__((noinline))
#endif
#endif
#ifndef BODY
#define BODY INLINE
#endif
/* A kernel whose arguments end in GROUP_ARGS, and which asks for its ids by GROUP_ID() and
 * GROUP_COUNT(), can be one of a chain (cl/device/chain.cl): there it is a function. */
#ifdef CHAINED
#define KERNEL BODY
#define GROUP_ARGS , const int *group_of, const int *groups_of
#define GROUP_ID(d) group_of[d]
#define GROUP_COUNT(d) groups_of[d]
#else
#define KERNEL __kernel WIDE NOT_SPREAD __attribute__((reqd_work_group_size(PARTS, 1, 1)))
#define GROUP_ARGS
#define GROUP_ID(d) ((int)get_group_id(d))
#define GROUP_COUNT(d) ((int)get_num_groups(d))
#endif

/* A multiply-add, rounded once where the device has an instruction for it; results are compared
 * bit for bit only between such devices. */
#if REAL_BYTES == 8 || defined(FP_FAST_FMAF) || VECTOR > 1
#define FMA(a, b, c) fma(a, b, c)
#else
#define FMA(a, b, c) mad(a, b, c)
#endif
