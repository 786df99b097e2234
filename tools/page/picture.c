/* Puts pictures into a page, as bitmaps in base64. */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 96, HEADER = 54 };

static void put_number(unsigned char *to, size_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

/* A pixel of the picture as it is shown: the mean of those that fall into it. */
static void put_pixel(unsigned char *to, const int64_t shape[3], const unsigned char *pixels,
                      int64_t row, int64_t column, int64_t shrink)
{
    for (int i = 0; i < 3; i++) {
        const int64_t channel = shape[2] < 3 ? 0 : i;
        int64_t sum = 0, count = 0;
        for (int64_t y = row * shrink; y < (row + 1) * shrink && y < shape[0]; y++)
            for (int64_t x = column * shrink; x < (column + 1) * shrink && x < shape[1]; x++) {
                sum += pixels[(y * shape[1] + x) * shape[2] + channel];
                count++;
            }
        to[2 - i] = (unsigned char)(sum / (count > 0 ? count : 1)); /* blue comes first */
    }
}

/* A bitmap of 24 bits a pixel, its rows from the lowest; the caller frees it. */
static unsigned char *make_bitmap(const int64_t shape[3], const unsigned char *pixels,
                                  size_t *bytes)
{
    const int64_t side = shape[0] > shape[1] ? shape[0] : shape[1];
    const int64_t shrink = (side + MOST_SIDE - 1) / MOST_SIDE;
    const size_t height = (size_t)((shape[0] + shrink - 1) / shrink);
    const size_t width = (size_t)((shape[1] + shrink - 1) / shrink);
    const size_t row = (3 * width + 3) / 4 * 4;
    unsigned char *bitmap = calloc(1, HEADER + row * height + 3);
    if (!bitmap)
        return NULL;
    *bytes = HEADER + row * height;
    memcpy(bitmap, "BM", 2);
    put_number(bitmap + 2, *bytes, 4);
    put_number(bitmap + 10, HEADER, 4);
    put_number(bitmap + 14, HEADER - 14, 4);
    put_number(bitmap + 18, width, 4);
    put_number(bitmap + 22, height, 4);
    put_number(bitmap + 26, 1, 2);
    put_number(bitmap + 28, 24, 2);
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++)
            put_pixel(bitmap + HEADER + (height - 1 - y) * row + 3 * x, shape, pixels,
                      (int64_t)y, (int64_t)x, shrink);
    return bitmap;
}

/* Behind `bytes` there is room for 3 that are 0. */
static void add_base64(struct page *page, const unsigned char *from, size_t bytes)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes; i += 3) {
        const unsigned value =
            (unsigned)from[i] << 16 | (unsigned)from[i + 1] << 8 | from[i + 2];
        const size_t left = bytes - i;
        page_add(page, "%c%c%c%c", letters[value >> 18], letters[value >> 12 & 63],
                 left > 1 ? letters[value >> 6 & 63] : '=',
                 left > 2 ? letters[value & 63] : '=');
    }
}

void page_pictures_begin(struct page *page, const char *caption)
{
    page_paragraph(page, "%s", caption);
    page_add(page, "<div class=\"pictures\">\n");
}

void page_picture(struct page *page, const int64_t shape[3], const unsigned char *pixels,
                  const char *text)
{
    size_t bytes = 0;
    unsigned char *bitmap = make_bitmap(shape, pixels, &bytes);
    if (!bitmap) {
        page->lacks_memory = true;
        return;
    }
    page_add(page, "<figure><img alt=\"");
    page_add_text(page, text);
    page_add(page, "\" src=\"data:image/bmp;base64,");
    add_base64(page, bitmap, bytes);
    page_add(page, "\"/><figcaption>");
    page_add_text(page, text);
    page_add(page, "</figcaption></figure>\n");
    free(bitmap);
}

void page_pictures_end(struct page *page)
{
    page_add(page, "</div>\n");
}
