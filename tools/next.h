/* Shows which tokens a language model expects next. */
#ifndef TOOLS_NEXT_H
#define TOOLS_NEXT_H

#include "terminal/json.h"
#include <lockstep/predict.h>

/* The likeliest `top` tokens of probabilities [choices], each as the text that it stands for:
 * a line of output, or a JSON list of {class, probability, name}. Equal ones are shown in their
 * order. fails: as lk_predictor_token() */
enum lk_status next_print(struct lk_predictor *predictor, const float *probabilities,
                          int64_t choices, int64_t top);
enum lk_status next_json(struct lk_predictor *predictor, const float *probabilities,
                         int64_t choices, int64_t top, json_t **list);

#endif
