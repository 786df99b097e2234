/* Finds the tensors among the values of a pickle, checks that each lies within its storage, and
 * reads them, whatever their strides. */
#include "io/arrays/torch.h"

#include "base/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DEPTH = 32,       /* of dictionaries within dictionaries */
    MOST_ENTRIES = 1 << 16 /* of all of them, counted each time that one is met */
};

static const struct {
    const char *storage, *name; /* NULL: there is no storage of that type */
    enum lk_safetensor_type type;
} types[] = {
    {"torch FloatStorage", "torch float32", LK_SAFETENSOR_F32},
    {"torch DoubleStorage", "torch float64", LK_SAFETENSOR_F64},
    {"torch HalfStorage", "torch float16", LK_SAFETENSOR_F16},
    {"torch BFloat16Storage", "torch bfloat16", LK_SAFETENSOR_BF16},
    {"torch LongStorage", "torch int64", LK_SAFETENSOR_I64},
    {"torch IntStorage", "torch int32", LK_SAFETENSOR_I32},
    {"torch ShortStorage", "torch int16", LK_SAFETENSOR_I16},
    {"torch CharStorage", "torch int8", LK_SAFETENSOR_I8},
    {"torch ByteStorage", "torch uint8", LK_SAFETENSOR_U8},
    {"torch BoolStorage", "torch bool", LK_SAFETENSOR_BOOL},
    {"torch.storage UntypedStorage", NULL, LK_SAFETENSOR_U8},
    {NULL, "torch uint16", LK_SAFETENSOR_U16},
    {NULL, "torch uint32", LK_SAFETENSOR_U32},
    {NULL, "torch uint64", LK_SAFETENSOR_U64},
    {NULL, "torch float8_e4m3fn", LK_SAFETENSOR_F8_E4M3},
    {NULL, "torch float8_e5m2", LK_SAFETENSOR_F8_E5M2},
};

static enum lk_status get_type(const struct lk_pickle_value *global, bool storage,
                               enum lk_safetensor_type *type)
{
    for (int i = 0; i < LK_COUNT(types); i++) {
        const char *name = storage ? types[i].storage : types[i].name;
        if (name && lk_pickle_is_global(global, name)) {
            *type = types[i].type;
            return LK_OK;
        }
    }
    return lk_fail(LK_E_UNSUPPORTED, "%s is no type of %s that is read",
                   global->kind == LK_PICKLE_GLOBAL ? global->text : "a value",
                   storage ? "storage" : "tensor");
}

/* Item i of a tuple, of that kind. */
static enum lk_status get(const struct lk_pickle_value *tuple, uint32_t i,
                          enum lk_pickle_kind kind, const char *what,
                          struct lk_pickle_value **item)
{
    if (tuple->kind != LK_PICKLE_TUPLE || i >= tuple->count || tuple->items[i]->kind != kind)
        return lk_fail(LK_E_DATA, "%s is missing or of another kind (item %u of %u)", what, i,
                       tuple->kind == LK_PICKLE_TUPLE ? tuple->count : 0);
    *item = tuple->items[i];
    return LK_OK;
}

static enum lk_status get_number(const struct lk_pickle_value *tuple, uint32_t i,
                                 const char *what, int64_t *number)
{
    struct lk_pickle_value *item = NULL;
    LK_TRY(get(tuple, i, LK_PICKLE_INTEGER, what, &item));
    if (item->integer < 0)
        return lk_fail(LK_E_DATA, "%s is %lld; expected 0 or more", what,
                       (long long)item->integer);
    *number = item->integer;
    return LK_OK;
}

/* What a persistent id says: ("storage", type, key, device, elements, and for views in older
 * files (key of the view, offset, elements)). */
static enum lk_status get_storage(const struct lk_pickle_value *persistent,
                                  struct lk_torch_storage *storage, int64_t *view)
{
    struct lk_pickle_value *item = NULL;
    const struct lk_pickle_value *id = persistent->items[0];
    int64_t elements = 0;
    LK_TRY(get(id, 0, LK_PICKLE_TEXT, "the word 'storage'", &item));
    if (!lk_pickle_is_text(item, "storage"))
        return lk_fail(LK_E_DATA, "a persistent id of '%.*s'; expected 'storage'",
                       item->count < 40 ? (int)item->count : 40, item->text);
    LK_TRY(get(id, 1, LK_PICKLE_GLOBAL, "the type of a storage", &item));
    LK_TRY(get_type(item, true, &storage->type));
    LK_TRY(get(id, 2, LK_PICKLE_TEXT, "the key of a storage", &item));
    LK_TRY(get_number(id, 4, "the number of elements of a storage", &elements));
    storage->key = item->text;
    storage->key_bytes = item->count;
    const uint64_t size = (uint64_t)lk_array_element_bytes(storage->type);
    if (__builtin_mul_overflow((uint64_t)elements, size, &storage->bytes) ||
        storage->bytes > INT64_MAX)
        return lk_fail(LK_E_DATA, "a storage of %lld elements", (long long)elements);
    storage->part = -1;
    *view = 0;
    if (id->count > 5 && id->items[5]->kind == LK_PICKLE_TUPLE)
        LK_TRY(get_number(id->items[5], 1, "the offset of a storage's view", view));
    return LK_OK;
}

static int compare_keys(const void *a, const void *b)
{
    const struct lk_torch_storage *x = a, *y = b;
    const uint32_t less = x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes;
    const int order = memcmp(x->key, y->key, less);
    return order ? order : (x->key_bytes > y->key_bytes) - (x->key_bytes < y->key_bytes);
}

enum lk_status lk_torch_list(const struct lk_pickle *pickle, struct lk_torch_storages *storages)
{
    int64_t view = 0;
    const size_t count = pickle->persistent_count;
    struct lk_torch_storage *at = calloc(count + 1, sizeof *at);
    if (!at)
        return lk_fail_memory("a table of storages", (count + 1) * sizeof *at);
    storages->at = at;
    storages->count = 0;
    for (size_t i = 0; i < count; i++)
        LK_TRY(get_storage(pickle->persistent[i], &at[i], &view));
    qsort(at, count, sizeof *at, compare_keys);
    int used = 0;
    for (size_t i = 0; i < count; i++) {
        if (used == 0 || compare_keys(&at[used - 1], &at[i]) != 0)
            at[used++] = at[i];
        else if (at[used - 1].bytes != at[i].bytes || at[used - 1].type != at[i].type)
            return lk_fail(LK_E_DATA, "storage '%.*s' has %llu bytes of %s and %llu of %s",
                           at[i].key_bytes < 40 ? (int)at[i].key_bytes : 40, at[i].key,
                           (unsigned long long)at[used - 1].bytes,
                           lk_safetensor_type_name(at[used - 1].type),
                           (unsigned long long)at[i].bytes,
                           lk_safetensor_type_name(at[i].type));
    }
    storages->count = used;
    return LK_OK;
}

struct lk_torch_storage *lk_torch_find(const struct lk_torch_storages *storages,
                                       const struct lk_pickle_value *key)
{
    const struct lk_torch_storage wanted = {.key = key->text, .key_bytes = key->count};
    if (key->kind != LK_PICKLE_TEXT || storages->count == 0)
        return NULL;
    return bsearch(&wanted, storages->at, (size_t)storages->count, sizeof wanted, compare_keys);
}

/* Whether neighbours along the last axis are neighbours in the storage, and so on. */
static bool is_dense(const struct lk_array *array, const int64_t *strides)
{
    int64_t expected = 1;
    for (int i = array->rank - 1; i >= 0; i--) {
        if (array->shape[i] != 1 && strides[i] != expected)
            return false;
        if (__builtin_mul_overflow(expected, array->shape[i], &expected))
            return false;
    }
    return true;
}

static enum lk_status get_axes(const struct lk_pickle_value *given, struct lk_array *array,
                               struct lk_array_place *place)
{
    struct lk_pickle_value *shape = NULL, *strides = NULL;
    LK_TRY(get(given, 2, LK_PICKLE_TUPLE, "the shape of a tensor", &shape));
    LK_TRY(get(given, 3, LK_PICKLE_TUPLE, "the strides of a tensor", &strides));
    if (shape->count != strides->count || shape->count > LK_SAFETENSOR_AXES)
        return lk_fail(LK_E_DATA, "%u axes and %u strides; at most %d are allowed",
                       shape->count, strides->count, LK_SAFETENSOR_AXES);
    array->rank = (int)shape->count;
    for (uint32_t i = 0; i < shape->count; i++) {
        LK_TRY(get_number(shape, i, "a dimension", &array->shape[i]));
        LK_TRY(get_number(strides, i, "a stride", &place->strides[i]));
    }
    place->strided = !is_dense(array, place->strides);
    return LK_OK;
}

/* The elements from the first to the last one; 0: none, -1: they do not fit into 63 bits. */
static int64_t measure_span(const struct lk_array *array, const struct lk_array_place *place)
{
    int64_t last = 0, reach;
    for (int i = 0; i < array->rank; i++) {
        if (array->shape[i] == 0)
            return 0;
        if (__builtin_mul_overflow(array->shape[i] - 1, place->strides[i], &reach) ||
            __builtin_add_overflow(last, reach, &last) || last == INT64_MAX)
            return -1;
    }
    return last + 1;
}

static enum lk_status check_place(const struct lk_array *array,
                                  const struct lk_torch_storage *storage, int64_t first,
                                  struct lk_array_place *place)
{
    const int64_t size = lk_array_element_bytes(array->type);
    const int64_t there = (int64_t)storage->bytes / size, span = measure_span(array, place);
    if (span < 0 || span > there || first > there - span)
        return lk_fail(LK_E_DATA,
                       "tensor '%.100s' reaches beyond its storage of %lld elements: %lld from "
                       "element %lld on",
                       array->name, (long long)there, (long long)span, (long long)first);
    if (storage->part < 0)
        return lk_fail(LK_E_DATA, "tensor '%.100s': its storage '%.*s' is missing", array->name,
                       storage->key_bytes < 40 ? (int)storage->key_bytes : 40, storage->key);
    place->part = storage->part;
    place->offset = storage->offset + (uint64_t)(first * size);
    return LK_OK;
}

/* A call of _rebuild_tensor(storage, offset, shape, strides), of _v2(..., needs gradient,
 * hooks, metadata) or of _v3(..., needs gradient, hooks, type, metadata). */
static enum lk_status add_tensor(struct lk_arrays_file *file, const char *name,
                                 const struct lk_pickle_value *call,
                                 const struct lk_torch_storages *storages)
{
    struct lk_array array = {.name = name};
    struct lk_array_place place = {0};
    struct lk_torch_storage said;
    struct lk_pickle_value *item = NULL;
    int64_t first = 0, view = 0;
    const struct lk_pickle_value *given = call->items[1];
    const bool typed = lk_pickle_is_global(call->items[0], "torch._utils _rebuild_tensor_v3");
    const uint32_t metadata = typed ? 7 : 6;
    LK_TRY(get(given, 0, LK_PICKLE_PERSISTENT, "the storage of a tensor", &item));
    LK_TRY(get_storage(item, &said, &view));
    const struct lk_torch_storage *storage = lk_torch_find(
        storages, &(struct lk_pickle_value){
                      .kind = LK_PICKLE_TEXT, .text = said.key, .count = said.key_bytes});
    if (!storage)
        return lk_fail(LK_E_DATA, "tensor '%.100s' has no storage", name);
    array.type = storage->type;
    LK_TRY(get_number(given, 1, "the offset of a tensor", &first));
    if (__builtin_add_overflow(first, view, &first))
        return lk_fail(LK_E_DATA, "the offset of tensor '%.100s' is too large", name);
    LK_TRY(get_axes(given, &array, &place));
    if (typed) {
        LK_TRY(get(given, 6, LK_PICKLE_GLOBAL, "the type of a tensor", &item));
        LK_TRY(get_type(item, false, &array.type));
    }
    if (given->count > metadata && given->items[metadata]->kind == LK_PICKLE_DICT &&
        given->items[metadata]->count > 0)
        return lk_fail(LK_E_UNSUPPORTED, "tensor '%.100s' is marked as negated or conjugated",
                       name);
    LK_TRY(check_place(&array, storage, first, &place));
    /* A tensor that is repeated by strides of 0 could be larger than any file. */
    return lk_arrays_add(file, &array, &place, storage->bytes);
}

/* The tensor that a value is, or the one within a parameter; NULL: it is none. */
static const struct lk_pickle_value *find_tensor(const struct lk_pickle_value *value)
{
    for (int depth = 0; depth < 2 && value->kind == LK_PICKLE_CALL; depth++) {
        const struct lk_pickle_value *global = value->items[0], *given = value->items[1];
        if (lk_pickle_is_global(global, "torch._utils _rebuild_tensor") ||
            lk_pickle_is_global(global, "torch._utils _rebuild_tensor_v2") ||
            lk_pickle_is_global(global, "torch._utils _rebuild_tensor_v3"))
            return value;
        if ((!lk_pickle_is_global(global, "torch._utils _rebuild_parameter") &&
             !lk_pickle_is_global(global, "torch._utils _rebuild_parameter_with_state")) ||
            given->count == 0)
            return NULL;
        value = given->items[0];
    }
    return NULL;
}

/* A walk through dictionaries; name: of what it stands at. */
struct walk {
    struct lk_arrays_file *file;
    const struct lk_torch_storages *storages;
    char name[512];
    int depth, entries;
};

/* Appends a key to the name; used: its length. False: the key is neither text nor number. */
static enum lk_status append(struct walk *walk, size_t used, const struct lk_pickle_value *key,
                             bool *named)
{
    const char *dot = used ? "." : "";
    const size_t room = sizeof walk->name - used;
    int more = 0;
    *named = true;
    if (key->kind == LK_PICKLE_INTEGER)
        more = snprintf(walk->name + used, room, "%s%lld", dot, (long long)key->integer);
    else if (key->kind != LK_PICKLE_TEXT)
        *named = false;
    else if (memchr(key->text, '\0', key->count))
        return lk_fail(LK_E_DATA, "a name behind '%.*s' has a byte 0 in it", (int)used,
                       walk->name);
    else
        more = key->count < room ? snprintf(walk->name + used, room, "%s%.*s", dot,
                                            (int)key->count, key->text)
                                 : (int)room;
    if (more >= (int)room)
        return lk_fail(LK_E_DATA, "the name '%.100s...' is longer than %zu bytes", walk->name,
                       sizeof walk->name - 1);
    return LK_OK;
}

static enum lk_status add_dictionary(struct walk *walk, struct lk_pickle_value *dictionary,
                                     size_t used);

static enum lk_status add_value(struct walk *walk, struct lk_pickle_value *value)
{
    const struct lk_pickle_value *tensor = find_tensor(value);
    if (tensor)
        return add_tensor(walk->file, walk->name, tensor, walk->storages);
    return value->kind == LK_PICKLE_DICT ? add_dictionary(walk, value, strlen(walk->name))
                                         : LK_OK;
}

static enum lk_status add_dictionary(struct walk *walk, struct lk_pickle_value *dictionary,
                                     size_t used)
{
    if (dictionary->visited)
        return lk_fail(LK_E_DATA, "dictionary '%.*s' is within itself", (int)used, walk->name);
    if (++walk->depth > MOST_DEPTH)
        return lk_fail(LK_E_DATA, "dictionaries within dictionaries, more than %d deep",
                       MOST_DEPTH);
    dictionary->visited = true;
    for (uint32_t i = 0; i + 1 < dictionary->count; i += 2) {
        bool named = false;
        if (++walk->entries > MOST_ENTRIES)
            return lk_fail(LK_E_DATA, "dictionaries with more than %d entries", MOST_ENTRIES);
        LK_TRY(append(walk, used, dictionary->items[i], &named));
        if (named)
            LK_TRY(add_value(walk, dictionary->items[i + 1]));
    }
    dictionary->visited = false;
    walk->depth--;
    return LK_OK;
}

enum lk_status lk_torch_add(struct lk_arrays_file *file, struct lk_pickle_value *root,
                            const struct lk_torch_storages *storages)
{
    struct walk walk = {.file = file, .storages = storages};
    if (root->kind != LK_PICKLE_DICT)
        return lk_fail(LK_E_UNSUPPORTED, "expected a dictionary of tensors, as "
                                         "torch.save(model.state_dict(), FILE) writes it");
    file->public.format = LK_ARRAYS_TORCH;
    return add_dictionary(&walk, root, 0);
}

/* Copies the elements of `array` from where they lie, `from` being the first, in order. */
static void gather(const struct lk_array *array, const int64_t *strides, const char *from,
                   char *to)
{
    int64_t at[LK_SAFETENSOR_AXES] = {0}, element = 0;
    const size_t size = (size_t)lk_array_element_bytes(array->type);
    for (int64_t i = 0; i < array->count; i++) {
        memcpy(to + (size_t)i * size, from + (size_t)element * size, size);
        for (int axis = array->rank - 1; axis >= 0; axis--) {
            element += strides[axis];
            if (++at[axis] < array->shape[axis])
                break;
            element -= strides[axis] * array->shape[axis];
            at[axis] = 0;
        }
    }
}

enum lk_status lk_torch_read(const struct lk_arrays_file *file, int i,
                             const struct lk_bytes *bytes, void *to)
{
    const struct lk_array *array = &file->arrays[i];
    const struct lk_array_place *place = &file->places[i];
    if (!place->strided)
        return lk_bytes_read(bytes, place->offset, lk_array_bytes(array), "numbers", to);
    const size_t span =
        (size_t)measure_span(array, place) * (size_t)lk_array_element_bytes(array->type);
    char *all = malloc(span);
    if (!all)
        return lk_fail_memory("a tensor's storage", span);
    const enum lk_status status = lk_bytes_read(bytes, place->offset, span, "numbers", all);
    if (status == LK_OK)
        gather(array, place->strides, all, to);
    free(all);
    return status;
}
