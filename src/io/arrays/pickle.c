/* Reads pickles without executing anything: a stack, a memo, and the opcodes and globals that
 * tensors and the dictionaries round them take. */
#include "io/arrays/pickle_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES = 160 /* of a global */
};

/* What may be named. A global that is called leaves what it was called with. */
static const char *const globals[] = {
    "collections OrderedDict",
    "collections Counter",
    "__builtin__ set",
    "builtins set",
    "_codecs encode",
    "torch Size",
    "torch device",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
    "torch.storage UntypedStorage",
    "torch BoolStorage",
    "torch ByteStorage",
    "torch CharStorage",
    "torch ShortStorage",
    "torch IntStorage",
    "torch LongStorage",
    "torch HalfStorage",
    "torch BFloat16Storage",
    "torch FloatStorage",
    "torch DoubleStorage",
    "torch bool",
    "torch uint8",
    "torch int8",
    "torch int16",
    "torch int32",
    "torch int64",
    "torch float16",
    "torch bfloat16",
    "torch float32",
    "torch float64",
    "torch uint16",
    "torch uint32",
    "torch uint64",
    "torch float8_e4m3fn",
    "torch float8_e5m2",
};

/* Opcodes that are not read but that people may meet, for the message. */
static const struct {
    uint8_t code;
    const char *name;
} refused[] = {
    {'i', "INST"},       {'o', "OBJ"},         {'P', "PERSID"},       {0x81, "NEWOBJ"},
    {0x82, "EXT1"},      {0x83, "EXT2"},       {0x84, "EXT4"},        {0x92, "NEWOBJ_EX"},
    {0x91, "FROZENSET"}, {0x96, "BYTEARRAY8"}, {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
    {'0', "POP"},        {'1', "POP_MARK"},    {'2', "DUP"},          {'I', "INT"},
    {'L', "LONG"},       {'F', "FLOAT"},       {'S', "STRING"},       {'V', "UNICODE"},
    {'d', "DICT"},       {'l', "LIST"},        {'g', "GET"},          {'p', "PUT"},
};

/* Values without contents are shared: none of them is ever changed. */
static struct lk_pickle_value other = {.kind = LK_PICKLE_OTHER};
static struct lk_pickle_value no_items = {.kind = LK_PICKLE_TUPLE};
static struct lk_pickle_value truths[] = {{.kind = LK_PICKLE_TRUTH, .integer = 0},
                                          {.kind = LK_PICKLE_TRUTH, .integer = 1}};

static enum lk_status read_bytes(struct lk_pickle_reader *reader, uint64_t count,
                                 const uint8_t **at)
{
    if (count > reader->bytes - reader->at)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "opcode 0x%02x has %llu bytes; %zu are left",
                              reader->data[reader->begin], (unsigned long long)count,
                              reader->bytes - reader->at);
    *at = reader->data + reader->at;
    reader->at += (size_t)count;
    return LK_OK;
}

/* An unsigned integer of so many bytes, little-endian. */
static enum lk_status read_integer(struct lk_pickle_reader *reader, int bytes,
                                   uint64_t *integer)
{
    const uint8_t *at = NULL;
    uint64_t made = 0;
    LK_TRY(read_bytes(reader, (uint64_t)bytes, &at));
    for (int i = bytes; i > 0; i--)
        made = made << 8 | at[i - 1];
    *integer = made;
    return LK_OK;
}

static enum lk_status push_integer(struct lk_pickle_reader *reader, int64_t integer)
{
    struct lk_pickle_value *value = NULL;
    LK_TRY(lk_pickle_make(reader, LK_PICKLE_INTEGER, &value));
    value->integer = integer;
    return lk_pickle_push(reader, value);
}

/* LONG1: a signed integer of any length; beyond 8 bytes it is only known to be one. */
static enum lk_status push_long(struct lk_pickle_reader *reader)
{
    uint64_t bytes = 0, integer = 0;
    const uint8_t *at = NULL;
    LK_TRY(read_integer(reader, 1, &bytes));
    LK_TRY(read_bytes(reader, bytes, &at));
    if (bytes > sizeof integer)
        return lk_pickle_push(reader, &other);
    for (uint64_t i = bytes; i > 0; i--)
        integer = integer << 8 | at[i - 1];
    if (bytes > 0 && bytes < sizeof integer && at[bytes - 1] & 0x80)
        integer |= UINT64_MAX << 8 * bytes;
    return push_integer(reader, (int64_t)integer);
}

/* A text behind its length; kind OTHER: bytes, of which nothing is kept. */
static enum lk_status push_text(struct lk_pickle_reader *reader, int length_bytes,
                                enum lk_pickle_kind kind)
{
    struct lk_pickle_value *value = &other;
    uint64_t length = 0;
    const uint8_t *at = NULL;
    LK_TRY(read_integer(reader, length_bytes, &length));
    LK_TRY(read_bytes(reader, length, &at));
    if (length > INT32_MAX)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "a text of %llu bytes",
                              (unsigned long long)length);
    if (kind == LK_PICKLE_TEXT) {
        LK_TRY(lk_pickle_make(reader, kind, &value));
        value->text = (const char *)at;
        value->count = (uint32_t)length;
    }
    return lk_pickle_push(reader, value);
}

static enum lk_status push_global(struct lk_pickle_reader *reader, const char *module,
                                  size_t module_bytes, const char *name, size_t name_bytes)
{
    char both[NAME_BYTES];
    const int some = module_bytes < 70 ? (int)module_bytes : 70;
    const int more = name_bytes < 70 ? (int)name_bytes : 70;
    snprintf(both, sizeof both, "%.*s %.*s", some, module, more, name);
    for (int i = 0; i < LK_COUNT(globals); i++)
        if (strcmp(globals[i], both) == 0) {
            struct lk_pickle_value *value = NULL;
            LK_TRY(lk_pickle_make(reader, LK_PICKLE_GLOBAL, &value));
            value->text = globals[i];
            return lk_pickle_push(reader, value);
        }
    return LK_PICKLE_FAIL(
        reader, LK_E_UNSUPPORTED,
        "it names '%s', which weights do not need; nothing of a file is executed. "
        "Save only the weights: torch.save(model.state_dict(), FILE)",
        both);
}

static enum lk_status read_line(struct lk_pickle_reader *reader, const char **line,
                                size_t *bytes)
{
    const uint8_t *at = reader->data + reader->at;
    const uint8_t *end = memchr(at, '\n', reader->bytes - reader->at);
    if (!end)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "%s", "a name without its end");
    *line = (const char *)at;
    *bytes = (size_t)(end - at);
    reader->at += *bytes + 1;
    return LK_OK;
}

static enum lk_status read_global(struct lk_pickle_reader *reader)
{
    const char *module = NULL, *name = NULL;
    size_t module_bytes = 0, name_bytes = 0;
    LK_TRY(read_line(reader, &module, &module_bytes));
    LK_TRY(read_line(reader, &name, &name_bytes));
    return push_global(reader, module, module_bytes, name, name_bytes);
}

static enum lk_status take_global(struct lk_pickle_reader *reader)
{
    struct lk_pickle_value *module = NULL, *name = NULL;
    LK_TRY(lk_pickle_pop(reader, &name));
    LK_TRY(lk_pickle_pop(reader, &module));
    if (module->kind != LK_PICKLE_TEXT || name->kind != LK_PICKLE_TEXT)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "%s", "a global whose name is not a text");
    return push_global(reader, module->text, module->count, name->text, name->count);
}

/* A tuple of the stack's values from `first` on; `marked`: the mark before them goes too. */
static enum lk_status make_tuple(struct lk_pickle_reader *reader, uint32_t first, bool marked)
{
    struct lk_pickle_values *stack = &reader->stack;
    struct lk_pickle_value *value = &no_items;
    if (stack->count > first) {
        LK_TRY(lk_pickle_make(reader, LK_PICKLE_TUPLE, &value));
        LK_TRY(lk_pickle_make_room(reader, value, stack->count - first));
        value->count = value->room;
        memcpy(value->items, stack->at + first, value->count * sizeof *value->items);
        for (uint32_t i = 0; i < value->count; i++)
            if (!value->items[i])
                return LK_PICKLE_FAIL(reader, LK_E_DATA, "%s", "a mark within a tuple");
    }
    stack->count = first - marked;
    return lk_pickle_push(reader, value);
}

static enum lk_status make_marked_tuple(struct lk_pickle_reader *reader)
{
    uint32_t first = 0;
    LK_TRY(lk_pickle_find_mark(reader, &first));
    return make_tuple(reader, first, true);
}

static enum lk_status make_small_tuple(struct lk_pickle_reader *reader, uint32_t count)
{
    if (reader->stack.count < count)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "a tuple of %u from a stack of %u", count,
                              reader->stack.count);
    return make_tuple(reader, reader->stack.count - count, false);
}

/* Adds the stack's values from `first` on to the container below them, of that kind. */
static enum lk_status fill(struct lk_pickle_reader *reader, uint32_t first, bool marked,
                           enum lk_pickle_kind kind)
{
    struct lk_pickle_values *stack = &reader->stack;
    struct lk_pickle_value *into =
        first >= 1u + marked && first <= stack->count ? stack->at[first - 1 - marked] : NULL;
    if (!into || into->kind != kind)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "there is no %s to add to",
                              kind == LK_PICKLE_DICT ? "dictionary" : "list");
    if (kind == LK_PICKLE_DICT && (stack->count - first) % 2)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "%s", "a dictionary's key without its value");
    for (uint32_t i = first; i < stack->count; i++) {
        if (!stack->at[i])
            return LK_PICKLE_FAIL(reader, LK_E_DATA, "%s", "a mark within a container");
        LK_TRY(lk_pickle_add(reader, &into->items, &into->count, &into->room, stack->at[i]));
    }
    stack->count = first - marked;
    return LK_OK;
}

static enum lk_status fill_marked(struct lk_pickle_reader *reader, enum lk_pickle_kind kind)
{
    uint32_t first = 0;
    LK_TRY(lk_pickle_find_mark(reader, &first));
    return fill(reader, first, true, kind);
}

static enum lk_status fill_one(struct lk_pickle_reader *reader, enum lk_pickle_kind kind)
{
    const uint32_t values = kind == LK_PICKLE_DICT ? 2 : 1;
    if (reader->stack.count < values)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "a container on a stack of %u",
                              reader->stack.count);
    return fill(reader, reader->stack.count - values, false, kind);
}

static enum lk_status push_new(struct lk_pickle_reader *reader, enum lk_pickle_kind kind)
{
    struct lk_pickle_value *value = NULL;
    LK_TRY(lk_pickle_make(reader, kind, &value));
    return lk_pickle_push(reader, value);
}

/* OrderedDict() is a dictionary; older Pythons give it a list of keys with their values. */
static enum lk_status make_ordered(struct lk_pickle_reader *reader,
                                   const struct lk_pickle_value *given)
{
    struct lk_pickle_value *made = NULL;
    LK_TRY(lk_pickle_make(reader, LK_PICKLE_DICT, &made));
    const struct lk_pickle_value *pairs = given->count ? given->items[0] : given;
    if (pairs->kind != LK_PICKLE_LIST && pairs->kind != LK_PICKLE_TUPLE)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "%s",
                              "OrderedDict is made of a list of pairs");
    for (uint32_t i = 0; i < pairs->count; i++) {
        const struct lk_pickle_value *pair = pairs->items[i];
        if ((pair->kind != LK_PICKLE_LIST && pair->kind != LK_PICKLE_TUPLE) || pair->count != 2)
            return LK_PICKLE_FAIL(reader, LK_E_DATA, "entry %u of an OrderedDict is not a pair",
                                  i);
        for (int k = 0; k < 2; k++)
            LK_TRY(
                lk_pickle_add(reader, &made->items, &made->count, &made->room, pair->items[k]));
    }
    return lk_pickle_push(reader, made);
}

static enum lk_status call(struct lk_pickle_reader *reader)
{
    struct lk_pickle_value *given = NULL, *global = NULL, *made = NULL;
    LK_TRY(lk_pickle_pop(reader, &given));
    LK_TRY(lk_pickle_pop(reader, &global));
    if (global->kind != LK_PICKLE_GLOBAL || given->kind != LK_PICKLE_TUPLE)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "%s",
                              "a call of what is no global, or without a tuple");
    if (lk_pickle_is_global(global, "collections OrderedDict"))
        return make_ordered(reader, given);
    LK_TRY(lk_pickle_make(reader, LK_PICKLE_CALL, &made));
    LK_TRY(lk_pickle_add(reader, &made->items, &made->count, &made->room, global));
    LK_TRY(lk_pickle_add(reader, &made->items, &made->count, &made->room, given));
    return lk_pickle_push(reader, made);
}

/* Attributes of an object: of dictionaries and tensors they are not weights, others have none.
 */
static enum lk_status drop_attributes(struct lk_pickle_reader *reader)
{
    struct lk_pickle_value *state = NULL, *object = NULL;
    LK_TRY(lk_pickle_pop(reader, &state));
    LK_TRY(lk_pickle_pop(reader, &object));
    if (object->kind != LK_PICKLE_DICT && object->kind != LK_PICKLE_CALL)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "%s", "attributes for what has none");
    return lk_pickle_push(reader, object);
}

static enum lk_status push_persistent(struct lk_pickle_reader *reader)
{
    struct lk_pickle *pickle = reader->pickle;
    struct lk_pickle_value *id = NULL, *made = NULL;
    LK_TRY(lk_pickle_pop(reader, &id));
    LK_TRY(lk_pickle_make(reader, LK_PICKLE_PERSISTENT, &made));
    LK_TRY(lk_pickle_add(reader, &made->items, &made->count, &made->room, id));
    LK_TRY(lk_pickle_add(reader, &pickle->persistent, &pickle->persistent_count,
                         &pickle->persistent_room, made));
    return lk_pickle_push(reader, made);
}

static enum lk_status stop(struct lk_pickle_reader *reader)
{
    LK_TRY(lk_pickle_pop(reader, &reader->pickle->root));
    if (reader->stack.count)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "%u values are left on the stack at its end",
                              reader->stack.count);
    reader->stopped = true;
    return LK_OK;
}

static enum lk_status refuse(struct lk_pickle_reader *reader, uint8_t code)
{
    const char *name = "unknown";
    for (int i = 0; i < LK_COUNT(refused); i++)
        if (refused[i].code == code)
            name = refused[i].name;
    return LK_PICKLE_FAIL(reader, LK_E_UNSUPPORTED, "opcode 0x%02x (%s) is not read", code,
                          name);
}

/* Opcodes with a number behind them: `integer` is that number. */
static enum lk_status run_counted(struct lk_pickle_reader *reader, uint8_t code,
                                  uint64_t integer)
{
    const uint8_t *skipped;
    switch (code) {
    case 0x80: /* PROTO */
        if (integer > 5)
            return LK_PICKLE_FAIL(reader, LK_E_DATA, "protocol %d; at most 5 is known",
                                  (int)integer);
        return LK_OK;
    case 0x95: /* FRAME */
        return integer <= reader->bytes - reader->at ? LK_OK
                                                     : read_bytes(reader, integer, &skipped);
    case 'J': /* BININT */
        return push_integer(reader, (int32_t)(uint32_t)integer);
    case 'K': /* BININT1 */
    case 'M': /* BININT2 */
        return push_integer(reader, (int64_t)integer);
    case 'G': /* BINFLOAT */
        return lk_pickle_push(reader, &other);
    case 'q': /* BINPUT */
    case 'r': /* LONG_BINPUT */
        return lk_pickle_store(reader, integer);
    default: /* 'h' BINGET, 'j' LONG_BINGET */
        return lk_pickle_recall(reader, integer);
    }
}

/* Opcodes without anything behind them. */
static enum lk_status run_plain(struct lk_pickle_reader *reader, uint8_t code)
{
    switch (code) {
    case 'N': /* NONE */
        return lk_pickle_push(reader, &other);
    case 0x88: /* NEWTRUE */
    case 0x89: /* NEWFALSE */
        return lk_pickle_push(reader, &truths[code == 0x88]);
    case ')': /* EMPTY_TUPLE */
        return lk_pickle_push(reader, &no_items);
    case '}': /* EMPTY_DICT */
        return push_new(reader, LK_PICKLE_DICT);
    case ']':  /* EMPTY_LIST */
    case 0x8f: /* EMPTY_SET */
        return push_new(reader, LK_PICKLE_LIST);
    case '(': /* MARK */
        return lk_pickle_push(reader, NULL);
    case 't': /* TUPLE */
        return make_marked_tuple(reader);
    case 0x85: /* TUPLE1 */
    case 0x86: /* TUPLE2 */
    case 0x87: /* TUPLE3 */
        return make_small_tuple(reader, code - 0x84u);
    case 'a': /* APPEND */
        return fill_one(reader, LK_PICKLE_LIST);
    case 's': /* SETITEM */
        return fill_one(reader, LK_PICKLE_DICT);
    case 'e':  /* APPENDS */
    case 0x90: /* ADDITEMS */
        return fill_marked(reader, LK_PICKLE_LIST);
    case 'u': /* SETITEMS */
        return fill_marked(reader, LK_PICKLE_DICT);
    case 'R': /* REDUCE */
        return call(reader);
    case 'b': /* BUILD */
        return drop_attributes(reader);
    case 'Q': /* BINPERSID */
        return push_persistent(reader);
    case 0x94: /* MEMOIZE */
        return lk_pickle_store(reader, reader->memo.count);
    case '.': /* STOP */
        return stop(reader);
    default:
        return refuse(reader, code);
    }
}

static enum lk_status run(struct lk_pickle_reader *reader, uint8_t code)
{
    static const uint8_t counts[256] = {
        [0x80] = 1, [0x95] = 8, ['J'] = 4, ['K'] = 1, ['M'] = 2,
        ['G'] = 8,  ['q'] = 1,  ['r'] = 4, ['h'] = 1, ['j'] = 4};
    uint64_t integer = 0;
    switch (code) {
    case 'X': /* BINUNICODE */
        return push_text(reader, 4, LK_PICKLE_TEXT);
    case 'U':  /* SHORT_BINSTRING, of Python 2 */
    case 0x8c: /* SHORT_BINUNICODE */
        return push_text(reader, 1, LK_PICKLE_TEXT);
    case 0x8d: /* BINUNICODE8 */
        return push_text(reader, 8, LK_PICKLE_TEXT);
    case 'B': /* BINBYTES */
        return push_text(reader, 4, LK_PICKLE_OTHER);
    case 'C': /* SHORT_BINBYTES */
        return push_text(reader, 1, LK_PICKLE_OTHER);
    case 0x8a: /* LONG1 */
        return push_long(reader);
    case 'c': /* GLOBAL */
        return read_global(reader);
    case 0x93: /* STACK_GLOBAL */
        return take_global(reader);
    default:
        if (counts[code] == 0)
            return run_plain(reader, code);
        LK_TRY(read_integer(reader, counts[code], &integer));
        return run_counted(reader, code, integer);
    }
}

enum lk_status lk_pickle_read(const void *data, size_t bytes, size_t *at,
                              struct lk_pickle *pickle)
{
    struct lk_pickle_reader reader = {
        .data = data, .bytes = bytes, .at = *at, .pickle = pickle};
    enum lk_status status = LK_OK;
    pickle->persistent = NULL;
    pickle->persistent_count = pickle->persistent_room = 0;
    while (!reader.stopped && status == LK_OK) {
        reader.begin = reader.at;
        if (reader.at < bytes)
            status = run(&reader, reader.data[reader.at++]);
        else
            status = LK_PICKLE_FAIL(&reader, LK_E_DATA, "%s", "it is cut: expected an opcode");
    }
    free(reader.stack.at);
    free(reader.memo.at);
    if (status == LK_OK)
        *at = reader.at;
    return status;
}
