/* Keeps a figure as few points and draws them as a line of blocks. */
#include "watch/history.h"

#include <math.h>
#include <stdio.h>

enum { LEVELS = 8 };

/* A larger number is no figure of a run, and sums stay finite. */
static const double largest = 1e100;

/* Two neighbours become one point. */
static void halve(struct history *history)
{
    for (int i = 0; i < history->count / 2; i++) {
        history->sum[i] = history->sum[2 * i] + history->sum[2 * i + 1];
        history->values[i] = history->values[2 * i] + history->values[2 * i + 1];
    }
    history->count /= 2;
    history->per *= 2;
}

void history_add(struct history *history, double value)
{
    if (!(fabs(value) < largest))
        return;
    if (history->per == 0)
        history->per = 1;
    if (history->count == 0 || history->values[history->count - 1] >= history->per) {
        if (history->count == HISTORY_POINTS)
            halve(history);
        history->sum[history->count] = 0;
        history->values[history->count++] = 0;
    }
    history->sum[history->count - 1] += value;
    history->values[history->count - 1]++;
    history->last = value;
}

/* The mean of what falls into one of `columns` columns. */
static double column_of(const struct history *history, int column, int columns)
{
    const int from = (int)((int64_t)column * history->count / columns);
    const int to = (int)((int64_t)(column + 1) * history->count / columns);
    double sum = 0;
    int64_t values = 0;
    for (int i = from; i < to; i++) {
        sum += history->sum[i];
        values += history->values[i];
    }
    return sum / (double)values;
}

int history_draw(const struct history *history, int columns, bool unicode, char *text)
{
    static const char *const blocks[LEVELS] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                               "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char marks[LEVELS + 1] = "_.:-=+*#";
    double found[HISTORY_POINTS], least = INFINITY, most = -INFINITY;
    columns = columns < history->count ? columns : history->count;
    *text = '\0';
    for (int i = 0; i < columns; i++) {
        found[i] = column_of(history, i, columns);
        least = fmin(least, found[i]);
        most = fmax(most, found[i]);
    }
    const bool is_wide = least > 0 && most / least > 10;
    const double low = is_wide ? log(least) : least;
    const double range = (is_wide ? log(most) : most) - low;
    for (int i = 0; i < columns; i++) {
        const double height = ((is_wide ? log(found[i]) : found[i]) - low) / range;
        const int level = range > 0 ? (int)(height * (LEVELS - 0.01)) : 0;
        text +=
            unicode ? sprintf(text, "%s", blocks[level]) : sprintf(text, "%c", marks[level]);
    }
    return columns > 0 ? columns : 0;
}
