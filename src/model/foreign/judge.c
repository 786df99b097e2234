/* Judges whether a file's arrays are the weights of a model, and says what is left over. */
#include "model/foreign/judge.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/text.h"
#include "model/foreign/pairing.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 3 }; /* of a list, before "and 5 others" */

/* --- texts -------------------------------------------------------------------------------- */

/* A list of things, of which the first are named. */
struct list {
    const char *between;
    int count;
    struct lk_text text;
};

static void add(struct list *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct list *list, const char *format, ...)
{
    char item[512];
    va_list values;
    if (list->count++ >= NAMED)
        return;
    va_start(values, format);
    vsnprintf(item, sizeof item, format, values);
    va_end(values);
    lk_text_append(&list->text, "%s%s", list->count > 1 ? list->between : "", item);
}

/* Ends a list that is not empty; "" for one that is. */
static const char *finish(struct list *list)
{
    const int others = list->count - NAMED;
    if (others > 0)
        lk_text_append(&list->text, " and %d other%s", others, others > 1 ? "s" : "");
    return list->text.bytes && !list->text.failed ? list->text.bytes : "";
}

static const char *shape_text(int rank, const int64_t *shape, char text[128])
{
    int used = snprintf(text, 128, "[");
    for (int i = 0; i < rank && used < 100; i++)
        used += snprintf(text + used, 128 - (size_t)used, "%s%lld", i ? ", " : "",
                         (long long)shape[i]);
    snprintf(text + used, 128 - (size_t)used, "]");
    return text;
}

/* --- what is left over -------------------------------------------------------------------- */

struct findings {
    struct list missing, misshapen, extra; /* which are errors */
    struct list head, beside, unused;      /* which are not */
};

static bool is_trained(const struct lk_judgement *j, int p)
{
    return j->namings->param[p].node->is_trainable;
}

/* The last parameter that the file has, and the file's last array that the model has. */
static void find_last(const struct lk_judgement *j, int *param, int *array)
{
    *param = *array = -1;
    for (int p = 0; p < j->namings->params; p++)
        if (j->pairing->pair[p].array >= 0) {
            *param = p;
            if (j->pairing->pair[p].array > *array)
                *array = j->pairing->pair[p].array;
            if (j->pairing->pair[p].added > *array)
                *array = j->pairing->pair[p].added;
        }
}

/* An array that no parameter takes and that has just the shape of one that is missing: most
 * likely it is that one under another name, not the head of another model. Of vectors too many
 * have one shape; those of norms are told by their words. NULL: none. */
static const struct lk_array *find_twin(const struct lk_judgement *j, const bool *used, int p)
{
    const struct lk_layout *layout = &j->pairing->pair[p].layout;
    const bool is_norm = strstr(j->namings->param[p].node->op->name, "norm") != NULL;
    for (int i = 0; i < j->file->count && (layout->rank > 1 || is_norm); i++) {
        const struct lk_array *array = &j->file->arrays[i];
        const bool is_called_so =
            array->rank > 1 ||
            (j->pairing->naming && lk_pairing_has_word(array, j->pairing->naming, p));
        if (is_called_so && lk_layout_fits(layout, array->rank, array->shape) &&
            !lk_array_is_aside(j->file, array) && !used[i])
            return array;
    }
    return NULL;
}

/* Whether a parameter that is missing may be of a new head. Where layers are counted and arrays
 * are left over, it is more likely that layers were counted wrongly. */
static bool may_be_head(const struct lk_judgement *j, const bool *used, int p, int last)
{
    const struct lk_naming *naming = j->pairing->naming;
    if (p <= last || !j->may_lack_head || !is_trained(j, p))
        return false;
    for (int i = 0; i < j->file->count && naming && naming->is_counted; i++)
        if (!used[i] && !lk_array_is_aside(j->file, &j->file->arrays[i]))
            return false;
    return true;
}

static void find_missing(const struct lk_judgement *j, const bool *used, int p, int last,
                         struct findings *f)
{
    const struct lk_layout *layout = &j->pairing->pair[p].layout;
    const struct lk_array *twin = find_twin(j, used, p);
    const char *name = j->namings->param[p].name;
    char shape[128];
    const struct lk_naming *naming = j->pairing->naming;
    const bool tells = twin && (twin->rank > 1 || naming->style != LK_NAMING_KERAS_3);
    if (may_be_head(j, used, p, last) && !twin)
        add(&f->head, "%s", name);
    else if (tells) /* the vectors of a layer of Keras 3 have numbers */
        add(&f->missing, "%s %s, perhaps '%.100s'", name,
            shape_text(layout->rank, layout->shape, shape), twin->name);
    else
        add(&f->missing, "%s %s", name, shape_text(layout->rank, layout->shape, shape));
}

static void find_in_model(const struct lk_judgement *j, const bool *used, int last,
                          struct findings *f)
{
    char expected[128], found[128];
    for (int p = 0; p < j->namings->params; p++) {
        const struct lk_pair *pair = &j->pairing->pair[p];
        const char *name = j->namings->param[p].name;
        if (pair->is_initial || (pair->array < 0 && !j->namings->param[p].is_needed))
            continue;
        if (pair->array < 0) {
            find_missing(j, used, p, last, f);
        } else if (!pair->fits) {
            const struct lk_array *array = &j->file->arrays[pair->array];
            add(&f->misshapen, "'%.100s' is %s, for %s %s is expected", array->name,
                shape_text(array->rank, array->shape, found), name,
                shape_text(pair->layout.rank, pair->layout.shape, expected));
        }
    }
}

/* The layer's part of an array's name: what stands before its last dot or slash. */
static size_t layer_bytes(const char *name)
{
    size_t bytes = 0;
    for (size_t i = 0; name[i]; i++)
        if (name[i] == '.' || name[i] == '/')
            bytes = i;
    return bytes;
}

/* Whether the model has another array of this one's layer. */
static bool is_of_known_layer(const struct lk_judgement *j, const bool *used, int array)
{
    const struct lk_array *arrays = j->file->arrays;
    const size_t bytes = layer_bytes(arrays[array].name);
    for (int i = 0; i < j->file->count; i++)
        if (used[i] && layer_bytes(arrays[i].name) == bytes &&
            memcmp(arrays[i].name, arrays[array].name, bytes) == 0)
            return true;
    return false;
}

/* Counts an array that our model has on purpose not among those of its row; false: it is none.
 */
static bool is_unused(const struct lk_judgement *j, const char *name, int *counts)
{
    const int row = lk_pairing_find_unused(j->pairing, name);
    if (row >= 0)
        counts[row]++;
    return row >= 0;
}

static void list_unused(const struct lk_judgement *j, const int *counts, struct findings *f)
{
    const struct lk_naming *naming = j->pairing->naming;
    for (int i = 0; naming && i < naming->unused_count; i++)
        if (counts[i] > 0)
            add(&f->unused, "%s (%s), %d arrays", naming->unused[i].layer,
                naming->unused[i].why, counts[i]);
}

/* Arrays that no parameter takes. Behind the last one that is taken they are the head of
 * another model, and outside of what all names have in front something else that was saved. */
static void find_in_file(const struct lk_judgement *j, const bool *used, int last,
                         struct findings *f)
{
    const char *prefix = j->pairing->prefix;
    int unused[LK_MOST_UNUSED] = {0};
    for (int i = 0; i < j->file->count; i++) {
        const struct lk_array *array = &j->file->arrays[i];
        if (used[i] || lk_array_is_aside(j->file, array) || is_unused(j, array->name, unused))
            continue;
        const bool is_beside = i > last || strncmp(array->name, prefix, strlen(prefix)) != 0;
        const bool is_fine =
            is_beside && f->extra.count < NAMED && !is_of_known_layer(j, used, i);
        char shape[128];
        add(is_fine ? &f->beside : &f->extra, "'%.100s' %s", array->name,
            shape_text(array->rank, array->shape, shape));
    }
    list_unused(j, unused, f);
}

/* --- what is said ------------------------------------------------------------------------- */

static void print_names(const struct lk_judgement *j, char text[128])
{
    if (!j->pairing->naming)
        snprintf(text, 128, "in order, by shape");
    else if (strcmp(j->pairing->naming->title, "lockstep") == 0)
        snprintf(text, 128, "by our names");
    else
        snprintf(text, 128, "by the names of %s", j->pairing->naming->title);
}

/* The parameters that the file is to have. */
static int expected_count(const struct lk_judgement *j)
{
    int count = 0;
    for (int p = 0; p < j->namings->params; p++)
        count += !j->pairing->pair[p].is_initial;
    return count;
}

/* Those of them that no name has found. */
static int count_by_shape(const struct lk_judgement *j)
{
    int count = 0;
    for (int p = 0; p < j->namings->params; p++)
        count += j->pairing->pair[p].by_shape;
    return count;
}

static enum lk_status refuse(const struct lk_judgement *j, struct findings *f)
{
    char names[128];
    const char *missing = finish(&f->missing), *misshapen = finish(&f->misshapen);
    const char *extra = finish(&f->extra);
    print_names(j, names);
    return lk_fail(LK_E_SHAPE,
                   "'%s' does not fit model '%s' (%d of %d parameters found, %s): "
                   "%s%s%s%s%s%s%s; %s",
                   j->path, j->model, j->pairing->paired, expected_count(j), names, misshapen,
                   *misshapen && (*missing || *extra) ? "; " : "",
                   *missing ? "missing from it: " : "", missing, *missing && *extra ? "; " : "",
                   *extra ? "the model has no " : "", extra,
                   j->pairing->order_fits
                       ? "',by=order' behind the file's name would take all of it in order, "
                         "by shape"
                       : "'train' and 'eval' take what fits with --skip-mismatch");
}

/* Where names do not tell what went where. */
static void print_table(const struct lk_judgement *j)
{
    char shape[128];
    for (int p = 0; p < j->namings->params; p++) {
        const struct lk_pair *pair = &j->pairing->pair[p];
        const struct lk_foreign_param *param = &j->namings->param[p];
        if (pair->fits && (!j->pairing->naming || pair->by_shape))
            lk_log(LK_LOG_INFO, "  %s <- %s %s", param->name, j->file->arrays[pair->array].name,
                   shape_text(j->file->arrays[pair->array].rank,
                              j->file->arrays[pair->array].shape, shape));
    }
}

/* What did not fit and was asked to stay, as one list. */
static void print_skipped(struct findings *f)
{
    const char *missing = finish(&f->missing), *misshapen = finish(&f->misshapen);
    if (*missing)
        lk_log(LK_LOG_INFO, "left as initialized, missing from the file: %s", missing);
    if (*misshapen)
        lk_log(LK_LOG_INFO, "left as initialized, of another shape: %s", misshapen);
}

static void print(const struct lk_judgement *j, struct findings *f)
{
    char names[128], shaped[64] = "";
    const struct lk_naming *naming = j->pairing->naming;
    const char *head = finish(&f->head), *beside = finish(&f->beside);
    const char *extra = finish(&f->extra), *unused = finish(&f->unused);
    print_names(j, names);
    if (count_by_shape(j) > 0)
        snprintf(shaped, sizeof shaped, ", %d of them in order, by shape", count_by_shape(j));
    lk_log(LK_LOG_INFO, "weights of '%s': %d of %d parameters, %s%s", j->path,
           j->pairing->fitting, expected_count(j), names, shaped);
    print_table(j);
    if (naming && naming->differs)
        lk_log(LK_LOG_WARNING, "%s", naming->differs);
    print_skipped(f);
    if (*head)
        lk_log(LK_LOG_INFO, "a new head, as initialized: %s", head);
    if (*unused)
        lk_log(LK_LOG_INFO, "left out, as the model has no use for it: %s", unused);
    if (*beside || *extra)
        lk_log(LK_LOG_INFO, "not used of the file: %s%s%s", beside,
               *beside && *extra ? ", " : "", extra);
}

static void clear(struct findings *f)
{
    struct list *lists[] = {&f->missing, &f->misshapen, &f->extra,
                            &f->head,    &f->beside,    &f->unused};
    for (int i = 0; i < LK_COUNT(lists); i++)
        free(lists[i]->text.bytes);
}

/* Numbers of another kind of layer are refused even where what does not fit may be left out. */
static enum lk_status check_layers(const struct lk_judgement *j)
{
    for (int p = 0; p < j->namings->params; p++) {
        const struct lk_pair *pair = &j->pairing->pair[p];
        if (pair->array >= 0 && pair->layout.refused)
            return lk_fail(LK_E_SHAPE, "'%s' does not fit model '%s': '%.100s' is no %s: %s",
                           j->path, j->model, j->file->arrays[pair->array].name,
                           j->namings->param[p].name, pair->layout.refused);
    }
    return LK_OK;
}

enum lk_status lk_judge(const struct lk_judgement *j)
{
    struct findings f = {.missing.between = ", ",
                         .misshapen.between = "; ",
                         .extra.between = ", ",
                         .head.between = ", ",
                         .beside.between = ", ",
                         .unused.between = "; "};
    int param, array;
    bool *used = NULL;
    enum lk_status status = LK_OK;
    LK_TRY(check_layers(j));
    LK_TRY(lk_pairing_used(j->file, j->namings, j->pairing, &used));
    find_last(j, &param, &array);
    find_in_model(j, used, param, &f);
    find_in_file(j, used, array, &f);
    free(used);
    const bool is_wrong = f.missing.count || f.misshapen.count || f.extra.count;
    if (j->pairing->fitting == 0 && j->pairing->numbers_differ)
        status = lk_fail(LK_E_SHAPE,
                         "'%s' does not fit model '%s': layers without names are counted "
                         "otherwise there; entries with the names of its layers would do",
                         j->path, j->model);
    else if (j->pairing->fitting == 0 && expected_count(j) > 0)
        status = lk_fail(
            LK_E_SHAPE, "'%s' has nothing that fits model '%s': %d arrays, the first '%.100s'",
            j->path, j->model, j->file->count, j->file->count ? j->file->arrays[0].name : "");
    else if (is_wrong && !j->skips_mismatch)
        status = refuse(j, &f);
    else
        print(j, &f);
    clear(&f);
    return status;
}
