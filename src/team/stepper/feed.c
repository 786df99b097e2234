/* Fills the inputs of a graph with the fields of samples. */
#include "team/stepper/feed.h"

#include "base/fail.h"
#include "base/text.h"
#include "data/batches/batches.h"
#include <string.h>

/* The memory of a row's input; NULL: the replica does not have it. */
static void *memory_of(const struct lk_feed_target *target, const struct lk_feed_row *row)
{
    return lk_replica_slot(target->replica, row->input, target->slot);
}

/* Each field goes to the first input that takes it. */
static void point(const struct lk_feed *feed, const struct lk_feed_target *targets, int count,
                  void *to[LK_MOST_FIELDS])
{
    for (int t = count - 1; t >= 0; t--)
        for (int i = feed->count - 1; i >= 0; i--) {
            void *memory = memory_of(&targets[t], &feed->rows[i]);
            if (memory)
                to[feed->rows[i].field] = memory;
        }
}

static void convert(void *memory, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int32_t integer;
        memcpy(&integer, (char *)memory + i * 4, sizeof integer);
        const float number = (float)integer;
        memcpy((char *)memory + i * 4, &number, sizeof number);
    }
}

/* Copies fields that several inputs share, all of them before any is converted. */
static void finish(const struct lk_feed *feed, const struct lk_feed_target *targets, int count,
                   int64_t samples, void *const to[LK_MOST_FIELDS])
{
    for (int t = 0; t < count; t++)
        for (int i = 0; i < feed->count; i++) {
            const struct lk_feed_row *row = &feed->rows[i];
            void *memory = memory_of(&targets[t], row);
            if (memory && memory != to[row->field])
                memcpy(memory, to[row->field],
                       (size_t)samples *
                           lk_replica_sample_bytes(targets[t].replica, row->input));
        }
    for (int t = 0; t < count; t++)
        for (int i = 0; i < feed->count; i++) {
            const struct lk_feed_row *row = &feed->rows[i];
            void *memory = memory_of(&targets[t], row);
            if (memory && row->converts)
                convert(memory, samples * lk_shape_count(&row->input->input.shape));
        }
}

static enum lk_status draw(const struct lk_feed *feed, const struct lk_feed_target *target,
                           struct lk_batches *batches, struct lk_batch_range range)
{
    for (int i = 0; i < feed->count; i++) {
        struct lk_transform_params *draws =
            lk_replica_transform_params(target->replica, feed->rows[i].input, target->slot);
        if (draws)
            LK_TRY(lk_batches_transform_params(batches, range.batch, range.first, range.count,
                                               draws));
    }
    return LK_OK;
}

enum lk_status lk_feed_read_all(const struct lk_feed *feed,
                                const struct lk_feed_target *targets, int count,
                                struct lk_batches *batches, struct lk_batch_range range,
                                void *to[LK_MOST_FIELDS])
{
    for (int t = 0; t < count; t++)
        LK_TRY(draw(feed, &targets[t], batches, range));
    point(feed, targets, count, to);
    LK_TRY(lk_batches_read_fields(batches, range.batch, range.first, range.count, to));
    finish(feed, targets, count, range.count, to);
    return LK_OK;
}

void lk_feed_describe(const struct lk_feed *feed, struct lk_text *text)
{
    for (int i = 0; i < feed->count; i++) {
        const struct lk_feed_row *row = &feed->rows[i];
        const struct lk_input *input = &row->input->input;
        char shape[96];
        lk_shape_print(&input->shape, shape, sizeof shape);
        lk_text_append(text, "%s: field %d, %s %s times %.17g and %.17g\n", row->input->name,
                       row->field, lk_dtype_name(input->dtype), shape, input->scale,
                       input->shift);
    }
}

enum lk_status lk_feed_read(const struct lk_feed *feed, struct lk_replica *replica, int slot,
                            struct lk_batches *batches, struct lk_batch_range range,
                            void *to[LK_MOST_FIELDS])
{
    const struct lk_feed_target target = {replica, slot};
    return lk_feed_read_all(feed, &target, 1, batches, range, to);
}
