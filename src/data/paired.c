/* A source whose samples are two of another one's, and whether these are of one class. */
#include "data/paired.h"

#include "base/fail.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PAIRS = 1000000000, PAIR_SEED = 0 };
enum { A, A_LENGTH, B, B_LENGTH, LABEL, FIELDS };

/* A sample of the other source, among those of its class. */
struct member {
    int64_t class, index;
    int64_t first, end; /* of its class, in the list */
};

/* Takes the place of `inner`. */
struct pairing {
    struct lk_source source;
    const struct lk_source *inner;
    void *state;
    int input, length;      /* fields of `inner`; length -1: there is none */
    struct member *members; /* [count], class by class */
    int64_t count;
    int fields[FIELDS]; /* where each is; -1: nowhere */
    struct lk_field described[FIELDS];
};

enum lk_status lk_paired_parse(char *spec, int64_t *count)
{
    char *next, *end, *value = lk_source_find_value(spec, "pairs", &next);
    *count = 0;
    if (!value)
        return LK_OK;
    const long long found = strtoll(value, &end, 10);
    if (end == value || end != next || found < 1 || found > MOST_PAIRS)
        return lk_fail(LK_E_ARGUMENT,
                       "'%s': pairs='%.*s': a whole number from 1 to %d expected", spec,
                       (int)(next - value), value, MOST_PAIRS);
    *count = found;
    lk_source_cut_value("pairs", value, next);
    return LK_OK;
}

/* --- verbs ------------------------------------------------------------------------------- */

static void pairing_close(void *state)
{
    struct pairing *pairing = state;
    pairing->inner->close(pairing->state);
    free(pairing->members);
    free(pairing);
}

/* Each second pair is of one class, so that classes of labels are as large. */
static bool is_same(int64_t index)
{
    return index % 2 == 0;
}

static int64_t choose(uint32_t bits, int64_t count)
{
    return (int64_t)((uint64_t)bits * (uint64_t)count >> 32);
}

/* Chooses both samples: the first among all, the second among the others of its class, or among
 * those of other classes. */
static void choose_pair(const struct pairing *pairing, int64_t index,
                        const struct member *pair[2])
{
    const struct lk_random4 chance = lk_random(PAIR_SEED, LK_RANDOM_PAIR, 0, (uint64_t)index);
    const int64_t one = choose(chance.v[0], pairing->count);
    const struct member *first = &pairing->members[one];
    const int64_t inside = first->end - first->first;
    int64_t other;
    if (is_same(index)) {
        other = first->first + choose(chance.v[1], inside - 1);
        other += other >= one;
    } else {
        other = choose(chance.v[1], pairing->count - inside);
        other += other >= first->first ? inside : 0;
    }
    pair[0] = first;
    pair[1] = &pairing->members[other];
}

static enum lk_status read_member(const struct pairing *pairing, const struct member *member,
                                  void *input, void *length)
{
    void *to[LK_MOST_FIELDS] = {NULL};
    if (!input && !length)
        return LK_OK;
    to[pairing->input] = input;
    if (pairing->length >= 0)
        to[pairing->length] = length;
    return pairing->inner->read(pairing->state, member->index, to);
}

static void *place_of(const struct pairing *pairing, int field, void *const to[])
{
    return pairing->fields[field] < 0 ? NULL : to[pairing->fields[field]];
}

static enum lk_status pairing_read(const void *state, int64_t index, void *const to[])
{
    const struct pairing *pairing = state;
    const struct member *pair[2];
    int32_t *label = place_of(pairing, LABEL, to);
    choose_pair(pairing, index, pair);
    if (label)
        *label = is_same(index);
    LK_TRY(read_member(pairing, pair[0], place_of(pairing, A, to),
                       place_of(pairing, A_LENGTH, to)));
    return read_member(pairing, pair[1], place_of(pairing, B, to),
                       place_of(pairing, B_LENGTH, to));
}

static int64_t pairing_label(const void *state, int64_t index)
{
    (void)state;
    return is_same(index);
}

/* Of both texts together. */
static enum lk_status pairing_measure(const void *state, int64_t index,
                                      struct lk_text_size *size)
{
    const struct pairing *pairing = state;
    const struct member *pair[2];
    struct lk_text_size sizes[2];
    choose_pair(pairing, index, pair);
    for (int i = 0; i < 2; i++)
        LK_TRY(pairing->inner->measure(pairing->state, pair[i]->index, &sizes[i]));
    *size = (struct lk_text_size){sizes[0].tokens + sizes[1].tokens,
                                  sizes[0].unknown + sizes[1].unknown};
    return LK_OK;
}

static struct lk_source make_source(const struct lk_source *inner)
{
    return (struct lk_source){.kind = inner->kind,
                              .usage = inner->usage,
                              .close = pairing_close,
                              .read = pairing_read,
                              .label = pairing_label,
                              .measure = inner->measure ? pairing_measure : NULL};
}

/* --- fields ------------------------------------------------------------------------------ */

static bool is_length(const struct lk_data_info *info, int index)
{
    for (int i = 0; i < info->field_count; i++)
        if (info->fields[i].length == index)
            return true;
    return false;
}

/* The tokens of a text, which may be an image too; else the only input. */
static enum lk_status find_input(const struct lk_data_info *info, int *input)
{
    int count = 0;
    *input = lk_field_find(info->fields, info->field_count, "tokens");
    if (*input >= 0)
        return LK_OK;
    for (int i = 0; i < info->field_count; i++)
        if (info->fields[i].role == LK_FIELD_INPUT && !is_length(info, i)) {
            *input = i;
            count++;
        }
    return count == 1
               ? LK_OK
               : lk_fail(LK_E_ARGUMENT, "pairs= makes two inputs of one; '%s' has %d inputs",
                         info->name, count);
}

static void add_field(struct pairing *pairing, int *count, int which,
                      const struct lk_field *field)
{
    pairing->fields[which] = *count;
    pairing->described[(*count)++] = *field;
}

static void make_fields(struct pairing *pairing, struct lk_data_info *info)
{
    static const char *const names[] = {"different", "same"};
    static const char *const inputs[] = {"a", "b"}, *const lengths[] = {"a.length", "b.length"};
    const struct lk_field of_label = {.name = "label",
                                      .dtype = LK_I32,
                                      .role = LK_FIELD_LABEL,
                                      .length = -1,
                                      .classes = LK_COUNT(names),
                                      .class_names = names};
    int count = 0;
    for (int i = 0; i < 2; i++) {
        struct lk_field input = info->fields[pairing->input], length = {0};
        input.name = inputs[i];
        input.length = -1;
        if (pairing->length >= 0) {
            length = info->fields[pairing->length];
            length.name = lengths[i];
            input.length = count + 1;
        }
        add_field(pairing, &count, i ? B : A, &input);
        if (pairing->length >= 0)
            add_field(pairing, &count, i ? B_LENGTH : A_LENGTH, &length);
    }
    add_field(pairing, &count, LABEL, &of_label);
    info->fields = pairing->described;
    info->field_count = count;
}

/* --- which samples ----------------------------------------------------------------------- */

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Says of each member which others are of its class; those that are alone in theirs go. */
static void mark_classes(struct pairing *pairing)
{
    struct member *members = pairing->members;
    int64_t kept = 0;
    for (int64_t first = 0, end; first < pairing->count; first = end) {
        for (end = first + 1;
             end < pairing->count && members[end].class == members[first].class;)
            end++;
        const int64_t begin = kept;
        for (int64_t i = first; i < end && end - first > 1; i++) {
            members[kept] = members[i];
            members[kept].first = begin;
            members[kept++].end = begin + end - first;
        }
    }
    pairing->count = kept;
}

static enum lk_status find_members(const struct lk_open_source *opened,
                                   struct lk_broken *broken, struct pairing *pairing)
{
    const int64_t count = opened->info->count;
    const int field = lk_open_source_class_field(opened);
    if (field < 0)
        return lk_fail(LK_E_ARGUMENT, "pairs= needs a label that is a class; '%s' has none",
                       opened->info->name);
    pairing->members = calloc((size_t)count, sizeof *pairing->members);
    if (!pairing->members)
        return lk_fail_memory("a list of samples", (size_t)count * sizeof *pairing->members);
    for (int64_t i = 0; i < count; i++) {
        const int64_t class = lk_open_source_class(opened, field, i);
        if (class < 0 && broken)
            lk_broken_mark(broken, i);
        if (class >= 0)
            pairing->members[pairing->count++] = (struct member){.class = class, .index = i};
    }
    if (broken)
        LK_TRY(lk_broken_check(broken));
    qsort(pairing->members, (size_t)pairing->count, sizeof *pairing->members, compare_members);
    mark_classes(pairing);
    if (pairing->count > 0 && pairing->members[0].end < pairing->count)
        return LK_OK;
    return lk_fail(LK_E_DATA, "pairs= needs two classes of at least two samples; '%s' has %s",
                   opened->info->name, pairing->count > 0 ? "one" : "none");
}

static enum lk_status prepare(const struct lk_open_source *opened, struct lk_broken *broken,
                              struct pairing *pairing)
{
    const struct lk_data_info *info = opened->info;
    if (!info->fields || !opened->source->read)
        return lk_fail(LK_E_ARGUMENT,
                       "pairs= is for texts and numbers, and no images; '%s' has images",
                       info->name);
    for (int i = 0; i < FIELDS; i++)
        pairing->fields[i] = -1;
    LK_TRY(find_input(info, &pairing->input));
    pairing->length = info->fields[pairing->input].length;
    return find_members(opened, broken, pairing);
}

enum lk_status lk_paired_take(struct lk_open_source *opened, int64_t count,
                              struct lk_broken *broken)
{
    struct pairing *pairing = calloc(1, sizeof *pairing);
    if (!pairing)
        return lk_fail_memory("a data set", sizeof *pairing);
    const enum lk_status status = prepare(opened, broken, pairing);
    if (status != LK_OK) {
        free(pairing->members);
        free(pairing);
        return status;
    }
    make_fields(pairing, opened->info);
    pairing->inner = opened->source;
    pairing->state = opened->state;
    pairing->source = make_source(opened->source);
    opened->source = &pairing->source;
    opened->state = pairing;
    opened->info->count = opened->info->part == LK_DATA_TRAIN ? count : (count + 5) / 6;
    return LK_OK;
}
