/* A case's random inputs, the oracle's answers, and the comparison with them. */
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a case's numbers ------------------------------------------------------------------ */

static uint64_t random_state;

/* source: Knuth's MMIX generator */
double trial_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 40) * 0x1p-24;
}

static void fill(const struct trial *t, double *values, int64_t count, double low, double high)
{
    for (int64_t i = 0; i < count; i++) {
        const double unit = trial_random();
        values[i] = t->c->integers ? floor(unit * 7) - 3 : (float)(low + unit * (high - low));
    }
}

static void round_all(double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = op_round_to_half(values[i]);
}

int64_t trial_x_count(const struct trial *t, int i)
{
    return t->samples * lk_shape_count(&t->shapes.x[i]);
}

int64_t trial_y_count(const struct trial *t)
{
    return t->samples * lk_shape_count(&t->shapes.y);
}

int64_t trial_w_count(const struct trial *t, int j)
{
    return lk_shape_count(&t->shapes.param[j].shape);
}

bool trial_has_tracked(const struct trial *t)
{
    for (int j = 0; j < t->shapes.params; j++)
        if (t->shapes.param[j].is_tracked)
            return true;
    return false;
}

void trial_make_arrays(const struct trial *t, struct rig_arrays *a)
{
    *a = (struct rig_arrays){.y = rig_doubles(trial_y_count(t)),
                             .dy = rig_doubles(trial_y_count(t))};
    for (int i = 0; i < t->shapes.inputs; i++) {
        a->x[i] = rig_doubles(trial_x_count(t, i));
        a->dx[i] = t->shapes.x_dtype[i] == LK_I32 ? NULL : rig_doubles(trial_x_count(t, i));
    }
    for (int j = 0; j < t->shapes.params; j++) {
        a->w[j] = rig_doubles(trial_w_count(t, j));
        a->dw[j] = rig_doubles(trial_w_count(t, j) * t->shards);
    }
}

void trial_clear_arrays(struct rig_arrays *a)
{
    free(a->y);
    free(a->dy);
    for (int i = 0; i < LK_MOST_INPUTS; i++) {
        free(a->x[i]);
        free(a->dx[i]);
    }
    for (int j = 0; j < LK_MOST_PARAMS; j++) {
        free(a->w[j]);
        free(a->dw[j]);
    }
}

static void make_inputs(struct trial *t)
{
    const bool limits = t->c->low != 0 || t->c->high != 0;
    const double low = limits ? t->c->low : -1, high = limits ? t->c->high : 1;
    random_state = (uint64_t)t->samples * 1000003 + (uint64_t)t->shards;
    trial_make_arrays(t, &t->in);
    for (int i = 0; i < t->shapes.inputs; i++) {
        if (t->shapes.x_dtype[i] != LK_I32)
            fill(t, t->in.x[i], trial_x_count(t, i), low, high);
        else
            for (int64_t k = 0; k < trial_x_count(t, i); k++)
                t->in.x[i][k] = floor(trial_random() * t->c->classes[i]);
    }
    for (int j = 0; j < t->shapes.params; j++)
        fill(t, t->in.w[j], trial_w_count(t, j), -1, 1);
    fill(t, t->in.dy, trial_y_count(t), -1, 1);
    if (t->oracle->arrange)
        t->oracle->arrange(&t->shapes, t->samples, t->in.x, t->in.w);
    for (int i = 0; i < t->shapes.inputs && t->is_half; i++)
        if (t->shapes.x_dtype[i] != LK_I32)
            round_all(t->in.x[i], trial_x_count(t, i));
    if (t->is_half)
        round_all(t->in.dy, trial_y_count(t));
}

/* --- the oracle, a shard at a time ----------------------------------------------------- */

/* The part of a shard in arrays over all samples. */
struct shard {
    struct op_problem problem;
    double *x[LK_MOST_INPUTS], *y, *dy, *dx[LK_MOST_INPUTS], *dw[LK_MOST_PARAMS];
};

static struct shard take_shard(const struct trial *t, int s)
{
    const int64_t each = (t->batch + t->shards - 1) / t->shards, first = s * each;
    int64_t samples = t->samples - first;
    samples = samples < 0 ? 0 : samples > each ? each : samples;
    struct shard shard = {.problem = {.options = t->options,
                                      .shapes = &t->shapes,
                                      .samples = samples,
                                      .first = FIRST_SAMPLE + first,
                                      .training = t->training,
                                      .is_frozen = t->c->frozen,
                                      .seed = SEED,
                                      .stream = STREAM,
                                      .step = STEP}};
    if (samples == 0)
        return shard;
    const int64_t at = first * lk_shape_count(&t->shapes.y);
    shard.y = t->want.y + at;
    shard.dy = t->shapes.is_loss ? NULL : t->in.dy + at;
    for (int i = 0; i < t->shapes.inputs; i++) {
        const int64_t from = first * lk_shape_count(&t->shapes.x[i]);
        shard.x[i] = t->in.x[i] + from;
        shard.dx[i] = t->want.dx[i] ? t->want.dx[i] + from : NULL;
    }
    for (int j = 0; j < t->shapes.params; j++)
        shard.dw[j] = t->want.dw[j] + s * trial_w_count(t, j);
    return shard;
}

double trial_objective(const struct trial *t, int64_t samples, const double *y,
                       const double *dy)
{
    const int64_t count = lk_shape_count(&t->shapes.y);
    double sum = 0;
    for (int64_t i = 0; i < samples * count; i++)
        sum += !t->shapes.is_loss ? y[i] * dy[i] : i % count == 0 ? y[i] : 0;
    return sum;
}

/* The derivative of the oracle's objective by *value, by central differences. */
static double slope(const struct trial *t, const struct shard *shard, double *value, double *y)
{
    const double h = 1e-5, kept = *value;
    double at[2];
    for (int side = 0; side < 2; side++) {
        *value = kept + (side ? h : -h);
        memset(y, 0,
               sizeof *y * (size_t)(shard->problem.samples * lk_shape_count(&t->shapes.y)));
        t->oracle->forward(&shard->problem, (const double *const *)shard->x,
                           (const double *const *)t->in.w, y);
        at[side] = trial_objective(t, shard->problem.samples, y, shard->dy);
    }
    *value = kept;
    return (at[1] - at[0]) / (2 * h);
}

static void differentiate(const struct trial *t, const struct shard *shard)
{
    const int64_t n = shard->problem.samples;
    double *y = rig_doubles(n * lk_shape_count(&t->shapes.y));
    for (int i = 0; i < t->shapes.inputs; i++)
        for (int64_t k = 0; shard->dx[i] && k < n * lk_shape_count(&t->shapes.x[i]); k++)
            shard->dx[i][k] = slope(t, shard, &shard->x[i][k], y);
    for (int j = 0; j < t->shapes.params; j++)
        for (int64_t k = 0; k < trial_w_count(t, j); k++)
            shard->dw[j][k] = slope(t, shard, &t->in.w[j][k], y);
    free(y);
}

static void ask_oracle(struct trial *t)
{
    trial_make_arrays(t, &t->want);
    for (int s = 0; s < t->shards; s++) {
        const struct shard shard = take_shard(t, s);
        if (shard.problem.samples == 0)
            continue;
        t->oracle->forward(&shard.problem, (const double *const *)shard.x,
                           (const double *const *)t->in.w, shard.y);
        if (!t->training)
            continue;
        if (t->oracle->backward)
            t->oracle->backward(&shard.problem, (const double *const *)shard.x,
                                (const double *const *)t->in.w, shard.dy, shard.dx, shard.dw);
        else
            differentiate(t, &shard);
    }
}

/* --- comparisons ----------------------------------------------------------------------- */

static void compare(const char *name, const double *got, const double *want, int64_t count,
                    double tolerance)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(want[i]))
            largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < count; i++) {
        if (got[i] == want[i] || (isnan(got[i]) && isnan(want[i])))
            continue; /* infinities and NaN included */
        const double error = fabs(got[i] - want[i]);
        if (!(error <= tolerance * largest))
            rig_fail("%s[%lld] is %.17g, the oracle says %.17g (off by %.3g, allowed %.3g)",
                     name, (long long)i, got[i], want[i], error, tolerance * largest);
    }
}

static void compare_bits(const char *what, const char *name, const double *a, const double *b,
                         int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            rig_fail("%s: %s[%lld] is %.17g, was %.17g", what, name, (long long)i, b[i], a[i]);
}

void trial_compare(const struct trial *t, enum lk_dtype real, const struct rig_arrays *got)
{
    const double epsilon = real == LK_F64 ? 0x1p-52 : 0x1p-23;
    const double factor = t->c->tolerance ? t->c->tolerance : 64;
    const double exact = t->c->integers ? 0 : 1;
    const double numeric = t->oracle->backward ? 0 : 1e-8;
    /* Results are rounded to halves once, that of softmax twice. */
    const double half = t->is_half ? 0x1p-10 : 0, of_loss = t->shapes.is_loss ? 0 : half;
    char name[64];
    compare("y", got->y, t->want.y, trial_y_count(t), exact * (factor * epsilon + of_loss));
    for (int i = 0; i < t->shapes.inputs && t->training; i++) {
        snprintf(name, sizeof name, "dx[%d]", i);
        if (got->dx[i])
            compare(name, got->dx[i], t->want.dx[i], trial_x_count(t, i),
                    exact * (factor * epsilon + half) + numeric);
    }
    for (int j = 0; j < t->shapes.params && t->training && !t->c->frozen; j++)
        for (int s = 0; s < t->shards; s++) {
            const int64_t count = trial_w_count(t, j);
            snprintf(name, sizeof name, "shard %d's dw[%d] (%s)", s, j,
                     t->shapes.param[j].name);
            compare(name, got->dw[j] + s * count, t->want.dw[j] + s * count, count,
                    exact * (factor + (double)t->samples) * epsilon + numeric);
        }
}

void trial_compare_bits(const struct trial *t, const char *what, const struct rig_arrays *a,
                        const struct rig_arrays *b, struct rig_wants wants)
{
    compare_bits(what, "y", a->y, b->y, trial_y_count(t));
    for (int i = 0; i < t->shapes.inputs && wants.dx; i++)
        if (a->dx[i])
            compare_bits(what, "dx", a->dx[i], b->dx[i], trial_x_count(t, i));
    for (int j = 0; j < t->shapes.params && wants.dw; j++)
        compare_bits(what, "dw", a->dw[j], b->dw[j], trial_w_count(t, j) * t->shards);
}

void trial_make(struct trial *t)
{
    make_inputs(t);
    ask_oracle(t);
}

void trial_clear(struct trial *t)
{
    trial_clear_arrays(&t->in);
    trial_clear_arrays(&t->want);
}
