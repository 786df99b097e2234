/* Images for TensorBoard: inputs as they were trained on, and what the model takes for
 * something else. */
#include "base/fail.h"
#include "io/image/png_write.h"
#include "io/records/event_write.h"
#include "train/callbacks/tensorboard.h"
#include <stdlib.h>
#include <string.h>

enum { TABLE_LINE = 256 };

/* Puts `count` images of that shape under a name; a failure leaves the summary as it was. */
static enum lk_status add_images(struct lk_summary *summary, const char *tag,
                                 const int64_t shape[3], const uint8_t *pixels, int count)
{
    struct lk_encoded_image images[LK_MOST_BOARD_IMAGES] = {{0}};
    const size_t bytes = (size_t)(shape[0] * shape[1] * shape[2]);
    enum lk_status status = LK_OK;
    for (int i = 0; i < count && status == LK_OK; i++) {
        const struct lk_image image = {.height = (int)shape[0],
                                       .width = (int)shape[1],
                                       .channels = (int)shape[2],
                                       .pixels = (uint8_t *)pixels + (size_t)i * bytes};
        status = lk_png_write(&image, &images[i].data, &images[i].bytes);
    }
    if (status == LK_OK)
        lk_summary_add_images(summary, tag, (int)shape[1], (int)shape[0], images, count);
    for (int i = 0; i < count; i++)
        free(images[i].data);
    return status;
}

/* The field with images that can be shown, of bytes [h, w, c]; -1: there is none. */
static int find_images(const struct lk_field *fields, int count)
{
    for (int i = 0; i < count; i++) {
        const struct lk_shape *shape = &fields[i].shape;
        const int64_t channels = shape->rank == 3 ? shape->dim[2] : 0;
        if (fields[i].role == LK_FIELD_INPUT && fields[i].dtype == LK_U8 &&
            (channels == 1 || channels == 3 || channels == 4))
            return i;
    }
    return -1;
}

enum lk_status lk_board_add_inputs(struct lk_summary *summary,
                                   const struct lk_callback_site *site, int64_t step, int most)
{
    struct lk_batches *batches = NULL;
    void *to[LK_MOST_FIELDS] = {NULL};
    int fields;
    LK_TRY(site->open_batches(site->trainer, &batches));
    if (!batches)
        return LK_OK;
    const struct lk_field *list = lk_batches_fields(batches, &fields);
    const int image = find_images(list, fields);
    const int64_t in_batch = lk_batches_size(batches, step - 1);
    const int count = in_batch < most ? (int)in_batch : most;
    enum lk_status status = LK_OK;
    if (image >= 0) {
        const size_t bytes = (size_t)count * lk_field_bytes(&list[image]);
        to[image] = malloc(bytes);
        status = to[image] ? lk_batches_read_fields(batches, step - 1, 0, count, to)
                           : lk_fail_memory("images", bytes);
        if (status == LK_OK)
            status = lk_batches_show(batches, step - 1, 0, count, to[image]);
        if (status == LK_OK)
            status = add_images(summary, "inputs", list[image].shape.dim, to[image], count);
        free(to[image]);
    }
    lk_batches_destroy(batches);
    return status;
}

static void print_class(const struct lk_evaluation *e, int number, char text[80])
{
    if (number < e->named_classes)
        snprintf(text, 80, "%.70s", e->class_names[number]);
    else
        snprintf(text, 80, "%d", number);
    for (char *at = text; *at; at++) /* it would end a cell */
        *at = *at == '|' || *at == '\n' ? '/' : *at;
}

/* What each image is, as a table in Markdown. */
static enum lk_status add_table(struct lk_summary *summary, const struct lk_evaluation *e,
                                int count)
{
    const size_t bytes = (size_t)(count + 2) * TABLE_LINE;
    char *text = malloc(bytes), truth[80], taken[80];
    if (!text)
        return lk_fail_memory("a table of mistakes", bytes);
    size_t used = (size_t)snprintf(text, bytes,
                                   "| image | class | taken for | by | sample |\n"
                                   "|---|---|---|---|---|\n");
    for (int i = 0; i < count; i++) {
        const struct lk_mistake *m = &e->mistakes[i];
        print_class(e, m->truth, truth);
        print_class(e, m->taken, taken);
        used += (size_t)snprintf(text + used, bytes - used, "| %d | %s | %s | %.3f | %lld |\n",
                                 i + 1, truth, taken, m->margin, (long long)m->sample);
    }
    lk_summary_add_text(summary, "mistakes_by_name", text);
    free(text);
    return LK_OK;
}

enum lk_status lk_board_add_mistakes(struct lk_summary *summary, const struct lk_data *data,
                                     const struct lk_evaluation *e, int most)
{
    const struct lk_data_info *info = lk_data_info(data);
    const int image = find_images(info->fields, info->field_count);
    const int count = e->mistake_count < most ? e->mistake_count : most;
    int64_t samples[LK_MOST_BOARD_IMAGES];
    void *to[LK_MOST_FIELDS] = {NULL};
    if (image < 0 || count == 0)
        return LK_OK;
    for (int i = 0; i < count; i++)
        samples[i] = e->mistakes[i].sample;
    const size_t bytes = (size_t)count * lk_field_bytes(&info->fields[image]);
    to[image] = malloc(bytes);
    if (!to[image])
        return lk_fail_memory("images", bytes);
    enum lk_status status = lk_data_read_fields(data, samples, count, to);
    if (status == LK_OK)
        status =
            add_images(summary, "mistakes", info->fields[image].shape.dim, to[image], count);
    if (status == LK_OK)
        status = add_table(summary, e, count);
    free(to[image]);
    return status;
}
