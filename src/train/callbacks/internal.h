/* The inside of the list of callbacks, for the files that make it up. Floor 8. Private to
 * src/train/callbacks. */
#ifndef LK_TRAIN_CALLBACKS_INTERNAL_H
#define LK_TRAIN_CALLBACKS_INTERNAL_H

#include "train/callbacks/kinds.h"

enum { LK_MOST_ADDED_FIGURES = 32, LK_ADDED_NAME = 64 };

/* Sums over the steps of an epoch, and what else belongs to no callback of the text. */
struct lk_epoch_sums {
    double loss, accuracy; /* each times its samples */
    double lr;             /* of the last step */
    int64_t samples;
    bool is_broken; /* a loss was not finite */
    char ended[64]; /* the program's callback that has ended the run; "": none */
    struct lk_callback_rates rates;
    int64_t rate_count; /* as rates.count */
};

struct lk_callbacks {
    struct lk_callback_site site;
    struct lk_logs logs; /* that callbacks have open */
    struct lk_called list[LK_MOST_CALLBACKS];
    bool has_ended[LK_MOST_CALLBACKS]; /* it has ended the run */
    int count;
    struct lk_callback_wish wish;
    struct lk_epoch_sums sums;
    struct lk_epoch epoch;                         /* that was over last */
    struct lk_figures evaluated;                   /* since then */
    struct lk_figures own;                         /* the names of the training's own figures */
    struct lk_figure added[LK_MOST_ADDED_FIGURES]; /* to the event that is seen */
    char names[LK_MOST_ADDED_FIGURES][LK_ADDED_NAME];
    int added_count;
    bool is_open;
};

/* Reads "early_stopping patience=3" into a callback, with options and state of its own, to be
 * cleared after a failure too. fails: LK_E_ARGUMENT, naming the callback; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_called_read(const char *text, struct lk_called *called);
void lk_called_clear(struct lk_called *called);

/* Writes it anew, with what is no default. fails: LK_E_ARGUMENT: too long */
LK_MUST_CHECK enum lk_status lk_called_print(const struct lk_called *called,
                                             char text[LK_CALLBACKS_TEXT]);

/* Cuts the next callback of a list off it; returns false behind the last. */
bool lk_called_next(const char **text, char one[LK_CALLBACKS_TEXT]);

/* Calls the program's callbacks, which may add figures to the event. */
LK_MUST_CHECK enum lk_status lk_own_callbacks_see(struct lk_callbacks *callbacks,
                                                  struct lk_event *event);

#endif
