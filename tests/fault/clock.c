/* Loaded by LD_PRELOAD: the clock of the day is set back by a day, and some time later on
 * again, as a machine's is that corrects it. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DAY = 86400, EVERY = 20 };

static atomic_int calls;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && atomic_fetch_add(&calls, 1) / EVERY % 2 == 1)
        now->tv_sec -= DAY;
    return status;
}

time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}
