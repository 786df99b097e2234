/* Walks the table of products: every row is run on shapes that it fits, in both classes, beside
 * sums in double; rows that name the same order of sums give the same bits; each is somewhere
 * what its family takes. */
#include "device/rig.h"
#include "products/kernel/partial_sums.h"
#include "products/layer.h"
#include "products/library/library.h"
#include <math.h>

enum { BATCH = 24, SHARDS = 2, MOST_ROWS = 64 };

static const struct subject {
    const char *name;
    int64_t groups, channels, filters, height, width, kernel, pad, stride;
    bool is_matrix, planes; /* planes: plane tiles, of images without dead lanes, or of numbers
                             * that lie in every lane */
} subjects[] = {
    {"few channels", 1, 3, 5, 6, 7, 3, 1, 1, false, false},
    {"3x3", 1, 20, 50, 6, 5, 3, 1, 1, false, false},
    {"many channels", 1, 200, 130, 4, 5, 3, 1, 1, false, false},
    {"1x1", 1, 24, 52, 5, 4, 1, 0, 1, false, false},
    {"5x5", 1, 5, 7, 7, 6, 5, 2, 1, false, false},
    {"strides", 1, 6, 10, 9, 8, 3, 1, 2, false, false},
    {"depthwise", 6, 1, 1, 7, 6, 3, 1, 1, false, false},
    {"matrix", 1, 30, 21, 1, 1, 1, 0, 1, true, false},
    {"small matrix", 1, 3, 5, 1, 1, 1, 0, 1, true, false},
    {"planes matrix", 1, 30, 150, 1, 1, 1, 0, 1, true, true},
    {"planes few units", 1, 30, 5, 1, 1, 1, 0, 1, true, true},
    {"planes", 1, 20, 50, 8, 8, 3, 1, 1, false, true},
    {"planes 1x1", 2, 24, 28, 4, 8, 1, 0, 1, false, true},
    {"planes depthwise", 6, 1, 1, 8, 8, 3, 1, 1, false, true},
    {"planes strides", 2, 5, 10, 16, 8, 3, 1, 2, false, true},
    {"planes depthwise strides", 6, 1, 1, 16, 8, 3, 1, 2, false, true},
};

static struct lk_product_shape shape_of(const struct subject *s, bool is_matrix)
{
    struct lk_product_shape shape = {.groups = s->groups,
                                     .channels = s->channels,
                                     .filters = s->filters,
                                     .bias = true,
                                     .is_matrix = is_matrix};
    for (int i = 0; i < 2; i++) {
        const int64_t in = i ? s->width : s->height;
        const int64_t out = (in + 2 * s->pad - s->kernel) / s->stride + 1;
        shape.axis[i] = (struct lk_product_axis){.in = in,
                                                 .out = out,
                                                 .all_out = out,
                                                 .taps = s->kernel,
                                                 .stride = s->stride,
                                                 .gap = 1,
                                                 .pad = s->pad};
    }
    return shape;
}

/* --- numbers, on the host and on the device --------------------------------------------- */

enum { X, W, BIAS, DZ, INPUTS };

/* One subject on one device. */
struct scene {
    struct lk_device *on;
    const struct subject *subject;
    struct lk_product_shape shape;
    struct lk_tiling tiling;
    int64_t lanes; /* samples of a tile */
    int64_t count[INPUTS];
    float *numbers[INPUTS];
    struct lk_buffer *buffers[INPUTS];
    double *expected[LK_PASSES];
    float *found[MOST_ROWS]; /* of each row that was run; NULL: it was not */
};

static int64_t result_count(const struct scene *s, int pass)
{
    return pass == LK_PASS_FORWARD ? s->count[DZ]
           : pass == LK_PASS_DATA  ? s->count[X]
                                   : s->count[W] * s->tiling.shards;
}

static void *zeros(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);
    assert_non_null(memory);
    return memory;
}

static void draw(struct scene *s)
{
    uint32_t state = 7;
    for (int i = 0; i < INPUTS; i++) {
        const size_t bytes = (size_t)s->count[i] * sizeof(float);
        s->numbers[i] = zeros(s->count[i], sizeof(float));
        const bool is_spread = i == X && s->subject->planes && s->subject->is_matrix;
        for (int64_t j = 0; j < s->count[i]; j++) {
            if (!is_spread || j % s->lanes == 0)
                state = state * 1664525u + 1013904223u;
            s->numbers[i][j] = (float)(state >> 8) / (1 << 23) - 1;
        }
        assert_ok(lk_buffer_create(s->on, bytes, &s->buffers[i]));
        assert_ok(lk_buffer_write(s->buffers[i], 0, bytes, s->numbers[i]));
    }
}

/* All products of one output pixel of one filter and sample, in all three passes. */
static void expect_pixel(struct scene *s, int64_t tile, int64_t lane, int64_t k, int64_t i,
                         int64_t j)
{
    const struct lk_product_axis *y = &s->shape.axis[0], *x = &s->shape.axis[1];
    const int64_t lanes = s->lanes, all = s->shape.groups * s->shape.filters;
    const int64_t group = k / s->shape.filters, c_all = s->shape.groups * s->shape.channels;
    const int64_t at = (((tile * all + k) * y->out + i) * x->out + j) * lanes + lane;
    const int64_t shard = tile / s->tiling.shard_tiles;
    s->expected[LK_PASS_FORWARD][at] = s->numbers[BIAS][k];
    for (int64_t c = 0; c < s->shape.channels; c++)
        for (int64_t r = 0; r < y->taps; r++)
            for (int64_t q = 0; q < x->taps; q++) {
                const int64_t h = i * y->stride + r - y->pad, v = j * x->stride + q - x->pad;
                if (h < 0 || h >= y->in || v < 0 || v >= x->in)
                    continue;
                const int64_t channel = group * s->shape.channels + c;
                const int64_t from =
                    (((tile * c_all + channel) * y->in + h) * x->in + v) * lanes + lane;
                const int64_t w = ((c * y->taps + r) * x->taps + q) * all + k;
                const double factor = s->numbers[W][w], dz = s->numbers[DZ][at];
                s->expected[LK_PASS_FORWARD][at] += factor * s->numbers[X][from];
                s->expected[LK_PASS_DATA][from] += factor * dz;
                s->expected[LK_PASS_WEIGHTS][shard * s->count[W] + w] +=
                    dz * s->numbers[X][from];
            }
}

static void expect(struct scene *s)
{
    const struct lk_product_shape *of = &s->shape;
    for (int pass = 0; pass < LK_PASSES; pass++)
        s->expected[pass] = zeros(result_count(s, pass), sizeof(double));
    for (int64_t tile = 0; tile < s->tiling.tiles; tile++)
        for (int64_t k = 0; k < of->groups * of->filters; k++)
            for (int64_t p = 0; p < of->axis[0].out * of->axis[1].out; p++)
                for (int64_t lane = 0; lane < s->lanes; lane++)
                    expect_pixel(s, tile, lane, k, p / of->axis[1].out, p % of->axis[1].out);
}

static void begin(struct scene *s, struct lk_device *on, const struct subject *subject)
{
    *s = (struct scene){.on = on,
                        .subject = subject,
                        .shape = shape_of(subject, subject->is_matrix),
                        .tiling = subject->planes
                                      ? lk_tiling_make_planes(lk_device_info(on), BATCH,
                                                              subject->is_matrix ? 1 : SHARDS)
                                      : lk_tiling_make(lk_device_info(on), BATCH, SHARDS)};
    s->lanes = subject->planes && !subject->is_matrix ? 1 : s->tiling.lanes;
    const struct lk_product_axis *y = &s->shape.axis[0], *x = &s->shape.axis[1];
    const int64_t samples = s->tiling.tiles * s->lanes;
    s->count[X] = samples * subject->groups * subject->channels * y->in * x->in;
    s->count[W] = subject->channels * y->taps * x->taps * subject->groups * subject->filters;
    s->count[BIAS] = subject->groups * subject->filters;
    s->count[DZ] = samples * s->count[BIAS] * y->out * x->out;
    draw(s);
    expect(s);
}

static void end(struct scene *s)
{
    for (int i = 0; i < INPUTS; i++) {
        free(s->numbers[i]);
        lk_buffer_destroy(s->buffers[i]);
    }
    for (int i = 0; i < LK_PASSES; i++)
        free(s->expected[i]);
    for (int i = 0; i < MOST_ROWS; i++)
        free(s->found[i]);
}

/* --- one row ---------------------------------------------------------------------------- */

struct trial {
    const struct lk_product *row; /* NULL: it does not fit */
    struct lk_product_shape shape;
    struct lk_product_job job;
    struct lk_product_setup setup;
    struct lk_arena arena;
    struct lk_matrix_transpose turn;
    void *state;
    struct lk_buffer *result, *workspace, *packed;
    bool has_packed;
};

static void enqueue(const struct scene *s, struct trial *t)
{
    const struct lk_product_run run = {.x = s->buffers[X],
                                       .w = s->buffers[W],
                                       .bias = s->buffers[BIAS],
                                       .dz = s->buffers[DZ],
                                       .y = t->result,
                                       .dx = t->result,
                                       .dw = t->result,
                                       .dw_stride = s->count[W],
                                       .workspace = t->workspace,
                                       .packed = t->packed,
                                       .weights_are_new = !t->has_packed};
    if (t->turn.kernel)
        assert_ok(lk_matrix_transpose_enqueue(&t->setup, &t->turn, run.dz, NULL, t->workspace));
    assert_ok(t->row->verbs->enqueue(&t->setup, t->state, &run));
    t->has_packed = true;
}

static void finish(struct trial *t)
{
    lk_buffer_destroy(t->result);
    lk_buffer_destroy(t->workspace);
    lk_buffer_destroy(t->packed);
    lk_choices_destroy(t->setup.choices);
    lk_arena_clear(&t->arena);
}

static void compare(const struct scene *s, const struct lk_product *row, const float *found)
{
    const int64_t count = result_count(s, (int)row->pass);
    const double *expected = s->expected[row->pass];
    const double most = row->math == LK_MATH_FAST     ? 5e-3
                        : row->math == LK_MATH_NORMAL ? 1e-4
                                                      : 1e-5;
    double error = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        error += (found[i] - expected[i]) * (found[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    if (!(sqrt(error) <= most * sqrt(norm)) || norm == 0)
        fail_msg("%s, pass %d, %s: an error of %g", row->name, row->pass, s->subject->name,
                 sqrt(error / norm));
}

static struct lk_product_setup setup_of(const struct scene *s, struct lk_arena *arena)
{
    struct lk_product_setup setup = {.device = s->on,
                                     .node = "a row",
                                     .problem = s->subject->name,
                                     .tiling = s->tiling,
                                     .real = LK_F32,
                                     .arena = arena};
    assert_ok(lk_choices_create(LK_MATH_FAST, &setup.choices));
    return setup;
}

/* Announces its kernels where it fits. A matrix goes by the kernels of convolutions, too. */
static void prepare(const struct scene *s, const struct lk_product *row, struct trial *t)
{
    t->shape = shape_of(s->subject, s->subject->is_matrix && row->is_only);
    t->job = (struct lk_product_job){.product = row, .shape = &t->shape, .pass = row->pass};
    t->setup = setup_of(s, &t->arena);
    const bool is_foreign =
        s->subject->planes && s->subject->is_matrix && row->pass != LK_PASS_FORWARD;
    if (is_foreign || !lk_product_fits(&t->setup, row, &t->job)) {
        lk_choices_destroy(t->setup.choices);
        return;
    }
    assert_true(row->verbs->cost(&t->setup, &t->job) > 0);
    t->row = row;
    t->turn.turns = row->takes == LK_DZ_TRANSPOSED;
    if (t->turn.turns)
        assert_ok(lk_matrix_transpose_prepare(&t->setup, &t->shape, &t->turn));
    t->job.first = t->turn.count;
    assert_ok(row->verbs->prepare(&t->setup, &t->job, &t->state));
}

/* Twice, since results are overwritten and the workspace is not clean any more. */
static float *run(const struct scene *s, struct trial *t)
{
    const size_t bytes = (size_t)result_count(s, (int)t->row->pass) * sizeof(float);
    const size_t workspace = (size_t)(t->job.first + t->job.count + 16) * sizeof(float);
    float *found = zeros((int64_t)bytes, 1);
    assert_ok(lk_buffer_create(s->on, bytes, &t->result));
    assert_ok(lk_buffer_create(s->on, workspace, &t->workspace));
    if (t->job.packed > 0)
        assert_ok(lk_buffer_create(s->on, (size_t)t->job.packed * sizeof(float), &t->packed));
    for (int turn = 0; turn < 2; turn++) {
        enqueue(s, t);
        assert_ok(lk_buffer_read(t->result, 0, bytes, found));
        compare(s, t->row, found);
    }
    return found;
}

/* Whether it is what its family takes, asked for by name. */
static bool is_taken(const struct scene *s, const struct lk_product *row,
                     const struct lk_product_job *job)
{
    struct lk_arena arena = {0};
    struct lk_product_selection way = {0};
    struct lk_product_setup setup = setup_of(s, &arena);
    assert_ok(lk_choices_prefer(setup.choices, row->name));
    assert_ok(lk_product_choose(&setup, job, &way));
    lk_choices_destroy(setup.choices);
    return way.product == row;
}

static void compare_orders(const struct scene *s)
{
    for (int a = 0; lk_products[a].name; a++)
        for (int b = a + 1; lk_products[b].name; b++) {
            const struct lk_product *one = &lk_products[a], *other = &lk_products[b];
            if (!s->found[a] || !s->found[b] || one->pass != other->pass ||
                strcmp(one->order, other->order) != 0)
                continue;
            if (memcmp(s->found[a], s->found[b],
                       (size_t)result_count(s, (int)one->pass) * sizeof(float)) != 0)
                fail_msg("%s and %s, %s: other bits, though both say '%s'", one->name,
                         other->name, s->subject->name, one->order);
        }
}

/* Kernels of all rows are built at once. */
static void walk_subject(struct scene *s, bool ran[MOST_ROWS], bool taken[MOST_ROWS])
{
    struct trial *trials = zeros(MOST_ROWS, sizeof *trials);
    for (int n = 0; lk_products[n].name; n++)
        prepare(s, &lk_products[n], &trials[n]);
    assert_ok(lk_device_build(s->on));
    for (int n = 0; lk_products[n].name; n++) {
        if (!trials[n].row)
            continue;
        s->found[n] = run(s, &trials[n]);
        ran[n] = true;
        taken[n] |= is_taken(s, trials[n].row, &trials[n].job);
        finish(&trials[n]);
    }
    free(trials);
}

static void walk(struct lk_device *on, bool ran[MOST_ROWS], bool taken[MOST_ROWS])
{
    for (int i = 0; i < LK_COUNT(subjects); i++) {
        struct scene s;
        if (subjects[i].planes && lk_device_info(on)->vector == 1)
            continue;
        begin(&s, on, &subjects[i]);
        walk_subject(&s, ran, taken);
        compare_orders(&s);
        end(&s);
    }
}

static void every_row_is_right(void **state)
{
    bool ran[MOST_ROWS] = {false}, taken[MOST_ROWS] = {false};
    (void)state;
    setenv("LOCKSTEP_MATRIX", "emulated", 1);
    for (int i = 0; i < LK_COUNT(classes); i++) {
        struct lk_device *on = open_class(classes[i]);
        walk(on, ran, taken);
        lk_device_close(on);
    }
    for (int n = 0; lk_products[n].name; n++) {
        if (!ran[n])
            fail_msg("%s, pass %d, was never run: give it a subject", lk_products[n].name,
                     lk_products[n].pass);
        if (!taken[n])
            fail_msg("%s, pass %d, is never taken", lk_products[n].name, lk_products[n].pass);
    }
}

/* --- the table itself ------------------------------------------------------------------- */

static void rows_are_well_formed(void **state)
{
    (void)state;
    int count = 0;
    for (const struct lk_product *a = lk_products; a->name; a++, count++) {
        assert_true(strlen(a->name) + LK_BLOCKING_BYTES < LK_CHOICE_TEXT_BYTES);
        assert_string_equal(lk_candidate_blocking(a->name), ""); /* no word begins a digit */
        assert_true(*a->order);
        assert_non_null(a->verbs->cost);
        assert_true(a->pass != LK_PASS_FORWARD || a->takes == LK_DZ_STORED);
        for (const struct lk_product *b = a + 1; b->name; b++) {
            assert_false(a->pass == b->pass && strcmp(a->name, b->name) == 0);
            /* what a family may be asked for must not depend on which row it takes */
            if (a->pass == b->pass && lk_candidate_is_kin(a->name, b->name)) {
                assert_int_equal(a->math, b->math);
                assert_int_equal(a->takes, b->takes);
                assert_int_equal(a->gates, b->gates);
            }
        }
    }
    assert_true(count > 30 && count <= MOST_ROWS);
}

/* Names that runs of older versions have kept. */
static void old_names_are_honoured(void **state)
{
    static const struct {
        const char *kept, *taken;
        enum lk_pass pass;
        int subject;
    } cases[] = {
        {"direct", "direct gather", LK_PASS_FORWARD, 1},
        {"direct 4x6", "direct gather 4x6", LK_PASS_FORWARD, 1},
        {"direct 12x2", "direct pointwise 12x2", LK_PASS_DATA, 3},
        {"direct 5x5", "direct gather", LK_PASS_FORWARD, 1},
        {"direct", "direct turned", LK_PASS_WEIGHTS, 1},
        {"direct", "direct lanewise", LK_PASS_WEIGHTS, 0},
        {"direct", "direct staged", LK_PASS_WEIGHTS, 4},
        {"winograd4", "winograd4 fused", LK_PASS_DATA, 1},
        {"winograd4", "winograd4 fused", LK_PASS_WEIGHTS, 1},
        {"winograd2", "winograd2 rounds", LK_PASS_WEIGHTS, 2},
        {"clblast", "clblast", LK_PASS_FORWARD, 3},
        {"direct lanewise", "direct turned", LK_PASS_WEIGHTS, 1}, /* what it fits no more */
    };
    (void)state;
    setenv("LOCKSTEP_VECTOR", "16", 1);
    struct lk_device *on = open_class("cpu");
    unsetenv("LOCKSTEP_VECTOR");
    for (int i = 0; i < LK_COUNT(cases); i++) {
        struct lk_choice choice;
        char text[LK_CHOICE_TEXT_BYTES];
        struct lk_arena arena = {0};
        struct lk_product_selection way = {0};
        const struct scene s = {.on = on,
                                .subject = &subjects[cases[i].subject],
                                .tiling = lk_tiling_make(lk_device_info(on), BATCH, SHARDS)};
        const struct lk_product_shape shape = shape_of(s.subject, false);
        const struct lk_product_job job = {.shape = &shape, .pass = cases[i].pass};
        const struct lk_product_setup setup = setup_of(&s, &arena);
        lk_product_describe(&setup, &job, &choice);
        assert_ok(lk_choices_set(setup.choices, choice.key, cases[i].kept));
        assert_ok(lk_product_choose(&setup, &job, &way));
        assert_true(lk_choices_find(setup.choices, choice.key, text));
        assert_string_equal(text, cases[i].taken);
        assert_true(lk_candidate_is_same(way.product->name, text));
        assert_string_equal(way.blocking, lk_candidate_blocking(text));
        lk_choices_destroy(setup.choices);
    }
    lk_device_close(on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_well_formed),
        cmocka_unit_test(old_names_are_honoured),
        cmocka_unit_test(every_row_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
