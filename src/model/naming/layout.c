/* Converts parameters between our layout and those of Keras and PyTorch. */
#include "model/naming/layout.h"

#include "base/fail.h"
#include "base/option.h"
#include <string.h>

/* --- order of axes ------------------------------------------------------------------------ */

/* Which of our axes the axes of others are; op NULL: of any, such as a number for each element
 * of an image. */
struct axes {
    const char *op;
    int rank, keras[LK_MOST_AXES], torch[LK_MOST_AXES];
};

static const struct axes table[] = {
    {"conv2d", 4, .keras = {1, 2, 0, 3}, .torch = {3, 0, 1, 2}},
    {"conv2d_transpose", 4, .keras = {1, 2, 0, 3}, .torch = {3, 0, 1, 2}},
    {"conv1d", 3, .keras = {0, 1, 2}, .torch = {2, 1, 0}},
    {"dense", 2, .keras = {0, 1}, .torch = {1, 0}},
    {"lstm", 2, .keras = {0, 1}, .torch = {1, 0}},
    {"gru", 2, .keras = {0, 1}, .torch = {1, 0}},
    {"rnn", 2, .keras = {0, 1}, .torch = {1, 0}},
    {NULL, 3, .keras = {1, 2, 0}, .torch = {0, 1, 2}},
};

static const int as_ours[LK_MOST_AXES] = {0, 1, 2, 3};

static const int *axes_of(const struct lk_node *node, int index, enum lk_layout_kind kind)
{
    const int rank = node->shapes.param[index].shape.rank;
    for (int i = 0; i < LK_COUNT(table) && kind != LK_LAYOUT_OWN; i++)
        if (table[i].rank == rank && (!table[i].op || strcmp(table[i].op, node->op->name) == 0))
            return kind == LK_LAYOUT_KERAS ? table[i].keras : table[i].torch;
    return as_ours;
}

static bool is_depthwise(const struct lk_node *node, int index)
{
    const struct lk_shape *own = &node->shapes.param[index].shape;
    return strcmp(node->op->name, "conv2d") == 0 && own->rank == 4 && own->dim[0] == 1 &&
           node->shapes.x[0].dim[0] > 1;
}

/* Sets shape and strides from the order of axes. */
static void place_axes(const int *axes, struct lk_layout *layout)
{
    int64_t stride = 1;
    layout->rank = layout->own.rank;
    for (int i = layout->rank - 1; i >= 0; i--) {
        layout->shape[i] = layout->own.dim[axes[i]];
        layout->stride[axes[i]] = stride;
        stride *= layout->shape[i];
    }
}

/* --- order of features -------------------------------------------------------------------- */

static bool same_shape(const struct lk_shape *a, const struct lk_shape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

static enum lk_status take_order(struct lk_arena *arena, int64_t count, int64_t **order)
{
    void *memory;
    LK_TRY(lk_arena_allocate(arena, (size_t)count * sizeof **order, &memory));
    *order = memory;
    return LK_OK;
}

/* Where each element of an image [c][h][w] is in one of [h][w][c]. */
static enum lk_status image_order(const struct lk_shape *image, struct lk_arena *arena,
                                  const int64_t **order)
{
    const int64_t channels = image->dim[0], pixels = image->dim[1] * image->dim[2];
    int64_t *made;
    if (pixels == 1 || channels == 1)
        return LK_OK;
    LK_TRY(take_order(arena, channels * pixels, &made));
    for (int64_t c = 0; c < channels; c++)
        for (int64_t p = 0; p < pixels; p++)
            made[c * pixels + p] = p * channels + c;
    *order = made;
    return LK_OK;
}

static enum lk_status made_order(const struct lk_node *node, struct lk_arena *arena,
                                 const int64_t **order);

/* Of vectors that are joined: those of each, behind those of the ones before. */
static enum lk_status joined_order(const struct lk_node *node, struct lk_arena *arena,
                                   const int64_t **order)
{
    int64_t *made = NULL, first = 0;
    for (int i = 0; i < node->inputs; i++) {
        const struct lk_node *part = node->input_nodes[i];
        const int64_t *own = NULL, count = part->shapes.y.dim[0];
        LK_TRY(made_order(part, arena, &own));
        if (!made)
            LK_TRY(take_order(arena, node->shapes.y.dim[0], &made));
        for (int64_t e = 0; e < count; e++)
            made[first + e] = first + (own ? own[e] : e);
        first += count;
    }
    *order = made;
    return LK_OK;
}

static bool joins_vectors(const struct lk_node *node)
{
    int64_t sum = 0;
    for (int i = 0; i < node->inputs; i++) {
        if (node->input_nodes[i]->shapes.y.rank != 1)
            return false;
        sum += node->input_nodes[i]->shapes.y.dim[0];
    }
    return strcmp(node->op->name, "concat") == 0 && sum == node->shapes.y.dim[0];
}

/* The order that the features of a vector have in Keras because of how they were made; left as
 * it is where that is ours. */
static enum lk_status made_order(const struct lk_node *node, struct lk_arena *arena,
                                 const int64_t **order)
{
    while (node->op && node->shapes.y.rank == 1) {
        const struct lk_shape *x = &node->input_nodes[0]->shapes.y;
        if (node->op->is_view && x->rank == 3)
            return image_order(x, arena, order);
        if (joins_vectors(node))
            return joined_order(node, arena, order);
        if (!same_shape(x, &node->shapes.y) || strcmp(node->op->name, "dense") == 0)
            break;
        node = node->input_nodes[0];
    }
    return LK_OK;
}

static bool reads(const struct lk_node *reader, const struct lk_node *node)
{
    for (int i = 0; i < reader->inputs; i++)
        if (reader->input_nodes[i] == node)
            return true;
    return false;
}

/* The order that the features of a vector have in Keras because an image is made of them. */
static enum lk_status wanted_order(const struct lk_node *node, struct lk_arena *arena,
                                   const int64_t **order)
{
    const struct lk_graph *graph = node->graph;
    for (int i = node->index + 1; i < graph->count && node->shapes.y.rank == 1; i++) {
        const struct lk_node *reader = graph->nodes[i];
        if (!reads(reader, node))
            continue;
        if (reader->op->is_view && reader->shapes.y.rank == 3)
            return image_order(&reader->shapes.y, arena, order);
        if (same_shape(&reader->shapes.y, &node->shapes.y) &&
            strcmp(reader->op->name, "dense") != 0)
            node = reader;
    }
    return LK_OK;
}

/* --- gates ------------------------------------------------------------------------------- */

static bool is_gru(const struct lk_node *node)
{
    return strcmp(node->op->name, "gru") == 0;
}

/* Whether the reset gate of a gru multiplies the state itself, as no gru of PyTorch does. */
static bool resets_before(const struct lk_node *node)
{
    return lk_option_is(node->op->options, node->options, "reset_after", "false");
}

/* PyTorch's gru has the reset gate before the update gate. */
static enum lk_status gate_order(struct lk_arena *arena, struct lk_layout *layout)
{
    const int last = layout->own.rank - 1;
    const int64_t columns = layout->own.dim[last], units = columns / 3;
    int64_t *made;
    LK_TRY(take_order(arena, columns, &made));
    for (int64_t i = 0; i < columns; i++)
        made[i] = i < units ? i + units : i < 2 * units ? i - units : i;
    layout->order[last] = made;
    return LK_OK;
}

/* Keras's gru has its two biases, where it resets after the product, in one array. */
static void join_biases(const struct lk_node *node, int index, struct lk_layout *layout)
{
    const int first = 2, biases = node->shapes.params - first;
    if (biases < 2 || index < first)
        return;
    layout->rank = 2;
    layout->shape[0] = biases;
    layout->shape[1] = layout->own.dim[0];
    layout->first = (index - first) * layout->own.dim[0];
}

/* --- describing --------------------------------------------------------------------------- */

static enum lk_status order_features(const struct lk_node *node, struct lk_arena *arena,
                                     struct lk_layout *layout)
{
    const bool is_dense = strcmp(node->op->name, "dense") == 0;
    if (node->shapes.x[0].rank != 1 || layout->own.rank == 0)
        return LK_OK;
    if (is_dense && layout->own.rank == 2)
        LK_TRY(made_order(node->input_nodes[0], arena, &layout->order[0]));
    else if (!is_dense)
        LK_TRY(made_order(node, arena, &layout->order[0]));
    const int last = layout->own.rank - 1;
    return layout->order[last] ? LK_OK : wanted_order(node, arena, &layout->order[last]);
}

/* Keras keeps the slopes of an image's channels as [1][1][c]. */
static bool is_slope_of_channels(const struct lk_node *node, int index)
{
    return strcmp(node->op->name, "prelu") == 0 && node->shapes.x[0].rank == 3 &&
           node->shapes.param[index].shape.rank == 1;
}

static bool is_attention(const struct lk_node *node)
{
    return node->op && strcmp(node->op->name, "attention") == 0;
}

/* Whether a dense layer makes what attention reads, or reads what it makes. */
static bool is_of_attention(const struct lk_node *node)
{
    if (strcmp(node->op->name, "dense") != 0)
        return false;
    for (int i = node->index + 1; i < node->graph->count; i++) {
        const struct lk_node *reader = node->graph->nodes[i];
        for (int k = 0; k < reader->inputs && is_attention(reader); k++)
            if (reader->input_nodes[k] == node)
                return true;
    }
    return is_attention(node->input_nodes[0]);
}

enum lk_status lk_layout_describe(const struct lk_node *node, int index,
                                  enum lk_layout_kind kind, struct lk_arena *arena,
                                  struct lk_layout *layout)
{
    *layout = (struct lk_layout){.own = node->shapes.param[index].shape};
    place_axes(axes_of(node, index, kind), layout);
    if (is_gru(node) && kind == LK_LAYOUT_TORCH) {
        if (resets_before(node))
            layout->refused = "PyTorch's gru resets after the product, and this one, with "
                              "reset_after=false, before it";
        return gate_order(arena, layout);
    }
    if (kind != LK_LAYOUT_KERAS)
        return LK_OK;
    if (is_gru(node))
        join_biases(node, index, layout);
    if (is_slope_of_channels(node, index)) {
        layout->rank = 3;
        layout->shape[2] = layout->shape[0];
        layout->shape[0] = layout->shape[1] = 1;
    }
    layout->has_heads = is_of_attention(node);
    if (is_depthwise(node, index)) {
        layout->is_depthwise = true;
        layout->shape[2] = node->shapes.x[0].dim[0];
        layout->shape[3] /= layout->shape[2];
    }
    return order_features(node, arena, layout);
}

static bool fits(const int64_t *wanted, int axes, int rank, const int64_t *shape)
{
    int at = 0;
    for (int i = 0; i < axes; i++) {
        while (at < rank && shape[at] != wanted[i] && shape[at] == 1)
            at++;
        if (at == rank || shape[at++] != wanted[i])
            return false;
    }
    while (at < rank && shape[at] == 1)
        at++;
    return at == rank;
}

/* Whether it is the kernel of a convolution of 1x1, [1][1][in][out] or [out][in][1][1] there: a
 * dense layer on an image, whose kernel has two axes, computes the same. */
static bool is_pixelwise(const struct lk_layout *layout)
{
    const int64_t *shape = layout->shape;
    return layout->rank == 4 && layout->own.rank == 4 && layout->own.dim[1] == 1 &&
           layout->own.dim[2] == 1 && !layout->is_depthwise &&
           ((shape[0] == 1 && shape[1] == 1) || (shape[2] == 1 && shape[3] == 1));
}

/* Whether one of the layout's axes is two of the array's: [c][heads][width], [heads][width][c],
 * [heads][width]. */
static bool splits_features(const struct lk_layout *layout, int rank, const int64_t *shape)
{
    int64_t count = 1;
    for (int i = 0; i < rank && count <= INT64_MAX / (shape[i] + 1); i++)
        count *= shape[i];
    return rank == layout->rank + 1 && count == lk_layout_count(layout) &&
           (layout->rank == 1 || shape[0] == layout->shape[0] ||
            shape[rank - 1] == layout->shape[layout->rank - 1]);
}

bool lk_layout_fits(const struct lk_layout *layout, int rank, const int64_t *shape)
{
    int64_t other[LK_MOST_AXES];
    if (fits(layout->shape, layout->rank, rank, shape))
        return true;
    if (layout->own.rank == 1 && layout->rank == 3) /* axes of length 1 may be missing, too */
        return fits(layout->shape + 2, 1, rank, shape);
    if (layout->has_heads && splits_features(layout, rank, shape))
        return true;
    if (is_pixelwise(layout))
        return fits(layout->shape + (layout->shape[0] == 1 ? 2 : 0), 2, rank, shape);
    if (!layout->is_depthwise)
        return false;
    memcpy(other, layout->shape, sizeof other);
    other[3] *= other[2];
    other[2] = 1;
    return fits(other, layout->rank, rank, shape);
}

int64_t lk_layout_count(const struct lk_layout *layout)
{
    int64_t count = 1;
    for (int i = 0; i < layout->rank; i++)
        count *= layout->shape[i];
    return count;
}

/* --- converting --------------------------------------------------------------------------- */

/* The layout with all axes that there may be, those in front of length 1. One of both sides is
 * read and the other written; elements are copied as bits. */
struct copy {
    int64_t dim[LK_MOST_AXES], stride[LK_MOST_AXES];
    const int64_t *order[LK_MOST_AXES];
    size_t bytes;
    char *ours, *theirs;
    bool takes;
};

static int64_t place(const struct copy *copy, int axis, int64_t i)
{
    return copy->stride[axis] * (copy->order[axis] ? copy->order[axis][i] : i);
}

/* Copies a row of the last axis, whose first element is number `first` of theirs. */
static void copy_row(struct copy *copy, int64_t first)
{
    const int last = LK_MOST_AXES - 1;
    const size_t n = copy->bytes;
    for (int64_t i = 0; i < copy->dim[last]; i++, copy->ours += n) {
        char *theirs = copy->theirs + (size_t)(first + place(copy, last, i)) * n;
        memcpy(copy->takes ? copy->ours : theirs, copy->takes ? theirs : copy->ours, n);
    }
}

static void copy_all(const struct lk_layout *layout, struct copy *copy)
{
    const int before = LK_MOST_AXES - layout->own.rank;
    for (int i = 0; i < LK_MOST_AXES; i++) {
        const bool is_there = i >= before;
        copy->dim[i] = is_there ? layout->own.dim[i - before] : 1;
        copy->stride[i] = is_there ? layout->stride[i - before] : 0;
        copy->order[i] = is_there ? layout->order[i - before] : NULL;
    }
    for (int64_t i = 0; i < copy->dim[0]; i++)
        for (int64_t j = 0; j < copy->dim[1]; j++)
            for (int64_t k = 0; k < copy->dim[2]; k++)
                copy_row(copy, layout->first + place(copy, 0, i) + place(copy, 1, j) +
                                   place(copy, 2, k));
}

void lk_layout_take(const struct lk_layout *layout, size_t bytes, const void *theirs,
                    void *ours)
{
    struct copy copy = {
        .bytes = bytes, .ours = ours, .theirs = (char *)(uintptr_t)theirs, .takes = true};
    copy_all(layout, &copy);
}

void lk_layout_give(const struct lk_layout *layout, size_t bytes, const void *ours,
                    void *theirs)
{
    struct copy copy = {.bytes = bytes, .ours = (char *)(uintptr_t)ours, .theirs = theirs};
    copy_all(layout, &copy);
}
