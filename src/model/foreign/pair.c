/* Pairs the arrays of a file with the parameters of a model: by the names that fit best, else
 * in order by shape. */
#include "model/foreign/pair.h"

#include "base/fail.h"
#include "model/checkpoint/checkpoint.h"
#include "model/foreign/nested.h"
#include "model/foreign/pairing.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PREFIXES = 4 };

/* --- names of arrays ---------------------------------------------------------------------- */

static bool ends_with(const char *text, size_t length, const char *end)
{
    const size_t bytes = strlen(end);
    return length >= bytes && memcmp(text + length - bytes, end, bytes) == 0;
}

bool lk_array_is_aside(const struct lk_arrays *file, const struct lk_array *array)
{
    const char *name = array->name, *seed = strstr(name, "seed_generator");
    if (file->format == LK_ARRAYS_SAFETENSORS && lk_checkpoint_is_state(name))
        return true;
    return ends_with(name, strlen(name), "num_batches_tracked") ||
           strncmp(name, "optimizer/", 10) == 0 ||
           strncmp(name, "optimizer_weights/", 18) == 0 ||
           (seed && !strchr(seed, '.')); /* a layer of ours may be called so */
}

/* An array's name or label, without the ":0" that Keras 2 writes behind. */
struct name {
    const char *text;
    size_t length;
    int array;
};

struct index {
    const struct lk_arrays *file;
    struct name *names; /* sorted */
    int count;
    bool by_label;
};

static int compare(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    const size_t least = x->length < y->length ? x->length : y->length;
    const int order = memcmp(x->text, y->text, least);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

static enum lk_status make_index(const struct lk_arrays *file, bool by_label,
                                 struct index *index)
{
    const size_t bytes = ((size_t)file->count + 1) * sizeof *index->names;
    *index = (struct index){.file = file, .names = malloc(bytes), .by_label = by_label};
    if (!index->names)
        return lk_fail_memory("names of arrays", bytes);
    for (int i = 0; i < file->count; i++) {
        const char *text = by_label ? file->arrays[i].label : file->arrays[i].name;
        if (!text || lk_array_is_aside(file, &file->arrays[i]))
            continue;
        size_t length = strlen(text);
        if (ends_with(text, length, ":0"))
            length -= 2;
        index->names[index->count++] = (struct name){text, length, i};
    }
    qsort(index->names, (size_t)index->count, sizeof *index->names, compare);
    return LK_OK;
}

/* The array of that name; -1: absent. */
static int find(const struct index *index, const char *prefix, const char *name)
{
    char whole[LK_PREFIX_BYTES + 256];
    const int length = snprintf(whole, sizeof whole, "%s%s", prefix, name);
    if (length < 0 || (size_t)length >= sizeof whole)
        return -1;
    const struct name key = {.text = whole, .length = (size_t)length};
    const struct name *found =
        bsearch(&key, index->names, (size_t)index->count, sizeof key, compare);
    return found ? found->array : -1;
}

/* --- by name ------------------------------------------------------------------------------ */

/* What may stand before all names of a naming: nothing, or what stands before its first one.
 */
struct prefixes {
    char list[MOST_PREFIXES][LK_PREFIX_BYTES];
    int count;
};

static void add_prefixes(const struct index *index, const char *name, struct prefixes *p)
{
    const size_t bytes = strlen(name);
    for (int i = 0; i < index->count && p->count < MOST_PREFIXES; i++) {
        const struct name *there = &index->names[i];
        const size_t before = there->length - bytes;
        if (there->length <= bytes || before >= LK_PREFIX_BYTES ||
            !ends_with(there->text, there->length, name) ||
            !strchr("./", there->text[before - 1]))
            continue;
        snprintf(p->list[p->count++], LK_PREFIX_BYTES, "%.*s", (int)before, there->text);
    }
}

static void find_prefixes(const struct index *index, const struct lk_namings *namings,
                          const struct lk_naming *naming, struct prefixes *p)
{
    p->list[0][0] = '\0';
    p->count = 1;
    for (int i = 0; i < LK_MOST_SPELLINGS && namings->params > 0; i++)
        if (naming->names[0][i])
            add_prefixes(index, naming->names[0][i], p);
}

enum lk_status lk_pairing_describe(struct lk_namings *namings, enum lk_layout_kind kind,
                                   struct lk_pair **pairs)
{
    void *memory;
    LK_TRY(lk_arena_allocate(&namings->arena, ((size_t)namings->params + 1) * sizeof **pairs,
                             &memory));
    *pairs = memory;
    for (int p = 0; p < namings->params; p++) {
        const struct lk_foreign_param *param = &namings->param[p];
        (*pairs)[p] = (struct lk_pair){.array = -1, .added = -1};
        LK_TRY(lk_layout_describe(param->node, param->index, kind, &namings->arena,
                                  &(*pairs)[p].layout));
    }
    return LK_OK;
}

void lk_pairing_set(struct lk_pairing *pairing, int p, const struct lk_arrays *file, int array)
{
    struct lk_pair *pair = &pairing->pair[p];
    pair->array = array;
    pair->fits =
        lk_layout_fits(&pair->layout, file->arrays[array].rank, file->arrays[array].shape);
    pairing->paired++;
    pairing->fitting += pair->fits;
}

/* Notes that an array is to be added to that of parameter p. */
static void set_added(struct lk_pairing *pairing, int p, const struct lk_arrays *file,
                      int array)
{
    struct lk_pair *pair = &pairing->pair[p];
    if (array < 0)
        return;
    pair->added = array;
    if (!pair->fits ||
        lk_layout_fits(&pair->layout, file->arrays[array].rank, file->arrays[array].shape))
        return;
    pair->fits = false;
    pairing->fitting--;
}

static bool is_better(const struct lk_pairing *a, const struct lk_pairing *b)
{
    return a->fitting != b->fitting ? a->fitting > b->fitting : a->paired > b->paired;
}

/* The array that has one of these spellings; -1: absent. */
static int find_spelled(const struct index *index, const char *prefix,
                        const char *const names[LK_MOST_SPELLINGS])
{
    int array = -1;
    for (int i = 0; i < LK_MOST_SPELLINGS && array < 0; i++)
        if (names[i])
            array = find(index, prefix, names[i]);
    return array;
}

/* The array whose name ends in "/NAME"; -1: there is none, or several. Counts them. */
static int find_ending(const struct index *index, const char *name, int *count)
{
    const size_t bytes = strlen(name);
    int found = -1;
    for (int i = 0; i < index->count; i++) {
        const struct name *there = &index->names[i];
        if (!ends_with(there->text, there->length, name) || there->length <= bytes ||
            there->text[there->length - bytes - 1] != '/')
            continue;
        found = there->array;
        ++*count;
    }
    return *count == 1 ? found : -1;
}

/* Whether names are those of layers, which a layer of a model in a model may have too. */
static bool has_layer_names(const struct index *index, const struct lk_naming *naming)
{
    return naming->style == LK_NAMING_KERAS || index->by_label;
}

/* The array of parameter p behind the prefix, or without it: a layer beside a model that others
 * have as a part. Files of Keras name models in models, and a layer is of any; where two have
 * one of that name, nobody knows which it is. */
static int find_within(const struct index *index, const struct lk_naming *naming,
                       const char *prefix, const char *const names[LK_MOST_SPELLINGS])
{
    const int behind = *prefix ? find_spelled(index, prefix, names) : -1;
    const int whole = behind < 0 ? find_spelled(index, "", names) : -1;
    int within = -1, endings = 0;
    if (behind >= 0 || !has_layer_names(index, naming))
        return behind >= 0 ? behind : whole;
    for (int i = 0; i < LK_MOST_SPELLINGS && within < 0; i++)
        if (names[i])
            within = find_ending(index, names[i], &endings);
    return whole < 0 ? within : endings == 0 ? whole : -1;
}

static bool finds_any(const struct index *index, const struct lk_namings *namings,
                      const struct lk_naming *naming, const char *prefix)
{
    for (int p = 0; p < namings->params; p++)
        if (find_spelled(index, prefix, naming->names[p]) >= 0)
            return true;
    return false;
}

static void mark_initial(const struct lk_namings *namings, const struct lk_naming *naming,
                         struct lk_pairing *pairing)
{
    for (int p = 0; p < namings->params; p++)
        pairing->pair[p].is_initial = !naming->names[p][0];
}

/* The array of a parameter of that name of the same node; -1: none. */
static int find_sibling(const struct lk_namings *namings, const struct lk_pairing *pairing,
                        int p, const char *name)
{
    const struct lk_node *node = namings->param[p].node;
    for (int q = 0; q < namings->params; q++)
        if (namings->param[q].node == node &&
            strcmp(node->shapes.param[namings->param[q].index].name, name) == 0)
            return pairing->pair[q].array;
    return -1;
}

/* A batch norm there may have no gamma (Keras's scale=False) and no beta (center=False), which
 * ours then has as initialized, 1 and 0; PyTorch's without both (affine=False) is one of ours
 * that does not train them. */
static void mark_absent(const struct lk_namings *namings, const struct lk_naming *naming,
                        struct lk_pairing *pairing)
{
    for (int p = 0; p < namings->params; p++) {
        const struct lk_node *node = namings->param[p].node;
        const char *own = node->shapes.param[namings->param[p].index].name;
        const bool may_lack = naming->style == LK_NAMING_KERAS ||
                              node->shapes.param[namings->param[p].index].is_tracked;
        if (pairing->pair[p].array < 0 && strcmp(node->op->name, "batch_norm") == 0 &&
            may_lack && (strcmp(own, "gamma") == 0 || strcmp(own, "beta") == 0) &&
            find_sibling(namings, pairing, p, "moving_mean") >= 0 &&
            find_sibling(namings, pairing, p, "moving_variance") >= 0)
            pairing->pair[p].is_initial = true;
    }
}

/* Keras 3 counts the arrays of a layer too: where one is missing, those of the same shape may
 * be other ones than their numbers say, as in a batch norm without gamma. Then none of them is
 * taken. */
static void drop_doubtful(const struct lk_namings *namings, struct lk_pairing *pairing)
{
    for (int p = 0; p < namings->params; p++) {
        const struct lk_layout *missing = &pairing->pair[p].layout;
        if (pairing->pair[p].array >= 0 || pairing->pair[p].is_initial)
            continue;
        for (int q = 0; q < namings->params; q++) {
            struct lk_pair *pair = &pairing->pair[q];
            if (pair->array < 0 || namings->param[q].node != namings->param[p].node ||
                pair->layout.rank != missing->rank ||
                lk_layout_count(&pair->layout) != lk_layout_count(missing))
                continue;
            pairing->paired--;
            pairing->fitting -= pair->fits;
            pair->array = -1;
            pair->fits = false;
        }
    }
}

/* Whether two pairings give a parameter different arrays. */
static bool contradict(const struct lk_namings *namings, const struct lk_pairing *a,
                       const struct lk_pairing *b)
{
    for (int p = 0; p < namings->params; p++)
        if (a->pair[p].array >= 0 && b->pair[p].array >= 0 &&
            a->pair[p].array != b->pair[p].array)
            return true;
    return false;
}

/* Where layers of models in models stand is not told, so their own names must not tell
 * something else. */
static enum lk_status pair_nested(const struct index *index, struct lk_namings *namings,
                                  const struct lk_naming *naming, struct lk_pairing *best)
{
    struct lk_pairing made = {.naming = naming};
    LK_TRY(lk_pairing_describe(namings, naming->layout, &made.pair));
    mark_initial(namings, naming, &made);
    LK_TRY(lk_pair_nested(index->file, namings, naming, &made));
    if (is_better(&made, best) && !contradict(namings, &made, best))
        *best = made;
    return LK_OK;
}

static enum lk_status pair_by_name(const struct index *index, struct lk_namings *namings,
                                   const struct lk_naming *naming, struct lk_pairing *best)
{
    struct prefixes prefixes;
    find_prefixes(index, namings, naming, &prefixes);
    for (int i = 0; i < prefixes.count; i++) {
        struct lk_pairing made = {.naming = naming};
        if (!finds_any(index, namings, naming, prefixes.list[i]))
            continue;
        snprintf(made.prefix, sizeof made.prefix, "%s", prefixes.list[i]);
        LK_TRY(lk_pairing_describe(namings, naming->layout, &made.pair));
        mark_initial(namings, naming, &made);
        for (int p = 0; p < namings->params; p++) {
            const int array = find_within(index, naming, made.prefix, naming->names[p]);
            if (array < 0)
                continue;
            made.is_mixed |= find_spelled(index, made.prefix, naming->names[p]) < 0;
            lk_pairing_set(&made, p, index->file, array);
            set_added(&made, p, index->file,
                      find_within(index, naming, made.prefix, naming->added[p]));
        }
        if (naming->style == LK_NAMING_KERAS_3)
            drop_doubtful(namings, &made);
        else if (naming->style != LK_NAMING_OWN)
            mark_absent(namings, naming, &made);
        if (index->by_label)
            made.prefix[0] = '\0'; /* arrays' names have another one */
        if (is_better(&made, best))
            *best = made;
    }
    return naming->is_counted ? pair_nested(index, namings, naming, best) : LK_OK;
}

/* Our own names say how the numbers lie only in files that PyTorch did not write: the same
 * names could be its own. */
static bool is_of_torch(const struct lk_arrays *file)
{
    const char *format = lk_arrays_text(file, "format");
    return file->format == LK_ARRAYS_TORCH || (format && strcmp(format, "pt") == 0);
}

/* By the own names of layers, which Keras notes beside their arrays. */
static enum lk_status pair_labels(const struct index *index, struct lk_namings *namings,
                                  struct lk_pairing *best)
{
    const enum lk_naming_style labelled =
        index->file->format == LK_ARRAYS_KERAS_3 ? LK_NAMING_KERAS_3 : LK_NAMING_KERAS;
    struct index labels;
    enum lk_status status = make_index(index->file, true, &labels);
    for (int i = 0; i < namings->count && status == LK_OK && labels.count > 0; i++)
        if (namings->list[i].style == labelled && !namings->list[i].is_counted)
            status = pair_by_name(&labels, namings, &namings->list[i], best);
    free(labels.names);
    return status;
}

static enum lk_status pair_names(const struct index *index, struct lk_namings *namings,
                                 struct lk_pairing *best)
{
    for (int i = 0; i < namings->count; i++) {
        const struct lk_naming *naming = &namings->list[i];
        const bool is_doubtful = naming->style == LK_NAMING_OWN && is_of_torch(index->file);
        if (!naming->is_counted && !is_doubtful)
            LK_TRY(pair_by_name(index, namings, naming, best));
    }
    LK_TRY(pair_labels(index, namings, best));
    for (int i = 0; i < namings->count; i++) /* last: what has names was not counted */
        if (namings->list[i].is_counted)
            LK_TRY(pair_by_name(index, namings, &namings->list[i], best));
    return LK_OK;
}

/* --- in order ----------------------------------------------------------------------------- */

/* Keras's names, which know its order of parameters, where the file is Keras's; else ours. */
static const struct lk_naming *ordered_by(const struct lk_namings *namings,
                                          enum lk_layout_kind kind)
{
    const struct lk_naming *keras =
        kind == LK_LAYOUT_KERAS ? lk_namings_find(namings, "keras") : NULL;
    return keras ? keras : &namings->list[0];
}

/* PyTorch's recurrent layers have a second bias behind the first, which is to be added. */
static bool has_second_bias(const struct lk_namings *namings, int p)
{
    const struct lk_naming *torch = lk_namings_find(namings, "pytorch");
    return torch && torch->added[p][0];
}

static enum lk_status pair_in_order(const struct lk_arrays *file, struct lk_namings *namings,
                                    enum lk_layout_kind kind, struct lk_pairing *best)
{
    struct lk_pairing made = {0};
    const struct lk_naming *naming = ordered_by(namings, kind);
    const int *order = naming->order;
    int next = 0;
    LK_TRY(lk_pairing_describe(namings, kind, &made.pair));
    mark_initial(namings, naming, &made);
    for (int i = 0; i < namings->params; i++) {
        int at = next;
        if (made.pair[order[i]].is_initial)
            continue;
        const struct lk_layout *layout = &made.pair[order[i]].layout;
        if (layout->first > 0) /* in the array of the parameter before */
            at = next - (next > 0);
        while (at < file->count &&
               (lk_array_is_aside(file, &file->arrays[at]) ||
                !lk_layout_fits(layout, file->arrays[at].rank, file->arrays[at].shape)))
            at++;
        if (at == file->count)
            continue;
        lk_pairing_set(&made, order[i], file, at);
        next = at + 1;
        if (kind == LK_LAYOUT_TORCH && has_second_bias(namings, order[i]) && next < file->count)
            set_added(&made, order[i], file, next++);
    }
    if (is_better(&made, best))
        *best = made;
    return LK_OK;
}

/* Whether the order of the arrays tells something: layers of Keras 3 stand in the order of the
 * names of their classes. */
static bool has_order(const struct lk_arrays *file)
{
    static const char layers[] = "layers/";
    for (int i = 0; i < file->count && file->format == LK_ARRAYS_KERAS_3; i++)
        if (strncmp(file->arrays[i].name, layers, sizeof layers - 1) == 0)
            return false;
    return true;
}

static enum lk_status pair_orders(const struct lk_arrays *file, struct lk_namings *namings,
                                  struct lk_pairing *best)
{
    if (file->format == LK_ARRAYS_TORCH || is_of_torch(file))
        return pair_in_order(file, namings, LK_LAYOUT_TORCH, best);
    if (file->format != LK_ARRAYS_SAFETENSORS)
        return pair_in_order(file, namings, LK_LAYOUT_KERAS, best);
    LK_TRY(pair_in_order(file, namings, LK_LAYOUT_OWN, best));
    LK_TRY(pair_in_order(file, namings, LK_LAYOUT_TORCH, best));
    return pair_in_order(file, namings, LK_LAYOUT_KERAS, best);
}

/* --- what names leave over ---------------------------------------------------------------- */

enum lk_status lk_pairing_used(const struct lk_arrays *file, const struct lk_namings *namings,
                               const struct lk_pairing *pairing, bool **used)
{
    bool *made = calloc((size_t)file->count + 1, sizeof *made);
    if (!made)
        return lk_fail_memory("names of arrays", (size_t)file->count);
    for (int p = 0; p < namings->params; p++) {
        const struct lk_pair *pair = &pairing->pair[p];
        if (pair->array >= 0)
            made[pair->array] = true;
        if (pair->added >= 0)
            made[pair->added] = true;
    }
    *used = made;
    return LK_OK;
}

/* Names fit where they find half of the model, or half of the file. */
static bool names_fit(const struct lk_pairing *p, const struct index *index,
                      const struct lk_namings *namings)
{
    return p->paired > 0 && (2 * p->paired >= namings->params || 2 * p->paired >= index->count);
}

/* Whether each parameter has an array, and no array is left over. */
static bool is_whole(const struct lk_pairing *p, const struct lk_namings *namings,
                     const struct index *index)
{
    int arrays = 0, expected = 0;
    for (int i = 0; i < namings->params; i++) {
        expected += !p->pair[i].is_initial;
        arrays +=
            (p->pair[i].array >= 0 && p->pair[i].layout.first == 0) + (p->pair[i].added >= 0);
    }
    return p->fitting == expected && arrays == index->count;
}

/* Where names of ours are numbers, layers are more likely those that the order tells. */
static enum lk_status doubt_numbers(const struct index *index, struct lk_namings *namings,
                                    struct lk_pairing *named)
{
    struct lk_pairing other = {0};
    LK_TRY(lk_pairing_describe(namings, LK_LAYOUT_OWN, &other.pair));
    if (has_order(index->file))
        LK_TRY(pair_orders(index->file, namings, &other));
    for (int i = 0; i < namings->count && !has_order(index->file); i++)
        if (namings->list[i].is_counted)
            LK_TRY(pair_by_name(index, namings, &namings->list[i], &other));
    if (!lk_pairing_differs(namings, named, &other))
        return LK_OK;
    if (is_whole(&other, namings, index))
        *named = other;
    else
        lk_pairing_drop_numbers(namings, named);
    return LK_OK;
}

enum lk_status lk_pair(const struct lk_arrays *file, struct lk_namings *namings,
                       enum lk_pair_by by, struct lk_pairing *pairing)
{
    struct index index;
    struct lk_pairing named = {0}, ordered = {0};
    enum lk_status status;
    LK_TRY_OUT(make_index(file, false, &index));
    LK_TRY_OUT(lk_pairing_describe(namings, LK_LAYOUT_OWN, &named.pair));
    ordered.pair = named.pair;
    if (by != LK_PAIR_BY_ORDER)
        LK_TRY_OUT(pair_names(&index, namings, &named));
    if (by == LK_PAIR_BY_BOTH && file->format != LK_ARRAYS_SAFETENSORS &&
        lk_pairing_has_numbers(namings, &named))
        LK_TRY_OUT(doubt_numbers(&index, namings, &named));
    const bool tries_order =
        by == LK_PAIR_BY_ORDER ||
        (by == LK_PAIR_BY_BOTH && has_order(file) && !names_fit(&named, &index, namings));
    if (tries_order)
        LK_TRY_OUT(pair_orders(file, namings, &ordered));
    *pairing = is_better(&ordered, &named) ? ordered : named;
    if (by == LK_PAIR_BY_BOTH)
        LK_TRY_OUT(lk_pairing_complete(file, namings, pairing));
    if (by == LK_PAIR_BY_BOTH && !tries_order && has_order(file) &&
        !is_whole(pairing, namings, &index))
        LK_TRY_OUT(pair_orders(file, namings, &ordered)); /* for what is said alone */
    pairing->order_fits = is_whole(&ordered, namings, &index);
    if (!pairing->naming && pairing->paired == 0 && by == LK_PAIR_BY_NAME)
        pairing->naming = &namings->list[0];
out:
    free(index.names);
    return status;
}
