/* csv:FILE,fields=a,b,label=c: columns of numbers, named by the first line. csv:DIR: train.csv
 * and test.csv (or val.csv) there. A line that lacks a number is a broken sample. */
#include "data/sources/csv.h"
#include "base/fail.h"
#include "base/log.h"
#include "data/sources/source.h"
#include "data/tables/groups.h"
#include "data/tables/table.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILE_BYTES = 1 << 30, MOST_COLUMNS = 1 << 16, MOST_NAMED = 1000 };

/* A field of the table: its columns are csv.columns[first..first+count-1]. */
struct origin {
    int first, count;
    bool is_class;
    size_t at; /* where its numbers, or its class, begin in a row */
    struct lk_labels labels;
};

struct csv {
    char path[LK_SOURCE_PATH], name[64];
    enum lk_data_part found;
    struct lk_table_options options;
    struct lk_groups groups;
    struct origin origins[LK_MOST_FIELDS];
    struct lk_field fields[LK_MOST_FIELDS];
    struct lk_names header;
    int *columns;                /* [of all origins] numbers of columns */
    const char **names;          /* [of all origins] of columns */
    bool *has_number, *has_word; /* [header.count] whether a cell of the column is one */
    char *text;                  /* of the file, while it is read */
    char **cells;                /* [header.count + 1] of a line */
    int64_t count, room;
    int64_t *rows;          /* [count]: the number of a row of `values`; below 0: the line is
                             * broken, -1 - number of its entry in `faults` */
    struct lk_names faults; /* why lines are broken */
    float *values;          /* [rows that are whole][width], classes as int32 */
    int64_t whole, values_room;
    size_t width;
};

static void clear_file(struct csv *csv)
{
    free(csv->text);
    free(csv->cells);
    csv->text = NULL;
    csv->cells = NULL;
}

static void csv_close(void *state)
{
    struct csv *csv = state;
    clear_file(csv);
    for (int i = 0; i < LK_MOST_FIELDS; i++)
        lk_labels_clear(&csv->origins[i].labels);
    lk_groups_clear(&csv->groups);
    lk_names_clear(&csv->header);
    lk_names_clear(&csv->faults);
    free(csv->columns);
    free(csv->names);
    free(csv->has_number);
    free(csv->has_word);
    free(csv->rows);
    free(csv->values);
    free(csv);
}

/* --- lines ----------------------------------------------------------------------------- */

/* Cuts a line into at most `most` cells; returns their number, or -1 where a quote does not
 * end. */
static int split(char *line, char **cells, int most)
{
    int count = 0;
    for (char *rest = line; rest && count < most; count++)
        if (lk_csv_take(&rest, &cells[count]) != LK_OK) {
            lk_error_clear();
            return -1;
        }
    return count;
}

/* Calls `see` with the cells of each line behind the header. */
static enum lk_status see_rows(struct csv *csv,
                               enum lk_status (*see)(struct csv *csv, int64_t line, int cells))
{
    char *text = strdup(csv->text);
    if (!text)
        return lk_fail_memory(csv->path, strlen(csv->text));
    enum lk_status status = LK_OK;
    char *rest = text + strcspn(text, "\n");
    for (int64_t line = 2; *rest && status == LK_OK; line++) {
        char *begin = rest + 1;
        rest = begin + strcspn(begin, "\n");
        const size_t length = (size_t)(rest - begin);
        const char kept = *rest;
        *rest = '\0';
        if (length > 0 && begin[length - 1] == '\r')
            begin[length - 1] = '\0';
        if (*begin)
            status = see(csv, line, split(begin, csv->cells, csv->header.count + 1));
        *rest = kept;
    }
    free(text);
    return status;
}

static const char *column_name(const void *context, int i)
{
    const struct csv *csv = context;
    return i < csv->header.count ? csv->header.items[i] : NULL;
}

static enum lk_status find_column(const struct csv *csv, const char *name, int *column)
{
    *column = lk_names_find(&csv->header, name);
    if (*column < 0) {
        const char *near = lk_nearest_name(name, column_name, csv);
        return lk_fail(LK_E_DATA, "'%s' has no column '%s'%s%s%s", csv->path, name,
                       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    for (int i = *column + 1; i < csv->header.count; i++)
        if (strcmp(csv->header.items[i], name) == 0)
            return lk_fail(LK_E_DATA, "'%s' has two columns '%s'", csv->path, name);
    return LK_OK;
}

/* The names of columns, in the first line. */
static enum lk_status read_header(struct csv *csv)
{
    char *line = strndup(csv->text, strcspn(csv->text, "\r\n"));
    enum lk_status status = line ? LK_OK : lk_fail_memory("a header", strlen(csv->text));
    for (char *rest = line; rest && status == LK_OK;) {
        char *cell = NULL;
        status = csv->header.count < MOST_COLUMNS
                     ? lk_csv_take(&rest, &cell)
                     : lk_fail(LK_E_DATA, "more than %d columns", MOST_COLUMNS);
        if (status == LK_OK)
            status = lk_names_add(&csv->header, cell);
    }
    free(line);
    if (status != LK_OK)
        return lk_fail_within(status, "'%s', line 1", csv->path);
    csv->cells = calloc((size_t)csv->header.count + 1, sizeof *csv->cells);
    return csv->cells ? LK_OK : lk_fail_memory("cells", (size_t)csv->header.count);
}

static enum lk_status load(struct csv *csv)
{
    static const char mark[] = "\xef\xbb\xbf";
    void *data = NULL;
    size_t bytes = 0;
    LK_TRY(lk_file_read(csv->path, MOST_FILE_BYTES, &data, &bytes));
    csv->text = data;
    const char *zero = memchr(csv->text, '\0', bytes);
    if (zero)
        return lk_fail(LK_E_DATA, "'%s': a byte that is zero, at %zu: no text", csv->path,
                       (size_t)(zero - csv->text));
    if (strncmp(csv->text, mark, strlen(mark)) == 0) /* the byte order mark of UTF-8 */
        memmove(csv->text, csv->text + strlen(mark), bytes + 1 - strlen(mark));
    return read_header(csv);
}

/* --- columns --------------------------------------------------------------------------- */

static bool is_label(const struct csv *csv, const char *name)
{
    for (int i = 0; i < csv->groups.count; i++) {
        const struct lk_group *group = &csv->groups.items[i];
        for (int k = 0; k < group->count && group->role == LK_FIELD_LABEL; k++)
            if (strcmp(csv->groups.members.items[group->first + k], name) == 0)
                return true;
    }
    return false;
}

static enum lk_status see_kinds(struct csv *csv, int64_t line, int cells)
{
    double number;
    (void)line;
    for (int i = 0; i < csv->header.count && cells == csv->header.count; i++) {
        const bool is_number = lk_table_number(csv->cells[i], &number);
        csv->has_number[i] |= is_number;
        csv->has_word[i] |= !is_number && *csv->cells[i];
    }
    return LK_OK;
}

/* "*": all columns but those of labels, and those that are words from the first line to the
 * last. */
static enum lk_status take_all(struct csv *csv, struct origin *origin)
{
    const size_t count = (size_t)csv->header.count;
    csv->has_number = calloc(count, sizeof *csv->has_number);
    csv->has_word = calloc(count, sizeof *csv->has_word);
    if (!csv->has_number || !csv->has_word)
        return lk_fail_memory("columns", count);
    LK_TRY(see_rows(csv, see_kinds));
    origin->count = 0;
    for (int i = 0; i < csv->header.count; i++) {
        const char *name = csv->header.items[i];
        if (is_label(csv, name))
            continue;
        if (csv->has_word[i] && !csv->has_number[i])
            lk_log(LK_LOG_INFO, "'%s': column '%s' has no number; fields=* leaves it out",
                   csv->path, name);
        else
            csv->columns[origin->first + origin->count++] = i;
    }
    return origin->count > 0
               ? LK_OK
               : lk_fail(LK_E_DATA, "'%s' has no column of numbers but labels", csv->path);
}

static enum lk_status find_columns(struct csv *csv)
{
    const struct lk_groups *groups = &csv->groups;
    const size_t most = (size_t)groups->members.count + (size_t)csv->header.count;
    csv->columns = calloc(most, sizeof *csv->columns);
    if (!csv->columns)
        return lk_fail_memory("columns", most * sizeof *csv->columns);
    int used = 0;
    bool has_all = false;
    for (int i = 0; i < groups->count; i++) {
        const struct lk_group *group = &groups->items[i];
        const char *const *names = &groups->members.items[group->first];
        struct origin *origin = &csv->origins[i];
        origin->first = used;
        origin->count = group->count;
        if (!has_all && group->role == LK_FIELD_INPUT && group->count == 1 &&
            strcmp(names[0], "*") == 0) {
            has_all = true;
            LK_TRY(take_all(csv, origin));
        } else {
            for (int k = 0; k < group->count; k++)
                LK_TRY(find_column(csv, names[k], &csv->columns[used + k]));
        }
        used += origin->count;
    }
    csv->names = calloc((size_t)used, sizeof *csv->names);
    if (!csv->names)
        return lk_fail_memory("names of columns", (size_t)used * sizeof *csv->names);
    for (int i = 0; i < used; i++)
        csv->names[i] = csv->header.items[csv->columns[i]];
    return LK_OK;
}

/* --- labels ---------------------------------------------------------------------------- */

/* Whether label i is of one column: what it means then follows from the values in lines that
 * have all columns. */
static bool is_single_label(const struct csv *csv, int i)
{
    return csv->groups.items[i].role == LK_FIELD_LABEL && csv->origins[i].count == 1;
}

static enum lk_status see_labels(struct csv *csv, int64_t line, int cells)
{
    (void)line;
    for (int i = 0; i < csv->groups.count && cells == csv->header.count; i++) {
        const char *cell = csv->cells[csv->columns[csv->origins[i].first]];
        if (is_single_label(csv, i) && *cell)
            lk_labels_see(&csv->origins[i].labels, cell);
    }
    return LK_OK;
}

/* Checks a line: why it is no sample, in `why`; "": its inputs are all numbers. */
static void check_inputs(const struct csv *csv, int cells, char why[512])
{
    double number;
    *why = '\0';
    if (cells < 0)
        snprintf(why, 512, "a quote that does not end");
    else if (cells != csv->header.count)
        snprintf(why, 512, "%s%d columns, %d are expected",
                 cells > csv->header.count ? "more than " : "",
                 cells > csv->header.count ? csv->header.count : cells, csv->header.count);
    for (int i = 0; i < csv->groups.count && !*why; i++) {
        const struct origin *origin = &csv->origins[i];
        for (int k = 0; k < origin->count && !*why; k++) {
            const int column = csv->columns[origin->first + k];
            const char *cell = csv->cells[column];
            const bool is_number = origin->is_class || lk_table_number(cell, &number);
            if (!*cell || !is_number)
                snprintf(why, 512, "column '%.200s': %s%.100s%s", csv->header.items[column],
                         *cell ? "'" : "", *cell ? cell : "there is nothing",
                         *cell ? "' is no number" : "");
        }
    }
}

static enum lk_status collect_words(struct csv *csv, int64_t line, int cells)
{
    char why[512];
    check_inputs(csv, cells, why);
    for (int i = 0; i < csv->groups.count && !*why; i++) {
        struct lk_labels *labels = &csv->origins[i].labels;
        if (!csv->origins[i].is_class || labels->kind != LK_LABELS_NAMED || labels->has_given)
            continue;
        const enum lk_status status =
            lk_class_words_add(&labels->words, csv->cells[csv->columns[csv->origins[i].first]]);
        if (status != LK_OK)
            return lk_fail_within(status, "'%s', line %lld", csv->path, (long long)line);
    }
    return LK_OK;
}

/* Classes and kinds of labels by the values of this file. */
static enum lk_status find_labels(struct csv *csv)
{
    const struct lk_table_options *o = &csv->options;
    for (int i = 0; i < csv->groups.count; i++)
        csv->origins[i].labels = (struct lk_labels){.most = -1};
    LK_TRY(see_rows(csv, see_labels));
    bool collects = false;
    for (int i = 0; i < csv->groups.count; i++) {
        struct origin *origin = &csv->origins[i];
        if (csv->groups.items[i].role == LK_FIELD_LABEL && origin->count > 1 &&
            o->label_type == LK_LABEL_CLASS)
            return lk_fail(LK_E_ARGUMENT, "csv: a label of %d columns is numbers, no class",
                           origin->count);
        if (!is_single_label(csv, i))
            continue;
        LK_TRY(
            lk_labels_decide(&origin->labels, (enum lk_label_type)o->label_type, o->classes));
        origin->is_class = origin->labels.kind != LK_LABELS_NUMBERS;
        collects =
            collects || (origin->labels.kind == LK_LABELS_NAMED && !origin->labels.has_given);
    }
    if (!collects)
        return LK_OK;
    LK_TRY(see_rows(csv, collect_words));
    for (int i = 0; i < csv->groups.count; i++)
        if (!csv->origins[i].labels.has_given)
            lk_class_words_sort(&csv->origins[i].labels.words);
    return LK_OK;
}

static enum lk_status open_file(struct csv *csv, const char *spec, enum lk_data_part part)
{
    LK_TRY(lk_groups_add(&csv->groups, LK_FIELD_INPUT, csv->options.fields));
    if (*csv->options.label)
        LK_TRY(lk_groups_add(&csv->groups, LK_FIELD_LABEL, csv->options.label));
    LK_TRY(lk_source_find_file("csv", spec, ".csv", part, csv->path, &csv->found));
    LK_TRY(load(csv));
    return find_columns(csv);
}

/* Takes the classes of the training part for the test part too: a test set may lack some. */
static enum lk_status take_training_labels(struct csv *csv, const char *spec)
{
    struct csv *train = calloc(1, sizeof *train);
    if (!train)
        return lk_fail_memory("a data set", sizeof *train);
    train->options = csv->options;
    enum lk_status status = open_file(train, spec, LK_DATA_TRAIN);
    if (status == LK_OK)
        status = find_labels(train);
    for (int i = 0; i < csv->groups.count && status == LK_OK; i++) {
        csv->origins[i].labels = train->origins[i].labels;
        csv->origins[i].is_class = train->origins[i].is_class;
        train->origins[i].labels = (struct lk_labels){0};
    }
    csv_close(train);
    return status;
}

/* --- values ---------------------------------------------------------------------------- */

static enum lk_status make_room(struct csv *csv)
{
    if (csv->count == csv->room) {
        const int64_t room = csv->room ? 2 * csv->room : 1024;
        int64_t *rows = realloc(csv->rows, (size_t)room * sizeof *rows);
        if (!rows)
            return lk_fail_memory("lines", (size_t)room * sizeof *rows);
        csv->rows = rows;
        csv->room = room;
    }
    if (csv->whole == csv->values_room) {
        const int64_t room = csv->values_room ? 2 * csv->values_room : 16;
        float *values = realloc(csv->values, (size_t)room * csv->width * sizeof *values);
        if (!values)
            return lk_fail_memory("numbers", (size_t)room * csv->width * sizeof *values);
        csv->values = values;
        csv->values_room = room;
    }
    return LK_OK;
}

/* Notes why a line is broken. After very many messages the last one serves for all further
 * lines. */
static enum lk_status add_fault(struct csv *csv, int64_t line, const char *why)
{
    char text[LK_SOURCE_PATH + 600];
    snprintf(text, sizeof text, "'%s', line %lld: %s", csv->path, (long long)line, why);
    if (csv->faults.count < MOST_NAMED)
        LK_TRY(lk_names_add(&csv->faults, text));
    csv->rows[csv->count++] = -csv->faults.count;
    return LK_OK;
}

/* Reads the numbers of a line, whose inputs have been checked, into `row`. */
static enum lk_status take_values(const struct csv *csv, float *row)
{
    for (int i = 0; i < csv->groups.count; i++) {
        const struct origin *origin = &csv->origins[i];
        const int *columns = &csv->columns[origin->first];
        if (origin->is_class) {
            int32_t label = 0;
            LK_TRY(lk_labels_find(&origin->labels, csv->cells[columns[0]], &label));
            memcpy(row + origin->at, &label, sizeof label);
            continue;
        }
        for (int k = 0; k < origin->count; k++) {
            double number = 0;
            (void)lk_table_number(csv->cells[columns[k]], &number);
            row[origin->at + (size_t)k] = (float)number;
        }
    }
    return LK_OK;
}

static enum lk_status add_row(struct csv *csv, int64_t line, int cells)
{
    char why[512];
    LK_TRY(make_room(csv));
    check_inputs(csv, cells, why);
    if (*why)
        return add_fault(csv, line, why);
    float *row = csv->values + (size_t)csv->whole * csv->width;
    if (take_values(csv, row) != LK_OK) {
        snprintf(why, sizeof why, "%.500s", lk_error_text());
        lk_error_clear();
        return add_fault(csv, line, why);
    }
    csv->rows[csv->count++] = csv->whole++;
    return LK_OK;
}

static void make_fields(struct csv *csv)
{
    csv->width = 0;
    for (int i = 0; i < csv->groups.count; i++) {
        const struct lk_group *group = &csv->groups.items[i];
        struct origin *origin = &csv->origins[i];
        const bool is_one = group->role == LK_FIELD_LABEL && origin->count == 1;
        const bool is_named = origin->labels.words.names.count > 0;
        origin->at = csv->width;
        csv->width += (size_t)origin->count;
        csv->fields[i] = (struct lk_field){
            .name = group->name,
            .dtype = origin->is_class ? LK_I32 : LK_F32,
            .shape = {is_one ? 0 : 1, {is_one ? 0 : origin->count}},
            .role = group->role,
            .length = -1,
            .classes = origin->is_class ? lk_labels_classes(&origin->labels) : 0,
            .class_names = is_named ? origin->labels.words.names.items : NULL,
            .element_names = is_one ? NULL : csv->names + origin->first,
        };
    }
}

static enum lk_status read_table(struct csv *csv, const char *spec, enum lk_data_part part)
{
    LK_TRY(open_file(csv, spec, part));
    if (part != LK_DATA_TRAIN && lk_folder_exists(spec))
        LK_TRY(take_training_labels(csv, spec));
    else
        LK_TRY(find_labels(csv));
    make_fields(csv);
    LK_TRY(see_rows(csv, add_row));
    clear_file(csv);
    if (csv->count == 0)
        return lk_fail(LK_E_DATA, "'%s' has no line behind the names of columns", csv->path);
    if (csv->whole == 0)
        return lk_fail(LK_E_DATA, "no line can be read; the first: %s", csv->faults.items[0]);
    return LK_OK;
}

static enum lk_status csv_open(struct lk_data_request *request, struct lk_data_info *info,
                               void **state)
{
    struct csv *csv = calloc(1, sizeof *csv);
    char *spec = strdup(request->text);
    enum lk_status status = csv && spec ? LK_OK : lk_fail_memory("a data set", sizeof *csv);
    if (status == LK_OK)
        status = lk_source_parse_options(lk_csv_field_options, spec, &csv->options);
    if (status == LK_OK)
        status = read_table(csv, spec, request->part);
    if (status == LK_OK)
        lk_source_name(spec, csv->name);
    free(spec);
    if (status != LK_OK) {
        if (csv)
            csv_close(csv);
        return status;
    }
    snprintf(request->max_bad, sizeof request->max_bad, "%s", csv->options.max_bad);
    info->name = csv->name;
    info->count = csv->count;
    info->fields = csv->fields;
    info->field_count = csv->groups.count;
    info->part = csv->found;
    *state = csv;
    return LK_OK;
}

static enum lk_status csv_read(const void *state, int64_t index, void *const to[])
{
    const struct csv *csv = state;
    const int64_t row = csv->rows[index];
    if (row < 0)
        return lk_fail(LK_E_DATA, "%s", csv->faults.items[-row - 1]);
    const float *values = csv->values + (size_t)row * csv->width;
    for (int i = 0; i < csv->groups.count; i++)
        if (to[i])
            memcpy(to[i], values + csv->origins[i].at,
                   (size_t)csv->origins[i].count * sizeof *values);
    return LK_OK;
}

const struct lk_source lk_source_csv_fields = {.kind = "csv",
                                               .usage = "csv:FILE,fields=...",
                                               .open = csv_open,
                                               .close = csv_close,
                                               .read = csv_read,
                                               .can_break = true,
                                               .knows_broken = true};
