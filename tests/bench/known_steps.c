/* The loops of known answers for operations on time steps. */
#include "known.h"

#include <stdlib.h>
#include <string.h>

/* Number `which` of option "name=a,b" (one number stands for both). */
int64_t known_number(const char *options, const char *name, int which, int64_t standard)
{
    const char *at = strstr(options, name);
    if (!at)
        return standard;
    at += strlen(name) + 1;
    const char *comma = strchr(at, ','), *space = strchr(at, ' ');
    if (which == 1 && comma && (!space || comma < space))
        at = comma + 1;
    return atoll(at);
}

/* The valid steps of sample n. */
static int64_t length_of(const struct problem *p, int64_t n)
{
    const int64_t steps = p->shapes.x[0].dim[0];
    const int64_t length = p->lengths ? p->lengths[n] : steps;
    return length < 0 ? 0 : length > steps ? steps : length;
}

void known_embedding(struct problem *p)
{
    const int64_t steps = p->shapes.x[0].dim[0],
                  units = known_number(p->known->options, "units", 0, 0);
    for (int64_t n = 0; n < BATCH; n++)
        for (int64_t t = n * steps; t < n * steps + length_of(p, n); t++)
            for (int64_t u = 0; u < units; u++) {
                const int64_t row = p->tokens[t];
                if (row < 0 || row >= known_number(p->known->options, "vocabulary", 0, 0))
                    continue;
                p->y[t * units + u] = p->data.w[0][row * units + u];
                p->dw[0][row * units + u] += p->data.dy[t * units + u];
            }
}

/* Convolution with padding=same, an odd kernel and a relu: its outputs are as many as its
 * inputs. */
static void conv1d(struct problem *p, int64_t n, int64_t valid)
{
    const int64_t steps = p->shapes.x[0].dim[0], c = p->shapes.x[0].dim[1];
    const int64_t filters = p->shapes.y.dim[1],
                  kernel = known_number(p->known->options, "kernel", 0, 3);
    for (int64_t i = 0; i < valid * filters; i++) {
        const int64_t k = i % filters, first = i / filters - kernel / 2;
        const int64_t y = n * steps * filters + i;
        double sum = p->data.w[1][k];
        for (int pass = 0; pass < 2; pass++) {
            const double dz = sum > 0 ? p->data.dy[y] : 0;
            for (int64_t j = 0; j < kernel * c; j++) {
                const int64_t t = first + j / c, x = (n * steps + t) * c + j % c;
                if (t < 0 || t >= valid)
                    continue;
                if (pass == 0)
                    sum += (double)p->data.x[0][x] * p->data.w[0][j * filters + k];
                else
                    p->dx[0][x] += dz * p->data.w[0][j * filters + k];
                if (pass == 1)
                    p->dw[0][j * filters + k] += dz * p->data.x[0][x];
            }
            if (pass == 1)
                p->dw[1][k] += dz;
        }
        p->y[y] = sum > 0 ? sum : 0;
    }
}

/* Of the channels of one sample: from step t of x to step o of y. */
static void move(struct problem *p, int64_t n, int64_t t, int64_t o, double weight)
{
    const int64_t steps = p->shapes.x[0].dim[0], c = p->shapes.x[0].dim[1];
    const int64_t y_steps = lk_shape_count(&p->shapes.y) / c;
    for (int64_t k = 0; k < c; k++) {
        const int64_t x = (n * steps + t) * c + k, y = (n * y_steps + o) * c + k;
        p->y[y] += weight * p->data.x[0][x];
        p->dx[0][x] += weight * p->data.dy[y];
    }
}

/* The largest of all valid steps, the first of equals. */
static void global_max(struct problem *p, int64_t n, int64_t valid)
{
    const int64_t steps = p->shapes.x[0].dim[0], c = p->shapes.x[0].dim[1];
    for (int64_t k = 0; k < c && valid > 0; k++) {
        int64_t best = n * steps * c + k;
        for (int64_t t = 1; t < valid; t++)
            if (p->data.x[0][(n * steps + t) * c + k] > p->data.x[0][best])
                best = (n * steps + t) * c + k;
        p->y[n * c + k] = p->data.x[0][best];
        p->dx[0][best] += p->data.dy[n * c + k];
    }
}

/* Pools of one or two steps, whose means are exact. */
void known_steps(struct problem *p)
{
    const char *op = p->known->op;
    for (int64_t n = 0; n < BATCH; n++) {
        const int64_t valid = length_of(p, n);
        if (strcmp(op, "conv1d") == 0)
            conv1d(p, n, valid);
        if (strcmp(op, "global_max_pool1d") == 0)
            global_max(p, n, valid);
        if (strcmp(op, "last_step") == 0 && valid > 0)
            move(p, n, valid - 1, 0, 1);
        for (int64_t t = 0; t < valid; t++) {
            if (strcmp(op, "reverse_steps") == 0)
                move(p, n, t, valid - 1 - t, 1);
            if (strcmp(op, "max_pool1d") == 0) /* of one step */
                move(p, n, t, t, 1);
            if (strcmp(op, "average_pool1d") == 0 && t / 2 < valid / 2)
                move(p, n, t, t / 2, 0.5);
            if (strcmp(op, "global_average_pool1d") == 0) /* of 1, 2 or 4 steps */
                move(p, n, t, 0, 1.0 / (double)valid);
        }
    }
}
