/* Time for teams of fake devices. It stands still while any device of the team is at work,
 * however long its thread takes, and jumps ahead where all wait or "work" for a given time. So
 * limits hold to the millisecond on any machine. The linker leads the team's looks at the clock
 * and its waiting here. */
#ifndef TEST_TEAM_FAKE_TIME_H
#define TEST_TEAM_FAKE_TIME_H

#include "team/workers/worker.h"

/* Time waits for the devices of this team from now on, for those of the last one no more. */
void fake_time_watch(struct lk_team *team);

/* On a device's thread, without the mutex: works so long, or for ever. */
void fake_time_pass(const struct lk_worker *worker, int ms);
_Noreturn void fake_time_hang(const struct lk_worker *worker);

/* Waits until a device is in a state, with the mutex; false: it will never be. */
bool fake_time_reaches(struct lk_team *team, const struct lk_worker *worker,
                       enum lk_worker_state state);

#endif
