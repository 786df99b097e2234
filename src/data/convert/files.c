/* Writes image files, one folder for each class: each is synced and read back before it is put
 * in its place. */
#include "base/fail.h"
#include "data/convert/convert.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 256, MOST_FILE_BYTES = 1 << 30 };

struct writer {
    struct lk_conversion *c;
    int64_t firsts[LK_CONVERT_PARTS + 1]; /* the number of each part's first sample among all */
    struct {
        bool is_bad, was_there;
        size_t bytes;
        char why[768];
    } slots[WINDOW];
};

/* A sample and its file name, to find those with the same name. */
struct called {
    int64_t index;
    int32_t label;
    const char *name;
};

static int compare(const void *a, const void *b)
{
    const struct called *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return x->label != y->label ? (x->label < y->label ? -1 : 1)
           : order != 0         ? order
                                : (x->index > y->index) - (x->index < y->index);
}

/* Of samples of a class with the same name the first keeps it; sample number 2 named "a/1.jpg"
 * becomes "a/1~2.jpg", which no other is called. */
static enum lk_status rename_sample(struct lk_conversion *c, struct lk_convert_sample *sample,
                                    int64_t index)
{
    char name[LK_CONVERT_PATH];
    const char *dot = strrchr(sample->name, '.');
    const int stem = (int)(dot ? (size_t)(dot - sample->name) : strlen(sample->name));
    snprintf(name, sizeof name, "%.*s~%lld%s", stem, sample->name, (long long)index,
             dot ? dot : "");
    return lk_arena_text(&c->arena, name, &sample->name);
}

static enum lk_status separate(struct lk_conversion *c, struct lk_convert_part *part)
{
    struct called *all = calloc((size_t)part->count, sizeof *all);
    int64_t count = 0;
    enum lk_status status = LK_OK;
    if (!all)
        return lk_fail_memory("names of samples", (size_t)part->count * sizeof *all);
    for (int64_t i = 0; i < part->count; i++) {
        const struct lk_convert_sample *s = &part->samples[i];
        if (s->label >= 0 && *s->name)
            all[count++] = (struct called){i, s->label, s->name};
    }
    qsort(all, (size_t)count, sizeof *all, compare);
    for (int64_t i = 1; i < count && status == LK_OK; i++)
        if (all[i].label == all[i - 1].label && strcmp(all[i].name, all[i - 1].name) == 0)
            status = rename_sample(c, &part->samples[all[i].index], all[i].index);
    free(all);
    return status;
}

static struct lk_convert_part *find_part(struct writer *writer, int64_t i, int64_t *index)
{
    int k = 0;
    while (i >= writer->firsts[k + 1])
        k++;
    *index = i - writer->firsts[k];
    return &writer->c->parts[k];
}

/* DIR/train/cat/1.jpg, or without "train" where that is all. */
static enum lk_status path_of(const struct lk_conversion *c, const struct lk_convert_part *part,
                              int64_t index, const char *format, char path[LK_CONVERT_PATH])
{
    char name[LK_CONVERT_PATH];
    const bool has_parts = c->part_count > 1;
    lk_convert_name(c, part, index, format, name);
    const int length =
        snprintf(path, LK_CONVERT_PATH, "%s/%s%s%s/%s", c->folder, has_parts ? part->name : "",
                 has_parts ? "/" : "", c->classes[part->samples[index].label], name);
    if (length >= LK_CONVERT_PATH)
        return lk_fail(LK_E_ARGUMENT, "'%.200s...': too long a path", path);
    return LK_OK;
}

static bool holds(const char *path, const struct lk_convert_image *image)
{
    void *data = NULL;
    size_t bytes = 0;
    const bool is_read =
        lk_file_exists(path) && lk_file_read(path, MOST_FILE_BYTES, &data, &bytes) == LK_OK;
    const bool is_same =
        is_read && bytes == image->bytes && memcmp(data, image->data, bytes) == 0;
    free(data);
    lk_error_clear();
    return is_same;
}

static enum lk_status make_folders(const char *path)
{
    char folder[LK_CONVERT_PATH];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return lk_folder_make(folder);
}

/* fails: LK_E_IO, of the target */
static enum lk_status write_file(const struct lk_conversion *c, int64_t i, const char *path,
                                 const struct lk_convert_image *image)
{
    char draft[LK_CONVERT_PATH];
    if (snprintf(draft, sizeof draft, "%s/%lld", c->work, (long long)i) >= (int)sizeof draft)
        return lk_fail(LK_E_ARGUMENT, "'%.200s...': too long a path", c->folder);
    LK_TRY(lk_file_write(draft, image->data, image->bytes));
    if (!holds(draft, image))
        return lk_fail(LK_E_IO, "'%s' was read back and has not what was written", draft);
    LK_TRY(make_folders(path));
    return lk_file_move(draft, path);
}

/* On any thread. */
static enum lk_status convert(void *context, int64_t i)
{
    struct writer *writer = context;
    int64_t index;
    const struct lk_convert_part *part = find_part(writer, i, &index);
    struct lk_convert_image image = {0};
    char path[LK_CONVERT_PATH], *why = writer->slots[i % WINDOW].why;
    const size_t room = sizeof writer->slots->why;
    memset(&writer->slots[i % WINDOW], 0, sizeof *writer->slots);
    if (part->samples[index].label < 0)
        return LK_OK; /* it was noted as broken before */
    enum lk_status status = lk_convert_read(writer->c, part, index, &image);
    if (status == LK_E_DATA || status == LK_E_IO) {
        writer->slots[i % WINDOW].is_bad = true;
        snprintf(why, room, "%s", lk_error_text());
        lk_error_clear();
        return LK_OK;
    }
    if (status == LK_OK)
        status = path_of(writer->c, part, index, image.format, path);
    if (status == LK_OK) {
        writer->slots[i % WINDOW].was_there = holds(path, &image);
        writer->slots[i % WINDOW].bytes = image.bytes;
        if (!writer->slots[i % WINDOW].was_there)
            status = write_file(writer->c, i, path, &image);
    }
    free(image.data);
    return status;
}

static enum lk_status count(void *context, int64_t i)
{
    struct writer *writer = context;
    struct lk_conversion *c = writer->c;
    int64_t index;
    struct lk_convert_part *part = find_part(writer, i, &index);
    const int32_t label = part->samples[index].label;
    lk_convert_report(c, "converting", part->name, i + 1, writer->firsts[c->part_count]);
    if (writer->slots[i % WINDOW].is_bad)
        return lk_convert_note_bad(c, part, writer->slots[i % WINDOW].why);
    if (label < 0)
        return LK_OK;
    part->report->samples++;
    part->report->kept += writer->slots[i % WINDOW].was_there;
    part->counts[label]++;
    if (!writer->slots[i % WINDOW].was_there)
        c->bytes += (int64_t)writer->slots[i % WINDOW].bytes;
    return LK_OK;
}

enum lk_status lk_convert_write_files(struct lk_conversion *c)
{
    struct writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return lk_fail_memory("a conversion", sizeof *writer);
    enum lk_status status = LK_OK;
    writer->c = c;
    for (int i = 0; i < c->part_count && status == LK_OK; i++) {
        writer->firsts[i + 1] = writer->firsts[i] + c->parts[i].count;
        status = separate(c, &c->parts[i]);
    }
    const struct lk_parallel crew = {.threads = c->threads,
                                     .count = writer->firsts[c->part_count],
                                     .window = WINDOW,
                                     .stop = &c->stop,
                                     .context = writer,
                                     .work = convert,
                                     .take = count};
    if (status == LK_OK)
        status = lk_parallel_run(&crew);
    free(writer);
    return status;
}
