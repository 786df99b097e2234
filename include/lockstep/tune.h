/* Finds the fastest way to compute a model's operations on a device, by measuring. Floor 5,
 * lk_tune_model() 6.
 *
 * Results are kept in $LOCKSTEP_CACHE/tuning, by device, driver, version of this library and
 * sources of its kernels, and taken by runs that begin later. A run that has begun keeps what
 * it began with. */
#ifndef LOCKSTEP_TUNE_H
#define LOCKSTEP_TUNE_H

#include <lockstep/device.h>
#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

struct lk_settings;

#ifdef __cplusplus
extern "C" {
#endif

enum lk_tune_outcome {
    LK_TUNE_GOOD,
    LK_TUNE_WRONG, /* not the numbers that direct sums give */
    LK_TUNE_FAILED /* could not be built or run here */
};

/* One candidate measured. */
struct lk_tune_report {
    const char *key;  /* operation, pass, shape, options, device: what there is a choice for */
    const char *name; /* "direct 8x3", "winograd4" */
    double ms;        /* for `samples` samples, where the outcome is good */
    int64_t samples;  /* 0: of all passes that the choice concerns, for those of each */
    enum lk_tune_outcome outcome;
    const char
        *fastest; /* with the last candidate for a key: the one that is kept; else NULL */
};

struct lk_tune_options {
    const char *model;     /* zoo name or model file */
    int64_t batch;         /* most samples at a time; 0: 512 */
    const char *math;      /* "strict", "normal", "fast"; NULL: normal */
    const char *precision; /* "float", "mixed"; NULL: float */
    double seconds;        /* nothing more is begun after; 0: until all is measured */
    bool again;            /* measures also what is known */
    bool (*handler)(void *context, const struct lk_tune_report *report); /* false: enough */
    void *context;
    const struct lk_settings *settings; /* that the model is opened with, in place of `model`;
                                         * NULL: none */
};

/* Measures for training and keeps the results, also those of a tuning that was ended early.
 * Where it tried other tiles of CLBlast and kept none, this process does without CLBlast's on
 * that device from then on, as it cannot set its own again.
 * fails: as lk_model_open(), LK_E_DEVICE, LK_E_IO where results cannot be kept */
LK_API LK_MUST_CHECK enum lk_status lk_tune_model(struct lk_device *device,
                                                  const struct lk_tune_options *options);

#ifdef __cplusplus
}
#endif

#endif
