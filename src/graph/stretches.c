/* Marks in a device's queue, by which its time at work is told from its waiting. */
#include "graph/stretches.h"

#include "base/fail.h"
#include <stdlib.h>

static enum lk_status add_room(struct lk_stretches *s)
{
    const int room = 2 * s->room + 8;
    void *marks = realloc(s->marks, 2 * (size_t)room * sizeof(struct lk_timestamp *));
    if (!marks)
        return lk_fail_memory("marks", 2 * (size_t)room * sizeof(struct lk_timestamp *));
    s->marks = marks;
    for (; s->room < room; s->room++)
        s->marks[2 * s->room] = s->marks[2 * s->room + 1] = NULL;
    return LK_OK;
}

enum lk_status lk_stretch_begin(struct lk_stretches *s)
{
    if (s->count == s->room)
        LK_TRY(add_room(s));
    struct lk_timestamp **marks = &s->marks[2 * s->count];
    for (int i = 0; i < 2; i++)
        if (!marks[i])
            LK_TRY(lk_timestamp_create(s->device, &marks[i]));
    return lk_timestamp_enqueue(marks[0]);
}

enum lk_status lk_stretch_end(struct lk_stretches *s)
{
    return lk_timestamp_enqueue(s->marks[2 * s->count++ + 1]);
}

void lk_stretches_clear(struct lk_stretches *s)
{
    for (int i = 0; i < 2 * s->room; i++)
        lk_timestamp_destroy(s->marks[i]);
    free(s->marks);
    s->marks = NULL;
    s->count = s->room = 0;
}

struct lk_stretched lk_stretches_sum(const struct lk_stretches *s)
{
    struct lk_stretched sum = {0, 0};
    for (int i = 0; i < s->count; i++) {
        const double begin = lk_timestamp_seconds(s->marks[2 * i]);
        const double end = lk_timestamp_seconds(s->marks[2 * i + 1]);
        if (begin < 0 || end < begin) /* nothing that is waited for stands behind */
            break;
        sum.busy += end - begin;
        sum.span = end - lk_timestamp_seconds(s->marks[0]);
    }
    return sum;
}
