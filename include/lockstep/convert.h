/* Conversions of image data sets: to TFRecord shards and to folders of image files. Floor 4.
 * Knows no tensor and no device. */
#ifndef LOCKSTEP_CONVERT_H
#define LOCKSTEP_CONVERT_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How far a conversion is, told after each sample. */
struct lk_conversion_progress {
    const char *what; /* "listing" samples, "checking" shards that are there, "converting" */
    const char *part; /* "train" */
    int64_t done, total;
};

struct lk_conversion_options {
    int shards;          /* files of each part; 0: one for every 1024 samples */
    int height, width;   /* images are scaled to this size, as PNG; 0: files stay as they are */
    int threads;         /* 0: one a core */
    const char *max_bad; /* how many samples may be broken: "1%" (NULL), "3" */
    bool force;          /* replace what is there */
    void (*progress)(void *context, const struct lk_conversion_progress *progress);
    void *context;
};

/* What has become of a part of the data set. */
struct lk_conversion_part {
    const char *name; /* "train" */
    int64_t samples;  /* in the target */
    int64_t skipped;  /* broken ones, which are not */
    int shards;       /* 0: the target is a folder of files */
    int64_t kept;     /* shards, or files, that an interrupted conversion had made, read anew */
    const int64_t *counts; /* [classes] */
};

/* The pointers live as long as the conversion. */
struct lk_conversion_report {
    const char *target; /* the SPEC that reads it: "tfrecord:DIR" */
    int classes;
    const char *const *class_names; /* [classes] */
    int part_count;
    const struct lk_conversion_part *parts;
    int64_t bytes; /* of files that were written now */
};

struct lk_conversion;

/* Prepares the conversion of a data set SPEC, or a path that can be nothing else, to a target:
 * "tfrecord:DIR[,image=KEY][,label=KEY][,offset=N]", the SPEC that will read it, or
 * "folder:DIR", or DIR: a folder of TFRecord files, else TFRecord files. Lists the samples.
 * Parts of a folder (train, test, val) stay parts. Touches nothing. options: NULL: standards.
 * fails: LK_E_ARGUMENT; LK_E_IO, LK_E_DATA as lk_data_open_as(); LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status
lk_conversion_create(const char *source, const char *target,
                     const struct lk_conversion_options *options,
                     struct lk_conversion **conversion);

/* Releases it; what is half written is removed. NULL is fine. */
LK_API void lk_conversion_destroy(struct lk_conversion *conversion);

/* Converts: each file is written, synced, read back and put in its place; one that is there was
 * whole. Samples keep their order over the shards of a part, whatever the number of threads.
 * What an interrupted conversion of the same samples has made is checked and kept.
 * fails: LK_E_INTERRUPTED; LK_E_ARGUMENT the target has files that are in the way; LK_E_IO (a
 * full disk); LK_E_DATA more samples are broken than may be; LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_conversion_run(struct lk_conversion *conversion);

/* Asks it to stop at the next sample, in a progress call too; safe in a signal handler. */
LK_API void lk_conversion_stop(struct lk_conversion *conversion);

/* After a run that did not fail. */
LK_API const struct lk_conversion_report *
lk_conversion_report(const struct lk_conversion *conversion);

#ifdef __cplusplus
}
#endif
#endif
