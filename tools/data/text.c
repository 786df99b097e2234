/* Lengths of texts and the reach of their vocabulary, as a table and as JSON. */
#include "data/text.h"

#include "terminal/table.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Shares of texts that are no longer than what is shown. */
static const struct {
    const char *name;
    int percent;
} lengths[] = {{"shortest", 0}, {"median", 50}, {"90 %", 90}, {"99 %", 99}, {"longest", 100}};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum lk_status data_measure_texts(struct data_part *part)
{
    const int64_t count = lk_data_info(part->data)->count;
    if (!lk_data_vocabulary(part->data))
        return LK_OK;
    part->lengths = malloc((size_t)count * sizeof *part->lengths);
    if (!part->lengths)
        return LK_E_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        struct lk_text_size size;
        if (lk_data_measure_text(part->data, i, &size) != LK_OK) {
            lk_error_clear(); /* the survey names it */
            continue;
        }
        part->lengths[part->texts++] = size.tokens;
        part->tokens += size.tokens;
        part->unknown += size.unknown;
    }
    qsort(part->lengths, (size_t)part->texts, sizeof *part->lengths, compare);
    return LK_OK;
}

static int64_t length_at(const struct data_part *part, int percent)
{
    return part->texts ? part->lengths[(part->texts - 1) * percent / 100] : 0;
}

/* The tokens of a sample, and those that there are at all; 0: no texts. */
static int64_t room_of(const struct data_part *part, int64_t *vocabulary)
{
    const struct lk_data_info *info = lk_data_info(part->data);
    for (int i = 0; i < info->field_count; i++)
        if (info->fields[i].length >= 0) {
            *vocabulary = info->fields[i].classes;
            return info->fields[i].shape.dim[0];
        }
    *vocabulary = 0;
    return 0;
}

static int64_t cut_of(const struct data_part *part, int64_t room)
{
    int64_t cut = 0;
    for (int64_t i = part->texts; i > 0 && part->lengths[i - 1] > room; i--)
        cut++;
    return cut;
}

static double known_of(const struct data_part *part)
{
    return part->tokens ? 1 - (double)part->unknown / (double)part->tokens : 1;
}

void data_print_texts(const struct data_report *report)
{
    struct table_column columns[1 + DATA_PARTS] = {{"tokens a text", 0, 20, .is_left = true}};
    struct table table;
    int64_t vocabulary;
    const int64_t room = room_of(&report->parts[0], &vocabulary);
    if (!report->parts[0].lengths)
        return;
    printf("\n");
    for (int i = 0; i < report->count; i++)
        columns[1 + i] = (struct table_column){.heading = report->parts[i].name, .width = 14};
    table_start(&table, columns, 1 + report->count);
    for (int k = 0; k < LENGTHS; k++) {
        table_cell(&table, "%s", lengths[k].name);
        for (int i = 0; i < report->count; i++)
            table_cell(&table, "%" PRId64, length_at(&report->parts[i], lengths[k].percent));
    }
    table_cell(&table, "longer than %" PRId64, room);
    for (int i = 0; i < report->count; i++)
        table_cell(&table, "%" PRId64, cut_of(&report->parts[i], room));
    table_cell(&table, "known tokens");
    for (int i = 0; i < report->count; i++)
        table_cell(&table, "%.2f %%", 100 * known_of(&report->parts[i]));
    table_cell(&table, "unknown tokens");
    for (int i = 0; i < report->count; i++)
        table_cell(&table, "%" PRId64, report->parts[i].unknown);
    table_end(&table);
    printf("vocabulary: %" PRId64 " tokens\n", vocabulary);
}

json_t *data_texts_json(const struct data_part *part)
{
    int64_t vocabulary;
    const int64_t room = room_of(part, &vocabulary);
    if (!part->lengths)
        return json_null();
    json_t *texts =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "length", (json_int_t)room, "vocabulary",
                  (json_int_t)vocabulary, "texts", (json_int_t)part->texts, "tokens",
                  (json_int_t)part->tokens, "unknown", (json_int_t)part->unknown, "longer",
                  (json_int_t)cut_of(part, room));
    json_t *found = json_array();
    for (int k = 0; k < LENGTHS; k++)
        json_array_append_new(found, json_integer(length_at(part, lengths[k].percent)));
    json_object_set_new(texts, "lengths", found);
    return texts;
}
