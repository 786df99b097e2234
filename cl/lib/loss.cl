/* What kernels of losses share: labels, clipping, the loss of a sample. Needs lib/real.cl. */

/* The labels of the work-item's lanes, in integers as wide as the result of comparing two V. */
INLINE I labels_of(__global const int *labels, int row)
{
#if VECTOR == 1
    return labels[row * LANES + PART];
#else
    return TO_I(((__global const PASTE(int, VECTOR) *)labels)[(size_t)row * PARTS + PART]);
#endif
}

/* Whether a label is one of `classes`; others, such as -1, mark what does not count. */
INLINE I is_alive(I label, int classes)
{
    return label >= (I)(0) && label < (I)(classes);
}

/* Writes loss and correctness; 0 in dead lanes. */
INLINE void write_loss(__global V *y, int tile, V loss, V correct, I lives)
{
    y += (size_t)tile * 2 * PARTS + PART;
    y[0] = lives ? loss : (V)(0);
    y[PARTS] = lives ? correct : (V)(0);
}

#define LEAST ((V)(NUMBER(1e-7)))
#define MOST ((V)((real)1 - NUMBER(1e-7)))

INLINE V clip(V p)
{
    return p < LEAST ? LEAST : p > MOST ? MOST : p;
}

/* The loss scale, by which gradients are multiplied so that halves can hold them: the first
 * number; 1 where there is none. */
#define SCALE_OF(loss_scale) ((loss_scale) ? (loss_scale)[0] : (real)1)
