/* tfrecord:GLOB,fields=a,b,label=c: lists of numbers in tf.train.Example records. How long each
 * list is, is learnt from the first record; one that differs is a broken sample. */
#include "data/sources/tfrecord.h"
#include "base/fail.h"
#include "data/sources/field.h"
#include "data/tables/groups.h"
#include "data/tables/table.h"
#include "data/tables/tfrecord.h"
#include "io/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_TRIES = 100, MOST_LENGTH = 1 << 24, MOST_NAMED = 4096 };

/* The list under a key. */
struct member {
    const char *key;
    enum lk_example_kind kind;
    int64_t length;
};

/* A field: members first..first+count-1 one after the other. */
struct origin {
    int first, count;
    int64_t length; /* of all its members */
    bool is_class;  /* a class, or a class for each time step */
    struct lk_labels labels;
};

struct table {
    struct lk_records records;
    struct lk_image_options image_options; /* records find their files by its `part` */
    struct lk_table_options options;
    struct lk_groups groups;
    struct member *members; /* [groups.members.count] */
    struct origin origins[LK_MOST_FIELDS];
    struct lk_field fields[LK_MOST_FIELDS];
    char name[64];
    enum lk_data_part found;
};

static void table_close(void *state)
{
    struct table *table = state;
    lk_records_clear(&table->records);
    for (int i = 0; i < LK_MOST_FIELDS; i++)
        lk_labels_clear(&table->origins[i].labels);
    lk_groups_clear(&table->groups);
    free(table->members);
    free(table);
}

/* --- lists ----------------------------------------------------------------------------- */

static const char *kind_name(enum lk_example_kind kind)
{
    return kind == LK_EXAMPLE_BYTES    ? "bytes"
           : kind == LK_EXAMPLE_FLOATS ? "floats"
           : kind == LK_EXAMPLE_INTS   ? "whole numbers"
                                       : "nothing";
}

/* How many items a list has; -1: it is malformed. A list of bytes counts as one item. */
static int64_t list_length(const struct lk_example_list *list)
{
    struct lk_example_bytes value;
    if (list->kind == LK_EXAMPLE_BYTES)
        return lk_example_bytes_at(list, 0, &value) ? 1 : -1;
    return list->kind == LK_EXAMPLE_FLOATS ? lk_example_floats(list, NULL, 0)
                                           : lk_example_ints(list, NULL, 0);
}

/* Finds the list of a member in a record, and checks its length. fails: LK_E_DATA */
static enum lk_status find_list(const struct member *member, struct lk_example_bytes record,
                                struct lk_example_list *list)
{
    LK_TRY(lk_example_find(record, member->key, list));
    const int64_t length = list->kind == LK_EXAMPLE_NONE ? 0 : list_length(list);
    if (list->kind == member->kind && length == member->length)
        return LK_OK;
    return lk_fail(LK_E_DATA, "the key '%s' holds %lld %s, expected are %lld %s", member->key,
                   (long long)length, kind_name(list->kind), (long long)member->length,
                   kind_name(member->kind));
}

/* Learns kind and length of a member's list from a record; in all other records they have to be
 * the same. */
static enum lk_status learn_member(struct member *member, enum lk_field_role role,
                                   struct lk_example_bytes record)
{
    struct lk_example_list list;
    LK_TRY(lk_example_find(record, member->key, &list));
    if (list.kind == LK_EXAMPLE_NONE)
        return lk_records_fail_key(role == LK_FIELD_INPUT ? "numbers" : "label", member->key,
                                   record);
    if (list.kind == LK_EXAMPLE_BYTES && role == LK_FIELD_INPUT)
        return lk_fail(LK_E_DATA,
                       "the key '%s' holds bytes, no numbers; image=%s reads an image",
                       member->key, member->key);
    member->kind = list.kind;
    member->length = list_length(&list);
    if (member->length < 1 || member->length > MOST_LENGTH)
        return lk_fail(LK_E_DATA, "the key '%s' holds a list of %lld %s, expected are 1..%d",
                       member->key, (long long)member->length, kind_name(list.kind),
                       MOST_LENGTH);
    return LK_OK;
}

/* --- labels ---------------------------------------------------------------------------- */

/* Takes the bytes of a label as text; false: they are too many, or one is zero. */
static bool take_word(const struct lk_example_list *list, char word[256])
{
    struct lk_example_bytes bytes;
    if (!lk_example_bytes_at(list, 0, &bytes) || bytes.bytes == 0 || bytes.bytes > 255 ||
        memchr(bytes.data, '\0', bytes.bytes))
        return false;
    memcpy(word, bytes.data, bytes.bytes);
    word[bytes.bytes] = '\0';
    return true;
}

/* Takes a whole number of a label as a class; LK_E_DATA: it cannot be one. */
static enum lk_status take_class(const struct table *table, int64_t value, int64_t *class)
{
    if (__builtin_add_overflow(value, table->options.offset, class) || *class < 0 ||
        *class >= LK_MOST_CLASSES)
        return lk_fail(LK_E_DATA, "label %lld is not in 0..%d", (long long)value,
                       LK_MOST_CLASSES - 1);
    return LK_OK;
}

struct seeing {
    struct table *table;
    int64_t *values; /* [the longest label] */
    enum lk_status status;
};

/* Notes the values of one label in one record. */
static enum lk_status see_label(const struct seeing *seeing, struct origin *origin,
                                struct lk_example_bytes record)
{
    const struct table *table = seeing->table;
    const struct member *member = &table->members[origin->first];
    struct lk_example_list list;
    char word[256];
    if (find_list(member, record, &list) != LK_OK)
        return LK_OK; /* the record counts as broken when it is read */
    if (member->kind == LK_EXAMPLE_BYTES)
        return origin->labels.has_given || !take_word(&list, word)
                   ? LK_OK
                   : lk_class_words_add(&origin->labels.words, word);
    (void)lk_example_ints(&list, seeing->values, member->length);
    for (int64_t i = 0; i < member->length; i++) {
        int64_t class;
        if (take_class(table, seeing->values[i], &class) == LK_OK)
            lk_labels_see_number(&origin->labels, (double)class);
    }
    return LK_OK;
}

static void see_record(void *context, const void *data, size_t bytes)
{
    struct seeing *seeing = context;
    struct table *table = seeing->table;
    for (int i = 0; i < table->groups.count && seeing->status == LK_OK; i++)
        if (table->origins[i].is_class) {
            seeing->status =
                see_label(seeing, &table->origins[i], (struct lk_example_bytes){data, bytes});
            if (seeing->status == LK_OK)
                lk_error_clear();
        }
}

/* Reads the records of this part to find the classes. */
static enum lk_status look_for_classes(struct table *table)
{
    int64_t longest = 1;
    bool has_classes = false;
    for (int i = 0; i < table->groups.count; i++) {
        const struct origin *origin = &table->origins[i];
        if (origin->is_class && origin->length > longest)
            longest = origin->length;
        has_classes = has_classes || origin->is_class;
    }
    if (!has_classes)
        return LK_OK;
    struct seeing seeing = {.table = table, .status = LK_OK};
    seeing.values = calloc((size_t)longest, sizeof *seeing.values);
    enum lk_status status =
        seeing.values ? LK_OK : lk_fail_memory("labels", (size_t)longest * sizeof(int64_t));
    for (int i = 0; i < table->records.file_count && status == LK_OK; i++) {
        status = lk_tfrecord_each(table->records.files[i], see_record, &seeing);
        status = status == LK_OK ? seeing.status : status;
    }
    free(seeing.values);
    for (int i = 0; i < table->groups.count; i++)
        if (!table->origins[i].labels.has_given)
            lk_class_words_sort(&table->origins[i].labels.words);
    return status;
}

/* --- fields ---------------------------------------------------------------------------- */

/* Decides what a label is: floats are numbers, words are classes, whole numbers are classes
 * unless numbers are asked for. */
static enum lk_status learn_label(struct table *table, struct origin *origin)
{
    const struct member *member = &table->members[origin->first];
    const struct lk_table_options *o = &table->options;
    const bool wants_class = o->label_type == LK_LABEL_CLASS;
    bool has_floats = false, has_words = false;
    origin->labels = (struct lk_labels){.most = -1};
    for (int i = 0; i < origin->count; i++) {
        has_floats = has_floats || member[i].kind == LK_EXAMPLE_FLOATS;
        has_words = has_words || member[i].kind == LK_EXAMPLE_BYTES;
    }
    if (has_words && (o->label_type == LK_LABEL_NUMBER || origin->count > 1))
        return lk_fail(LK_E_DATA, "the label '%s' holds bytes, no numbers", member->key);
    if (wants_class && (has_floats || origin->count > 1))
        return lk_fail(LK_E_DATA, "the label '%s' is floats, or of several keys: no class",
                       member->key);
    origin->is_class = origin->count == 1 && !has_floats && o->label_type != LK_LABEL_NUMBER;
    if (!origin->is_class)
        return LK_OK;
    origin->labels.has_words = has_words;
    return lk_labels_decide(&origin->labels, LK_LABEL_CLASS, o->classes);
}

/* Whether a field is tokens: it is one list of whole numbers and nothing else. */
static bool is_tokens(const struct table *table, int i)
{
    const struct lk_group *group = &table->groups.items[i];
    return group->role == LK_FIELD_INPUT && group->count == 1 &&
           table->members[group->first].kind == LK_EXAMPLE_INTS;
}

static enum lk_status learn_field(struct table *table, int i)
{
    const struct lk_group *group = &table->groups.items[i];
    struct origin *origin = &table->origins[i];
    origin->first = group->first;
    origin->count = group->count;
    origin->length = 0;
    for (int k = 0; k < group->count; k++)
        origin->length += table->members[group->first + k].length;
    if (origin->length > MOST_LENGTH)
        return lk_fail(LK_E_DATA, "the field '%s' has %lld numbers, at most %d are expected",
                       group->name, (long long)origin->length, MOST_LENGTH);
    return group->role == LK_FIELD_LABEL ? learn_label(table, origin) : LK_OK;
}

/* A single list of whole numbers without a name of its own is called as its key is. */
static const char *field_name(const struct table *table, int i)
{
    const struct lk_group *group = &table->groups.items[i];
    const char *key = table->groups.members.items[group->first];
    return is_tokens(table, i) && !group->is_named ? key : group->name;
}

/* What the numbers of an input of several keys are called: as their keys, "key[1]" in a list.
 */
static enum lk_status name_elements(struct table *table, int i, const char *const **names)
{
    const struct lk_group *group = &table->groups.items[i];
    const struct origin *origin = &table->origins[i];
    struct lk_arena *arena = &table->groups.arena;
    void *memory;
    if (group->role != LK_FIELD_INPUT || is_tokens(table, i) || origin->length > MOST_NAMED)
        return LK_OK;
    LK_TRY(lk_arena_allocate(arena, (size_t)origin->length * sizeof(char *), &memory));
    const char **made = memory, **at = made;
    for (int m = group->first; m < group->first + group->count; m++) {
        const struct member *member = &table->members[m];
        char name[160];
        for (int64_t k = 0; k < member->length; k++) {
            snprintf(name, sizeof name, "%.120s[%lld]", member->key, (long long)k);
            LK_TRY(lk_arena_text(arena, member->length == 1 ? member->key : name, at++));
        }
    }
    *names = made;
    return LK_OK;
}

static enum lk_status make_fields(struct table *table)
{
    for (int i = 0; i < table->groups.count; i++) {
        const struct lk_group *group = &table->groups.items[i];
        const struct origin *origin = &table->origins[i];
        const bool is_one = group->role == LK_FIELD_LABEL && origin->length == 1;
        const bool is_named = origin->labels.words.names.count > 0;
        const char *name = field_name(table, i);
        const char *const *elements = NULL;
        LK_TRY(name_elements(table, i, &elements));
        if (!lk_field_name_fits(name) || lk_field_find(table->fields, i, name) >= 0)
            return lk_fail(LK_E_ARGUMENT,
                           "'%.150s' cannot name a field, or names two; fields=NAME:KEY says "
                           "another name",
                           name);
        table->fields[i] = (struct lk_field){
            .name = name,
            .dtype = origin->is_class || is_tokens(table, i) ? LK_I32 : LK_F32,
            .shape = {is_one ? 0 : 1, {is_one ? 0 : origin->length}},
            .role = group->role,
            .length = -1,
            .classes = origin->is_class ? lk_labels_classes(&origin->labels) : 0,
            .class_names = is_named ? origin->labels.words.names.items : NULL,
            .element_names = elements};
    }
    return LK_OK;
}

/* Learns what is the same in all records from the first one that can be read. */
static enum lk_status learn(struct table *table)
{
    const struct lk_groups *groups = &table->groups;
    void *data = NULL;
    size_t bytes = 0;
    enum lk_status status = LK_E_DATA;
    for (int64_t i = 0; i < table->records.count && i < FIRST_TRIES && status != LK_OK; i++) {
        int64_t number = i;
        const struct lk_tfrecord *file = lk_records_find_file(&table->records, &number);
        lk_error_clear();
        status = lk_tfrecord_read(file, number, &data, &bytes);
    }
    LK_TRY(status);
    for (int i = 0; i < groups->count && status == LK_OK; i++) {
        const struct lk_group *group = &groups->items[i];
        for (int k = group->first; k < group->first + group->count && status == LK_OK; k++) {
            table->members[k].key = groups->members.items[k];
            status = learn_member(&table->members[k], group->role,
                                  (struct lk_example_bytes){data, bytes});
        }
        if (status == LK_OK)
            status = learn_field(table, i);
    }
    free(data);
    return status == LK_OK
               ? LK_OK
               : lk_fail_within(status, "'%s'", lk_tfrecord_path(table->records.files[0]));
}

static enum lk_status open_records(struct table *table, const char *spec,
                                   enum lk_data_part part, int64_t *lost)
{
    char pattern[4096];
    const struct lk_data_request request = {
        .text = spec, .part = part, .options = &table->image_options};
    snprintf(table->image_options.part, sizeof table->image_options.part, "%s",
             table->options.part);
    LK_TRY(lk_groups_add(&table->groups, LK_FIELD_INPUT, table->options.fields));
    if (*table->options.label)
        LK_TRY(lk_groups_add(&table->groups, LK_FIELD_LABEL, table->options.label));
    table->members = calloc((size_t)table->groups.members.count, sizeof *table->members);
    if (!table->members)
        return lk_fail_memory("keys", (size_t)table->groups.members.count);
    LK_TRY(lk_records_find_part(&request, pattern, sizeof pattern, &table->found));
    LK_TRY(lk_records_open_files(&table->records, pattern, lost));
    if (lk_folder_exists(spec))
        LK_TRY(lk_records_check_files(&table->records, spec));
    return learn(table);
}

/* Takes the classes of the training part for the test part too: it may lack some. */
static enum lk_status take_training_labels(struct table *table, const char *spec)
{
    struct table *train = calloc(1, sizeof *train);
    int64_t lost = 0;
    if (!train)
        return lk_fail_memory("a data set", sizeof *train);
    train->options = table->options;
    enum lk_status status = open_records(train, spec, LK_DATA_TRAIN, &lost);
    if (status == LK_OK)
        status = look_for_classes(train);
    for (int i = 0; i < table->groups.count && status == LK_OK; i++) {
        if (table->origins[i].is_class != train->origins[i].is_class)
            status = lk_fail(LK_E_DATA,
                             "'%s': the label '%s' is of another kind in the training part",
                             lk_tfrecord_path(table->records.files[0]),
                             table->members[table->origins[i].first].key);
        lk_labels_clear(&table->origins[i].labels);
        table->origins[i].labels = train->origins[i].labels;
        train->origins[i].labels = (struct lk_labels){0};
    }
    table_close(train);
    return status;
}

static enum lk_status read_table(struct table *table, const char *spec,
                                 struct lk_data_request *request)
{
    const bool has_parts = lk_folder_exists(spec) && !*table->options.part;
    LK_TRY(open_records(table, spec, request->part, &request->lost));
    if (has_parts && request->part != LK_DATA_TRAIN)
        LK_TRY(take_training_labels(table, spec));
    else
        LK_TRY(look_for_classes(table));
    for (int i = 0; i < table->groups.count; i++)
        if (table->origins[i].is_class && lk_labels_classes(&table->origins[i].labels) < 1)
            return lk_fail(LK_E_DATA, "no record has a label '%s' that is a class",
                           table->members[table->origins[i].first].key);
    return make_fields(table);
}

static enum lk_status table_open(struct lk_data_request *request, struct lk_data_info *info,
                                 void **state)
{
    struct table *table = calloc(1, sizeof *table);
    char *spec = strdup(request->text);
    enum lk_status status = table && spec ? LK_OK : lk_fail_memory("a data set", sizeof *table);
    if (status == LK_OK)
        status = lk_source_parse_options(lk_tfrecord_field_options, spec, &table->options);
    if (status == LK_OK)
        status = read_table(table, spec, request);
    if (status == LK_OK)
        lk_source_name(spec, table->name);
    free(spec);
    if (status != LK_OK) {
        if (table)
            table_close(table);
        return status;
    }
    snprintf(request->max_bad, sizeof request->max_bad, "%s", table->options.max_bad);
    info->name = table->name;
    info->count = table->records.count;
    info->fields = table->fields;
    info->field_count = table->groups.count;
    info->part = table->found;
    *state = table;
    return LK_OK;
}

const struct lk_records *lk_tfrecord_table_records(const void *state)
{
    const struct table *table = state;
    return &table->records;
}

/* --- reading --------------------------------------------------------------------------- */

/* Finds the class of a label that is text. */
static enum lk_status read_word(const struct origin *origin, const struct lk_example_list *list,
                                int32_t *class)
{
    char word[256];
    if (!take_word(list, word))
        return lk_fail(LK_E_DATA, "the label is no text of 1 to 255 bytes");
    return lk_labels_find(&origin->labels, word, class);
}

/* Reads a list of whole numbers, converted to what the field has. */
static enum lk_status read_ints(const struct table *table, int i, const struct member *member,
                                const struct lk_example_list *list, void *to)
{
    const struct origin *origin = &table->origins[i];
    int64_t *values = calloc((size_t)member->length, sizeof *values);
    enum lk_status status =
        values ? LK_OK : lk_fail_memory("numbers", (size_t)member->length * sizeof *values);
    if (values)
        (void)lk_example_ints(list, values, member->length);
    for (int64_t k = 0; k < member->length && status == LK_OK; k++) {
        int64_t value = values[k];
        if (origin->is_class)
            status = take_class(table, value, &value);
        if (status == LK_OK && origin->is_class)
            status = lk_labels_find_number(&origin->labels, value, (int32_t *)to + k);
        else if (status == LK_OK && table->fields[i].dtype == LK_F32)
            ((float *)to)[k] = (float)value;
        else if (status == LK_OK && (value < INT32_MIN || value > INT32_MAX))
            status = lk_fail(LK_E_DATA,
                             "the key '%s': %lld, number %lld of its list, is no "
                             "int32",
                             member->key, (long long)value, (long long)k);
        else if (status == LK_OK)
            ((int32_t *)to)[k] = (int32_t)value;
    }
    free(values);
    return status;
}

static enum lk_status read_floats(const struct member *member,
                                  const struct lk_example_list *list, float *to)
{
    (void)lk_example_floats(list, to, member->length);
    for (int64_t k = 0; k < member->length; k++)
        if (!isfinite(to[k]))
            return lk_fail(LK_E_DATA, "the key '%s': number %lld of its list is not finite",
                           member->key, (long long)k);
    return LK_OK;
}

/* Reads field i of a record, 4 bytes a number. */
static enum lk_status read_field(const struct table *table, int i,
                                 struct lk_example_bytes record, uint8_t *to)
{
    const struct origin *origin = &table->origins[i];
    for (int k = origin->first; k < origin->first + origin->count; k++) {
        const struct member *member = &table->members[k];
        struct lk_example_list list;
        LK_TRY(find_list(member, record, &list));
        if (member->kind == LK_EXAMPLE_BYTES)
            LK_TRY(read_word(origin, &list, (int32_t *)to));
        else if (member->kind == LK_EXAMPLE_FLOATS)
            LK_TRY(read_floats(member, &list, (float *)to));
        else
            LK_TRY(read_ints(table, i, member, &list, to));
        to += 4 * member->length;
    }
    return LK_OK;
}

/* Reads all fields of a record, even those that are not wanted: a record is broken as a
 * whole. */
static enum lk_status read_record(const struct table *table, struct lk_example_bytes record,
                                  void *const to[])
{
    for (int i = 0; i < table->groups.count; i++) {
        void *unwanted = to[i] ? NULL : malloc(lk_field_bytes(&table->fields[i]));
        if (!to[i] && !unwanted)
            return lk_fail_memory("a field", lk_field_bytes(&table->fields[i]));
        const enum lk_status status = read_field(table, i, record, to[i] ? to[i] : unwanted);
        free(unwanted);
        LK_TRY(status);
    }
    return LK_OK;
}

static enum lk_status table_read(const void *state, int64_t index, void *const to[])
{
    const struct table *table = state;
    const struct lk_tfrecord *file = lk_records_find_file(&table->records, &index);
    void *data = NULL;
    size_t bytes = 0;
    LK_TRY(lk_tfrecord_read(file, index, &data, &bytes));
    const enum lk_status status =
        read_record(table, (struct lk_example_bytes){data, bytes}, to);
    free(data);
    return status == LK_OK ? LK_OK
                           : lk_fail_within(status, "'%s', record %lld", lk_tfrecord_path(file),
                                            (long long)index);
}

const struct lk_source lk_source_tfrecord_fields = {.kind = "tfrecord",
                                                    .usage = "tfrecord:GLOB,fields=...",
                                                    .open = table_open,
                                                    .close = table_close,
                                                    .read = table_read,
                                                    .can_break = true};
