/* lockstep tokenize: learns a vocabulary of byte pairs from files of text. */
#include "command.h"
#include "terminal/terminal.h"
#include <inttypes.h>
#include <lockstep/text.h>
#include <stdio.h>

static int run(const struct arguments *arguments)
{
    struct lk_tokenize_options options = {.vocabulary = 8000, .min_count = 2};
    struct lk_tokenize_report report;
    const char *output = option_text(arguments, "output");
    if (arguments->word_count == 0)
        return wrong_usage(arguments->command, "needs at least one FILE to learn from");
    if (!output)
        return wrong_usage(arguments->command, "needs -o FILE for the vocabulary");
    int result = option_number(arguments, "vocabulary", 258, 1 << 20, &options.vocabulary);
    if (result == DONE)
        result = option_number(arguments, "min-count", 2, INT64_MAX, &options.min_count);
    if (result != DONE)
        return result;
    options.skips_labels = option_given(arguments, "skip-labels");
    options.may_replace = option_given(arguments, "force");
    const enum lk_status status =
        lk_tokenize(arguments->words, arguments->word_count, &options, output, &report);
    if (status != LK_OK)
        return failed(status);
    terminal_print(output, 0);
    printf(": %" PRId64 " tokens, from %" PRId64 " bytes, %" PRId64
           " different pieces; %.2f bytes a token\n",
           report.vocabulary, report.bytes, report.pieces,
           report.tokens ? (double)report.bytes / (double)report.tokens : 0.0);
    return DONE;
}

static const struct option options[] = {
    {"output", "FILE", "where the vocabulary is written"},
    {"vocabulary", "N",
     "tokens at most, 256 bytes, padding and unknown included (default 8000)"},
    {"min-count", "N", "how often two tokens stand side by side to be joined (default 2)"},
    {"skip-labels", NULL, "lines of label, TAB, text: learn from the texts alone"},
    {"force", NULL, "replace a file that is there already"},
    {0},
};

static const struct example examples[] = {
    {"lockstep tokenize book.txt -o pairs.json --vocabulary 4000", "learn from a book"},
    {"lockstep train gpt.yaml --data text:book.txt,unit=pairs,vocabulary=pairs.json,val=0.1",
     "and train on its tokens"},
    {0},
};

const struct command tokenize_command = {
    .name = "tokenize",
    .usage = "FILE... -o FILE [options]",
    .help = "learn a vocabulary of byte pairs from files of text",
    .options = options,
    .examples = examples,
    .run = run,
};
