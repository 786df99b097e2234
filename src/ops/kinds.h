/* Kinds of things that operations say of themselves. Floor 4. */
#ifndef LK_OPS_KINDS_H
#define LK_OPS_KINDS_H

/* First values of a parameter. */
enum lk_init {
    LK_INIT_ZEROS,
    LK_INIT_ONES,
    LK_INIT_GLOROT_UNIFORM,
    LK_INIT_QUARTER,
    LK_INIT_UNIFORM,    /* U(-0.05, 0.05), as Keras's of that name */
    LK_INIT_ORTHOGONAL, /* of a matrix: its rows are orthogonal and of length 1, or its columns
                         * where they are fewer */
    LK_INIT_FORGET_GATE /* of the biases of four gates: ones for the second, else zeros */
};

/* How an operation computes images in plane tiles (tensor/tensor.h): not at all, as if they
 * were [c, vectors, 1], or knowing them. */
enum lk_op_planes { LK_PLANES_NONE, LK_PLANES_OWN, LK_PLANES_KNOWN };

#endif
