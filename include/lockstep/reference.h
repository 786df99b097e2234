/* The words that model texts, pipelines and settings may use, with their options: for pages of
 * help, the completion of shells, editors. Read from the tables that parse them. Floor 8. */
#ifndef LOCKSTEP_REFERENCE_H
#define LOCKSTEP_REFERENCE_H

#include <lockstep/status.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Operations, losses and metrics of model texts; optimizers; the options of a learning-rate
 * schedule; stages of a pipeline; the settings of a run; callbacks. SCHEDULE and SETTING are
 * one word. */
enum lk_reference {
    LK_REFERENCE_OPERATION,
    LK_REFERENCE_LOSS,
    LK_REFERENCE_METRIC,
    LK_REFERENCE_OPTIMIZER,
    LK_REFERENCE_SCHEDULE,
    LK_REFERENCE_STAGE,
    LK_REFERENCE_SETTING,
    LK_REFERENCE_CALLBACK
};

/* An option of a word, such as "filters" of conv2d. The pointers live as long as the program.
 */
struct lk_reference_option {
    const char *name;
    const char *standard; /* its default; NULL: it must be given */
    const char *help;     /* one line; "": none */
    char values[128];     /* what may stand there: "true|false", "whole number, 1..64" */
};

/* Word `index` of a kind, such as "conv2d"; NULL past the last. */
LK_API const char *lk_reference_word(enum lk_reference kind, int index);

/* Describes option `index` of word number `word`. Returns false past the last. */
LK_API bool lk_reference_read_option(enum lk_reference kind, int word, int index,
                                     struct lk_reference_option *option);

#ifdef __cplusplus
}
#endif
#endif
