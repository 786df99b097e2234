/* A figure over the steps of a run as few points, and its drawing in one line of text. */
#ifndef TOOLS_HISTORY_H
#define TOOLS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

enum { HISTORY_POINTS = 512 };

/* {0} is empty. A point is the mean of `per` values; of a long history of more. */
struct history {
    double sum[HISTORY_POINTS];
    int64_t values[HISTORY_POINTS];
    int count;
    int64_t per;
    double last; /* value; only where count > 0 */
};

/* A value that is not finite counts as none. */
void history_add(struct history *history, double value);

/* Draws it in `columns` columns or, where it has fewer points, in as many: the lowest line the
 * least of them. Where all are positive and far apart, their logarithms. text holds four bytes
 * a column. Returns the columns. */
int history_draw(const struct history *history, int columns, bool unicode, char *text);

#endif
