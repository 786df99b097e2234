/* What a model of the zoo takes from its data: the size of images and the number of classes.
 * Floor 8. */
#ifndef LK_TRAIN_FIT_H
#define LK_TRAIN_FIT_H

#include "train/settings/settings.h"
#include <lockstep/data.h>

/* As lk_settings_fit(). *data: the training data, where it was opened for that and training
 * would open the same again, which the caller closes; else untouched. */
LK_MUST_CHECK enum lk_status lk_settings_fit_to(struct lk_settings *settings,
                                                struct lk_data **data);

/* The vocabulary of texts that the settings' run has already, or the one whose weights it
 * begins with; NULL: there is none. The caller frees it. fails: as lk_checkpoint_open() */
LK_MUST_CHECK enum lk_status lk_settings_kept_vocabulary(const struct lk_settings *settings,
                                                         char **text);

/* How training reads batches, but for the size of images, pipeline and end. */
struct lk_batches_options lk_settings_batches(const struct lk_settings *settings);

/* As lk_settings_open_model(), saying for what a zoo model that cannot be built was wanted. */
LK_MUST_CHECK enum lk_status lk_settings_open_fitted(const struct lk_settings *settings,
                                                     struct lk_model **model);

#endif
