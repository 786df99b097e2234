/* Predictions of texts, which become tokens as those of the data did. */
#include "train/predict/predictor.h"

#include "base/fail.h"
#include "data/text/file.h"
#include "data/text/texts.h"
#include <stdlib.h>
#include <string.h>

/* The model's only input of tokens; NULL: it has none, or others that are not their number. */
static const struct lk_node *find_tokens(const struct lk_model *model)
{
    const struct lk_node *tokens = NULL;
    for (int i = 0; i < model->input_count; i++) {
        const struct lk_input *input = &model->inputs[i]->input;
        if (input->dtype == LK_I32 && input->shape.rank == 1 && !tokens)
            tokens = model->inputs[i];
        else if (lk_shape_count(&input->shape) != 1)
            return NULL;
    }
    return tokens;
}

bool lk_predictor_takes_text(const struct lk_predictor *predictor)
{
    const bool is_text =
        *predictor->vocabulary || strncmp(predictor->trained_with, "text:", 5) == 0;
    return is_text && find_tokens(predictor->model);
}

/* Writes the tokens of the text, and how many they are. */
static enum lk_status read_tokens(struct lk_predictor *predictor, const char *text,
                                  size_t bytes, int64_t length, int32_t *tokens, int32_t *count)
{
    const struct lk_text_options options = {.min_count = 1};
    struct lk_texts *texts = &predictor->texts;
    int64_t all = 0;
    if (!texts->vocabulary.is_there) {
        lk_texts_clear(texts);
        LK_TRY(lk_texts_begin(texts, &options, predictor->vocabulary));
    }
    lk_texts_forget(texts);
    LK_TRY(lk_texts_add(texts, text, bytes, false));
    LK_TRY(lk_texts_encode(texts));
    const int32_t *found = lk_texts_tokens(texts, 0, &all);
    *count = (int32_t)lk_vocabulary_fill(&texts->vocabulary, found, all, length, tokens);
    return LK_OK;
}

enum lk_status lk_predictor_run_text(struct lk_predictor *predictor, const char *text,
                                     size_t bytes, float *const *to)
{
    const struct lk_model *model = predictor->model;
    const struct lk_node *node = find_tokens(model);
    const void *from[LK_MOST_INPUTS];
    int32_t count = 0;
    float real = 0;
    if (!node || !lk_predictor_takes_text(predictor))
        return lk_fail(LK_E_ARGUMENT, "model '%s' was not trained on texts",
                       lk_model_name(model));
    const int64_t length = node->input.shape.dim[0];
    int32_t *tokens = calloc((size_t)length, sizeof *tokens);
    if (!tokens)
        return lk_fail_memory("tokens", (size_t)length * sizeof *tokens);
    enum lk_status status = read_tokens(predictor, text, bytes, length, tokens, &count);
    real = (float)count;
    for (int i = 0; i < model->input_count; i++)
        from[i] = model->inputs[i] == node                  ? (const void *)tokens
                  : model->inputs[i]->input.dtype == LK_F32 ? (const void *)&real
                                                            : &count;
    if (status == LK_OK)
        status = lk_predictor_run_fields(predictor, 1, from, to);
    free(tokens);
    return status;
}
