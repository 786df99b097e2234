/* lockstep generate: a language model goes on with a text. */
#include "command.h"
#include "terminal/character.h"
#include "terminal/terminal.h"
#include <inttypes.h>
#include <lockstep/predict.h>
#include <stdio.h>
#include <string.h>

/* Bytes of a character that is not complete yet. */
struct unfinished {
    char bytes[8];
    int count;
};

/* Whether nothing is missing, by the first byte. */
static bool is_whole(const struct unfinished *u)
{
    const unsigned char c = (unsigned char)u->bytes[0];
    return u->count >= (c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4);
}

/* Prints the first character. The terminal's own codes are not let through: a model may have
 * learned any bytes. */
static void print_first(struct unfinished *u)
{
    uint32_t code;
    const int bytes = character_read(u->bytes, &code);
    if (code == '\n' || code == '\t' || character_is_harmless(code))
        fwrite(u->bytes, 1, (size_t)bytes, stdout);
    else
        putchar('?');
    u->count -= bytes;
    memmove(u->bytes, u->bytes + bytes, (size_t)u->count + 1);
}

static enum lk_status print_piece(void *context, const char *text, size_t bytes)
{
    struct unfinished *u = context;
    for (size_t i = 0; i < bytes; i++) {
        u->bytes[u->count++] = text[i];
        u->bytes[u->count] = '\0';
        while (u->count > 0 && is_whole(u))
            print_first(u);
    }
    fflush(stdout);
    return LK_OK;
}

static int read_options(const struct arguments *arguments, struct lk_generate_options *o)
{
    int64_t seed = 0;
    int result = option_number(arguments, "length", 1, 1 << 24, &o->tokens);
    if (result == DONE)
        result = option_number(arguments, "top-k", 1, 1 << 20, &o->top_k);
    if (result == DONE)
        result = option_number(arguments, "seed", 0, INT64_MAX, &seed);
    if (result == DONE)
        result = option_real(arguments, "temperature", 0, 100, &o->temperature);
    o->seed = (uint64_t)seed;
    return result;
}

static int run(const struct arguments *arguments)
{
    struct lk_generate_options options = {.tokens = 200, .temperature = 1};
    struct lk_predictor *predictor = NULL;
    struct unfinished last = {0};
    const char *prompt = option_text(arguments, "prompt");
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command, "needs one RUN or CHECKPOINT, found %d words",
                           arguments->word_count);
    if (!prompt || !*prompt)
        return wrong_usage(arguments->command, "needs --prompt TEXT to go on with");
    const int result = read_options(arguments, &options);
    if (result != DONE)
        return result;
    enum lk_status status =
        lk_predictor_open(arguments->words[0], option_text(arguments, "device"), 1, &predictor);
    if (status == LK_OK)
        status = lk_predictor_generate(predictor, prompt, &options, &last, print_piece);
    lk_predictor_close(predictor);
    while (last.count > 0)
        print_first(&last);
    if (status != LK_OK)
        return failed(status);
    printf("\n");
    return DONE;
}

static const struct option options[] = {
    {"prompt", "TEXT", "what the text begins with"},
    {"length", "N", "tokens to add (default 200)"},
    {"temperature", "T",
     "above 1 bolder, below 1 closer to the likeliest tokens; 0 takes the likeliest each time "
     "(default 1)"},
    {"top-k", "K", "draw one of the K likeliest tokens (default: of all)"},
    {"seed", "N", "the same seed gives the same text (default 0)"},
    {"device", "LIST", "device to compute on; 'lockstep devices' lists them"},
    {0},
};

static const struct example examples[] = {
    {"lockstep generate book --prompt \"In the beginning\"", "200 tokens more"},
    {"lockstep generate book --prompt \"And\" --temperature 0.8 --top-k 40 --seed 7",
     "less bold, and another text"},
    {0},
};

const struct command generate_command = {
    .name = "generate",
    .usage = "RUN|CHECKPOINT --prompt TEXT [options]",
    .help = "let a language model go on with a text",
    .options = options,
    .examples = examples,
    .run = run,
};
