/* Everything that decides a run, as one struct behind one option table. Floor 8. */
#ifndef LK_TRAIN_SETTINGS_SETTINGS_H
#define LK_TRAIN_SETTINGS_SETTINGS_H

#include "base/arena.h"
#include "base/option.h"
#include "base/text.h"
#include "optim/optimizer.h"
#include "train/callbacks/callbacks.h"
#include <lockstep/model.h>
#include <lockstep/train.h>

enum lk_train_mode { LK_TRAIN_SYNC, LK_TRAIN_ASYNC };
enum lk_tune_setting { LK_TUNE_OFF, LK_TUNE_QUICK };
enum lk_precision { LK_PRECISION_FLOAT, LK_PRECISION_MIXED };
/* How images lie in training: samples, or the pixels of one, side by side in vectors. */
enum lk_train_tiles { LK_TRAIN_TILES_AUTO, LK_TRAIN_BATCH_TILES, LK_TRAIN_PLANE_TILES };
enum lk_all_reduce { LK_ALL_REDUCE_TREE, LK_ALL_REDUCE_MPI };

struct lk_settings {
    char model[512], data[512], validation[512], run[512], device[256];
    char max_bad[16], optimizer[256], schedule[256], split[256], place[512];
    char data_cache[512];
    char weights[512], init_from[512];
    char freeze_until[128], cache_features[512];
    int64_t train_last, cache_augmentations;
    char pipeline[1024], eval_pipeline[1024]; /* as lk_pipeline_print() has them */
    int64_t input[3]; /* height, width, channels for zoo models; 0: the model's own */
    int64_t classes, vocabulary, length; /* of zoo models too */
    char parameters[256];                /* of a model text: "top=false cells=6" */
    int64_t epochs, steps, batch_size, bucket, shards, seed, checkpoint_every, data_threads;
    int64_t accumulate;
    int recompute; /* enum lk_recompute_mode */
    char memory_limit[32];
    int64_t check_every, scale_lr, max_staleness;
    double lr;                         /* 0: the optimizer's own */
    double clip_value, clip_norm, ema; /* 0: none */
    double loss_scale;                 /* 0: found while training */
    int mode, all_reduce, math, tune, precision, tiles;
    int64_t prefetch;
    bool shuffle, drop_remainder, fresh, skip_mismatch;
    char profile[512];
    int64_t profile_steps;
    char eval_every[32];  /* as lk_eval_period_parse() reads it */
    char callbacks[1024]; /* as lk_callbacks_normalize() has them */
    struct lk_callback own_callbacks[LK_MOST_OWN_CALLBACKS];
    int own_callback_count;
    char *model_text;      /* of an inline model in a run file; NULL: none */
    char model_where[512]; /* that file */
};

/* The table over struct lk_settings. */
extern const struct lk_option lk_settings_table[];

/* A copy of all settings, independent of the original. */
LK_MUST_CHECK enum lk_status lk_settings_copy(const struct lk_settings *settings,
                                              struct lk_settings **copy);

/* As lk_settings_read(), of a text that `where` names in messages. */
LK_MUST_CHECK enum lk_status lk_settings_read_text(struct lk_settings *settings,
                                                   const char *text, size_t bytes,
                                                   const char *where);

/* The settings as a run file that lk_settings_read() takes. The caller frees the text. */
LK_MUST_CHECK enum lk_status lk_settings_print(const struct lk_settings *settings, char **text);

/* Validation on a share, "10%", becomes data that holds it out: "folder:photos,val=10%".
 * fails: LK_E_ARGUMENT: the data holds a share out already, or its SPEC becomes too long */
LK_MUST_CHECK enum lk_status lk_settings_hold_out(struct lk_settings *settings);

/* Settings of a run that are others than before; {0} is none. */
struct lk_setting_changes {
    struct lk_arena arena;
    struct lk_setting_change items[64];
    int count;
    bool is_unreadable; /* what was before cannot be told */
    char kept[32];      /* the file that has what was before; "": none was written */
};

/* Adds the settings that differ, but those that are not the run's own: its directory, --fresh.
 */
LK_MUST_CHECK enum lk_status lk_settings_compare(const struct lk_settings *was,
                                                 const struct lk_settings *is,
                                                 struct lk_setting_changes *changes);

/* "lr 0.5 (was 0.001), epochs 10 (was 5)" */
void lk_setting_changes_print(const struct lk_setting_changes *changes, struct lk_text *text);
void lk_setting_changes_clear(struct lk_setting_changes *changes);

/* How the loss is scaled: not at all (first 0) where activations are not halves. */
struct lk_loss_scale lk_settings_loss_scale(const struct lk_settings *settings);

/* Whether the model is to be trained in plane tiles, where device and operations can. */
bool lk_settings_ask_planes(const struct lk_settings *settings, struct lk_model *model,
                            int64_t batch, int shards);

/* Splits "adam beta_1=0.9" into the kind and the rest, which may be "". */
void lk_settings_split_optimizer(const struct lk_settings *settings, char kind[64],
                                 const char **options);

#endif
