/* pairs=N: two samples of one class or of two, always the same ones, and which are left out. */
#include "tables.h"

enum { CLASSES = 3, EACH = 20, PAIRS = 600, A = 0, A_LENGTH, B, B_LENGTH, LABEL };

/* Line i is of class i % CLASSES, and as many words long as its number says. */
static void put_lines(const char *name, int count)
{
    static char text[65536];
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "c%d\t", i % CLASSES);
        for (int k = 0; k <= i; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "w ");
        text[used++] = '\n';
    }
    text[used] = '\0';
    put_text(name, text);
}

struct pair {
    int32_t line[2], label;
};

/* Lengths tell which lines they are. */
static struct pair read_pair(const struct lk_data *data, int64_t index)
{
    struct pair pair;
    int32_t a[128], b[128];
    void *to[LK_MOST_FIELDS] = {a, &pair.line[0], b, &pair.line[1], &pair.label};
    assert_int_equal(lk_data_read_fields(data, &index, 1, to), LK_OK);
    for (int k = 0; k < 128; k++) {
        assert_int_equal(a[k], k < pair.line[0] ? 2 : 0);
        assert_int_equal(b[k], k < pair.line[1] ? 2 : 0);
    }
    pair.line[0]--;
    pair.line[1]--;
    return pair;
}

static void pairs_lines(void **state)
{
    int seen[2][CLASSES * EACH] = {{0}};
    (void)state;
    put_lines("lines.txt", CLASSES * EACH);
    const char *spec = spec_of("text", "lines.txt", ",pairs=600,unit=word");
    struct lk_data *data = open_part(spec, LK_DATA_TRAIN), *again = open_part(spec, 0);
    const struct lk_data_info *info = lk_data_info(data);
    assert_int_equal(info->count, PAIRS);
    assert_int_equal(info->field_count, 5);
    expect_field(data, A, "a", LK_I32, "128");
    expect_field(data, A_LENGTH, "a.length", LK_I32, "");
    expect_field(data, B, "b", LK_I32, "128");
    expect_field(data, B_LENGTH, "b.length", LK_I32, "");
    expect_field(data, LABEL, "label", LK_I32, "");
    assert_int_equal(info->fields[A].length, A_LENGTH);
    assert_int_equal(info->fields[B].length, B_LENGTH);
    assert_int_equal(info->fields[B].classes, 3); /* padding, unknown, "w" */
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[0], "different");
    assert_non_null(lk_data_vocabulary(data));
    for (int64_t i = 0; i < PAIRS; i++) {
        const struct pair pair = read_pair(data, i), other = read_pair(again, i);
        struct lk_text_size size;
        assert_memory_equal(&pair, &other, sizeof pair);
        assert_int_equal(pair.label, i % 2 == 0);
        assert_int_equal(pair.line[0] % CLASSES == pair.line[1] % CLASSES, pair.label);
        assert_int_not_equal(pair.line[0], pair.line[1]);
        assert_int_equal(lk_data_measure_text(data, i, &size), LK_OK);
        assert_int_equal(size.tokens, pair.line[0] + pair.line[1] + 2);
        for (int k = 0; k < 2; k++)
            seen[k][pair.line[k]]++;
    }
    for (int i = 0; i < CLASSES * EACH; i++) /* 10 times each, but for chance */
        for (int k = 0; k < 2; k++)
            assert_in_range(seen[k][i], 1, 25);
    lk_data_close(data);
    lk_data_close(again);
}

/* Of lines that are held out there are pairs with one another only. */
static void parts_are_apart(void **state)
{
    bool held[CLASSES * EACH] = {false};
    int count = 0;
    (void)state;
    put_lines("parts.txt", CLASSES * EACH);
    const char *spec = spec_of("text", "parts.txt", ",unit=word,pairs=600,val=0.2");
    struct lk_data *data = open_part(spec, LK_DATA_VALIDATION);
    assert_int_equal(lk_data_info(data)->count, PAIRS / 6);
    assert_int_equal(lk_data_info(data)->part, LK_DATA_VALIDATION);
    for (int64_t i = 0; i < PAIRS / 6; i++) {
        const struct pair pair = read_pair(data, i);
        held[pair.line[0]] = held[pair.line[1]] = true;
    }
    lk_data_close(data);
    for (int i = 0; i < CLASSES * EACH; i++)
        count += held[i];
    assert_int_equal(count, CLASSES * EACH / 5);
    data = open_part(spec, LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->count, PAIRS);
    for (int64_t i = 0; i < PAIRS; i++) {
        const struct pair pair = read_pair(data, i);
        assert_false(held[pair.line[0]] || held[pair.line[1]]);
    }
    lk_data_close(data);
}

/* Neither lines that are broken nor those that are alone in their class. */
static void leaves_lines_out(void **state)
{
    (void)state;
    put_text("few.txt", "x\tw\ny\tw w\nno label\nx\tw w w w\nz\tw w w w w\ny\tw w w w w w\n");
    struct lk_data *data =
        open_part(spec_of("text", "few.txt", ",unit=word,pairs=50,max_bad=1"), LK_DATA_TRAIN);
    for (int64_t i = 0; i < 50; i++) {
        const struct pair pair = read_pair(data, i);
        for (int k = 0; k < 2; k++)
            assert_true(pair.line[k] == 0 || pair.line[k] == 1 || pair.line[k] == 3 ||
                        pair.line[k] == 5);
        assert_int_equal((pair.line[0] % 5 == 3 || pair.line[0] == 0) ==
                             (pair.line[1] % 5 == 3 || pair.line[1] == 0),
                         pair.label);
    }
    lk_data_close(data);
    refused(spec_of("text", "few.txt", ",unit=word,pairs=50,max_bad=0"), LK_DATA_TRAIN,
            LK_E_DATA, "line 3");
}

static void pairs_numbers(void **state)
{
    float a[2], b[2];
    int32_t label;
    void *to[LK_MOST_FIELDS] = {a, b, &label};
    (void)state;
    put_text("t.csv", "p,q,kind\n1,10,u\n2,20,v\n3,30,u\n4,40,v\n");
    struct lk_data *data =
        open_part(spec_of("csv", "t.csv", ",fields=p,q,label=kind,pairs=40"), LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->field_count, 3);
    expect_field(data, 0, "a", LK_F32, "2");
    expect_field(data, 1, "b", LK_F32, "2");
    assert_int_equal(lk_data_info(data)->fields[0].length, -1);
    for (int64_t i = 0; i < 40; i++) {
        assert_int_equal(lk_data_read_fields(data, &i, 1, to), LK_OK);
        assert_true(a[1] == 10 * a[0] && b[1] == 10 * b[0] && a[0] != b[0]);
        assert_int_equal((int)a[0] % 2 == (int)b[0] % 2, label);
    }
    lk_data_close(data);
}

static void refuses(void **state)
{
    static const struct {
        const char *name, *text, *kind, *options;
        int code;
        const char *said;
    } cases[] = {
        {"r.txt", "x\ta\nx\tb\ny\tc\ny\td\n", "text", ",pairs=0", LK_E_ARGUMENT,
         "a whole number from 1"},
        {"r.txt", NULL, "text", ",pairs=-3", LK_E_ARGUMENT, "pairs='-3'"},
        {"r.txt", NULL, "text", ",pairs=2x", LK_E_ARGUMENT, "pairs='2x'"},
        {"r.txt", NULL, "text", ",pairs=", LK_E_ARGUMENT, "a whole number from 1"},
        {"r.txt", NULL, "text", ",unit=word,labels=next,pairs=4", LK_E_ARGUMENT,
         "a label that is a class"},
        {"one.txt", "x\ta\nx\tb\ny\tc\n", "text", ",unit=word,pairs=4", LK_E_DATA,
         "two classes of at least two samples; 'one.txt' has one"},
        {"none.txt", "x\ta\nz\tb\ny\tc\n", "text", ",unit=word,pairs=4", LK_E_DATA,
         "'none.txt' has none"},
        {"two.csv", "p,q,kind\n1,2,u\n2,3,u\n3,4,v\n4,5,v\n", "csv",
         ",fields=x:p,y:q,label=kind,pairs=4", LK_E_ARGUMENT, "has 2 inputs"},
        {"paths.csv", "a.png,x\n", "csv", ",pairs=4", LK_E_ARGUMENT, "no images"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].text)
            put_text(cases[i].name, cases[i].text);
        refused(spec_of(cases[i].kind, cases[i].name, cases[i].options), LK_DATA_TRAIN,
                cases[i].code, cases[i].said);
    }
    refused("synthetic:digits,pairs=4", LK_DATA_TRAIN, LK_E_ARGUMENT, "no images");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_lines),      cmocka_unit_test(parts_are_apart),
        cmocka_unit_test(leaves_lines_out), cmocka_unit_test(pairs_numbers),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
