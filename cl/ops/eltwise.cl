/* Functions of every element, and sums and products of two tensors of one shape.
 *
 *   eltwise_forward   y = f(x)               -D FUNCTION_<name> selects f
 *   eltwise_backward  dx = dy * f'(x)        from kept: y where F_SLOPE speaks of y, else x
 *   add_two           to = a + b             to may be a
 *   multiply_two      to = a * b
 *
 * Tensors: stored [rows][LANES]. Group id 0: `each` rows. Work-items: PARTS of a row.
 */
#include "lib/real.cl"

#define ZERO ((V)0)
#define ONE ((V)1)
#define SIGMOID(x) (ONE / (ONE + exp(-(x))))

/* F(x) and F_SLOPE(k); k is x or y as the row in src/ops/eltwise.c says. A comparison with NaN
 * is false and must then choose the argument. */
#if defined(FUNCTION_relu)
#define F(x) ((x) < ZERO ? ZERO : (x))
#define F_SLOPE(y) ((y) > ZERO ? ONE : ZERO)
#elif defined(FUNCTION_relu6)
#define F(x) ((x) < ZERO ? ZERO : (x) > (V)6 ? (V)6 : (x))
#define F_SLOPE(y) ((y) > ZERO && (y) < (V)6 ? ONE : ZERO)
#elif defined(FUNCTION_leaky_relu)
#define F(x) ((x) < ZERO ? alpha * (x) : (x))
#define F_SLOPE(y) ((y) > ZERO ? ONE : (V)alpha)
#elif defined(FUNCTION_elu)
#define F(x) ((x) < ZERO ? alpha * expm1(x) : (x))
#define F_SLOPE(y) ((y) > ZERO ? ONE : (y) + alpha)
#elif defined(FUNCTION_sigmoid)
#define F(x) SIGMOID(x)
#define F_SLOPE(y) ((y) * (ONE - (y)))
#elif defined(FUNCTION_hard_sigmoid)
#define LINE(x) (alpha * (x) + beta)
#define F(x) (LINE(x) < ZERO ? ZERO : LINE(x) > ONE ? ONE : LINE(x))
#define F_SLOPE(y) ((y) > ZERO && (y) < ONE ? (V)alpha : ZERO)
#elif defined(FUNCTION_tanh)
#define F(x) tanh(x)
#define F_SLOPE(y) (ONE - (y) * (y))
#elif defined(FUNCTION_softsign)
#define F(x) ((x) / (ONE + fabs(x)))
#define F_SLOPE(y) ((ONE - fabs(y)) * (ONE - fabs(y)))
#elif defined(FUNCTION_exp)
#define F(x) exp(x)
#define F_SLOPE(y) (y)
#elif defined(FUNCTION_softplus)
#define F(x) (((x) < ZERO ? ZERO : (x)) + log1p(exp(-fabs(x))))
#define F_SLOPE(x) SIGMOID(x)
#elif defined(FUNCTION_gelu)
#define NORMAL(x) (NUMBER(0.5) * (ONE + erf((x) * NUMBER(0.7071067811865476))))
#define F(x) ((x) * NORMAL(x))
#define F_SLOPE(x)                                                                             \
    (NORMAL(x) + (x) * NUMBER(0.3989422804014327) * exp(-NUMBER(0.5) * (x) * (x)))
#elif defined(FUNCTION_silu)
#define F(x) ((x) * SIGMOID(x))
#define F_SLOPE(x) (SIGMOID(x) * (ONE + (x) * (ONE - SIGMOID(x))))
#elif defined(FUNCTION_hard_swish)
#define F(x) ((x) < (V)-3 ? ZERO : (x) > (V)3 ? (x) : (x) * ((x) + (real)3) / (real)6)
#define F_SLOPE(x)                                                                             \
    ((x) < (V)-3 ? ZERO : (x) > (V)3 ? ONE : ((real)2 * (x) + (real)3) / (real)6)
#elif defined(FUNCTION_abs)
#define F(x) fabs(x)
#define F_SLOPE(x) ((x) > ZERO ? ONE : (x) < ZERO ? -ONE : ZERO)
#elif defined(FUNCTION_square)
#define F(x) ((x) * (x))
#define F_SLOPE(x) ((real)2 * (x))
#endif

#ifdef F
KERNEL void eltwise_forward(__global const S *restrict x, __global S *restrict y, int rows,
                            int each, real alpha, real beta)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        const V v = LOAD(x + at);
        STORE(y + at, F(v));
    }
}

KERNEL void eltwise_backward(__global const S *restrict kept, __global const S *restrict dy,
                             __global S *restrict dx, int rows, int each, real alpha, real beta)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        const V v = LOAD(kept + at);
        STORE(dx + at, LOAD(dy + at) * F_SLOPE(v));
    }
}
#else
KERNEL void add_two(__global const S *a, __global const S *b, __global S *to, int rows,
                    int each)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        STORE(to + at, LOAD(a + at) + LOAD(b + at));
    }
}

KERNEL void multiply_two(__global const S *a, __global const S *b, __global S *to, int rows,
                         int each)
{
    const int first = get_group_id(0) * each, last = min(rows, first + each);
    for (int row = first; row < last; row++) {
        const size_t at = (size_t)row * PARTS + PART;
        STORE(to + at, LOAD(a + at) * LOAD(b + at));
    }
}
#endif
