/* Whole-number arithmetic in model text: $(4*filters), $(number > 1). */
#include "base/fail.h"
#include "model/text/words.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Results stay below 2^31, so that the product of two fits an int64_t. */
static const int64_t MOST = INT64_C(0x7fffffff);
enum { MOST_NESTED = 16 };

struct reader {
    const struct lk_words *words;
    const struct lk_yaml *place;
    const char *start, *at;
    int nested;
};

static enum lk_status refuse(const struct reader *r, const char *why)
{
    return lk_yaml_fail(r->place, "'%.80s': %s", r->start, why);
}

static void skip_spaces(struct reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

/* Whether `mark` stands here; moves behind it. */
static bool take(struct reader *r, const char *mark)
{
    skip_spaces(r);
    const size_t length = strlen(mark);
    if (strncmp(r->at, mark, length) != 0)
        return false;
    r->at += length;
    return true;
}

static enum lk_status limit(const struct reader *r, int64_t value, int64_t *result)
{
    if (value > MOST || value < -MOST)
        return refuse(r, "a number beyond 2147483647");
    *result = value;
    return LK_OK;
}

static enum lk_status read_number(const struct reader *r, const char *text, const char **end,
                                  int64_t *value)
{
    char *behind = NULL;
    errno = 0;
    const long long number = strtoll(text, &behind, 10);
    if (behind == text)
        return refuse(r, "a whole number or a word expected");
    *end = behind;
    return limit(r, errno ? INT64_MAX : number, value);
}

static bool is_one_of(const char *text, const char *a, const char *b)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

static enum lk_status read_word(struct reader *r, size_t length, int64_t *value)
{
    char word[64], room[24];
    const char *end = NULL;
    struct lk_yaml found;
    if (length >= sizeof word)
        return refuse(r, "a word that is too long");
    snprintf(word, sizeof word, "%.*s", (int)length, r->at);
    LK_TRY(lk_words_find(r->words, r->place, word, room, &found));
    r->at += length;
    *value = 0;
    if (found.kind == LK_YAML_SCALAR && is_one_of(found.text, "true", "yes"))
        *value = 1;
    else if (found.kind != LK_YAML_SCALAR || !is_one_of(found.text, "false", "no")) {
        char text[80];
        if (found.kind != LK_YAML_SCALAR || !strchr("-0123456789", found.text[0]) ||
            read_number(r, found.text, &end, value) != LK_OK || *end) {
            lk_error_clear();
            return lk_yaml_fail(r->place, "'%.80s': '%s' is %s, no whole number", r->start,
                                word, lk_yaml_found(&found, text, sizeof text));
        }
    }
    return LK_OK;
}

static enum lk_status read_comparison(struct reader *r, int64_t *value);

static enum lk_status read_factor(struct reader *r, int64_t *value)
{
    if (r->nested == MOST_NESTED)
        return refuse(r, "nested too deep");
    if (take(r, "-")) {
        r->nested++;
        LK_TRY(read_factor(r, value));
        r->nested--;
        *value = -*value;
        return LK_OK;
    }
    if (take(r, "(")) {
        r->nested++;
        LK_TRY(read_comparison(r, value));
        r->nested--;
        return take(r, ")") ? LK_OK : refuse(r, "')' expected");
    }
    (void)take(r, "$"); /* "$(2*$filters)" is understood too */
    const size_t length = lk_words_length(r->at);
    return length ? read_word(r, length, value) : read_number(r, r->at, &r->at, value);
}

static enum lk_status read_product(struct reader *r, int64_t *value)
{
    int64_t by;
    LK_TRY(read_factor(r, value));
    for (;;) {
        if (take(r, "*")) {
            LK_TRY(read_factor(r, &by));
            LK_TRY(limit(r, *value * by, value));
            continue;
        }
        const bool divides = take(r, "/");
        if (!divides && !take(r, "%"))
            return LK_OK;
        LK_TRY(read_factor(r, &by));
        if (by == 0)
            return refuse(r, "a division by 0");
        if (divides && *value % by != 0)
            return lk_yaml_fail(r->place, "'%.80s': %lld / %lld is no whole number", r->start,
                                (long long)*value, (long long)by);
        *value = divides ? *value / by : *value % by;
    }
}

static enum lk_status read_sum(struct reader *r, int64_t *value)
{
    int64_t by;
    LK_TRY(read_product(r, value));
    for (;;) {
        const bool adds = take(r, "+");
        if (!adds && !take(r, "-"))
            return LK_OK;
        LK_TRY(read_product(r, &by));
        LK_TRY(limit(r, adds ? *value + by : *value - by, value));
    }
}

static enum lk_status read_comparison(struct reader *r, int64_t *value)
{
    static const char *const marks[] = {"==", "!=", "<=", ">=", "<", ">"};
    int64_t a, b;
    LK_TRY(read_sum(r, &a));
    for (int i = 0; i < LK_COUNT(marks); i++) {
        if (!take(r, marks[i]))
            continue;
        LK_TRY(read_sum(r, &b));
        const bool results[] = {a == b, a != b, a <= b, a >= b, a<b, a> b};
        *value = results[i];
        return LK_OK;
    }
    *value = a;
    return LK_OK;
}

enum lk_status lk_words_calculate(const struct lk_words *words, const struct lk_yaml *place,
                                  const char **text, int64_t *result)
{
    struct reader r = {.words = words, .place = place, .start = place->text, .at = *text};
    if (!take(&r, "("))
        return refuse(&r, "'(' expected");
    LK_TRY(read_comparison(&r, result));
    if (!take(&r, ")"))
        return refuse(&r, "an operator or ')' expected");
    *text = r.at;
    return LK_OK;
}
