/* Rounds between marks in a device's queue. */
#include "graph/tune/rounds.h"

#include "base/fail.h"

enum lk_status lk_rounds_create(struct lk_device *device, struct lk_rounds *rounds)
{
    *rounds = (struct lk_rounds){.device = device};
    for (int i = 0; i <= LK_MOST_ROUNDS; i++)
        LK_TRY(lk_timestamp_create(device, &rounds->marks[i]));
    return LK_OK;
}

void lk_rounds_clear(struct lk_rounds *rounds)
{
    for (int i = 0; i <= LK_MOST_ROUNDS; i++)
        lk_timestamp_destroy(rounds->marks[i]);
}

enum lk_status lk_rounds_enqueue(struct lk_rounds *rounds, int count, int turns,
                                 enum lk_status (*enqueue)(void *context), void *context)
{
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_timestamp_enqueue(rounds->marks[i]));
        for (int t = 0; t < turns; t++)
            LK_TRY(enqueue(context));
    }
    return lk_timestamp_enqueue(rounds->marks[count]);
}

void lk_rounds_read(const struct lk_rounds *rounds, int count, int turns, double all,
                    double *seconds)
{
    for (int i = 0; i < count; i++) {
        const double took =
            lk_timestamp_seconds(rounds->marks[i + 1]) - lk_timestamp_seconds(rounds->marks[i]);
        seconds[i] = (took > 0 && took <= all ? took : all / count) / turns;
    }
}
