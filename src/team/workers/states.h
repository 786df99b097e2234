/* The states of a device in a team and what moves it from one to another; the phases of the
 * team. Floor 7. Pure tables: knows no device, no thread and no lock. README.md of this hall
 * draws them. */
#ifndef LK_TEAM_WORKERS_STATES_H
#define LK_TEAM_WORKERS_STATES_H

#include <stdbool.h>

enum lk_worker_state {
    LK_WORKER_REFUSED,   /* not a state: the answer of lk_worker_next() to an event that may
                          * not happen */
    LK_WORKER_NEW,       /* its thread has not started */
    LK_WORKER_READY,     /* at work, and nobody waits for anything from it */
    LK_WORKER_CALLED,    /* carries out a call */
    LK_WORKER_COMPUTING, /* has been given its share of the oldest step */
    LK_WORKER_DELIVERED, /* all sums of that share are with the host */
    LK_WORKER_UPDATING,  /* the step counts, and it brings its parameters up to date */
    LK_WORKER_WORKING,   /* without lockstep: takes groups of shards from the queue */
    LK_WORKER_STOPPED,   /* a command failed for a reason that is not the device's own */
    LK_WORKER_FAILED,  /* the device is in trouble and was not taken out yet; its thread ends */
    LK_WORKER_RESTING, /* sent home, since another device goes on alone */
    LK_WORKER_LOST,    /* left behind: nobody waits for it, nobody touches what it has */
    LK_WORKER_ENDED,   /* its thread has been told to end */
    LK_WORKER_STATES
};

enum lk_worker_event {
    /* from the trainer's thread */
    LK_WORKER_START,     /* its thread starts */
    LK_WORKER_CALL,      /* a call is sent */
    LK_WORKER_SHARE,     /* a share of the oldest step is sent, or the step begun anew */
    LK_WORKER_COMMIT,    /* the step counts, and the update is sent */
    LK_WORKER_WORK,      /* work without lockstep is sent */
    LK_WORKER_REST,      /* another device goes on alone, or is to judge this one */
    LK_WORKER_CALL_BACK, /* it takes part again */
    LK_WORKER_LOSE,      /* it hangs, or what it sends is wrong */
    LK_WORKER_QUIT,      /* its thread is told to end */

    /* from the device's thread */
    LK_WORKER_RETURN,  /* the call is over */
    LK_WORKER_DELIVER, /* the last sum of the share that is wanted has come */
    LK_WORKER_UPDATED, /* the update is on its way on the device */
    LK_WORKER_DONE,    /* without lockstep: nothing is left to do */
    LK_WORKER_FAIL,    /* a command failed since the device is in trouble */
    LK_WORKER_STOP,    /* a command failed for another reason */
    LK_WORKER_EVENTS
};

/* The state after an event. The same state: the event came late or changes nothing.
 * LK_WORKER_REFUSED: the event may not happen here, its sender has a bug. */
enum lk_worker_state lk_worker_next(enum lk_worker_state state, enum lk_worker_event event);

/* One word each, for messages and tests. */
const char *lk_worker_state_name(enum lk_worker_state state);
const char *lk_worker_event_name(enum lk_worker_event event);

enum lk_team_phase {
    LK_TEAM_BUILDING,     /* devices are opened, planned and built */
    LK_TEAM_SHARED,       /* the devices that are left share every step */
    LK_TEAM_TRIAL_ALL,    /* they do, and it is measured how fast: shares still settle */
    LK_TEAM_TRIAL_ONE,    /* the fastest computes all shards, the others only update */
    LK_TEAM_ALONE,        /* one device is at work; the others rest, where there are any */
    LK_TEAM_CALLING_BACK, /* those that rested repeat the steps of the one that was alone */
    LK_TEAM_ASYNC,        /* without lockstep */
    LK_TEAM_PHASES
};

/* Whether a phase may follow another. A team without a device stays in the phase in which it
 * lost the last one: lk_team_left() says so. */
bool lk_team_may_follow(enum lk_team_phase phase, enum lk_team_phase next);
const char *lk_team_phase_name(enum lk_team_phase phase);

#endif
