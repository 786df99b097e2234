/* What a model's service has done, counted for Prometheus. Floor 9. Any thread. */
#ifndef LK_SERVE_COUNTS_H
#define LK_SERVE_COUNTS_H

#include "base/text.h"
#include <pthread.h>
#include <stdint.h>

enum { LK_COUNT_TIMES = 14, LK_COUNT_SIZES = 12 };

/* {0} but for the mutex is fine. */
struct lk_counts {
    pthread_mutex_t mutex;
    int64_t requests[6];               /* by the first digit of the status; 0: none was given */
    int64_t times[LK_COUNT_TIMES + 1]; /* requests by seconds, the last slower than all */
    int64_t sizes[LK_COUNT_SIZES + 1]; /* batches by samples: 1, 2, 4, ... */
    double seconds, batch_seconds;
    int64_t samples, batches, waiting, refused, reopened;
};

void lk_counts_add_request(struct lk_counts *counts, int status, double seconds);
void lk_counts_add_batch(struct lk_counts *counts, int64_t samples, double seconds);
void lk_counts_add_refused(struct lk_counts *counts);
void lk_counts_add_reopened(struct lk_counts *counts);
/* More samples that wait, or fewer. */
void lk_counts_add_waiting(struct lk_counts *counts, int64_t samples);

/* Lines of all models, [count], in Prometheus's text format. */
void lk_counts_print(struct lk_counts *const *counts, const char *const *names, int count,
                     struct lk_text *text);

#endif
