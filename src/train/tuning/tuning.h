/* The results of tuning on this machine, kept in the cache for later runs. Floor 8. */
#ifndef LK_TRAIN_TUNING_TUNING_H
#define LK_TRAIN_TUNING_TUNING_H

#include "graph/nodes/node.h"
#include "graph/tune/times.h"
#include "products/kernel/choice.h"

/* QUICK: blockings, measured when a run begins. FULL: algorithms and blockings, measured by
 * `lockstep tune`; where there are both, these are taken. TIMES: of operations, by which a
 * model is divided among devices. */
enum lk_tuning { LK_TUNING_QUICK, LK_TUNING_FULL, LK_TUNING_TIMES };

/* Reads from the cache the results of full tuning into `known` and those of quick tuning into
 * `blockings`. A file that is damaged or foreign is ignored with a warning, as its results can
 * be measured again. */
void lk_tuning_load(struct lk_choices *known, struct lk_choices *blockings);

/* Adds `found` to the cache, to which other processes may write at the same time; does nothing
 * if there is no cache. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_tuning_save(enum lk_tuning kind, struct lk_choices *found);

/* Seconds that quick tuning may take before a run of `steps` steps (0: many) of `batch`
 * samples.
 */
double lk_tuning_worth(const struct lk_device *device, const struct lk_node *loss,
                       int64_t batch, int64_t steps);

/* What a run needs. */
struct lk_tuning_run {
    struct lk_device *device;
    struct lk_device *const *beside; /* as lk_times_config has them; 0: none */
    int beside_count;
    const struct lk_node *loss;
    int64_t batch;
    int shards;
    bool stores_half;
    int packed_for;                   /* as lk_times_config */
    bool few_samples;                 /* as lk_times_config */
    struct lk_choices *known, *older; /* times of operations, as lk_times_config */
};

/* Measures for `seconds`, and adds to `blockings` and the cache. fails: LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_tuning_quick(const struct lk_tuning_run *run, double seconds,
                                             struct lk_choices *blockings);

/* Reads times of operations from the cache, as lk_tuning_load() does choices. */
void lk_tuning_load_times(struct lk_choices *known);

/* What operations take on the run's device with `choices`: what run->known has, and else
 * measured for at most `seconds` and added to that and to the cache, where it replaces older
 * times. The caller frees times->ms. fails: as lk_times_measure() */
LK_MUST_CHECK enum lk_status lk_tuning_times(const struct lk_tuning_run *run, double seconds,
                                             struct lk_choices *choices,
                                             struct lk_op_times *times);

#endif
