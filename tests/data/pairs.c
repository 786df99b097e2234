/* Byte pairs: what is learned equals a plain search for the most frequent pair, and what is
 * encoded stands for the same bytes. */
#include "data/text/file.h"
#include "data/text/learn.h"
#include "scratch.h"
#include <lockstep/text.h>

enum { MOST = 4096 };

/* Counts all pairs anew for each join. */
struct plain {
    int32_t tokens[64][MOST];
    int counts[64], pieces;
};

static int count_pair(const struct plain *p, const struct lk_word_set *pieces, int32_t left,
                      int32_t right)
{
    int64_t sum = 0;
    for (int i = 0; i < p->pieces; i++)
        for (int k = 0; k + 1 < p->counts[i]; k++)
            if (p->tokens[i][k] == left && p->tokens[i][k + 1] == right)
                sum += pieces->items[i].count;
    return (int)sum;
}

static int find_best(const struct plain *p, const struct lk_word_set *pieces, int32_t best[2])
{
    int most = 0;
    for (int i = 0; i < p->pieces; i++)
        for (int k = 0; k + 1 < p->counts[i]; k++) {
            const int32_t *t = &p->tokens[i][k];
            const int count = count_pair(p, pieces, t[0], t[1]);
            const bool is_lower = t[0] != best[0] ? t[0] < best[0] : t[1] < best[1];
            if (count > most || (count == most && is_lower)) {
                most = count;
                memcpy(best, t, 2 * sizeof *t);
            }
        }
    return most;
}

static void join(struct plain *p, const int32_t two[2], int32_t token)
{
    for (int i = 0; i < p->pieces; i++) {
        int kept = 0;
        for (int k = 0; k < p->counts[i]; k++) {
            const bool is_pair = k + 1 < p->counts[i] && p->tokens[i][k] == two[0] &&
                                 p->tokens[i][k + 1] == two[1];
            p->tokens[i][kept++] = is_pair ? token : p->tokens[i][k];
            k += is_pair;
        }
        p->counts[i] = kept;
    }
}

static void the_most_frequent_pair_is_joined_first(void **state)
{
    static const char *const words[] = {"low",  "lower", "newest",       "widest", " low",
                                        "aaaa", "aaab",  "\xff\xff\xff", "banana", "ananas"};
    static const int times[] = {5, 2, 6, 3, 4, 3, 2, 2, 3, 2};
    struct lk_word_set pieces = {0};
    static struct plain plain;
    int32_t(*joins)[2] = NULL;
    int64_t count = 0, tokens = 0, all = 0;
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(lk_word_set_add(&pieces, words[i], strlen(words[i]), times[i]), LK_OK);
        plain.counts[plain.pieces] = (int)strlen(words[i]);
        for (size_t k = 0; k < strlen(words[i]); k++)
            plain.tokens[plain.pieces][k] = LK_TOKEN_FIRST + (unsigned char)words[i][k];
        plain.pieces++;
    }
    assert_int_equal(lk_text_learn(&pieces, 300, 2, &joins, &count, &tokens), LK_OK);
    assert_in_range(count, 20, 42);
    for (int64_t i = 0; i < count; i++) {
        int32_t best[2] = {0};
        assert_true(find_best(&plain, &pieces, best) >= 2);
        assert_memory_equal(joins[i], best, sizeof best);
        join(&plain, best, (int32_t)(LK_PAIRS_BYTES + i));
    }
    int32_t best[2] = {0};
    assert_true(find_best(&plain, &pieces, best) < 2); /* no other is there twice */
    for (int i = 0; i < plain.pieces; i++)
        all += plain.counts[i] * pieces.items[i].count;
    assert_int_equal(tokens, all);
    free(joins);
    lk_word_set_clear(&pieces);
}

static void learn_from(const char *text, size_t bytes, struct lk_vocabulary *vocabulary)
{
    struct lk_tokenize_report report;
    const struct lk_tokenize_options options = {
        .vocabulary = 400, .min_count = 2, .may_replace = true};
    const char *const files[] = {scratch_path("text")};
    scratch_put(scratch_path("text"), text, bytes);
    if (lk_tokenize(files, 1, &options, scratch_path("pairs.json"), &report) != LK_OK ||
        lk_vocabulary_read(vocabulary, scratch_path("pairs.json")) != LK_OK)
        fail_msg("%s", lk_error_text());
    assert_int_equal(report.bytes, bytes);
    assert_int_equal(report.vocabulary, lk_vocabulary_size(vocabulary));
}

/* Any bytes: all pairs of bytes, all runs of blanks, words. */
static void tokens_stand_for_the_same_bytes(void **state)
{
    static const char text[] = "the cat  sat on   the mat\n\n the\tdog 1234 567!? (the) 1.5e3";
    static char any[3 * 65536 + 300];
    struct lk_vocabulary vocabulary = {0};
    struct lk_tokens tokens = {0};
    struct lk_text_room room = {0};
    size_t used = 0;
    (void)state;
    learn_from(text, sizeof text - 1, &vocabulary);
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            any[used++] = (char)a;
            any[used++] = (char)b;
            any[used++] = (char)(a ^ b);
        }
    memcpy(any + used, text, sizeof text);
    used += sizeof text;
    assert_int_equal(lk_vocabulary_encode(&vocabulary, any, used, &tokens), LK_OK);
    assert_true(tokens.count < (int64_t)used);
    for (int64_t i = 0; i < tokens.count; i++)
        assert_int_equal(lk_vocabulary_decode(&vocabulary, tokens.items[i], &room), LK_OK);
    assert_int_equal(room.used, used);
    assert_memory_equal(room.bytes, any, used);
    assert_int_equal(lk_vocabulary_decode(&vocabulary, 400, &room), LK_E_DATA);
    assert_int_equal(lk_vocabulary_decode(&vocabulary, -1, &room), LK_E_DATA);
    lk_error_clear();
    free(tokens.items);
    free(room.bytes);
    lk_vocabulary_clear(&vocabulary);
}

static void nothing_is_replaced_unasked(void **state)
{
    struct lk_tokenize_report report;
    struct lk_tokenize_options options = {.vocabulary = 300, .min_count = 2};
    char text[512];
    const char *const files[] = {text};
    snprintf(text, sizeof text, "%s", scratch_path("text"));
    (void)state;
    scratch_put(text, "aa aa", 5);
    scratch_put(scratch_path("mine"), "x", 1);
    assert_refused(lk_tokenize(files, 1, &options, scratch_path("mine"), &report),
                   LK_E_ARGUMENT, lk_error_text(), "is there already");
    lk_error_clear();
    options.vocabulary = 257;
    assert_refused(lk_tokenize(files, 1, &options, scratch_path("new"), &report), LK_E_ARGUMENT,
                   lk_error_text(), "258 to");
    lk_error_clear();
    options.vocabulary = 300;
    scratch_put(text, "", 0);
    assert_refused(lk_tokenize(files, 1, &options, scratch_path("new"), &report), LK_E_ARGUMENT,
                   lk_error_text(), "nothing to learn from");
    lk_error_clear();
    scratch_put(text, "label\taa aa\nlabel\taa\n", 21);
    options.skips_labels = true;
    assert_int_equal(lk_tokenize(files, 1, &options, scratch_path("new"), &report), LK_OK);
    assert_int_equal(report.vocabulary, LK_PAIRS_BYTES + 1);
}

/* Pairs that stay are noted again, without a piece: more of them than any list began with. */
static void joins_leave_their_neighbours_countable(void **state)
{
    struct lk_tokenize_report report;
    const struct lk_tokenize_options options = {.vocabulary = 2000, .min_count = 2};
    char text[512], *lines = malloc(64 << 10);
    const char *const files[] = {text};
    size_t used = 0;
    (void)state;
    snprintf(text, sizeof text, "%s", scratch_path("many"));
    for (int i = 0; i < 3000; i++)
        used += (size_t)sprintf(lines + used, "%x%o ", (unsigned)i * 7919u % 65536u,
                                (unsigned)i % 97u);
    scratch_put(text, lines, used);
    free(lines);
    assert_int_equal(lk_tokenize(files, 1, &options, scratch_path("pairs"), &report), LK_OK);
    assert_true(report.vocabulary > LK_PAIRS_BYTES + 100);
}

/* Each join twice the one before: 40 of them would be a terabyte. */
static void a_token_of_endless_bytes_is_refused(void **state)
{
    struct lk_vocabulary vocabulary = {0};
    struct lk_text_room bytes = {0};
    char text[2048] = "{\"unit\":\"pairs\",\"standardize\":\"none\",\"truncate\":\"end\","
                      "\"joins\":[[2,2]";
    (void)state;
    for (int i = 0; i < 40; i++)
        sprintf(text + strlen(text), ",[%d,%d]", LK_PAIRS_BYTES + i, LK_PAIRS_BYTES + i);
    strcat(text, "]}");
    assert_int_equal(lk_vocabulary_parse(&vocabulary, text, strlen(text), "hostile"), LK_OK);
    lk_error_clear();
    assert_refused(lk_vocabulary_decode(&vocabulary, LK_PAIRS_BYTES + 40, &bytes), LK_E_DATA,
                   lk_error_text(), "stands for more than");
    lk_error_clear();
    assert_int_equal(lk_vocabulary_decode(&vocabulary, LK_PAIRS_BYTES + 3, &bytes), LK_OK);
    free(bytes.bytes);
    lk_vocabulary_clear(&vocabulary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_frequent_pair_is_joined_first),
        cmocka_unit_test(tokens_stand_for_the_same_bytes),
        cmocka_unit_test(nothing_is_replaced_unasked),
        cmocka_unit_test(joins_leave_their_neighbours_countable),
        cmocka_unit_test(a_token_of_endless_bytes_is_refused),
    };
    return cmocka_run_group_tests_name("pairs", tests, scratch_make, scratch_remove);
}
