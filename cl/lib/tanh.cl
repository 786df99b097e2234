/* tanh and the logistic function for recurrent cells, where they take a good part of the time.
 * Vectors of floats: tanh(x) = x P(x^2) / Q(x^2), to some 3e-7 of 1; elsewhere the language's
 * own functions. A NaN stays one. Needs lib/real.cl.
 * source: the rational fit of Eigen's vectorized tanh */
#if VECTOR > 1 && REAL_BYTES == 4
INLINE V tanh_of(V x)
{
    const V most = (V)7.90531110763549805f;
    const V below_most = x > most ? most : x; /* one instruction each; of a NaN a NaN */
    const V v = below_most < -most ? -most : below_most, q = v * v;
    V p = FMA(q, (V)-2.76076847742355e-16f, (V)2.00018790482477e-13f);
    p = FMA(p, q, (V)-8.60467152213735e-11f);
    p = FMA(p, q, (V)5.12229709037114e-08f);
    p = FMA(p, q, (V)1.48572235717979e-05f);
    p = FMA(p, q, (V)6.37261928875436e-04f);
    p = FMA(p, q, (V)4.89352455891786e-03f);
    V below = FMA(q, (V)1.19825839466702e-06f, (V)1.18534705686654e-04f);
    below = FMA(below, q, (V)2.26843463243900e-03f);
    below = FMA(below, q, (V)4.89352518554385e-03f);
    return v * p / below;
}

INLINE V logistic(V x)
{
    return FMA((V)0.5f, tanh_of(0.5f * x), (V)0.5f);
}
#else
INLINE V tanh_of(V x)
{
    return tanh(x);
}

INLINE V logistic(V x)
{
    return (V)(1) / ((V)(1) + exp(-x));
}
#endif
