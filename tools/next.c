/* Shows which tokens a language model expects next, as the texts that they stand for. */
#include "next.h"

#include "terminal/character.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The token behind `before` in the order of their probabilities; before -1: the first. Padding,
 * which is number 0, is never next. -1: there is none. */
static int64_t follower(const float *p, int64_t choices, int64_t before)
{
    int64_t best = -1;
    for (int64_t i = 1; i < choices; i++) {
        const bool is_behind =
            before < 0 || p[i] < p[before] || (p[i] == p[before] && i > before);
        if (is_behind && (best < 0 || p[i] > p[best]))
            best = i;
    }
    return best;
}

/* Writes a token between quotes: what could not be seen, or would steer a terminal, is written
 * as in C. */
static void print_quoted(const char *text, size_t bytes)
{
    static const char plain[] = "\n\t\r\"\\", letters[] = "ntr\"\\";
    uint32_t code;
    putchar('"');
    for (const char *at = text, *end = text + bytes; at < end;) {
        const char *found = *at ? strchr(plain, *at) : NULL;
        const int length = *at ? character_read(at, &code) : 1;
        if (found)
            printf("\\%c", letters[found - plain]);
        else if (*at && character_is_harmless(code))
            fwrite(at, 1, (size_t)length, stdout);
        else
            for (int i = 0; i < length; i++)
                printf("\\x%02x", (unsigned char)at[i]);
        at += length;
    }
    putchar('"');
}

enum lk_status next_print(struct lk_predictor *predictor, const float *probabilities,
                          int64_t choices, int64_t top)
{
    int64_t token = follower(probabilities, choices, -1);
    for (int64_t i = 0; i < top && token >= 0; i++) {
        const char *text = NULL;
        size_t bytes = 0;
        const enum lk_status status = lk_predictor_token(predictor, token, &text, &bytes);
        if (status != LK_OK)
            return status;
        printf("%s ", i ? ";" : "");
        print_quoted(text, bytes);
        printf(", probability %.4f", (double)probabilities[token]);
        token = follower(probabilities, choices, token);
    }
    return LK_OK;
}

/* The text as JSON: zero bytes, which end a text in C, as \x00. */
static json_t *quoted_json(const char *text, size_t bytes)
{
    char *copy = malloc(4 * bytes + 1), *end = copy;
    if (!copy)
        return NULL;
    for (size_t i = 0; i < bytes; i++)
        if (text[i])
            *end++ = text[i];
        else
            end += sprintf(end, "\\x00");
    *end = '\0';
    json_t *made = json_text(copy);
    free(copy);
    return made;
}

enum lk_status next_json(struct lk_predictor *predictor, const float *probabilities,
                         int64_t choices, int64_t top, json_t **list)
{
    int64_t token = follower(probabilities, choices, -1);
    *list = json_array();
    for (int64_t i = 0; i < top && token >= 0; i++) {
        const char *text = NULL;
        size_t bytes = 0;
        const enum lk_status status = lk_predictor_token(predictor, token, &text, &bytes);
        if (status != LK_OK) {
            json_decref(*list);
            *list = NULL;
            return status;
        }
        json_array_append_new(*list, json_pack("{s:I, s:o, s:o*}", "class", (json_int_t)token,
                                               "probability",
                                               json_number((double)probabilities[token]),
                                               "name", quoted_json(text, bytes)));
        token = follower(probabilities, choices, token);
    }
    return LK_OK;
}
