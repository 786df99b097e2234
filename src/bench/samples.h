/* Random samples for training steps that are only timed. Floor 9. Knows no data set. */
#ifndef LK_BENCH_SAMPLES_H
#define LK_BENCH_SAMPLES_H

#include "team/stepper/stepper.h"
#include <lockstep/model.h>

/* Fills the first `samples` samples of all inputs of a slot, the same ones every time. */
void lk_samples_fill(struct lk_stepper *stepper, const struct lk_model *model, int slot,
                     int64_t samples);

#endif
