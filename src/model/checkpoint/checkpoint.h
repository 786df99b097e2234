/* Checkpoints: all that a run needs to go on with the same bits, in one safetensors file. Knows
 * no data set and no run. Floor 6.
 *
 * Arrays, in this order: every parameter ("conv2d_1.weight", as it lies on the device), then
 * the optimizer's state of the trainable ones ("optimizer.m.conv2d_1.weight") and, where there
 * is one, the scale of the loss ("optimizer.scaling.loss.state"). Metadata: what struct
 * lk_checkpoint says, and checksums of both and of the header. */
#ifndef LK_MODEL_CHECKPOINT_CHECKPOINT_H
#define LK_MODEL_CHECKPOINT_CHECKPOINT_H

#include "graph/replica.h"
#include "io/sha256.h"
#include "optim/optimizer.h"

/* The writer sets the first part; the second is taken from replica and optimizer. Numbers are
 * at least 0. Texts that were read live until lk_checkpoint_close(). */
struct lk_checkpoint {
    const char *model, *model_text;       /* name; what lk_model_read() reads */
    const char *data, *validation;        /* SPECs; validation "": a part of data */
    const char *pipeline, *eval_pipeline; /* of samples; NULL where a file says nothing */
    const char *max_bad;                  /* samples that may be broken; NULL likewise */
    const char *data_sum;                 /* a checksum that tells one data set from another */
    const char *device;                   /* name */
    const char *choices;                  /* of algorithms, as lk_choices_print() has them */
    const char *classes; /* names, as lk_model_print_classes() has them; NULL where a file says
                            nothing */
    const char
        *vocabulary; /* of texts, as lk_vocabulary_print() has it; "": none; NULL likewise */
    const char *plateau;   /* as lk_plateau_print() has it; NULL: no state of a schedule */
    const char *callbacks; /* their state; NULL: none */
    int64_t step;          /* steps done */
    int64_t epoch, index;  /* the next sample */
    int64_t seed, batch, shuffle, shards;
    int64_t mixed;          /* precision: activations are halves; 0 where a file has none */
    int64_t drop_remainder; /* read as 0 where a file has none */
    int64_t planes;         /* 1: plane tiles, where the model can; 0 where a file has none */
    int64_t bucket;         /* batches whose samples are sorted by length together; likewise */
    int64_t versions; /* random variants that features of samples were kept in; 0: every epoch
                       * draws anew, as in files that have none */
    int64_t owes_evaluation; /* 1: one was due after `step` and is not over; 0 where a file has
                              * none */
    int64_t updates; /* that the optimizer has made, or left out; read as `step` where a file
                       has none */

    int64_t lanes, vector;
    const char *optimizer, *optimizer_options; /* "": none */
    const char *version, *parameters_sha256;
    const char *build; /* lk_build; NULL where a file says nothing */
};

/* Writes a checkpoint; the file is whole or not there. Waits for the device. optimizer NULL:
 * parameters alone. fails: LK_E_IO, LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_checkpoint_write(const char *path,
                                                 const struct lk_checkpoint *about,
                                                 const struct lk_replica *replica,
                                                 const struct lk_optimizer_info *optimizer);

/* A checkpoint in host memory: what would be written now. */
struct lk_snapshot;

/* Parameters and optimizer state of each place, as they lie on the devices, on the host. */
struct lk_host_state {
    const void *weights[LK_MOST_PLACES], *state[LK_MOST_PLACES];
};

/* Reads all of it from the device, which waits, or takes what is in `state`. That and texts of
 * `about` are borrowed until it is destroyed. */
LK_MUST_CHECK enum lk_status lk_snapshot_take(const struct lk_checkpoint *about,
                                              const struct lk_replica *replica,
                                              const struct lk_optimizer_info *optimizer,
                                              const struct lk_host_state *state,
                                              struct lk_snapshot **snapshot);
void lk_snapshot_destroy(struct lk_snapshot *snapshot);
int64_t lk_snapshot_step(const struct lk_snapshot *snapshot);

/* Writes it as lk_checkpoint_write() does; needs no device, and may be called on any thread. */
LK_MUST_CHECK enum lk_status lk_snapshot_write(struct lk_snapshot *snapshot, const char *path);

/* Sets a replica of the same model, and its optimizer, to it. */
LK_MUST_CHECK enum lk_status lk_snapshot_put(const struct lk_snapshot *snapshot,
                                             const struct lk_replica *replica,
                                             const struct lk_optimizer_info *optimizer);

struct lk_checkpoint_file;

/* Opens a checkpoint and reads all of it once to compare its sums.
 * fails: LK_E_IO; LK_E_DATA: no checkpoint, another format's version, cut off, changed bytes */
LK_MUST_CHECK enum lk_status lk_checkpoint_open(const char *path,
                                                struct lk_checkpoint_file **file);
void lk_checkpoint_close(struct lk_checkpoint_file *file);

const struct lk_checkpoint *lk_checkpoint_metadata(const struct lk_checkpoint_file *file);

/* Sets the parameters of a built replica and the optimizer's state (NULL: parameters alone).
 * fails: LK_E_DATA for an array that is missing, too many or of another shape or type, or
 * another optimizer; the device's memory is then untouched */
LK_MUST_CHECK enum lk_status lk_checkpoint_read(const struct lk_checkpoint_file *file,
                                                struct lk_replica *replica,
                                                const struct lk_optimizer_info *optimizer);

/* Writes what predicts as a checkpoint of its own: parameters, or their average where
 * lk_checkpoint_takes_average(), and no optimizer. fails: LK_E_IO, LK_E_DATA, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_checkpoint_write_weights(const struct lk_checkpoint_file *file,
                                                         const char *path,
                                                         char sum[LK_SHA256_TEXT]);

/* Whether the file has a moving average of the weights. */
bool lk_checkpoint_has_average(const struct lk_checkpoint_file *file);

/* Whether it stands for the weights in evaluation and all that follows it, which is then said.
 * Before the first step nothing is averaged yet. */
bool lk_checkpoint_takes_average(const struct lk_checkpoint_file *file);

/* As lk_checkpoint_read() with optimizer NULL, but where lk_checkpoint_takes_average(), trained
 * parameters become their average. */
LK_MUST_CHECK enum lk_status lk_checkpoint_read_average(const struct lk_checkpoint_file *file,
                                                        struct lk_replica *replica);

/* The name of the array that is a parameter's average, in a file that has averages. */
enum { LK_AVERAGE_NAME = 192 };
void lk_checkpoint_name_average(const char *param, char name[LK_AVERAGE_NAME]);

/* The sum of all parameters' bytes in the order of the graph's nodes. Waits. */
LK_MUST_CHECK enum lk_status lk_parameters_sha256(const struct lk_replica *replica,
                                                  char text[LK_SHA256_TEXT]);

/* Whether an array of that name is optimizer state. */
bool lk_checkpoint_is_state(const char *name);

/* --- a folder of checkpoints ----------------------------------------------------------- */

/* "FOLDER/step-00000123.safetensors". fails: LK_E_ARGUMENT, too long */
LK_MUST_CHECK enum lk_status lk_checkpoint_path(const char *folder, int64_t step, char *path,
                                                size_t bytes);

/* Whether the folder has a checkpoint, whole or not. */
bool lk_checkpoint_is_there(const char *folder);

/* The path of the checkpoint with the most steps that is whole; "" where there is none at all.
 * Damaged ones are passed over with a warning. fails: LK_E_DATA where all are damaged; LK_E_IO
 */
LK_MUST_CHECK enum lk_status lk_checkpoint_newest(const char *folder, char *path, size_t bytes);

/* The checkpoint that a path means: the newest of a run directory, that of a bundle, whose
 * files are compared with their sums, or the file itself. fails: as lk_checkpoint_newest();
 * LK_E_IO where the directory has none; LK_E_DATA naming the file of a bundle that is damaged
 */
LK_MUST_CHECK enum lk_status lk_checkpoint_find(const char *path, char *found, size_t bytes);

/* Removes all but the `keep` checkpoints with the most steps and those of the steps spared
 * [spared_count], and what writers that were killed have left. Nobody else may write there.
 * fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_checkpoint_prune(const char *folder, int keep,
                                                 const int64_t *spared, int spared_count);

/* Renames checkpoints of more than `step` steps to "*.damaged": a run that goes on from `step`
 * could not read them. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_checkpoint_set_aside(const char *folder, int64_t step);

#endif
