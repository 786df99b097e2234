/* Predicting the training of one model that several devices compute together. Floor 9. */
#ifndef LOCKSTEP_SCALE_H
#define LOCKSTEP_SCALE_H

#include <lockstep/device.h>
#include <lockstep/graph.h>
#include <lockstep/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lk_settings;

/* What is to be predicted. */
struct lk_scale_group_options {
    const char *model;                  /* zoo name or model file */
    const struct lk_settings *settings; /* to open the model with, and whose data is read; NULL:
                                         * none */
    const char *place;                  /* "auto", or words such as "a=0,b=1" */
    struct lk_device *const *devices;   /* open; the first is measured */
    int device_count;
    int64_t batch;
    int shards;     /* a power of two up to 256; 0: as training chooses */
    double seconds; /* for measuring operations anew; then times of earlier runs are taken */
};

/* What a step takes of a device: its own work, both ends of what crosses, waiting, and by what
 * reading samples makes it longer. */
struct lk_scale_group_place {
    double compute_ms, crossing_ms, idle_ms, reading_ms;
};

struct lk_scale_group {
    int shards, at_once, micro_batches; /* of a batch; of a micro-batch */
    double step_ms, alone_ms;           /* alone_ms: of one device; 0: it has no room for all */
    double reading_ms; /* time of a core for reading a batch; 0: none is read */
    struct lk_scale_group_place places[LK_MOST_PLACES];
    int place_count;
};

/* Measures each operation alone, divides the model, and walks the micro-batches of a step
 * through the devices, while samples are read if the settings name data. Waits.
 * fails: LK_E_ARGUMENT; LK_E_UNSUPPORTED not measured in time, no room; as training does */
LK_API LK_MUST_CHECK enum lk_status
lk_bench_scale_group(const struct lk_scale_group_options *options,
                     struct lk_scale_group *group);

#ifdef __cplusplus
}
#endif
#endif
