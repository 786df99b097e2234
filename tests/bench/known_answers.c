/* The table of known answers, computed again with plain loops in double: it is not merely what
 * some device's kernels said. */
#include "known.h"

#include "base/random.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void *array(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);
    assert_non_null(memory);
    return memory;
}

static float *drawn(const struct lk_known_answer *known, int which, int64_t count)
{
    float *values = array(count, sizeof *values);
    lk_known_fill(known, which, count, values);
    return values;
}

/* --- convolutions ---------------------------------------------------------------------- */

struct conv {
    int64_t c, h, w, k, r, s, stride[2], pad[2], groups, oh, ow;
};

static struct conv describe(const struct problem *p)
{
    const char *o = p->known->options;
    const struct lk_shape *x = &p->shapes.x[0];
    struct conv c = {
        .c = x->dim[0],
        .h = x->dim[1],
        .w = x->dim[2],
        .k = known_number(o, "filters", 0, 0),
        .r = known_number(o, "kernel", 0, 3),
        .s = known_number(o, "kernel", 1, 3),
        .stride = {known_number(o, "stride", 0, 1), known_number(o, "stride", 1, 1)},
        .pad = {known_number(o, "padding", 0, 0), known_number(o, "padding", 1, 0)},
        .groups = known_number(o, "groups", 0, 1)};
    if (strstr(o, "padding=same")) { /* only with stride 1 */
        c.pad[0] = c.r / 2;
        c.pad[1] = c.s / 2;
    }
    c.oh = (c.h + 2 * c.pad[0] - c.r) / c.stride[0] + 1;
    c.ow = (c.w + 2 * c.pad[1] - c.s) / c.stride[1] + 1;
    return c;
}

/* Calls visit for every product of output (k, i, j): its element of x and of w. */
static void products(const struct conv *c, int64_t k, int64_t i, int64_t j, void *context,
                     void (*visit)(void *context, int64_t x, int64_t w))
{
    const int64_t channels = c->c / c->groups, first = k / (c->k / c->groups) * channels;
    for (int64_t n = 0; n < channels * c->r * c->s; n++) {
        const int64_t ch = n / (c->r * c->s), r = n / c->s % c->r, s = n % c->s;
        const int64_t y = i * c->stride[0] + r - c->pad[0],
                      x = j * c->stride[1] + s - c->pad[1];
        if (y >= 0 && y < c->h && x >= 0 && x < c->w)
            visit(context, ((first + ch) * c->h + y) * c->w + x, n * c->k + k);
    }
}

struct visit {
    const float *x, *w;
    double *dx, *dw, sum, dz;
};

static void add_product(void *context, int64_t x, int64_t w)
{
    struct visit *v = context;
    v->sum += (double)v->x[x] * v->w[w];
}

static void add_gradient(void *context, int64_t x, int64_t w)
{
    struct visit *v = context;
    v->dx[x] += v->dz * v->w[w];
    v->dw[w] += v->dz * v->x[x];
}

/* Output before pooling: i, j of the window of `size` at (oi, oj) whose value is largest, the
 * first of equals. */
static void conv_one(struct problem *p, const struct conv *c, int64_t n, int64_t k)
{
    const char *o = p->known->options;
    const int pool = strstr(o, "pool=true") ? 2 : 1;
    const bool relu = strstr(o, "relu") != NULL, bias = !strstr(o, "bias=false");
    const int64_t x_count = c->c * c->h * c->w, ph = c->oh / pool, pw = c->ow / pool;
    struct visit v = {
        p->data.x[0] + n * x_count, p->data.w[0], p->dx[0] + n * x_count, p->dw[0], 0, 0};
    for (int64_t out = 0; out < ph * pw; out++) {
        double best = -INFINITY;
        int64_t bi = 0, bj = 0;
        for (int t = 0; t < pool * pool; t++) {
            const int64_t i = out / pw * pool + t / pool, j = out % pw * pool + t % pool;
            v.sum = bias ? p->data.w[1][k] : 0;
            products(c, k, i, j, &v, add_product);
            if (v.sum > best) {
                best = v.sum;
                bi = i;
                bj = j;
            }
        }
        const int64_t at = (n * c->k + k) * ph * pw + out;
        p->y[at] = relu && best < 0 ? 0 : best;
        v.dz = relu && best <= 0 ? 0 : p->data.dy[at];
        products(c, k, bi, bj, &v, add_gradient);
        if (bias)
            p->dw[1][k] += v.dz;
    }
}

static void conv2d(struct problem *p)
{
    const struct conv c = describe(p);
    for (int64_t n = 0; n < BATCH; n++)
        for (int64_t k = 0; k < c.k; k++)
            conv_one(p, &c, n, k);
}

/* The convolution that a transposed one is the transpose of takes y for its image. */
static struct conv describe_transposed(const struct problem *p)
{
    const char *o = p->known->options;
    const struct lk_shape *x = &p->shapes.x[0], *y = &p->shapes.y;
    return (struct conv){
        .c = y->dim[0],
        .h = y->dim[1],
        .w = y->dim[2],
        .k = x->dim[0],
        .r = known_number(o, "kernel", 0, 3),
        .s = known_number(o, "kernel", 1, 3),
        .stride = {known_number(o, "stride", 0, 1), known_number(o, "stride", 1, 1)},
        .pad = {known_number(o, "padding", 0, 0), known_number(o, "padding", 1, 0)},
        .groups = known_number(o, "groups", 0, 1),
        .oh = x->dim[1],
        .ow = x->dim[2]};
}

struct spread {
    const float *w, *dy;
    double *y, *dw, x, dx;
};

static void add_spread(void *context, int64_t y, int64_t w)
{
    struct spread *s = context;
    s->y[y] += s->x * s->w[w];
    s->dx += (double)s->dy[y] * s->w[w];
    s->dw[w] += s->x * s->dy[y];
}

static void conv2d_transpose(struct problem *p)
{
    const struct conv c = describe_transposed(p);
    const int64_t plane = c.h * c.w, x_plane = c.oh * c.ow;
    for (int64_t at = 0; p->shapes.params == 2 && at < BATCH * c.c * plane; at++) {
        p->y[at] = p->data.w[1][at / plane % c.c];
        p->dw[1][at / plane % c.c] += p->data.dy[at];
    }
    for (int64_t at = 0; at < BATCH * c.k * x_plane; at++) {
        const int64_t first = at / (c.k * x_plane) * c.c * plane;
        struct spread s = {p->data.w[0], p->data.dy + first, p->y + first,
                           p->dw[0],     p->data.x[0][at],   0};
        products(&c, at / x_plane % c.k, at / c.ow % c.oh, at % c.ow, &s, add_spread);
        p->dx[0][at] = s.dx;
    }
}

/* --- dense ----------------------------------------------------------------------------- */

/* Also by transposed weights. */
static void dense(struct problem *p)
{
    const struct lk_shape *x = &p->shapes.x[0];
    const bool relu = strstr(p->known->options, "relu") != NULL;
    const int64_t c = x->dim[x->rank - 1], k = p->shapes.y.dim[x->rank - 1];
    const int64_t rows = BATCH * lk_shape_count(x) / c;
    const bool turned = strcmp(p->known->op, "dense_transpose") == 0;
    const int64_t of_c = turned ? 1 : k, of_k = turned ? c : 1; /* strides of the weights */
    for (int64_t at = 0; at < rows * k; at++) {
        const float *from = p->data.x[0] + at / k * c;
        double sum = p->shapes.params == 2 ? p->data.w[1][at % k] : 0;
        for (int64_t i = 0; i < c; i++)
            sum += (double)from[i] * p->data.w[0][i * of_c + at % k * of_k];
        p->y[at] = relu && sum < 0 ? 0 : sum;
        const double dz = relu && sum <= 0 ? 0 : p->data.dy[at];
        for (int64_t i = 0; i < c; i++) {
            p->dx[0][at / k * c + i] += dz * p->data.w[0][i * of_c + at % k * of_k];
            p->dw[0][i * of_c + at % k * of_k] += dz * from[i];
        }
        if (p->shapes.params == 2)
            p->dw[1][at % k] += dz;
    }
}

/* --- pools ----------------------------------------------------------------------------- */

static void pool(struct problem *p)
{
    const struct lk_shape *x = &p->shapes.x[0], *y = &p->shapes.y;
    const bool largest = strstr(p->known->op, "max_pool") != NULL;
    const bool global = y->rank == 1 || y->dim[1] * y->dim[2] == 1;
    const int64_t h = x->dim[1], w = x->dim[2];
    const int64_t oh = y->rank == 1 ? 1 : y->dim[1], ow = y->rank == 1 ? 1 : y->dim[2];
    const int64_t size = global ? h : known_number(p->known->options, "size", 0, 2);
    const int64_t stride = known_number(p->known->options, "stride", 0, size);
    const bool same = strstr(p->known->options, "same") != NULL;
    const int64_t top = same ? ((oh - 1) * stride + size - h) / 2 : 0;
    const int64_t left = same ? ((ow - 1) * stride + size - w) / 2 : 0;
    for (int64_t at = 0; at < BATCH * x->dim[0] * oh * ow; at++) {
        const int64_t plane = at / (oh * ow) * h * w;
        const int64_t i0 = at / ow % oh * stride - top, j0 = at % ow * stride - left;
        double sum = 0, best = -INFINITY;
        int64_t where = 0;
        for (int64_t t = 0; t < size * size; t++) {
            const int64_t i = i0 + t / size, j = j0 + t % size;
            if (i < 0 || i >= h || j < 0 || j >= w)
                continue;
            const double value = p->data.x[0][plane + i * w + j];
            sum += value;
            if (value > best) {
                best = value;
                where = plane + i * w + j;
            }
            if (!largest)
                p->dx[0][plane + i * w + j] += p->data.dy[at] / (double)(size * size);
        }
        p->y[at] = largest ? best : sum / (double)(size * size);
        if (largest)
            p->dx[0][where] += p->data.dy[at];
    }
}

/* --- elements ------------------------------------------------------------------------- */

static void add_or_multiply(struct problem *p)
{
    const bool add = strcmp(p->known->op, "add") == 0;
    const int64_t count = lk_shape_count(&p->shapes.x[0]);
    for (int64_t i = 0; i < BATCH * count; i++) {
        int64_t at[LK_MOST_INPUTS];
        for (int n = 0; n < p->shapes.inputs; n++)
            at[n] = i / (count / lk_shape_count(&p->shapes.x[n]));
        p->y[i] = add ? 0 : 1;
        for (int n = 0; n < p->shapes.inputs; n++) {
            const double x = p->data.x[n][at[n]];
            p->y[i] = add ? p->y[i] + x : p->y[i] * x;
            p->dx[n][at[n]] += p->data.dy[i] * (add ? 1 : p->data.x[1 - n][at[1 - n]]);
        }
    }
}

/* --- arrangements ---------------------------------------------------------------------- */

/* Along channels, which are the outermost axis. */
static void concat(struct problem *p)
{
    for (int64_t n = 0, to = 0; n < BATCH; n++)
        for (int i = 0; i < p->shapes.inputs; i++) {
            const int64_t each = lk_shape_count(&p->shapes.x[i]);
            for (int64_t at = n * each; at < (n + 1) * each; at++, to++) {
                p->y[to] = p->data.x[i][at];
                p->dx[i][at] = p->data.dy[to];
            }
        }
}

/* slice, crop and pad: number `place` of y is number place + start of x, axis by axis. */
static void shift(struct problem *p)
{
    const struct lk_shape *x = &p->shapes.x[0], *y = &p->shapes.y;
    const char *o = p->known->options;
    const bool mirrors = strstr(o, "reflect") != NULL;
    int start[3] = {0};
    if (sscanf(o, "cropping=[%d,%*d,%d", &start[1], &start[2]) == 0 &&
        sscanf(o, "c=[%d,%*d] h=[%d,%*d] w=[%d", &start[0], &start[1], &start[2]) == 0) {
        assert_int_equal(sscanf(o, "padding=[%d,%*d,%d,%*d] channels=[%d", &start[1], &start[2],
                                &start[0]) >= 2,
                         true);
        for (int i = 0; i < 3; i++)
            start[i] = -start[i];
    }
    for (int64_t to = 0; to < BATCH * lk_shape_count(y); to++) {
        int64_t rest = to, from = 0, step = 1;
        bool is_there = true;
        for (int i = 2; i >= 0; i--) {
            int64_t place = rest % y->dim[i] + start[i];
            if (mirrors && place < 0)
                place = -place;
            if (mirrors && place >= x->dim[i])
                place = 2 * x->dim[i] - 2 - place;
            is_there &= place >= 0 && place < x->dim[i];
            from += place * step;
            step *= x->dim[i];
            rest /= y->dim[i];
        }
        from += rest * step;
        p->y[to] = is_there ? p->data.x[0][from] : 2;
        if (is_there)
            p->dx[0][from] += p->data.dy[to];
    }
}

/* The share of pixel `from` in pixel `to` of an axis that is `size` times as long. */
static double share(bool is_linear, int64_t from, int64_t count, int64_t to, int64_t size)
{
    const double place = ((double)to + 0.5) / (double)size - 0.5;
    if (!is_linear)
        return to / size == from;
    if (place <= 0 || place >= (double)count - 1)
        return from == (place <= 0 ? 0 : count - 1);
    return fmax(0, 1 - fabs(place - (double)from));
}

static void upsample(struct problem *p)
{
    const int64_t *d = p->shapes.x[0].dim, h = d[1], w = d[2];
    const char *o = p->known->options;
    const int64_t down = known_number(o, "size", 0, 2), across = known_number(o, "size", 1, 2);
    const bool is_linear = strstr(o, "bilinear") != NULL;
    for (int64_t from = 0; from < BATCH * d[0] * h * w; from++)
        for (int64_t i = 0; i < h * down * w * across; i++) {
            const int64_t to = from / (h * w) * (h * down * w * across) + i;
            const double part = share(is_linear, from / w % h, h, i / (w * across), down) *
                                share(is_linear, from % w, w, i % (w * across), across);
            p->y[to] += part * p->data.x[0][from];
            p->dx[0][from] += part * p->data.dy[to];
        }
}

/* Rate 1/2 at seed, stream and step 0. */
static void dropout(struct problem *p)
{
    const int64_t count = lk_shape_count(&p->shapes.x[0]);
    const struct lk_random4 key = lk_random(0, LK_RANDOM_DROPOUT, 0, 0);
    const uint64_t seed = (uint64_t)key.v[1] << 32 | key.v[0];
    for (int64_t at = 0; at < BATCH * count; at++) {
        const int64_t n = at / count, e = at % count;
        const struct lk_random4 r =
            lk_random(seed, LK_RANDOM_DROPOUT, (uint32_t)n, (uint64_t)e / 4);
        const double scale = r.v[e % 4] >= 0x80000000u ? 2 : 0;
        p->y[at] = p->data.x[0][at] * scale;
        p->dx[0][at] = p->data.dy[at] * scale;
    }
}

/* --- the comparison -------------------------------------------------------------------- */

/* False: no loops for this operation. */
static bool compute(struct problem *p)
{
    const char *op = p->known->op;
    if (strcmp(op, "conv2d") == 0)
        conv2d(p);
    else if (strcmp(op, "conv2d_transpose") == 0)
        conv2d_transpose(p);
    else if (strcmp(op, "dense") == 0 || strcmp(op, "dense_transpose") == 0)
        dense(p);
    else if (strcmp(op, "embedding") == 0)
        known_embedding(p);
    else if (p->known->length)
        known_steps(p);
    else if (strstr(op, "pool"))
        pool(p);
    else if (strcmp(op, "add") == 0 || strcmp(op, "multiply") == 0)
        add_or_multiply(p);
    else if (strcmp(op, "dropout") == 0)
        dropout(p);
    else if (strcmp(op, "concat") == 0)
        concat(p);
    else if (strcmp(op, "slice") == 0 || strcmp(op, "crop") == 0 || strcmp(op, "pad") == 0)
        shift(p);
    else if (strcmp(op, "upsample") == 0)
        upsample(p);
    else
        return false;
    return true;
}

static uint64_t add_sum(uint64_t sum, const double *values, int64_t count)
{
    float *rounded = array(count, sizeof *rounded);
    for (int64_t i = 0; i < count; i++) {
        rounded[i] = (float)values[i];
        assert_true(rounded[i] == values[i] && fabs(values[i]) < 1 << 24);
    }
    sum = lk_known_hash(sum, rounded, count);
    free(rounded);
    return sum;
}

static void make(struct problem *p, const void *options)
{
    const struct lk_known_answer *known = p->known;
    struct lk_op_shapes *s = &p->shapes;
    const struct lk_op *op;
    assert_int_equal(lk_op_find(known->op, &op), LK_OK);
    *s = (struct lk_op_shapes){.options = options, .inputs = known->inputs ? known->inputs : 1};
    for (int i = 0; i < s->inputs; i++)
        s->x[i] = lk_known_shape(known, i);
    s->x_dtype[0] = known->tokens ? LK_I32 : LK_F32;
    if (known->tokens)
        lk_known_tokens(known, p->tokens = array(BATCH * lk_shape_count(&known->x), 4));
    if (known->length)
        lk_known_lengths(known, p->lengths = array(BATCH, 4));
    assert_int_equal(lk_options_parse(op->options, (void *)options, known->options), LK_OK);
    assert_int_equal(op->infer(s), LK_OK);
    const int64_t y_count = BATCH * lk_shape_count(&s->y);
    for (int i = 0; i < s->inputs; i++) {
        const int64_t x_count = BATCH * lk_shape_count(&s->x[i]);
        p->data.x[i] = drawn(known, LK_DRAW_X + i, x_count);
        p->dx[i] = array(x_count, sizeof(double));
    }
    for (int j = 0; j < s->params; j++) {
        const int64_t count = lk_shape_count(&s->param[j].shape);
        p->data.w[j] = drawn(known, LK_DRAW_W + j, count);
        p->dw[j] = array(count, sizeof(double));
    }
    p->data.dy = drawn(known, LK_DRAW_DY, y_count);
    p->y = array(y_count, sizeof(double));
}

static void clear(struct problem *p)
{
    free(p->tokens);
    free(p->lengths);
    for (int i = 0; i < LK_MOST_INPUTS; i++) {
        free(p->data.x[i]);
        free(p->dx[i]);
    }
    for (int j = 0; j < LK_MOST_PARAMS; j++) {
        free(p->data.w[j]);
        free(p->dw[j]);
    }
    free(p->data.dy);
    free(p->y);
}

static bool is_right(struct problem *p)
{
    const struct lk_op_shapes *s = &p->shapes;
    uint64_t y = add_sum(0, p->y, BATCH * lk_shape_count(&s->y)), dx = 0, dw = 0;
    for (int i = 0; i < s->inputs && !p->tokens; i++)
        dx = add_sum(dx, p->dx[i], BATCH * lk_shape_count(&s->x[i]));
    for (int j = 0; j < s->params; j++)
        dw = add_sum(dw, p->dw[j], lk_shape_count(&s->param[j].shape));
    if (y == p->known->y && dx == p->known->dx && dw == p->known->dw)
        return true;
    print_message("# %s %s: SUMS(0x%016" PRIx64 ", 0x%016" PRIx64 ", 0x%016" PRIx64 ")\n",
                  p->known->op, p->known->options, y, dx, dw);
    return false;
}

static void table_is_what_loops_compute(void **state)
{
    (void)state;
    int wrong = 0, computed = 0;
    for (const struct lk_known_answer *k = lk_known_answers; k->op; k++) {
        long long options[128] = {0}; /* more than any operation's */
        struct problem p = {.known = k};
        if (k->expect)
            continue;
        make(&p, options);
        if (!compute(&p))
            fail_msg("no loops for %s: its sums are only what kernels said", k->op);
        computed++;
        wrong += !is_right(&p);
        clear(&p);
    }
    assert_true(computed >= 16);
    assert_int_equal(wrong, 0);
}

/* Somebody who adds an operation adds its known answer to src/bench/selftest/known_answers.c.
 */
static void every_operation_has_an_answer(void **state)
{
    (void)state;
    for (int i = 0; lk_ops[i]; i++) {
        bool is_known = lk_ops[i]->is_view;
        for (const struct lk_known_answer *k = lk_known_answers; k->op; k++)
            is_known |= strcmp(k->op, lk_ops[i]->name) == 0;
        if (!is_known)
            fail_msg("no known answer of %s in src/bench/selftest/known_answers.c",
                     lk_ops[i]->name);
    }
}

static void sums_see_order_bits_and_zeros(void **state)
{
    (void)state;
    const float a[] = {1, 2, 0}, b[] = {2, 1, 0}, zero[] = {1, 2, -0.0f},
                near[] = {1, 2, 1e-38f};
    assert_true(lk_known_hash(0, a, 3) != lk_known_hash(0, b, 3));
    assert_true(lk_known_hash(0, a, 3) != lk_known_hash(0, near, 3));
    assert_true(lk_known_hash(0, a, 3) == lk_known_hash(0, zero, 3));
    assert_true(lk_known_hash(lk_known_hash(0, a, 1), a + 1, 2) == lk_known_hash(0, a, 3));
}

static void comparing_allows_a_few_units(void **state)
{
    (void)state;
    char text[160];
    const double expected[] = {0.5, 100};
    const float close[] = {0.5f + 0x1p-22f, 100 + 0x1p-16f}, far[] = {0.5f, 100.001f},
                not_a_number[] = {NAN, 100};
    lk_known_compare(close, expected, 2, LK_KNOWN_PLACES, text, sizeof text);
    assert_string_equal(text, "");
    lk_known_compare(far, expected, 2, LK_KNOWN_PLACES, text, sizeof text);
    assert_non_null(strstr(text, "element 1 of 2: expected 100, found 100.00"));
    lk_known_compare(not_a_number, expected, 2, LK_KNOWN_PLACES, text, sizeof text);
    assert_non_null(strstr(text, "element 0"));
    lk_known_compare(close, expected, 2, 0, text, sizeof text);
    assert_non_null(strstr(text, "element 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_what_loops_compute),
        cmocka_unit_test(every_operation_has_an_answer),
        cmocka_unit_test(sums_see_order_bits_and_zeros),
        cmocka_unit_test(comparing_allows_a_few_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
