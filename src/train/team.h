/* Devices that train one model together, in lockstep. Floor 8.
 *
 * Each has a replica and a host thread. A step's batch is cut into shards, every device
 * computes a run of them, the host adds their sums along the fixed tree and every device
 * updates by the same sum. A device that fails is left behind: its step is computed again by
 * the others from the same parameters, so that nothing is lost or counted twice. A device that
 * is alone from the start needs no host for its sums. One thread calls these functions. */
#ifndef LK_TRAIN_TEAM_H
#define LK_TRAIN_TEAM_H

#include "mirror/staleness.h"
#include "mirror/world.h"
#include "train/worker.h"
#include <lockstep/train.h>

enum { LK_MOST_TEAM = 64, LK_MOST_BEGUN = 16 };

struct lk_profile;
struct lk_team_step;

struct lk_team_config {
    const char *devices; /* a list as lk_device_open() takes it */
    const char *split;   /* as lk_split_parse() takes it, of the devices of all ranks */
    const char *log_folder;
    const struct lk_node *images, *labels, *loss;
    int64_t batch;
    int shards;
    const struct lk_look *look; /* of the images, outlives the team; NULL: as they are */
    enum lk_dtype real;
    struct lk_loss_scale loss_scale; /* as a stepper takes it */
    uint64_t seed;
    const char *optimizer, *optimizer_options;
    struct lk_choices *choices; /* as a replica takes them */
    int64_t check_every;    /* steps between comparisons of the replicas' parameters; 0: none */
    bool is_async;          /* without lockstep, see async.h */
    int64_t max_staleness;  /* then; -1: twice the devices */
    struct lk_world *world; /* the job's ranks, each with a team and a run of the shards */
    bool in_any_order;      /* over ranks: see struct lk_world_plan */

    /* Called when the devices are open, before anything is planned for them; NULL: nothing. */
    enum lk_status (*opened)(void *context, struct lk_team *team);

    /* Called on a device's thread before its stepper goes and another one takes its place: what
     * uses its weights has to go first. NULL: nothing does. */
    void (*leaves)(void *context, struct lk_worker *worker);
    void *context; /* of both */
};

/* How many shards a device computes at a time where it has room: twice its equal share, so that
 * a fast one can take more, and all where one device of two is left; a power of two. */
int lk_team_most_shards(int shards, int devices);

/* Opens the devices and plans; what a device cannot hold is computed in several passes. A
 * device that fails is left out with a warning. fails: LK_E_ARGUMENT for more devices than
 * shards; as the first device where none is left */
LK_MUST_CHECK enum lk_status lk_team_create(const struct lk_team_config *config,
                                            struct lk_team **team);

/* Builds kernels and allocates, on all devices at once; weights are set from the seed. */
LK_MUST_CHECK enum lk_status lk_team_build(struct lk_team *team);
void lk_team_destroy(struct lk_team *team);

/* What steps read from now on; must outlive the team's threads, so destroy it after the team.
 */
void lk_team_set_batches(struct lk_team *team, struct lk_batches *batches);

/* How to learn what a step was: where it has to be done again long after it was ended, since
 * the one device that had its results is lost. Without it no device goes on alone. */
void lk_team_set_steps(struct lk_team *team,
                       void (*describe)(void *context, int64_t number,
                                        struct lk_team_step *step),
                       void *context);

/* Traces the devices and what the host does; NULL: does not. */
LK_MUST_CHECK enum lk_status lk_team_set_profile(struct lk_team *team,
                                                 struct lk_profile *profile);

/* Devices at the start, and those that are left. */
int lk_team_devices(const struct lk_team *team);
int lk_team_left(const struct lk_team *team);

/* The first device that is left; its replica and optimizer are touched in lk_team_call() alone,
 * but for what they know without asking the device. */
const struct lk_worker *lk_team_lead(const struct lk_team *team);
const struct lk_worker *lk_team_worker(const struct lk_team *team, int position);

/* Calls call(context, worker) on the thread of the first device that is left and waits; where
 * the device fails, again on the next one. No step may be on its way.
 * fails: LK_E_DEVICE where none is left; otherwise as the call does */
LK_MUST_CHECK enum lk_status lk_team_call(struct lk_team *team,
                                          enum lk_status (*call)(void *, struct lk_worker *),
                                          void *context);

/* The same on that device alone, if it is left; where it fails it is lost, and that is all.
 * fails: as the call does for another reason */
LK_MUST_CHECK enum lk_status
lk_team_call_other(struct lk_team *team, int position,
                   enum lk_status (*call)(void *, struct lk_worker *), void *context);

/* Calls on every device that is left: one after another, or on all at once. A device in trouble
 * is lost. fails: as the first call that does, but for a lost device where others are left */
LK_MUST_CHECK enum lk_status
lk_team_call_each(struct lk_team *team, enum lk_status (*call)(void *, struct lk_worker *),
                  void *context, bool at_once);

/* Copies parameters and optimizer state of rank 0's first device to all ranks' devices. All
 * ranks call it. */
LK_MUST_CHECK enum lk_status lk_team_align(struct lk_team *team);

/* Compares what every device was sent in the last step, which no later step does, and mends a
 * replica that is wrong: before what is trained is saved. No step may be on its way.
 * fails: LK_E_DEVICE where none is right */
LK_MUST_CHECK enum lk_status lk_team_settle(struct lk_team *team);

/* A step to be done: step - 1 is the batch's number. */
struct lk_team_step {
    int64_t step, samples;
    double lr;
};

struct lk_team_result {
    double loss, accuracy;
    struct lk_device_times devices[LK_MOST_SHARDS]; /* [device_count]: of all ranks, in turn */
    int device_count;
    int tries;      /* how often the step was computed */
    bool must_stop; /* a rank wanted to stop when its part was done */
};

/* Whether a step should be begun before the oldest one is ended: there may be two, or
 * LK_MOST_BEGUN without lockstep, where it waits until one is wanted or the oldest is done.
 * fails: LK_E_DEVICE where no device is left */
LK_MUST_CHECK enum lk_status lk_team_wants(struct lk_team *team, bool *wants);

/* Announces the next step, which may begin at once. */
LK_MUST_CHECK enum lk_status lk_team_begin(struct lk_team *team,
                                           const struct lk_team_step *step);

/* Waits until the oldest step that was begun is committed: all shards have arrived once, and
 * the update is on its way everywhere. All ranks learn in the same step that one of them
 * wants to stop. fails: LK_E_DEVICE where no device is left; as another rank has failed */
LK_MUST_CHECK enum lk_status lk_team_end(struct lk_team *team, bool wants_stop,
                                         struct lk_team_result *result);

/* Updates that a full batch makes: 1 in lockstep. */
int lk_team_updates_each(const struct lk_team *team);

/* How many updates there were without lockstep, and how stale; NULL in lockstep. Set the number
 * to go on from while no step is on its way. */
const struct lk_staleness *lk_team_staleness(const struct lk_team *team);
LK_MUST_CHECK enum lk_status lk_team_set_updates(struct lk_team *team, int64_t updates);

/* Events since the start, for reports. */
struct lk_team_counts {
    int64_t lost, repeated_steps, repaired, dealt;
};
struct lk_team_counts lk_team_counts(const struct lk_team *team);

#endif
