/* In which order other programs keep a parameter's numbers, and converting them. Floor 6. Knows
 * operations and their parameters as words; no file and no names of layers.
 *
 * Ours: a convolution's weights [in / groups][r][s][out], those of a transposed one
 * [out / groups][r][s][in], a dense layer's [in][out], a number for each element of an image
 * [c][h][w], else a vector. Keras: [r][s][in / groups][out], of a convolution of every channel
 * by itself [r][s][in][multiplier], of a transposed one [r][s][out][in], [in][out], [h][w][c].
 * PyTorch: [out][in / groups][r][s], [in][out / groups][r][s], [out][in], [c][h][w]. Keras
 * flattens an image as [h][w][c], we and PyTorch as [c][h][w]: what reads or makes such
 * features is reordered. Of recurrent layers we and Keras have [in][gates][units], PyTorch
 * [gates][units][in]; its gru has the reset gate first. Keras keeps both biases of a gru as one
 * array [2][gates][units]. */
#ifndef LK_MODEL_NAMING_LAYOUT_H
#define LK_MODEL_NAMING_LAYOUT_H

#include "base/arena.h"
#include "graph/nodes/node.h"

enum lk_layout_kind { LK_LAYOUT_OWN, LK_LAYOUT_KERAS, LK_LAYOUT_TORCH };

/* shape[rank]: as a file of that kind has the parameter. The element of our indices i lies at
 * the sum over our axes a of stride[a] * (order[a] ? order[a][i[a]] : i[a]). */
struct lk_layout {
    struct lk_shape own;
    int rank;
    int64_t shape[LK_MOST_AXES], stride[LK_MOST_AXES];
    const int64_t *order[LK_MOST_AXES];
    int64_t first;     /* of theirs, where our first element lies: an array may hold several of
                        * our parameters, which all have its shape */
    bool is_depthwise; /* Keras: the last two axes may be [1][in * multiplier] as well */
    bool has_heads;    /* Keras: of attention, whose features may be two axes, [heads][width] */
    const char *refused; /* why that program has no such layer, so that the numbers of its
                          * nearest one would mean something else; NULL: it has */
};

/* Describes parameter `index` of a node. What `order` points to lies in the arena.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_layout_describe(const struct lk_node *node, int index,
                                                enum lk_layout_kind kind,
                                                struct lk_arena *arena,
                                                struct lk_layout *layout);

/* Whether an array of that shape has the layout; further axes of length 1 are allowed. */
bool lk_layout_fits(const struct lk_layout *layout, int rank, const int64_t *shape);

/* Elements of the whole array. */
int64_t lk_layout_count(const struct lk_layout *layout);

/* Copy all elements of `bytes` (4 or 8) each: theirs into ours, or ours into theirs. */
void lk_layout_take(const struct lk_layout *layout, size_t bytes, const void *theirs,
                    void *ours);
void lk_layout_give(const struct lk_layout *layout, size_t bytes, const void *ours,
                    void *theirs);

#endif
