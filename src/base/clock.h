/* The host's clock. Floor 0. */
#ifndef LK_BASE_CLOCK_H
#define LK_BASE_CLOCK_H

/* The host's monotonic clock, in seconds. Any thread. */
double lk_seconds(void);

/* Seconds of processor cores that the process's threads have taken, added up. Any thread. */
double lk_core_seconds(void);

#endif
