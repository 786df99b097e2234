/* csv:FILE: a line an image, "path,label"; paths that are not absolute begin at FILE's folder.
 * Labels are whole numbers throughout, or names. source: RFC 4180, without line breaks in "" */
#include "data/sources/csv.h"
#include "base/fail.h"
#include "data/sources/files.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILE_BYTES = 1 << 30 };

/* The file while it is read, twice: for the classes, then for the images. */
struct table {
    struct lk_files *files;
    const struct lk_data_request *request;
    char *folder; /* of the file */
    char *text;
    bool has_names; /* some label is no number */
    bool has_given; /* the classes are those of the option */
    long most;      /* among numbers */
};

enum lk_status lk_csv_take(char **rest, char **cell)
{
    char *from = *rest, *to = *rest;
    *cell = to;
    if (*from != '"') {
        from += strcspn(from, ",");
    } else {
        for (from++; *from && (*from != '"' || from[1] == '"'); *to++ = *from++)
            from += *from == '"';
        if (*from != '"' || (from[1] && from[1] != ','))
            return lk_fail(LK_E_DATA, "a quote that does not end");
        *to = '\0';
        from++;
    }
    *rest = *from == ',' ? from + 1 : NULL;
    *from = '\0';
    return LK_OK;
}

/* Behind the quote that ends the cell; NULL: none does, or something else follows it. */
static const char *quoted_end(const char *cell)
{
    const char *at = cell + 1;
    for (; *at && (*at != '"' || at[1] == '"'); at++)
        at += *at == '"';
    if (*at != '"')
        return NULL;
    at++;
    const bool ends_line = !*at || *at == '\n' || (*at == '\r' && (!at[1] || at[1] == '\n'));
    return ends_line || *at == ',' ? at : NULL;
}

const char *lk_csv_row_end(const char *row)
{
    for (const char *cell = row;; cell++) {
        const char *end = *cell == '"' ? quoted_end(cell) : cell + strcspn(cell, ",\n");
        if (!end)
            return cell + strcspn(cell, "\n");
        cell = end + strcspn(end, ",\n");
        if (*cell != ',')
            return cell;
    }
}

static bool is_number(const char *label, long *number)
{
    char *end;
    *number = strtol(label, &end, 10);
    return end != label && !*end && *number >= 0 && *number < LK_MOST_CLASSES;
}

static enum lk_status see_label(struct table *table, const char *path, const char *label)
{
    long number;
    (void)path;
    if (!is_number(label, &number))
        table->has_names = true;
    else if (number > table->most)
        table->most = number;
    return LK_OK;
}

static enum lk_status see_class(struct table *table, const char *path, const char *label)
{
    (void)path;
    struct lk_names *classes = &table->files->classes;
    return lk_names_find(classes, label) < 0 ? lk_names_add(classes, label) : LK_OK;
}

static enum lk_status add_file(struct table *table, const char *path, const char *label)
{
    const struct lk_names *classes = &table->files->classes;
    long number;
    const int named = lk_names_find(classes, label);
    if (named < 0 &&
        (!is_number(label, &number) || (table->has_given && number >= classes->count)))
        return lk_fail(LK_E_DATA, "'%s' is none of the classes", label);
    return lk_files_add(table->files, *path == '/' ? "" : table->folder, path,
                        named >= 0 ? named : (int32_t)number);
}

/* Calls `see` with the path and label of every line of a copy of the text. If the path in the
 * first line is not that of an image, the line is a heading. */
static enum lk_status see_lines(struct table *table,
                                enum lk_status (*see)(struct table *, const char *,
                                                      const char *))
{
    char *text = strdup(table->text), *rest = text;
    if (!text)
        return lk_fail_memory(table->request->text, strlen(table->text));
    enum lk_status status = LK_OK;
    for (int64_t number = 1; status == LK_OK && *rest; number++) {
        char *line = rest, *path, *label = "";
        rest += strcspn(rest, "\n");
        if (*rest)
            *rest++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        if (!*line)
            continue;
        status = lk_csv_take(&line, &path);
        if (status == LK_OK && number == 1 && !lk_files_is_image(path))
            continue;
        if (status == LK_OK && line)
            status = lk_csv_take(&line, &label);
        if (status == LK_OK && (!*path || !*label))
            status = lk_fail(LK_E_DATA, "expected a path, a comma and a label");
        if (status == LK_OK)
            status = see(table, path, label);
        if (status != LK_OK)
            (void)lk_fail_within(status, "'%s', line %lld", table->request->text,
                                 (long long)number);
    }
    free(text);
    return status;
}

static enum lk_status find_classes(struct table *table)
{
    struct lk_names *classes = &table->files->classes;
    const char *given = table->request->options->classes;
    table->has_given = *given;
    if (*given)
        return lk_names_read(classes, given);
    LK_TRY(see_lines(table, see_label));
    if (!table->has_names)
        return LK_OK;
    LK_TRY(see_lines(table, see_class));
    lk_names_sort(classes);
    return LK_OK;
}

static enum lk_status read_table(struct table *table)
{
    const char *path = table->request->text, *slash = strrchr(path, '/');
    void *text = NULL;
    size_t bytes = 0;
    if (!lk_source_takes_all(table->request->part))
        return lk_source_fail_no_test("csv", path);
    LK_TRY(lk_file_read(path, MOST_FILE_BYTES, &text, &bytes));
    table->text = text;
    table->folder =
        slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
    if (!table->folder)
        return lk_fail_memory(path, strlen(path));
    LK_TRY(find_classes(table));
    LK_TRY(see_lines(table, add_file));
    if (table->files->count == 0)
        return lk_fail(LK_E_DATA, "'%s' names no image", path);
    return LK_OK;
}

static enum lk_status csv_open(struct lk_data_request *request, struct lk_data_info *info,
                               void **state)
{
    struct lk_files *files = calloc(1, sizeof *files);
    if (!files)
        return lk_fail_memory("a data set", sizeof *files);
    struct table table = {.files = files, .request = request};
    const enum lk_status status = read_table(&table);
    free(table.folder);
    free(table.text);
    if (status != LK_OK) {
        lk_files_close(files);
        return status;
    }
    lk_source_name(request->text, files->name);
    lk_files_describe(files, info);
    if (files->classes.count == 0) {
        info->classes = (int)table.most + 1;
        info->class_names = NULL;
    }
    *state = files;
    return LK_OK;
}

static const struct lk_option options[] = {LK_IMAGE_OPTIONS, {0}};

const struct lk_source lk_source_csv = {.kind = "csv",
                                        .usage = "csv:FILE",
                                        .options = options,
                                        .open = csv_open,
                                        .close = lk_files_close,
                                        .fetch = lk_files_fetch,
                                        .label = lk_files_label,
                                        .about = lk_files_about,
                                        .identify = lk_files_identify,
                                        .of_fields = &lk_source_csv_fields};
