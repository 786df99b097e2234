/* ONNX's products of matrices, of whole arrays. */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx/convert.h"
#include "model/onnx_arrays/tables.h"
#include <string.h>

static enum lk_status turn(draft *d, value *x)
{
    static const int order[] = {1, 0};
    return lk_whole_order(d, x, order, x);
}

/* Whether the operators for batches should compute it: one row times so large a matrix that
 * is known that it should be a layer's weights. */
static bool is_large(const draft *d, const value *x)
{
    enum { LARGE = 1 << 20 };
    const value *matrix = lk_onnx_input(d, 1), *bias = lk_onnx_input(d, 2);
    return x && x->node && x->rank == 2 && x->dim[0] == 1 && matrix && matrix->constant &&
           matrix->constant->count > LARGE && (!bias || bias->constant);
}

static enum lk_status gemm(draft *d)
{
    value a, b, c;
    int64_t turns_a, turns_b;
    bool done = false;
    if (is_large(d, lk_onnx_input(d, 0)) && !lk_onnx_find_attribute(d->node, "broadcast"))
        return lk_onnx_convert_batch(d, &done);
    const double alpha = lk_whole_say(d, "alpha", 1), beta = lk_whole_say(d, "beta", 1);
    LK_TRY(lk_whole_input(d, 0, &a));
    LK_TRY(lk_whole_weight(d, 1, &b));
    LK_TRY(lk_onnx_say_integer(d, "transA", 0, &turns_a));
    LK_TRY(lk_onnx_say_integer(d, "transB", 0, &turns_b));
    if (a.rank != 2 || b.rank != 2)
        return lk_onnx_fail(d, "matrices are expected");
    if (turns_a)
        LK_TRY(turn(d, &a));
    if (turns_b)
        LK_TRY(turn(d, &b));
    LK_TRY(lk_whole_matmul(d, &a, &b, &a));
    if (alpha != 1)
        LK_TRY(lk_whole_with(d, "product", &a, alpha, &a));
    if (lk_whole_has(d, 2)) {
        LK_TRY(lk_whole_weight(d, 2, &c));
        if (beta != 1)
            LK_TRY(lk_whole_with(d, "product", &c, beta, &c));
        LK_TRY(lk_whole_two(d, "sum", &a, &c, &a));
    }
    return lk_onnx_give(d, 0, &a);
}

/* A vector is a matrix of one row, or of one column, for a while. */
static enum lk_status mat_mul(draft *d)
{
    value a, b;
    LK_TRY(lk_whole_input(d, 0, &a));
    LK_TRY(lk_whole_weight(d, 1, &b));
    if (a.rank < 1 || b.rank < 1)
        return lk_onnx_fail(d, "matrices or vectors are expected");
    const bool is_row = a.rank == 1, is_column = b.rank == 1;
    if (is_row)
        LK_TRY(lk_whole_reshape(d, &a, 2, (const int64_t[]){1, a.dim[0]}));
    if (is_column)
        LK_TRY(lk_whole_reshape(d, &b, 2, (const int64_t[]){b.dim[0], 1}));
    LK_TRY(lk_whole_matmul(d, &a, &b, &a));
    lk_whole_drop_axes(&a, (is_row ? 1u << (a.rank - 2) : 0) |
                               (is_column ? 1u << (a.rank - 1) : 0));
    return lk_onnx_give(d, 0, &a);
}

/* --- Einsum ------------------------------------------------------------------------------ */

enum { MOST_LETTERS = 16 };

/* "ij, jk -> ik" taken apart; letters are axes. */
struct equation {
    char term[3][MOST_LETTERS + 1]; /* of both inputs and of the result */
    int terms;
    bool has_arrow;
};

static bool take_term(const char **at, char term[MOST_LETTERS + 1])
{
    int found = 0;
    for (; **at && **at != ',' && strncmp(*at, "->", 2) != 0; ++*at) {
        const char c = **at;
        if (c == ' ')
            continue;
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter || found == MOST_LETTERS)
            return false;
        term[found++] = c;
    }
    return true;
}

/* Without an arrow the result has the letters that occur once, in their alphabet's order. */
static void imply_result(struct equation *e)
{
    int found = 0;
    for (int c = 'A'; c <= 'z' && found < MOST_LETTERS; c++) {
        int seen = 0;
        for (int t = 0; t < e->terms; t++)
            for (const char *at = e->term[t]; *at; at++)
                seen += *at == c;
        if (seen == 1)
            e->term[2][found++] = (char)c;
    }
}

static enum lk_status parse(draft *d, struct equation *e)
{
    const char *text;
    bool fits = true;
    *e = (struct equation){0};
    LK_TRY(lk_onnx_say_text(d, "equation", "", &text));
    const char *at = text;
    for (e->terms = 0; fits && e->terms < 2; at++) {
        fits = take_term(&at, e->term[e->terms++]);
        if (*at != ',')
            break;
    }
    if (fits && strncmp(at, "->", 2) == 0) {
        at += 2;
        e->has_arrow = true;
        fits = take_term(&at, e->term[2]);
    }
    if (!fits || *at || e->terms != d->node->input_count)
        return lk_onnx_fail(d, "'equation' %.60s: one or two inputs of letters are supported",
                            text);
    if (!e->has_arrow)
        imply_result(e);
    return LK_OK;
}

/* x with the axes of `letters`: its own ones in their order, 1 where it has not one. What
 * occurs twice in its term is a diagonal; what is in no other place is summed. */
static enum lk_status align(draft *d, const char *term, const char *letters, value *x)
{
    const int rank = (int)strlen(letters);
    int64_t own[LK_ONNX_AXES], stride[LK_ONNX_AXES] = {0}, dim[LK_ONNX_AXES];
    if (rank > LK_ONNX_AXES || (int)strlen(term) != x->rank)
        return lk_onnx_fail(d, "'%s' is not what an input of %d axes has", term, x->rank);
    lk_whole_strides(x->rank, x->dim, own);
    for (int i = 0; i < rank; i++) {
        dim[i] = 1;
        for (int a = 0; a < x->rank; a++)
            if (term[a] == letters[i]) {
                if (dim[i] != 1 && x->dim[a] != dim[i])
                    return lk_onnx_fail(d, "axes '%c' of different lengths", term[a]);
                dim[i] = x->dim[a];
                stride[i] += own[a];
            }
    }
    return lk_whole_stride(d, x, rank, dim, stride, x);
}

static enum lk_status einsum(draft *d)
{
    struct equation e;
    value x[2];
    char letters[2 * MOST_LETTERS + 1] = "";
    LK_TRY(parse(d, &e));
    strcpy(letters, e.term[2]);
    for (int t = 0; t < e.terms; t++)
        for (const char *at = e.term[t]; *at; at++)
            if (!strchr(letters, *at) && strlen(letters) < 2 * MOST_LETTERS)
                strncat(letters, at, 1);
    for (const char *at = e.term[2]; *at; at++)
        if (!strchr(e.term[0], *at) && !strchr(e.term[1], *at))
            return lk_onnx_fail(d, "'%c' is in no input", *at);
    for (int t = 0; t < e.terms; t++) {
        LK_TRY(lk_whole_input(d, t, &x[t]));
        LK_TRY(align(d, e.term[t], letters, &x[t]));
    }
    if (e.terms == 2)
        LK_TRY(lk_whole_two(d, "product", &x[0], &x[1], &x[0]));
    const int kept = (int)strlen(e.term[2]);
    const unsigned axes = ((1u << x[0].rank) - 1) & ~((1u << kept) - 1);
    if (axes) {
        LK_TRY(lk_whole_reduce(d, "sum", &x[0], axes, &x[0]));
        lk_whole_drop_axes(&x[0], axes);
    }
    return lk_onnx_give(d, 0, &x[0]);
}

const struct lk_onnx_operator lk_array_products[] = {
    {"Gemm", gemm, LK_ONNX_KNOWS("alpha", "beta", "transA", "transB", "broadcast")},
    {"MatMul", mat_mul, LK_ONNX_KNOWS(NULL)},
    {"Einsum", einsum, LK_ONNX_KNOWS("equation")},
    {0},
};
