/* A conversion from the inside: what its parts share. Floor 4. */
#ifndef LK_DATA_CONVERT_CONVERT_H
#define LK_DATA_CONVERT_CONVERT_H

#include "base/arena.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/sources/source.h"
#include <lockstep/convert.h>

enum { LK_CONVERT_PARTS = 8, LK_CONVERT_PATH = 4096 };

enum lk_convert_kind { LK_CONVERT_SHARDS, LK_CONVERT_FOLDER };

/* A sample as it was listed. */
struct lk_convert_sample {
    const char *name; /* a path below the folder of its class */
    int32_t label;    /* -1: broken, which was noted */
    uint32_t stamp;
};

struct lk_convert_part {
    char name[32];
    struct lk_data *data;
    int64_t count;
    struct lk_convert_sample *samples; /* [count] */
    int64_t bad, most_bad;
    int shards; /* a shard holds a run of samples, so that the order is that of the source */
    struct lk_conversion_part *report;
    int64_t *counts; /* [classes] */
};

struct lk_conversion {
    struct lk_conversion_options options;
    enum lk_convert_kind kind;
    char *source, *target;        /* SPECs; of the target without options */
    const char *folder;           /* of the target */
    struct lk_image_options keys; /* how the target will be read */
    char work[LK_CONVERT_PATH];   /* the folder of what is not finished */
    int lock;                     /* the target's folder, against others; -1: none */
    bool resumes;                 /* an interrupted conversion of the same was there */
    struct lk_convert_part parts[LK_CONVERT_PARTS];
    int part_count, threads;
    struct lk_arena arena; /* names */
    const char **classes;  /* [class_count]; NULL: the name is not known */
    int class_count;
    struct lk_text skipped; /* a line for each broken sample */
    atomic_bool stop;
    int64_t bytes;
    struct lk_conversion_part reports[LK_CONVERT_PARTS];
    struct lk_conversion_report report;
};

/* An image as it goes into the target; the owner frees `data`. */
struct lk_convert_image {
    void *data;
    size_t bytes;
    int height, width;
    const char *format; /* "jpeg", "png" */
    char where[512];
};

/* parts.c: finds the parts of the source, opens them. fails: see lk_conversion_create()
 */
LK_MUST_CHECK enum lk_status lk_convert_find_parts(struct lk_conversion *c);
/* The kind of set that a path can be nothing else than, or NULL. */
const char *lk_convert_guess(const char *path);

/* list.c: lists all samples and classes; what is broken already is noted. */
LK_MUST_CHECK enum lk_status lk_convert_list(struct lk_conversion *c);

/* image.c: the image of a sample, whole and decodable. fails: LK_E_DATA, LK_E_IO of the
 * source; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_convert_read(const struct lk_conversion *c,
                                             const struct lk_convert_part *part, int64_t index,
                                             struct lk_convert_image *image);
/* The name of a sample's file, which ends as its format does. */
void lk_convert_name(const struct lk_conversion *c, const struct lk_convert_part *part,
                     int64_t index, const char *format, char name[LK_CONVERT_PATH]);

/* apart.c: refuses a target that is the source's folder or, of a folder of images, lies in it.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_convert_check_apart(const struct lk_conversion *c);

/* target.c: takes the target's folder, refuses or removes what is in the way, or finds
 * what an earlier conversion left. fails: see lk_conversion_run() */
LK_MUST_CHECK enum lk_status lk_convert_begin(struct lk_conversion *c);
/* Writes names of classes and of skipped samples, and keeps the plan. */
LK_MUST_CHECK enum lk_status lk_convert_finish(struct lk_conversion *c);
void lk_convert_shard_name(const struct lk_convert_part *part, int shard, char name[128]);

/* shards.c, files.c: write the target, but for what is there. */
LK_MUST_CHECK enum lk_status lk_convert_write_shards(struct lk_conversion *c);
LK_MUST_CHECK enum lk_status lk_convert_write_files(struct lk_conversion *c);

/* report.c: tells the progress of a part. */
void lk_convert_report(struct lk_conversion *c, const char *what, const char *part,
                       int64_t done, int64_t total);
/* Counts a broken sample and names it. fails: LK_E_DATA one too many */
LK_MUST_CHECK enum lk_status lk_convert_note_bad(struct lk_conversion *c,
                                                 struct lk_convert_part *part, const char *why);

#endif
