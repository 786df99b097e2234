/* csv:FILE,fields=a,b,label=c: columns of numbers, named by the first line. csv:DIR: train.csv
 * and test.csv (or val.csv) there. A line that lacks a number is a broken sample.
 * source: RFC 4180 */
#include "data/tables/csv.h"

#include "base/fail.h"
#include "base/log.h"
#include "data/sources/csv.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILE_BYTES = 1 << 30, MOST_COLUMNS = 1 << 16 };

static void clear_file(struct lk_csv *csv)
{
    free(csv->text);
    free(csv->cells);
    csv->text = NULL;
    csv->cells = NULL;
}

static void csv_close(void *state)
{
    struct lk_csv *csv = state;
    clear_file(csv);
    for (int i = 0; i < LK_MOST_FIELDS; i++)
        lk_labels_clear(&csv->origins[i].labels);
    lk_groups_clear(&csv->groups);
    lk_texts_clear(&csv->texts.texts);
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

static char *end_row(char *row)
{
    return row + (lk_csv_row_end(row) - row);
}

static int64_t breaks_between(const char *from, const char *to)
{
    int64_t count = 0;
    for (; from < to; from++)
        count += *from == '\n';
    return count;
}

enum lk_status lk_csv_see_rows(struct lk_csv *csv,
                               enum lk_status (*see)(struct lk_csv *csv, int64_t line,
                                                     int cells))
{
    char *text = strdup(csv->text);
    if (!text)
        return lk_fail_memory(csv->path, strlen(csv->text));
    enum lk_status status = LK_OK;
    char *rest = end_row(text);
    int64_t line = 1 + breaks_between(text, rest);
    while (*rest && status == LK_OK) {
        char *begin = rest + 1;
        rest = end_row(begin);
        line++;
        const int64_t further = breaks_between(begin, rest);
        const size_t length = (size_t)(rest - begin);
        const char kept = *rest;
        *rest = '\0';
        if (length > 0 && begin[length - 1] == '\r')
            begin[length - 1] = '\0';
        if (*begin)
            status = see(csv, line, split(begin, csv->cells, csv->header.count + 1));
        *rest = kept;
        line += further;
    }
    free(text);
    return status;
}

static const char *column_name(const void *context, int i)
{
    const struct lk_csv *csv = context;
    return i < csv->header.count ? csv->header.items[i] : NULL;
}

static enum lk_status find_column(const struct lk_csv *csv, const char *name, int *column)
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

/* The names of columns, in the first line, which a quoted line break does not end. */
static enum lk_status read_header(struct lk_csv *csv)
{
    const size_t first = strcspn(csv->text, "\n");
    const size_t whole = (size_t)(lk_csv_row_end(csv->text) - csv->text);
    const bool ends_in_return = whole > first && csv->text[whole - 1] == '\r';
    char *line = strndup(csv->text, whole > first ? whole - (size_t)ends_in_return
                                                  : strcspn(csv->text, "\r\n"));
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

static enum lk_status load(struct lk_csv *csv)
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

/* Whether it is the column of a label, or of texts. */
static bool is_label(const struct lk_csv *csv, const char *name)
{
    for (int i = 0; i < csv->groups.count; i++) {
        const struct lk_group *group = &csv->groups.items[i];
        const bool is_other = group->role == LK_FIELD_LABEL || csv->origins[i].text >= 0;
        for (int k = 0; k < group->count && is_other; k++)
            if (strcmp(csv->groups.members.items[group->first + k], name) == 0)
                return true;
    }
    return false;
}

static enum lk_status see_kinds(struct lk_csv *csv, int64_t line, int cells)
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
static enum lk_status take_all(struct lk_csv *csv, struct lk_csv_origin *origin)
{
    const size_t count = (size_t)csv->header.count;
    csv->has_number = calloc(count, sizeof *csv->has_number);
    csv->has_word = calloc(count, sizeof *csv->has_word);
    if (!csv->has_number || !csv->has_word)
        return lk_fail_memory("columns", count);
    LK_TRY(lk_csv_see_rows(csv, see_kinds));
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

static enum lk_status find_columns(struct lk_csv *csv)
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
        struct lk_csv_origin *origin = &csv->origins[i];
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

/* --- opening --------------------------------------------------------------------------- */

/* Adds the fields that are texts, of a column each, in front of all others. */
static enum lk_status add_texts(struct lk_csv *csv)
{
    for (int i = 0; i < LK_MOST_FIELDS; i++)
        csv->origins[i].text = -1;
    if (*csv->options.texts)
        LK_TRY(lk_groups_add(&csv->groups, LK_FIELD_INPUT, csv->options.texts));
    for (int i = 0; i < csv->groups.count; i++) {
        struct lk_group *group = &csv->groups.items[i];
        csv->origins[i].text = i;
        if (group->count != 1)
            return lk_fail(LK_E_ARGUMENT,
                           "csv: a text is one column; text=NAME:a,OTHER:b are two of them");
        snprintf(csv->text_name, sizeof csv->text_name, "tokens");
        if (!group->is_named)
            group->name = csv->text_name;
    }
    return LK_OK;
}

static int texts_of(const struct lk_csv *csv)
{
    int count = 0;
    for (int i = 0; i < csv->groups.count; i++)
        count += csv->origins[i].text >= 0;
    return count;
}

static enum lk_status open_file(struct lk_csv *csv, const char *spec, enum lk_data_part part)
{
    LK_TRY(add_texts(csv));
    if (*csv->options.fields)
        LK_TRY(lk_groups_add(&csv->groups, LK_FIELD_INPUT, csv->options.fields));
    if (*csv->options.label)
        LK_TRY(lk_groups_add(&csv->groups, LK_FIELD_LABEL, csv->options.label));
    LK_TRY(lk_source_find_file("csv", spec, ".csv", part, csv->path, &csv->found));
    LK_TRY(load(csv));
    return find_columns(csv);
}

/* Takes the classes of the training part for the test part too: a test set may lack some. */
static enum lk_status take_training_labels(struct lk_csv *csv, const char *spec)
{
    struct lk_csv *train = calloc(1, sizeof *train);
    if (!train)
        return lk_fail_memory("a data set", sizeof *train);
    train->options = csv->options;
    enum lk_status status = open_file(train, spec, LK_DATA_TRAIN);
    if (status == LK_OK)
        status = lk_csv_find_labels(train);
    for (int i = 0; i < csv->groups.count && status == LK_OK; i++) {
        csv->origins[i].labels = train->origins[i].labels;
        csv->origins[i].is_class = train->origins[i].is_class;
        train->origins[i].labels = (struct lk_labels){0};
    }
    csv_close(train);
    return status;
}

/* --- values ---------------------------------------------------------------------------- */

static enum lk_status make_room(struct lk_csv *csv)
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
        const size_t width = csv->width > 0 ? csv->width : 1; /* texts alone have no numbers */
        float *values = realloc(csv->values, (size_t)room * width * sizeof *values);
        if (!values)
            return lk_fail_memory("numbers", (size_t)room * width * sizeof *values);
        csv->values = values;
        csv->values_room = room;
    }
    return LK_OK;
}

static enum lk_status add_fault(struct lk_csv *csv, int64_t line, const char *why)
{
    return lk_table_add_fault(&csv->faults, csv->path, line, why, &csv->rows[csv->count++]);
}

/* Reads the numbers of a line, whose inputs have been checked, into `row`. */
static enum lk_status take_values(struct lk_csv *csv, float *row)
{
    for (int i = 0; i < csv->groups.count; i++) {
        const struct lk_csv_origin *origin = &csv->origins[i];
        const int *columns = &csv->columns[origin->first];
        if (origin->is_class) {
            int32_t label = 0;
            LK_TRY(lk_labels_find(&origin->labels, csv->cells[columns[0]], &label));
            memcpy(row + origin->at, &label, sizeof label);
            continue;
        }
        if (origin->text >= 0) {
            const char *cell = csv->cells[columns[0]];
            LK_TRY(lk_texts_add(&csv->texts.texts, cell, strlen(cell), false));
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

static enum lk_status add_row(struct lk_csv *csv, int64_t line, int cells)
{
    char why[512];
    LK_TRY(make_room(csv));
    lk_csv_check_inputs(csv, cells, why);
    if (*why)
        return add_fault(csv, line, why);
    float *row = csv->values + (size_t)csv->whole * csv->width;
    const enum lk_status status = take_values(csv, row);
    if (status != LK_OK && status != LK_E_DATA)
        return status;
    if (status != LK_OK) {
        lk_texts_shorten(&csv->texts.texts, csv->whole * csv->texts.count);
        snprintf(why, sizeof why, "%.500s", lk_error_text());
        lk_error_clear();
        return add_fault(csv, line, why);
    }
    csv->rows[csv->count++] = csv->whole++;
    return LK_OK;
}

static void make_fields(struct lk_csv *csv)
{
    csv->width = 0;
    for (int i = 0; i < csv->groups.count; i++) {
        const struct lk_group *group = &csv->groups.items[i];
        struct lk_csv_origin *origin = &csv->origins[i];
        const bool is_one = group->role == LK_FIELD_LABEL && origin->count == 1;
        const bool is_named = origin->labels.words.names.count > 0;
        origin->at = csv->width;
        if (origin->text >= 0) {
            const int length = csv->groups.count + origin->text;
            lk_text_columns_describe(&csv->texts, origin->text, group->name, length,
                                     &csv->fields[i], &csv->fields[length]);
            continue;
        }
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

static enum lk_status read_table(struct lk_csv *csv, const struct lk_data_request *request,
                                 const char *spec)
{
    const enum lk_data_part part = request->part;
    LK_TRY(open_file(csv, spec, part));
    if (csv->groups.count + texts_of(csv) > LK_MOST_FIELDS)
        return lk_fail(LK_E_ARGUMENT, "csv: more than %d fields", LK_MOST_FIELDS);
    LK_TRY(
        lk_text_columns_begin(&csv->texts, texts_of(csv), &csv->options.text, request->wanted));
    if (part != LK_DATA_TRAIN && lk_folder_exists(spec))
        LK_TRY(take_training_labels(csv, spec));
    else
        LK_TRY(lk_csv_find_labels(csv));
    make_fields(csv);
    LK_TRY(lk_csv_see_rows(csv, add_row));
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
    struct lk_csv *csv = calloc(1, sizeof *csv);
    char *spec = strdup(request->text);
    enum lk_status status = csv && spec ? LK_OK : lk_fail_memory("a data set", sizeof *csv);
    if (status == LK_OK)
        status = lk_source_parse_options(lk_csv_field_options, spec, &csv->options);
    if (status == LK_OK)
        status = read_table(csv, request, spec);
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
    info->field_count = csv->groups.count + csv->texts.count;
    info->part = csv->found;
    *state = csv;
    return LK_OK;
}

static enum lk_status csv_read(const void *state, int64_t index, void *const to[])
{
    const struct lk_csv *csv = state;
    const int64_t row = csv->rows[index];
    if (row < 0)
        return lk_fail(LK_E_DATA, "%s", csv->faults.items[-row - 1]);
    const float *values = csv->values + (size_t)row * csv->width;
    for (int i = 0; i < csv->groups.count; i++)
        if (csv->origins[i].text >= 0) {
            const int k = csv->origins[i].text;
            void *const number = to[csv->groups.count + k];
            if (to[i] || number)
                lk_text_columns_read(&csv->texts, row, k, to[i], number);
        } else if (to[i])
            memcpy(to[i], values + csv->origins[i].at,
                   (size_t)csv->origins[i].count * sizeof *values);
    return LK_OK;
}

static struct lk_texts *csv_texts(void *state)
{
    struct lk_csv *csv = state;
    return csv->texts.count > 0 ? &csv->texts.texts : NULL;
}

static enum lk_status csv_learn(void *state, const int64_t *indices, int64_t count)
{
    struct lk_csv *csv = state;
    if (csv->texts.count > 0)
        LK_TRY(lk_text_columns_learn(&csv->texts, csv->rows, indices, count));
    make_fields(csv);
    return LK_OK;
}

static enum lk_status csv_measure(const void *state, int64_t index, struct lk_text_size *size)
{
    const struct lk_csv *csv = state;
    if (csv->rows[index] < 0)
        return lk_fail(LK_E_DATA, "%s", csv->faults.items[-csv->rows[index] - 1]);
    lk_text_columns_measure(&csv->texts, csv->rows[index], size);
    return LK_OK;
}

const struct lk_source lk_source_csv_fields = {.kind = "csv",
                                               .usage = "csv:FILE,fields=...",
                                               .open = csv_open,
                                               .close = csv_close,
                                               .read = csv_read,
                                               .can_break = true,
                                               .knows_broken = true,
                                               .texts = csv_texts,
                                               .learn = csv_learn,
                                               .measure = csv_measure};
