/* Teams of devices that are made of host memory: real threads, commands, waiting and adding up,
 * but no OpenCL. A device "computes" whole numbers, so that weights are right to the bit. */
#ifndef TEST_TEAM_FAKES_H
#define TEST_TEAM_FAKES_H

#include "team/lockstep/lockstep.h"

enum { FAKES = 3, FAKE_SHARDS = 4, FAKE_BATCH = 8 };

enum fake_act { FAKE_BEGIN, FAKE_END, FAKE_READ, FAKE_WRITE, FAKE_CHANGE };
enum fake_trouble {
    FAKE_NONE,
    FAKE_FAILS,   /* the device is in trouble */
    FAKE_STOPS,   /* for a reason that is not the device's */
    FAKE_HANGS,   /* for ever */
    FAKE_NAN,     /* computes no numbers, from then on */
    FAKE_CHANGES, /* what it sends does not arrive unchanged, `times` times */
    FAKE_IS_SLOW, /* works `after_ms` each time, which it does not say */
    FAKE_DIVERGES /* its weights change unasked, so that its replica is wrong */
};

/* Trouble that a device meets in an act, from a step on (0: at once); the mutex of the team
 * guards it. `after_ms`: it works that long first. */
struct fake_plan {
    enum fake_trouble trouble;
    enum fake_act act;
    int64_t step;
    int after_ms, times;
};

/* A team in which `count` devices train from zero weights; teams live until the test's end,
 * since threads that hang look at them. */
struct lk_team *fake_team(int count, enum lk_team_phase phase);
void fake_destroy(struct lk_team *team);

void fake_plan(struct lk_team *team, int device, struct fake_plan plan);

/* Trains steps `first` to `last`, two begun at a time. The first failure's status. */
enum lk_status fake_train(struct lk_team *team, int64_t first, int64_t last,
                          struct lk_team_result *result);

/* The weight of a device, and what it is after so many steps. */
float fake_weight(const struct lk_team *team, int device);
float fake_expected(int64_t steps);

enum lk_worker_state fake_state(struct lk_team *team, int device);

/* Waits until a device is in a state; false: it will never be. */
bool fake_reaches(struct lk_team *team, int device, enum lk_worker_state state);

/* Sends the others home, as a trial that one device has won does. */
void fake_go_alone(struct lk_team *team, int device);

/* Transitions that happened so far, [state][event]. */
extern bool fake_walked[LK_WORKER_STATES][LK_WORKER_EVENTS];

#endif
