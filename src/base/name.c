/* Finds the known name that a misspelt one probably means, for error messages. */
#include <lockstep/status.h>

#include <string.h>

/* Levenshtein distance; names are short, so one row of 64 is enough. */
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    int row[LONGEST + 1];
    const int n = (int)strlen(b);
    if (n > LONGEST)
        return LONGEST;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            const int add = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < add ? change : add;
        }
    }
    return row[n];
}

const char *lk_nearest_name(const char *wrong, const char *(*names)(const void *, int),
                            const void *context)
{
    const char *best = NULL;
    int best_distance = (int)strlen(wrong) / 2 + 1;
    for (int i = 0;; i++) {
        const char *name = names(context, i);
        if (!name)
            return best;
        const int d = distance(wrong, name);
        if (d < best_distance) {
            best_distance = d;
            best = name;
        }
    }
}
