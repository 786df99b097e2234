/* Makes a device fail, hang or be slow where the environment asks for it: for tests, and for
 * the drills of `lockstep selftest --faults`. */
#include "team/workers/worker.h"

#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static enum lk_status refuse(const char *variable, const char *text, const char *expected)
{
    return lk_fail(LK_E_ARGUMENT, "%s='%s' in the environment: expected %s", variable, text,
                   expected);
}

/* LOCKSTEP_SLOW=1:3: device 1 takes three times as long. */
static enum lk_status read_slowness(struct lk_worker *worker)
{
    const char *text = getenv("LOCKSTEP_SLOW");
    int which = 0, used = 0;
    double times = 1;
    worker->trouble.slowness = 1;
    if (!text || !*text)
        return LK_OK;
    if (sscanf(text, "%d:%lf%n", &which, &times, &used) != 2 || text[used] || which < 0 ||
        !(times >= 1 && times <= 1e9))
        return refuse("LOCKSTEP_SLOW", text, "DEVICE:TIMES, such as 1:3");
    if (which == worker->position)
        worker->trouble.slowness = times;
    return LK_OK;
}

/* LOCKSTEP_FAIL=1:20,0:30:hang: device 1 fails in step 20, device 0 hangs in step 30. 0.1:20:
 * of group 0 device 1 fails for good, which a process sees once. */
static bool is_spent;

static enum lk_status read_failures(struct lk_worker *worker)
{
    const char *text = getenv("LOCKSTEP_FAIL");
    for (const char *at = text; at && *at;) {
        int which = 0, used = 0;
        long long step = 0;
        int place = -1;
        if (sscanf(at, "%d.%d:%lld%n", &which, &place, &step, &used) != 3) {
            place = -1;
            if (sscanf(at, "%d:%lld%n", &which, &step, &used) != 2)
                step = 0;
        }
        if (which < 0 || step < 1)
            return refuse("LOCKSTEP_FAIL", text, "DEVICE:STEP or DEVICE:STEP:hang, ...");
        const bool hangs = strncmp(at + used, ":hang", 5) == 0;
        at += used + (hangs ? 5 : 0);
        if (*at && *at != ',')
            return refuse("LOCKSTEP_FAIL", text, "DEVICE:STEP or DEVICE:STEP:hang, ...");
        at += *at == ',';
        if (which == worker->position && !(place >= 0 && is_spent)) {
            worker->trouble.fails_at = step;
            worker->trouble.hangs = hangs;
            worker->trouble.place = place;
        }
    }
    return LK_OK;
}

enum lk_status lk_worker_read_faults(struct lk_worker *worker)
{
    LK_TRY(read_slowness(worker));
    return read_failures(worker);
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
    is_spent |= worker->trouble.place >= 0;
    return lk_fail(LK_E_DEVICE, "LOCKSTEP_FAIL asks for it in step %lld",
                   (long long)worker->trouble.fails_at);
}
