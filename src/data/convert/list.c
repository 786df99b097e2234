/* Lists all samples of a source with name, label and stamp, and the names of its classes. */
#include "base/fail.h"
#include "data/convert/convert.h"
#include "data/data.h"
#include "io/crc32c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 256 };

/* A part that is being listed. */
struct listing {
    struct lk_conversion *c;
    struct lk_convert_part *part;
    struct {
        struct lk_sample_metadata about;
        bool is_bad;
        char why[768];
    } slots[WINDOW];
};

/* Describes a sample of a source of bare pixels: its stamp is their checksum, and it has no
 * name. */
static enum lk_status tell_about_pixels(const struct lk_data *data, int64_t index,
                                        struct lk_sample_metadata *about)
{
    int32_t label = 0;
    uint8_t *pixels = malloc(data->sample_bytes);
    if (!pixels)
        return lk_fail_memory("a sample", data->sample_bytes);
    const enum lk_status status = lk_data_read(data, &index, 1, pixels, &label);
    about->label = label;
    about->stamp = lk_crc32c(pixels, data->sample_bytes);
    free(pixels);
    return status;
}

static enum lk_status tell_about(const struct lk_data *data, int64_t index,
                                 struct lk_sample_metadata *about)
{
    *about = (struct lk_sample_metadata){0};
    return data->source->about ? data->source->about(data->state, index, about)
                               : tell_about_pixels(data, index, about);
}

static enum lk_status look_at(void *context, int64_t i)
{
    struct listing *listing = context;
    struct lk_sample_metadata *about = &listing->slots[i % WINDOW].about;
    char *why = listing->slots[i % WINDOW].why;
    const size_t room = sizeof listing->slots->why;
    enum lk_status status = tell_about(listing->part->data, i, about);
    if (status == LK_OK && (about->label < 0 || about->label >= listing->c->class_count))
        status = lk_fail(LK_E_DATA,
                         "sample %lld ('%s') has the label %lld, which is not in "
                         "0..%d",
                         (long long)i, about->name, (long long)about->label,
                         listing->c->class_count - 1);
    listing->slots[i % WINDOW].is_bad = status == LK_E_DATA || status == LK_E_IO;
    if (!listing->slots[i % WINDOW].is_bad)
        return status;
    snprintf(why, room, "%s", lk_error_text());
    lk_error_clear();
    return LK_OK;
}

/* Learns the name of a class from a record; all records must agree on it. */
static enum lk_status learn_class(struct lk_conversion *c,
                                  const struct lk_sample_metadata *about)
{
    const char **known = &c->classes[about->label];
    for (const char *p = about->class_name; *p; p++)
        if ((unsigned char)*p < ' ')
            return LK_OK; /* such a name cannot stand in a list of names */
    if (!*about->class_name || (*known && strcmp(*known, about->class_name) == 0))
        return LK_OK;
    if (*known)
        return lk_fail(LK_E_DATA,
                       "label %lld is called '%s' and '%s'; option classes=FILE of the source "
                       "says what it is",
                       (long long)about->label, *known, about->class_name);
    return lk_arena_text(&c->arena, about->class_name, known);
}

/* Whether a name may become a path: no "." or "..", no hidden parts, no control characters. */
static bool is_fit(const char *name)
{
    bool begins = true;
    for (const char *p = name; *p; p++) {
        if ((begins && (*p == '.' || *p == '/')) || (unsigned char)*p < ' ')
            return false;
        begins = *p == '/';
    }
    return *name && !begins;
}

static enum lk_status keep(void *context, int64_t i)
{
    struct listing *listing = context;
    struct lk_convert_part *part = listing->part;
    struct lk_convert_sample *sample = &part->samples[i];
    const struct lk_sample_metadata *about = &listing->slots[i % WINDOW].about;
    lk_convert_report(listing->c, "listing", part->name, i + 1, part->count);
    if (listing->slots[i % WINDOW].is_bad) {
        *sample = (struct lk_convert_sample){.name = "", .label = -1};
        return lk_convert_note_bad(listing->c, part, listing->slots[i % WINDOW].why);
    }
    *sample = (struct lk_convert_sample){
        .name = "", .label = (int32_t)about->label, .stamp = about->stamp};
    LK_TRY(learn_class(listing->c, about));
    return is_fit(about->name) ? lk_arena_text(&listing->c->arena, about->name, &sample->name)
                               : LK_OK;
}

static enum lk_status list_part(struct lk_conversion *c, struct lk_convert_part *part)
{
    struct listing *listing = calloc(1, sizeof *listing);
    part->samples = calloc((size_t)part->count, sizeof *part->samples);
    part->counts = calloc((size_t)c->class_count, sizeof *part->counts);
    if (!listing || !part->samples || !part->counts) {
        free(listing);
        return lk_fail_memory("a list of samples", (size_t)part->count * sizeof *part->samples);
    }
    listing->c = c;
    listing->part = part;
    const struct lk_parallel crew = {.threads = c->threads,
                                     .count = part->count,
                                     .window = WINDOW,
                                     .stop = &c->stop,
                                     .context = listing,
                                     .work = look_at,
                                     .take = keep};
    const enum lk_status status = lk_parallel_run(&crew);
    free(listing);
    return status;
}

static enum lk_status find_classes(struct lk_conversion *c)
{
    for (int i = 0; i < c->part_count; i++) {
        const int classes = lk_data_info(c->parts[i].data)->classes;
        c->class_count = classes > c->class_count ? classes : c->class_count;
    }
    c->classes = calloc((size_t)c->class_count, sizeof *c->classes);
    if (!c->classes)
        return lk_fail_memory("names of classes", (size_t)c->class_count);
    for (int i = 0; i < c->part_count; i++) {
        const struct lk_data_info *info = lk_data_info(c->parts[i].data);
        for (int k = 0; info->class_names && k < info->classes; k++)
            c->classes[k] = info->class_names[k];
    }
    return LK_OK;
}

enum lk_status lk_convert_list(struct lk_conversion *c)
{
    LK_TRY(find_classes(c));
    for (int i = 0; i < c->part_count; i++)
        LK_TRY(list_part(c, &c->parts[i]));
    return LK_OK;
}
