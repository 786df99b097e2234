/* Draws a contact sheet of samples as a PNG file. */
#include "data/sheet.h"

#include "data/font.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 8,
    ROWS = 6,
    GAP = 16,
    LEAST_SIDE = 128, /* smaller samples are drawn larger, by whole numbers */
    MOST_SIDE = 256,  /* larger ones smaller */
    LEAST_CELL = 96,
    NAME_BYTES = 128,
    PAPER = 0xf6,
    INK = 0x20,
};

struct sheet {
    const struct lk_data_info *info;
    int count, columns, rows;      /* of tiles */
    int from_height, from_width;   /* of samples */
    int zoom, shrink;              /* one of them is 1 */
    int height, width;             /* of a tile */
    int cell_height, cell_width;   /* a tile, its name, the gaps */
    int title_height, letter_zoom; /* letter_zoom: of the names */
    int64_t shape[3];
    uint8_t *pixels;
};

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static void class_letters(const struct lk_data_info *info, int label, char name[NAME_BYTES])
{
    char number[32];
    snprintf(number, sizeof number, "class %d", label);
    font_letters(info->class_names ? info->class_names[label] : number, name, NAME_BYTES);
}

static int text_width(const char *letters, int zoom)
{
    return ((int)strlen(letters) * FONT_STEP - 1) * zoom;
}

/* Names are drawn in large letters where the longest one has room. */
static int choose_letters(const struct sheet *s)
{
    for (int i = 0; i < s->info->classes; i++) {
        char name[NAME_BYTES];
        class_letters(s->info, i, name);
        if (text_width(name, 2) > s->cell_width - GAP / 2)
            return 1;
    }
    return 2;
}

static void lay_out(struct sheet *s)
{
    const int side = larger(s->from_height, s->from_width);
    s->columns = s->count < COLUMNS ? s->count : COLUMNS;
    s->rows = (s->count + s->columns - 1) / s->columns;
    s->zoom = side < LEAST_SIDE ? (LEAST_SIDE + side - 1) / side : 1;
    s->shrink = (side + MOST_SIDE - 1) / MOST_SIDE;
    s->height = larger(1, s->from_height / s->shrink) * s->zoom;
    s->width = larger(1, s->from_width / s->shrink) * s->zoom;
    s->cell_width = larger(s->width, LEAST_CELL) + GAP;
    s->letter_zoom = choose_letters(s);
    s->cell_height = s->height + FONT_HEIGHT * s->letter_zoom + GAP + GAP / 2;
    s->title_height = 2 * FONT_HEIGHT + 2 * GAP;
    s->shape[0] = s->title_height + s->rows * s->cell_height;
    s->shape[1] = GAP + s->columns * s->cell_width;
    s->shape[2] = 3;
}

static uint8_t *pixel_at(const struct sheet *s, int x, int y)
{
    return s->pixels + 3 * ((int64_t)y * s->shape[1] + x);
}

static void draw_letter(const struct sheet *s, char letter, int left, int top, int zoom)
{
    for (int y = 0; y < FONT_HEIGHT * zoom; y++)
        for (int x = 0; x < FONT_WIDTH * zoom; x++)
            if (font_ink(letter, x / zoom, y / zoom))
                memset(pixel_at(s, left + x, top + y), INK, 3);
}

/* Draws what has room in `width` pixels, with dots where that is not all, in their middle or
 * from the left. */
static void draw_text(const struct sheet *s, char *letters, const int box[3], int zoom,
                      bool is_centred)
{
    const int room = (box[2] / zoom + 1) / FONT_STEP;
    if ((int)strlen(letters) > room && room >= 2) {
        letters[room] = '\0';
        letters[room - 1] = letters[room - 2] = '.';
    }
    int left = box[0];
    if (is_centred)
        left += (box[2] - text_width(letters, zoom)) / 2;
    for (; *letters; letters++, left += FONT_STEP * zoom)
        draw_letter(s, *letters, left, box[1], zoom);
}

/* One value of a tile's pixel: the mean of those it covers. */
static uint8_t mean_of(const struct sheet *s, const uint8_t *sample, int x, int y, int channel)
{
    const int channels = s->info->channels, n = s->shrink;
    int sum = 0, count = 0;
    for (int j = y * n; j < (y + 1) * n && j < s->from_height; j++)
        for (int i = x * n; i < (x + 1) * n && i < s->from_width; i++, count++)
            sum += sample[((int64_t)j * s->from_width + i) * channels + channel];
    return (uint8_t)((sum + count / 2) / count);
}

static void draw_tile(const struct sheet *s, const uint8_t *sample, int left, int top)
{
    for (int y = 0; y < s->height; y++)
        for (int x = 0; x < s->width; x++)
            for (int c = 0; c < 3; c++)
                pixel_at(s, left + x, top + y)[c] =
                    mean_of(s, sample, x / s->zoom, y / s->zoom, s->info->channels < 3 ? 0 : c);
}

static void draw(const struct sheet *s, const char *title, const uint8_t *samples,
                 const int32_t *labels)
{
    char letters[512];
    const size_t bytes =
        (size_t)s->from_height * (size_t)s->from_width * (size_t)s->info->channels;
    memset(s->pixels, PAPER, (size_t)(s->shape[0] * s->shape[1] * s->shape[2]));
    font_letters(title, letters, sizeof letters);
    draw_text(s, letters, (int[]){GAP, GAP, (int)s->shape[1] - 2 * GAP}, 2, false);
    for (int i = 0; i < s->count; i++) {
        const int left = GAP / 2 + i % s->columns * s->cell_width;
        const int top = s->title_height + i / s->columns * s->cell_height;
        draw_tile(s, samples + (size_t)i * bytes, left + (s->cell_width - s->width) / 2, top);
        class_letters(s->info, labels[i], letters);
        draw_text(s, letters,
                  (int[]){left + GAP / 4, top + s->height + GAP / 2, s->cell_width - GAP / 2},
                  s->letter_zoom, true);
    }
}

static enum lk_status read_and_draw(struct sheet *s, struct lk_batches *batches,
                                    const char *title)
{
    const size_t bytes =
        (size_t)s->from_height * (size_t)s->from_width * (size_t)s->info->channels;
    uint8_t *samples = malloc((size_t)s->count * bytes);
    int32_t *labels = malloc((size_t)s->count * sizeof *labels);
    s->pixels = malloc((size_t)(s->shape[0] * s->shape[1] * s->shape[2]));
    enum lk_status status = LK_E_MEMORY;
    if (samples && labels && s->pixels)
        status = lk_batches_read(batches, 0, 0, s->count, samples, labels);
    if (status == LK_OK)
        status = lk_batches_show(batches, 0, 0, s->count, samples);
    if (status == LK_OK)
        draw(s, title, samples, labels);
    free(samples);
    free(labels);
    return status;
}

enum lk_status sheet_write(const struct lk_data *data, const struct lk_batches_options *options,
                           const char *title, const char *path)
{
    const struct lk_data_info *info = lk_data_info(data);
    const int most = COLUMNS * ROWS;
    struct sheet sheet = {.info = info, .count = info->count < most ? (int)info->count : most};
    struct lk_batches_options first = *options;
    struct lk_batches *batches = NULL;
    int shape[3];
    first.size = sheet.count;
    first.threads = 0;
    enum lk_status status = lk_batches_create(data, &first, &batches);
    if (status != LK_OK)
        return status;
    lk_batches_shape(batches, shape);
    sheet.from_height = shape[0];
    sheet.from_width = shape[1];
    status = lk_batches_read(batches, 0, 0, 0, NULL, NULL); /* it says where no image is */
    if (status == LK_OK) {
        lay_out(&sheet);
        status = read_and_draw(&sheet, batches, title);
    }
    if (status == LK_OK)
        status = lk_image_write(path, sheet.shape, sheet.pixels);
    lk_batches_destroy(batches);
    free(sheet.pixels);
    return status;
}
