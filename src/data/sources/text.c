/* text:FILE: a sample a line, its label, a TAB, its text. text:DIR: train.txt and test.txt (or
 * val.txt) there. A sample is the text's bytes as they are, cut to `length` or filled with
 * zeros, twice: as an image u8 [1, length, 1], and as tokens i32 [length] with their number.
 * Labels are whole numbers throughout, or names. */
#include "base/fail.h"
#include "data/sources/names.h"
#include "data/sources/source.h"
#include "data/text/pieces.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STANDARD_LENGTH = 128, MOST_LENGTH = 16384 };
static const size_t most_bytes = (size_t)4 << 30;

struct line {
    const char *text;
    int32_t label;
    uint32_t bytes; /* at most the length */
};

struct text {
    char path[LK_SOURCE_PATH];
    enum lk_data_part part;
    char *data;
    size_t bytes;
    struct line *lines; /* [count] */
    int64_t count, length;
    struct lk_names classes;
    bool has_names; /* some label is no number */
    long most;      /* among numbers */
    char name[64];
    struct lk_field fields[4];
};

/* The fields of a text; the first two are those of all sources. */
enum { TOKENS = LK_FIELD_CLASS + 1, TOKEN_COUNT };

struct options {
    int unit;
    int64_t length;
    char classes[512];
};

static const char *const units[] = {"byte", NULL}; /* others are for lk_source_tokens */

static const struct lk_option options[] = {
    {.name = "unit",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, unit),
     .choices = units,
     .standard = "byte",
     .help = "what a token stands for"},
    {.name = "length",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, length),
     .max = MOST_LENGTH,
     .standard = "0",
     .help = "bytes of a sample; 0: as the model takes them, or 128"},
    {.name = "classes",
     .kind = LK_OPTION_TEXT,
     .offset = offsetof(struct options, classes),
     .count = sizeof((struct options *)0)->classes,
     .standard = "",
     .help = "a file of names, one a line in the order of labels"},
    {0},
};

static void text_close(void *state)
{
    struct text *text = state;
    lk_names_clear(&text->classes);
    free(text->lines);
    free(text->data);
    free(text);
}

static bool is_number(const char *label, long *number)
{
    char *end;
    *number = strtol(label, &end, 10);
    return end != label && !*end && *label >= '0' && *label <= '9' && *number < LK_MOST_CLASSES;
}

/* Cuts the file into lines, and each line's label off by a '\0'; calls `see` for each. */
static enum lk_status see_lines(struct text *text,
                                enum lk_status (*see)(struct text *, const char *label,
                                                      struct line line))
{
    const char *at = text->data, *end = at + text->bytes, *line;
    size_t length;
    for (int64_t number = 1; lk_text_next_line(&at, end, &line, &length); number++) {
        if (length == 0)
            continue;
        const char *stop = memchr(line, '\t', length);
        const size_t bytes = stop ? length - (size_t)(stop - line) - 1 : 0;
        if (bytes == 0 || stop == line)
            return lk_fail(LK_E_DATA, "'%s', line %lld: expected a label, a TAB and a text",
                           text->path, (long long)number);
        const size_t kept = bytes < (size_t)text->length ? bytes : (size_t)text->length;
        char *tab = text->data + (stop - text->data);
        *tab = '\0';
        const enum lk_status status =
            see(text, line, (struct line){.text = tab + 1, .bytes = (uint32_t)kept});
        *tab = '\t';
        if (status != LK_OK)
            return lk_fail_within(status, "'%s', line %lld", text->path, (long long)number);
    }
    return LK_OK;
}

static enum lk_status see_label(struct text *text, const char *label, struct line line)
{
    long number;
    (void)line;
    text->count++;
    if (!is_number(label, &number))
        text->has_names = true;
    else if (number > text->most)
        text->most = number;
    return LK_OK;
}

static enum lk_status see_class(struct text *text, const char *label, struct line line)
{
    (void)line;
    if (lk_names_find(&text->classes, label) >= 0)
        return LK_OK;
    if (text->classes.count >= LK_MOST_CLASSES)
        return lk_fail(LK_E_DATA, "more than %d classes", LK_MOST_CLASSES);
    return lk_names_add(&text->classes, label);
}

static enum lk_status add_line(struct text *text, const char *label, struct line line)
{
    long number = -1;
    const struct lk_names *classes = &text->classes;
    const int named = lk_names_find(classes, label);
    const bool is_one = named >= 0 || (is_number(label, &number) &&
                                       (classes->count == 0 || number < classes->count));
    if (!is_one)
        return lk_fail(LK_E_DATA, "'%.100s' is none of the classes", label);
    line.label = named >= 0 ? named : (int32_t)number;
    text->lines[text->count++] = line;
    return LK_OK;
}

static enum lk_status load(struct text *text)
{
    void *data = NULL;
    LK_TRY(lk_file_read(text->path, most_bytes, &data, &text->bytes));
    text->data = data;
    const char *zero = memchr(data, '\0', text->bytes);
    if (zero)
        return lk_fail(LK_E_DATA, "'%s': a byte that is zero, at %zu: no text", text->path,
                       (size_t)(zero - text->data));
    return LK_OK;
}

/* Finds the classes among the labels of this file. */
static enum lk_status find_classes(struct text *text)
{
    text->count = 0;
    LK_TRY(see_lines(text, see_label));
    if (text->has_names) {
        LK_TRY(see_lines(text, see_class));
        lk_names_sort(&text->classes);
    }
    return LK_OK;
}

/* Takes the classes of train.txt for the test part too: a test set may lack some. */
static enum lk_status take_training_classes(const char *spec, struct text *text)
{
    struct text *train = calloc(1, sizeof *train);
    if (!train)
        return lk_fail_memory("a data set", sizeof *train);
    train->length = text->length;
    enum lk_status status =
        lk_source_find_file("text", spec, ".txt", LK_DATA_TRAIN, train->path, &train->part);
    if (status == LK_OK)
        status = load(train);
    if (status == LK_OK)
        status = find_classes(train);
    if (status == LK_OK) {
        text->classes = train->classes;
        text->has_names = train->has_names;
        text->most = train->most;
        train->classes = (struct lk_names){0};
    }
    text_close(train);
    return status;
}

static enum lk_status read_text(const struct lk_data_request *request, const char *spec,
                                const struct options *given, struct text *text)
{
    const bool is_part = lk_folder_exists(spec) && request->part != LK_DATA_TRAIN;
    LK_TRY(lk_source_find_file("text", spec, ".txt", request->part, text->path, &text->part));
    LK_TRY(load(text));
    if (*given->classes)
        LK_TRY(lk_names_read(&text->classes, given->classes));
    else if (is_part)
        LK_TRY(take_training_classes(spec, text));
    else
        LK_TRY(find_classes(text));
    text->count = 0;
    const long most = text->most;
    LK_TRY(see_lines(text, see_label));
    if (text->count == 0)
        return lk_fail(LK_E_DATA, "'%s' has no line", text->path);
    if (text->classes.count == 0 && text->most > most)
        return lk_fail(LK_E_DATA, "'%s': labels of 0..%ld are expected, found %ld", text->path,
                       most, text->most);
    text->lines = calloc((size_t)text->count, sizeof *text->lines);
    if (!text->lines)
        return lk_fail_memory("a list of lines", (size_t)text->count * sizeof *text->lines);
    text->count = 0;
    return see_lines(text, add_line);
}

/* How many bytes a sample has: as many as are asked for, or as a model takes whose samples are
 * rows. */
static int64_t choose_length(const struct lk_data_request *request, const struct options *given)
{
    const struct lk_data_options *wanted = request->wanted;
    if (given->length > 0)
        return given->length;
    if (wanted && wanted->height == 1 && wanted->channels == 1)
        return wanted->width;
    return wanted && wanted->length > 0 ? wanted->length : STANDARD_LENGTH;
}

static void make_fields(struct text *text)
{
    const bool is_named = text->classes.count > 0;
    const struct lk_field fields[] = {
        {.name = "image", .dtype = LK_U8, .shape = {3, {1, text->length, 1}}, .length = -1},
        {.name = "label",
         .dtype = LK_I32,
         .role = LK_FIELD_LABEL,
         .length = -1,
         .classes = is_named ? text->classes.count : text->most + 1,
         .class_names = is_named ? text->classes.items : NULL},
        {.name = "tokens",
         .dtype = LK_I32,
         .shape = {1, {text->length}},
         .length = TOKEN_COUNT,
         .classes = 256},
        {.name = "tokens.length", .dtype = LK_I32, .length = -1}};
    memcpy(text->fields, fields, sizeof fields);
}

static enum lk_status text_open(struct lk_data_request *request, struct lk_data_info *info,
                                void **state)
{
    struct options given;
    struct text *text = calloc(1, sizeof *text);
    char *spec = strdup(request->text);
    enum lk_status status = text && spec ? LK_OK : lk_fail_memory("a data set", sizeof *text);
    if (status == LK_OK)
        status = lk_source_parse_options(options, spec, &given);
    if (status == LK_OK) {
        text->length = choose_length(request, &given);
        status = read_text(request, spec, &given, text);
    }
    if (status == LK_OK)
        lk_source_name(spec, text->name);
    free(spec);
    if (status != LK_OK) {
        if (text)
            text_close(text);
        return status;
    }
    info->name = text->name;
    info->count = text->count;
    info->part = text->part;
    make_fields(text);
    info->fields = text->fields;
    info->field_count = LK_COUNT(text->fields);
    *state = text;
    return LK_OK;
}

static enum lk_status text_read(const void *state, int64_t index, void *const to[])
{
    const struct text *text = state;
    const struct line *line = &text->lines[index];
    uint8_t *image = to[LK_FIELD_IMAGE];
    int32_t *tokens = to[TOKENS];
    if (image) {
        memcpy(image, line->text, line->bytes);
        memset(image + line->bytes, 0, (size_t)text->length - line->bytes);
    }
    for (int64_t i = 0; tokens && i < text->length; i++)
        tokens[i] = i < line->bytes ? (uint8_t)line->text[i] : 0;
    if (to[LK_FIELD_CLASS])
        *(int32_t *)to[LK_FIELD_CLASS] = line->label;
    if (to[TOKEN_COUNT])
        *(int32_t *)to[TOKEN_COUNT] = (int32_t)line->bytes;
    return LK_OK;
}

static int64_t text_label(const void *state, int64_t index)
{
    return ((const struct text *)state)->lines[index].label;
}

const struct lk_source lk_source_text = {.kind = "text",
                                         .usage = "text:FILE",
                                         .of_tokens = &lk_source_tokens,
                                         .open = text_open,
                                         .close = text_close,
                                         .read = text_read,
                                         .label = text_label};
