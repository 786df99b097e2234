/* Learning a vocabulary of byte pairs from files of text. Floor 4. */
#ifndef LOCKSTEP_TEXT_H
#define LOCKSTEP_TEXT_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lk_tokenize_options {
    int64_t vocabulary; /* tokens at most, padding, unknown and 256 bytes included */
    int64_t min_count;  /* how often two tokens stand side by side to be joined; 2 at least */
    bool skips_labels;  /* what stands before a line's first TAB is no text */
    bool may_replace;   /* the file that is there already */
};

struct lk_tokenize_report {
    int64_t bytes;      /* that were read */
    int64_t pieces;     /* different ones, such as words with the blank in front */
    int64_t vocabulary; /* tokens */
    int64_t tokens;     /* that the texts become */
};

/* Learns byte pairs from `count` files, any bytes, and writes the vocabulary to `output`, for
 * text:FILE,unit=pairs,vocabulary=OUTPUT. The same files give the same vocabulary.
 * fails: LK_E_ARGUMENT fewer than 258 tokens, more than 2^20, nothing to learn from; LK_E_IO;
 * LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_tokenize(const char *const *files, int count,
                                                const struct lk_tokenize_options *options,
                                                const char *output,
                                                struct lk_tokenize_report *report);

#ifdef __cplusplus
}
#endif
#endif
