/* The inside of the tuner, for the files that make it up. Floor 5. Private to
 * src/graph/tune. tune.c goes through all choices; shared.c, which it asks last,
 * measures by means of it. */
#ifndef LK_GRAPH_TUNE_INTERNAL_H
#define LK_GRAPH_TUNE_INTERNAL_H

#include "graph/nodes/schedule.h"
#include "graph/tune/tune.h"
#include "ops/op.h"
#include "products/kernel/choice.h"

/* A pass that has chosen, and one of whose candidates depends on a choice made for the whole
 * device (such as the tiles of CLBlast): if that one changes, the pass chooses again. */
struct lk_tuner_pass {
    const struct lk_scheduled_op *scheduled;
    int index;           /* of the operation's choices */
    double ms, other_ms; /* of that candidate; of the fastest other one, 0: there is none */
    char other[LK_CHOICE_TEXT_BYTES];
};

struct lk_tuner {
    const struct lk_tune_config *config;
    double end; /* lk_seconds() */
    bool stopped;
    struct lk_op_setup like; /* of the operation at hand */
    const struct lk_op *op;
    int64_t samples;
    struct lk_choice choice;
    float *expected; /* of the choice at hand, by the first candidate; NULL: none yet */
    int64_t expected_count;
    struct lk_choice shared; /* the device's; count 0: no operation has one */
    const char *shared_name; /* the candidate of `shared` to measure with; NULL: what is
                              * known to be the fastest */
    struct lk_tuner_pass *passes;
    int pass_count, pass_room;
};

/* A candidate must take less than this fraction of the best time so far to replace it. */
#define LK_TUNER_CLEARLY 0.97

bool lk_tuner_is_time_up(const struct lk_tuner *tuner);

/* Makes choice number `index` of an operation the current one. False: it has no such choice. */
bool lk_tuner_begin(struct lk_tuner *tuner, const struct lk_scheduled_op *scheduled, int index);

/* Measures a candidate of the choice at hand. fails: as the candidate does */
LK_MUST_CHECK enum lk_status lk_tuner_measure(struct lk_tuner *tuner,
                                              const struct lk_candidate *candidate,
                                              struct lk_tune_report *report);

/* Tells the handler, which may say that it is enough. */
void lk_tuner_report(struct lk_tuner *tuner, const struct lk_tune_report *report);

/* Notes what was found for the choice at hand; ms: of each candidate, 0: none was found. */
LK_MUST_CHECK enum lk_status lk_tuner_note(struct lk_tuner *tuner,
                                           const struct lk_scheduled_op *scheduled, int index,
                                           const double *ms);

/* Measures the noted passes with each candidate of the device's choice and takes the candidate
 * with which the whole model is the fastest; then makes those passes' choices anew. Does
 * nothing if time is up before all is measured. fails: as lk_tune() */
LK_MUST_CHECK enum lk_status lk_tuner_choose_shared(struct lk_tuner *tuner);

#endif
