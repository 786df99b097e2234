/* Prints what `lockstep data` has found as JSON. */
#include "data/data.h"

#include "data/text.h"

static const struct lk_data_info *info_of(const struct data_report *report)
{
    return lk_data_info(report->parts[0].data);
}

static json_t *size_json(struct lk_survey_size size)
{
    return size.height ? json_pack("[i, i]", size.height, size.width) : json_null();
}

static json_t *notes_json(const struct lk_survey_notes *notes)
{
    json_t *items = json_array();
    for (int64_t i = 0; i < notes->count; i++)
        json_array_append_new(items, json_pack("{s:I, s:o}", "sample",
                                               (json_int_t)notes->items[i].index, "text",
                                               json_text(notes->items[i].text)));
    return items;
}

static json_t *numbers_json(const double *numbers, int count, double scale)
{
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(items, json_real(numbers[i] * scale));
    return items;
}

/* A stage that there is not has no rate. */
static json_t *rate_json(double rate)
{
    return rate > 0 ? json_real(rate) : json_null();
}

static json_t *rates_json(const struct data_part *part)
{
    json_t *rates = json_object();
    json_object_set_new(rates, "list", rate_json(part->list_per_s));
    for (int s = 0; s < LK_SURVEY_STAGES; s++)
        json_object_set_new(rates, data_stage_names[s],
                            rate_json(part->survey->samples_per_s[s]));
    json_object_set_new(rates, "batches", rate_json(part->batches_per_s));
    return rates;
}

static json_t *files_json(const struct lk_survey *survey)
{
    json_t *channels = json_object();
    for (int c = 1; c <= LK_SURVEY_CHANNELS; c++)
        json_object_set_new(channels, data_channel_names[c], json_integer(survey->channels[c]));
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "JPEG", (json_int_t)survey->jpegs, "PNG",
                     (json_int_t)survey->pngs, "channels", channels, "smallest",
                     size_json(survey->smallest), "median", size_json(survey->median),
                     "largest", size_json(survey->largest));
}

static json_t *survey_numbers_json(const struct data_part *part)
{
    json_t *items = json_array();
    for (int k = 0; k < part->survey->number_count; k++) {
        const struct lk_survey_numbers *n = &part->survey->numbers[k];
        char name[192];
        data_numbers_name(lk_data_info(part->data), n, name);
        json_array_append_new(items, json_pack("{s:o, s:I, s:f, s:f, s:f, s:f}", "name",
                                               json_text(name), "count", (json_int_t)n->count,
                                               "mean", n->mean, "deviation", n->deviation,
                                               "smallest", n->smallest, "largest", n->largest));
    }
    return items;
}

static json_t *part_json(const struct data_part *part)
{
    const struct lk_survey *survey = part->survey;
    const struct lk_data_info *info = lk_data_info(part->data);
    json_t *counts = json_array();
    const int most = info->classes ? data_majority(part) : 0;
    for (int i = 0; i < info->classes; i++)
        json_array_append_new(counts, json_integer(survey->class_counts[i]));
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:o, s:I, s:i, s:f, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:I, "
        "s:o, s:i, s:o, s:o, s:o}",
        "part", part->name, "samples", (json_int_t)info->count, "looked_at",
        (json_int_t)survey->samples, "good", (json_int_t)survey->good, "class_counts", counts,
        "without_class", (json_int_t)survey->unlabelled, "majority_class", most,
        "majority_share", info->classes ? data_share(part, most) : 0.0, "files",
        files_json(survey), "mean", numbers_json(survey->mean, data_value_channels(info), 1),
        "deviation", numbers_json(survey->deviation, data_value_channels(info), 1),
        "scaled_mean", numbers_json(survey->mean, data_value_channels(info), 1 / 255.0),
        "scaled_deviation",
        numbers_json(survey->deviation, data_value_channels(info), 1 / 255.0), "bad_count",
        (json_int_t)data_bad(survey), "most_bad", (json_int_t)survey->most_bad, "bad",
        notes_json(&survey->bad), "cut_off", (json_int_t)survey->lost, "misnamed",
        notes_json(&survey->misnamed), "batch_threads", part->batch_threads, "samples_per_s",
        rates_json(part), "numbers", survey_numbers_json(part), "texts", data_texts_json(part));
}

static json_t *fields_json(const struct lk_data_info *info)
{
    json_t *items = json_array();
    for (int i = 0; i < info->field_count; i++) {
        const struct lk_field *field = &info->fields[i];
        json_t *shape = json_array();
        for (int k = 0; k < field->shape.rank; k++)
            json_array_append_new(shape, json_integer(field->shape.dim[k]));
        json_array_append_new(
            items, json_pack("{s:o, s:s, s:o, s:s, s:I}", "name", json_text(field->name),
                             "type", data_dtype_name(field->dtype), "shape", shape, "role",
                             field->role == LK_FIELD_INPUT ? "input" : "label", "classes",
                             (json_int_t)field->classes));
    }
    return items;
}

/* What a value v of the file becomes: v * scale + shift, in the order in which the model gets
 * channels. null: the pipeline leaves them as they are. */
static json_t *normalization_json(const struct data_report *report)
{
    const struct lk_normalization *n = &report->normalization;
    const int count = data_value_channels(info_of(report));
    if (!n->normalizes)
        return json_null();
    return json_pack("{s:b, s:o, s:o}", "reversed", n->is_reversed, "scale",
                     numbers_json(n->scale, count, 1), "shift",
                     numbers_json(n->shift, count, 1));
}

int data_print_json(const struct data_report *report)
{
    const struct lk_data_info *info = info_of(report);
    json_t *classes = json_array(), *parts = json_array();
    char text[32];
    for (int i = 0; i < info->classes; i++)
        json_array_append_new(classes, json_text(data_class_name(info, i, text)));
    for (int i = 0; i < report->count; i++)
        json_array_append_new(parts, part_json(&report->parts[i]));
    return json_print(json_pack("{s:o, s:o, s:[i, i, i], s:o, s:o, s:o, s:o}", "data",
                                json_text(report->spec), "name", json_text(info->name), "shape",
                                info->height, info->width, info->channels, "classes", classes,
                                "parts", parts, "fields", fields_json(info), "normalization",
                                normalization_json(report)),
                      JSON_INDENT(2));
}
