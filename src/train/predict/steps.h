/* A language model's predictions token by token. Floor 8. Private to this room. */
#ifndef LK_TRAIN_PREDICT_STEPS_H
#define LK_TRAIN_PREDICT_STEPS_H

#include "train/predict/predictor.h"

struct lk_predictor_steps;

/* Uses the predictor's weights and must be destroyed before it. fails: LK_E_UNSUPPORTED the
 * model looks at more than earlier tokens; as lk_replica_create() */
LK_MUST_CHECK enum lk_status lk_predictor_steps_create(struct lk_predictor *predictor,
                                                       struct lk_predictor_steps **steps);
void lk_predictor_steps_destroy(struct lk_predictor_steps *steps);

/* Whether more tokens may come than the model takes at a time. */
bool lk_predictor_steps_go_on(const struct lk_predictor_steps *steps);

/* Appends `count` tokens to those that came; predicted [k]: what the first output predicts
 * behind the last one, NULL: not asked for. Waits. */
LK_MUST_CHECK enum lk_status lk_predictor_steps_run(struct lk_predictor_steps *steps,
                                                    const int32_t *tokens, int64_t count,
                                                    float *predicted);

#endif
