/* Runs the replicas of a group: each goes as far as it can, then what has to cross is moved. */
#include "graph/place/group.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "graph/crossing.h"
#include "graph/crossing/checked_copy.h"
#include "graph/planes.h"
#include "graph/replica_internal.h"
#include "graph/stretches.h"
#include "graph/watch.h"
#include <math.h>
#include <stdlib.h>
#include <time.h>

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
    int next, next_forwarded, next_backward;
    struct lk_stretches stretches;
    struct lk_crossing_tally sent; /* in the step */
    struct lk_checked_copy *checked;
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
    bool takes_planes;                          /* lk_devices_take_planes() */
    struct lk_replica *members[LK_MOST_PLACES]; /* that have weights */
    struct place places[LK_MOST_PLACES];
    const struct lk_group_work *work;
    int fetched;                    /* micro-batches whose samples are there */
    int64_t step;                   /* the last */
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

static void destroy_runners(struct lk_group *group, int place)
{
    for (int i = group->in_flight - 1; i >= 0; i--) {
        lk_replica_destroy(group->places[place].runners[i].replica);
        group->places[place].runners[i].replica = NULL;
    }
}

/* All replicas of a place have activations and inputs of their own at the same time. Each by
 * itself was found to fit. */
static enum lk_status check_room(const struct lk_group *group, int place)
{
    const struct runner *runners = group->places[place].runners;
    const double there = lk_replica_bytes_there(group->places[place].stretches.device);
    double all = (double)lk_replica_bytes(runners[0].replica).total;
    for (int i = 1; i < group->in_flight; i++) {
        const struct lk_replica_bytes bytes = lk_replica_bytes(runners[i].replica);
        all += (double)(bytes.activations + bytes.inputs);
    }
    if (group->in_flight == 1 || all <= there)
        return LK_OK;
    return lk_fail(LK_E_DEVICE_MEMORY,
                   "place %d of a group: %d micro-batches on their way need %.1f MB of device "
                   "memory, %.1f MB are there",
                   place, group->in_flight, 1e-6 * all, 1e-6 * there);
}

/* The first replica of a place has what all of them share. */
static enum lk_status create_runners(struct lk_group *group,
                                     const struct lk_replica_config *config,
                                     struct lk_device *device, int place)
{
    struct runner *runners = group->places[place].runners;
    struct lk_replica_config own = *config;
    own.device = device;
    own.place = place;
    own.places = group->count;
    own.few_samples &= group->takes_planes;
    group->places[place].stretches.device = device;
    if (config->weights_of)
        own.weights_of = lk_group_member(config->weights_of, place);
    for (int i = 0; i < group->in_flight; i++) {
        LK_TRY(lk_replica_create(&own, &runners[i].replica));
        lk_replica_join(runners[i].replica, group->members);
        own.weights_of = runners[0].replica;
        own.packs_once = lk_replica_packs_once(runners[0].replica);
        own.optimizer_arrays = own.gradient_sums = 0;
    }
    group->members[place] = runners[0].replica;
    return check_room(group, place);
}

/* What is packed of weights is kept for a step where there is room for that. */
static enum lk_status create_place(struct lk_group *group,
                                   const struct lk_replica_config *config,
                                   struct lk_device *device, int place)
{
    struct lk_replica_config own = *config;
    enum lk_status status = create_runners(group, &own, device, place);
    if (status == LK_E_DEVICE_MEMORY && config->packs_once) {
        lk_error_clear();
        destroy_runners(group, place);
        own.packs_once = false;
        status = create_runners(group, &own, device, place);
    }
    return status == LK_OK ? check_tiles(group, place) : status;
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
    made->takes_planes = lk_devices_take_planes(devices, count);
    made->trains = config->training && config->part != LK_PART_FROZEN;
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
    const int slots = lk_crossing_slots(group->places[0].runners[0].replica);
    for (int p = 0; p < group->count; p++) {
        struct place *place = &group->places[p];
        if (slots > 0)
            LK_TRY(lk_checked_copy_create(place->stretches.device, slots, &place->checked));
        for (int i = 0; i < group->in_flight; i++) {
            lk_crossings_check(place->runners[i].replica, place->checked);
            LK_TRY(lk_replica_build(place->runners[i].replica));
        }
    }
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
        destroy_runners(group, p);
        lk_checked_copy_destroy(group->places[p].checked);
    }
    free_parcels(group->parcels);
    free_parcels(group->spare);
    free(group);
}

int lk_group_count(const struct lk_group *group)
{
    return group->count;
}

void lk_group_set_loss_scale(struct lk_group *group, int place, const struct lk_buffer *scale)
{
    for (int i = 0; i < group->in_flight; i++)
        lk_replica_set_loss_scale(group->places[place].runners[i].replica, scale);
}

void lk_group_watch(struct lk_group *group, struct lk_watch *watch)
{
    for (int i = 0; i < group->count * group->in_flight; i++)
        lk_replica_watch(lk_group_runner(group, i / group->in_flight, i), watch);
}

struct lk_replica *lk_group_replica(struct lk_group *group, int place)
{
    return group->places[place].runners[0].replica;
}

/* --- running ------------------------------------------------------------------------------ */

/* Micro-batches go to the runners of a place in turns. */
static struct runner *runner_of(struct lk_group *group, int place, int index)
{
    return &group->places[place].runners[index % group->in_flight];
}

struct lk_replica *lk_group_runner(struct lk_group *group, int place, int index)
{
    return runner_of(group, place, index)->replica;
}

/* The runner of a place that is at a micro-batch; NULL: none is. */
static struct runner *find_runner(struct lk_group *group, int place, int index)
{
    struct runner *runner = runner_of(group, place, index);
    return runner->index == index ? runner : NULL;
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

/* What a later micro-batch waits for may cross before what an earlier one waits for. But losses
 * are added up in the order of micro-batches, so each is told of behind those before it. */
static enum lk_status go_forward(struct lk_group *group, int place, struct runner *runner)
{
    const struct lk_group_work *work = group->work;
    struct place *here = &group->places[place];
    bool is_done;
    LK_TRY(lk_replica_go_forward(runner->replica, &is_done));
    note_sent(group, place, runner);
    if (!is_done || runner->index != here->next_forwarded)
        return LK_OK;
    here->next_forwarded++;
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

/* Takes the next micro-batch, if its samples are there and a runner is free. */
static enum lk_status begin(struct lk_group *group, int place, bool *has_begun)
{
    const struct lk_group_work *work = group->work;
    struct place *here = &group->places[place];
    struct runner *runner = runner_of(group, place, here->next);
    *has_begun = here->next < group->fetched && runner->index < 0 && runner->parcels == 0;
    if (!*has_begun)
        return LK_OK;
    runner->index = here->next++;
    runner->bucket = -1;
    LK_TRY(work->load(work->context, runner->replica, place, runner->index));
    lk_replica_begin_forward(runner->replica, work->step);
    return LK_OK;
}

/* Enqueues what a place can do now, and begins with one more micro-batch. */
static enum lk_status enqueue(struct lk_group *group, int place, bool *has_begun)
{
    const struct place *here = &group->places[place];
    bool has_ended = true;
    while (has_ended) {
        for (int index = here->next_forwarded; index < here->next; index++)
            LK_TRY(go_forward(group, place, runner_of(group, place, index)));
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

/* Reads the samples of one more micro-batch, where all places have room: a replica has room for
 * the next one beside that which it works on. When all are read, those of the next run. */
static enum lk_status fetch_one(struct lk_group *group, bool *has_fetched)
{
    const struct lk_group_work *work = group->work;
    bool has_room = group->fetched < work->micro_batches, have_all_begun = true;
    for (int p = 0; p < group->count; p++) {
        has_room &= group->fetched < group->places[p].next + group->in_flight;
        have_all_begun &= group->places[p].next == work->micro_batches;
    }
    *has_fetched = has_room;
    if (!has_room)
        return have_all_begun && work->fetch_next ? work->fetch_next(work->context, has_fetched)
                                                  : LK_OK;
    return work->fetch(work->context, group->fetched++);
}

static void count_down(struct lk_group *group, struct parcel **at)
{
    struct parcel *parcel = *at;
    parcel->from->parcels--;
    *at = parcel->next;
    parcel->next = group->spare;
    group->spare = parcel;
}

/* The replica that gets a parcel, once it is at that micro-batch; NULL: not yet. */
static struct lk_replica *receiver_of(struct lk_group *group, const struct parcel *parcel)
{
    const struct lk_replica *any = group->places[0].runners[0].replica;
    const struct lk_crossing *crossing = lk_crossing_get(any, parcel->sent.number);
    const int to = parcel->place == crossing->from ? crossing->to : crossing->from;
    const struct runner *runner = find_runner(group, to, parcel->index);
    return runner ? runner->replica : NULL;
}

/* Parcels that can be moved: how many; the first of them, and the first of those that are there
 * already (NULL: none is). Gradients of weights come behind all others, since their device
 * needs them last. */
struct movable {
    int count;
    struct parcel **first, **there;
};

static struct movable find_movable(struct lk_group *group)
{
    const struct lk_replica *any = group->places[0].runners[0].replica;
    struct movable found = {0};
    for (int is_last = 0; is_last < 2 && !found.there; is_last++)
        for (struct parcel **at = &group->parcels; *at && !found.there; at = &(*at)->next) {
            const struct lk_sent sent = (*at)->sent;
            const struct lk_replica *to = receiver_of(group, *at);
            const bool is_weights = lk_crossing_get(any, sent.number)->value < 0;
            if (!to || (sent.in_backward && is_weights) != is_last)
                continue;
            found.count++;
            found.first = found.first ? found.first : at;
            if (lk_crossing_is_there((*at)->from->replica, to, sent))
                found.there = at;
        }
    return found;
}

/* Of several devices nobody knows which is the first to send, and OpenCL waits for all or for
 * one that is named: so this looks again and again. On a CPU each look takes a core from a
 * kernel, so it comes the later the longer there was nothing to see, by an eighth. */
static struct parcel **await_parcel(struct lk_group *group)
{
    enum { SHORTEST = 20000, LONGEST = 1000000 }; /* nanoseconds */
    const double start = lk_seconds();
    struct movable found = find_movable(group);
    while (found.count > 1 && !found.there) {
        const double waited = 1e9 * (lk_seconds() - start) / 8;
        const long pause = (long)fmin(fmax(waited, SHORTEST), LONGEST);
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        found = find_movable(group);
    }
    return found.there ? found.there : found.first;
}

static enum lk_status move(struct lk_group *group, struct parcel **at)
{
    LK_TRY(lk_crossing_move((*at)->from->replica, receiver_of(group, *at), (*at)->sent,
                            &group->places[(*at)->place].sent));
    count_down(group, at);
    return LK_OK;
}

/* When all devices have been given what they can do: moves what is there, or reads samples, or
 * waits for something to be moved. */
static enum lk_status go_on(struct lk_group *group)
{
    struct parcel **at = find_movable(group).there;
    bool has_fetched = false;
    if (!at)
        LK_TRY(fetch_one(group, &has_fetched));
    if (has_fetched)
        return LK_OK;
    at = at ? at : await_parcel(group);
    return at ? move(group, at)
              : lk_fail(LK_E_UNSUPPORTED, "devices of a group wait for each other");
}

static enum lk_status reset(struct lk_group *group, const struct lk_group_work *work)
{
    group->work = work;
    group->step = work->step;
    group->fetched = work->fetch ? work->fetched : work->micro_batches;
    for (int p = 0; p < group->count; p++) {
        struct place *place = &group->places[p];
        place->next = place->next_forwarded = place->next_backward = 0;
        place->stretches.count = 0;
        place->sent = (struct lk_crossing_tally){0};
        for (int i = 0; i < group->in_flight; i++)
            place->runners[i].index = -1;
        if (place->checked)
            LK_TRY(lk_checked_copy_begin(place->checked));
    }
    return LK_OK;
}

static enum lk_status end_checks(struct lk_group *group)
{
    for (int p = 0; p < group->count; p++)
        if (group->places[p].checked)
            LK_TRY(lk_checked_copy_end(group->places[p].checked));
    return LK_OK;
}

enum lk_status lk_group_run(struct lk_group *group, const struct lk_group_work *work)
{
    LK_TRY(reset(group, work));
    for (;;) {
        bool all_done = true;
        LK_TRY(advance(group));
        for (int p = 0; p < group->count; p++)
            all_done &= group->places[p].next_backward == work->micro_batches;
        if (all_done && !group->parcels)
            return end_checks(group);
        LK_TRY(go_on(group));
    }
}

/* --- what a step has told ---------------------------------------------------------------- */

static void tell_changed(const struct lk_group *group, int slot)
{
    const struct lk_replica *any = group->places[0].runners[0].replica;
    const struct lk_sent sent = lk_sent_of_slot(slot);
    const struct lk_crossing *crossing = lk_crossing_get(any, sent.number);
    lk_log(LK_LOG_WARNING,
           "devices %d and %d of a group: %s %s of '%s' changed on the way in step %lld",
           crossing->from, crossing->to, sent.in_backward ? "gradients of" : "the",
           crossing->value < 0 ? "weights" : "values",
           lk_crossing_name(group->places[crossing->from].runners[0].replica, sent.number),
           (long long)group->step);
}

enum lk_status lk_group_check(struct lk_group *group, int *wrong_at)
{
    int told = -1, sender = -1, receiver = -1;
    for (int p = 0; p < group->count; p++) {
        const struct place *place = &group->places[p];
        int slot = -1; /* found by the receiver, to which what the host has found went on */
        if (place->checked)
            LK_TRY(lk_checked_copy_wait(place->checked, &slot));
        receiver = slot >= 0 ? p : receiver;
        sender = place->sent.changed > 0 ? p : sender;
        if (slot < 0)
            slot = place->sent.changed - 1;
        if (slot >= 0 && slot != told)
            tell_changed(group, slot);
        told = slot >= 0 ? slot : told;
    }
    *wrong_at = sender >= 0 ? sender : receiver;
    return LK_OK;
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
                                   .crossing_ms = 1e3 * here->sent.seconds,
                                   .crossing_bytes = here->sent.bytes};
}
