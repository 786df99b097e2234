#include "base/fail.h"
#include "base/random.h"

#include <lockstep/data.h>
#include <stdlib.h>

struct lk_batches {
    const struct lk_data *data;
    struct lk_batches_options options;
    struct lk_batches_position next;
    int64_t count;  /* samples of an epoch, without a remainder that is left out */
    int64_t *order; /* of epoch next.epoch */
};

/* 64 random bits scaled to [0, bound): the top 64 bits of a product of 96, for bound <= 2^32.
 * No value is more than 2^-32 likelier than another. */
static int64_t scale(struct lk_random4 r, uint64_t bound)
{
    return (int64_t)((r.v[1] * bound + (r.v[0] * bound >> 32)) >> 32);
}

void lk_data_order(uint64_t seed, int64_t epoch, int64_t count, int64_t *order)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        const struct lk_random4 r =
            lk_random(seed, LK_RANDOM_SHUFFLE, (uint32_t)epoch, (uint64_t)i);
        const int64_t j = scale(r, (uint64_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

static void begin_epoch(struct lk_batches *b, int64_t epoch)
{
    if (b->options.shuffle)
        lk_data_order(b->options.seed, epoch, lk_data_info(b->data)->count, b->order);
    b->next.epoch = epoch;
    b->next.index = 0;
}

enum lk_status lk_batches_create(const struct lk_data *data,
                                 const struct lk_batches_options *options,
                                 struct lk_batches **batches)
{
    const int64_t count = lk_data_info(data)->count;
    if (options->size < 1 || (options->drop_remainder && options->size > count))
        return lk_fail(LK_E_ARGUMENT, "a batch of %d: expected 1..%lld", options->size,
                       options->drop_remainder ? (long long)count : (long long)INT32_MAX);
    if (count > UINT32_MAX)
        return lk_fail(LK_E_UNSUPPORTED, "%lld samples; at most 2^32 - 1 can be put in order",
                       (long long)count);
    struct lk_batches *b = calloc(1, sizeof *b);
    int64_t *order = calloc((size_t)count, sizeof *order);
    if (!b || !order) {
        free(b);
        free(order);
        return lk_fail_memory("the order of an epoch", (size_t)count * sizeof *order);
    }
    *b = (struct lk_batches){.data = data, .options = *options, .count = count, .order = order};
    if (options->drop_remainder)
        b->count -= count % options->size;
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    begin_epoch(b, 0);
    *batches = b;
    return LK_OK;
}

void lk_batches_destroy(struct lk_batches *batches)
{
    if (batches)
        free(batches->order);
    free(batches);
}

enum lk_status lk_batches_next(struct lk_batches *b, uint8_t *samples, int32_t *labels,
                               int *count)
{
    const int64_t left = b->count - b->next.index;
    const int size = left < b->options.size ? (int)left : b->options.size;
    if (size == 0)
        begin_epoch(b, b->next.epoch + 1);
    else
        LK_TRY(lk_data_read(b->data, b->order + b->next.index, size, samples, labels));
    b->next.index += size;
    *count = size;
    return LK_OK;
}

struct lk_batches_position lk_batches_position(const struct lk_batches *batches)
{
    return batches->next;
}

enum lk_status lk_batches_seek(struct lk_batches *b, struct lk_batches_position position)
{
    if (position.epoch < 0 || position.epoch > UINT32_MAX || position.index < 0 ||
        position.index > b->count)
        return lk_fail(LK_E_ARGUMENT,
                       "position (epoch %lld, sample %lld): expected an epoch from 0 and a "
                       "sample in 0..%lld",
                       (long long)position.epoch, (long long)position.index,
                       (long long)b->count);
    begin_epoch(b, position.epoch);
    b->next.index = position.index;
    return LK_OK;
}
