/* Makes a choice for the whole device: the candidate with which all passes of the model
 * together are the fastest. */
#include "graph/tune/internal.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

static const double HOPELESS = 2; /* an algorithm that takes so many times as long as another
                                     one stays slower with any tiles */

static const struct lk_candidate *find(const struct lk_choice *choice, const char *name)
{
    for (int i = 0; i < choice->count; i++)
        if (strcmp(choice->candidates[i].name, name) == 0)
            return &choice->candidates[i];
    return NULL;
}

enum lk_status lk_tuner_note(struct lk_tuner *tuner, const struct lk_scheduled_op *scheduled,
                             int index, const double *ms)
{
    struct lk_tuner_pass pass = {.scheduled = scheduled, .index = index};
    const struct lk_choice *choice = &tuner->choice;
    if (!tuner->shared.decides)
        return LK_OK;
    for (int i = 0; i < choice->count; i++) {
        const char *name = choice->candidates[i].name;
        if (strcmp(name, tuner->shared.decides) == 0)
            pass.ms = ms[i];
        else if (ms[i] > 0 &&
                 (pass.other_ms == 0 || ms[i] < LK_TUNER_CLEARLY * pass.other_ms)) {
            pass.other_ms = ms[i];
            strcpy(pass.other, name);
        }
    }
    if (pass.ms == 0 || (pass.other_ms > 0 && pass.ms > HOPELESS * pass.other_ms))
        return LK_OK;
    if (tuner->pass_count == tuner->pass_room) {
        const int room = tuner->pass_room ? 2 * tuner->pass_room : 16;
        struct lk_tuner_pass *passes = realloc(tuner->passes, (size_t)room * sizeof *passes);
        if (!passes)
            return lk_fail_memory("what was measured", (size_t)room * sizeof *passes);
        tuner->passes = passes;
        tuner->pass_room = room;
    }
    tuner->passes[tuner->pass_count++] = pass;
    return LK_OK;
}

/* A failure is passed over, unless the device is lost or memory is exhausted. */
static enum lk_status measure(struct lk_tuner *tuner, const struct lk_candidate *candidate,
                              double *ms)
{
    struct lk_tune_report report = {.outcome = LK_TUNE_FAILED};
    const enum lk_status status = lk_tuner_measure(tuner, candidate, &report);
    *ms = status == LK_OK && report.outcome == LK_TUNE_GOOD ? report.ms : -1;
    if (status == LK_E_DEVICE || status == LK_E_MEMORY)
        return status;
    lk_error_clear();
    return LK_OK;
}

/* Measures a pass with each candidate of the device's choice; ms: [candidate], of which the
 * first is known already. A candidate that fails or is wrong in one pass is dropped for all. */
static enum lk_status measure_pass(struct lk_tuner *tuner, const struct lk_tuner_pass *pass,
                                   double *ms)
{
    double first;
    if (!lk_tuner_begin(tuner, pass->scheduled, pass->index))
        return LK_OK;
    const struct lk_candidate *one = find(&tuner->choice, tuner->shared.decides);
    tuner->shared_name = tuner->shared.candidates[1].name; /* one of the others; other passes
                                                            * may find another one the
                                                            * fastest */
    enum lk_status status = measure(tuner, &tuner->choice.candidates[0], &first);
    for (int i = 1; status == LK_OK && one && i < tuner->shared.count; i++) {
        if (ms[i] < 0 || lk_tuner_is_time_up(tuner))
            continue;
        tuner->shared_name = tuner->shared.candidates[i].name;
        status = measure(tuner, one, &ms[i]);
    }
    tuner->shared_name = NULL;
    free(tuner->expected);
    tuner->expected = NULL;
    return status;
}

static double least_of(double ms, const struct lk_tuner_pass *pass)
{
    return pass->other_ms > 0 && pass->other_ms < ms ? pass->other_ms : ms;
}

/* Finds the candidate with the smallest sum of times over all passes. */
static int sum_up(struct lk_tuner *tuner, double (*ms)[LK_MOST_CANDIDATES])
{
    const struct lk_choice *shared = &tuner->shared;
    int best = 0;
    double least = 0;
    for (int i = 0; i < shared->count; i++) {
        struct lk_tune_report report = {.key = shared->key, .name = shared->candidates[i].name};
        if (ms[tuner->pass_count - 1][i] < 0)
            report.outcome = LK_TUNE_FAILED;
        for (int p = 0; p < tuner->pass_count && report.outcome == LK_TUNE_GOOD; p++)
            report.ms += least_of(ms[p][i], &tuner->passes[p]);
        if (report.outcome == LK_TUNE_GOOD &&
            (i == 0 || report.ms < LK_TUNER_CLEARLY * least)) {
            best = i;
            least = report.ms;
        }
        if (i + 1 == shared->count)
            report.fastest = shared->candidates[best].name;
        lk_tuner_report(tuner, &report);
    }
    return best;
}

/* Makes a pass's choice anew if with other tiles another algorithm is the fastest. */
static enum lk_status choose_again(struct lk_tuner *tuner, const struct lk_tuner_pass *pass,
                                   double ms)
{
    char now[LK_CHOICE_TEXT_BYTES] = "";
    if (!lk_tuner_begin(tuner, pass->scheduled, pass->index))
        return LK_OK;
    const bool is_faster = pass->other_ms == 0 || ms < LK_TUNER_CLEARLY * pass->other_ms;
    const char *fastest = is_faster ? tuner->shared.decides : pass->other;
    if (lk_choices_find(tuner->config->choices, tuner->choice.key, now) &&
        strcmp(now, fastest) == 0)
        return LK_OK;
    const struct lk_tune_report report = {.key = tuner->choice.key,
                                          .name = fastest,
                                          .ms = is_faster ? ms : pass->other_ms,
                                          .samples = tuner->samples,
                                          .fastest = fastest};
    lk_tuner_report(tuner, &report);
    return lk_choices_set(tuner->config->choices, tuner->choice.key, fastest);
}

static enum lk_status choose(struct lk_tuner *tuner, double (*ms)[LK_MOST_CANDIDATES])
{
    const struct lk_choice *shared = &tuner->shared;
    for (int p = 0; p < tuner->pass_count && !lk_tuner_is_time_up(tuner); p++) {
        if (p > 0) /* what failed once stays out */
            for (int i = 1; i < shared->count; i++)
                ms[p][i] = ms[p - 1][i] < 0 ? -1 : 0;
        ms[p][0] = tuner->passes[p].ms;
        LK_TRY(measure_pass(tuner, &tuner->passes[p], ms[p]));
    }
    if (lk_tuner_is_time_up(tuner))
        return LK_OK;
    const int best = sum_up(tuner, ms);
    for (int p = 0; p < tuner->pass_count && best > 0; p++)
        LK_TRY(choose_again(tuner, &tuner->passes[p], ms[p][best]));
    return lk_choices_set(tuner->config->choices, shared->key, shared->candidates[best].name);
}

enum lk_status lk_tuner_choose_shared(struct lk_tuner *tuner)
{
    char text[LK_CHOICE_TEXT_BYTES];
    if (tuner->pass_count == 0 || tuner->shared.count < 2 ||
        lk_choices_find(tuner->config->choices, tuner->shared.key, text))
        return LK_OK;
    double(*ms)[LK_MOST_CANDIDATES] = calloc((size_t)tuner->pass_count, sizeof *ms);
    if (!ms)
        return lk_fail_memory("what was measured", (size_t)tuner->pass_count * sizeof *ms);
    const enum lk_status status = choose(tuner, ms);
    free(ms);
    return status;
}
