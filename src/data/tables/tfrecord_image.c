/* tfrecord:GLOB,image=KEY,fields=a,b,label=c: an image and numbers from one record. The numbers
 * and labels are those of the source without an image, which this one has inside. */
#include "base/fail.h"
#include "base/text.h"
#include "data/tables/tfrecord.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE = 0, OTHERS = 1 };

struct mixed {
    struct lk_image_options options;
    void *table; /* of lk_source_tfrecord_fields */
    struct lk_field fields[LK_MOST_FIELDS];
};

static void mixed_close(void *state)
{
    struct mixed *mixed = state;
    lk_source_tfrecord_fields.close(mixed->table);
    free(mixed);
}

/* The SPEC of the numbers alone. */
static enum lk_status print_inner(const struct lk_data_request *request, char **text)
{
    const struct lk_image_options *o = request->options;
    const char *const values[] = {o->fields, o->label, o->label_type, o->classes, o->part};
    static const char *const names[] = {"fields", "label", "label_type", "classes", "part"};
    struct lk_text made = {0};
    lk_text_append(&made, "%s,offset=%lld", request->text, (long long)o->offset);
    for (int i = 0; i < LK_COUNT(names); i++)
        if (*values[i])
            lk_text_append(&made, ",%s=%s", names[i], values[i]);
    if (made.failed) {
        free(made.bytes);
        return lk_fail_memory("a SPEC", made.used);
    }
    *text = made.bytes;
    return LK_OK;
}

/* The image, whose shape is found later, then the fields of the table. */
static enum lk_status list_fields(struct mixed *mixed, struct lk_data_info *info)
{
    static const char name[] = "image";
    if (info->field_count + OTHERS > LK_MOST_FIELDS)
        return lk_fail(LK_E_ARGUMENT, "more than %d fields", LK_MOST_FIELDS);
    if (lk_field_find(info->fields, info->field_count, name) >= 0)
        return lk_fail(LK_E_ARGUMENT,
                       "'%s' is the field of image=; fields=NAME:KEY says another name", name);
    mixed->fields[IMAGE] =
        (struct lk_field){.name = name, .dtype = LK_U8, .shape = {.rank = 3}, .length = -1};
    memcpy(mixed->fields + OTHERS, info->fields,
           (size_t)info->field_count * sizeof *info->fields);
    info->fields = mixed->fields;
    info->field_count += OTHERS;
    return LK_OK;
}

static enum lk_status mixed_open(struct lk_data_request *request, struct lk_data_info *info,
                                 void **state)
{
    char *text = NULL;
    LK_TRY(print_inner(request, &text));
    struct mixed *mixed = calloc(1, sizeof *mixed);
    struct lk_data_request inner = *request;
    inner.text = text;
    enum lk_status status = mixed ? lk_source_tfrecord_fields.open(&inner, info, &mixed->table)
                                  : lk_fail_memory("a data set", sizeof *mixed);
    free(text);
    if (status != LK_OK) {
        free(mixed);
        return status;
    }
    request->lost = inner.lost;
    mixed->options = *request->options;
    status = list_fields(mixed, info);
    if (status != LK_OK) {
        mixed_close(mixed);
        return status;
    }
    *state = mixed;
    return LK_OK;
}

static enum lk_status mixed_fetch(const void *state, int64_t index, struct lk_encoded *encoded)
{
    const struct mixed *mixed = state;
    return lk_records_fetch(lk_tfrecord_table_records(mixed->table), mixed->options.image,
                            false, index, encoded);
}

static enum lk_status mixed_read(const void *state, int64_t index, void *const to[])
{
    const struct mixed *mixed = state;
    return lk_source_tfrecord_fields.read(mixed->table, index, to + OTHERS);
}

static void mixed_identify(const void *state, struct lk_sha256 *sum)
{
    const struct mixed *mixed = state;
    const struct lk_image_options *o = &mixed->options;
    const char *const texts[] = {o->image, o->fields, o->label, o->label_type};
    for (int i = 0; i < LK_COUNT(texts); i++)
        lk_sha256_add(sum, texts[i], strlen(texts[i]) + 1);
    lk_sha256_add(sum, &o->offset, sizeof o->offset);
    for (int f = 0; f < LK_MOST_FIELDS; f++)
        for (int64_t c = 0; mixed->fields[f].class_names && c < mixed->fields[f].classes; c++)
            lk_sha256_add(sum, mixed->fields[f].class_names[c],
                          strlen(mixed->fields[f].class_names[c]) + 1);
    lk_records_identify(lk_tfrecord_table_records(mixed->table), sum);
}

static const struct lk_option options[] = {
    LK_IMAGE_OPTIONS,
    {LK_IMAGE_TEXT(part), .standard = "", .help = "of a folder the files to read: train, val"},
    {LK_IMAGE_TEXT(image), .standard = "", .help = "key of the image file"},
    {LK_IMAGE_TEXT(fields), .standard = "", .help = "keys of numbers: a,b or NAME:a+b"},
    {LK_IMAGE_TEXT(label), .standard = "", .help = "the key of the label"},
    {LK_IMAGE_TEXT(label_type), .standard = "", .help = "what labels are: class, or number"},
    {LK_IMAGE_OPTION(offset), .kind = LK_OPTION_INT, .count = 1, .min = -1e6, .max = 1e6,
     .standard = "0", .help = "added to the labels: -1 where they count from 1"},
    {0},
};

const struct lk_source lk_source_tfrecord_image_and_fields = {
    .kind = "tfrecord",
    .usage = "tfrecord:GLOB,image=KEY,fields=...",
    .options = options,
    .open = mixed_open,
    .close = mixed_close,
    .read = mixed_read,
    .fetch = mixed_fetch,
    .identify = mixed_identify};
