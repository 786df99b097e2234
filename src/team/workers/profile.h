/* A training's trace as a file in Chrome's Trace Event Format, for chrome://tracing and
 * Perfetto: what the devices ran, from their own clocks, and what the host did. Floor 7.
 * A process is a device or the host, a thread is a queue or a host thread. Every function takes
 * NULL for "not traced" and does nothing then; all but open and close may be called from any
 * thread.
 * source: Trace Event Format (Google, 2016): complete events X, metadata M */
#ifndef LK_TEAM_WORKERS_PROFILE_H
#define LK_TEAM_WORKERS_PROFILE_H

#include "device/device.h"

struct lk_profile;

/* Begins a trace of `steps` steps (0: of all) from the second one on, since the first pays for
 * what is done once. The file appears when they are over. "" gives NULL. fails: LK_E_IO where
 * the file cannot be made */
LK_MUST_CHECK enum lk_status lk_profile_open(const char *path, int64_t steps,
                                             struct lk_profile **profile);

/* Traces the device as number `position`; nobody else uses it meanwhile. */
LK_MUST_CHECK enum lk_status lk_profile_add(struct lk_profile *profile,
                                            struct lk_device *device, int position);

/* What is enqueued on the device from now on belongs to `step`. */
void lk_profile_step(struct lk_profile *profile, struct lk_device *device, int64_t step);

/* Takes what the device has finished; call it when `step` is over. */
void lk_profile_collect(struct lk_profile *profile, struct lk_device *device, int position,
                        int64_t step);

/* What a host thread did for `step`, in seconds of lk_seconds(). Those of one thread do not
 * overlap, or lie in one another. */
void lk_profile_span(struct lk_profile *profile, const char *thread, const char *name,
                     int64_t step, double begin, double end);

/* Puts the file in place; where no step was traced nothing is written. fails: LK_E_IO: a full
 * disk; the file that was there is untouched */
LK_MUST_CHECK enum lk_status lk_profile_close(struct lk_profile *profile);

#endif
