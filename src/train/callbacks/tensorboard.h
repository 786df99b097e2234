/* What of TensorBoard's callback has files of its own. Floor 8. Private to src/train/callbacks.
 */
#ifndef LK_TRAIN_CALLBACKS_TENSORBOARD_H
#define LK_TRAIN_CALLBACKS_TENSORBOARD_H

#include "train/callbacks/kinds.h"

struct lk_summary;

enum { LK_MOST_BOARD_IMAGES = 24 };

/* Adds the nodes of a model to an empty graph. */
void lk_summary_add_model(struct lk_summary *graph, const struct lk_model *model);

/* Adds what begins a session: those settings of a run file that tell runs apart. now: seconds
 * since 1970 */
void lk_board_add_session(struct lk_summary *summary, const char *settings, double now);

/* Adds "inputs": the first images, `most` at most, of a step's batch as they were trained on,
 * but not normalized. Nothing where the data has no images, or features stand for them.
 * fails: LK_E_MEMORY; as reading them does */
LK_MUST_CHECK enum lk_status lk_board_add_inputs(struct lk_summary *summary,
                                                 const struct lk_callback_site *site,
                                                 int64_t step, int most);

/* Adds "mistakes": the samples of `data` that an evaluation found to be taken for another class
 * by the highest margin, and "mistakes_by_name", which says what they are. Nothing where there
 * are no images. fails: as above */
LK_MUST_CHECK enum lk_status lk_board_add_mistakes(struct lk_summary *summary,
                                                   const struct lk_data *data,
                                                   const struct lk_evaluation *evaluation,
                                                   int most);

#endif
