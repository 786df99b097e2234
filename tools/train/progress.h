/* Shows how far a training is: a progress bar on a terminal, plain lines elsewhere, and a line
 * for each evaluation. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <lockstep/lockstep.h>
#include <stdbool.h>

enum progress_style {
    PROGRESS_SILENT,
    PROGRESS_MILESTONES, /* start and evaluations only */
    PROGRESS_FULL,
};

enum { PROGRESS_DEVICES = 64 };

/* Means over the last steps in which a device had samples: it may have none of a small batch.
 */
struct device_means {
    bool is_left;
    int64_t seen; /* such steps, up to those that a mean reaches back */
    double share; /* of the last step */
    double samples, seconds, compute_ms, transfer_ms, reduce_ms, wait_ms, input_ms;
};

struct progress_sum {
    int64_t samples;
    double loss, accuracy; /* of all of them together */
};

/* Running means over the last steps, so that figures can be read. */
struct progress {
    enum progress_style style;
    bool has_bar;
    double began, shown; /* monotonic seconds; shown: 0 before the first step */
    int64_t first_step, seen;
    double loss, accuracy, samples_per_s;
    int devices; /* of the last step, where they were several */
    struct device_means means[PROGRESS_DEVICES];
    const struct lk_settings *settings; /* that the start tells of; may be NULL */
    struct progress_sum since;          /* the last row of the table of evaluations */
    int heading;                        /* the columns of that table that have one, as bits */
};

void progress_init(struct progress *progress, enum progress_style style);

/* Shows an event; to be called for each. */
void progress_event(struct progress *progress, const struct lk_event *event);

/* Writes a bar of `columns` columns; text holds four bytes a column. done: 0 to 1 */
void bar_text(char *text, int columns, double done);

/* "0:07", "12:34", "1:02:03". */
const char *duration_text(double seconds, char text[32]);

/* "8.50", "850", "12.3k", "1.20M". */
const char *rate_text(double rate, char text[32]);

#endif
