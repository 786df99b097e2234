/* lockstep predict: what a trained model says of image files, of texts, or of the samples of a
 * data set. */
#include "command.h"
#include "files.h"
#include "next.h"
#include "terminal/json.h"
#include "terminal/task.h"
#include "terminal/terminal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OUTPUTS = 8 };

struct output {
    struct lk_predictor_port port;
    int64_t count;
    float *values; /* of an image file */
};

struct predict {
    struct lk_predictor *predictor;
    int64_t shape[3]; /* h, w, c of images */
    bool takes_files; /* the one input is an image */
    bool takes_text;
    int64_t choices; /* of a language model: the tokens that may be next; 0: it is none */
    float *next;     /* [choices] */
    struct output outputs[MOST_OUTPUTS];
    int output_count, top;
    uint8_t *image;
    json_t *results;  /* array; NULL: text is wanted */
    const char *name; /* of what is predicted: a file, or a SPEC */
};

/* The class that is number `rank` by probability; of equal ones the lower index first. */
static int64_t ranked_class(const float *values, int64_t count, int64_t rank)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t before = 0;
        for (int64_t j = 0; j < count; j++)
            before += values[j] > values[i] || (values[j] == values[i] && j < i);
        if (before == rank)
            return i;
    }
    return 0;
}

/* --- text -------------------------------------------------------------------------------- */

/* The name of a class; NULL: it has none but its number. */
static const char *class_name(const struct output *o, int64_t class)
{
    char number[24];
    if (class >= o->port.named_classes)
        return NULL;
    snprintf(number, sizeof number, "%" PRId64, class);
    return strcmp(o->port.class_names[class], number) == 0 ? NULL : o->port.class_names[class];
}

/* "glass, probability 0.9310; class 1, probability 0.0512" of one step. */
static void print_classes(const struct predict *p, const struct output *o, const float *values,
                          int64_t classes)
{
    for (int64_t i = 0; i < p->top && i < classes; i++) {
        const int64_t class = ranked_class(values, classes, i);
        const char *name = class_name(o, class);
        printf("%s ", i ? ";" : "");
        if (name)
            terminal_print(name, 0);
        else
            printf("class %" PRId64, class);
        printf(", probability %.4f", values[class]);
    }
}

static void print_output(const struct predict *p, const struct output *o, const float *values)
{
    const struct lk_shape *shape = &o->port.shape;
    const int64_t classes = shape->rank ? shape->dim[shape->rank - 1] : 1;
    if (p->output_count > 1) {
        printf(" ");
        terminal_print(o->port.name, 0);
    }
    for (int64_t i = 0; i < o->count; i += o->port.is_class ? classes : 1) {
        if (o->port.is_class && i > 0)
            printf(" |");
        if (o->port.is_class)
            print_classes(p, o, values + i, classes);
        else
            printf(" %.7g", (double)values[i]);
    }
}

static void print_text(const struct predict *p, const char *what, const float *const *values)
{
    terminal_print(what, 0);
    printf(":");
    for (int i = 0; i < p->output_count; i++) {
        print_output(p, &p->outputs[i], values[i]);
        printf("%s", i + 1 < p->output_count ? ";" : "\n");
    }
}

/* --- JSON -------------------------------------------------------------------------------- */

static json_t *output_json(const struct predict *p, const struct output *o, const float *values)
{
    json_t *list = json_array();
    if (!o->port.is_class || o->port.shape.rank != 1) {
        for (int64_t i = 0; i < o->count; i++)
            json_array_append_new(list, json_number((double)values[i]));
        return list;
    }
    for (int64_t i = 0; i < p->top && i < o->count; i++) {
        const int64_t class = ranked_class(values, o->count, i);
        json_t *found = json_pack("{s:I, s:o}", "class", (json_int_t) class, "probability",
                                  json_number(values[class]));
        if (class < o->port.named_classes)
            json_object_set_new(found, "name", json_text(o->port.class_names[class]));
        json_array_append_new(list, found);
    }
    return list;
}

/* The predictions of one output stand alone, those of several by their names. */
static json_t *sample_json(const struct predict *p, json_t *sample, const float *const *values)
{
    if (p->output_count == 1) {
        json_object_set_new(sample, "predictions", output_json(p, &p->outputs[0], values[0]));
        return sample;
    }
    json_t *outputs = json_object();
    for (int i = 0; i < p->output_count; i++)
        json_object_set_new(outputs, p->outputs[i].port.name,
                            output_json(p, &p->outputs[i], values[i]));
    json_object_set_new(sample, "outputs", outputs);
    return sample;
}

/* --- files and data sets ----------------------------------------------------------------- */

static enum lk_status predict_file(const struct predict *p, const char *file)
{
    const float *values[MOST_OUTPUTS];
    float *to[MOST_OUTPUTS];
    for (int i = 0; i < p->output_count; i++)
        values[i] = to[i] = p->outputs[i].values;
    enum lk_status status = lk_predictor_read_image(p->predictor, file, p->image);
    if (status == LK_OK)
        status = lk_predictor_run_fields(p->predictor, 1, (const void *[]){p->image}, to);
    if (status != LK_OK)
        return status;
    if (p->results)
        json_array_append_new(
            p->results, sample_json(p, json_pack("{s:o}", "file", json_text(file)), values));
    else
        print_text(p, file, values);
    return LK_OK;
}

static enum lk_status show_sample(void *context, int64_t sample, const float *const *values)
{
    const struct predict *p = context;
    char what[40];
    snprintf(what, sizeof what, "sample %" PRId64, sample);
    if (p->results)
        json_array_append_new(p->results,
                              sample_json(p,
                                          json_pack("{s:o, s:I}", "data", json_text(p->name),
                                                    "sample", (json_int_t)sample),
                                          values));
    else
        print_text(p, what, values);
    return LK_OK;
}

static int said(enum lk_status status)
{
    const int result = status == LK_OK ? DONE : failed(status);
    lk_error_clear();
    return result;
}

/* What is told of a text, or of line `line` of a file. */
static json_t *text_json(const struct predict *p, const char *text, int64_t line)
{
    json_t *sample = json_pack("{s:o}", "text", json_text(text));
    if (line > 0)
        json_object_update_new(sample, json_pack("{s:o, s:I}", "file", json_text(p->name),
                                                 "line", (json_int_t)line));
    return sample;
}

/* Which tokens a language model expects behind a text. */
static enum lk_status predict_next(const struct predict *p, const char *text, size_t bytes,
                                   int64_t line)
{
    json_t *list = NULL;
    enum lk_status status = lk_predictor_next(p->predictor, text, bytes, p->next);
    if (status == LK_OK && p->results) {
        status = next_json(p->predictor, p->next, p->choices, p->top, &list);
        if (status != LK_OK)
            return status;
        json_t *sample = text_json(p, text, line);
        json_object_set_new(sample, "predictions", list);
        json_array_append_new(p->results, sample);
    } else if (status == LK_OK) {
        terminal_print(text, 0);
        printf(":");
        status = next_print(p->predictor, p->next, p->choices, p->top);
        printf("\n");
    }
    return status;
}

/* What a model says of a text that is one whole: all outputs. */
static enum lk_status predict_outputs(const struct predict *p, const char *text, size_t bytes,
                                      int64_t line)
{
    const float *values[MOST_OUTPUTS];
    float *to[MOST_OUTPUTS];
    for (int i = 0; i < p->output_count; i++)
        values[i] = to[i] = p->outputs[i].values;
    const enum lk_status status = lk_predictor_run_text(p->predictor, text, bytes, to);
    if (status == LK_OK && p->results)
        json_array_append_new(p->results, sample_json(p, text_json(p, text, line), values));
    else if (status == LK_OK)
        print_text(p, text, values);
    return status;
}

/* A text that is given, or line `line` of a file. */
static int predict_text(const struct predict *p, const char *text, size_t bytes, int64_t line)
{
    char *copy = malloc(bytes + 1);
    if (!copy) {
        say("out of memory");
        return FAILED;
    }
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    const enum lk_status status = p->choices > 0 ? predict_next(p, copy, bytes, line)
                                                 : predict_outputs(p, copy, bytes, line);
    if (status != LK_OK && line > 0)
        say("'%s', line %" PRId64 ":", p->name, line);
    free(copy);
    return said(status);
}

/* Each line of a text file that is not empty. A bad one does not keep the others from being
 * predicted. */
static int predict_lines(const struct predict *p, const char *path)
{
    static const size_t most = (size_t)1 << 30;
    void *data = NULL;
    size_t bytes = 0;
    int result = said(lk_file_read(path, most, &data, &bytes));
    const char *at = data, *end = at ? at + bytes : at;
    for (int64_t line = 1; at < end && (result == DONE || result == BAD_INPUT); line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        const size_t length = (size_t)(stop - at) - (stop > at && stop[-1] == '\r');
        const int one = length > 0 ? predict_text(p, at, length, line) : DONE;
        result = one == DONE ? result : one;
        at = next;
    }
    free(data);
    return result;
}

/* Whether a word is a SPEC such as "folder:DIR", and no file. */
static bool is_spec(const char *word)
{
    const size_t kind = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    return kind > 0 && word[kind] == ':' && !file_is_there(word);
}

/* The samples of a SPEC, the lines of a text file, or the image files that a word names. A bad
 * file does not keep the others from being predicted. */
static int predict_word(struct predict *p, const char *word)
{
    struct files files = {0};
    p->name = word;
    if (p->takes_text && !is_spec(word))
        return predict_lines(p, word);
    if (!p->takes_files || is_spec(word))
        return said(lk_predictor_each(p->predictor, word, p, show_sample));
    int result = files_add(&files, word);
    for (int i = 0; i < files.count && (result == DONE || result == BAD_INPUT); i++) {
        const int one = said(predict_file(p, files.paths[i]));
        result = one == DONE ? result : one;
    }
    files_clear(&files);
    return result;
}

static int predict_all(struct predict *p, const struct arguments *arguments)
{
    int result = DONE;
    for (int i = 0; i < arguments->given_count && (result == DONE || result == BAD_INPUT);
         i++) {
        const struct given *given = &arguments->given[i];
        if (strcmp(given->option->name, "text") != 0)
            continue;
        const int one = predict_text(p, given->value, strlen(given->value), 0);
        result = one == DONE ? result : one;
    }
    for (int i = 1; i < arguments->word_count && (result == DONE || result == BAD_INPUT); i++) {
        const int one = predict_word(p, arguments->words[i]);
        result = one == DONE ? result : one;
    }
    return result;
}

static bool take_memory(struct predict *p)
{
    bool is_there = true;
    p->image = malloc((size_t)(p->shape[0] * p->shape[1] * p->shape[2]));
    for (int i = 0; i < p->output_count; i++) {
        struct output *o = &p->outputs[i];
        o->count = 1;
        for (int axis = 0; axis < o->port.shape.rank; axis++)
            o->count *= o->port.shape.dim[axis];
        o->values = malloc((size_t)o->count * sizeof *o->values);
        is_there &= o->values != NULL;
    }
    p->next = malloc((size_t)(p->choices + 1) * sizeof *p->next);
    return is_there && p->image && p->next;
}

static int predict(struct predict *p, const struct arguments *arguments)
{
    struct lk_field input;
    int classes;
    const enum lk_status status = lk_predictor_open(
        arguments->words[0], option_text(arguments, "device"), 1, &p->predictor);
    if (status != LK_OK)
        return failed(status);
    lk_predictor_shape(p->predictor, p->shape, &classes);
    p->takes_files = lk_predictor_input(p->predictor, 0, &input) && input.dtype == LK_U8 &&
                     !lk_predictor_input(p->predictor, 1, &input);
    p->takes_text = lk_predictor_takes_text(p->predictor);
    p->choices = lk_predictor_next_choices(p->predictor);
    while (
        p->output_count < MOST_OUTPUTS &&
        lk_predictor_output(p->predictor, p->output_count, &p->outputs[p->output_count].port))
        p->output_count++;
    if (!take_memory(p)) {
        say("out of memory");
        return FAILED;
    }
    task_only_building(); /* predictions are printed meanwhile */
    return predict_all(p, arguments);
}

static int run(const struct arguments *arguments)
{
    int64_t top = 1;
    const int texts = option_given(arguments, "text");
    if (arguments->word_count + texts < 2 || arguments->word_count == 0)
        return wrong_usage(arguments->command,
                           "needs a RUN directory or CHECKPOINT file and at least one image, "
                           "folder, SPEC or --text");
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
    free(p.next);
    for (int i = 0; i < MOST_OUTPUTS; i++)
        free(p.outputs[i].values);
    return result;
}

static const struct option options[] = {
    {"text", "TEXT", "a text, for a model that was trained on texts; may be repeated"},
    {"top", "K", "show the K most probable classes or next tokens (default 1)"},
    {"device", "LIST", "device to use; 'lockstep devices' lists them"},
    {"json", NULL, "print JSON"},
    {0},
};

static const struct example examples[] = {
    {"lockstep predict out shoe.png boot.jpeg", "the class of two images"},
    {"lockstep predict out shoe.png --top 3 --json",
     "the three most probable classes, as JSON"},
    {"lockstep predict trec --text 'How far is it from Denver to Aspen ?'",
     "the class of a text"},
    {"lockstep predict book --text 'In the beginnin' --top 3",
     "what a language model expects next"},
    {0},
};

const struct command predict_command = {
    .name = "predict",
    .usage = "RUN|CHECKPOINT [FILE...] [options]",
    .help =
        "predict what a trained model says of PNG and JPEG images, which are resized and\n"
        "cropped as those that it was evaluated on. FILE: an image, a folder with images, a\n"
        "pattern ('*.jpg'), or a data SPEC, which models of other inputs need:\n"
        "csv:FILE,fields=a,b. Models of texts take --text, and of a text FILE each line;\n"
        "language models say which tokens they expect behind it",
    .options = options,
    .examples = examples,
    .run = run,
};
