/* Metrics against what scikit-learn 1.x computes of the same numbers, and the cases that it has
 * no word for: masked steps, no samples of a class, NaN. */
#include "metrics/metric.h"

#include "base/fail.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { N = 200, K = 5 };

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

static float probabilities[N][K], scores[N], values[N], wanted_values[N], weights[N][K];
static int32_t classes[N], sides[N];
static float units[N];

static void draw(void)
{
    uint32_t seed[] = {1, 2, 3, 4, 5, 6};
    for (int n = 0; n < N; n++) {
        double raw[K], sum = 0;
        for (int k = 0; k < K; k++) {
            raw[k] = next(&seed[0]) % 1000 + 1;
            sum += raw[k];
        }
        for (int k = 0; k < K; k++)
            probabilities[n][k] = (float)(raw[k] / sum);
        classes[n] = (int32_t)(next(&seed[1]) % K);
        weights[n][classes[n]] = 1;
        scores[n] = (float)(next(&seed[2]) % 101 / 100.0);
        sides[n] = (int32_t)(next(&seed[3]) % 2);
        units[n] = (float)sides[n];
        values[n] = (float)(next(&seed[4]) % 2001 / 100.0 - 10);
        wanted_values[n] = (float)(next(&seed[5]) % 2001 / 100.0 - 10);
    }
}

static struct lk_metric *make(const char *name, const char *options,
                              struct lk_metric_shape shape)
{
    const struct lk_metric_kind *kind = NULL;
    struct lk_metric *metric = NULL;
    assert_int_equal(lk_metric_find(name, &kind), LK_OK);
    if (lk_metric_create(kind, options, &shape, &metric) != LK_OK)
        fail_msg("%s %s: %s", name, options, lk_error_text());
    return metric;
}

/* Twice, to see that a reset forgets. */
static double compute(const char *name, const char *options, struct lk_metric_shape shape,
                      const float *y, const void *targets, int samples)
{
    shape.border = 0.5F;
    struct lk_metric *metric = make(name, options, shape);
    const size_t step = lk_metric_target_bytes(&shape);
    double found[2];
    for (int round = 0; round < 2; round++) {
        lk_metric_reset(metric);
        for (int n = 0; n < samples; n++)
            assert_int_equal(lk_metric_add(metric, y + n * shape.time_steps * shape.width,
                                           (const char *)targets + (size_t)n * step),
                             LK_OK);
        found[round] = lk_metric_result(metric);
    }
    assert_memory_equal(&found[0], &found[1], sizeof found[0]);
    lk_metric_destroy(metric);
    return found[0];
}

static void agrees_with_scikit_learn(void **state)
{
    static const struct {
        const char *name, *options;
        enum lk_metric_form form;
        double expected;
    } cases[] = {
        {"cross_entropy", "", LK_FORM_CLASS, 1.834738998895275},
        {"cross_entropy", "", LK_FORM_DISTRIBUTION, 1.834738998895275},
        {"perplexity", "", LK_FORM_CLASS, 6.263499151879349},
        {"bits_per_token", "", LK_FORM_CLASS, 2.6469688550317945},
        {"accuracy", "", LK_FORM_CLASS, 0.22},
        {"accuracy", "", LK_FORM_DISTRIBUTION, 0.22},
        {"top_k", "k=2", LK_FORM_CLASS, 0.425},
        {"top_k", "k=2", LK_FORM_DISTRIBUTION, 0.425},
        {"precision", "", LK_FORM_CLASS, 0.22043943382332398},
        {"precision", "class=3", LK_FORM_CLASS, 0.23076923076923078},
        {"recall", "", LK_FORM_CLASS, 0.2214563249106428},
        {"recall", "class=3", LK_FORM_DISTRIBUTION, 0.24324324324324326},
        {"binary_cross_entropy", "", LK_FORM_CHOICE, 1.130911304964691},
        {"binary_cross_entropy", "", LK_FORM_UNITS, 1.130911304964691},
        {"accuracy", "", LK_FORM_CHOICE, 0.525},
        {"accuracy", "", LK_FORM_UNITS, 0.525},
        {"precision", "", LK_FORM_CHOICE, 0.5576923076923077},
        {"recall", "", LK_FORM_UNITS, 0.5420560747663551},
        {"auc", "", LK_FORM_CHOICE, 0.5275851673198673},
        {"auc", "", LK_FORM_UNITS, 0.5275851673198673},
        {"mean_squared_error", "", LK_FORM_VALUES, 69.79749003577147},
        {"mean_absolute_error", "", LK_FORM_VALUES, 6.829400007389486},
        {"root_mean_squared_error", "", LK_FORM_VALUES, 8.354489214534391},
        {"huber", "delta=2", LK_FORM_VALUES, 11.801550765754687},
    };
    (void)state;
    for (int i = 0; i < LK_COUNT(cases); i++) {
        const bool is_class = cases[i].form <= LK_FORM_DISTRIBUTION;
        const void *targets[] = {classes, weights, sides, units, wanted_values};
        const float *y = is_class                          ? probabilities[0]
                         : cases[i].form == LK_FORM_VALUES ? values
                                                           : scores;
        const double found =
            compute(cases[i].name, cases[i].options,
                    (struct lk_metric_shape){cases[i].form, 1, is_class ? K : 1, 0}, y,
                    targets[cases[i].form], N);
        if (!(fabs(found - cases[i].expected) <= 1e-13 * fabs(cases[i].expected)))
            fail_msg("%s %s, form %d: %.17g, expected %.17g", cases[i].name, cases[i].options,
                     (int)cases[i].form, found, cases[i].expected);
    }
    assert_true(fabs(compute("hinge", "", (struct lk_metric_shape){LK_FORM_UNITS, 1, 1, 0},
                             values, units, N) -
                     3.0962000108137726) < 1e-12);
}

/* Steps without a label count nowhere, nor do samples without any; a sample's loss is the mean
 * of its others. */
static void leaves_masked_steps_out(void **state)
{
    static const float y[3][3][2] = {{{0.25F, 0.75F}, {0.5F, 0.5F}, {1, 0}},
                                     {{0.5F, 0.5F}, {0.125F, 0.875F}, {0, 1}}};
    static const int32_t labels[3][3] = {{1, -1, -1}, {0, 0, 1}, {-1, -1, -1}};
    const struct lk_metric_shape shape = {LK_FORM_CLASS, 3, 2, 0};
    const double first = -log(0.75), second = (-log(0.5) - log(0.125) - log(1)) / 3;
    (void)state;
    assert_true(fabs(compute("cross_entropy", "", shape, y[0][0], labels, 3) -
                     (first + second) / 2) < 1e-15);
    assert_true(fabs(compute("accuracy", "", shape, y[0][0], labels, 3) - (1 + 2.0 / 3) / 2) <
                1e-15);
    assert_true(compute("recall", "class=1", shape, y[0][0], labels, 3) == 1);
    assert_true(compute("precision", "class=0", shape, y[0][0], labels, 3) == 1);
}

static void says_what_is_not_defined(void **state)
{
    static const float y[2] = {0.25F, 0.25F}, nan[2] = {NAN, 0.5F};
    static const int32_t none[2] = {0, 0}, both[2] = {0, 1};
    const struct lk_metric_shape shape = {LK_FORM_CHOICE, 1, 1, 0};
    (void)state;
    assert_true(isnan(compute("auc", "", shape, y, none, 2)));
    assert_true(isnan(compute("auc", "", shape, nan, both, 2)));
    assert_true(compute("auc", "", shape, y, both, 2) == 0.5);
    assert_true(isnan(compute("recall", "", shape, y, none, 2)));
    assert_true(isnan(compute("precision", "", shape, y, both, 2)));
    assert_true(isnan(compute("cross_entropy", "",
                              (struct lk_metric_shape){LK_FORM_CLASS, 1, 2, 0}, nan, none, 1)));
    assert_true(compute("accuracy", "", shape, nan, both, 1) == 0);
}

static void refuses(void **state)
{
    static const struct {
        const char *name, *options;
        struct lk_metric_shape shape;
        const char *said;
    } cases[] = {
        {"accuracy",
         "",
         {LK_FORM_VALUES, 1, 1, 0},
         "accuracy is not defined for an output that "
         "predicts numbers"},
        {"mean_squared_error", "", {LK_FORM_CLASS, 1, 3, 0}, "predicts one class of several"},
        {"auc", "", {LK_FORM_CLASS, 1, 3, 0}, "defined for two classes, not for 3"},
        {"recall", "class=3", {LK_FORM_CLASS, 1, 3, 0}, "class 3 of an output of 3 classes"},
        {"top_k", "k=0", {LK_FORM_CLASS, 1, 3, 0}, "0 is not in 1.."},
        {"huber", "delta=-1", {LK_FORM_VALUES, 1, 3, 0}, "huber: option 'delta': -1 is not in"},
        {"huber", "k=1", {LK_FORM_VALUES, 1, 3, 0}, "unknown option 'k'"},
    };
    const struct lk_metric_kind *kind = NULL;
    (void)state;
    for (int i = 0; i < LK_COUNT(cases); i++) {
        struct lk_metric *metric = NULL;
        assert_int_equal(lk_metric_find(cases[i].name, &kind), LK_OK);
        assert_int_equal(lk_metric_create(kind, cases[i].options, &cases[i].shape, &metric),
                         LK_E_ARGUMENT);
        if (!strstr(lk_error_text(), cases[i].said))
            fail_msg("%s: '%s'", cases[i].name, lk_error_text());
        lk_error_clear();
    }
    assert_int_equal(lk_metric_find("acuracy", &kind), LK_E_MODEL);
    assert_non_null(strstr(lk_error_text(), "did you mean 'accuracy'?"));
    lk_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_scikit_learn),
        cmocka_unit_test(leaves_masked_steps_out),
        cmocka_unit_test(says_what_is_not_defined),
        cmocka_unit_test(refuses),
    };
    draw();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
