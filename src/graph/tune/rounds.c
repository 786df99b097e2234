/* Rounds between marks in a device's queue. */
#include "graph/tune/rounds.h"

#include "base/clock.h"
#include "base/fail.h"

enum lk_status lk_rounds_create(struct lk_device *device,
                                enum lk_status (*enqueue)(void *context), void *context,
                                struct lk_rounds *rounds)
{
    *rounds = (struct lk_rounds){.device = device, .enqueue = enqueue, .context = context};
    for (int i = 0; i <= LK_MOST_ROUNDS; i++)
        LK_TRY(lk_timestamp_create(device, &rounds->marks[i]));
    return LK_OK;
}

void lk_rounds_clear(struct lk_rounds *rounds)
{
    for (int i = 0; i <= LK_MOST_ROUNDS; i++)
        lk_timestamp_destroy(rounds->marks[i]);
}

static enum lk_status enqueue_rounds(struct lk_rounds *rounds, int count, int turns)
{
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_timestamp_enqueue(rounds->marks[i]));
        for (int t = 0; t < turns; t++)
            LK_TRY(rounds->enqueue(rounds->context));
    }
    return lk_timestamp_enqueue(rounds->marks[count]);
}

enum lk_status lk_rounds_run(struct lk_rounds *rounds, int count, int turns, double *seconds,
                             double *all)
{
    double marks[LK_MOST_ROUNDS + 1];
    const double start = lk_seconds();
    const enum lk_status status = enqueue_rounds(rounds, count, turns);
    /* in any case, since buffers of the work may be freed */
    const enum lk_status ended = lk_device_finish(rounds->device);
    LK_TRY(status);
    LK_TRY(ended);
    *all = lk_seconds() - start;
    for (int i = 0; i <= count; i++)
        marks[i] = lk_timestamp_seconds(rounds->marks[i]);
    lk_rounds_divide(marks, count, turns, *all, seconds);
    return LK_OK;
}

/* There are drivers that tell no times of marks, or microseconds for milliseconds. */
void lk_rounds_divide(const double *marks, int count, int turns, double all, double *seconds)
{
    const double between = marks[count] - marks[0];
    bool are_right = marks[0] >= 0 && between > all / 4 && between <= all;
    for (int i = 0; i < count; i++)
        are_right &= marks[i + 1] > marks[i];
    for (int i = 0; i < count; i++)
        seconds[i] = (are_right ? marks[i + 1] - marks[i] : all / count) / turns;
}
