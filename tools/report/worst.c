/* The worst mistakes of an evaluation: what was taken for what, to be looked at. */
#include "report/report.h"

#include "command.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 600, MOST_SIDE = 16384 };

static const char *class_name(const struct lk_evaluation *e, int class, char number[32])
{
    snprintf(number, 32, "%d", class);
    return class < e->named_classes ? e->class_names[class] : number;
}

static void describe(const struct lk_evaluation *e, const struct lk_mistake *m, char text[256])
{
    char truth[32], taken[32];
    snprintf(text, 256, "%.100s, taken for %.100s (sample %" PRId64 ")",
             class_name(e, m->truth, truth), class_name(e, m->taken, taken), m->sample);
}

/* The field of that type that samples have: images are [h, w, c]; -1: none. */
static int find_field(const struct lk_data_info *info, bool is_image)
{
    for (int i = 0; i < info->field_count; i++) {
        const struct lk_field *f = &info->fields[i];
        const bool has_sides =
            f->shape.rank == 3 && f->shape.dim[0] <= MOST_SIDE && f->shape.dim[1] <= MOST_SIDE;
        const int64_t channels = f->shape.rank == 3 ? f->shape.dim[2] : 0;
        const bool has_colours = channels == 1 || channels == 3 || channels == 4;
        if (f->role == LK_FIELD_INPUT &&
            (is_image ? f->dtype == LK_U8 && has_sides && has_colours
                      : f->dtype == LK_I32 && f->shape.rank == 1 && f->length >= 0))
            return i;
    }
    return -1;
}

/* Tokens as the text that they stand for, cut between letters where it is long. */
static void text_of(struct lk_predictor *predictor, const int32_t *tokens, int64_t count,
                    char text[MOST_TEXT + 4])
{
    const char *whole = "";
    size_t bytes = 0;
    if (lk_predictor_decode(predictor, tokens, count, &whole, &bytes) != LK_OK)
        lk_error_clear();
    if (bytes <= MOST_TEXT) {
        memcpy(text, whole, bytes);
        text[bytes] = '\0';
        return;
    }
    size_t end = MOST_TEXT - 3;
    while (end > 0 && ((unsigned char)whole[end] & 0xc0) == 0x80)
        end--;
    memcpy(text, whole, end);
    memcpy(text + end, "...", 4);
}

static void add_images(struct page *page, const struct lk_data *data, int field,
                       const struct lk_evaluation *e)
{
    const struct lk_field *f = &lk_data_info(data)->fields[field];
    unsigned char *pixels = malloc(lk_field_bytes(f));
    void *to[LK_MOST_FIELDS] = {NULL};
    to[field] = pixels;
    page_pictures_begin(page, "The worst mistakes, the worst first:");
    for (int i = 0; i < e->mistake_count && pixels; i++) {
        char text[256];
        describe(e, &e->mistakes[i], text);
        if (lk_data_read_fields(data, &e->mistakes[i].sample, 1, to) == LK_OK)
            page_picture(page, f->shape.dim, pixels, text);
    }
    page_pictures_end(page);
    lk_error_clear();
    free(pixels);
}

static void add_texts(struct page *page, struct lk_predictor *predictor, int field,
                      const struct lk_evaluation *e)
{
    static const char *const columns[] = {"class", "taken for", "text", NULL};
    const struct lk_data *data = lk_predictor_evaluated(predictor);
    const struct lk_data_info *info = lk_data_info(data);
    const struct lk_field *f = &info->fields[field];
    int32_t *tokens = malloc(lk_field_bytes(f)), length = 0;
    void *to[LK_MOST_FIELDS] = {NULL};
    to[field] = tokens;
    to[f->length] = &length;
    page_table_begin(page, "The worst mistakes, the worst first", columns, 3);
    for (int i = 0; i < e->mistake_count && tokens; i++) {
        char text[MOST_TEXT + 4], truth[32], taken[32];
        if (lk_data_read_fields(data, &e->mistakes[i].sample, 1, to) != LK_OK)
            continue;
        const int64_t count = length < f->shape.dim[0] ? length : f->shape.dim[0];
        text_of(predictor, tokens, count, text);
        page_table_row(page,
                       (const char *[]){class_name(e, e->mistakes[i].truth, truth),
                                        class_name(e, e->mistakes[i].taken, taken), text});
    }
    page_table_end(page);
    lk_error_clear();
    free(tokens);
}

void report_worst(struct page *page, struct lk_predictor *predictor,
                  const struct lk_evaluation *evaluation)
{
    const struct lk_data *data = lk_predictor_evaluated(predictor);
    if (!data || evaluation->mistake_count == 0)
        return;
    const int image = find_field(lk_data_info(data), true);
    const int tokens = find_field(lk_data_info(data), false);
    if (image >= 0)
        add_images(page, data, image, evaluation);
    else if (tokens >= 0 && lk_predictor_takes_text(predictor))
        add_texts(page, predictor, tokens, evaluation);
}
