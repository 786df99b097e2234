/* Texts as tokens: the vocabulary and the numbers of Keras's TextVectorization, what is cut and
 * filled, from which samples is learned, and lines that are broken. */
#include "base/log.h"
#include "base/utf8.h"
#include "data/text/file.h"
#include "data/text/texts.h"
#include "data/text/unicode.h"
#include "io/sha256.h"
#include "skip.h"
#include "tables.h"

/* Recorded from TextVectorization of TensorFlow 2.21 on the same lines. */
static const char lines[] = "0\tThe cat sat on the mat.\n"
                            "0\tthe dog's mat -- the cat's!  A b c\n"
                            "1\tZebra apple? zebra, apple: ant\n"
                            "1\tx  y\tx \x0b y (x)\n"
                            "0\t$5.00 costs 5_00 & [more]\n"
                            "1\t~ ` ' \" ?!\n";
static const int32_t standard_ids[6][8] = {
    {2, 15, 9, 10, 2, 6, 0, 0}, {2, 12, 6, 2, 14, 19, 17, 16}, {4, 7, 4, 7, 18, 0, 0, 0},
    {3, 5, 3, 5, 3, 0, 0, 0},   {8, 13, 8, 11, 0, 0, 0, 0},    {0, 0, 0, 0, 0, 0, 0, 0}};
static const int32_t few_ids[6][8] = {{2, 1, 1, 1, 2, 6, 0, 0}, {2, 1, 6, 2, 1, 1, 1, 1},
                                      {4, 7, 4, 7, 1, 0, 0, 0}, {3, 5, 3, 5, 3, 0, 0, 0},
                                      {1, 1, 1, 1, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}};
static const int32_t lower_ids[6][8] = {
    {2, 15, 8, 9, 2, 10, 0, 0}, {2, 12, 11, 26, 2, 14, 21, 17}, {7, 18, 6, 19, 20, 0, 0, 0},
    {4, 3, 4, 3, 27, 0, 0, 0},  {30, 13, 25, 29, 23, 0, 0, 0},  {5, 22, 28, 31, 24, 0, 0, 0}};
static const int32_t strip_ids[6][8] = {
    {20, 15, 9, 10, 3, 5, 0, 0}, {3, 12, 5, 3, 14, 21, 17, 16}, {19, 6, 8, 6, 18, 0, 0, 0},
    {2, 4, 2, 4, 2, 0, 0, 0},    {7, 13, 7, 11, 0, 0, 0, 0},    {0, 0, 0, 0, 0, 0, 0, 0}};
static const int32_t char_ids[6][8] = {{1, 9, 5, 2, 10, 4, 3, 2},   {3, 9, 5, 2, 1, 8, 1, 1},
                                       {1, 5, 1, 1, 4, 2, 4, 7},    {1, 2, 2, 1, 1, 1, 2, 1},
                                       {1, 1, 1, 11, 11, 2, 10, 8}, {1, 2, 1, 2, 1, 2, 1, 2}};

enum { LABEL, TOKENS, TOKEN_COUNT };

static void expect_tokens(const struct lk_data *data, int64_t index, const int32_t *wanted,
                          int count)
{
    expect_ints(data, TOKENS, index, wanted, count);
}

static void expect_length(const struct lk_data *data, int64_t index, int32_t length)
{
    expect_ints(data, TOKEN_COUNT, index, &length, 1);
}

static void numbers_are_those_of_keras(void **state)
{
    static const struct {
        const char *options;
        const int32_t (*ids)[8];
        int64_t size;
    } cases[] = {{",unit=word,length=8", standard_ids, 20},
                 {",unit=word,length=8,vocabulary=8", few_ids, 8},
                 {",unit=word,length=8,standardize=lower", lower_ids, 32},
                 {",unit=word,length=8,standardize=strip_punctuation", strip_ids, 22},
                 {",unit=char,length=8,vocabulary=12", char_ids, 12}};
    (void)state;
    put_text("lines.txt", lines);
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        struct lk_data *data =
            open_part(spec_of("text", "lines.txt", cases[i].options), LK_DATA_TRAIN);
        expect_field(data, LABEL, "label", LK_I32, "");
        expect_field(data, TOKENS, "tokens", LK_I32, "8");
        expect_field(data, TOKEN_COUNT, "tokens.length", LK_I32, "");
        assert_int_equal(lk_data_info(data)->fields[TOKENS].classes, cases[i].size);
        assert_int_equal(lk_data_info(data)->fields[TOKENS].length, TOKEN_COUNT);
        assert_int_equal(lk_data_info(data)->classes, 2);
        for (int64_t k = 0; k < 6; k++)
            expect_tokens(data, k, cases[i].ids[k], 8);
        lk_data_close(data);
    }
}

/* The words and all numbers of a real set, as hashes: its licence keeps it out of here. */
static void numbers_of_trec_are_those_of_keras(void **state)
{
    const char *folder = getenv("LOCKSTEP_DATA");
    char spec[600];
    struct lk_data *data = NULL;
    static const char wanted[] =
        "3f24a8899fc084207a58d876e0be01abdeb48336e7f7f77828b846395bcbf777";
    (void)state;
    snprintf(spec, sizeof spec, "text:%s/trec/train.txt,unit=word,length=16",
             folder ? folder : "");
    if (!folder || lk_data_open(spec, LK_DATA_TRAIN, &data) != LK_OK) {
        lk_error_clear();
        SKIP_TEST("no $LOCKSTEP_DATA/trec");
    }
    struct lk_sha256 sum = {0};
    char found[LK_SHA256_TEXT];
    assert_int_equal(lk_data_info(data)->count, 5452);
    assert_int_equal(lk_data_info(data)->fields[TOKENS].classes, 8605);
    assert_int_equal(lk_sha256_init(&sum), LK_OK);
    for (int64_t i = 0; i < 5452; i++) {
        int32_t tokens[16];
        void *to[LK_MOST_FIELDS] = {NULL, tokens};
        assert_int_equal(lk_data_read_fields(data, &i, 1, to), LK_OK);
        lk_sha256_add(&sum, tokens, sizeof tokens);
    }
    lk_sha256_finish(&sum, found);
    lk_sha256_clear(&sum);
    assert_string_equal(found, wanted);
    lk_data_close(data);
}

static void texts_are_cut_and_filled(void **state)
{
    (void)state;
    put_text("cut.txt", "0\ta b c d e\n1\ta b\n");
    struct lk_data *data =
        open_part(spec_of("text", "cut.txt", ",unit=word,length=3"), LK_DATA_TRAIN);
    expect_tokens(data, 0, (int32_t[]){3, 2, 6}, 3); /* b and a are there twice */
    expect_length(data, 0, 3);
    expect_tokens(data, 1, (int32_t[]){3, 2, 0}, 3);
    expect_length(data, 1, 2);
    struct lk_text_size size;
    assert_int_equal(lk_data_measure_text(data, 0, &size), LK_OK);
    assert_int_equal(size.tokens, 5);
    assert_int_equal(size.unknown, 0);
    lk_data_close(data);
    data =
        open_part(spec_of("text", "cut.txt", ",unit=word,length=3,truncate=start,min_count=2"),
                  LK_DATA_TRAIN);
    expect_tokens(data, 0, (int32_t[]){1, 1, 1}, 3);
    expect_tokens(data, 1, (int32_t[]){3, 2, 0}, 3);
    lk_data_close(data);
    refused(spec_of("text", "cut.txt", ",unit=word,pad=start"), LK_DATA_TRAIN, LK_E_ARGUMENT,
            "pad=start: padding stands behind a text");
    refused(spec_of("text", "cut.txt", ",unit=pairs"), LK_DATA_TRAIN, LK_E_ARGUMENT,
            "lockstep tokenize");
    refused(spec_of("text", "cut.txt", ",unit=word,vocabulary=2"), LK_DATA_TRAIN, LK_E_ARGUMENT,
            "3 to 1048576");
    refused(spec_of("text", "cut.txt", ",unit=word,min_count=3"), LK_DATA_TRAIN, LK_E_DATA,
            "no word is there 3 times");
    refused(spec_of("text", "cut.txt", ",unit=syllable"), LK_DATA_TRAIN, LK_E_ARGUMENT,
            "syllable");
}

/* Of lines with labels, without a unit and with unit=byte all is as it has always been. */
static void bytes_stay_as_they_are(void **state)
{
    (void)state;
    put_text("bytes.txt", "0\tab\n1\tb\n");
    for (int i = 0; i < 2; i++) {
        struct lk_data *data =
            open_part(spec_of("text", "bytes.txt", i ? ",length=3,unit=byte" : ",length=3"),
                      LK_DATA_TRAIN);
        expect_field(data, 0, "image", LK_U8, "1,3,1");
        expect_field(data, 2, "tokens", LK_I32, "3");
        expect_ints(data, 2, 0, (int32_t[]){'a', 'b', 0}, 3);
        assert_null(lk_data_vocabulary(data));
        lk_data_close(data);
    }
}

static void only_the_training_part_is_learned(void **state)
{
    enum { COUNT = 40 };
    char text[COUNT * 24] = "";
    int seen = 0;
    (void)state;
    for (int i = 0; i < COUNT; i++)
        snprintf(text + strlen(text), 24, "%d\tall word%d\n", i % 2, i);
    put_text("each.txt", text);
    struct lk_data *train =
        open_part(spec_of("text", "each.txt", ",unit=word,length=2,val=0.25"), LK_DATA_TRAIN);
    struct lk_data *held = open_part(
        spec_of("text", "each.txt", ",unit=word,length=2,val=0.25"), LK_DATA_VALIDATION);
    assert_int_equal(lk_data_info(train)->count, 30);
    assert_int_equal(lk_data_info(held)->count, 10);
    assert_int_equal(lk_data_info(train)->fields[TOKENS].classes, 2 + 1 + 30);
    assert_string_equal(lk_data_vocabulary(train), lk_data_vocabulary(held));
    for (int64_t i = 0; i < 10; i++)
        expect_tokens(held, i, (int32_t[]){2, 1}, 2);
    for (int64_t i = 0; i < 30; i++) {
        struct lk_text_size size;
        assert_int_equal(lk_data_measure_text(train, i, &size), LK_OK);
        seen += (int)size.unknown;
    }
    assert_int_equal(seen, 0);
    lk_data_close(train);
    lk_data_close(held);

    assert_int_equal(mkdir(scratch_path("parts"), 0755), 0);
    put_text("parts/train.txt", "a\tone two two\n");
    put_text("parts/test.txt", "a\ttwo three\nb\tone\n");
    struct lk_data *test =
        open_part(spec_of("text", "parts", ",unit=word,length=2,max_bad=1"), LK_DATA_TEST);
    assert_int_equal(lk_data_info(test)->fields[TOKENS].classes, 4);
    assert_int_equal(lk_data_bad(test), 1); /* of no class of the training part */
    expect_tokens(test, 0, (int32_t[]){2, 1}, 2);
    lk_data_close(test);
}

static void a_vocabulary_can_be_given(void **state)
{
    char *copy;
    (void)state;
    put_text("given.txt", "0\tb a\n0\tc\n");
    put_text("words.txt", "\n[UNK]\nc\nb\n");
    struct lk_data *data =
        open_part(spec_of("text", "given.txt", ",unit=word,length=2"), LK_DATA_TRAIN);
    expect_tokens(data, 0, (int32_t[]){3, 4}, 2);
    copy = strdup(lk_data_vocabulary(data));
    put_text("words.json", copy);
    lk_data_close(data);

    char options[700];
    snprintf(options, sizeof options, ",unit=word,length=2,vocabulary=%s",
             scratch_path("words.txt"));
    data = open_part(spec_of("text", "given.txt", options), LK_DATA_TRAIN);
    expect_tokens(data, 0, (int32_t[]){3, 1}, 2);
    expect_tokens(data, 1, (int32_t[]){2, 0}, 2);
    lk_data_close(data);

    put_text("other.txt", "0\tc c c b b a\n");
    struct lk_data_options kept = {.vocabulary = copy};
    assert_int_equal(
        lk_data_open_as(spec_of("text", "other.txt", ",length=6"), LK_DATA_TRAIN, &kept, &data),
        LK_OK);
    expect_tokens(data, 0, (int32_t[]){2, 2, 2, 3, 3, 4}, 6);
    lk_data_close(data);
    snprintf(options, sizeof options, ",length=6,vocabulary=%s", scratch_path("words.txt"));
    assert_refused(
        lk_data_open_as(spec_of("text", "other.txt", options), LK_DATA_TRAIN, &kept, &data),
        LK_E_ARGUMENT, lk_error_text(), "another one than the run's");
    lk_error_clear();
    assert_refused(lk_data_open_as(spec_of("text", "other.txt", ",unit=char"), LK_DATA_TRAIN,
                                   &kept, &data),
                   LK_E_ARGUMENT, lk_error_text(), "unit word, asked for is char");
    lk_error_clear();
    free(copy);
}

static void malformed_vocabularies_are_refused(void **state)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"{", "is no vocabulary"},
        {"{\"unit\": \"word\"}", "'standardize' is missing"},
        {"{\"unit\": \"foot\", \"standardize\": \"none\"}", "'foot' is not known"},
        {"{\"unit\": \"word\", \"standardize\": \"none\"}", "\"words\""},
        {"{\"unit\": \"word\", \"standardize\": \"none\", \"words\": [\"a\", \"a\"]}", "twice"},
        {"{\"unit\": \"word\", \"standardize\": \"none\", \"words\": [\"\"]}", "empty"},
        {"{\"unit\": \"word\", \"standardize\": \"none\", \"words\": [3]}", "no text"},
        {"{\"unit\": \"pairs\", \"standardize\": \"none\", \"joins\": [[2, 258]]}",
         "join 0 is of 2 and 258"},
        {"{\"unit\": \"pairs\", \"standardize\": \"none\", \"joins\": [[2, 3], [2, 3]]}",
         "there twice"},
        {"{\"unit\": \"pairs\", \"standardize\": \"none\", \"joins\": [[2, -7]]}", "of 2 and"},
        {"a\nb\na\n", "'a' is there twice"},
        {"a\n\xff\n", "word 1 is no UTF-8"},
        {"", "no word"},
    };
    (void)state;
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        struct lk_vocabulary vocabulary = {0};
        put_text("bad.json", cases[i].text);
        assert_refused(lk_vocabulary_read(&vocabulary, scratch_path("bad.json")), LK_E_DATA,
                       lk_error_text(), cases[i].said);
        lk_error_clear();
        lk_vocabulary_clear(&vocabulary);
    }
}

/* Lines may begin with a brace, as those of characters do; it is then no JSON. */
static void a_brace_may_be_a_word(void **state)
{
    static const char *const cases[] = {"{\n\"\n}\n", "{\n}\na\n", "{\na\nb\n"};
    (void)state;
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        struct lk_vocabulary vocabulary = {.unit = LK_UNIT_CHAR};
        put_text("brace.txt", cases[i]);
        assert_int_equal(lk_vocabulary_read(&vocabulary, scratch_path("brace.txt")), LK_OK);
        assert_int_equal(vocabulary.words.count, 3);
        assert_string_equal(vocabulary.words.items[0].bytes, "{");
        lk_vocabulary_clear(&vocabulary);
    }
}

static void broken_lines_are_counted(void **state)
{
    static const char bad[] = "0\tgood\n"
                              "no label\n"
                              "1\tbro\xffken\n"
                              "0\tze\0ro\n"
                              "0\t \n"
                              "1\tfine\n"
                              "\tnothing in front\n";
    enum { LONG = 10 << 20 };
    char *text = malloc(sizeof bad + LONG);
    (void)state;
    assert_non_null(text);
    memcpy(text, bad, sizeof bad - 1);
    memset(text + sizeof bad - 1, 'x', LONG);
    memcpy(text + sizeof bad - 1, "1\t", 2);
    text[sizeof bad - 1 + LONG - 1] = '\n';
    scratch_put(scratch_path("bad.txt"), text, sizeof bad - 1 + LONG);
    free(text);
    struct lk_data *data =
        open_part(spec_of("text", "bad.txt", ",unit=word,length=2,max_bad=6"), LK_DATA_TRAIN);
    assert_int_equal(lk_data_bad(data), 6);
    assert_int_equal(lk_data_info(data)->count, 8);
    assert_int_equal(lk_data_info(data)->fields[TOKENS].classes, 4);
    expect_tokens(data, 1, (int32_t[]){3, 0}, 2); /* "fine" stands in */
    lk_data_close(data);
    refused(spec_of("text", "bad.txt", ",unit=word"), LK_DATA_TRAIN, LK_E_DATA,
            "line 2: expected a label, a TAB and a text");
    refused(spec_of("text", "bad.txt", ",unit=word,max_bad=1"), LK_DATA_TRAIN, LK_E_DATA,
            "line 3: byte 3 of the text (0xFF) is no UTF-8");
    refused(spec_of("text", "bad.txt", ",unit=word,max_bad=2"), LK_DATA_TRAIN, LK_E_DATA,
            "line 4: byte 2 of the text is zero");
    refused(spec_of("text", "bad.txt", ",unit=word,max_bad=3"), LK_DATA_TRAIN, LK_E_DATA,
            "line 5: an empty text");
    refused(spec_of("text", "bad.txt", ",unit=word,max_bad=5"), LK_DATA_TRAIN, LK_E_DATA,
            "line 8: a text of 10485757 bytes");
}

static void a_long_text_predicts_what_comes_next(void **state)
{
    (void)state;
    put_text("long.txt", "abcab\ncab"); /* 9 tokens: a and b thrice, c twice */
    struct lk_data *data =
        open_part(spec_of("text", "long.txt", ",unit=char,length=3"), LK_DATA_TRAIN);
    expect_field(data, LABEL, "next", LK_I32, "3");
    assert_int_equal(lk_data_info(data)->count, 3);
    assert_int_equal(lk_data_info(data)->fields[LABEL].classes, 6);
    assert_int_equal(lk_data_info(data)->fields[LABEL].role, LK_FIELD_LABEL);
    expect_tokens(data, 0, (int32_t[]){3, 2, 4}, 3);
    expect_ints(data, LABEL, 0, (int32_t[]){2, 4, 3}, 3);
    expect_tokens(data, 2, (int32_t[]){4, 3, 0}, 3);
    expect_ints(data, LABEL, 2, (int32_t[]){3, 2, -1}, 3);
    expect_length(data, 2, 2);
    expect_length(data, 1, 3);
    lk_data_close(data);

    data = open_part(spec_of("text", "long.txt", ",unit=char,length=3,val=0.3"),
                     LK_DATA_VALIDATION);
    assert_int_equal(lk_data_info(data)->count, 1);
    expect_tokens(data, 0, (int32_t[]){4, 3, 0}, 3); /* the end is held out */
    lk_data_close(data);
    data = open_part(spec_of("text", "long.txt", ",labels=next,length=4"), LK_DATA_TRAIN);
    expect_tokens(data, 0, (int32_t[]){'a', 'b', 'c', 'a'}, 4);
    assert_int_equal(lk_data_info(data)->fields[LABEL].classes, 256);
    lk_data_close(data);

    /* of bytes it is none of lines with labels, as it would be without a unit */
    data = open_part(spec_of("text", "long.txt", ",unit=byte,length=4,val=0.3"), LK_DATA_TRAIN);
    expect_field(data, LABEL, "next", LK_I32, "4");
    expect_tokens(data, 0, (int32_t[]){'a', 'b', 'c', 'a'}, 4);
    lk_data_close(data);
    refused(spec_of("text", "long.txt", ",length=4"), LK_DATA_TRAIN, LK_E_DATA,
            "expected a label, a TAB and a text");

    put_text("tab.txt", "abc\nab\tc\n\r\nabca\n"); /* a TAB is a character like others */
    data = open_part(spec_of("text", "tab.txt", ",unit=char,length=3"), LK_DATA_TRAIN);
    expect_field(data, LABEL, "next", LK_I32, "3");
    lk_data_close(data);
    refused(spec_of("text", "tab.txt", ",unit=char,length=3,labels=line"), LK_DATA_TRAIN,
            LK_E_DATA, "(labels=next: one long text)");
    put_text("tab.txt", "abc\nx\tabc\n\r\n\n"); /* half of the lines, and empty ones */
    data = open_part(spec_of("text", "tab.txt", ",unit=char,max_bad=1"), LK_DATA_TRAIN);
    assert_string_equal(lk_data_info(data)->fields[LABEL].name, "label");
    lk_data_close(data);

    put_text("bad.txt", "one\ntw\xc3\n");
    refused(spec_of("text", "bad.txt", ",unit=char"), LK_DATA_TRAIN, LK_E_DATA,
            "line 2: byte 6 of the text (0xC3) is no UTF-8");
    put_text("bad.txt", "a");
    refused(spec_of("text", "bad.txt", ",unit=char"), LK_DATA_TRAIN, LK_E_DATA,
            "a text of 1 tokens; 2 are the least");
}

static void columns_of_tables_are_texts(void **state)
{
    (void)state;
    put_text("table.csv", "title,x,body,kind\n\"The cat, a cat\",1,A dog,pet\n"
                          "cat,oops,dog,pet\n"
                          "dog,2,,pet\n"
                          "a,3,the,wild\n");
    struct lk_data *data = open_part(
        spec_of("csv", "table.csv",
                ",text=head:title,body:body,fields=x,label=kind,unit=word,length=3,max_bad=2"),
        LK_DATA_TRAIN);
    expect_field(data, 0, "head", LK_I32, "3");
    expect_field(data, 1, "body", LK_I32, "3");
    expect_field(data, 2, "numbers", LK_F32, "1");
    expect_field(data, 3, "label", LK_I32, "");
    expect_field(data, 4, "head.length", LK_I32, "");
    expect_field(data, 5, "body.length", LK_I32, "");
    assert_int_equal(lk_data_info(data)->fields[1].length, 5);
    assert_int_equal(lk_data_bad(data), 2);
    /* a is there three times, the and cat twice; broken lines do not count, nor does half a one
     */
    expect_ints(data, 0, 0, (int32_t[]){3, 4, 2}, 3);
    expect_ints(data, 1, 0, (int32_t[]){2, 5, 0}, 3);
    expect_ints(data, 4, 0, (int32_t[]){3}, 1);
    expect_ints(data, 0, 3, (int32_t[]){2, 0, 0}, 3);
    expect_ints(data, 1, 3, (int32_t[]){3, 0, 0}, 3);
    expect_ints(data, 5, 3, (int32_t[]){1}, 1);
    assert_int_equal(lk_data_info(data)->fields[0].classes, 6);
    lk_data_close(data);

    data = open_part(spec_of("csv", "table.csv", ",text=title,label=kind,unit=char,length=2"),
                     LK_DATA_TRAIN);
    expect_field(data, 0, "tokens", LK_I32, "2");
    expect_field(data, 2, "tokens.length", LK_I32, "");
    assert_int_equal(lk_data_info(data)->count, 4);
    lk_data_close(data);
    refused(spec_of("csv", "table.csv", ",text=title,body,unit=word"), LK_DATA_TRAIN,
            LK_E_ARGUMENT, "a text is one column");
}

/* More lines than numbers are made room for at first, of which there are none. */
static void a_table_may_be_texts_alone(void **state)
{
    (void)state;
    char lines[512] = "title\n";
    for (int i = 0; i < 40; i++)
        strcat(lines, "a cat\n");
    put_text("alone.csv", lines);
    struct lk_data *data =
        open_part(spec_of("csv", "alone.csv", ",text=title,unit=word,length=2"), LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->count, 40);
    expect_ints(data, 0, 39, (int32_t[]){3, 2}, 2);
    lk_data_close(data);
}

static void unicode_is_lowered(void **state)
{
    (void)state;
    put_text(
        "wide.txt",
        "0\t\xc3\x84rger\xc2\xa0\xc2\xbfqu\xc3\xa9? \xe2\x80\x9c\xc3\xa4RGER\xe2\x80\x9d\n");
    if (!lk_unicode_is_complete()) {
        refused(spec_of("text", "wide.txt", ",unit=word"), LK_DATA_TRAIN, LK_E_UNSUPPORTED,
                "utf8proc");
        return;
    }
    struct lk_data *data =
        open_part(spec_of("text", "wide.txt", ",unit=word,length=4"), LK_DATA_TRAIN);
    expect_tokens(data, 0, (int32_t[]){2, 3, 2, 0}, 4); /* twice the same word */
    lk_data_close(data);
}

static void code_points_are_written_and_read(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char bytes[4];
        uint32_t found = 0;
        const int length = lk_utf8_write(code, bytes);
        const bool is_surrogate = code >= 0xD800 && code < 0xE000;
        if (lk_utf8_read(bytes, (size_t)length, &found) != (is_surrogate ? 0 : length) ||
            (!is_surrogate && found != code) ||
            (length > 1 && lk_utf8_read(bytes, (size_t)length - 1, &found) != 0))
            fail_msg("code point %u", code);
    }
    assert_int_equal(lk_utf8_find_broken("a\xc0\x80", 3), 1); /* too long for what it is */
    assert_int_equal(lk_utf8_find_broken("\xf4\x90\x80\x80", 4), 0); /* beyond all */
    assert_int_equal(lk_utf8_find_broken("\xc3\xa9\x80", 3), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_keras),
        cmocka_unit_test(numbers_of_trec_are_those_of_keras),
        cmocka_unit_test(texts_are_cut_and_filled),
        cmocka_unit_test(bytes_stay_as_they_are),
        cmocka_unit_test(only_the_training_part_is_learned),
        cmocka_unit_test(a_vocabulary_can_be_given),
        cmocka_unit_test(malformed_vocabularies_are_refused),
        cmocka_unit_test(a_brace_may_be_a_word),
        cmocka_unit_test(broken_lines_are_counted),
        cmocka_unit_test(a_long_text_predicts_what_comes_next),
        cmocka_unit_test(columns_of_tables_are_texts),
        cmocka_unit_test(a_table_may_be_texts_alone),
        cmocka_unit_test(unicode_is_lowered),
        cmocka_unit_test(code_points_are_written_and_read),
    };
    return cmocka_run_group_tests_name("text", tests, scratch_make, scratch_remove);
}
