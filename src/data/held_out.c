/* A source that has some of another one's samples: those that are held out of the training
 * part, or those that are not. */
#include "data/held_out.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/number.h"
#include "base/random.h"
#include "data/sources/field.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* Takes the place of `inner`: its own verbs translate the index of a sample. */
struct selection {
    struct lk_source source;
    const struct lk_source *inner;
    void *state;
    int64_t *indices; /* [count] of the samples in `inner` */
    int64_t count;
};

/* A sample while it is decided which are held out. */
struct candidate {
    int64_t class; /* -1: it has none, or cannot be read */
    uint64_t chance;
    int64_t index;
};

enum lk_status lk_held_out_parse(char *spec, double *share)
{
    char *next, *end, *value = lk_source_find_value(spec, "val", &next);
    *share = 0;
    if (!value)
        return LK_OK;
    double found = lk_number_read(value, &end);
    if (end > value && *end == '%') {
        found /= 100;
        end++;
    }
    if (end == value || end != next || !(found > 0 && found < 1))
        return lk_fail(LK_E_ARGUMENT,
                       "'%s': val='%.*s': a share between 0 and 1 expected, such as 0.2", spec,
                       (int)(next - value), value);
    *share = found;
    lk_source_cut_value("val", value, next);
    return LK_OK;
}

/* "val", "val.csv", "val-00000-of-00016", "x_val.npy". */
static bool is_validation(const char *entry)
{
    entry += strncmp(entry, "x_", 2) == 0 ? 2 : 0;
    const size_t length = strcspn(entry, "._-");
    for (const char *const *name = lk_source_part_names(LK_DATA_VALIDATION); *name; name++)
        if (lk_source_part_named(*name) == LK_DATA_VALIDATION && strlen(*name) == length &&
            strncmp(entry, *name, length) == 0)
            return true;
    return false;
}

void lk_held_out_tell(const char *spec)
{
    const char *begin = spec + strcspn(spec, ":");
    char *path = strndup(*begin ? begin + 1 : begin, strcspn(begin + (*begin != 0), ","));
    DIR *folder = path ? opendir(path) : NULL;
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL)
        if (is_validation(entry->d_name)) {
            lk_log(LK_LOG_INFO,
                   "'%s/%s' is not used: val= holds out a share of the training part instead",
                   path, entry->d_name);
            break;
        }
    if (folder)
        closedir(folder);
    free(path);
}

/* --- verbs ------------------------------------------------------------------------------- */

static void selection_close(void *state)
{
    struct selection *selection = state;
    selection->inner->close(selection->state);
    free(selection->indices);
    free(selection);
}

static enum lk_status selection_read(const void *state, int64_t index, void *const to[])
{
    const struct selection *selection = state;
    return selection->inner->read(selection->state, selection->indices[index], to);
}

static enum lk_status selection_fetch(const void *state, int64_t index,
                                      struct lk_encoded *encoded)
{
    const struct selection *selection = state;
    return selection->inner->fetch(selection->state, selection->indices[index], encoded);
}

static int64_t selection_label(const void *state, int64_t index)
{
    const struct selection *selection = state;
    return selection->inner->label(selection->state, selection->indices[index]);
}

static enum lk_status selection_about(const void *state, int64_t index,
                                      struct lk_sample_metadata *about)
{
    const struct selection *selection = state;
    return selection->inner->about(selection->state, selection->indices[index], about);
}

static enum lk_status selection_measure(const void *state, int64_t index,
                                        struct lk_text_size *size)
{
    const struct selection *selection = state;
    return selection->inner->measure(selection->state, selection->indices[index], size);
}

static void selection_identify(const void *state, struct lk_sha256 *sum)
{
    const struct selection *selection = state;
    selection->inner->identify(selection->state, sum);
    lk_sha256_add(sum, selection->indices,
                  (size_t)selection->count * sizeof *selection->indices);
}

/* The inner source's table with the verbs of above where it has them. */
static struct lk_source make_source(const struct lk_source *inner)
{
    struct lk_source made = *inner;
    made.close = selection_close;
    made.read = inner->read ? selection_read : NULL;
    made.fetch = inner->fetch ? selection_fetch : NULL;
    made.label = inner->label ? selection_label : NULL;
    made.about = inner->about ? selection_about : NULL;
    made.identify = inner->identify ? selection_identify : NULL;
    made.measure = inner->measure ? selection_measure : NULL;
    made.texts = NULL; /* they are made already */
    made.learn = NULL;
    made.is_ordered = NULL;
    return made;
}

/* --- which samples ----------------------------------------------------------------------- */

int lk_open_source_class_field(const struct lk_open_source *opened)
{
    const struct lk_data_info *info = opened->info;
    if (!info->fields)
        return LK_FIELD_CLASS;
    for (int i = 0; i < info->field_count; i++)
        if (lk_field_is_class(&info->fields[i]))
            return i;
    return -1;
}

/* A sample that cannot be read has no class; reading it for training will say why. */
int64_t lk_open_source_class(const struct lk_open_source *opened, int field, int64_t index)
{
    const struct lk_source *source = opened->source;
    struct lk_sample_metadata about = {0};
    int32_t label = -1;
    void *to[LK_MOST_FIELDS] = {NULL};
    if (source->label)
        return source->label(opened->state, index);
    if (source->about) {
        if (source->about(opened->state, index, &about) == LK_OK)
            return about.label;
    } else if (source->read && field >= 0) {
        to[field] = &label;
        if (source->read(opened->state, index, to) == LK_OK)
            return label;
    }
    lk_error_clear();
    return -1;
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    if (x->chance != y->chance)
        return x->chance < y->chance ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int compare_indices(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of each class its share, rounded; of two samples or more at least one on either side. */
static int64_t held_of(int64_t count, double share)
{
    const int64_t held = (int64_t)((double)count * share + 0.5);
    if (count < 2)
        return 0;
    return held < 1 ? 1 : held >= count ? count - 1 : held;
}

/* Writes the indices of those that are wanted; the candidates are in order. */
static int64_t select_indices(const struct candidate *candidates, int64_t count, double share,
                              bool is_held_out, int64_t *indices)
{
    int64_t selected = 0;
    for (int64_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && candidates[end].class == candidates[first].class;)
            end++;
        const int64_t border = first + held_of(end - first, share);
        for (int64_t i = is_held_out ? first : border; i < (is_held_out ? border : end); i++)
            indices[selected++] = candidates[i].index;
    }
    qsort(indices, (size_t)selected, sizeof *indices, compare_indices);
    return selected;
}

/* The samples' order within a class is by chance, but always the same. Those of one long text
 * keep theirs, the last first: what is held out is its end. */
static void sort_candidates(const struct lk_open_source *opened, struct candidate *candidates)
{
    enum { HOLD_OUT_SEED = 0 };
    const int64_t count = opened->info->count;
    const int field = lk_open_source_class_field(opened);
    const bool is_ordered =
        opened->source->is_ordered && opened->source->is_ordered(opened->state);
    for (int64_t i = 0; i < count; i++) {
        const struct lk_random4 chance =
            lk_random(HOLD_OUT_SEED, LK_RANDOM_HOLD_OUT, 0, (uint64_t)i);
        candidates[i] =
            (struct candidate){.class = is_ordered ? 0 : lk_open_source_class(opened, field, i),
                               .chance = is_ordered ? (uint64_t)(count - i)
                                                    : (uint64_t)chance.v[0] << 32 | chance.v[1],
                               .index = i};
    }
    qsort(candidates, (size_t)count, sizeof *candidates, compare_candidates);
}

/* Selects the samples; a source of texts learns from those that are not held out. */
static enum lk_status select_samples(const struct lk_open_source *opened, double share,
                                     bool is_held_out, struct selection *selection)
{
    const int64_t count = opened->info->count;
    enum lk_status status = LK_OK;
    struct candidate *candidates = calloc((size_t)count, sizeof *candidates);
    selection->indices = calloc((size_t)count, sizeof *selection->indices);
    if (!candidates || !selection->indices) {
        free(candidates);
        return lk_fail_memory("a list of samples", (size_t)count * sizeof *candidates);
    }
    sort_candidates(opened, candidates);
    if (opened->source->learn) {
        const int64_t kept =
            select_indices(candidates, count, share, false, selection->indices);
        status = opened->source->learn(opened->state, selection->indices, kept);
    }
    selection->count =
        select_indices(candidates, count, share, is_held_out, selection->indices);
    free(candidates);
    return status;
}

enum lk_status lk_held_out_take(struct lk_open_source *opened, double share, bool is_held_out)
{
    struct selection *selection = calloc(1, sizeof *selection);
    if (!selection)
        return lk_fail_memory("a data set", sizeof *selection);
    enum lk_status status = select_samples(opened, share, is_held_out, selection);
    if (status == LK_OK && selection->count == 0)
        status =
            lk_fail(LK_E_DATA,
                    "val=%g: no class has two samples, of which one could be held out", share);
    if (status != LK_OK) {
        free(selection->indices);
        free(selection);
        return status;
    }
    selection->inner = opened->source;
    selection->state = opened->state;
    selection->source = make_source(opened->source);
    opened->source = &selection->source;
    opened->state = selection;
    opened->info->count = selection->count;
    opened->info->part = is_held_out ? LK_DATA_VALIDATION : LK_DATA_TRAIN;
    return LK_OK;
}
