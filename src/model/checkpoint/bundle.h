/* Bundles: a folder with all that a trained model needs to predict. Floor 6. Knows no run.
 *
 * model.safetensors is a checkpoint without an optimizer, and says all by itself; beside it lie
 * for readers and other programs, as far as the model has them, model.yaml (its text),
 * labels.json (names of classes), vocabulary.json, preprocessing.txt (the pipeline of
 * evaluation), tuning.txt (chosen algorithms and blockings) and config.yaml (of the run).
 * bundle.json, written last, has the SHA-256 sum of each. */
#ifndef LK_MODEL_CHECKPOINT_BUNDLE_H
#define LK_MODEL_CHECKPOINT_BUNDLE_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether the folder is a bundle, whole or not. */
bool lk_bundle_is_there(const char *folder);

/* Compares the sums of all files and writes the path of the checkpoint to found[bytes].
 * fails: LK_E_DATA naming the file that is damaged or missing; LK_E_IO */
LK_MUST_CHECK enum lk_status lk_bundle_check(const char *folder, char *found, size_t bytes);

#endif
