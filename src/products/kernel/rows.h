/* The rows of the table of products (products/table.c), in the order in which choices list
 * them. Floor 3. Private to src/products.
 *
 * Each names first the file that makes it, as a path below src/products (.c) and cl/products
 * (.cl): meson reads these words here, so no other list has to know a kernel; then its verbs,
 * which kernel.h declares, and what struct lk_product has of it: name, pass, class, math,
 * takes, order, and at the end what else there is to say, or 0. */
#ifndef LK_PRODUCTS_ROWS_H
#define LK_PRODUCTS_ROWS_H

/* Words for the end of a row. */
#define LK_GATES .gates = true
#define LK_FINISHES .finishes = true
#define LK_ONLY .is_only = true

/* clang-format off */
#define LK_WINOGRAD_ROWS(ROW, family, side) \
    ROW(winograd/fused, lk_winograd_fused, \
        family " fused", FORWARD, CPU, NORMAL, STORED, family, .tile = side, LK_FINISHES) \
    ROW(winograd/gpu, lk_winograd_gpu, \
        family " gemm", FORWARD, GPU, NORMAL, STORED, family " gpu", .tile = side) \
    ROW(winograd/fused, lk_winograd_fused, \
        family " fused", DATA, CPU, NORMAL, FROM_DY, family, .tile = side, LK_GATES) \
    ROW(winograd/gpu, lk_winograd_gpu, \
        family " gemm", DATA, GPU, NORMAL, FROM_DY, family " gpu", .tile = side, LK_GATES) \
    ROW(winograd/fused_weights, lk_winograd_fused_weights, \
        family " fused", WEIGHTS, CPU, NORMAL, FROM_DY, family ": (lanes), parts of squares", \
        .tile = side) \
    ROW(winograd/weights, lk_winograd_weights, \
        family " rounds", WEIGHTS, CPU, NORMAL, FROM_DY, family ": (8 squares lanes)", \
        .tile = side) \
    ROW(winograd/gpu, lk_winograd_gpu, \
        family " gemm", WEIGHTS, GPU, NORMAL, FROM_DY, family ": squares lanes, rounds", \
        .tile = side)

#define LK_PRODUCT_ROWS(ROW) \
    ROW(planes/depthwise, lk_planes_depthwise, \
        "planes depthwise", FORWARD, CPU, STRICT, STORED, "c r s", LK_ONLY) \
    ROW(planes/convolve, lk_planes_convolve, \
        "planes direct", FORWARD, CPU, STRICT, STORED, "c r s", LK_ONLY) \
    ROW(planes/winograd, lk_planes_winograd, \
        "winograd2 planes", FORWARD, CPU, NORMAL, STORED, "winograd2 planes", LK_ONLY, \
        .tile = 2) \
    ROW(planes/winograd, lk_planes_winograd, \
        "winograd4 planes", FORWARD, CPU, NORMAL, STORED, "winograd4 planes", LK_ONLY, \
        .tile = 4) \
    \
    ROW(planes/depthwise, lk_planes_depthwise, \
        "planes depthwise", DATA, CPU, STRICT, STORED, "-r -s", LK_ONLY) \
    ROW(planes/convolve, lk_planes_convolve, \
        "planes direct", DATA, CPU, STRICT, STORED, "k -r -s", LK_ONLY) \
    ROW(planes/winograd, lk_planes_winograd, \
        "planes_winograd2", DATA, CPU, NORMAL, STORED, "winograd2 planes", LK_ONLY, .tile = 2) \
    ROW(planes/winograd, lk_planes_winograd, \
        "planes_winograd4", DATA, CPU, NORMAL, STORED, "winograd4 planes", LK_ONLY, .tile = 4) \
    ROW(planes/weights, lk_planes_weights, \
        "planes weights", WEIGHTS, CPU, STRICT, STORED, \
        "vectors, tree of lanes, parts of vectors", LK_ONLY) \
    \
    ROW(planes/matrix, lk_planes_matrix, \
        "matrix planes", FORWARD, CPU, STRICT, STORED, "c r s", LK_ONLY) \
    ROW(matrix/matrix, lk_matrix_product, \
        "matrix", FORWARD, ANY, STRICT, STORED, "c r s", LK_ONLY) \
    ROW(matrix/matrix, lk_matrix_product, \
        "matrix", DATA, ANY, STRICT, STORED, "k -r -s", LK_ONLY) \
    ROW(matrix/weights, lk_matrix_weights, \
        "matrix", WEIGHTS, CPU, STRICT, STORED, "tiles lanes", LK_ONLY) \
    ROW(matrix/weights, lk_matrix_weights, \
        "panels", WEIGHTS, GPU, STRICT, TRANSPOSED, "tiles lanes", LK_ONLY) \
    \
    ROW(direct/depthwise, lk_direct_depthwise, \
        "depthwise", FORWARD, ANY, STRICT, STORED, "c r s", LK_FINISHES) \
    ROW(direct/depthwise, lk_direct_depthwise, \
        "depthwise", DATA, ANY, STRICT, STORED, "r s", LK_GATES) \
    ROW(direct/depthwise, lk_direct_depthwise, \
        "depthwise", WEIGHTS, CPU, STRICT, STORED, "i j, tree of lanes, parts of tiles", 0) \
    ROW(direct/depthwise_weights, lk_direct_depthwise_weights, \
        "depthwise strips", WEIGHTS, GPU, STRICT, STORED, \
        "strips blocks i j, tree of lanes, parts of strips", 0) \
    \
    ROW(direct/pointwise, lk_direct_pointwise_verbs, \
        "direct pointwise", FORWARD, CPU, STRICT, STORED, "c r s", LK_FINISHES) \
    ROW(direct/gather, lk_direct_gather_verbs, \
        "direct gather", FORWARD, ANY, STRICT, STORED, "c r s", LK_FINISHES) \
    ROW(direct/pointwise, lk_direct_pointwise_verbs, \
        "direct pointwise", DATA, CPU, STRICT, STORED, "k -r -s", LK_GATES) \
    ROW(direct/gather, lk_direct_gather_verbs, \
        "direct gather", DATA, ANY, STRICT, STORED, "k -r -s", LK_GATES) \
    ROW(direct/lanewise_weights, lk_direct_lanewise_weights, \
        "direct lanewise", WEIGHTS, CPU, STRICT, FROM_DY, \
        "areas i j, tree of lanes, parts of areas", 0) \
    ROW(direct/pointwise_weights, lk_direct_pointwise_weights, \
        "direct pointwise", WEIGHTS, CPU, STRICT, FROM_DY, \
        "(4 pixels lanes), parts of areas", 0) \
    ROW(direct/turned_weights, lk_direct_turned_weights, \
        "direct turned", WEIGHTS, CPU, STRICT, FROM_DY, "(9 pixels lanes), parts of areas", 0) \
    ROW(direct/staged_weights, lk_direct_staged_weights, \
        "direct staged", WEIGHTS, ANY, STRICT, FROM_DY, \
        "strips i j, tree of lanes, parts of tiles", 0) \
    \
    ROW(gpu/gather, lk_gpu_gemm, "gemm", FORWARD, GPU, STRICT, STORED, "c/8 r s c%8", 0) \
    ROW(gpu/gather, lk_gpu_gemm, "gemm", DATA, GPU, STRICT, STORED, "k/8 -r -s k%8", LK_GATES) \
    ROW(gpu/weights, lk_gpu_gemm, \
        "gemm", WEIGHTS, GPU, STRICT, STORED, "pixels lanes, parts of pixels", 0) \
    \
    LK_WINOGRAD_ROWS(ROW, "winograd2", 2) \
    LK_WINOGRAD_ROWS(ROW, "winograd4", 4) \
    \
    ROW(library/fft, lk_library_fft, "fft", FORWARD, ANY, NORMAL, STORED, "fft", 0) \
    ROW(library/fft, lk_library_fft, "fft", DATA, ANY, NORMAL, STORED, "fft", 0) \
    ROW(library/fft, lk_library_fft, "fft", WEIGHTS, ANY, NORMAL, STORED, "fft", 0) \
    \
    ROW(library/blas, lk_library_blas, "clblast", FORWARD, ANY, NORMAL, STORED, "clblast", 0) \
    ROW(library/blas, lk_library_blas, "clblast", DATA, ANY, NORMAL, STORED, "clblast", 0) \
    ROW(library/blas, lk_library_blas, "clblast", WEIGHTS, ANY, NORMAL, STORED, "clblast", 0) \
    \
    ROW(gpu/gather, lk_gpu_matrix_gemm, \
        LK_GPU_MATRIX_NAME, FORWARD, GPU, FAST, STORED, "tf32", 0) \
    ROW(gpu/gather, lk_gpu_matrix_gemm, \
        LK_GPU_MATRIX_NAME, DATA, GPU, FAST, STORED, "tf32", LK_GATES) \
    ROW(gpu/weights, lk_gpu_matrix_gemm, \
        LK_GPU_MATRIX_NAME, WEIGHTS, GPU, FAST, STORED, "tf32", 0)
/* clang-format on */

#endif
