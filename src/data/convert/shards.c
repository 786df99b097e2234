/* Writes TFRecord shards: threads make the records, which are written in the order of samples.
 * A shard is synced and read back before it is put in its place. */
#include "base/fail.h"
#include "base/log.h"
#include "data/convert/contents.h"
#include "io/file.h"
#include "io/records/example_write.h"
#include "io/records/tfrecord_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A run of samples of a part, which become a file. */
struct shard {
    struct lk_convert_part *part;
    int number;
    int64_t begin, end; /* samples of the part */
    int64_t first;      /* of all that is converted, the number of its first sample */
};

/* A record between the thread that made it and the file. */
struct slot {
    uint8_t *record;
    size_t bytes;
    struct lk_tfrecord_frame seal;
    bool is_bad;
    char why[768];
};

struct writer {
    struct lk_conversion *c;
    struct shard *shards; /* those that are still to be written */
    int shard_count, current;
    int64_t window, total;
    struct slot *slots; /* [window] */
    struct lk_file_draft *draft;
    char draft_path[LK_CONVERT_PATH];
    struct lk_text skipped; /* the samples of this shard that were left out */
    struct lk_shard_contents contents, found;
};

static enum lk_status paths_of(const struct lk_conversion *c, const struct shard *shard,
                               char draft[LK_CONVERT_PATH], char path[LK_CONVERT_PATH])
{
    char name[128];
    lk_convert_shard_name(shard->part, shard->number, name);
    if (snprintf(draft, LK_CONVERT_PATH, "%s/%s", c->work, name) >= LK_CONVERT_PATH ||
        snprintf(path, LK_CONVERT_PATH, "%s/%s", c->folder, name) >= LK_CONVERT_PATH)
        return lk_fail(LK_E_ARGUMENT, "'%.200s...': too long a path", c->folder);
    return LK_OK;
}

/* The list of samples missing in a shard, which lies beside it until all is done. */
static enum lk_status list_of(const struct lk_conversion *c, const struct shard *shard,
                              char path[LK_CONVERT_PATH])
{
    char draft[LK_CONVERT_PATH];
    LK_TRY(paths_of(c, shard, draft, path));
    if (snprintf(path, LK_CONVERT_PATH, "%s.skipped", draft) >= LK_CONVERT_PATH)
        return lk_fail(LK_E_ARGUMENT, "'%.200s...': too long a path", c->folder);
    return LK_OK;
}

static void count_shard(struct lk_convert_part *part, const struct lk_shard_contents *contents,
                        int classes)
{
    part->report->samples += contents->records;
    for (int i = 0; i < classes; i++)
        part->counts[i] += contents->counts[i];
}

static enum lk_status add_feature_list(const struct lk_conversion *c,
                                       const struct lk_convert_part *part, int64_t index,
                                       const struct lk_convert_image *image, struct slot *slot)
{
    char name[LK_CONVERT_PATH];
    const int32_t label = part->samples[index].label;
    const char *class_name = c->classes[label];
    lk_convert_name(c, part, index, image->format, name);
#define TEXT(t)                                                                                \
    {                                                                                          \
        (const uint8_t *)(t), strlen(t)                                                        \
    }
    const struct lk_example_feature features[] = {
        {.key = c->keys.label, .kind = LK_EXAMPLE_INTS, .number = label - c->keys.offset},
        {.key = c->keys.image, .kind = LK_EXAMPLE_BYTES, .bytes = {image->data, image->bytes}},
        {.key = "image/filename", .kind = LK_EXAMPLE_BYTES, .bytes = TEXT(name)},
        {.key = "image/format", .kind = LK_EXAMPLE_BYTES, .bytes = TEXT(image->format)},
        {.key = "image/height", .kind = LK_EXAMPLE_INTS, .number = image->height},
        {.key = "image/width", .kind = LK_EXAMPLE_INTS, .number = image->width},
        {.key = "image/class/text",
         .kind = LK_EXAMPLE_BYTES,
         .bytes = TEXT(class_name ? class_name : "")}};
#undef TEXT
    LK_TRY(lk_example_write(features, LK_COUNT(features) - (class_name ? 0 : 1), &slot->record,
                            &slot->bytes));
    lk_tfrecord_frame(slot->record, slot->bytes, &slot->seal);
    return LK_OK;
}

static const struct shard *find_shard(const struct writer *writer, int64_t i)
{
    int low = 0, high = writer->shard_count - 1;
    while (low < high) {
        const int middle = high - (high - low) / 2;
        if (i >= writer->shards[middle].first)
            low = middle;
        else
            high = middle - 1;
    }
    return &writer->shards[low];
}

/* On any thread: the record of sample i of all. */
static enum lk_status make_record(void *context, int64_t i)
{
    struct writer *writer = context;
    const struct shard *shard = find_shard(writer, i);
    const int64_t index = shard->begin + (i - shard->first);
    struct slot *slot = &writer->slots[i % writer->window];
    struct lk_convert_image image;
    free(slot->record);
    *slot = (struct slot){0};
    if (shard->part->samples[index].label < 0)
        return LK_OK; /* known to be broken */
    enum lk_status status = lk_convert_read(writer->c, shard->part, index, &image);
    if (status == LK_OK) {
        status = add_feature_list(writer->c, shard->part, index, &image, slot);
        free(image.data);
    } else if (status == LK_E_DATA || status == LK_E_IO) {
        slot->is_bad = true;
        snprintf(slot->why, sizeof slot->why, "%s", lk_error_text());
        lk_error_clear();
        return LK_OK;
    }
    return status;
}

static enum lk_status begin_shard(struct writer *writer, const struct shard *shard)
{
    char path[LK_CONVERT_PATH];
    LK_TRY(paths_of(writer->c, shard, writer->draft_path, path));
    lk_shard_contents_clear(&writer->contents, writer->c->class_count);
    writer->skipped.used = 0;
    return lk_file_draft_open(writer->draft_path, &writer->draft);
}

static enum lk_status end_shard(struct writer *writer, const struct shard *shard)
{
    struct lk_conversion *c = writer->c;
    struct lk_shard_contents *wrote = &writer->contents, *found = &writer->found;
    struct lk_file_draft *draft = writer->draft;
    char path[LK_CONVERT_PATH], draft_path[LK_CONVERT_PATH], skipped[LK_CONVERT_PATH];
    writer->draft = NULL;
    LK_TRY(lk_file_draft_commit(draft));
    LK_TRY(paths_of(c, shard, draft_path, path));
    LK_TRY(list_of(c, shard, skipped));
    LK_TRY(lk_shard_contents_read(c, draft_path, found));
    if (found->records != wrote->records || found->sum != wrote->sum)
        return lk_fail(LK_E_IO,
                       "'%s' was read back and has not what was written: %lld records of %lld",
                       draft_path, (long long)found->records, (long long)wrote->records);
    if (writer->skipped.used > 0)
        LK_TRY(lk_file_write(skipped, writer->skipped.bytes, writer->skipped.used));
    LK_TRY(lk_file_move(draft_path, path));
    count_shard(shard->part, found, c->class_count);
    return LK_OK;
}

/* On the calling thread, in order. */
static enum lk_status write_record(void *context, int64_t i)
{
    struct writer *writer = context;
    struct lk_conversion *c = writer->c;
    const struct shard *shard = &writer->shards[writer->current];
    const int64_t index = shard->begin + (i - shard->first);
    struct slot *slot = &writer->slots[i % writer->window];
    if (index == shard->begin)
        LK_TRY(begin_shard(writer, shard));
    if (slot->is_bad) {
        lk_text_append(&writer->skipped, "%s\n", slot->why);
        if (writer->skipped.failed)
            return lk_fail_memory("names of broken samples", writer->skipped.used);
        LK_TRY(lk_convert_note_bad(c, shard->part, slot->why));
    } else if (slot->record) {
        LK_TRY(lk_tfrecord_write(lk_file_draft_stream(writer->draft), writer->draft_path,
                                 slot->record, slot->bytes, &slot->seal));
        lk_shard_contents_add(&writer->contents, shard->part->samples[index].label,
                              slot->record, slot->bytes);
        c->bytes +=
            (int64_t)(slot->bytes + sizeof slot->seal.header + sizeof slot->seal.footer);
    }
    lk_convert_report(c, "converting", shard->part->name, i + 1, writer->total);
    if (index + 1 < shard->end)
        return LK_OK;
    writer->current++;
    return end_shard(writer, shard);
}

/* How many samples of the shard were noted as broken when samples were listed. */
static int64_t count_broken(const struct shard *shard)
{
    int64_t count = 0;
    for (int64_t i = shard->begin; i < shard->end; i++)
        count += shard->part->samples[i].label < 0;
    return count;
}

/* Notes the samples in a list of skipped ones; returns how many these are. */
static enum lk_status note_list(struct lk_conversion *c, const struct shard *shard, bool notes,
                                int64_t *count)
{
    char path[LK_CONVERT_PATH], *rest;
    void *text = NULL;
    size_t bytes = 0;
    *count = 0;
    LK_TRY(list_of(c, shard, path));
    if (!lk_file_exists(path))
        return LK_OK;
    LK_TRY(lk_file_read(path, (size_t)1 << 30, &text, &bytes));
    enum lk_status status = LK_OK;
    for (char *line = strtok_r(text, "\n", &rest); line && status == LK_OK;
         line = strtok_r(NULL, "\n", &rest)) {
        status = notes ? lk_convert_note_bad(c, shard->part, line) : LK_OK;
        ++*count;
    }
    free(text);
    return status;
}

/* Whether a shard of an interrupted conversion is there and whole; it is then counted. */
static enum lk_status take_shard(struct writer *writer, const struct shard *shard,
                                 bool *is_there)
{
    struct lk_conversion *c = writer->c;
    char path[LK_CONVERT_PATH], draft[LK_CONVERT_PATH];
    int64_t skipped = 0;
    LK_TRY(paths_of(c, shard, draft, path));
    *is_there = false;
    if (!c->resumes || !lk_file_exists(path))
        return LK_OK;
    LK_TRY(note_list(c, shard, false, &skipped));
    const enum lk_status status = lk_shard_contents_read(c, path, &writer->found);
    const int64_t wanted = shard->end - shard->begin - count_broken(shard) - skipped;
    if (status != LK_OK || writer->found.records != wanted) {
        lk_log(LK_LOG_WARNING, "'%s' is not whole and is written anew%s%s", path,
               status == LK_OK ? "" : ": ", lk_error_text());
        lk_error_clear();
        return LK_OK;
    }
    *is_there = true;
    shard->part->report->kept++;
    count_shard(shard->part, &writer->found, c->class_count);
    return note_list(c, shard, true, &skipped);
}

/* Lists the shards that are to be written: all but those that are there. */
static enum lk_status find_work(struct writer *writer)
{
    struct lk_conversion *c = writer->c;
    int all = 0, seen = 0;
    for (int i = 0; i < c->part_count; i++)
        all += c->parts[i].shards;
    writer->shards = calloc((size_t)all, sizeof *writer->shards);
    if (!writer->shards)
        return lk_fail_memory("a list of shards", (size_t)all * sizeof *writer->shards);
    for (int i = 0; i < c->part_count; i++) {
        struct lk_convert_part *part = &c->parts[i];
        for (int k = 0; k < part->shards; k++) {
            const struct shard shard = {part, k, part->count * k / part->shards,
                                        part->count * (k + 1) / part->shards, writer->total};
            bool is_there;
            if (atomic_load(&c->stop))
                return lk_fail(LK_E_INTERRUPTED, "interrupted");
            LK_TRY(take_shard(writer, &shard, &is_there));
            if (c->resumes)
                lk_convert_report(c, "checking", part->name, ++seen, all);
            if (is_there)
                continue;
            writer->shards[writer->shard_count++] = shard;
            writer->total += shard.end - shard.begin;
        }
    }
    return LK_OK;
}

static enum lk_status write_all(struct writer *writer)
{
    struct lk_conversion *c = writer->c;
    writer->contents.counts = calloc((size_t)c->class_count, sizeof(int64_t));
    writer->found.counts = calloc((size_t)c->class_count, sizeof(int64_t));
    writer->slots = calloc((size_t)writer->window, sizeof *writer->slots);
    if (!writer->contents.counts || !writer->found.counts || !writer->slots)
        return lk_fail_memory("records", (size_t)writer->window * sizeof *writer->slots);
    LK_TRY(find_work(writer));
    const struct lk_parallel crew = {.threads = c->threads,
                                     .count = writer->total,
                                     .window = writer->window,
                                     .stop = &c->stop,
                                     .context = writer,
                                     .work = make_record,
                                     .take = write_record};
    return lk_parallel_run(&crew);
}

enum lk_status lk_convert_write_shards(struct lk_conversion *c)
{
    struct writer writer = {.c = c, .window = 8 * c->threads};
    const enum lk_status status = write_all(&writer);
    lk_file_draft_discard(writer.draft);
    for (int64_t i = 0; writer.slots && i < writer.window; i++)
        free(writer.slots[i].record);
    free(writer.slots);
    free(writer.shards);
    free(writer.skipped.bytes);
    free(writer.contents.counts);
    free(writer.found.counts);
    return status;
}
