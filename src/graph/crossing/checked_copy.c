/* Launches the kernels that copy with a checksum, and does the same on the host. */
#include "graph/crossing/checked_copy.h"

#include "base/fail.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A checksum has a line of its own behind the data. Groups of LEAST_WORDS words or more. */
enum { LINE = 64, WORD = sizeof(uint32_t), MOST_GROUPS = 256, LEAST_WORDS = 8192 };
enum { GPU_ITEMS = 256 };

struct lk_checked_copy {
    struct lk_kernel *copy, *seal, *compare;
    int items, slots;
    struct lk_buffer *sums;           /* uint32 [MOST_GROUPS] */
    struct lk_transfer_buffer *wrong; /* uint32 [slots] */
};

static size_t padded(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

size_t lk_checked_bytes(size_t bytes)
{
    return padded(bytes) + LINE;
}

static enum lk_status make_kernels(struct lk_device *device, struct lk_checked_copy *copy)
{
    char options[32];
    snprintf(options, sizeof options, "-DITEMS=%d", copy->items);
    struct lk_kernel_spec spec = {.source = "graph/checked_copy",
                                  .name = "checked_copy",
                                  .options = options,
                                  .real_bytes = WORD};
    LK_TRY(lk_kernel_create(device, &spec, &copy->copy));
    spec.name = "checked_seal";
    LK_TRY(lk_kernel_create(device, &spec, &copy->seal));
    spec.name = "checked_compare";
    return lk_kernel_create(device, &spec, &copy->compare);
}

static enum lk_status create(struct lk_device *device, struct lk_checked_copy *copy)
{
    LK_TRY(make_kernels(device, copy));
    LK_TRY(lk_buffer_create(device, MOST_GROUPS * WORD, &copy->sums));
    return lk_transfer_buffer_create(device, (size_t)copy->slots * WORD, LK_DEVICE_WRITES,
                                     &copy->wrong);
}

enum lk_status lk_checked_copy_create(struct lk_device *device, int slots,
                                      struct lk_checked_copy **copy)
{
    const struct lk_device_info *info = lk_device_info(device);
    struct lk_checked_copy *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("checks of what crosses", sizeof *made);
    made->slots = slots;
    made->items = info->device_class == LK_CLASS_GPU ? GPU_ITEMS : 1;
    while ((size_t)made->items > info->group_items)
        made->items /= 2;
    const enum lk_status status = create(device, made);
    if (status != LK_OK) {
        lk_checked_copy_destroy(made);
        return status;
    }
    *copy = made;
    return LK_OK;
}

void lk_checked_copy_destroy(struct lk_checked_copy *copy)
{
    if (!copy)
        return;
    lk_kernel_destroy(copy->copy);
    lk_kernel_destroy(copy->seal);
    lk_kernel_destroy(copy->compare);
    lk_buffer_destroy(copy->sums);
    lk_transfer_buffer_destroy(copy->wrong);
    free(copy);
}

static enum lk_status check_bytes(const struct lk_buffer *data,
                                  const struct lk_buffer *transfer, size_t bytes)
{
    if (bytes > 0 && bytes % WORD == 0 && bytes / WORD <= INT_MAX / 2 &&
        lk_buffer_bytes(data) >= bytes && lk_buffer_bytes(transfer) >= lk_checked_bytes(bytes))
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT,
                   "%zu bytes to cross, of %zu, by a transfer buffer of %zu: expected a "
                   "multiple of %d, and room for a checksum",
                   bytes, lk_buffer_bytes(data), lk_buffer_bytes(transfer), WORD);
}

/* *groups: how many sums there are then. */
static enum lk_status enqueue_copy(struct lk_checked_copy *copy, const struct lk_buffer *from,
                                   struct lk_buffer *to, size_t bytes, int *groups)
{
    const int words = (int)(bytes / WORD), most = words / LEAST_WORDS;
    const int wanted = most < 1 ? 1 : most < MOST_GROUPS ? most : MOST_GROUPS;
    const int each = (words + wanted - 1) / wanted;
    *groups = (words + each - 1) / each;
    return LK_ENQUEUE(copy->copy, ((struct lk_grid){{*groups, 1, 1}, copy->items}),
                      LK_BUF(from), LK_BUF(to), LK_BUF(copy->sums), LK_INT(words),
                      LK_INT(each));
}

static const struct lk_grid one = {{1, 1, 1}, 1};

enum lk_status lk_checked_copy_send(struct lk_checked_copy *copy, const struct lk_buffer *from,
                                    struct lk_buffer *to, size_t bytes)
{
    int groups = 0;
    LK_TRY(check_bytes(from, to, bytes));
    LK_TRY(enqueue_copy(copy, from, to, bytes, &groups));
    return LK_ENQUEUE(copy->seal, one, LK_BUF(copy->sums), LK_BUF(to), LK_INT(groups),
                      LK_INT((int64_t)(padded(bytes) / WORD)));
}

enum lk_status lk_checked_copy_receive(struct lk_checked_copy *copy,
                                       const struct lk_buffer *from, struct lk_buffer *to,
                                       size_t bytes, int slot)
{
    int groups = 0;
    LK_TRY(check_bytes(to, from, bytes));
    LK_TRY(enqueue_copy(copy, from, to, bytes, &groups));
    return LK_ENQUEUE(copy->compare, one, LK_BUF(copy->sums), LK_BUF(from),
                      LK_BUF(lk_transfer_buffer_on_device(copy->wrong)), LK_INT(groups),
                      LK_INT((int64_t)(padded(bytes) / WORD)), LK_INT(slot));
}

/* --- on the host ------------------------------------------------------------------------- */

enum { LANES = 16 };
typedef uint32_t words __attribute__((vector_size(LANES * WORD), aligned(WORD), may_alias));

/* The weights 2 i + 1 need no multiplication for each word: after m vectors v[0], v[1], ...
 * `sum` is their sum, and `sums` that of all values that it had, so the sum of k v[k] is
 * m * sum - sums. */
bool lk_checked_copy_move(const void *from, void *to, size_t bytes)
{
    const size_t count = bytes / WORD, vectors = count / LANES;
    const char *x = from;
    char *y = to;
    words sum = {0}, sums = {0};
    uint32_t total = 0, sent;
    for (size_t k = 0; k < vectors; k++) {
        const words v = ((const words *)from)[k];
        ((words *)to)[k] = v;
        sum += v;
        sums += sum;
    }
    for (uint32_t j = 0; j < LANES; j++)
        total += (2 * j + 1) * sum[j] + 2 * LANES * ((uint32_t)vectors * sum[j] - sums[j]);
    for (size_t i = vectors * LANES; i < count; i++) {
        uint32_t word;
        memcpy(&word, x + i * WORD, WORD);
        memcpy(y + i * WORD, &word, WORD);
        total += word * (2 * (uint32_t)i + 1);
    }
    memcpy(&sent, x + padded(bytes), WORD);
    memcpy(y + padded(bytes), &sent, WORD);
    return sent == total;
}

/* --- counting ---------------------------------------------------------------------------- */

enum lk_status lk_checked_copy_begin(struct lk_checked_copy *copy)
{
    LK_TRY(lk_transfer_buffer_enqueue_to_device(copy->wrong, 0));
    return lk_buffer_enqueue_fill(lk_transfer_buffer_on_device(copy->wrong), 0);
}

enum lk_status lk_checked_copy_end(struct lk_checked_copy *copy)
{
    return lk_transfer_buffer_enqueue_to_host(copy->wrong, (size_t)copy->slots * WORD);
}

enum lk_status lk_checked_copy_wait(struct lk_checked_copy *copy, int *slot)
{
    void *memory;
    LK_TRY(lk_transfer_buffer_wait(copy->wrong, &memory));
    *slot = -1;
    for (int i = copy->slots - 1; i >= 0; i--)
        if (((const uint32_t *)memory)[i] != 0)
            *slot = i;
    return LK_OK;
}
