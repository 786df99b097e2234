/* The transition tables of devices and of the team: nothing else knows which state follows
 * which. */
#include "team/workers/states.h"

#include <stdint.h>

/* Short names keep each row of the table below to a line or two. */
enum {
    NEW = LK_WORKER_NEW,
    READY = LK_WORKER_READY,
    CALLED = LK_WORKER_CALLED,
    COMPUTING = LK_WORKER_COMPUTING,
    DELIVERED = LK_WORKER_DELIVERED,
    UPDATING = LK_WORKER_UPDATING,
    WORKING = LK_WORKER_WORKING,
    STOPPED = LK_WORKER_STOPPED,
    FAILED = LK_WORKER_FAILED,
    RESTING = LK_WORKER_RESTING,
    LOST = LK_WORKER_LOST,
    ENDED = LK_WORKER_ENDED,
};

#define ON(event, state) [LK_WORKER_##event] = (state)

/* [state][event] gives the next state; pairs that are not listed are refused. Device threads
 * and the trainer's thread do not wait for one another, so an event may come when it means
 * nothing any more: it then leaves the state as it is. */
static const uint8_t follows[LK_WORKER_STATES][LK_WORKER_EVENTS] = {
    [NEW] = {ON(START, READY)},
    [READY] = {ON(CALL, CALLED), ON(SHARE, COMPUTING), ON(WORK, WORKING), ON(REST, RESTING),
               ON(LOSE, LOST), ON(QUIT, ENDED), ON(UPDATED, READY), ON(FAIL, FAILED),
               ON(STOP, STOPPED)},
    /* Commands that were in the queue before the call may end, or fail, before it begins.
     * One that stops is repeated after the call and stops again. */
    [CALLED] = {ON(LOSE, LOST), ON(RETURN, READY), ON(DELIVER, CALLED), ON(UPDATED, CALLED),
                ON(DONE, CALLED), ON(FAIL, FAILED), ON(STOP, CALLED)},
    /* A call in the middle of a step copies a state; the step is begun anew after it. */
    [COMPUTING] = {ON(CALL, CALLED), ON(SHARE, COMPUTING), ON(LOSE, LOST),
                   ON(DELIVER, DELIVERED), ON(UPDATED, COMPUTING), ON(FAIL, FAILED),
                   ON(STOP, STOPPED)},
    [DELIVERED] = {ON(CALL, CALLED), ON(SHARE, COMPUTING), ON(COMMIT, UPDATING),
                   ON(REST, RESTING), ON(LOSE, LOST), ON(FAIL, FAILED), ON(STOP, STOPPED)},
    [UPDATING] = {ON(CALL, CALLED), ON(SHARE, COMPUTING), ON(REST, RESTING), ON(LOSE, LOST),
                  ON(UPDATED, READY), ON(FAIL, FAILED), ON(STOP, STOPPED)},
    [WORKING] = {ON(CALL, CALLED), ON(LOSE, LOST), ON(DONE, READY), ON(FAIL, FAILED),
                 ON(STOP, STOPPED)},
    /* The thread that waits for the device finds the error. A call is still carried out, so
     * that the device can be closed. */
    [STOPPED] = {ON(CALL, CALLED), ON(SHARE, STOPPED), ON(COMMIT, STOPPED), ON(REST, RESTING),
                 ON(LOSE, LOST), ON(DELIVER, STOPPED), ON(UPDATED, STOPPED), ON(DONE, STOPPED),
                 ON(FAIL, FAILED), ON(STOP, STOPPED)},
    /* It takes no more commands; the trainer's thread, when it waits for the device, takes
     * it out. */
    [FAILED] = {ON(CALL, FAILED), ON(SHARE, FAILED), ON(COMMIT, FAILED), ON(UPDATED, FAILED),
                ON(REST, LOST), ON(LOSE, LOST)},
    /* Its last update may still end, or fail, after it was sent to rest. */
    [RESTING] = {ON(CALL_BACK, READY), ON(LOSE, LOST), ON(DELIVER, RESTING),
                 ON(UPDATED, RESTING), ON(FAIL, LOST), ON(STOP, RESTING)},
    [LOST] = {ON(LOSE, LOST), ON(RETURN, LOST), ON(DELIVER, LOST), ON(UPDATED, LOST),
              ON(DONE, LOST), ON(FAIL, LOST), ON(STOP, LOST)},
};

enum lk_worker_state lk_worker_next(enum lk_worker_state state, enum lk_worker_event event)
{
    return (enum lk_worker_state)follows[state][event];
}

const char *lk_worker_state_name(enum lk_worker_state state)
{
    static const char *const names[LK_WORKER_STATES] = {
        "refused", "new",     "ready",  "called",  "computing", "delivered", "updating",
        "working", "stopped", "failed", "resting", "lost",      "ended"};
    return names[state];
}

const char *lk_worker_event_name(enum lk_worker_event event)
{
    static const char *const names[LK_WORKER_EVENTS] = {
        "start", "call",   "share",   "commit",  "work", "rest", "call back", "lose",
        "quit",  "return", "deliver", "updated", "done", "fail", "stop"};
    return names[event];
}

#define TO(phase) (1u << LK_TEAM_##phase)

/* For each phase, those that may follow. */
static const unsigned phases[LK_TEAM_PHASES] = {
    [LK_TEAM_BUILDING] = TO(SHARED) | TO(TRIAL_ALL) | TO(ALONE) | TO(ASYNC),
    [LK_TEAM_SHARED] = 0,
    [LK_TEAM_TRIAL_ALL] = TO(TRIAL_ONE) | TO(SHARED) | TO(ALONE),
    [LK_TEAM_TRIAL_ONE] = TO(TRIAL_ALL) | TO(SHARED) | TO(ALONE),
    [LK_TEAM_ALONE] = TO(CALLING_BACK) | TO(TRIAL_ALL),
    [LK_TEAM_CALLING_BACK] = TO(SHARED),
    [LK_TEAM_ASYNC] = 0,
};

bool lk_team_may_follow(enum lk_team_phase phase, enum lk_team_phase next)
{
    return phases[phase] >> next & 1;
}

const char *lk_team_phase_name(enum lk_team_phase phase)
{
    static const char *const names[LK_TEAM_PHASES] = {
        "building", "shared", "trial of all", "trial of one", "alone", "calling back", "async"};
    return names[phase];
}
