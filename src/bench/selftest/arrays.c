/* Known answers of the operations on whole arrays. */
#include "bench/selftest/known_answers.h"

enum { ROWS = 2, INNER = 3, COLUMNS = 4 }; /* of known_answers.c's "matmul" */
enum { LENGTH = 3, NEXT = 2 };             /* of its "reduce" */

/* x only says how many samples there are. */
void lk_known_constant(const struct lk_known_answer *known, const struct lk_known_arrays *data,
                       double *y, double *dx)
{
    const int64_t count = lk_shape_count(&known->x);
    for (int64_t i = 0; i < LK_KNOWN_BATCH * count; i++) {
        y[i] = data->w[0][i % count];
        dx[i] = 0;
    }
}

/* Products of two inputs, element by element. */
void lk_known_math(const struct lk_known_answer *known, const struct lk_known_arrays *data,
                   double *y, double *dx)
{
    for (int64_t i = 0; i < LK_KNOWN_BATCH * lk_shape_count(&known->x); i++) {
        y[i] = (double)data->x[0][i] * data->x[1][i];
        dx[i] = (double)data->dy[i] * data->x[1][i];
    }
}

/* As many elements as x has, each from a place that w names, or 2 where that is none. */
void lk_known_pick(const struct lk_known_answer *known, const struct lk_known_arrays *data,
                   double *y, double *dx)
{
    const int64_t count = lk_shape_count(&known->x);
    for (int64_t n = 0; n < LK_KNOWN_BATCH * count; n += count) {
        for (int64_t i = 0; i < count; i++)
            dx[n + i] = 0;
        for (int64_t i = 0; i < count; i++) {
            const int64_t place = (int64_t)data->w[0][i];
            const bool is_one = place >= 0 && place < count;
            y[n + i] = is_one ? data->x[0][n + place] : 2;
            if (is_one)
                dx[n + place] += data->dy[n + i];
        }
    }
}

/* Sums of LENGTH numbers, NEXT apart. */
void lk_known_reduce(const struct lk_known_answer *known, const struct lk_known_arrays *data,
                     double *y, double *dx)
{
    const int64_t rows = LK_KNOWN_BATCH * lk_shape_count(&known->x) / (LENGTH * NEXT);
    for (int64_t i = 0; i < rows * NEXT; i++) {
        const int64_t first = i / NEXT * LENGTH * NEXT + i % NEXT;
        y[i] = 0;
        for (int64_t j = 0; j < LENGTH; j++) {
            y[i] += data->x[0][first + j * NEXT];
            dx[first + j * NEXT] = data->dy[i];
        }
    }
}

/* Two matrices a sample: [ROWS, INNER] times [INNER, COLUMNS]. */
void lk_known_matmul(const struct lk_known_answer *known, const struct lk_known_arrays *data,
                     double *y, double *dx)
{
    (void)known;
    for (int64_t n = 0; n < LK_KNOWN_BATCH; n++)
        for (int64_t i = 0; i < ROWS; i++) {
            const float *a = data->x[0] + (n * ROWS + i) * INNER;
            const float *dy = data->dy + (n * ROWS + i) * COLUMNS;
            for (int64_t k = 0; k < COLUMNS; k++)
                y[(n * ROWS + i) * COLUMNS + k] = 0;
            for (int64_t j = 0; j < INNER; j++) {
                const float *b = data->x[1] + (n * INNER + j) * COLUMNS;
                double sum = 0;
                for (int64_t k = 0; k < COLUMNS; k++) {
                    y[(n * ROWS + i) * COLUMNS + k] += (double)a[j] * b[k];
                    sum += (double)dy[k] * b[k];
                }
                dx[(n * ROWS + i) * INNER + j] = sum;
            }
        }
}
