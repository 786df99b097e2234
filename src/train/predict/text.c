/* Predictions of texts, which become tokens as those of the data did. */
#include "train/predict/predictor.h"

#include "base/fail.h"
#include "data/text/file.h"
#include "data/text/texts.h"
#include "train/evaluation/images.h"
#include <stdlib.h>
#include <string.h>

/* The model's only input of tokens; NULL: it has none, or others that are not their number. */
static const struct lk_node *find_tokens(const struct lk_model *model)
{
    const struct lk_node *tokens = lk_model_tokens(model);
    for (int i = 0; i < model->input_count; i++)
        if (model->inputs[i] != tokens && lk_shape_count(&model->inputs[i]->input.shape) != 1)
            return NULL;
    return tokens;
}

static bool is_of_texts(const struct lk_predictor *predictor)
{
    return *predictor->vocabulary || strncmp(predictor->trained_with, "text:", 5) == 0;
}

bool lk_predictor_takes_text(const struct lk_predictor *predictor)
{
    return is_of_texts(predictor) && find_tokens(predictor->model);
}

static enum lk_status refuse_text(const struct lk_predictor *predictor)
{
    const bool has_more = is_of_texts(predictor) && lk_model_tokens(predictor->model);
    return lk_fail(LK_E_ARGUMENT, "model '%s' %s", lk_model_name(predictor->model),
                   has_more ? "takes more than one text a sample, which only data has, such as "
                              "text:FILE,pairs=9"
                            : "was not trained on texts");
}

/* Reads the run's vocabulary, once. */
static enum lk_status take_vocabulary(struct lk_predictor *predictor)
{
    const struct lk_text_options options = {.min_count = 1};
    struct lk_texts *texts = &predictor->texts;
    if (!texts->vocabulary.is_there) {
        lk_texts_clear(texts);
        LK_TRY(lk_texts_begin(texts, &options,
                              &(struct lk_data_options){.vocabulary = predictor->vocabulary}));
    }
    const int64_t most = predictor->model->vocabulary;
    if (most > 0 && lk_vocabulary_size(&texts->vocabulary) > most)
        return lk_fail(LK_E_DATA, "a vocabulary of %lld tokens, the model has %lld",
                       (long long)lk_vocabulary_size(&texts->vocabulary), (long long)most);
    return LK_OK;
}

enum lk_status lk_predictor_encode(struct lk_predictor *predictor, const char *text,
                                   size_t bytes, const int32_t **tokens, int64_t *count)
{
    struct lk_texts *texts = &predictor->texts;
    LK_TRY(take_vocabulary(predictor));
    lk_texts_forget(texts);
    LK_TRY(lk_texts_add(texts, text, bytes, false));
    LK_TRY(lk_texts_encode(texts));
    *tokens = lk_texts_tokens(texts, 0, count);
    return LK_OK;
}

int64_t lk_predictor_next_choices(struct lk_predictor *predictor)
{
    struct lk_predictor_port port;
    const int64_t length = lk_predictor_text_length(predictor);
    const bool is_shaped = length > 0 && predictor->model->output_count == 1 &&
                           lk_predictor_output(predictor, 0, &port) && port.is_class &&
                           port.named_classes == 0 && port.shape.rank == 2 &&
                           port.shape.dim[0] == length;
    if (!is_shaped)
        return 0;
    if (take_vocabulary(predictor) != LK_OK) {
        lk_error_clear(); /* whoever encodes a text is told */
        return 0;
    }
    const int64_t size = lk_vocabulary_size(&predictor->texts.vocabulary);
    return size > LK_TOKEN_FIRST && size <= port.shape.dim[1] ? size : 0;
}

enum lk_status lk_predictor_decode(struct lk_predictor *predictor, const int32_t *tokens,
                                   int64_t count, const char **text, size_t *bytes)
{
    struct lk_text_room *room = &predictor->token;
    if (!lk_predictor_takes_text(predictor))
        return refuse_text(predictor);
    LK_TRY(take_vocabulary(predictor));
    room->used = 0;
    for (int64_t i = 0; i < count; i++)
        LK_TRY(lk_vocabulary_decode(&predictor->texts.vocabulary, tokens[i], room));
    if (room->used == room->room) {
        char *grown = realloc(room->bytes, room->room + 16);
        if (!grown)
            return lk_fail_memory("the text of tokens", room->room + 16);
        room->bytes = grown;
        room->room += 16;
    }
    room->bytes[room->used] = '\0';
    *text = room->bytes;
    *bytes = room->used;
    return LK_OK;
}

enum lk_status lk_predictor_token(struct lk_predictor *predictor, int64_t token,
                                  const char **text, size_t *bytes)
{
    /* what is no int32 is no token of any vocabulary, as -1 is */
    const int32_t one = token < 0 || token > INT32_MAX ? -1 : (int32_t)token;
    return lk_predictor_decode(predictor, &one, 1, text, bytes);
}

int64_t lk_predictor_text_length(const struct lk_predictor *predictor)
{
    const struct lk_node *node =
        lk_predictor_takes_text(predictor) ? find_tokens(predictor->model) : NULL;
    return node ? node->input.shape.dim[0] : 0;
}

enum lk_status lk_predictor_run_tokens(struct lk_predictor *predictor, const int32_t *tokens,
                                       int32_t count, float *const *to)
{
    const struct lk_model *model = predictor->model;
    const struct lk_node *node = find_tokens(model);
    const void *from[LK_MOST_INPUTS];
    const float real = (float)count;
    for (int i = 0; i < model->input_count; i++)
        from[i] = model->inputs[i] == node                  ? (const void *)tokens
                  : model->inputs[i]->input.dtype == LK_F32 ? (const void *)&real
                                                            : &count;
    return lk_predictor_run_fields(predictor, 1, from, to);
}

/* A text's tokens, tokens[length]; *count: how many are there. */
static enum lk_status fill_tokens(struct lk_predictor *predictor, const char *text,
                                  size_t bytes, int32_t *tokens, int32_t *count)
{
    const int32_t *found = NULL;
    int64_t all = 0;
    LK_TRY(lk_predictor_encode(predictor, text, bytes, &found, &all));
    *count = (int32_t)lk_vocabulary_fill(&predictor->texts.vocabulary, found, all,
                                         lk_predictor_text_length(predictor), tokens);
    return LK_OK;
}

enum lk_status lk_predictor_take_text(struct lk_predictor *predictor, const char *text,
                                      size_t bytes, void *const *to)
{
    const struct lk_model *model = predictor->model;
    const struct lk_node *node = lk_predictor_takes_text(predictor) ? find_tokens(model) : NULL;
    int32_t count = 0;
    if (!node)
        return refuse_text(predictor);
    for (int i = 0; i < model->input_count; i++)
        if (model->inputs[i] == node)
            LK_TRY(fill_tokens(predictor, text, bytes, to[i], &count));
    for (int i = 0; i < model->input_count; i++)
        if (model->inputs[i] != node && model->inputs[i]->input.dtype == LK_F32)
            *(float *)to[i] = (float)count;
        else if (model->inputs[i] != node)
            *(int32_t *)to[i] = count;
    return LK_OK;
}

enum lk_status lk_predictor_run_text(struct lk_predictor *predictor, const char *text,
                                     size_t bytes, float *const *to)
{
    const int64_t length = lk_predictor_text_length(predictor);
    int32_t count = 0;
    if (length == 0)
        return refuse_text(predictor);
    int32_t *tokens = calloc((size_t)length, sizeof *tokens);
    if (!tokens)
        return lk_fail_memory("tokens", (size_t)length * sizeof *tokens);
    enum lk_status status = fill_tokens(predictor, text, bytes, tokens, &count);
    if (status == LK_OK)
        status = lk_predictor_run_tokens(predictor, tokens, count, to);
    free(tokens);
    return status;
}
