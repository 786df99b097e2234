/* Tells the program's handler how far slow work is. Floor 0. */
#ifndef LK_BASE_PROGRESS_H
#define LK_BASE_PROGRESS_H

#include <lockstep/progress.h>

/* A task begins, with so many pieces; where threads are at the same task at the same time, all
 * count as one. Any thread, as below. */
void lk_progress_begin(enum lk_task task, int64_t count);

/* More pieces are done. */
void lk_progress_add(enum lk_task task, int64_t pieces);

/* Ends what lk_progress_begin() has begun, whether all its pieces are done or not. */
void lk_progress_end(enum lk_task task);

#endif
