/* lockstep predict: class and probability of image files. */
#include "command.h"
#include "json.h"
#include "terminal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct predict {
    struct lk_predictor *predictor;
    int64_t shape[3]; /* h, w, c */
    int classes, top;
    uint8_t *image;
    float *probabilities;
    json_t *results; /* array; NULL: text is wanted */
};

/* The class that is number `rank` by probability; of equal ones the lower index first. */
static int ranked_class(const struct predict *p, int rank)
{
    for (int i = 0; i < p->classes; i++) {
        int before = 0;
        for (int j = 0; j < p->classes; j++)
            before += p->probabilities[j] > p->probabilities[i] ||
                      (p->probabilities[j] == p->probabilities[i] && j < i);
        if (before == rank)
            return i;
    }
    return 0;
}

static void print_text(const struct predict *p, const char *file)
{
    terminal_print(file, 0);
    printf(":");
    for (int i = 0; i < p->top; i++) {
        const int class = ranked_class(p, i);
        printf("%s class %d, probability %.4f", i ? ";" : "", class, p->probabilities[class]);
    }
    printf("\n");
}

static json_t *file_json(const struct predict *p, const char *file)
{
    json_t *classes = json_array();
    for (int i = 0; i < p->top; i++) {
        const int class = ranked_class(p, i);
        json_array_append_new(classes, json_pack("{s:i, s:o}", "class", class, "probability",
                                                 json_number(p->probabilities[class])));
    }
    return json_pack("{s:o, s:o}", "file", json_text(file), "predictions", classes);
}

static enum lk_status predict_file(const struct predict *p, const char *file)
{
    enum lk_status status = lk_image_read(file, p->shape, p->image);
    if (status == LK_OK)
        status = lk_predictor_run(p->predictor, 1, p->image, p->probabilities);
    if (status != LK_OK)
        return status;
    if (p->results)
        json_array_append_new(p->results, file_json(p, file));
    else
        print_text(p, file);
    return LK_OK;
}

/* A bad file does not keep the others from being predicted. */
static int predict_files(const struct predict *p, const struct arguments *arguments)
{
    int result = DONE;
    for (int i = 1; i < arguments->word_count; i++) {
        const enum lk_status status = predict_file(p, arguments->words[i]);
        if (status != LK_OK)
            result = failed(status);
        lk_error_clear();
        if (status != LK_OK && result != BAD_INPUT)
            return result;
    }
    return result;
}

static int predict(struct predict *p, const struct arguments *arguments)
{
    const enum lk_status status = lk_predictor_open(
        arguments->words[0], option_text(arguments, "device"), 1, &p->predictor);
    if (status != LK_OK)
        return failed(status);
    lk_predictor_shape(p->predictor, p->shape, &p->classes);
    p->top = p->top < p->classes ? p->top : p->classes;
    p->image = malloc((size_t)(p->shape[0] * p->shape[1] * p->shape[2]));
    p->probabilities = malloc((size_t)p->classes * sizeof *p->probabilities);
    if (!p->image || !p->probabilities) {
        say("out of memory");
        return FAILED;
    }
    return predict_files(p, arguments);
}

static int run(const struct arguments *arguments)
{
    int64_t top = 1;
    if (arguments->word_count < 2)
        return wrong_usage(arguments->command,
                           "needs a RUN directory or CHECKPOINT file and at least one image");
    int result = option_number(arguments, "top", 1, 1 << 20, &top);
    if (result != DONE)
        return result;
    struct predict p = {.top = (int)top};
    if (option_given(arguments, "json"))
        p.results = json_array();
    result = predict(&p, arguments);
    if (p.results && p.predictor) {
        const int printed = json_print(json_incref(p.results), JSON_INDENT(2));
        result = result == DONE ? printed : result;
    }
    json_decref(p.results);
    lk_predictor_close(p.predictor);
    free(p.image);
    free(p.probabilities);
    return result;
}

static const struct option options[] = {
    {"top", "K", "show the K most probable classes (default 1)"},
    {"device", "LIST", "device to use; 'lockstep devices' lists them"},
    {"json", NULL, "print JSON"},
    {0},
};

const struct command predict_command = {
    .name = "predict",
    .usage = "RUN|CHECKPOINT FILE... [options]",
    .help = "predict the class of PNG and JPEG images",
    .options = options,
    .run = run,
};
