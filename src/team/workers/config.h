/* The configuration of a team, its steps and their results. Floor 7. */
#ifndef LK_TEAM_WORKERS_CONFIG_H
#define LK_TEAM_WORKERS_CONFIG_H

#include "mirror/world.h"
#include "team/stepper/stepper.h"
#include <lockstep/team.h>

struct lk_team;
struct lk_worker;

enum { LK_MOST_TEAM = 64, LK_MOST_BEGUN = 16 };

struct lk_team_config {
    const char *devices; /* a list as lk_device_open() takes it */
    int places;          /* so many neighbours in the list are a group, among which the graph is
                          * divided, and one "device" of the team; 0: there are no groups */
    int in_flight;       /* of a group, as a stepper takes it */
    const char *split;   /* as lk_split_parse() takes it, of the devices of all ranks */
    const char *log_folder;
    const struct lk_node *loss;
    const struct lk_feed *feed; /* as a stepper takes it */
    int64_t batch;
    int shards;
    int pieces; /* in at least so many a device computes its shards, one after another; 0: in as
                 * few as it has room for */
    /* of the images, outlives the team; NULL: as they are */
    const struct lk_transform *transform;
    enum lk_dtype real;
    struct lk_loss_scale loss_scale; /* as a stepper takes it */
    uint64_t seed;
    const char *optimizer, *optimizer_options;
    struct lk_clip clip; /* as a stepper takes both */
    double ema;
    struct lk_choices *choices;       /* as a replica takes them */
    enum lk_replica_part part;        /* as a stepper takes it */
    enum lk_recompute_mode recompute; /* as a stepper takes it */
    bool few_samples;                 /* likewise */
    size_t memory_limit;              /* bytes of each device that may be used; 0: all */
    int64_t check_every;    /* steps between comparisons of the replicas' parameters; 0: none */
    bool is_async;          /* without lockstep, see team/async/async.h */
    int64_t max_staleness;  /* of training without lockstep; -1: twice the number of devices */
    struct lk_world *world; /* the job's ranks, each with a team and a run of the shards */
    bool in_any_order;      /* over ranks: see struct lk_world_plan */

    /* Called when the devices are open, before anything is planned for them; NULL: nothing. */
    enum lk_status (*opened)(void *context, struct lk_team *team);

    /* Called on a device's thread, or for one that is lost, before its stepper is destroyed:
     * whatever uses its weights has to be destroyed first. NULL: nothing does. */
    void (*leaves)(void *context, struct lk_worker *worker);
    void *context; /* given to both functions */
};

/* A step to be done: step - 1 is the batch's number. */
struct lk_team_step {
    int64_t step, samples;
    double lr;
    bool keeps_gradient; /* the lead can read it after the step: lk_stepper_read_gradient() */
    bool copies_state;   /* the lead copies its state while the next step runs:
                          * lk_team_take_copy() */
};

struct lk_team_result {
    double loss, accuracy;
    struct lk_device_times devices[LK_MOST_SHARDS]; /* [device_count]: those of all ranks,
                                                     * one rank after another */
    int device_count;
    double ended;   /* of a device that is alone, as struct lk_step_result has it: the host may
                     * hear of it late; else 0 */
    int tries;      /* how often the step was computed */
    bool must_stop; /* a rank has asked all to stop */
};

/* Events since the start, for reports. */
struct lk_team_counts {
    int64_t lost, repeated_steps, repaired, dealt;
};

#endif
