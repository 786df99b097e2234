/* Reads YAML into a tree of values, by libyaml. */
#include "model/yaml/yaml.h"

#include "base/arena.h"
#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct lk_yaml_document {
    struct lk_arena arena;
    const struct lk_yaml *root;
};

struct reader {
    yaml_parser_t parser;
    struct lk_yaml_document *document;
    const char *text, *where;
    size_t bytes;
    int values;
};

/* Bytes of a byte order mark in front, which libyaml would take for a column. */
static size_t mark_bytes(const char *text)
{
    return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static int line_of(yaml_mark_t mark)
{
    return (int)mark.line + 1;
}

static enum lk_status refuse(const struct reader *reader, const yaml_event_t *event,
                             const char *why)
{
    return lk_fail(LK_E_MODEL, "%s:%d: %s", reader->where, line_of(event->start_mark), why);
}

/* A line of the text, without space around it and comments. */
struct line {
    const char *text;
    int length, number;
};

/* The line that begins at `*at`, which becomes the next one's. */
static struct line take_line(const struct reader *reader, size_t *at, int number)
{
    size_t first = *at, end = *at;
    while (end < reader->bytes && reader->text[end] != '\n')
        end++;
    *at = end < reader->bytes ? end + 1 : end;
    while (first < end && reader->text[first] == ' ')
        first++;
    for (size_t i = first; i < end; i++)
        if (reader->text[i] == '#')
            end = i;
    while (end > first && strchr(" \r", reader->text[end - 1]))
        end--;
    return (struct line){reader->text + first, (int)(end - first), number};
}

/* A word in a list with keys below it, "- add" and then "from: a", is one text to YAML, which
 * finds fault with the key. Writes what is wrong; "": that is not it. */
static void explain_bare_word(const struct reader *reader, int line, char text[240])
{
    enum { MOST_WORD = 80 };
    struct line above = {0}, here = {0};
    size_t at = 0;
    text[0] = '\0';
    for (int number = 1; number <= line && at < reader->bytes; number++) {
        if (here.length > 0)
            above = here;
        here = take_line(reader, &at, number);
    }
    if (here.length > 0 && here.text[0] != '-' && memchr(here.text, ':', (size_t)here.length) &&
        above.length > 2 && above.length < MOST_WORD && above.text[0] == '-' &&
        above.text[1] == ' ' && !memchr(above.text, ':', (size_t)above.length))
        snprintf(text, 240, "; '%.*s' in line %d has keys below it and must be '%.*s:'",
                 above.length, above.text, above.number, above.length, above.text);
}

static enum lk_status refuse_syntax(const struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    char hint[240] = "";
    int line = line_of(parser->problem_mark);
    if (parser->error == YAML_MEMORY_ERROR)
        return lk_fail_memory("a YAML document", 0);
    if (parser->error == YAML_READER_ERROR) { /* knows the byte only */
        line = 1;
        for (size_t i = 0; i < parser->problem_offset; i++)
            line += reader->text[i] == '\n';
    }
    explain_bare_word(reader, line, hint);
    return lk_fail(LK_E_MODEL, "%s:%d: %s%s%s%s", reader->where, line,
                   parser->problem ? parser->problem : "no YAML", parser->context ? " " : "",
                   parser->context ? parser->context : "", hint);
}

static enum lk_status next_event(struct reader *reader, yaml_event_t *event)
{
    return yaml_parser_parse(&reader->parser, event) ? LK_OK : refuse_syntax(reader);
}

/* The event's text, which must not hold a '\0'. */
static enum lk_status take_text(struct reader *reader, const yaml_event_t *event,
                                const char **text)
{
    const char *value = (const char *)event->data.scalar.value;
    if (strlen(value) != event->data.scalar.length)
        return refuse(reader, event, "a text with a zero byte");
    return lk_arena_text(&reader->document->arena, value, text);
}

/* Refuses what libyaml offers and models do not need: with each of these a text can mean more
 * than it shows. */
static enum lk_status check_plain(const struct reader *reader, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return refuse(reader, event, "aliases (*name) are not taken");
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    default:
        return refuse(reader, event, "a value expected");
    }
    if (anchor)
        return refuse(reader, event, "anchors (&name) are not taken");
    if (tag)
        return refuse(reader, event, "tags (!name) are not taken");
    return LK_OK;
}

static enum lk_status read_entries(struct reader *reader, struct lk_yaml *parent, int depth);

static bool stands_for_nothing(const yaml_event_t *event, const char *text)
{
    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

static enum lk_status read_value(struct reader *reader, const yaml_event_t *event, int depth,
                                 struct lk_yaml **value)
{
    void *memory = NULL;
    LK_TRY(check_plain(reader, event));
    if (depth > LK_YAML_MOST_DEPTH)
        return refuse(reader, event, "nested deeper than 16 levels");
    if (reader->values++ >= LK_YAML_MOST_VALUES)
        return refuse(reader, event, "more than 100000 values");
    LK_TRY(lk_arena_allocate(&reader->document->arena, sizeof **value, &memory));
    struct lk_yaml *made = *value = memory;
    *made = (struct lk_yaml){
        .where = reader->where,
        .line = line_of(event->start_mark),
        .start = event->start_mark.index,
        .end = event->end_mark.index,
    };
    if (event->type == YAML_SCALAR_EVENT) {
        made->kind = LK_YAML_SCALAR;
        LK_TRY(take_text(reader, event, &made->text));
        made->is_null = stands_for_nothing(event, made->text);
        return LK_OK;
    }
    made->kind = event->type == YAML_SEQUENCE_START_EVENT ? LK_YAML_LIST : LK_YAML_MAP;
    return read_entries(reader, made, depth);
}

static enum lk_status read_pair(struct reader *reader, const yaml_event_t *key_event,
                                const struct lk_yaml *map, int depth, struct lk_yaml **value)
{
    const char *key = NULL;
    yaml_event_t event;
    LK_TRY(check_plain(reader, key_event));
    if (key_event->type != YAML_SCALAR_EVENT)
        return refuse(reader, key_event, "a key must be one word");
    if (map->count == LK_YAML_MOST_KEYS)
        return refuse(reader, key_event, "more than 1000 keys");
    LK_TRY(take_text(reader, key_event, &key));
    if (lk_yaml_find(map, key))
        return lk_fail(LK_E_MODEL, "%s:%d: key '%s' stands here twice", reader->where,
                       line_of(key_event->start_mark), key);
    LK_TRY(next_event(reader, &event));
    const enum lk_status status = read_value(reader, &event, depth, value);
    yaml_event_delete(&event);
    if (status == LK_OK) {
        (*value)->key = key;
        (*value)->line = line_of(key_event->start_mark);
    }
    return status;
}

static enum lk_status read_entries(struct reader *reader, struct lk_yaml *parent, int depth)
{
    const struct lk_yaml **tail = &parent->first;
    for (;;) {
        yaml_event_t event;
        struct lk_yaml *value = NULL;
        enum lk_status status = LK_OK;
        LK_TRY(next_event(reader, &event));
        const bool is_end =
            event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        if (is_end)
            parent->end = event.end_mark.index;
        else if (parent->kind == LK_YAML_MAP)
            status = read_pair(reader, &event, parent, depth + 1, &value);
        else
            status = read_value(reader, &event, depth + 1, &value);
        yaml_event_delete(&event);
        if (status != LK_OK || is_end)
            return status;
        *tail = value;
        tail = &value->next;
        parent->count++;
    }
}

/* The next event must be of that type; otherwise the text is refused. */
static enum lk_status expect(struct reader *reader, yaml_event_type_t type, const char *why)
{
    yaml_event_t event;
    LK_TRY(next_event(reader, &event));
    const enum lk_status status = event.type == type ? LK_OK : refuse(reader, &event, why);
    yaml_event_delete(&event);
    return status;
}

static enum lk_status read_document(struct reader *reader)
{
    yaml_event_t event;
    struct lk_yaml *root = NULL;
    LK_TRY(expect(reader, YAML_STREAM_START_EVENT, "no YAML"));
    LK_TRY(expect(reader, YAML_DOCUMENT_START_EVENT, "the text is empty"));
    LK_TRY(next_event(reader, &event));
    const enum lk_status status = read_value(reader, &event, 1, &root);
    yaml_event_delete(&event);
    LK_TRY(status);
    LK_TRY(expect(reader, YAML_DOCUMENT_END_EVENT, "no YAML"));
    LK_TRY(expect(reader, YAML_STREAM_END_EVENT, "a second document"));
    reader->document->root = root;
    return LK_OK;
}

enum lk_status lk_yaml_read(const char *text, size_t bytes, const char *where,
                            struct lk_yaml_document **document)
{
    struct reader reader = {.text = text, .bytes = bytes};
    enum lk_status status;
    if (bytes > LK_YAML_MOST_BYTES)
        return lk_fail(LK_E_MODEL, "%s: %zu bytes, at most %d are read", where, bytes,
                       LK_YAML_MOST_BYTES);
    if (!yaml_parser_initialize(&reader.parser))
        return lk_fail_memory("a YAML document", 0);
    reader.document = calloc(1, sizeof *reader.document);
    if (!reader.document) {
        yaml_parser_delete(&reader.parser);
        return lk_fail_memory("a YAML document", sizeof *reader.document);
    }
    /* The encoding is fixed to UTF-8 instead of guessed: others would break lk_yaml_span(). */
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    const size_t skipped = bytes >= 3 ? mark_bytes(text) : 0;
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text + skipped,
                                 bytes - skipped);
    status = lk_arena_text(&reader.document->arena, where, &reader.where);
    if (status == LK_OK)
        status = read_document(&reader);
    yaml_parser_delete(&reader.parser);
    if (status != LK_OK) {
        lk_yaml_destroy(reader.document);
        return status;
    }
    *document = reader.document;
    return LK_OK;
}

void lk_yaml_destroy(struct lk_yaml_document *document)
{
    if (!document)
        return;
    lk_arena_clear(&document->arena);
    free(document);
}

const struct lk_yaml *lk_yaml_root(const struct lk_yaml_document *document)
{
    return document->root;
}

/* --- the text it was read from --------------------------------------------------------- */

/* The byte where character `index` begins. */
static size_t byte_of(const char *text, size_t index)
{
    size_t byte = mark_bytes(text);
    for (; index > 0 && text[byte]; index--) {
        byte++;
        while (((unsigned char)text[byte] & 0xc0) == 0x80)
            byte++;
    }
    return byte;
}

void lk_yaml_span(const char *text, const struct lk_yaml *value, size_t *start, size_t *bytes)
{
    const size_t first = byte_of(text, value->start);
    size_t end = byte_of(text, value->end);
    while (end > first && strchr(" \t\r\n", text[end - 1]))
        end--;
    *start = first;
    *bytes = end - first;
}

enum lk_status lk_yaml_cut(const char *text, const struct lk_yaml *value, char **cut)
{
    size_t start, bytes, lines = 0, column = 0;
    lk_yaml_span(text, value, &start, &bytes);
    for (size_t i = 0; i < start; i++) {
        lines += text[i] == '\n';
        column = text[i] == '\n' ? 0 : column + 1;
    }
    char *made = malloc(lines + bytes + 2);
    if (!made)
        return lk_fail_memory("a part of a YAML document", lines + bytes + 2);
    memset(made, '\n', lines);
    size_t used = lines;
    for (size_t i = start, end = start + bytes; i < end;) {
        for (size_t skipped = 0; i > start && skipped < column && text[i] == ' '; skipped++)
            i++;
        do
            made[used++] = text[i];
        while (text[i++] != '\n' && i < end);
    }
    made[used] = '\n';
    made[used + 1] = '\0';
    *cut = made;
    return LK_OK;
}
