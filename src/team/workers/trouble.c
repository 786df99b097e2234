/* Makes a device fail, hang or be slow where the environment asks for it: for tests, and for
 * the drills of `lockstep selftest --faults`. */
#include "team/workers/worker.h"

#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* LOCKSTEP_SLOW=1:3: device 1 takes three times as long. LOCKSTEP_FAIL=1:20,0:30:hang: device 1
 * fails in step 20, device 0 hangs in step 30. */
void lk_worker_read_faults(struct lk_worker *worker)
{
    const char *slow = getenv("LOCKSTEP_SLOW"), *fail = getenv("LOCKSTEP_FAIL");
    int which = 0;
    double times = 1;
    long long step = 0;
    worker->trouble.slowness = 1;
    if (slow && sscanf(slow, "%d:%lf", &which, &times) == 2 && which == worker->position &&
        times > 1)
        worker->trouble.slowness = times;
    for (; fail; fail = strchr(fail, ',') ? strchr(fail, ',') + 1 : NULL) {
        char how[8] = "";
        if (sscanf(fail, "%d:%lld:%4s", &which, &step, how) < 2 || which != worker->position)
            continue;
        worker->trouble.fails_at = step;
        worker->trouble.hangs = strcmp(how, "hang") == 0;
    }
}

void lk_worker_be_slow(const struct lk_worker *worker, double seconds)
{
    const double more = (worker->trouble.slowness - 1) * seconds;
    const struct timespec pause = {(time_t)more, (long)(1e9 * (more - (double)(time_t)more))};
    if (more > 0)
        nanosleep(&pause, NULL);
}

enum lk_status lk_worker_fail(const struct lk_worker *worker, int64_t step)
{
    if (worker->trouble.fails_at == 0 || step < worker->trouble.fails_at)
        return LK_OK;
    while (worker->trouble.hangs)
        pause();
    return lk_fail(LK_E_DEVICE, "LOCKSTEP_FAIL asks for it in step %lld",
                   (long long)worker->trouble.fails_at);
}
