/* text:FILE,unit=word: a sample a line, its label, a TAB, its text, as numbers of a vocabulary.
 * text:FILE,unit=char of a file whose lines mostly have no TAB: one long text, whose samples
 * are stretches of it with the tokens that come next. Other lines are broken samples. */
#include "base/fail.h"
#include "base/log.h"
#include "base/utf8.h"
#include "data/sources/source.h"
#include "data/tables/table.h"
#include "data/text/columns.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LABEL = 256 };
static const size_t most_bytes = (size_t)4 << 30;

enum labels { LABELS_AUTO, LABELS_LINE, LABELS_NEXT };
static const char *const label_kinds[] = {"auto", "line", "next", NULL};

struct options {
    struct lk_text_options text;
    int labels;
    char classes[512], max_bad[16];
};

static const struct lk_option table[] = {
    LK_TEXT_ROWS(options),
    {.name = "labels",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, labels),
     .choices = label_kinds,
     .standard = "auto",
     .help = "line: in front of each line's TAB; next: the tokens that come next in one long "
             "text; auto: next where most of the first 100 lines have no TAB"},
    {.name = "classes",
     .kind = LK_OPTION_TEXT,
     .offset = offsetof(struct options, classes),
     .count = sizeof((struct options *)0)->classes,
     .standard = "",
     .help = "a file of names, one a line in the order of labels"},
    {.name = "max_bad",
     .kind = LK_OPTION_TEXT,
     .offset = offsetof(struct options, max_bad),
     .count = sizeof((struct options *)0)->max_bad,
     .standard = "",
     .help = "lines that may be broken"},
    {0},
};

struct sample {
    int64_t text;  /* below 0: it is broken, -1 - number of its entry in `faults` */
    int32_t label; /* of a line */
};

struct lines {
    char path[LK_SOURCE_PATH], name[64];
    enum lk_data_part part;
    struct options options;
    char *data; /* of the file, while it is read */
    size_t bytes;
    bool predicts_next;
    struct lk_labels labels;
    struct lk_text_columns texts; /* one */
    struct sample *samples;       /* [count] of lines */
    int64_t count, room;
    struct lk_names faults; /* why lines are broken */
    struct lk_field fields[3];
};

enum { LABEL, TOKENS, TOKEN_COUNT };

static void lines_close(void *state)
{
    struct lines *lines = state;
    free(lines->data);
    lk_labels_clear(&lines->labels);
    lk_texts_clear(&lines->texts.texts);
    free(lines->samples);
    lk_names_clear(&lines->faults);
    free(lines);
}

/* --- lines ------------------------------------------------------------------------------- */

struct line {
    char label[MOST_LABEL]; /* "": there is none */
    const char *text;       /* [bytes] */
    size_t bytes;
    int64_t number;
};

static void cut(struct line *line, const char *at, size_t bytes)
{
    const char *tab = memchr(at, '\t', bytes);
    const size_t length = tab ? (size_t)(tab - at) : 0;
    line->label[0] = '\0';
    line->text = at;
    line->bytes = bytes;
    if (tab && length < MOST_LABEL && !memchr(at, '\0', length)) {
        memcpy(line->label, at, length);
        line->label[length] = '\0';
        line->text = tab + 1;
        line->bytes = bytes - length - 1;
    }
}

/* Calls `see` for each line that is not empty. */
static enum lk_status see_lines(struct lines *lines,
                                enum lk_status (*see)(struct lines *, const struct line *))
{
    struct line line;
    const char *at = lines->data, *end = at + lines->bytes, *found;
    size_t length;
    for (int64_t number = 1; lk_text_next_line(&at, end, &found, &length); number++) {
        if (length == 0)
            continue;
        line.number = number;
        cut(&line, found, length);
        LK_TRY(see(lines, &line));
    }
    return LK_OK;
}

static enum lk_status see_label(struct lines *lines, const struct line *line)
{
    if (*line->label)
        lk_labels_see(&lines->labels, line->label);
    return LK_OK;
}

static enum lk_status see_class(struct lines *lines, const struct line *line)
{
    return *line->label ? lk_class_words_add(&lines->labels.words, line->label) : LK_OK;
}

static enum lk_status load(struct lines *lines)
{
    static const char mark[] = "\xef\xbb\xbf";
    void *data = NULL;
    LK_TRY(lk_file_read(lines->path, most_bytes, &data, &lines->bytes));
    lines->data = data;
    if (lines->bytes >= 3 && memcmp(data, mark, 3) == 0) { /* the byte order mark of UTF-8 */
        lines->bytes -= 3;
        memmove(lines->data, lines->data + 3, lines->bytes);
    }
    return LK_OK;
}

/* The classes among the labels of this file. */
static enum lk_status find_classes(struct lines *lines)
{
    lines->labels = (struct lk_labels){.most = -1};
    LK_TRY(see_lines(lines, see_label));
    LK_TRY(lk_labels_decide(&lines->labels, LK_LABEL_CLASS, lines->options.classes));
    if (lines->labels.kind == LK_LABELS_NAMED && !lines->labels.has_given) {
        LK_TRY(see_lines(lines, see_class));
        lk_class_words_sort(&lines->labels.words);
    }
    return LK_OK;
}

/* Takes the classes of train.txt for another part too, which may lack some. */
static enum lk_status take_training_classes(const char *spec, struct lines *lines)
{
    struct lines *train = calloc(1, sizeof *train);
    if (!train)
        return lk_fail_memory("a data set", sizeof *train);
    train->options = lines->options;
    enum lk_status status =
        lk_source_find_file("text", spec, ".txt", LK_DATA_TRAIN, train->path, &train->part);
    if (status == LK_OK)
        status = load(train);
    if (status == LK_OK)
        status = find_classes(train);
    if (status == LK_OK) {
        lines->labels = train->labels;
        train->labels = (struct lk_labels){0};
    }
    lines_close(train);
    return status;
}

static enum lk_status read_line(struct lines *lines, const struct line *line, int32_t *label)
{
    if (!*line->label)
        return lk_fail(LK_E_DATA,
                       "expected a label, a TAB and a text (labels=next: one long text)");
    LK_TRY(lk_labels_find(&lines->labels, line->label, label));
    return lk_texts_add(&lines->texts.texts, line->text, line->bytes, false);
}

static enum lk_status add_fault(struct lines *lines, const struct line *line)
{
    char why[512];
    snprintf(why, sizeof why, "%.500s", lk_error_text());
    lk_error_clear();
    return lk_table_add_fault(&lines->faults, lines->path, line->number, why,
                              &lines->samples[lines->count++].text);
}

static enum lk_status add_line(struct lines *lines, const struct line *line)
{
    if (lines->count == lines->room) {
        const int64_t room = lines->room ? 2 * lines->room : 1024;
        struct sample *samples = realloc(lines->samples, (size_t)room * sizeof *samples);
        if (!samples)
            return lk_fail_memory("lines", (size_t)room * sizeof *samples);
        lines->samples = samples;
        lines->room = room;
    }
    struct sample *sample = &lines->samples[lines->count];
    *sample = (struct sample){.text = lines->texts.texts.count};
    const enum lk_status status = read_line(lines, line, &sample->label);
    if (status == LK_E_DATA)
        return add_fault(lines, line);
    lines->count += status == LK_OK;
    return status;
}

static enum lk_status read_labelled(struct lines *lines, const char *spec,
                                    enum lk_data_part part)
{
    if (lk_folder_exists(spec) && part != LK_DATA_TRAIN && !*lines->options.classes)
        LK_TRY(take_training_classes(spec, lines));
    else
        LK_TRY(find_classes(lines));
    LK_TRY(see_lines(lines, add_line));
    if (lines->count == 0)
        return lk_fail(LK_E_DATA, "'%s' has no line", lines->path);
    if (lines->texts.texts.count == 0)
        return lk_fail(LK_E_DATA, "no line can be read; the first: %s", lines->faults.items[0]);
    return LK_OK;
}

/* --- one long text ----------------------------------------------------------------------- */

/* Names the line of the first byte that is zero, else of the first that is no UTF-8. */
static enum lk_status refuse_long(const struct lines *lines, enum lk_status status)
{
    const char *zero = memchr(lines->data, '\0', lines->bytes);
    const size_t broken = lk_utf8_find_broken(lines->data, lines->bytes);
    const char *end = zero                    ? zero
                      : broken < lines->bytes ? lines->data + broken
                                              : lines->data; /* the text as a whole is wrong */
    int64_t line = 1;
    for (const char *at = lines->data; at < end; at++)
        line += *at == '\n';
    return lk_fail_within(status, "'%s', line %lld", lines->path, (long long)line);
}

/* How many stretches there are, the last of which may be shorter: each token but the last is
 * followed by another one. */
static enum lk_status count_stretches(struct lines *lines)
{
    const int64_t tokens = lk_texts_measure(&lines->texts.texts, 0);
    if (tokens < 2)
        return lk_fail(LK_E_DATA, "'%s': a text of %lld tokens; 2 are the least", lines->path,
                       (long long)tokens);
    lines->count = (tokens - 2) / lines->texts.length + 1;
    return LK_OK;
}

static enum lk_status read_long(struct lines *lines)
{
    const enum lk_status status =
        lk_texts_add(&lines->texts.texts, lines->data, lines->bytes, true);
    if (status != LK_OK)
        return status == LK_E_DATA ? refuse_long(lines, status) : status;
    if (lines->texts.texts.vocabulary
            .is_there) /* how many pairs there are is known only then */
        LK_TRY(lk_texts_encode(&lines->texts.texts));
    return count_stretches(lines);
}

/* --- verbs ------------------------------------------------------------------------------- */

static void make_fields(struct lines *lines)
{
    const int64_t size = lk_vocabulary_size(&lines->texts.texts.vocabulary);
    const bool is_named = lines->labels.words.names.count > 0;
    lines->fields[LABEL] =
        lines->predicts_next
            ? (struct lk_field){.name = "next",
                                .dtype = LK_I32,
                                .shape = {1, {lines->texts.length}},
                                .role = LK_FIELD_LABEL,
                                .length = -1,
                                .classes = size}
            : (struct lk_field){.name = "label",
                                .dtype = LK_I32,
                                .role = LK_FIELD_LABEL,
                                .length = -1,
                                .classes = lk_labels_classes(&lines->labels),
                                .class_names =
                                    is_named ? lines->labels.words.names.items : NULL};
    lk_text_columns_describe(&lines->texts, 0, "tokens", TOKEN_COUNT, &lines->fields[TOKENS],
                             &lines->fields[TOKEN_COUNT]);
}

static enum lk_status read_file(struct lines *lines, const struct lk_data_request *request,
                                char *spec)
{
    LK_TRY(lk_source_parse_options(table, spec, &lines->options));
    const struct options *o = &lines->options;
    LK_TRY(lk_text_columns_begin(&lines->texts, 1, &o->text, request->wanted));
    LK_TRY(lk_source_find_file("text", spec, ".txt", request->part, lines->path, &lines->part));
    LK_TRY(load(lines));
    lines->predicts_next =
        o->labels == LABELS_NEXT ||
        (o->labels == LABELS_AUTO && !lk_text_has_labels(lines->data, lines->bytes));
    if (lines->predicts_next && o->labels == LABELS_AUTO &&
        memchr(lines->data, '\t', lines->bytes))
        lk_log(LK_LOG_INFO,
               "'%s' is one long text: most of its first lines have no TAB; labels=line reads "
               "a label in front of each line's TAB",
               lines->path);
    LK_TRY(lines->predicts_next ? read_long(lines) : read_labelled(lines, spec, request->part));
    free(lines->data);
    lines->data = NULL;
    return LK_OK;
}

static enum lk_status lines_open(struct lk_data_request *request, struct lk_data_info *info,
                                 void **state)
{
    struct lines *lines = calloc(1, sizeof *lines);
    char *spec = strdup(request->text);
    enum lk_status status = lines && spec ? LK_OK : lk_fail_memory("a data set", sizeof *lines);
    if (status == LK_OK)
        status = read_file(lines, request, spec);
    if (status == LK_OK)
        lk_source_name(spec, lines->name);
    free(spec);
    if (status != LK_OK) {
        if (lines)
            lines_close(lines);
        return status;
    }
    make_fields(lines);
    snprintf(request->max_bad, sizeof request->max_bad, "%s", lines->options.max_bad);
    info->name = lines->name;
    info->count = lines->count;
    info->part = lines->part;
    info->fields = lines->fields;
    info->field_count = LK_COUNT(lines->fields);
    *state = lines;
    return LK_OK;
}

static struct lk_texts *lines_texts(void *state)
{
    return &((struct lines *)state)->texts.texts;
}

/* Of one long text the training part is its beginning: as many stretches as there are samples.
 */
static enum lk_status lines_learn(void *state, const int64_t *indices, int64_t count)
{
    struct lines *lines = state;
    if (lines->predicts_next)
        LK_TRY(lk_texts_learn(&lines->texts.texts, 0, count * lines->texts.length));
    for (int64_t i = 0; i < count && !lines->predicts_next; i++)
        if (lines->samples[indices[i]].text >= 0)
            LK_TRY(lk_texts_learn(&lines->texts.texts, lines->samples[indices[i]].text,
                                  INT64_MAX));
    const enum lk_status status = lk_texts_encode(&lines->texts.texts);
    if (status != LK_OK)
        return lk_fail_within(status, "'%s'", lines->path);
    make_fields(lines);
    return LK_OK;
}

static bool lines_is_ordered(const void *state)
{
    return ((const struct lines *)state)->predicts_next;
}

/* The tokens of a sample, not cut; with those that come next there is one behind them. */
static enum lk_status find_tokens(const struct lines *lines, int64_t index,
                                  const int32_t **tokens, int64_t *count)
{
    if (lines->predicts_next) {
        const int64_t first = index * lines->texts.length;
        *tokens = lk_texts_tokens(&lines->texts.texts, 0, count) + first;
        *count =
            *count - 1 - first < lines->texts.length ? *count - 1 - first : lines->texts.length;
        return LK_OK;
    }
    const int64_t text = lines->samples[index].text;
    if (text < 0)
        return lk_fail(LK_E_DATA, "%s", lines->faults.items[-text - 1]);
    *tokens = lk_texts_tokens(&lines->texts.texts, text, count);
    return LK_OK;
}

static enum lk_status lines_read(const void *state, int64_t index, void *const to[])
{
    const struct lines *lines = state;
    const int32_t *tokens = NULL;
    int64_t count = 0;
    LK_TRY(find_tokens(lines, index, &tokens, &count));
    lk_text_columns_fill(&lines->texts, tokens, count, to[TOKENS], to[TOKEN_COUNT]);
    if (!to[LABEL])
        return LK_OK;
    if (!lines->predicts_next)
        *(int32_t *)to[LABEL] = lines->samples[index].label;
    for (int64_t i = 0; lines->predicts_next && i < lines->texts.length; i++)
        ((int32_t *)to[LABEL])[i] = i < count ? tokens[i + 1] : -1;
    return LK_OK;
}

/* A stretch of a long text has no class. */
static int64_t lines_label(const void *state, int64_t index)
{
    const struct lines *lines = state;
    return lines->predicts_next || lines->samples[index].text < 0 ? -1
                                                                  : lines->samples[index].label;
}

static enum lk_status lines_measure(const void *state, int64_t index, struct lk_text_size *size)
{
    const int32_t *tokens = NULL;
    int64_t count = 0;
    const struct lines *lines = state;
    *size = (struct lk_text_size){0};
    LK_TRY(find_tokens(lines, index, &tokens, &count));
    lk_text_columns_count(&lines->texts, tokens, count, size);
    return LK_OK;
}

const struct lk_source lk_source_tokens = {.kind = "text",
                                           .usage = "text:FILE,unit=word",
                                           .open = lines_open,
                                           .close = lines_close,
                                           .read = lines_read,
                                           .label = lines_label,
                                           .can_break = true,
                                           .knows_broken = true,
                                           .texts = lines_texts,
                                           .learn = lines_learn,
                                           .is_ordered = lines_is_ordered,
                                           .measure = lines_measure};
