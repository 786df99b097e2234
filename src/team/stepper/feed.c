/* Fills the inputs of a graph with the fields of samples. */
#include "team/stepper/feed.h"

#include "base/fail.h"
#include "data/batches/batches.h"
#include <string.h>

/* The first row with the same field as row i whose input the graph needs. */
static int first_of_field(const struct lk_feed *feed, struct lk_replica *replica, int slot,
                          int i)
{
    for (int j = 0; j < i; j++)
        if (feed->rows[j].field == feed->rows[i].field &&
            lk_replica_slot(replica, feed->rows[j].input, slot))
            return j;
    return i;
}

void lk_feed_point(const struct lk_feed *feed, struct lk_replica *replica, int slot,
                   void *to[LK_MOST_FIELDS])
{
    for (int i = 0; i < feed->count; i++) {
        void *memory = lk_replica_slot(replica, feed->rows[i].input, slot);
        if (memory && first_of_field(feed, replica, slot, i) == i)
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

void lk_feed_finish(const struct lk_feed *feed, struct lk_replica *replica, int slot,
                    int64_t count)
{
    for (int i = 0; i < feed->count; i++) {
        const struct lk_feed_row *row = &feed->rows[i];
        const int first = first_of_field(feed, replica, slot, i);
        void *memory = lk_replica_slot(replica, row->input, slot);
        if (memory && first != i)
            memcpy(memory, lk_replica_slot(replica, feed->rows[first].input, slot),
                   (size_t)count * lk_input_bytes(&row->input->input));
    }
    for (int i = 0; i < feed->count; i++) {
        const struct lk_feed_row *row = &feed->rows[i];
        void *memory = lk_replica_slot(replica, row->input, slot);
        if (memory && row->converts)
            convert(memory, count * lk_shape_count(&row->input->input.shape));
    }
}

enum lk_status lk_feed_read(const struct lk_feed *feed, struct lk_replica *replica, int slot,
                            struct lk_batches *batches, struct lk_batch_range range,
                            void *to[LK_MOST_FIELDS])
{
    for (int i = 0; i < feed->count; i++) {
        struct lk_transform_params *draws =
            lk_replica_transform_params(replica, feed->rows[i].input, slot);
        if (draws)
            LK_TRY(lk_batches_transform_params(batches, range.batch, range.first, range.count,
                                               draws));
    }
    lk_feed_point(feed, replica, slot, to);
    LK_TRY(lk_batches_read_fields(batches, range.batch, range.first, range.count, to));
    lk_feed_finish(feed, replica, slot, range.count);
    return LK_OK;
}
