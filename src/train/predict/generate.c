/* A language model goes on with a text: each token is drawn from what the time step before it
 * predicts. Or it only says which token would be next. */
#include "train/predict/steps.h"

#include "base/fail.h"
#include "base/random.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct generator {
    struct lk_predictor *predictor;
    const struct lk_generate_options *options;
    int64_t length, choices; /* tokens of a window; numbers of a time step of the output */
    int64_t known;           /* of these, tokens of the vocabulary */
    int64_t count;           /* of tokens in the window */
    int64_t seen;            /* of these, tokens that `steps` has had */
    struct lk_predictor_steps *steps; /* NULL: the model looks at more than earlier tokens, or
                                       * there were more than it takes and than it can keep
                                       * in mind */
    int32_t *window;
    float *predicted[LK_MOST_INPUTS];
    double *weights;
    struct lk_text_room text;
};

/* The first output has a probability for each token at every time step. */
static enum lk_status check_output(struct generator *g)
{
    struct lk_predictor_port port;
    g->length = lk_predictor_text_length(g->predictor);
    if (g->length == 0)
        return lk_fail(LK_E_ARGUMENT, "model '%s' was not trained on texts",
                       lk_model_name(g->predictor->model));
    if (!lk_predictor_output(g->predictor, 0, &port) || port.shape.rank != 2 ||
        port.shape.dim[0] != g->length || !port.is_class)
        return lk_fail(LK_E_ARGUMENT,
                       "model '%s' is no language model: it gives no probabilities of the "
                       "next token at each of %lld time steps",
                       lk_model_name(g->predictor->model), (long long)g->length);
    g->choices = port.shape.dim[1];
    return LK_OK;
}

static enum lk_status allocate(struct generator *g)
{
    struct lk_predictor_port port;
    const size_t length = (size_t)g->length, choices = (size_t)g->choices;
    g->window = calloc(length, sizeof *g->window);
    g->weights = calloc(choices, sizeof *g->weights);
    if (!g->window || !g->weights)
        return lk_fail_memory("a window of tokens", length * sizeof *g->window);
    for (int i = 0; i < LK_MOST_INPUTS && lk_predictor_output(g->predictor, i, &port); i++) {
        const size_t count = (size_t)lk_shape_count(&port.shape);
        g->predicted[i] = calloc(count, sizeof *g->predicted[i]);
        if (!g->predicted[i])
            return lk_fail_memory("predictions", count * sizeof *g->predicted[i]);
    }
    return LK_OK;
}

static void clear(struct generator *g)
{
    for (int i = 0; i < LK_MOST_INPUTS; i++)
        free(g->predicted[i]);
    lk_predictor_steps_destroy(g->steps);
    free(g->weights);
    free(g->window);
    free(g->text.bytes);
}

static enum lk_status run_steps(struct generator *g, float *last)
{
    const int64_t seen = g->seen;
    g->seen = g->count;
    return lk_predictor_steps_run(g->steps, g->window + seen, g->count - seen, last);
}

/* Makes room in the window for one token. What is left of the others has moved to another
 * place, which only a model that carries states alone need not know. */
static enum lk_status forget_one(struct generator *g)
{
    if (g->steps && lk_predictor_steps_go_on(g->steps)) {
        LK_TRY(run_steps(g, NULL));
        g->seen--;
    } else {
        lk_predictor_steps_destroy(g->steps);
        g->steps = NULL;
    }
    memmove(g->window, g->window + 1, (size_t)--g->count * sizeof *g->window);
    return LK_OK;
}

/* The window holds the last tokens that fit. */
static enum lk_status keep(struct generator *g, const int32_t *tokens, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (g->count == g->length)
            LK_TRY(forget_one(g));
        g->window[g->count++] = tokens[i];
    }
    return LK_OK;
}

/* *tokens: borrowed until the next text is encoded. */
static enum lk_status read_prompt(struct generator *g, const char *prompt,
                                  const int32_t **tokens, int64_t *count)
{
    LK_TRY(lk_predictor_encode(g->predictor, prompt, strlen(prompt), tokens, count));
    const int64_t size = lk_vocabulary_size(&g->predictor->texts.vocabulary);
    g->known = size < g->choices ? size : g->choices;
    if (*count == 0)
        return lk_fail(LK_E_DATA, "the prompt has no token");
    if (g->known <= LK_TOKEN_FIRST)
        return lk_fail(LK_E_DATA, "the vocabulary has no token to generate");
    for (int64_t i = 0; i < *count; i++)
        LK_TRY(lk_vocabulary_decode(&g->predictor->texts.vocabulary, (*tokens)[i], &g->text));
    return LK_OK;
}

/* Fills the window with the end of the text. */
static enum lk_status take_text(struct generator *g, const char *text, size_t bytes)
{
    const int32_t *tokens = NULL;
    int64_t count = 0;
    LK_TRY(lk_predictor_encode(g->predictor, text, bytes, &tokens, &count));
    if (count == 0)
        return lk_fail(LK_E_DATA, "the text has no token");
    return keep(g, tokens, count);
}

/* Begins to compute single time steps, if the model and the device's memory let it. */
static enum lk_status begin_steps(struct generator *g)
{
    const enum lk_status status = lk_predictor_steps_create(g->predictor, &g->steps);
    if (status != LK_E_UNSUPPORTED && status != LK_E_DEVICE_MEMORY)
        return status;
    lk_error_clear();
    return LK_OK;
}

/* A wrong prompt is refused before kernels are made for it. */
static enum lk_status take_prompt(struct generator *g, const char *prompt)
{
    const int32_t *tokens = NULL;
    int64_t count = 0;
    LK_TRY(read_prompt(g, prompt, &tokens, &count));
    LK_TRY(begin_steps(g));
    return keep(g, tokens, count);
}

/* Predicts the token behind the window's last: by its time step, or by the whole window. */
static enum lk_status predict(struct generator *g)
{
    float *last = g->predicted[0] + (g->count - 1) * g->choices;
    if (g->steps)
        return run_steps(g, last);
    memset(g->window + g->count, 0, (size_t)(g->length - g->count) * sizeof *g->window);
    return lk_predictor_run_tokens(g->predictor, g->window, (int32_t)g->count, g->predicted);
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Leaves the top_k largest probabilities, and of equal ones at the border all. */
static void cut(const struct generator *g, float *p)
{
    const int64_t k = g->options->top_k, count = g->known - LK_TOKEN_FIRST;
    if (k == 0 || k >= count)
        return;
    for (int64_t i = 0; i < count; i++)
        g->weights[i] = (double)p[LK_TOKEN_FIRST + i];
    qsort(g->weights, (size_t)count, sizeof *g->weights, descending);
    for (int64_t i = 0; i < count; i++)
        if ((double)p[LK_TOKEN_FIRST + i] < g->weights[k - 1])
            p[LK_TOKEN_FIRST + i] = 0;
}

/* Draws token number `index` of the text; never padding, nor the unknown one. */
static enum lk_status draw(const struct generator *g, int64_t index, int32_t *token)
{
    float *p = g->predicted[0] + (g->count - 1) * g->choices;
    const double heat = g->options->temperature;
    int32_t best = LK_TOKEN_FIRST;
    double sum = 0;
    for (int32_t i = LK_TOKEN_FIRST; i < g->known; i++)
        best = p[i] > p[best] ? i : best;
    *token = best;
    if (!(p[best] > 0))
        return lk_fail(LK_E_DATA, "the model predicts no token: its numbers are %g",
                       (double)p[best]);
    if (heat == 0)
        return LK_OK;
    const double most = (double)p[best];
    cut(g, p);
    for (int64_t i = LK_TOKEN_FIRST; i < g->known; i++)
        sum += g->weights[i] = p[i] > 0 ? exp(log((double)p[i] / most) / heat) : 0;
    const struct lk_random4 random =
        lk_random(g->options->seed, LK_RANDOM_GENERATE, 0, (uint64_t)index);
    double left = lk_random_unit(random.v[0]) * sum;
    for (int32_t i = LK_TOKEN_FIRST; i < g->known; i++) {
        if (g->weights[i] > 0)
            *token = i;
        left -= g->weights[i];
        if (left < 0)
            break;
    }
    return LK_OK;
}

enum lk_status lk_predictor_generate(struct lk_predictor *predictor, const char *prompt,
                                     const struct lk_generate_options *options, void *context,
                                     enum lk_status (*visit)(void *context, const char *text,
                                                             size_t bytes))
{
    struct generator g = {.predictor = predictor, .options = options};
    LK_TRY(check_output(&g));
    enum lk_status status = allocate(&g);
    if (status == LK_OK)
        status = take_prompt(&g, prompt);
    for (int64_t i = 0; i < options->tokens && status == LK_OK; i++) {
        const size_t before = g.text.used;
        int32_t token = 0;
        status = predict(&g);
        if (status == LK_OK)
            status = draw(&g, i, &token);
        if (status == LK_OK)
            status = lk_vocabulary_decode(&predictor->texts.vocabulary, token, &g.text);
        if (status == LK_OK)
            status = visit(context, g.text.bytes + before, g.text.used - before);
        if (status == LK_OK)
            status = keep(&g, &token, 1);
    }
    clear(&g);
    return status;
}

/* One prediction is not worth a replica that computes single time steps: the whole window is
 * computed. */
enum lk_status lk_predictor_next(struct lk_predictor *predictor, const char *text, size_t bytes,
                                 float *to)
{
    struct generator g = {.predictor = predictor};
    const int64_t choices = lk_predictor_next_choices(predictor);
    LK_TRY(check_output(&g));
    if (choices == 0)
        return lk_fail(LK_E_ARGUMENT,
                       "model '%s' is no language model: it gives no number for each token of "
                       "the vocabulary",
                       lk_model_name(predictor->model));
    enum lk_status status = allocate(&g);
    if (status == LK_OK)
        status = take_text(&g, text, bytes);
    if (status == LK_OK)
        status = predict(&g);
    if (status == LK_OK)
        memcpy(to, g.predicted[0] + (g.count - 1) * g.choices, (size_t)choices * sizeof *to);
    clear(&g);
    return status;
}
