/* Keeps the values of a pickle while it is read, within limits of memory. */
#include "io/arrays/pickle_values.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_BYTES = 40 << 20, /* of values: about 20000 tensors */
    MOST_STACK = 1 << 20,
    MOST_MEMO = 1 << 20,
    BLOCK_BYTES = 1 << 15
};

static enum lk_status take(struct lk_pickle_reader *reader, size_t bytes, void **memory)
{
    struct lk_pickle *pickle = reader->pickle;
    bytes = (bytes + 7) / 8 * 8;
    if (bytes > pickle->left) {
        const size_t block = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        void *made = NULL;
        if (block > MOST_BYTES - pickle->used)
            return LK_PICKLE_FAIL(reader, LK_E_DATA, "more than %d MB of values",
                                  MOST_BYTES >> 20);
        LK_TRY(lk_arena_allocate(&pickle->arena, block, &made));
        pickle->used += block;
        pickle->block = made;
        pickle->left = block;
    }
    *memory = pickle->block;
    pickle->block += bytes;
    pickle->left -= bytes;
    return LK_OK;
}

enum lk_status lk_pickle_add(struct lk_pickle_reader *reader, struct lk_pickle_value ***items,
                             uint32_t *count, uint32_t *room, struct lk_pickle_value *value)
{
    if (*count == *room) {
        void *memory = NULL;
        const uint32_t more = *room ? *room * 2 : 4;
        LK_TRY(take(reader, more * sizeof **items, &memory));
        if (*count)
            memcpy(memory, *items, *count * sizeof **items);
        *items = memory;
        *room = more;
    }
    (*items)[(*count)++] = value;
    return LK_OK;
}

/* Makes room for values[count] of a list that the reader frees. */
static enum lk_status grow(struct lk_pickle_values *values, uint32_t count)
{
    uint32_t room = values->room ? values->room : 256;
    if (count <= values->room)
        return LK_OK;
    while (room < count)
        room *= 2;
    void *at = realloc(values->at, room * sizeof *values->at);
    if (!at)
        return lk_fail_memory("a pickle's stack", room * sizeof *values->at);
    values->at = at;
    memset(values->at + values->room, 0, (room - values->room) * sizeof *values->at);
    values->room = room;
    return LK_OK;
}

enum lk_status lk_pickle_push(struct lk_pickle_reader *reader, struct lk_pickle_value *value)
{
    struct lk_pickle_values *stack = &reader->stack;
    if (stack->count == MOST_STACK)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "a stack of more than %d values", MOST_STACK);
    LK_TRY(grow(stack, stack->count + 1));
    stack->at[stack->count++] = value;
    return LK_OK;
}

enum lk_status lk_pickle_make(struct lk_pickle_reader *reader, enum lk_pickle_kind kind,
                              struct lk_pickle_value **value)
{
    void *memory = NULL;
    LK_TRY(take(reader, sizeof **value, &memory));
    *value = memory;
    (*value)->kind = (uint8_t)kind;
    return LK_OK;
}

enum lk_status lk_pickle_make_room(struct lk_pickle_reader *reader,
                                   struct lk_pickle_value *value, uint32_t count)
{
    void *memory = NULL;
    LK_TRY(take(reader, count * sizeof *value->items, &memory));
    value->items = memory;
    value->room = count;
    return LK_OK;
}

enum lk_status lk_pickle_pop(struct lk_pickle_reader *reader, struct lk_pickle_value **value)
{
    struct lk_pickle_values *stack = &reader->stack;
    if (stack->count == 0 || !stack->at[stack->count - 1])
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "opcode 0x%02x needs a value on the stack",
                              reader->data[reader->begin]);
    *value = stack->at[--stack->count];
    return LK_OK;
}

enum lk_status lk_pickle_find_mark(struct lk_pickle_reader *reader, uint32_t *first)
{
    for (uint32_t i = reader->stack.count; i > 0; i--)
        if (!reader->stack.at[i - 1]) {
            *first = i;
            return LK_OK;
        }
    return LK_PICKLE_FAIL(reader, LK_E_DATA, "opcode 0x%02x needs a mark on the stack",
                          reader->data[reader->begin]);
}

enum lk_status lk_pickle_store(struct lk_pickle_reader *reader, uint64_t index)
{
    struct lk_pickle_values *memo = &reader->memo;
    struct lk_pickle_value *value = NULL;
    if (index >= MOST_MEMO)
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "memo %llu; at most %d are allowed",
                              (unsigned long long)index, MOST_MEMO);
    LK_TRY(lk_pickle_pop(reader, &value));
    LK_TRY(lk_pickle_push(reader, value));
    LK_TRY(grow(memo, (uint32_t)index + 1));
    memo->at[index] = value;
    if (memo->count <= index)
        memo->count = (uint32_t)index + 1;
    return LK_OK;
}

enum lk_status lk_pickle_recall(struct lk_pickle_reader *reader, uint64_t index)
{
    const struct lk_pickle_values *memo = &reader->memo;
    if (index >= memo->count || !memo->at[index])
        return LK_PICKLE_FAIL(reader, LK_E_DATA, "memo %llu was never set",
                              (unsigned long long)index);
    return lk_pickle_push(reader, memo->at[index]);
}

void lk_pickle_clear(struct lk_pickle *pickle)
{
    lk_arena_clear(&pickle->arena);
}

bool lk_pickle_is_text(const struct lk_pickle_value *value, const char *text)
{
    return value && value->kind == LK_PICKLE_TEXT && value->count == strlen(text) &&
           memcmp(value->text, text, value->count) == 0;
}

bool lk_pickle_is_global(const struct lk_pickle_value *value, const char *name)
{
    return value && value->kind == LK_PICKLE_GLOBAL && strcmp(value->text, name) == 0;
}
