/* Runs the replicas of a group: each goes as far as it can, then what has to cross is moved. */
#include "graph/place/group.h"

#include "base/fail.h"
#include "graph/crossing.h"
#include "graph/place/stretches.h"
#include <stdlib.h>

/* A replica that takes one micro-batch after the other through its place. */
struct runner {
    struct lk_replica *replica;
    int index;   /* of the micro-batch that it is at; -1: none */
    int bucket;  /* that backward finishes next; -1: forward is not done */
    int parcels; /* that it has sent and that were not moved: its memory is still in use */
};

/* The replicas of a place, and the micro-batches that it takes next. */
struct place {
    struct runner runners[LK_MOST_IN_FLIGHT];
    int next, next_backward;
    struct lk_stretches stretches;
    double crossing_seconds, crossing_bytes; /* of what it has sent in the step */
};

/* What was sent and has to be moved, in the order in which it was enqueued. */
struct parcel {
    struct runner *from;
    int place, index; /* of the sender; the micro-batch */
    struct lk_sent sent;
    struct parcel *next;
};

struct lk_group {
    int count, in_flight;
    bool trains;
    struct lk_replica *members[LK_MOST_PLACES]; /* that have weights */
    struct place places[LK_MOST_PLACES];
    const struct lk_group_work *work;
    struct parcel *parcels, *spare; /* to be moved; not in use */
};

/* --- making ------------------------------------------------------------------------------- */

static enum lk_status check_tiles(const struct lk_group *group, int place)
{
    const struct lk_tiling *first = lk_replica_tiling(group->places[0].runners[0].replica);
    const struct lk_tiling *own = lk_replica_tiling(group->places[place].runners[0].replica);
    if (own->lanes == first->lanes && own->tiles == first->tiles)
        return LK_OK;
    return lk_fail(LK_E_UNSUPPORTED,
                   "devices of a group hold %d and %d samples in a batch tile, so nothing can "
                   "cross between them",
                   first->lanes, own->lanes);
}

/* The first replica of a place has what all of them share. */
static enum lk_status create_place(struct lk_group *group,
                                   const struct lk_replica_config *config,
                                   struct lk_device *device, int place)
{
    struct runner *runners = group->places[place].runners;
    struct lk_replica_config own = *config;
    own.device = device;
    own.place = place;
    own.places = group->count;
    group->places[place].stretches.device = device;
    if (config->weights_of)
        own.weights_of = lk_group_member(config->weights_of, place);
    for (int i = 0; i < group->in_flight; i++) {
        LK_TRY(lk_replica_create(&own, &runners[i].replica));
        lk_replica_join(runners[i].replica, group->members);
        own.weights_of = runners[0].replica;
        own.optimizer_arrays = own.gradient_sums = 0;
    }
    group->members[place] = runners[0].replica;
    return check_tiles(group, place);
}

/* Room for a parcel of each crossing and runner, forward and backward. */
static enum lk_status create_parcels(struct lk_group *group)
{
    const int crossings = lk_crossing_count(group->places[0].runners[0].replica);
    for (int i = 0; i < 2 * crossings * group->in_flight; i++) {
        struct parcel *parcel = malloc(sizeof *parcel);
        if (!parcel)
            return lk_fail_memory("what crosses", sizeof *parcel);
        parcel->next = group->spare;
        group->spare = parcel;
    }
    return LK_OK;
}

static enum lk_status create(struct lk_group *group, const struct lk_replica_config *config,
                             struct lk_device *const *devices)
{
    for (int i = 0; i < group->count; i++)
        LK_TRY(create_place(group, config, devices[i], i));
    return create_parcels(group);
}

enum lk_status lk_group_create(const struct lk_replica_config *config,
                               struct lk_device *const *devices, int count, int in_flight,
                               struct lk_group **group)
{
    if (count < 1 || count > LK_MOST_PLACES || in_flight < 1 || in_flight > LK_MOST_IN_FLIGHT)
        return lk_fail(LK_E_ARGUMENT,
                       "a group of %d devices and %d micro-batches: 1 to %d, and 1 to %d",
                       count, in_flight, LK_MOST_PLACES, LK_MOST_IN_FLIGHT);
    struct lk_group *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a group of devices", sizeof *made);
    made->count = count;
    made->in_flight = in_flight;
    made->trains = config->training;
    const enum lk_status status = create(made, config, devices);
    if (status != LK_OK) {
        lk_group_destroy(made);
        return status;
    }
    *group = made;
    return LK_OK;
}

enum lk_status lk_group_build(struct lk_group *group)
{
    for (int p = 0; p < group->count; p++)
        for (int i = 0; i < group->in_flight; i++)
            LK_TRY(lk_replica_build(group->places[p].runners[i].replica));
    return LK_OK;
}

static void free_parcels(struct parcel *parcel)
{
    while (parcel) {
        struct parcel *next = parcel->next;
        free(parcel);
        parcel = next;
    }
}

void lk_group_destroy(struct lk_group *group)
{
    if (!group)
        return;
    for (int p = 0; p < group->count; p++) {
        lk_stretches_clear(&group->places[p].stretches);
        for (int i = group->in_flight - 1; i >= 0; i--)
            lk_replica_destroy(group->places[p].runners[i].replica);
    }
    free_parcels(group->parcels);
    free_parcels(group->spare);
    free(group);
}

int lk_group_count(const struct lk_group *group)
{
    return group->count;
}

struct lk_replica *lk_group_replica(struct lk_group *group, int place)
{
    return group->places[place].runners[0].replica;
}

/* --- running ------------------------------------------------------------------------------ */

/* The runner of a place that is at a micro-batch, or (-1) one that is free; NULL: none is. */
static struct runner *find_runner(struct lk_group *group, int place, int index)
{
    for (int i = 0; i < group->in_flight; i++) {
        struct runner *runner = &group->places[place].runners[i];
        if (runner->index == index && (index >= 0 || runner->parcels == 0))
            return runner;
    }
    return NULL;
}

/* Puts what a runner has sent behind all that is to be moved. */
static void note_sent(struct lk_group *group, int place, struct runner *runner)
{
    struct lk_sent sent;
    struct parcel **last = &group->parcels;
    while (*last)
        last = &(*last)->next;
    while (lk_crossing_take_sent(runner->replica, &sent)) {
        struct parcel *parcel = group->spare;
        group->spare = parcel->next;
        *parcel = (struct parcel){
            .from = runner, .place = place, .index = runner->index, .sent = sent};
        *last = parcel;
        last = &parcel->next;
        runner->parcels++;
    }
}

static enum lk_status go_forward(struct lk_group *group, int place, struct runner *runner)
{
    const struct lk_group_work *work = group->work;
    bool is_done;
    LK_TRY(lk_replica_go_forward(runner->replica, &is_done));
    note_sent(group, place, runner);
    if (!is_done)
        return LK_OK;
    runner->bucket = 0;
    return work->forwarded
               ? work->forwarded(work->context, runner->replica, place, runner->index)
               : LK_OK;
}

static enum lk_status go_back(struct lk_group *group, int place, struct runner *runner,
                              bool *is_done)
{
    const struct lk_group_work *work = group->work;
    const int buckets = lk_replica_bucket_count(runner->replica);
    do {
        LK_TRY(lk_replica_go_backward(runner->replica, runner->bucket, is_done));
        note_sent(group, place, runner);
        if (*is_done && runner->bucket < buckets)
            LK_TRY(work->finished(work->context, runner->replica, place, runner->index,
                                  runner->bucket));
        runner->bucket += *is_done;
    } while (*is_done && runner->bucket < buckets);
    return LK_OK;
}

/* One micro-batch after the other, since all write their gradients to the same memory. */
static enum lk_status go_backward(struct lk_group *group, int place, bool *has_ended)
{
    struct place *here = &group->places[place];
    struct runner *runner = find_runner(group, place, here->next_backward);
    bool is_done = true;
    *has_ended = false;
    if (!runner || runner->bucket < 0)
        return LK_OK;
    if (group->trains)
        LK_TRY(go_back(group, place, runner, &is_done));
    if (!is_done)
        return LK_OK;
    runner->index = -1;
    here->next_backward++;
    *has_ended = true;
    return LK_OK;
}

/* Takes the next micro-batch, if a runner is free. */
static enum lk_status begin(struct lk_group *group, int place, bool *has_begun)
{
    const struct lk_group_work *work = group->work;
    struct place *here = &group->places[place];
    struct runner *runner = find_runner(group, place, -1);
    *has_begun = runner && here->next < work->micro_batches;
    if (!*has_begun)
        return LK_OK;
    runner->index = here->next++;
    runner->bucket = -1;
    LK_TRY(work->load(work->context, runner->replica, place, runner->index));
    lk_replica_begin_forward(runner->replica, work->step);
    return LK_OK;
}

/* Enqueues what a place can do now, and begins with one more micro-batch: only one, so that no
 * other device waits while samples are read for this one. */
static enum lk_status enqueue(struct lk_group *group, int place, bool *has_begun)
{
    bool has_ended = true;
    while (has_ended) {
        for (int i = 0; i < group->in_flight; i++) {
            struct runner *runner = &group->places[place].runners[i];
            if (runner->index >= 0 && runner->bucket < 0)
                LK_TRY(go_forward(group, place, runner));
        }
        LK_TRY(go_backward(group, place, &has_ended));
    }
    return begin(group, place, has_begun);
}

/* Enqueues all that devices can do now. */
static enum lk_status advance(struct lk_group *group)
{
    bool again = true;
    while (again) {
        again = false;
        for (int p = 0; p < group->count; p++) {
            struct lk_stretches *stretches = &group->places[p].stretches;
            bool has_begun;
            LK_TRY(lk_stretch_begin(stretches));
            LK_TRY(enqueue(group, p, &has_begun));
            LK_TRY(lk_stretch_end(stretches));
            again |= has_begun;
        }
    }
    return LK_OK;
}

/* Moves the first parcel whose receiver has begun with its micro-batch. Only this waits for a
 * device, when all devices have been given what they can do. */
static enum lk_status move_first(struct lk_group *group)
{
    const struct lk_replica *any = group->places[0].runners[0].replica;
    for (struct parcel **at = &group->parcels; *at; at = &(*at)->next) {
        struct parcel *parcel = *at;
        const struct lk_crossing *crossing = lk_crossing_get(any, parcel->sent.number);
        const int to = parcel->place == crossing->from ? crossing->to : crossing->from;
        const struct runner *runner = find_runner(group, to, parcel->index);
        if (!runner)
            continue;
        struct place *from = &group->places[parcel->place];
        LK_TRY(lk_crossing_move(parcel->from->replica, runner->replica, parcel->sent,
                                &from->crossing_seconds, &from->crossing_bytes));
        parcel->from->parcels--;
        *at = parcel->next;
        parcel->next = group->spare;
        group->spare = parcel;
        return LK_OK;
    }
    return lk_fail(LK_E_UNSUPPORTED, "devices of a group wait for each other");
}

static void reset(struct lk_group *group, const struct lk_group_work *work)
{
    group->work = work;
    for (int p = 0; p < group->count; p++) {
        struct place *place = &group->places[p];
        place->next = place->next_backward = place->stretches.count = 0;
        place->crossing_seconds = place->crossing_bytes = 0;
        for (int i = 0; i < group->in_flight; i++)
            place->runners[i].index = -1;
    }
}

enum lk_status lk_group_run(struct lk_group *group, const struct lk_group_work *work)
{
    reset(group, work);
    for (;;) {
        bool all_done = true;
        LK_TRY(advance(group));
        for (int p = 0; p < group->count; p++)
            all_done &= group->places[p].next_backward == work->micro_batches;
        if (all_done && !group->parcels)
            return LK_OK;
        LK_TRY(move_first(group));
    }
}

/* The step of a group is as long as that of the device that is at work the longest. */
struct lk_place_times lk_group_times(const struct lk_group *group, int place)
{
    const struct place *here = &group->places[place];
    const double busy = lk_stretches_sum(&here->stretches).busy;
    double span = busy;
    for (int p = 0; p < group->count; p++) {
        const struct lk_stretched found = lk_stretches_sum(&group->places[p].stretches);
        span = found.span > span ? found.span : span;
    }
    return (struct lk_place_times){.compute_ms = 1e3 * busy,
                                   .idle_ms = 1e3 * (span - busy),
                                   .crossing_ms = 1e3 * here->crossing_seconds,
                                   .crossing_bytes = here->crossing_bytes};
}
