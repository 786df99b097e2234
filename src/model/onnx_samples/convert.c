/* A node for each sample of a batch: by the operators for batches, whose layers are ours and
 * can be trained, and where they refuse by those for whole arrays. */
#include "model/onnx_samples/samples.h"

#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = LK_SAMPLES_INPUTS, MOST_OUTPUTS = 64 };

/* --- trying ------------------------------------------------------------------------------ */

/* What an attempt adds to the model, to be taken back. Its nodes stay in the draft's graph,
 * where nothing reads them: the model is made of the text. */
struct mark {
    size_t text;
    int tensors, entries;
    const char *before;
};

static struct mark set_mark(const draft *d)
{
    return (struct mark){d->layers.used, d->made->tensor_count, d->entries, d->before};
}

static void go_back(draft *d, const struct mark *mark)
{
    d->layers.used = mark->text;
    if (d->layers.bytes)
        d->layers.bytes[mark->text] = '\0';
    d->made->tensor_count = mark->tensors;
    d->entries = mark->entries;
    d->before = mark->before;
}

/* --- constants --------------------------------------------------------------------------- */

/* Numbers of shapes, as they are where the batch has one sample. */
static enum lk_status shrink_numbers(draft *d, value *x)
{
    struct lk_onnx_tensor *made;
    const struct lk_onnx_tensor *from = x->constant;
    bool is_open = false;
    if (from->rank > 1 || from->type != LK_ONNX_INT64 || from->count > LK_ONNX_AXES)
        return LK_OK;
    for (int64_t i = 0; i < from->count; i++)
        is_open |= lk_onnx_share_of(lk_onnx_integer(from, i)) > 0;
    if (!is_open)
        return LK_OK;
    LK_TRY(lk_onnx_new_tensor(d, from->type, from->rank, from->dim, &made));
    for (int64_t i = 0; i < from->count; i++)
        lk_onnx_put_integer(made, i, lk_onnx_number_of_one(lk_onnx_integer(from, i)));
    x->constant = made;
    return LK_OK;
}

/* Shapes that an operator is told name the batch of a file whose batch is fixed. */
static enum lk_status shrink_shape(draft *d, value *x, const value *first, int at)
{
    const char *op = d->node->op;
    const struct lk_onnx_tensor *from = x->constant;
    struct lk_onnx_tensor *made;
    const bool is_shape = strcmp(op, "Expand") == 0 || strcmp(op, "Resize") == 0;
    if (!is_shape || d->batch < 2 || at < 0 || from->type != LK_ONNX_INT64 ||
        from->count <= at || lk_onnx_integer(from, at) != d->batch * first->dim[first->at])
        return LK_OK;
    LK_TRY(lk_onnx_new_tensor(d, from->type, from->rank, from->dim, &made));
    for (int64_t i = 0; i < from->count; i++)
        lk_onnx_put_integer(made, i, lk_onnx_integer(from, i) / (i == at ? d->batch : 1));
    x->constant = made;
    return LK_OK;
}

/* A constant whose numbers are the same for all samples of a batch that is fixed. */
static enum lk_status shrink_repeated(draft *d, value *x, int at)
{
    const struct lk_onnx_tensor *from = x->constant;
    struct lk_onnx_tensor *made;
    int64_t inner = 1;
    if (at < 0 || from->dim[at] != d->batch)
        return LK_OK;
    for (int i = at + 1; i < from->rank; i++)
        inner *= from->dim[i];
    for (int64_t i = 0; i < from->count; i++) {
        const int64_t first = i / (d->batch * inner) * d->batch * inner + i % inner;
        if (lk_onnx_is_whole(from->type)
                ? lk_onnx_integer(from, i) != lk_onnx_integer(from, first)
                : lk_onnx_real(from, i) != lk_onnx_real(from, first))
            return LK_OK;
    }
    LK_TRY(lk_samples_take(d, from, at, 0, &made));
    x->constant = made;
    return LK_OK;
}

/* The axis of samples, counted from the last one, that a node's inputs have; 0: none, or
 * several of its numbers are of one sample. */
static int find_from_last(const draft *d)
{
    for (int i = 0; i < d->node->input_count; i++) {
        const value *x = lk_onnx_input(d, i);
        if (lk_samples_is_in(x) && x->dim[x->at] == d->batch)
            return x->rank - x->at;
    }
    return 0;
}

/* --- by whole arrays --------------------------------------------------------------------- */

/* The inputs of the node at work, each once, and what their values were. */
struct inputs {
    int count;
    value *place[MOST_INPUTS], kept[MOST_INPUTS];
};

static enum lk_status open_inputs(draft *d, struct inputs *in, int *at)
{
    value x[MOST_INPUTS] = {{0}};
    int count = 0;
    if (d->node->input_count > MOST_INPUTS || d->node->output_count > MOST_OUTPUTS)
        return lk_onnx_fail(d, "more than %d inputs", MOST_INPUTS);
    for (int i = 0; i < d->node->input_count; i++) {
        value *place = lk_onnx_input(d, i);
        if (!place)
            continue;
        if (place->constant) {
            x[count].rank = place->constant->rank;
            memcpy(x[count].dim, place->constant->dim, sizeof x->dim);
            x[count].at = -1;
        } else {
            LK_TRY(lk_samples_view(d, place, &x[count]));
        }
        count++;
        bool is_new = true;
        for (int j = 0; j < in->count; j++)
            is_new &= in->place[j] != place;
        if (!is_new)
            continue;
        in->place[in->count] = place;
        in->kept[in->count++] = *place;
        if (!place->constant) /* once for all that read it */
            *place = x[count - 1];
    }
    /* axes are found by the numbers that the file has */
    LK_TRY(lk_samples_find_axis(d, x, count, at));
    for (int i = 0; i < in->count; i++) {
        if (!in->place[i]->constant)
            continue;
        LK_TRY(shrink_numbers(d, in->place[i]));
        if (count > 0 && x[0].at >= 0)
            LK_TRY(shrink_shape(d, in->place[i], &x[0], *at));
    }
    return LK_OK;
}

/* What constants are computed with says which samples there are: any value of floats does. */
static const value *find_anchor(const draft *d, const struct inputs *in)
{
    for (int i = 0; i < in->count; i++)
        if (in->place[i]->node && !in->place[i]->constant)
            return in->place[i];
    return d->anchor;
}

static enum lk_status give_outputs(draft *d, int at, int64_t share, int64_t outer)
{
    for (int i = 0; i < d->node->output_count; i++) {
        value *made = *d->node->outputs[i] ? lk_onnx_find(d, d->node->outputs[i]) : NULL;
        if (!made || !made->node || made->constant)
            continue;
        if (at >= 0 && (at >= made->rank || made->dim[at] != share))
            return lk_onnx_fail(d, "it changes the number of samples");
        value found = *made;
        found.outer = outer;
        LK_TRY(lk_samples_give(d, i, &found, at));
        if (at >= 0 && !d->anchor)
            d->anchor = made;
    }
    return LK_OK;
}

static enum lk_status by_arrays(draft *d, bool *done)
{
    struct inputs in = {0};
    int at = -1;
    int64_t share = 1, outer = 1;
    const int64_t batch = d->batch;
    const value *anchor = d->anchor;
    enum lk_status status = open_inputs(d, &in, &at);
    d->anchor = find_anchor(d, &in);
    for (int i = 0; i < in.count; i++)
        if (!in.place[i]->constant && in.kept[i].at >= 0)
            outer = in.place[i]->outer, share = in.place[i]->dim[in.kept[i].at];
    if (status == LK_OK && in.count > 0 && lk_samples_takes_own(d, in.place[0]))
        share = 1;
    d->batch = 1;
    d->is_whole = true;
    for (int t = 0; status == LK_OK && lk_onnx_array_tables[t] && !*done; t++)
        status = lk_onnx_convert_by(d, lk_onnx_array_tables[t], done);
    d->batch = batch;
    d->is_whole = false;
    for (int i = 0; i < in.count; i++)
        *in.place[i] = in.kept[i];
    d->anchor = anchor;
    LK_TRY(status);
    return *done ? give_outputs(d, at, share, outer) : LK_OK;
}

/* --- all ways ---------------------------------------------------------------------------- */

static enum lk_status by_layers(draft *d, bool *done)
{
    LK_TRY(lk_onnx_convert_by(d, lk_samples_shapes, done));
    LK_TRY(lk_onnx_convert_by(d, lk_samples_layers, done));
    return lk_onnx_convert_by(d, lk_samples_recurrent, done);
}

/* Whether the operators for batches know its inputs' axes. */
static bool is_plain(const draft *d)
{
    bool all = true;
    for (int i = 0; i < d->node->input_count; i++) {
        const value *x = lk_onnx_input(d, i);
        all &= !x || !x->node || x->constant || lk_samples_is_plain(d, x);
    }
    return all;
}

/* The first refusal is the one that is told: later ways know less of the operator. */
static enum lk_status by_any(draft *draft, bool *done)
{
    typedef enum lk_status way(struct lk_onnx_draft * draft, bool *done);
    way *const ways[] = {is_plain(draft) ? lk_onnx_convert_batch : NULL, by_layers, by_arrays};
    char first[1024] = "";
    const struct mark mark = set_mark(draft);
    enum lk_status status = LK_OK;
    for (int i = 0; i < LK_COUNT(ways); i++) {
        if (!ways[i])
            continue;
        *done = false;
        status = ways[i](draft, done);
        if (status == LK_OK && *done)
            return LK_OK;
        if (status == LK_E_MEMORY)
            return status;
        if (status != LK_OK && !*first)
            snprintf(first, sizeof first, "%s", lk_error_text());
        if (status != LK_OK)
            lk_error_clear();
        go_back(draft, &mark);
    }
    *done = false;
    return *first ? lk_fail(LK_E_MODEL, "%s", first) : LK_OK;
}

/* What a file with a fixed batch has for each sample in its constants, for the first one alone
 * while the node at work is converted. */
enum lk_status lk_onnx_convert_samples(struct lk_onnx_draft *draft, bool *done)
{
    value kept[MOST_INPUTS], *place[MOST_INPUTS];
    const bool is_gather =
        strcmp(draft->node->op, "Gather") == 0 || strcmp(draft->node->op, "GatherND") == 0;
    const int count = draft->batch > 1 && draft->node->input_count <= MOST_INPUTS
                          ? draft->node->input_count
                          : 0;
    const bool is_reverse = strcmp(draft->node->op, "ReverseSequence") == 0;
    const int from_last = lk_samples_are_aligned(draft) ? find_from_last(draft) : 0;
    enum lk_status status = LK_OK;
    for (int i = 0; i < count; i++) {
        value *x = place[i] = lk_onnx_input(draft, i);
        if (!x)
            continue;
        kept[i] = *x;
        if (status == LK_OK && x->constant && from_last)
            status = shrink_repeated(draft, x, x->constant->rank - from_last);
        if (status == LK_OK && x->constant && is_reverse && i == 1 && x->constant->rank == 1)
            status = shrink_repeated(draft, x, 0);
        if (status == LK_OK && is_gather && i == 1)
            status = lk_samples_count_places(draft, x);
    }
    if (status == LK_OK)
        status = by_any(draft, done);
    for (int i = count - 1; i >= 0; i--) /* backwards: one may be read twice */
        if (place[i])
            *place[i] = kept[i];
    return status;
}
