/* The gradient behind a relu that ends an operation: dy where y > 0, else 0. Needs lib/real.cl.
 * -D: RELU: 0: there is none, or dy has the zeros already; then y is not read. */
INLINE V pass(V dy, V y)
{
#if RELU
    return y > (V)0 ? dy : (V)0;
#else
    return dy;
#endif
}
