/* Runs every case of an operation's test on every class of kernels and number type. */
#include "driver.h"

#include "once.h"
#include "products/gpu/units.h"
#include "rig.h"
#include "trial.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- devices --------------------------------------------------------------------------- */

enum { CPU_16, CPU_8, CPU_4, GPU, PART_OF_CPU, DEVICES };

static struct lk_device *devices[DEVICES];

static const struct configuration {
    int device;
    enum lk_dtype real;
    bool usual; /* for every case; the others for thorough ones */
    bool half;  /* for cases that are made of halves, and no others */
} configurations[] = {
    {CPU_16, LK_F32, true, false},  {CPU_8, LK_F64, true, false},
    {GPU, LK_F32, true, false},     {CPU_8, LK_F32, false, false},
    {CPU_4, LK_F32, false, false},  {CPU_4, LK_F64, false, false},
    {CPU_16, LK_F64, false, false}, {GPU, LK_F64, false, false},
    {CPU_16, LK_F32, true, true},   {GPU, LK_F32, true, true},
    {CPU_8, LK_F32, false, true},
};

/* Half of the first device as a device of its own, where it can be cut. */
static struct lk_device *open_part(void)
{
    struct lk_device *part = NULL;
    char spec[32];
    snprintf(spec, sizeof spec, "%d/2", lk_device_info(devices[CPU_16])->index);
    if (lk_device_open(spec, 0, &part) != LK_OK)
        lk_error_clear();
    return part;
}

/* Where there are no matrix units something has to stand in for them. */
static void find_matrix_units(struct lk_device *device)
{
    struct lk_product_setup setup = {.device = device, .real = LK_F32};
    rig_ok(lk_choices_create(LK_MATH_FAST, &setup.choices), "choices");
    if (!lk_gpu_matrix(&setup)) {
        setenv("LOCKSTEP_MATRIX", "emulated", 1);
        *lk_device_matrix(device) = -1;
    }
    lk_choices_destroy(setup.choices);
}

/* A device that is a GPU is tested with the GPU class alone, a CPU with both. Where every
 * kernel is tested once, the vectors are not of 16 but such as the device asks for. */
static int open_devices(void **state)
{
    (void)state;
    static const char *const vectors[] = {[CPU_16] = "16", [CPU_8] = "8", [CPU_4] = "4"};
    snprintf(rig_where, sizeof rig_where, "opening devices");
    unsetenv("LOCKSTEP_CLASS");
    rig_ok(lk_device_open(NULL, 0, &devices[GPU]), "open");
    const bool is_gpu = lk_device_info(devices[GPU])->device_class == LK_CLASS_GPU;
    if (!is_gpu) {
        lk_device_close(devices[GPU]);
        setenv("LOCKSTEP_CLASS", "gpu", 1);
        rig_ok(lk_device_open(NULL, 0, &devices[GPU]), "open");
    }
    find_matrix_units(devices[GPU]);
    if (is_gpu)
        return 0;
    setenv("LOCKSTEP_CLASS", "cpu", 1);
    for (int i = CPU_4; i >= CPU_16; i--) {
        if (i == CPU_16 && once_is_asked())
            unsetenv("LOCKSTEP_VECTOR");
        else
            setenv("LOCKSTEP_VECTOR", vectors[i], 1);
        rig_ok(lk_device_open(NULL, 0, &devices[i]), "open");
    }
    devices[PART_OF_CPU] = open_part();
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES; i++)
        lk_device_close(devices[i]);
    return 0;
}

/* --- runs ------------------------------------------------------------------------------ */

/* Whether a pass has taken the algorithm. */
struct search {
    const char *name;
    bool found;
};

static void look(void *context, const char *key, const char *text)
{
    struct search *search = context;
    (void)key;
    search->found |= lk_candidate_answers(text, search->name);
}

static struct lk_choices *make_choices(const char *algorithm)
{
    struct lk_choices *choices;
    if (!algorithm)
        return NULL;
    const bool reduced = lk_candidate_is_same(algorithm, LK_GPU_MATRIX_NAME);
    rig_ok(lk_choices_create(reduced ? LK_MATH_FAST : LK_MATH_NORMAL, &choices), "choices");
    rig_ok(lk_choices_prefer(choices, algorithm), "choices");
    return choices;
}

/* Prepares by rule, or where it can with an algorithm; whether a pass has taken that. */
static bool prepare_with(const char *algorithm, const struct trial *t, struct rig *rig,
                         struct lk_device *device, enum lk_dtype real, struct rig_wants wants)
{
    struct search search = {.name = algorithm};
    const struct lk_op_setup setup = {
        .choices = make_choices(algorithm),
        .node = t->op->name,
        .options = t->options,
        .shapes = t->shapes,
        .tiling = t->c->planes
                      ? lk_tiling_make_planes(lk_device_info(device), t->batch, t->shards)
                      : lk_tiling_make(lk_device_info(device), t->batch, t->shards),
        .real = real,
        .stores_half = t->is_half,
        .seed = SEED,
        .stream = STREAM,
        .asks_gate = {t->is_gated},
        .dy_is_gated = t->is_gated && t->shapes.is_gate,
    };
    rig_prepare(rig, device, t->op, &setup, t->samples, wants);
    if (algorithm)
        lk_choices_each(setup.choices, look, &search);
    return search.found;
}

/* A device of less local memory than OpenCL asks for has not every algorithm. */
static bool is_small(const struct lk_device *device)
{
    return lk_device_info(device)->local_bytes < 32 << 10;
}

static void prepare_rig(const struct trial *t, struct rig *rig, struct lk_device *device,
                        enum lk_dtype real, struct rig_wants wants)
{
    const char *algorithm = t->c->algorithm;
    if (!prepare_with(algorithm, t, rig, device, real, wants) && algorithm && real == LK_F32) {
        if (!is_small(device))
            rig_fail("no pass takes the algorithm %s", algorithm);
        rig_close(rig);
        prepare_with(NULL, t, rig, device, real, wants);
    }
}

static void build_rig(const struct trial *t, struct rig *rig, struct rig_wants wants)
{
    rig_build(rig, wants);
    if (t->shapes.is_loss)
        rig_set_loss_scale(rig, t->is_half ? HALF_LOSS_SCALE : 1);
    rig->run.step = STEP;
    rig->run.first_sample = FIRST_SAMPLE;
}

static void run(struct trial *t, struct rig *rig, struct rig_arrays *got)
{
    trial_make_arrays(t, got);
    rig_write(rig, &t->in);
    rig_forward(rig, got->y);
    if (rig->setup.training)
        rig_backward(rig, t->in.dy, got->dx, got->dw);
}

/* Runs once more, prepared anew on `device` for `wants`: the bits must be those of `got`. */
static void run_again(struct trial *t, struct lk_device *device, enum lk_dtype real,
                      struct rig_wants wants, const char *what, const struct rig_arrays *got)
{
    struct rig rig;
    struct rig_arrays again;
    prepare_rig(t, &rig, device, real, wants);
    build_rig(t, &rig, wants);
    run(t, &rig, &again);
    trial_compare_bits(t, what, got, &again, wants);
    trial_clear_arrays(&again);
    rig_close(&rig);
}

static double add_direction(double *values, const double *from, const double *direction,
                            const double *gradient, int64_t count, double h)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++) {
        values[k] = from[k] + h * direction[k];
        sum += gradient ? gradient[k] * direction[k] : 0;
    }
    return sum;
}

/* The objective of all samples at in + h * direction, and the slope the gradients promise. */
static double objective_along(struct trial *t, struct rig *rig, const struct rig_arrays *got,
                              const struct rig_arrays *direction, double h, double *promised)
{
    struct rig_arrays moved;
    trial_make_arrays(t, &moved);
    *promised = 0;
    for (int i = 0; i < t->shapes.inputs; i++)
        *promised += add_direction(moved.x[i], t->in.x[i], direction->x[i], got->dx[i],
                                   trial_x_count(t, i), h);
    for (int j = 0; j < t->shapes.params; j++)
        for (int s = 0; s < t->shards; s++)
            *promised +=
                add_direction(moved.w[j], t->in.w[j], direction->w[j],
                              got->dw[j] + s * trial_w_count(t, j), trial_w_count(t, j), h);
    rig_write(rig, &moved);
    rig_forward(rig, moved.y);
    const double value = trial_objective(t, t->samples, moved.y, t->in.dy);
    trial_clear_arrays(&moved);
    return value;
}

/* Gradients against central differences along random directions in x and w. */
static void check_differences(struct trial *t, struct rig *rig, const struct rig_arrays *got)
{
    const double h = 1e-6;
    struct rig_arrays direction;
    trial_make_arrays(t, &direction);
    for (int way = 0; way < 3; way++) {
        double promised, bound = 1e-9 * (double)trial_y_count(t), size = 0;
        for (int i = 0; i < t->shapes.inputs; i++)
            for (int64_t k = 0; got->dx[i] && k < trial_x_count(t, i); k++) {
                direction.x[i][k] = 2 * trial_random() - 1;
                size += fabs(got->dx[i][k] * direction.x[i][k]);
            }
        for (int j = 0; j < t->shapes.params; j++)
            for (int64_t k = 0; k < trial_w_count(t, j); k++) {
                if (t->c->frozen || t->shapes.param[j].is_tracked)
                    continue; /* no dw, or one that is no derivative */
                direction.w[j][k] = 2 * trial_random() - 1;
                for (int s = 0; s < t->shards; s++)
                    size += fabs(got->dw[j][s * trial_w_count(t, j) + k] * direction.w[j][k]);
            }
        bound += 1e-6 * size;
        const double right = objective_along(t, rig, got, &direction, h, &promised);
        const double left = objective_along(t, rig, got, &direction, -h, &promised);
        const double weight = t->c->weight != 0 ? t->c->weight : 1;
        const double found = weight * (right - left) / (2 * h);
        if (!(fabs(found - promised) <= bound))
            rig_fail("the gradients promise a slope of %.12g, differences give %.12g (allowed "
                     "%.3g off)",
                     promised, found, bound);
    }
    trial_clear_arrays(&direction);
}

static double *gate(const double *values, const double *by, int64_t count)
{
    double *gated = rig_doubles(count);
    for (int64_t i = 0; i < count; i++)
        gated[i] = by[i] > 0 ? values[i] : 0;
    return gated;
}

/* dx is what it was where x > 0, else 0; of dy no more is told than y > 0 leaves. */
static void check_gates(const struct trial *like, struct lk_device *device, enum lk_dtype real,
                        const struct rig_arrays *plain)
{
    const struct rig_wants wants = {true, true, !like->c->frozen};
    struct trial t = *like;
    struct rig rig;
    struct rig_arrays got;
    t.is_gated = true;
    prepare_rig(&t, &rig, device, real, wants);
    build_rig(&t, &rig, wants);
    if (strcmp(t.op->name, "conv2d") == 0 ? !rig.setup.gates_dx[0] : !t.shapes.is_gate)
        rig_fail("takes no gates");
    if (rig.setup.gates_dx[0])
        t.want.dx[0] = gate(like->want.dx[0], t.in.x[0], trial_x_count(&t, 0));
    if (t.shapes.is_gate)
        t.in.dy = gate(like->in.dy, plain->y, trial_y_count(&t));
    run(&t, &rig, &got);
    trial_compare(&t, real, &got);
    rig_close(&rig);
    trial_clear_arrays(&got);
    if (rig.setup.gates_dx[0])
        free(t.want.dx[0]);
    if (t.shapes.is_gate)
        free(t.in.dy);
}

/* How an operation divides its work may follow from the cores, and its bits must not: always
 * seen of attention, which is divided in several ways in either class, of others in suite slow,
 * as their kernels are compiled anew. */
static void check_cores(struct trial *t, struct lk_device *device, enum lk_dtype real,
                        struct rig_wants wants, const struct rig_arrays *got)
{
    struct lk_device_info *info = (struct lk_device_info *)lk_device_info(device);
    const int there = info->compute_units;
    for (int cores = 1; cores <= 64; cores *= 64) {
        info->compute_units = cores;
        run_again(t, device, real, wants, "prepared for another number of cores", got);
    }
    info->compute_units = there;
}

/* Whether there was something to check. */
static bool check_configuration(struct trial *t, const struct configuration *at)
{
    struct lk_device *device = devices[at->device];
    const struct rig_wants all = {t->training, true, !t->c->frozen};
    const bool first = at == configurations || (at->half && at->device == CPU_16);
    const bool more = t->c->thorough && first && !once_is_asked();
    struct rig rig;
    struct rig_arrays got, again;
    prepare_rig(t, &rig, device, at->real, all);
    if (once_is_asked() &&
        !once_finds_new(device, t->c->algorithm, (int)(at - configurations))) {
        rig_close(&rig);
        return false;
    }
    build_rig(t, &rig, all);
    run(t, &rig, &got);
    trial_compare(t, at->real, &got);
    run(t, &rig, &again);
    trial_compare_bits(t, "a second run", &got, &again, all);
    if (at->real == LK_F64 && t->training && !t->c->integers)
        check_differences(t, &rig, &got);
    rig_close(&rig);
    if (t->c->gated)
        check_gates(t, device, at->real, &got);
    if (more && devices[PART_OF_CPU])
        run_again(t, devices[PART_OF_CPU], at->real, all, "on a part of the device", &got);
    const bool is_attention = strcmp(t->op->name, "attention") == 0;
    const bool of_gpu = at->device == GPU && at->real == LK_F32 && t->c->thorough && !at->half;
    if ((more && at->device == CPU_16 && (is_attention || once_all_are_asked())) ||
        (of_gpu && is_attention && !once_is_asked()))
        check_cores(t, device, at->real, all, &got);
    if (more && t->training) {
        const struct rig_wants no_dx = {true, false, true}, no_dw = {true, true, false};
        run_again(t, device, at->real, no_dx, "without dx", &got);
        if (!trial_has_tracked(t)) /* which without dw does something else */
            run_again(t, device, at->real, no_dw, "without dw", &got);
    }
    trial_clear_arrays(&got);
    trial_clear_arrays(&again);
    return true;
}

/* --- cases ----------------------------------------------------------------------------- */

/* The operation, its options and its shapes; the status is that of infer, or of the options. */
static enum lk_status infer(const char *name, const char *text, int inputs,
                            const struct lk_shape *x, const bool *labels,
                            const struct lk_op **op, void **options,
                            struct lk_op_shapes *shapes)
{
    LK_TRY(lk_op_find(name, op));
    *options = calloc(1, (*op)->options_bytes + 1);
    *shapes = (struct lk_op_shapes){.options = *options, .inputs = inputs ? inputs : 1};
    if (!*options)
        rig_fail("no memory for options");
    for (int i = 0; i < shapes->inputs; i++) {
        shapes->x[i] = x[i];
        shapes->x_dtype[i] = labels[i] ? LK_I32 : LK_F32;
    }
    if (shapes->inputs < (*op)->min_inputs || shapes->inputs > (*op)->max_inputs)
        rig_fail("%s takes %d to %d inputs, the table gives %d", name, (*op)->min_inputs,
                 (*op)->max_inputs, shapes->inputs);
    if ((*op)->options)
        LK_TRY(lk_options_parse((*op)->options, *options, text ? text : ""));
    return (*op)->infer(shapes);
}

/* A view is nothing but another shape: the oracle must be the identity. */
static void check_view(struct trial *t)
{
    if (trial_x_count(t, 0) != trial_y_count(t))
        rig_fail("a view of %lld elements has %lld", (long long)trial_x_count(t, 0),
                 (long long)trial_y_count(t));
    if (memcmp(t->in.x[0], t->want.y, sizeof(double) * (size_t)trial_y_count(t)) != 0)
        rig_fail("a view's oracle changes its input");
}

/* Whether a work-item's loops come to more than the 65,535 iterations at which llvmpipe ends
 * them, by what was seen to be complete: the work with vectors, that of transforms, which have
 * loops of their own, and that of an image in plane tiles, whose loops llvmpipe does not unroll
 * and whose gradient is summed over as many pixels as x has; or by walking one channel. */
static bool has_long_loops(const struct trial *t, const char *algorithm)
{
    const struct lk_shape *x = &t->shapes.x[0], *y = &t->shapes.y;
    const double flops = t->shapes.flops, pixels = (double)(x->dim[1] * x->dim[2]);
    if (t->c->planes && flops * fmax(1, pixels / (double)(y->dim[1] * y->dim[2])) > 150e3)
        return true;
    return flops * (double)t->samples > (strstr(algorithm, "winograd") ? 700e3 : 1700e3) ||
           (x->rank == 3 && pixels > 65535);
}

/* Why the platform cannot run what it is asked for; NULL: it can. */
static const char *find_limit(const struct trial *t, const struct configuration *at)
{
    const struct lk_device_info *info = lk_device_info(devices[at->device]);
    const char *algorithm = t->c->algorithm ? t->c->algorithm : "";
    if (info->device_class == LK_CLASS_CPU && strstr(info->name, "llvmpipe") &&
        has_long_loops(t, algorithm))
        return "llvmpipe ends a work-item's loops after 65,535 iterations";
    if (strcmp(info->platform, "Clover") != 0)
        return NULL;
    if (at->half)
        return "Clover's compiler dies of vload_half()";
    if (lk_candidate_is_same(algorithm, LK_GPU_MATRIX_NAME))
        return "Clover computes what stands in for matrix units wrongly";
    return NULL;
}

static bool is_asked(const struct op_case *c, const struct configuration *at)
{
    const bool gpu = at->device == GPU, twice = at->real == LK_F64;
    const int kind = gpu ? (twice ? OP_GPU_DOUBLE : OP_GPU) : (twice ? OP_CPU_DOUBLE : OP_CPU);
    if (!devices[at->device] || (twice && !lk_device_info(devices[at->device])->has_fp64))
        return false;
    if (c->planes && (gpu || at->half))
        return false;
    if (!at->usual && !(c->thorough && once_all_are_asked()))
        return false;
    return !c->only || (c->only & kind) || !devices[CPU_16];
}

static void say_where(const struct trial *t, const struct configuration *at)
{
    const struct op_case *c = t->c;
    snprintf(rig_where, sizeof rig_where, "%s '%s', %lld of %lld samples, %d shards, %s %d %s",
             c->op, c->options ? c->options : "", (long long)t->samples, (long long)t->batch,
             t->shards, at->device == GPU ? "gpu" : "cpu",
             lk_device_info(devices[at->device])->vector,
             at->half             ? "half"
             : at->real == LK_F64 ? "double"
                                  : "float");
}

/* With the numbers of the trial, which are halves or not; whether something was checked. */
static bool check_numbers(struct trial *t)
{
    const struct op_case *c = t->c;
    const bool is_view = t->op->is_view || (t->op->only_trains && !t->training);
    bool checked = is_view;
    trial_make(t);
    for (int i = 0; i < LK_COUNT(configurations) && !is_view; i++) {
        const struct configuration *at = &configurations[i];
        if (at->half != t->is_half || !is_asked(c, at))
            continue;
        say_where(t, at);
        const char *limit = find_limit(t, at);
        if (limit) {
            fprintf(stderr, "skipped: %s: %s\n", rig_where, limit);
            continue;
        }
        checked |= check_configuration(t, at);
    }
    if (is_view)
        check_view(t);
    trial_clear(t);
    return checked;
}

static bool check_trial(struct trial *t)
{
    bool checked = check_numbers(t);
    t->is_half = true;
    if (t->c->half || t->c->thorough)
        checked |= check_numbers(t);
    t->is_half = false;
    return checked;
}

/* Sums of many samples in every way that they can fill tiles and shards. */
static void check_sizes(const struct trial *like)
{
    static const int64_t sizes[] = {1, 2, 17, 127, 128, 129};
    static const int shards[] = {1, 2, 8};
    struct op_case c = *like->c;
    c.thorough = false;
    for (int i = 0; i < LK_COUNT(sizes); i++)
        for (int k = 0; k < LK_COUNT(shards); k++) {
            struct trial t = *like;
            t.c = &c;
            t.samples = sizes[i];
            t.batch = sizes[i] == 17 ? 40 : sizes[i]; /* and a last batch that is not full */
            t.shards = shards[k];
            check_trial(&t);
        }
}

static void test_case(void **state)
{
    const struct trial *prepared = *state;
    struct trial t = *prepared;
    const struct op_case *c = t.c;
    bool labels[LK_MOST_INPUTS];
    for (int i = 0; i < LK_MOST_INPUTS; i++)
        labels[i] = c->classes[i] > 0;
    snprintf(rig_where, sizeof rig_where, "%s '%s'", c->op, c->options ? c->options : "");
    rig_ok(infer(c->op, c->options, c->inputs, c->x, labels, &t.op, &t.options, &t.shapes),
           "infer");
    if (c->y.rank > 0 && !lk_shape_equal(&c->y, &t.shapes.y)) {
        char found[64];
        lk_shape_print(&t.shapes.y, found, sizeof found);
        rig_fail("infer finds the shape %s", found);
    }
    t.samples = c->samples;
    t.batch = c->batch ? c->batch : c->samples;
    t.shards = c->shards ? c->shards : 1;
    t.training = !c->inference && (!c->planes || (t.op->trains_planes && t.shapes.y.rank == 3));
    const bool checked = check_trial(&t);
    if (c->sizes && !once_is_asked())
        check_sizes(&t);
    free(t.options);
    if (!checked)
        fprintf(stderr, "brings nothing new: %s '%s'\n", c->op, c->options ? c->options : "");
}

static void test_refusal(void **state)
{
    const struct op_refusal *r = *state;
    const struct lk_op *op;
    void *options = NULL;
    struct lk_op_shapes shapes;
    snprintf(rig_where, sizeof rig_where, "%s '%s'", r->op, r->options ? r->options : "");
    lk_error_clear();
    const enum lk_status status =
        infer(r->op, r->options, r->inputs, r->x, r->labels, &op, &options, &shapes);
    if (status != r->status || !strstr(lk_error_text(), r->said))
        rig_fail("expected '%s' and '%s', got '%s' and '%s'", lk_status_text(r->status),
                 r->said, lk_status_text(status), lk_error_text());
    lk_error_clear();
    free(options);
}

/* --- the suite ------------------------------------------------------------------------- */

double op_round_to_half(double value)
{
    int exponent;
    if (value == 0 || !isfinite(value))
        return value;
    frexp(value, &exponent);
    const double unit = ldexp(1, (exponent > -14 + 1 ? exponent : -14 + 1) - 11);
    return rint(value / unit) * unit;
}

static const char *name_of(const char *what, const char *op, const char *options,
                           const struct lk_shape *shape)
{
    char text[64], whole[256];
    lk_shape_print(shape, text, sizeof text);
    snprintf(whole, sizeof whole, "%s%s %s %s", what, op, options ? options : "", text);
    char *name = strdup(whole);
    for (char *p = name; p && *p; p++)
        if (*p == '#') /* a directive in TAP */
            *p = ' ';
    return name;
}

int op_test(const struct op_suite *suite)
{
    const int count = suite->case_count + suite->refusal_count;
    struct CMUnitTest *tests = calloc((size_t)count + 1, sizeof *tests);
    struct trial *trials = calloc((size_t)suite->case_count + 1, sizeof *trials);
    if (!tests || !trials)
        return 1;
    for (int i = 0; i < suite->case_count; i++) {
        const struct op_case *c = &suite->cases[i];
        trials[i] = (struct trial){.c = c, .oracle = c->oracle ? c->oracle : suite->oracle};
        tests[i] = (struct CMUnitTest){name_of("", c->op, c->options, c->x), test_case, NULL,
                                       NULL, &trials[i]};
    }
    for (int i = 0; i < suite->refusal_count; i++) {
        const struct op_refusal *r = &suite->refusals[i];
        tests[suite->case_count + i] =
            (struct CMUnitTest){name_of("refuses ", r->op, r->options, r->x), test_refusal,
                                NULL, NULL, (void *)(uintptr_t)r};
    }
    const int failed =
        _cmocka_run_group_tests("operation", tests, (size_t)count, open_devices, close_devices);
    for (int i = 0; i < count; i++)
        free((void *)(uintptr_t)tests[i].name);
    free(tests);
    free(trials);
    return failed;
}
