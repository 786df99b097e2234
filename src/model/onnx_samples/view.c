/* Values as ONNX has them where the batch has one sample. */
#include "model/onnx_samples/samples.h"

#include "base/fail.h"
#include "model/onnx_arrays/whole.h"
#include <stdlib.h>
#include <string.h>

bool lk_samples_is_in(const value *x)
{
    return x && x->node && !x->constant && x->at >= 0;
}

bool lk_samples_is_plain(const draft *d, const value *x)
{
    return lk_samples_is_in(x) && x->at == 0 && x->rank > 0 && x->dim[0] == d->batch;
}

int64_t lk_samples_share(const draft *d, const value *x)
{
    const int64_t length = x->dim[x->at];
    return d->batch == LK_ONNX_OPEN ? lk_onnx_share_of(length) : length / d->batch;
}

/* --- tokens ------------------------------------------------------------------------------ */

/* Rows of the table that tokens of an input are looked up in, or as many as a length needs, if
 * it is one. */
static int64_t find_rows(const draft *d, const value *tokens)
{
    enum { LONGEST = 1 << 16 };
    int64_t rows = 0;
    for (int n = 0; n < d->file->node_count; n++) {
        const struct lk_onnx_node *node = &d->file->nodes[n];
        const value *length = node->input_count > 4 ? lk_onnx_find(d, node->inputs[4]) : NULL;
        if (length && length->node == tokens->node && rows < LONGEST &&
            (strcmp(node->op, "LSTM") == 0 || strcmp(node->op, "GRU") == 0 ||
             strcmp(node->op, "RNN") == 0))
            rows = LONGEST;
        if (strcmp(node->op, "Gather") != 0 || node->input_count != 2)
            continue;
        const value *table = lk_onnx_find(d, node->inputs[0]);
        const value *index = lk_onnx_find(d, node->inputs[1]);
        if (table && table->constant && index && index->node == tokens->node &&
            table->constant->rank > 0 && table->constant->dim[0] > rows)
            rows = table->constant->dim[0];
    }
    return rows;
}

/* Tokens as floats: an embedding whose row t is the number t. */
static enum lk_status count_tokens(draft *d, const value *x, value *made)
{
    const int64_t rows = find_rows(d, x);
    if (rows < 1 || rows > 1 << 24)
        return lk_onnx_fail(d, "it computes with whole numbers of an input, which is not "
                               "supported");
    const char *options;
    struct lk_onnx_tensor *table;
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 2, (const int64_t[]){rows, 1}, &table));
    for (int64_t i = 0; i < rows; i++)
        lk_onnx_put_real(table, i, (double)i);
    LK_TRY(lk_onnx_text(d, &options, "vocabulary=%lld units=1", (long long)rows));
    LK_TRY(lk_onnx_add_frozen(d, "embedding", options, x, made));
    return lk_onnx_set(d, made, "weight", table, true, 1);
}

/* --- views ------------------------------------------------------------------------------- */

enum lk_status lk_samples_view(draft *d, const value *x, value *view)
{
    static const int last[] = {0, 2, 3, 1};
    const value from = *x;
    *view = from;
    if (!from.node->op && from.node->input.dtype == LK_I32) {
        LK_TRY(count_tokens(d, &from, view));
        *view = (value){.node = view->node, .entry = view->entry, .rank = from.rank};
        memcpy(view->dim, from.dim, sizeof from.dim);
        view->outer = from.outer;
        view->at = from.at;
    }
    if (view->at >= 0)
        view->dim[view->at] = lk_samples_share(d, x);
    if (from.is_last) { /* the node has [c, h, w] */
        view->dim[1] = from.dim[3];
        view->dim[2] = from.dim[1];
        view->dim[3] = from.dim[2];
        view->is_last = false;
        LK_TRY(lk_whole_order(d, view, last, view));
    }
    view->name = from.name;
    view->readers = from.readers;
    view->at = from.at;
    view->outer = from.outer > 1 ? from.outer : 1;
    return LK_OK;
}

enum lk_status lk_onnx_put_first(draft *d, const value *x, value *made)
{
    value view;
    if (lk_samples_is_plain(d, x)) {
        *made = *x;
        return LK_OK;
    }
    if (!lk_samples_is_in(x) || lk_samples_share(d, x) != 1)
        return lk_onnx_fail(d, "the samples of a value lie along no axis of their own");
    LK_TRY(lk_samples_view(d, x, &view));
    for (int i = view.at; i > 0; i--)
        view.dim[i] = view.dim[i - 1];
    view.dim[0] = d->batch;
    view.at = 0;
    *made = view;
    return LK_OK;
}

enum lk_status lk_samples_give(draft *d, int index, const value *view, int at)
{
    value made = *view;
    made.at = at;
    if (at >= 0) {
        if (at >= made.rank || made.dim[at] < 1 || made.dim[at] > 1 << 24)
            return lk_onnx_fail(d, "the samples lie along no axis of its output");
        made.dim[at] = d->batch == LK_ONNX_OPEN ? LK_ONNX_OPEN + made.dim[at] - 1
                                                : d->batch * made.dim[at];
    }
    return lk_onnx_give(d, index, &made);
}
